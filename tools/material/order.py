"""``recordio shuffle``, ``sort`` and ``shard``: the records of a pack in another order or place."""

from __future__ import annotations

import argparse
import os

from recordio.operations.rewriting import WINDOW
from recordio.operations.shard import shard, shard_names
from recordio.operations.shuffle import shuffle
from recordio.operations.sort import sort
from recordio.packs.manifest import check_shards
from recordio.packs.names import pack_prefix

from ..console import Interruption, say
from ..outputs import check_outputs, local_path
from .command import (
    PackCommand,
    add_output_options,
    add_own,
    add_pack,
    given_to,
    operation,
    positive,
    say_written,
    showing_progress,
    writing,
)

__all__ = ["CHECK_SHARDS", "SHARD", "SHUFFLE", "SORT"]

MEGABYTE = 1 << 20


def _mebibytes(text: str) -> int:
    return positive(text) * MEGABYTE


#: The window in MiB.
WINDOW_OPTION = {
    "type": _mebibytes,
    "default": str(WINDOW // MEGABYTE),
    "metavar": "MIB",
    "help": "put so many MiB together in memory, reading them in the order of the file: more spare "
    "a slow disk seeks (default: %(default)s)",
}


def _add_shard(parser: argparse.ArgumentParser) -> None:
    add_pack(parser)
    parser.add_argument(
        "target",
        metavar="TARGET",
        type=local_path,
        help="a folder, or what the files are called: data/train makes data/train-000000.rec and "
        "so on; %%04d in it says where the number stands",
    )
    parser.add_argument("n", metavar="N", type=positive, help="how many files")
    add_own(parser, shard, "n")
    add_output_options(parser)


def _shard(settings: argparse.Namespace, interruption: Interruption) -> int:
    names, manifest = shard_names(pack_prefix(settings.pack), settings.target, settings.n)
    check_outputs([manifest], settings.force)
    with writing(settings, names, interruption) as options:
        given = given_to(shard, settings, "n")
        report = shard(settings.pack, settings.target, settings.n, **given, **options)
    code = say_written(report)
    say("recordio", f"wrote {manifest}, which lists these files and their checksums")
    return code


def _add_check_shards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifest", metavar="MANIFEST", type=local_path, help="what recordio shard wrote"
    )
    parser.add_argument(
        "--quick", action="store_true", help="compare sizes and indexes only, and no checksums"
    )


def _check_shards(settings: argparse.Namespace, interruption: Interruption) -> int:
    name = os.path.basename(settings.manifest)
    with showing_progress(name, "bytes") as progress:
        found = check_shards(settings.manifest, not settings.quick, progress=progress)
    print(f"{len(found.shards)} files, {found.records} records, {found.bytes} bytes: no problems")
    return 0


SHUFFLE = operation(
    shuffle,
    "copy a pack in random order",
    "Copy a pack with its records in random order, for readers that can only go forward.",
    window=WINDOW_OPTION,
)
SORT = operation(
    sort,
    "copy a pack in the order of labels, keys, ids or sizes",
    "Copy a pack with its records in another order; equal ones stay in the order of the file.",
    window=WINDOW_OPTION,
)
SHARD = PackCommand(
    "shard",
    "cut a pack into files of about equal size, with a manifest",
    "Cut a pack into files of about equal size.  They appear together, and then a manifest that\n"
    "lists them with their checksums; `recordio check-shards` compares them with it.",
    _add_shard,
    _shard,
)
CHECK_SHARDS = PackCommand(
    "check-shards",
    "compare the files that shard wrote with their manifest",
    "Compare the files that `recordio shard` wrote with their manifest.",
    _add_check_shards,
    _check_shards,
)
