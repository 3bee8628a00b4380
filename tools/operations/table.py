"""Commands over packs, in the order in which the help shows them."""

from __future__ import annotations

import argparse
import os
from typing import Any

from recordio import check_shards
from recordio.operations.difference import diff
from recordio.operations.division import check_shares, shard, shard_names, split
from recordio.operations.duplicates import Duplicates, dedup
from recordio.operations.join import join
from recordio.operations.near import MOST_DISTANCE
from recordio.operations.order import shuffle, sort
from recordio.operations.output import PackReport
from recordio.operations.relabel import narrow, relabel
from recordio.operations.rewriting import WINDOW
from recordio.operations.selection import filter as filter_pack
from recordio.operations.selection import sample
from recordio.operations.statistics import stats
from recordio.packs.names import pack_prefix

from ..command import ARGUMENTS, Command, natural, positive, show, showing_progress
from ..console import Interruption, say
from ..outputs import check_outputs, local_path
from .arguments import labels, list_file, mapping, output, share
from .command import operation, say_written, show_found

DEFAULT_DISTANCE = 4
MEGABYTE = 1 << 20
#: The window in MiB.
WINDOW_OPTION = {
    "type": lambda text: positive(text) * MEGABYTE,
    "default": str(WINDOW // MEGABYTE),
    "metavar": "MIB",
    "help": """collect this many MiB of records in memory, read in the order of the file: more of
    them save a slow disk seeks (default: %(default)s)""",
}


def _limit(needed: str) -> dict[str, str]:
    return {"help": f"with {needed}: {ARGUMENTS['max_pixels']['help']}"}


# -- join, relabel --------------------------------------------------------------------------------


def _check_join(settings: argparse.Namespace) -> str:
    for name in ("labels", "classes"):
        values = getattr(settings, name)
        if values is not None and len(values) not in (1, len(settings.packs)):
            return (
                f"argument --{name}: {len(values)} for {len(settings.packs)} packs: give one for "
                "all, or one for each"
            )
    return ""


def _one_for_each(settings: argparse.Namespace) -> dict[str, Any]:
    values = {"labels": settings.labels or ["keep"], "classes": settings.classes or [None]}
    count = len(settings.packs)
    return {name: words * (count // len(words)) for name, words in values.items()}


def _add_new_labels(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--map",
        dest="labels",
        type=mapping,
        metavar="MAP",
        help="the new labels: OLD=NEW,OLD=NEW, or a file with lines OLD TAB NEW; OLD is a label "
        "or, unless it is a number, the name of a class",
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
        type=list_file,
        metavar="FILE",
        help="a .lst file; each record gets the labels of the line with its id",
    )
    what.add_argument(
        "--none",
        dest="labels",
        action="store_const",
        const=None,
        help="set all labels to -1",
    )


# -- split, shard ---------------------------------------------------------------------------------


def _check_split(settings: argparse.Namespace) -> str:
    if settings.stratified and settings.by != "fraction":
        return "argument --stratified: it needs --by fraction"
    if settings.by == "list":
        return "argument --seed: --by list leaves nothing to chance" if "seed" in settings else ""
    if len(dict(settings.outputs)) != len(settings.outputs):
        return "an output is given twice"
    try:
        check_shares([share(what) for _, what in settings.outputs])
    except (argparse.ArgumentTypeError, ValueError) as error:
        return str(error)
    return ""


def _outputs_of_split(settings: argparse.Namespace) -> dict[str, Any]:
    read = str if settings.by == "list" else float
    return {"outputs": {prefix: read(what) for prefix, what in settings.outputs}}


def _say_split(report: PackReport, settings: argparse.Namespace) -> int:
    if report.left_out:
        say("recordio", f"note: no list names {report.left_out} records")
    if report.in_several:
        say(
            "recordio",
            f"note: {report.in_several} people have images in more than one of these packs; "
            "--by identity divides people, not images",
        )
    return say_written(report)


def _shards(settings: argparse.Namespace) -> tuple[list[str], str]:
    return shard_names(pack_prefix(settings.path), settings.out, settings.n)


def _shards_written(settings: argparse.Namespace) -> list[str]:
    names, manifest = _shards(settings)
    check_outputs([manifest], settings.force)
    return names


def _say_sharded(report: PackReport, settings: argparse.Namespace) -> int:
    code = say_written(report)
    say("recordio", f"wrote {_shards(settings)[1]}, which lists these files and their checksums")
    return code


def _add_check_shards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "manifest",
        metavar="MANIFEST",
        type=local_path,
        help="the manifest that recordio shard wrote, or its name without .shards.json",
    )
    parser.add_argument(
        "--quick", action="store_true", help="compare only sizes and indexes, not checksums"
    )


def _check_shards(settings: argparse.Namespace, interruption: Interruption) -> int:
    name = os.path.basename(settings.manifest)
    with showing_progress(name, "bytes") as progress:
        path = settings.manifest
        if not os.path.exists(path) and os.path.exists(f"{path}.shards.json"):
            path = f"{path}.shards.json"
        manifest = check_shards(path, not settings.quick, progress=progress)
    print(
        f"{len(manifest.shards)} files, {manifest.records} records, "
        f"{manifest.bytes} bytes: no problems"
    )
    return 0


# -- stats, dedup ---------------------------------------------------------------------------------


def _check_stats(settings: argparse.Namespace) -> str:
    if "max_pixels" in settings and not settings.mean_std:
        return "argument --max-pixels: it needs --mean-std"
    return ""


def _check_dedup(settings: argparse.Namespace) -> str:
    if settings.force and _out_of_dedup(settings) is None:
        return "argument --force: it needs PREFIX"
    if "max_pixels" in settings and settings.near is None:
        return "argument --max-pixels: it needs --near"
    return ""


def _add_out_of_dedup(parser: argparse.ArgumentParser) -> None:
    """Add the prefix of the output, by position as for other commands; it may be left out."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "out",
        metavar="PREFIX",
        nargs="?",
        type=local_path,
        help="write PREFIX.rec and PREFIX.idx without the duplicates; the first record of each "
        "group stays",
    )
    group.add_argument(
        "--remove", metavar="PREFIX", dest="removed", type=local_path, help="the same"
    )


def _out_of_dedup(settings: argparse.Namespace) -> str | None:
    return settings.out or settings.removed


def _show_duplicates(duplicates: Duplicates, settings: argparse.Namespace) -> int:
    if settings.json:
        show(duplicates.as_dict())
    else:
        for line in duplicates.lines():
            show(line)
        say("recordio", str(duplicates))
    return 0 if duplicates.written is None else say_written(duplicates.written)


PACK_COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        operation(
            join,
            "put several packs into one",
            """Join several packs into one, in this order. Keys are numbered anew; ids stay, unless
            two packs have one in common. If one of the packs lists identities, the new pack does
            so as well.""",
            check=_check_join,
            values=_one_for_each,
            packs={**ARGUMENTS["path"], "nargs": "+"},
            labels={
                "action": "append",
                "type": labels,
                "metavar": "WHAT",
                "default": None,
                "help": """keep; append: number the classes after those of the packs before; names:
                give them the labels of the same names in the packs before, and number new names
                behind; none: set all labels to -1; OLD=NEW,OLD=NEW, or a file with lines OLD TAB
                NEW, where OLD is a label or the name of a class. Give it once for all packs, or
                once for each (default: keep)""",
            },
            classes={
                "action": "append",
                "type": natural,
                "help": """number of classes of the packs, once for all or once for each (default:
                found in identities or labels)""",
            },
        ),
        operation(
            split,
            "divide a pack between several new ones",
            "Divide the records of a pack among new packs, in which they keep their order.",
            check=_check_split,
            values=_outputs_of_split,
            writes=lambda settings: [prefix for prefix, _ in settings.outputs],
            report=_say_split,
            outputs={
                "metavar": "PREFIX=SHARE",
                "type": output,
                "nargs": "+",
                "help": "write PREFIX.rec and PREFIX.idx with this share of the records or "
                "classes, 0.8 for instance; PREFIX=FILE with --by list",
            },
            seed={"default": argparse.SUPPRESS},
        ),
        operation(
            relabel,
            "copy a pack with other labels",
            "Copy a pack with other class labels: the first label of each record, or those of its "
            "objects.",
            labels=_add_new_labels,
        ),
        operation(
            narrow,
            "replace headers of 32 bytes in a pack with the usual ones",
            "Copy a pack whose image headers have 32 bytes, and labels of 64 bits, with the usual "
            "headers\nof 24 bytes and labels of 32 bits.  Keys, ids and contents stay.",
            kept=True,
        ),
        operation(
            filter_pack,
            "copy the records that meet a condition, or that a list names",
            "Copy the records that meet a condition, or that a list names.",
            check=lambda settings: (
                "" if settings.where or settings.keys else "give --where, --keys, or both"
            ),
            where={"metavar": "CONDITION"},
            keys={
                "type": local_path,
                "metavar": "FILE",
                "help": "a file with a key in each line, or a .lst file with ids",
            },
        ),
        operation(
            sample,
            "copy some records, drawn at random",
            "Copy some records, drawn at random, in their original order.",
            one_of=("n", "fraction"),
            fraction={"metavar": "F"},
        ),
        operation(
            shuffle,
            "copy a pack in random order",
            "Copy a pack with its records in random order, for readers that can only go forward.",
            window=WINDOW_OPTION,
        ),
        operation(
            sort,
            "copy a pack in the order of labels, keys, ids or sizes",
            """Copy a pack with its records in another order; equal records keep the order of the
            file.""",
            window=WINDOW_OPTION,
        ),
        operation(
            shard,
            "cut a pack into files of about equal size, with a manifest",
            "Cut a pack into files of about equal size.  They appear together, and then a manifest "
            "that\nlists them with their checksums; `recordio check-shards` compares them with it.",
            writes=_shards_written,
            report=_say_sharded,
            out={
                "metavar": "TARGET",
                "help": """a folder, or the start of the file names: data/train makes
                data/train-000000.rec and so on; %%04d stands for the number""",
            },
            n={"help": "how many files"},
        ),
        Command(
            "check-shards",
            "compare the files of a sharded pack with their manifest",
            "Compare the files that `recordio shard` wrote with their manifest.",
            _add_check_shards,
            _check_shards,
        ),
        operation(
            diff,
            "list the records in which two packs differ",
            """Compare two packs by key and by content. The order of the records does not matter.
            The exit code is 0 if the packs are equal, and 1 if not.""",
            writes=None,
            report=show_found,
            json=True,
            a={**ARGUMENTS["path"], "metavar": "A"},
            b={**ARGUMENTS["path"], "metavar": "B"},
        ),
        operation(
            stats,
            "count classes and formats, and measure the pixels",
            """Count records, classes and formats, and measure the pixels. `recordio info`
            describes the file itself, and looks for damage.""",
            check=_check_stats,
            writes=None,
            report=show_found,
            json=True,
            max_pixels=_limit("--mean-std"),
        ),
        operation(
            dedup,
            "list records with the same content, or write the pack without them",
            """List the records that have the same content, whatever their labels are: one line for
            each group, beginning with the key of the record that stays. Nothing is written without
            PREFIX.""",
            check=_check_dedup,
            writes=lambda settings: list(filter(None, [_out_of_dedup(settings)])),
            values=lambda settings: {"out": _out_of_dedup(settings)},
            report=_show_duplicates,
            json=True,
            out=_add_out_of_dedup,
            near={
                "nargs": "?",
                "const": DEFAULT_DISTANCE,
                "metavar": "DISTANCE",
                "help": "find pictures that look the same, too: whose perceptual hashes differ in "
                f"at most so many of 64 bits, 0 to {MOST_DISTANCE} (default: {DEFAULT_DISTANCE})",
            },
            force={"help": "with PREFIX: replace existing files"},
            max_pixels=_limit("--near"),
        ),
    )
}
