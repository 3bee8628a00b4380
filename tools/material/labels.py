"""``recordio join``, ``relabel`` and ``narrow``: packs with other labels."""

from __future__ import annotations

import argparse
import os
from typing import Any

from recordio.errors import RecordIOError
from recordio.limits import bounded_lines
from recordio.operations.join import join
from recordio.operations.relabel import narrow
from recordio.operations.relabel import relabel

from ..console import Interruption
from ..outputs import local_path, path_or_url
from .command import (
    PACK_HELP,
    PackCommand,
    add_output_options,
    add_own,
    add_pack,
    add_prefix,
    given_to,
    natural,
    say_written,
    writing,
)

__all__ = ["JOIN", "NARROW", "RELABEL"]

WORDS = {"keep": "keep", "append": "append", "none": None}


def mapping(text: str) -> dict[float, float]:
    """Read new labels of old ones, ``OLD=NEW,OLD=NEW``, or the lines ``OLD TAB NEW`` of a file."""
    if "=" in text and not os.path.exists(text):
        pairs = [(part.partition("="), f"{part!r} is not OLD=NEW") for part in text.split(",")]
    else:
        pairs = [
            (line.strip().partition("\t"), f"{text}, line {number}: expected OLD, a TAB and NEW")
            for number, line in _lines(text)
        ]
    found: dict[float, float] = {}
    for (old, _, new), wrong in pairs:
        try:
            key, value = float(old), float(new)
        except ValueError:
            raise argparse.ArgumentTypeError(wrong) from None
        if key in found:
            raise argparse.ArgumentTypeError(f"{wrong}: {old} is there twice")
        found[key] = value
    return found


def _lines(path: str) -> list[tuple[int, str]]:
    try:
        with open(local_path(path), encoding="utf-8-sig") as file:
            return [pair for pair in bounded_lines(file, path) if pair[1].strip()]
    except (OSError, UnicodeDecodeError, RecordIOError) as error:
        raise argparse.ArgumentTypeError(
            f"{path}: {getattr(error, 'strerror', None) or error}"
        ) from None


def labels(text: str) -> Any:
    """Read the argument of ``--labels``: a word, or new labels of old ones."""
    return WORDS[text] if text in WORDS else mapping(text)


def _add_join(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packs", metavar="PACK", type=path_or_url, nargs="+", help=PACK_HELP)
    add_prefix(parser)
    parser.add_argument(
        "--labels",
        action="append",
        type=labels,
        metavar="WHAT",
        help="keep; append: after the classes of the packs before; none: -1; OLD=NEW,OLD=NEW, or a "
        "file with lines OLD TAB NEW.  Once for all packs, or once for each (default: keep)",
    )
    parser.add_argument(
        "--classes",
        action="append",
        type=natural,
        metavar="N",
        help="number of classes of the packs, once for all or once for each (default: found from "
        "identities or labels)",
    )
    add_own(parser, join, "packs labels classes")
    add_output_options(parser)


def _check_join(settings: argparse.Namespace) -> str:
    for name in ("labels", "classes"):
        given = getattr(settings, name)
        if given is not None and len(given) not in (1, len(settings.packs)):
            return (
                f"argument --{name}: {len(given)} for {len(settings.packs)} packs: give one for "
                "all, or one for each"
            )
    return ""


def _join(settings: argparse.Namespace, interruption: Interruption) -> int:
    packs = settings.packs
    asked, classes = (
        given * len(packs) if len(given) == 1 else given
        for given in (settings.labels or ["keep"], settings.classes or [None])
    )
    given = given_to(join, settings, "packs labels classes")
    with writing(settings, [settings.prefix], interruption) as options:
        report = join(packs, settings.prefix, asked, classes, **given, **options)
    return say_written(report)


def _add_relabel(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    add_prefix(parser)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--map",
        dest="labels",
        type=mapping,
        metavar="MAP",
        help="what labels become: OLD=NEW,OLD=NEW, or a file with lines OLD TAB NEW",
    )
    what.add_argument(
        "--dense",
        dest="labels",
        action="store_const",
        const="dense",
        help="number the different labels from 0 on",
    )
    what.add_argument(
        "--list",
        dest="labels",
        type=_list_file,
        metavar="FILE",
        help="a .lst file: each record gets the labels of the line with its id",
    )
    what.add_argument("--none", action="store_true", help="no labels: all become -1")
    add_own(parser, relabel, "labels")
    add_output_options(parser)


def _list_file(text: str) -> str:
    if not text.endswith(".lst"):
        raise argparse.ArgumentTypeError(f"{text}: the name of a list ends with .lst")
    return local_path(text)


def _relabel(settings: argparse.Namespace, interruption: Interruption) -> int:
    given = given_to(relabel, settings, "labels")
    with writing(settings, [settings.prefix], interruption) as options:
        report = relabel(settings.pack, settings.prefix, settings.labels, **given, **options)
    return say_written(report)


def _add_narrow(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    add_prefix(parser)
    add_output_options(parser)


def _narrow(settings: argparse.Namespace, interruption: Interruption) -> int:
    with writing(settings, [settings.prefix], interruption) as options:
        report = narrow(settings.pack, settings.prefix, **options)
    return say_written(report)


JOIN = PackCommand(
    "join",
    "put several packs into one",
    "Put several packs into one, one after the other.  Keys are numbered again; ids stay, unless\n"
    "two packs have one in common.  If one of the packs lists identities, the new one does.",
    _add_join,
    _join,
    _check_join,
)
RELABEL = PackCommand(
    "relabel",
    "copy a pack with other labels",
    "Copy a pack with other class labels: the first label of each record, or those of its objects.",
    _add_relabel,
    _relabel,
)
NARROW = PackCommand(
    "narrow",
    "give a pack with headers of 32 bytes the usual ones",
    "Copy a pack whose image headers have 32 bytes, and labels of 64 bits, with the usual headers\n"
    "of 24 bytes and labels of 32 bits.  Keys, ids and contents stay.",
    _add_narrow,
    _narrow,
)
