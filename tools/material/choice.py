"""``recordio split``, ``filter`` and ``sample``: packs of some of the records of another."""

from __future__ import annotations

import argparse

from recordio.operations.selection import filter as filter_pack
from recordio.operations.selection import sample
from recordio.operations.division import check_shares, split

from ..console import Interruption, say
from ..outputs import local_path
from .command import (
    PackCommand,
    add_output_options,
    add_own,
    add_pack,
    given_to,
    operation,
    say_written,
    share,
    writing,
)

__all__ = ["FILTER", "SAMPLE", "SPLIT"]


def _output(text: str) -> tuple[str, str]:
    """Read ``PREFIX=WHAT``."""
    prefix, equals, what = text.rpartition("=")
    if not equals or not prefix or not what:
        raise argparse.ArgumentTypeError(f"{text!r} is not PREFIX=SHARE or PREFIX=FILE")
    return local_path(prefix), what


def _add_split(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    parser.add_argument(
        "outputs",
        metavar="PREFIX=SHARE",
        type=_output,
        nargs="+",
        help="write PREFIX.rec and PREFIX.idx with this share of the records or classes, 0.8 for "
        "instance; PREFIX=FILE with --by list",
    )
    add_own(parser, split, "outputs", seed={"default": None})
    add_output_options(parser)


def _check_split(settings: argparse.Namespace) -> str:
    if settings.stratified and settings.by != "fraction":
        return "argument --stratified: it needs --by fraction"
    if settings.by == "list":
        return (
            "" if settings.seed is None else "argument --seed: --by list leaves nothing to chance"
        )
    if len(dict(settings.outputs)) != len(settings.outputs):
        return "an output is given twice"
    try:
        check_shares([share(what) for _, what in settings.outputs])
    except (argparse.ArgumentTypeError, ValueError) as error:
        return str(error)
    return ""


def _split(settings: argparse.Namespace, interruption: Interruption) -> int:
    outputs = {
        prefix: what if settings.by == "list" else float(what) for prefix, what in settings.outputs
    }
    given = given_to(split, settings, "outputs")
    given["seed"] = given["seed"] or 0
    with writing(settings, list(outputs), interruption) as options:
        report = split(settings.pack, outputs, **given, **options)
    if report.left_out:
        say("recordio", f"note: no list names {report.left_out} records")
    return say_written(report)


def _check_filter(settings: argparse.Namespace) -> str:
    return "" if settings.where or settings.keys else "give --where, --keys, or both"


SPLIT = PackCommand(
    "split",
    "divide a pack between several new ones",
    "Divide the records of a pack between new ones, in which they keep their order.",
    _add_split,
    _split,
    _check_split,
)
FILTER = operation(
    filter_pack,
    "copy the records that fulfil a condition, or that a list names",
    "Copy the records that fulfil a condition, or that a list names.",
    _check_filter,
    where={"metavar": "CONDITION"},
    keys={
        "type": local_path,
        "metavar": "FILE",
        "help": "a file with a key in each line, or a .lst file with ids",
    },
)
SAMPLE = operation(
    sample,
    "copy some records, drawn by chance",
    "Copy some records, drawn by chance, in their old order.",
    one_of=("n", "fraction"),
    fraction={"metavar": "F"},
)
