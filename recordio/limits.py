"""How large an array may become, compared with the file that it is made of; how long a line.

A plain file of numbers becomes at most a few times as large in memory.  What gzip packed can become
thousands of times as large, and then it is as a rule no data.
"""

from __future__ import annotations

from functools import partial

from recordio.errors import RecordIOError

__all__ = ["EXPANSION", "LONGEST_LINE", "SMALLEST_LIMIT", "bounded_lines", "check_array_bytes"]

#: Without another limit an array may have this many bytes for each byte as it is stored ...
EXPANSION = 64
#: ... or this many in all, if that is more.
SMALLEST_LIMIT = 1 << 28
#: Characters of a line of a list; they are enough for hundreds of thousands of labels.
LONGEST_LINE = 1 << 22


def check_array_bytes(nbytes, stored, limit, kind, path):
    """Refuse an array that is too large.

    Parameters
    ----------
    nbytes : int
        What it takes so far.
    stored : int
        Bytes that were read from storage for it.
    limit : int or None
        `max_array_bytes`; None for the default.
    kind : type
        Of the error.
    path : str
        The file, for the error.

    Examples
    --------
    >>> from recordio.errors import TextFormatError
    >>> check_array_bytes(1 << 28, 1000, None, TextFormatError, "a.csv.gz")
    >>> check_array_bytes(1 << 29, 1000, None, TextFormatError, "a.csv.gz")
    Traceback (most recent call last):
        ...
    recordio.errors.TextFormatError: a.csv.gz: 1000 bytes of the file become 536870912 ...
    """
    allowed = max(SMALLEST_LIMIT, EXPANSION * stored) if limit is None else limit
    if nbytes > allowed:
        raise kind(
            f"{stored} bytes of the file become {nbytes} in memory, more than the limit of "
            f"{allowed}; raise max_array_bytes if that is meant",
            path=path,
        )


def bounded_lines(file, path):
    r"""Number, from 1, and text of each line of a list of files, classes or labels.

    Parameters
    ----------
    file : text file
    path : str or os.PathLike
        For the error.

    Raises
    ------
    RecordIOError
        If a line has `LONGEST_LINE` characters or more: this is no list then.

    Examples
    --------
    >>> import io
    >>> list(bounded_lines(io.StringIO("one\ntwo"), "a.lst"))
    [(1, 'one\n'), (2, 'two')]
    """
    for number, line in enumerate(iter(partial(file.readline, LONGEST_LINE), ""), 1):
        if len(line) == LONGEST_LINE:
            raise RecordIOError(
                f"the line has {LONGEST_LINE} characters or more: this is no list",
                path=path,
                line=number,
            )
        yield number, line
