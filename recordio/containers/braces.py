"""Braces in names of files, ``{000..009}`` and ``{train,val}``, as WebDataset has them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import RecordIOError

MOST_NAMES = 1 << 20
#: A group without groups in it: ``{000..009}``, ``{0..90..10}`` or ``{train,val}``.
GROUP = re.compile(r"\{(?:(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?|([^{}]*,[^{}]*))\}")
NESTED = re.compile(r"\{[^{}]*\{[^{}]*(,|\.\.)[^{}]*\}[^{}]*\}")


def expand_braces(pattern: str) -> list[str]:
    """Return the names that a pattern stands for, as shells expand it, in order.

    ``{000..009}`` are whole numbers, with as many digits as the longer end if one of them begins
    with 0, and ``{0..90..10}`` every tenth; ``{a,b}`` are texts.  Several groups give every
    combination; groups inside of groups are refused.
    """
    if NESTED.search(pattern):
        raise RecordIOError("braces inside of braces; give several patterns instead", path=pattern)
    names = [pattern]
    while groups := [GROUP.search(name) for name in names]:
        if not any(groups):
            break
        expanded: list[str] = []
        for name, group in zip(names, groups, strict=True):
            if group is None:
                expanded.append(name)
                continue
            for text in _texts(group, pattern):
                expanded.append(f"{name[: group.start()]}{text}{name[group.end() :]}")
                if len(expanded) > MOST_NAMES:
                    raise _too_many(pattern)
        names = expanded
    return names


def _texts(group: re.Match[str], pattern: str) -> Iterator[str]:
    first, last, step, texts = group.groups()
    if texts is not None:
        yield from texts.split(",")
        return
    by = abs(int(step or 1)) or 1
    padded = any(
        len(end.lstrip("-")) > 1 and end.lstrip("-").startswith("0") for end in (first, last)
    )
    width = max(len(first), len(last)) if padded else 0
    start, stop = int(first), int(last)
    if abs(stop - start) // by >= MOST_NAMES:
        raise _too_many(pattern)
    numbers = range(start, stop + 1, by) if start <= stop else range(start, stop - 1, -by)
    yield from (f"{number:0{width}d}" for number in numbers)


def _too_many(pattern: str) -> RecordIOError:
    return RecordIOError(f"it stands for more than {MOST_NAMES} names", path=pattern)
