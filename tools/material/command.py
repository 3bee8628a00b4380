"""Options, progress and final messages of the commands over packs."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field
from typing import Any, NamedTuple

from recordio.keywords.functions import options_of
from recordio.operations.output import PackReport
from recordio.packs.classes import SUFFIX
from recordio.packs.names import pack_prefix

from ..console import Interruption, progress_bar, say
from ..outputs import check_outputs, local_path, path_or_url

__all__ = [
    "PACK_HELP",
    "PackCommand",
    "add_output_options",
    "add_own",
    "add_pack",
    "add_prefix",
    "add_skip_errors",
    "given_to",
    "natural",
    "operation",
    "positive",
    "say_written",
    "share",
    "showing_progress",
    "writing",
]

PACK_HELP = (
    "the record file, or its name without .rec, or its URL; PREFIX.idx is used if it is there"
)
SHOWN_PROBLEMS = 10


class PackCommand(NamedTuple):
    """Sub-command of ``recordio``; the texts are those of ``--help``."""

    name: str
    summary: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Interruption], int]  # returns the exit code
    #: Names the fault of arguments that do not go together; empty if there is none.
    check: Callable[[argparse.Namespace], str] = lambda settings: ""


#: Parameters that all of these functions have, whose options are added and read apart.
NOT_SHOWN = ("path", "out", "skip_errors", "progress", "cancelled")


def operation(
    function: Callable[..., PackReport],
    summary: str,
    description: str,
    check: Callable[[argparse.Namespace], str] = lambda settings: "",
    one_of: Sequence[str] = (),
    **different: dict[str, Any],
) -> PackCommand:
    """Make the command of a function whose parameters are `checked`, first ``path`` and ``out``.

    Exactly one of the parameters `one_of` has to be given.  `different` has arguments for
    ``add_argument`` of the parameter of that name, in place of those that follow from it.
    """

    def add_options(parser: argparse.ArgumentParser) -> None:
        add_pack(parser)
        add_prefix(parser)
        group = parser.add_mutually_exclusive_group(required=True) if one_of else parser
        for name, item in own_options(function).items():
            add_parameter(group if name in one_of else parser, item, **different.get(name, {}))
        add_output_options(parser)

    def run(settings: argparse.Namespace, interruption: Interruption) -> int:
        given = given_to(function, settings)
        with writing(settings, [settings.prefix], interruption) as options:
            report = function(settings.pack, settings.prefix, **given, **options)
        return say_written(report)

    name = function.__name__
    return PackCommand(name, summary, description, add_options, run, check)


def own_options(function: Callable[..., PackReport], but: str = "") -> dict[str, Field[Any]]:
    """The options that only this function has, except those that are added by hand."""
    return {
        name: item
        for name, item in options_of(function).items()
        if name not in (*NOT_SHOWN, *but.split())
    }


def add_own(
    parser: argparse.ArgumentParser,
    function: Callable[..., PackReport],
    but: str,
    **different: dict[str, Any],
) -> None:
    """Add these options to a parser."""
    for name, item in own_options(function, but).items():
        add_parameter(parser, item, **different.get(name, {}))


def given_to(
    function: Callable[..., PackReport], settings: argparse.Namespace, but: str = ""
) -> dict[str, Any]:
    """Return what a command line says for these options."""
    return {name: getattr(settings, name) for name in own_options(function, but)}


def add_parameter(group: Any, item: Field[Any], **different: Any) -> None:
    """The option of a command that is a parameter of a function, described and checked as there."""
    check, text = item.metadata["check"], item.metadata["text"]
    found: dict[str, Any] = {"help": _help(text, item.default), "default": item.default}
    if item.default is False:
        found["action"] = "store_true"
    elif "allowed" in getattr(check, "keywords", {}):
        found["choices"] = list(check.keywords["allowed"])
    else:
        found |= {"type": _typed(item.name, check), "metavar": _metavar(item)}
    group.add_argument(_flag(item.name), dest=item.name, **{**found, **different})


def _flag(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def _help(text: str, default: Any) -> str:
    """A description as ``--help`` has it; names of parameters become those of options."""
    text = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda found: _flag(found[1]), text)
    text = text.replace("``", "").replace("%", "%%").rstrip(".")
    shown = "" if default is None or default is False else f" (default: {default})"
    return f"{text[0].lower()}{text[1:]}{shown}"


def _metavar(item: Field[Any]) -> str:
    return "N" if "int" in str(item.metadata["kind"]) else item.name.upper()


def _typed(name: str, check: Callable[[str, Any], Any] | None) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        try:
            return check(name, text) if check else text
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{name}=")) from None

    return convert


def add_pack(parser: argparse.ArgumentParser) -> None:
    """Add the pack to read."""
    parser.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)


def add_prefix(parser: argparse.ArgumentParser) -> None:
    """Add the pack to write."""
    parser.add_argument(
        "prefix", metavar="PREFIX", type=local_path, help="write PREFIX.rec and PREFIX.idx"
    )


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of all commands that write packs."""
    parser.add_argument("--force", action="store_true", help="replace existing files")
    add_skip_errors(parser)


