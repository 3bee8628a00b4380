"""Files to records: MXNet record files and their indexes, image headers, and text data.

This package imports nothing of `iterators`; it can be used on its own.
"""

from recordio.check import Problem, Report, repair, verify
from recordio.errors import (
    CorruptRecordError,
    ErrorBudgetError,
    ImageDecodeError,
    IndexFileError,
    KeyNotFoundError,
    LabelError,
    RecordHeaderError,
    RecordIOError,
    RecordTooLargeError,
    TruncatedRecordError,
)
from recordio.header import IRHeader, pack, pack_img, unpack, unpack_img
from recordio.index import build_index
from recordio.mxnet import MXIndexedRecordIO, MXRecordIO
from recordio.reader import RecordReader
from recordio.writer import RecordWriter

__all__ = [
    "CorruptRecordError",
    "ErrorBudgetError",
    "IRHeader",
    "ImageDecodeError",
    "IndexFileError",
    "KeyNotFoundError",
    "LabelError",
    "MXIndexedRecordIO",
    "MXRecordIO",
    "Problem",
    "RecordHeaderError",
    "RecordIOError",
    "RecordReader",
    "RecordTooLargeError",
    "RecordWriter",
    "Report",
    "TruncatedRecordError",
    "build_index",
    "pack",
    "pack_img",
    "repair",
    "unpack",
    "unpack_img",
    "verify",
]
