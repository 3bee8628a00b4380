"""`recordio bench`: an epoch of a pack, and where its time goes."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import time
from collections.abc import Callable
from typing import Any

from recordio.errors import RecordIOError
from recordio.keywords.options import divided

from .command import Command, add, is_flag, show
from .console import Interruption, say

#: Keywords that the command sets itself.
OWN = ("path_imgrec", "verbose")


def _families() -> tuple[Any, ...]:
    from iterators import ImageRecordIter  # slow to load

    return ImageRecordIter.families


def _add_bench(parser: argparse.ArgumentParser) -> None:
    add(parser, "path")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=20.0,
        metavar="S",
        help="""end after so many seconds; of an epoch that is over before then the second is
        reported, for which memory, a cache and entry points are there (default: %(default)g)""",
    )
    form = parser.add_mutually_exclusive_group()
    add(form, "json")
    form.add_argument(
        "--prometheus", action="store_true", help="print the text format of Prometheus"
    )
    group = parser.add_argument_group(
        "keywords of ImageRecordIter", "as in Python: --data-shape 3,224,224 --rand-crop"
    )
    optional_value: dict[str, Any] = {"nargs": "?", "const": True}
    for item in (item for family in _families() for item in dataclasses.fields(family)):
        if item.name not in OWN:
            group.add_argument(
                f"--{item.name.replace('_', '-')}",
                dest=item.name,
                metavar="VALUE",
                default=argparse.SUPPRESS,
                required=item.default is dataclasses.MISSING,
                type=_value(item.name, item.metadata["check"]),
                help=item.metadata["kind"].replace("%", "%%"),
                **(optional_value if is_flag(item) else {}),
            )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time")
    return seconds


def _value(name: str, check: Callable[[str, Any], Any] | None) -> Callable[[str], Any]:
    """Return what reads a value as Python does, or as text, and checks it."""

    def convert(text: str) -> Any:
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        try:
            return check(name, value) if check else value
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name}=")) from None

    return convert


def _keywords(settings: argparse.Namespace) -> dict[str, Any]:
    names = [item.name for family in _families() for item in dataclasses.fields(family)]
    return {name: getattr(settings, name) for name in names if name in settings}


def _wrong_of_bench(settings: argparse.Namespace) -> str:
    """Name keywords that do not go together."""
    try:
        for family, keywords in zip(
            _families(), divided("recordio bench", _keywords(settings), *_families()), strict=True
        ):
            family(**keywords)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _bench(settings: argparse.Namespace, interruption: Interruption) -> int:
    from iterators import ImageRecordIter  # slow to load

    try:
        provider = ImageRecordIter(path_imgrec=settings.path, verbose=False, **_keywords(settings))
    except RecordIOError:
        raise
    except (TypeError, ValueError) as error:
        say("recordio", f"error: {error}")
        return 2
    end = time.monotonic() + settings.seconds
    with provider:
        for _ in range(2):
            for _ in provider:
                if interruption.requested() or time.monotonic() >= end:
                    break
            if interruption.requested():
                raise KeyboardInterrupt
            if time.monotonic() >= end:
                break
        report = provider.report()
    if settings.prometheus:
        show(report.prometheus().rstrip())
    elif settings.json:
        values = dataclasses.asdict(report)
        show({name: value for name, value in values.items() if name != "capacity"})
    else:
        show(str(report))
    return 0


BENCH = Command(
    "bench",
    "measure the batches of a pack, and say where their time goes",
    """Run ImageRecordIter over a pack with the keywords of a training, but no training, and print
    its report: waits, the time of an image by what is done to it, threads that are busy, and the
    change that promises most, with the rate that it will have.""",
    _add_bench,
    _bench,
    _wrong_of_bench,
)