def add_skip_errors(parser: argparse.ArgumentParser) -> None:
    """Add the option for damaged records."""
    parser.add_argument(
        "--skip-errors",
        action="store_true",
        help="leave damaged records out and count them, instead of stopping at the first",
    )


@contextlib.contextmanager
def writing(
    settings: argparse.Namespace, prefixes: Sequence[str], interruption: Interruption
) -> Iterator[dict[str, Any]]:
    """Check the outputs, and show progress while they are written.

    The yielded keyword arguments `progress`, `cancelled` and `skip_errors` are those of functions
    of `recordio`.
    """
    prefixes = [pack_prefix(prefix) for prefix in prefixes]
    endings = (".rec", ".idx", SUFFIX)
    check_outputs([prefix + end for prefix in prefixes for end in endings], settings.force)
    name = os.path.basename(prefixes[0] if prefixes else settings.pack)
    with interruption.deferring(), showing_progress(name) as progress:
        yield {
            "progress": progress,
            "cancelled": interruption.requested,
            "skip_errors": settings.skip_errors,
        }


@contextlib.contextmanager
def showing_progress(name: str, unit: str = "records") -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar for ``progress(done, total)``, a new one when that begins again."""
    with contextlib.ExitStack() as stack:
        shown = 0
        advance: Callable[[int], object] | None = None

        def progress(done: int, total: int) -> None:
            nonlocal shown, advance
            if advance is None or done < shown:  # how many there are is known now
                advance, shown = stack.enter_context(progress_bar(total, name, unit)), 0
            advance(done - shown)
            shown = done

        yield progress


def say_written(report: PackReport) -> int:
    """Report what was written and what was not; return the exit code."""
    for problem in report.problems[:SHOWN_PROBLEMS]:
        say("recordio", f"left out: {problem}")
    if report.skipped > SHOWN_PROBLEMS:
        say("recordio", f"left out {report.skipped} damaged records in all")
    if report.continued:
        say("recordio", f"went on after {report.continued} records of a run that was killed")
    for output in report.outputs:
        identities = f" of {output.identities} identities" if output.identities else ""
        say(
            "recordio",
            f"wrote {output.path}: {output.records} records{identities}, "
            f"{output.bytes / 1e6:.1f} MB",
        )
    return 0


def natural(text: str) -> int:
    """Read a whole number from 0 on; for ``add_argument(type=...)``."""
    if not text.isdecimal() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def positive(text: str) -> int:
    """Read a whole number above 0; for ``add_argument(type=...)``."""
    number = natural(text)
    if not number:
        raise argparse.ArgumentTypeError("it must be at least 1")
    return number


def share(text: str) -> float:
    """Read a number above 0 and up to 1; for ``add_argument(type=...)``."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0 and up to 1")
    return value
