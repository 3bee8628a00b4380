"""Options, progress and final messages of the commands over packs."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from recordio.packs.classes import SUFFIX
from recordio.packs.output import PackReport

from ..console import Interruption, progress_bar, say
from ..outputs import check_outputs, local_path, path_or_url
from ..record_pack import pack_prefix

__all__ = [
    "PACK_HELP",
    "PackCommand",
    "add_output_options",
    "add_pack",
    "add_prefix",
    "add_seed",
    "add_skip_errors",
    "natural",
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


def add_pack(parser: argparse.ArgumentParser) -> None:
    """Add the pack to read."""
    parser.add_argument("pack", metavar="PACK", type=path_or_url, help=PACK_HELP)


def add_prefix(parser: argparse.ArgumentParser) -> None:
    """Add the pack to write."""
    parser.add_argument(
        "prefix", metavar="PREFIX", type=local_path, help="write PREFIX.rec and PREFIX.idx"
    )


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add the seed of all chance."""
    parser.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="another choice (default: 0)"
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
