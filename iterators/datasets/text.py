"""Lines of text files, found once and decoded when they are read.

The files are mapped, so that any number of threads and processes may read them.  Nothing is parsed:
`recordio.read_csv` and its kin do that.
"""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.bytes.mapping import LOST, is_lost, part_of
from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import TextFormatError

from .dataset_base import DatasetMixin

#: Families of encodings in which the bytes of ``\n`` and ``\r`` mean nothing else.
PLAIN_ENCODINGS = ("ascii", "utf-8", "iso8859", "cp125", "koi8")
#: Ways to handle undecodable bytes that never make a line of text disappear.
PLAIN_ERRORS = ("strict", "replace", "backslashreplace", "surrogateescape")
CHUNK = 1 << 24
LF, CR = 10, 13
NEWLINES = (None, "", "\n", "\r", "\r\n")


class TextDataset(DatasetMixin):
    r"""The lines of text files; tuples of lines for several files.

    Parameters
    ----------
    paths : path or list of path
        Files with the same number of lines.
    encoding, errors, newline : str or list of str, optional
        As for `open`; a list has one for each file.
    filter_func : callable, optional
        Takes the lines at one position, one argument for each file, and returns whether to keep
        that position.
    **remote
        Keywords of `recordio.RemoteSettings`, for URLs.

    Raises
    ------
    ValueError
        If there is no file, a list has the wrong length, the numbers of lines differ, or the
        dataset was closed.
    UnicodeDecodeError
        When a line that cannot be decoded is read.
    TextFormatError
        When a line is read that is no longer there, because its file became shorter.

    Notes
    -----
    A line keeps its terminator.  Indices below 0 are out of range (rule of Chainer); slices may
    have negative bounds.  Eight bytes of memory are kept for a line.  For UTF-16 and other
    encodings in which lines cannot be found without decoding, and with ``errors="ignore"``, the
    whole text is kept.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "words.txt")
    >>> _ = path.write_text("one\ntwo\nthree\n")
    >>> lines = TextDataset(path, filter_func=lambda line: line.startswith("t"))
    >>> len(lines), lines[0], lines[-1:]
    (2, 'two\n', ['three\n'])
    """

    def __init__(
        self,
        paths: Any,
        encoding: Any = None,
        errors: Any = None,
        newline: Any = None,
        filter_func: Callable[..., bool] | None = None,
        **remote: Any,
    ) -> None:
        settings = RemoteSettings(**remote)
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        elif not paths:
            raise ValueError("a TextDataset needs at least one file")
        options = [
            _for_each(name, value, len(paths))
            for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline))
        ]
        self._files = [
            _LinesOfFile(path, settings, *own) for path, *own in zip(paths, *options, strict=True)
        ]
        counts = [len(file) for file in self._files]
        if len(set(counts)) > 1:
            listing = ", ".join(
                f"{file.path} {count}" for file, count in zip(self._files, counts, strict=True)
            )
            raise ValueError(f"the files differ in their number of lines: {listing}")
        self._lines: range | np.ndarray = range(counts[0])
        if filter_func is not None:
            kept = [i for i in self._lines if filter_func(*(file[i] for file in self._files))]
            self._lines = np.array(kept, np.int64)

    def __len__(self) -> int:
        return len(self._lines)

    def get_example(self, i: Any) -> str | tuple[str, ...]:
        """Return the line, or the tuple of lines, at a position."""
        if not 0 <= i < len(self._lines):
            raise IndexError(f"index {i} is out of range for {len(self._lines)} lines")
        line = self._lines[i]
        if len(self._files) == 1:
            return self._files[0][line]
        return tuple(file[line] for file in self._files)

    def close(self) -> None:
        """Close the files; from then on, reading raises a ValueError."""
        for file in self._files:
            file.close()


class _LinesOfFile:
    """The lines of one mapped file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: RemoteSettings,
        encoding: str | None,
        errors: str | None,
        newline: str | None,
    ) -> None:
        if newline not in NEWLINES:
            raise ValueError(f"newline={newline!r}: expected one of {NEWLINES}")
        self.path = os.fspath(path)
        self.encoding = _codec(encoding)
        self.errors = errors or "strict"
        codecs.lookup_error(self.errors)
        self.newline = newline
        self._settings = settings
        self._view: memoryview | None = StoredFile(self.path).map(settings)
        if (
            self.encoding.startswith(PLAIN_ENCODINGS)
            and self.encoding != "utf-8-sig"
            and self.errors in PLAIN_ERRORS
        ):
            self._text: list[str] | None = None
            self._ends = _line_ends(self._view, newline)
        else:
            # No line of such an encoding can be found or decoded without those before it.
            whole = io.TextIOWrapper(io.BytesIO(self._view), self.encoding, self.errors, newline)
            self._text = list(whole)
            self._ends = np.empty(len(self._text), np.int64)
        if is_lost(self._view):
            raise TextFormatError(LOST, path=self.path)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, line: Any) -> str:
        view = self._view
        if view is None:
            raise ValueError(f"the dataset over {self.path} is closed")
        if self._text is not None:
            return self._text[line]
        start = int(self._ends[line - 1]) if line else 0
        raw_line = part_of(view, start, int(self._ends[line]))
        text = str(raw_line, self.encoding, self.errors)
        if is_lost(raw_line):
            raise TextFormatError(LOST, path=self.path, line=int(line) + 1)
        if self.newline is None and text.endswith("\r\n"):
            return text[:-2] + "\n"
        if self.newline is None and text.endswith("\r"):
            return text[:-1] + "\n"
        return text

    def close(self) -> None:
        self._view = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_view": self._view is not None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._view = StoredFile(self.path).map(self._settings) if state["_view"] else None


def _codec(encoding: str | None) -> str:
    if encoding is None:
        import locale

        encoding = locale.getpreferredencoding(False)
    return codecs.lookup(encoding).name


def _for_each(name: str, value: Any, count: int) -> Sequence[Any]:
    if value is None or isinstance(value, str):
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} entries for {count} files")
    return value


def _line_ends(view: memoryview, newline: str | None) -> np.ndarray:
    """Return offsets behind the terminators of all lines, and of the end if it has none."""
    data = np.frombuffer(view, np.uint8)
    pieces = [np.empty(0, np.int64)]
    for start in range(0, len(data), CHUNK):
        stop = min(start + CHUNK, len(data))
        here = data[start:stop]
        ends = here == (CR if newline == "\r" else LF)
        if newline == "\r\n":
            before = np.empty_like(ends)
            before[0] = start > 0 and data[start - 1] == CR
            before[1:] = here[:-1] == CR
            ends &= before
        elif newline in (None, ""):
            alone = here == CR
            alone[:-1] &= here[1:] != LF
            alone[-1] &= stop == len(data) or data[stop] != LF
            ends |= alone
        pieces.append(np.flatnonzero(ends) + (start + 1))
    all_ends = np.concatenate(pieces)
    if len(data) and (not len(all_ends) or all_ends[-1] < len(data)):
        all_ends = np.append(all_ends, len(data))
    return all_ends
