"""Console command ``recordio``: runs the requested sub-command."""

from __future__ import annotations

if not __package__:
    import checkout

    checkout.run("cli")

import argparse
import sys
from collections.abc import Sequence

from .console import run_command
from .subcommands import build_parser, commands

__all__ = ["build_parser", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 if anything was skipped, is damaged or failed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    # The format decides which options there are.
    scout = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    scout.add_argument("--to", nargs="?")
    target = scout.parse_known_args(words)[0].to
    asked = next((word for word in words if word in commands()), None)
    parser = build_parser(target, asked)
    settings = parser.parse_args(words)
    command = commands(target)[settings.command]
    if wrong := command.check(settings):
        parser.error(wrong)
    return run_command("recordio", lambda interruption: command.run(settings, interruption))


if __name__ == "__main__":
    sys.exit(main())
