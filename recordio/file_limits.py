"""Limits: bytes of an array beside those of its file, and characters of a line.

A plain file of numbers becomes at most a few times as large in memory.  A gzip file can become
thousands of times as large, and then it is as a rule no data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import TextIO

from recordio.encodings import not_utf8, wrong_encoding
from recordio.errors import RecordIOError

#: Without another limit an array may have this many bytes for each byte as it is stored ...
EXPANSION = 64
#: ... or this many in all, if that is more.
SMALLEST_LIMIT = 1 << 28
#: Characters of a line of a list; they are enough for hundreds of thousands of labels.
LONGEST_LINE = 1 << 22


def check_array_bytes(
    nbytes: int, stored: int, limit: int | None, kind: type[RecordIOError], path: str
) -> None:
    """Refuse an array of more bytes than `stored` bytes of a file may become.

    `limit` is `max_array_bytes`, None for the default; `kind` is the type of the error.
    """
    allowed = max(SMALLEST_LIMIT, EXPANSION * stored) if limit is None else limit
    if nbytes > allowed:
        raise kind(
            f"{stored} bytes of the file become {nbytes} in memory, more than the limit of "
            f"{allowed}; raise max_array_bytes to allow it",
            path=path,
        )


def bounded_lines(file: TextIO, path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield number, from 1, and text of each line of a list of files, classes or labels.

    A line of `LONGEST_LINE` characters or more is an error: such a file is no list.  So is text
    that is not UTF-8, if the file is opened for nothing else or its letters have two bytes.
    """
    lines = enumerate(iter(partial(file.readline, LONGEST_LINE), ""), 1)
    number = 0
    while True:
        try:
            number, line = next(lines)
        except StopIteration:
            return
        except UnicodeDecodeError as error:
            raise RecordIOError(not_utf8(error.object[error.start :][:64]), path=path) from None
        if number == 1 and (guess := wrong_encoding(line[:512].encode("utf-8", "surrogateescape"))):
            raise RecordIOError(f"this looks like {guess[0]}; {guess[1]}", path=path, line=1)
        if len(line) == LONGEST_LINE:
            raise RecordIOError(
                f"the line has {LONGEST_LINE} characters or more: this is no list",
                path=path,
                line=number,
            )
        yield number, line
