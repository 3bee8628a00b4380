"""Commands over packs, in the order in which the help shows them."""

from __future__ import annotations

from .choice import FILTER, SAMPLE, SPLIT
from .command import PackCommand
from .inspection import DEDUP, DIFF, STATS
from .labels import JOIN, NARROW, RELABEL
from .order import CHECK_SHARDS, SHARD, SHUFFLE, SORT

__all__ = ["PACK_COMMANDS"]

PACK_COMMANDS: dict[str, PackCommand] = {
    command.name: command
    for command in (
        *(JOIN, SPLIT, RELABEL, NARROW, FILTER, SAMPLE),
        *(SHUFFLE, SORT, SHARD, CHECK_SHARDS),
        *(DIFF, STATS, DEDUP),
    )
}
