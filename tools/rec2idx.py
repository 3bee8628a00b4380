"""Console command ``rec2idx``: write the index of a record file.

This is the command line of `recordio.build_index` and does nothing else.
"""

from __future__ import annotations

if not __package__:
    import checkout

    checkout.run("rec2idx")

import argparse
import sys
from collections.abc import Sequence

from recordio import build_index

from .completion import add_completion
from .console import Interruption, Parser, add_version, run_command, say
from .outputs import local_path

DESCRIPTION = """Write the index (.idx) of a record file (.rec). By default the keys are 0, 1, 2,
... in file order. The index appears complete or not at all; damage in the record file is reported
with its offset."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = Parser(
        prog="rec2idx",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_version(parser)
    add_completion(parser)
    parser.add_argument("record", metavar="RECORD", type=local_path, help="the record file")
    parser.add_argument(
        "index", metavar="INDEX", type=local_path, help="the index to write or to replace"
    )
    parser.add_argument(
        "--keys",
        choices=["position", "id"],
        default="position",
        help="""position: 0, 1, 2, ...; id: the id in each image header, as im2rec writes them
        (default: position)""",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 after a failure."""
    settings = build_parser().parse_args(arguments)

    def action(interruption: Interruption) -> int:
        count = build_index(settings.record, settings.index, settings.keys)
        say("rec2idx", f"wrote {settings.index}: {count} records")
        return 0

    return run_command("rec2idx", action)


if __name__ == "__main__":
    sys.exit(main())
