"""Files to records: MXNet record files and their indexes, image headers, and text data.

This package imports nothing of `iterators`; it can be used on its own.
"""

from importlib.util import find_spec

if find_spec("recordio.frames.frame") is None:
    raise ImportError(
        f"{__path__[0]} holds the sources of this package, and nothing there is compiled. Python"
        " looks into the current folder first: to use the package that is installed, start Python"
        " in another folder; to use these sources, run `pip install --editable .` in theirs"
    )

from recordio.errors import (
    ArrayFileError,
    CacheFileError,
    ChecksumError,
    ChecksumFileError,
    CorruptRecordError,
    EmptyRecordFileError,
    ErrorBudgetError,
    ImageDecodeError,
    ImageFileError,
    IndexFileError,
    KeyNotFoundError,
    LabelError,
    RecordHeaderError,
    RecordIOError,
    RecordTooLargeError,
    TextFormatError,
    TruncatedArrayError,
    TruncatedRecordError,
)
from recordio.frames.check import Problem, Report, repair, verify, write_checksums
from recordio.frames.index_file import build_index
from recordio.frames.reader import RecordReader
from recordio.frames.writer import RecordWriter
from recordio.header import IRHeader, pack, pack_img, unpack, unpack_img
from recordio.idx_array import read_idx_array, write_idx_array
from recordio.mxnet import MXIndexedRecordIO, MXRecordIO
from recordio.text.csv import CSVReader, read_csv
from recordio.text.libsvm import read_libsvm

__all__ = [
    "ArrayFileError",
    "CSVReader",
    "CacheFileError",
    "ChecksumError",
    "ChecksumFileError",
    "CorruptRecordError",
    "EmptyRecordFileError",
    "ErrorBudgetError",
    "IRHeader",
    "ImageDecodeError",
    "ImageFileError",
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
    "TextFormatError",
    "TruncatedArrayError",
    "TruncatedRecordError",
    "build_index",
    "pack",
    "pack_img",
    "read_csv",
    "read_idx_array",
    "read_libsvm",
    "repair",
    "unpack",
    "unpack_img",
    "verify",
    "write_checksums",
    "write_idx_array",
]
