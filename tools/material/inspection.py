"""``recordio diff``, ``stats`` and ``dedup``: contents of packs, and duplicates among them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from recordio.formats.image_size import DEFAULT_MAX_PIXELS
from recordio.operations.difference import diff
from recordio.operations.duplicates import dedup
from recordio.operations.near import MOST_DISTANCE
from recordio.operations.statistics import stats

from ..console import Interruption, printable, say
from ..outputs import local_path, path_or_url
from .command import (
    PACK_HELP,
    PackCommand,
    add_pack,
    add_skip_errors,
    natural,
    positive,
    say_written,
    showing_progress,
    writing,
)

__all__ = ["DEDUP", "DIFF", "STATS"]

DEFAULT_DISTANCE = 4


def _print(text: str) -> None:
    print(printable(text, sys.stdout))


def _print_json(words: dict[str, Any]) -> None:
    print(json.dumps(words, indent=2))


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="number of threads (default: all cores)"
    )


def _add_max_pixels(parser: argparse.ArgumentParser, needs: str) -> None:
    parser.add_argument(
        "--max-pixels",
        type=positive,
        metavar="N",
        help=f"with {needs}: do not decode images with more pixels (default: 2**26)",
    )


def _add_diff(parser: argparse.ArgumentParser) -> None:
    for name in "ab":
        parser.add_argument(name, metavar=name.upper(), type=path_or_url, help=PACK_HELP)
    parser.add_argument(
        "--examples",
        type=natural,
        default=10,
        metavar="N",
        help="name so many records of each kind of difference (default: 10)",
    )
    _add_json(parser)
    _add_threads(parser)


def _diff(settings: argparse.Namespace, interruption: Interruption) -> int:
    with showing_progress("comparing") as progress:
        found = diff(
            settings.a,
            settings.b,
            examples=settings.examples,
            threads=settings.threads,
            progress=progress,
        )
    if settings.json:
        _print_json(found.as_dict())
    else:
        _print(str(found))
    return int(not found.equal)


def _add_stats(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    parser.add_argument(
        "--mean-std",
        action="store_true",
        help="decode every image, for mean and standard deviation of each channel",
    )
    _add_json(parser)
    add_skip_errors(parser)
    _add_max_pixels(parser, "--mean-std")
    _add_threads(parser)


def _check_stats(settings: argparse.Namespace) -> str:
    if settings.max_pixels is not None and not settings.mean_std:
        return "argument --max-pixels: it needs --mean-std"
    return ""


def _stats(settings: argparse.Namespace, interruption: Interruption) -> int:
    with showing_progress(os.path.basename(settings.pack)) as progress:
        found = stats(
            settings.pack,
            settings.mean_std,
            skip_errors=settings.skip_errors,
            max_pixels=settings.max_pixels or DEFAULT_MAX_PIXELS,
            threads=settings.threads,
            progress=progress,
        )
    if settings.json:
        _print_json(found.as_dict())
    else:
        _print(str(found))
    return 0


def _distance(text: str) -> int:
    number = natural(text)
    if number > MOST_DISTANCE:
        raise argparse.ArgumentTypeError(f"{text} bits are more than {MOST_DISTANCE}")
    return number


def _add_dedup(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    parser.add_argument(
        "--near",
        type=_distance,
        nargs="?",
        const=DEFAULT_DISTANCE,
        metavar="DISTANCE",
        help="find pictures that look the same, too: whose perceptual hashes differ in at most so "
        f"many of 64 bits, 0 to {MOST_DISTANCE} (default: {DEFAULT_DISTANCE})",
    )
    parser.add_argument(
        "--remove",
        metavar="PREFIX",
        type=local_path,
        help="write PREFIX.rec and PREFIX.idx without them; of each group the first in the file "
        "stays",
    )
    _add_json(parser)
    parser.add_argument(
        "--force", action="store_true", help="with --remove: replace existing files"
    )
    add_skip_errors(parser)
    _add_max_pixels(parser, "--near")
    _add_threads(parser)


def _check_dedup(settings: argparse.Namespace) -> str:
    if settings.force and settings.remove is None:
        return "argument --force: it needs --remove"
    if settings.max_pixels is not None and settings.near is None:
        return "argument --max-pixels: it needs --near"
    return ""


def _dedup(settings: argparse.Namespace, interruption: Interruption) -> int:
    targets = [] if settings.remove is None else [settings.remove]
    with writing(settings, targets, interruption) as options:
        found = dedup(
            settings.pack,
            settings.remove,
            settings.near,
            max_pixels=settings.max_pixels or DEFAULT_MAX_PIXELS,
            threads=settings.threads,
            **options,
        )
    if settings.json:
        _print_json(found.as_dict())
    else:
        for line in found.lines():
            _print(line)
        say("recordio", str(found))
    return 0 if found.written is None else say_written(found.written)


DIFF = PackCommand(
    "diff",
    "tell in which records two packs differ",
    "Compare two packs by key and by content.  The order of the records does not matter.\n"
    "The exit code is 0 if they hold the same, and 1 if not.",
    _add_diff,
    _diff,
)
STATS = PackCommand(
    "stats",
    "count classes and formats, and measure the pixels",
    "Count records, classes and formats, and measure the pixels.  What the file itself is like,\n"
    "and whether it is damaged, is told by `recordio info`.",
    _add_stats,
    _stats,
    _check_stats,
)
DEDUP = PackCommand(
    "dedup",
    "list records with the same content, or write the pack without them",
    "List the records that hold the same content, whatever their labels are: one line for each\n"
    "group, first the key of the record that stays.  Nothing is removed without --remove.",
    _add_dedup,
    _dedup,
    _check_dedup,
)
