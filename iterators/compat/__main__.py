"""``python -m iterators.compat check SCRIPT ...``: names of older systems that will be missing.

Scripts are read, never run.  The exit code is 1 if a name is missing, 2 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .check import CHANGES, DIFFERS, MISSING, check, scripts_in

__all__ = ["build_parser", "main"]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m iterators.compat",
        description="Look up the names that scripts for MXNet, Chainer, Pylearn2 or dp use.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "check",
        help="list the names that are missing here or differ, by line, and the imports to change",
        description="""Scripts are read, never run. Methods of objects are not checked, because the
        types of variables are not known. The exit code is 1 if a name is missing, and 2 if a file
        cannot be read.""",
    )
    command.add_argument("paths", nargs="+", metavar="SCRIPT", help="a script, or a folder of them")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    paths = build_parser().parse_args(arguments).paths
    counts = dict.fromkeys((CHANGES, DIFFERS, MISSING), 0)
    unreadable = 0
    scripts = [script for path in paths for script in scripts_in(path)]
    for script in scripts:
        try:
            findings = check(script)
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            unreadable += 1
            print(f"{script}: cannot be read: {error}", file=sys.stderr)
            continue
        for finding in findings:
            counts[finding.kind] += 1
            print(finding)
    print(
        f"{len(scripts)} scripts: {counts[CHANGES]} imports change, {counts[DIFFERS]} names "
        f"differ, {counts[MISSING]} are missing"
    )
    return 2 if unreadable else int(counts[MISSING] > 0)


if __name__ == "__main__":
    sys.exit(main())
