"""The one family of errors raised for bad files, each naming the location and what to do.

Every class is a `RecordIOError`, hence a `ValueError`; some are also the builtin that a caller
would expect (`EOFError` for a file that ends too early, `KeyError` for an unknown key).
"""

from __future__ import annotations

import os
import struct
from typing import Any, Self


class RecordIOError(ValueError):
    """A record file, or something stored in one, cannot be used.

    Parameters
    ----------
    reason : str
        What is wrong and what to do about it, without the location.
    path : str or os.PathLike, optional
        The file.
    offset : int, optional
        Byte offset in the file at which the damage was noticed.
    line : int, optional
        Line of a text file, counted from 1.
    column : int, optional
        Field of that line, counted from 1.
    record : int, optional
        Number of the record in the file, from 0; `Problem.record` explains how damage counts.
    record_id : int, optional
        The ``id`` in the header of an image record.

    Attributes
    ----------
    reason, path, offset, line, column, record, record_id
        As given; None where the location is not known.

    Examples
    --------
    >>> raise RecordIOError("the file ends inside a record", path="a.rec", offset=8, record=1)
    Traceback (most recent call last):
        ...
    recordio.errors.RecordIOError: a.rec, offset 8, record 1: the file ends inside a record
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | os.PathLike[str] | None = None,
        offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
        record: int | None = None,
        record_id: int | None = None,
    ) -> None:
        self.reason: str = reason
        self.path: str | None = None if path is None else os.fspath(path)
        self.offset: int | None = offset
        self.line: int | None = line
        self.column: int | None = column
        self.record: int | None = record
        self.record_id: int | None = record_id
        super().__init__(self._text())

    def _text(self) -> str:
        location = [] if self.path is None else [self.path]
        for name, value in (
            ("offset", self.offset),
            ("line", self.line),
            ("column", self.column),
            ("record", self.record),
            ("id", self.record_id),
        ):
            if value is not None:
                location.append(f"{name} {value}")
        return f"{', '.join(location)}: {self.reason}" if location else self.reason

    def at(self, **location: Any) -> Self:
        """Return the same error with more of its location.

        Parameters
        ----------
        **location
            `path`, `offset` and the other keywords of the class; they replace those of the error.

        Returns
        -------
        RecordIOError
            Of the same class, with the same reason.

        Examples
        --------
        >>> str(RecordIOError("the record is too short").at(path="a.rec", record=3))
        'a.rec, record 3: the record is too short'
        """
        return type(self)(self.reason, **{**self._location(), **location})

    def _location(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "offset": self.offset,
            "line": self.line,
            "column": self.column,
            "record": self.record,
            "record_id": self.record_id,
        }

    def __str__(self) -> str:  # KeyError would print the repr of its argument
        return self._text()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.reason, self._location())


def _rebuild(kind: type[RecordIOError], reason: str, location: dict[str, Any]) -> RecordIOError:
    return kind(reason, **location)


class TruncatedRecordError(RecordIOError, EOFError):
    """The file ends inside a record."""


class CorruptRecordError(RecordIOError):
    """A record head is missing at its position, or the parts of a record do not fit together."""


class ChecksumError(CorruptRecordError):
    """The bytes of a record do not match its checksum."""


class ChecksumFileError(RecordIOError):
    """A ``.crc`` file is missing or damaged, or does not belong to its record file."""


class EmptyRecordFileError(RecordIOError):
    """A file has no record where at least one is needed, although it is not damaged."""


class RecordTooLargeError(RecordIOError):
    """A record has 2**29 bytes or more, which the format cannot hold."""


class RecordHeaderError(RecordIOError, struct.error):
    """A record is too short for the image header or for the labels its header announces."""


class LabelError(RecordIOError):
    """Labels do not fit the given label width, or a line of a list cannot be read."""


class ImageDecodeError(RecordIOError):
    """The image in a record cannot be decoded, is truncated, or exceeds a limit."""


class ImageSizeError(RecordIOError):
    """An image has sides that a processor of a model makes nothing of."""


class ImageFileError(RecordIOError, OSError):
    """An image file of a list cannot be opened or read."""


class CacheFileError(RecordIOError):
    """A file of cached images cannot be made, or belongs to other data or other settings."""


class ErrorBudgetError(RecordIOError):
    """More records had to be skipped than the error budget allows."""


class FileKindError(RecordIOError):
    """A file is of another kind than the one that is read: the message says what it looks like."""


class ExpressionError(RecordIOError):
    """A condition on records cannot be parsed; `column` is the position in its text."""


class ManifestError(RecordIOError):
    """A manifest of shards cannot be read, or does not match its files."""


class FieldError(RecordIOError):
    """A pack lacks a field, or the field lacks a record of a sample, or is of another pack."""


class IndexFileError(RecordIOError):
    """An ``.idx`` file cannot be parsed or does not belong to its record file."""


class KeyNotFoundError(RecordIOError, KeyError):
    """The index does not list a key."""


class RemoteFileError(RecordIOError, OSError):
    """A file on a server cannot be read or written: the message names URL, range and cause."""


class RemoteMissingError(RemoteFileError, FileNotFoundError):
    """A server has no such file."""


class RemoteChangedError(RemoteFileError):
    """A file on a server was replaced after it was opened."""


class TextFormatError(RecordIOError):
    """A line of a CSV or LibSVM file is invalid."""


class ProtobufRecordError(RecordIOError):
    """A record of SageMaker's protobuf format cannot be read, or does not fit those before it."""


class ArrayFileError(RecordIOError):
    """A file is no idx array (the format of MNIST), or its header and its size disagree."""


class TruncatedArrayError(ArrayFileError, EOFError):
    """An idx array file ends before all elements that its header announces."""


class VerificationFileError(RecordIOError):
    """A verification set of face recognition is damaged, or would have to be run to be read."""
