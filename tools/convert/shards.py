"""Many files of one pack: their names, and the records of each.

Nothing is opened here, and nothing is written.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import ClassVar

import numpy as np

from recordio import RecordReader
from recordio.containers.braces import expand_braces
from recordio.errors import RecordIOError
from recordio.keywords.checks import integer
from recordio.keywords.options import Options, Rule, option, optional, refuse_ineffective
from recordio.operations.division import number_template

from ..command import add_option


@dataclass(frozen=True, kw_only=True)
class ShardOptions(Options):
    """Options of exports that write files."""

    shard_records: int | None = option(
        None,
        "int, optional",
        """Write files of N records each, named after TARGET with a number of six digits: out.tar
        becomes out-000000.tar, out-000001.tar, ...; %04d in TARGET says where the number stands.  A
        TARGET with braces, such as out-{00..15}.tar, names the files instead, which get equal
        shares.""",
        optional(partial(integer, low=1)),
    )
    shard_bytes: int | None = option(
        None,
        "int, optional",
        "The same with as many records as have up to N bytes together, and at least one.",
        optional(partial(integer, low=1)),
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "shard_bytes",
            lambda v: v.shard_records is not None,
            "says in bytes what `shard_records` says in records: give one of both",
            refused=True,
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_ineffective(self)


def add_shard_options(parser: argparse._ActionsContainer) -> None:
    """Add the options of exports that write files."""
    sizes = parser.add_mutually_exclusive_group()
    for item in fields(ShardOptions):
        add_option(sizes, item)


def plan_shards(
    target: str,
    reader: RecordReader,
    positions: Sequence[int] | np.ndarray,
    records: int | None,
    size: int | None,
) -> list[tuple[str, np.ndarray]] | None:
    """Return target and positions of each shard of an export; None if there is to be one file.

    A shard has a number of `records`, or as many as have `size` bytes.
    """
    every = np.asarray(positions, np.int64)
    names = expand_braces(target)
    if len(names) > 1:
        if records is not None or size is not None:
            raise RecordIOError(
                "its braces name the files; leave out --shard-records and --shard-bytes",
                path=target,
            )
        if len(set(names)) < len(names) or len(set(map(os.path.dirname, names))) > 1:
            raise RecordIOError("its braces must give different names in one folder", path=target)
        if len(names) > len(every):
            raise RecordIOError(
                f"it names {len(names)} files, and there are {len(every)} records", path=target
            )
        return list(zip(names, np.array_split(every, len(names)), strict=True))
    if records is not None:
        cuts = np.arange(records, len(every), records)
    elif size is not None:
        cuts = _cuts_by_size((len(reader[int(position)]) for position in every), size)
    else:
        return None
    before, digits, after = number_template(target)
    return [
        (f"{before}{number:0{digits}d}{after}", part)
        for number, part in enumerate(np.split(every, cuts))
    ]


def _cuts_by_size(sizes: Iterator[int], most: int) -> np.ndarray:
    cuts, held = [], 0
    for number, size in enumerate(sizes):
        if held and held + size > most:
            cuts.append(number)
            held = 0
        held += size
    return np.array(cuts, np.int64)


def older_shards(target: str, written: Sequence[str]) -> list[str]:
    """Return files that a reader of all numbered shards would find besides those of this run."""
    before, _, after = number_template(target)
    folder, start = os.path.split(before)
    pattern = re.compile(rf"{re.escape(start)}\d+{re.escape(after)}")
    if not os.path.isdir(folder or "."):
        return []
    kept = {os.path.basename(path) for path in written}
    names = (name for name in os.listdir(folder or ".") if pattern.fullmatch(name))
    return sorted(os.path.join(folder, name) for name in names if name not in kept)
