"""``recordio split``, ``filter`` and ``sample``: packs of some of the records of another."""

from __future__ import annotations

import argparse

from recordio.errors import ExpressionError
from recordio.packs.expression import Condition
from recordio.packs.filter import filter as filter_pack
from recordio.packs.sample import sample
from recordio.packs.split import check_shares, split

from ..console import Interruption, say
from ..outputs import local_path
from .command import (
    PackCommand,
    add_output_options,
    add_pack,
    add_prefix,
    add_seed,
    natural,
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
    parser.add_argument(
        "--by",
        choices=["fraction", "class", "list"],
        default="fraction",
        help="fraction: records by chance; class: classes by chance, with all of their records; "
        "list: files with a key in each line, or .lst files with ids (default: fraction)",
    )
    parser.add_argument(
        "--stratified", action="store_true", help="each file gets its share of every class"
    )
    parser.add_argument(
        "--seed", type=natural, metavar="N", help="another division by chance (default: 0)"
    )
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
    with writing(settings, list(outputs), interruption) as options:
        report = split(
            settings.pack,
            outputs,
            settings.seed or 0,
            settings.by,
            stratified=settings.stratified,
            **options,
        )
    if report.left_out:
        say("recordio", f"note: no list names {report.left_out} records")
    return say_written(report)


def _condition(text: str) -> str:
    try:
        Condition(text)
    except ExpressionError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _add_filter(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    add_prefix(parser)
    parser.add_argument(
        "--where",
        type=_condition,
        metavar="CONDITION",
        help="a condition on label, class, labels, objects, width, height, bytes, format, "
        "decodable, id and key: 'label < 10 and width >= 112', \"class == 'cat'\", '3 in labels'",
    )
    parser.add_argument(
        "--keys",
        type=local_path,
        metavar="FILE",
        help="a file with a key in each line, or a .lst file with ids",
    )
    parser.add_argument("--drop", action="store_true", help="keep the other records")
    add_output_options(parser)


def _check_filter(settings: argparse.Namespace) -> str:
    return "" if settings.where or settings.keys else "give --where, --keys, or both"


def _filter(settings: argparse.Namespace, interruption: Interruption) -> int:
    with writing(settings, [settings.prefix], interruption) as options:
        report = filter_pack(
            settings.pack,
            settings.prefix,
            settings.where,
            settings.keys,
            drop=settings.drop,
            **options,
        )
    return say_written(report)


def _add_sample(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    add_prefix(parser)
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("-n", type=natural, metavar="N", help="how many records")
    size.add_argument("--fraction", type=share, metavar="F", help="what share of the records")
    parser.add_argument(
        "--per-class", action="store_true", help="N, or this share, of the records of each class"
    )
    add_seed(parser)
    add_output_options(parser)


def _check_sample(settings: argparse.Namespace) -> str:
    return "argument -n: it must be at least 1" if settings.n == 0 else ""


def _sample(settings: argparse.Namespace, interruption: Interruption) -> int:
    with writing(settings, [settings.prefix], interruption) as options:
        report = sample(
            settings.pack,
            settings.prefix,
            settings.n,
            settings.fraction,
            settings.seed,
            per_class=settings.per_class,
            **options,
        )
    return say_written(report)


SPLIT = PackCommand(
    "split",
    "divide a pack between several new ones",
    "Divide the records of a pack between new ones, in which they keep their order.",
    _add_split,
    _split,
    _check_split,
)
FILTER = PackCommand(
    "filter",
    "copy the records that fulfil a condition, or that a list names",
    "Copy the records that fulfil a condition, or that a list names.",
    _add_filter,
    _filter,
    _check_filter,
)
SAMPLE = PackCommand(
    "sample",
    "copy some records, drawn by chance",
    "Copy some records, drawn by chance, in their old order.",
    _add_sample,
    _sample,
    _check_sample,
)
