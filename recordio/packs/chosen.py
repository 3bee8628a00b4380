"""Records that a text file names: by key, one in a line, or by id, as a ``.lst`` file does."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator

import numpy as np

from ..errors import KeyNotFoundError, RecordIOError
from ..list_files import entry_lines, is_list, open_list, read_entries
from .scanned_pack import ScannedPack

LARGEST_KEY = 2**63 - 1  # an index ends here


def chosen_records(pack: ScannedPack, keys: str | os.PathLike[str] | Iterable[int]) -> np.ndarray:
    """Find the rows of the records that keys or a list name, ascending, each once: int64.

    Keys are those of the index, or a text file with one in each line; the lines of a ``.lst`` file
    begin with ids.  Where several records have a key or an id, all of them are meant.
    """
    path = lines = None
    what, rows, names = "key", np.arange(len(pack)), pack.keys
    if is_list(keys):  # records without header have no id
        what, rows = "id", np.flatnonzero(pack.headed)
        names = pack.ids[rows]
    if isinstance(keys, (str, os.PathLike)):
        path = os.fsdecode(keys)
        lines, numbers = np.array(list(_numbers(path)), names.dtype).reshape(-1, 2).T
    else:
        numbers = _as_keys(keys)
    if len(unknown := np.flatnonzero(~np.isin(numbers, names))):
        row = int(unknown[0])
        raise KeyNotFoundError(
            f"no record of {pack.path} has the {what} {numbers[row]}",
            path=path,
            line=None if lines is None else int(lines[row]),
        )
    return rows[np.isin(names, numbers)]


def _as_keys(keys: Iterable[int]) -> np.ndarray:
    numbers = [operator.index(key) for key in keys]
    if numbers and max(map(abs, numbers)) > LARGEST_KEY:
        raise KeyNotFoundError("a key has more than 64 bits")
    return np.array(numbers, np.int64)


def _numbers(path: str) -> Iterator[tuple[int, int]]:
    """Numbers of lines and the key or id in each."""
    if is_list(path):
        for line, entry in read_entries(path):
            yield line, entry.id
        return
    with open_list(path) as file:
        for line, text in entry_lines(file, path):
            try:
                key = int(text)
            except ValueError:
                key = LARGEST_KEY + 1
            if abs(key) > LARGEST_KEY:
                raise RecordIOError(f"{text.strip()!r:.60} is no key", path=path, line=line)
            yield line, key
