"""The command of a pack operation: its arguments follow from the parameters of the function."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any

from recordio.frames.companions import pack_paths
from recordio.keywords.functions import options_of
from recordio.operations.output import PackReport
from recordio.packs.names import pack_prefix

from ..command import ARGUMENTS, BY_POSITION, Command, add, add_option, show, showing_progress
from ..console import Interruption, say
from ..outputs import check_outputs

SHOWN_PROBLEMS = 10
#: Parameters that the command gives by itself.
HIDDEN = ("progress", "cancelled", "max_scans", "max_scan_pixels")
#: Arguments that come last in ``--help``.
LAST = [name for name in ARGUMENTS if name not in BY_POSITION]


def say_written(report: PackReport, settings: Any = None) -> int:
    """Report what was written and what was not; return the exit code."""
    for problem in report.problems[:SHOWN_PROBLEMS]:
        say("recordio", f"left out: {problem}")
    if report.skipped > SHOWN_PROBLEMS:
        say("recordio", f"left out {report.skipped} damaged records in all")
    if report.continued:
        say("recordio", f"went on after {report.continued} records of a run that was killed")
    for output in report.outputs:
        identities = ""
        if output.identities:
            identities = f" of {output.people} people ({output.identities} are listed)"
            if output.people == output.identities:
                identities = f" of {output.people} people"
        say(
            "recordio",
            f"wrote {output.path}: {output.records} records{identities}, "
            f"{output.bytes / 1e6:.1f} MB",
        )
    return 0


def show_found(result: Any, settings: argparse.Namespace) -> int:
    """Print what was found, as text or JSON; the exit code is 1 where packs are not equal."""
    show(result.as_dict() if settings.json else str(result))
    return int(not getattr(result, "equal", True))


def operation(
    function: Callable[..., Any],
    summary: str,
    description: str,
    *,
    writes: Callable[[argparse.Namespace], Sequence[str]] | None = lambda settings: [settings.out],
    check: Callable[[argparse.Namespace], str] = lambda settings: "",
    one_of: Sequence[str] = (),
    values: Callable[[argparse.Namespace], dict[str, Any]] = lambda settings: {},
    report: Callable[[Any, argparse.Namespace], int] = say_written,
    json: bool = False,
    kept: bool = False,
    **different: Any,
) -> Command:
    """Make the command of a function whose parameters are `checked`.

    Exactly one of the parameters `one_of` has to be given.  `different` has words for
    ``add_argument`` of the parameter of that name, in place of those that follow from it, or a
    function that adds arguments to a parser.  `values` are parameters that are not what an argument
    says, and ``writes(settings)`` the packs that are written, which ``--force`` replaces,
    with their lists if these are `kept`.
    """
    options = options_of(function)
    also = ["json"] * json + ["force"] * (writes is not None)
    names = [name for name in options if name not in HIDDEN and name not in LAST]
    names += [name for name in LAST if name in options or name in also]

    def add_options(parser: argparse.ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group(required=True) if one_of else parser
        for name in names:
            words = different.get(name, {})
            if callable(words):
                words(parser)
            elif name in ARGUMENTS:
                add(parser, name, **words)
            else:
                add_option(group if name in one_of else parser, options[name], **words)

    def run(settings: argparse.Namespace, interruption: Interruption) -> int:
        arguments = {name: value for name, value in vars(settings).items() if name in options}
        arguments |= values(settings)
        prefixes = [pack_prefix(prefix) for prefix in writes(settings)] if writes else []
        outputs = [path for prefix in prefixes for path in pack_paths(prefix, (), kept)]
        check_outputs(outputs, "force" in settings and settings.force)
        name = os.path.basename([*prefixes, getattr(settings, "path", "comparing")][0])
        with showing_progress(name) as progress:
            arguments["progress"] = progress
            if "cancelled" not in options:
                return report(function(**arguments), settings)
            with interruption.deferring():
                result = function(**arguments, cancelled=interruption.requested)
        return report(result, settings)

    return Command(function.__name__, summary, description, add_options, run, check)
