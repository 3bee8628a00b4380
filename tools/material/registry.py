"""The commands over packs, in the order in which the help shows them."""

from __future__ import annotations

from .choice import FILTER, SAMPLE, SPLIT
from .command import PackCommand
from .labels import JOIN, RELABEL

__all__ = ["PACK_COMMANDS"]

PACK_COMMANDS: dict[str, PackCommand] = {
    command.name: command for command in (JOIN, SPLIT, RELABEL, FILTER, SAMPLE)
}
