"""The option ``--print-completion`` of the console commands: completion of words in a shell.

The scripts are made by shtab, from the parsers; nothing here knows a shell.
"""

from __future__ import annotations

import argparse
from typing import Any

from recordio.extras import need

SHELLS = ("bash", "zsh")


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the option to the parser of a command."""
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        default=argparse.SUPPRESS,
        help="print a script with which that shell completes the options and files of this "
        "command, and exit; needs shtab",
    )


class _PrintCompletion(argparse.Action):
    """Action that prints the script and ends the command, as ``--help`` prints its text."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        try:
            shtab = need("shtab", f"{option_string} {values}")
        except ModuleNotFoundError as error:
            parser.error(str(error))
        _complete_files(parser, shtab.FILE)
        print(shtab.complete(parser, values))
        parser.exit()


def _complete_files(parser: argparse.ArgumentParser, file: Any) -> None:
    """Let values that no list is given for be completed as files, those of sub-commands too."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_files(command, file)
        elif action.choices is None and action.nargs != 0:
            action.complete = file  # type: ignore[attr-defined]
