"""The public names and where they live; `__init__.py` loads them by this list."""
# ruff: noqa: I001 - the order is that in which a newcomer should read

# Records: read, written and indexed by position and key.
from .frames.reader import RecordReader as RecordReader
from .frames.writer import RecordWriter as RecordWriter
from .frames.index_file import build_index as build_index
from .bytes.remote.settings import RemoteSettings as RemoteSettings

# Images of any format as arrays.
from .formats.decode import decode_image as decode_image
from .formats.decode import decode_many as decode_many
from .formats.decode import image_info as image_info
from .formats.encode import encode_image as encode_image
from .formats.decode import ImageInfo as ImageInfo

# What is in a record: the image header, labels and an encoded image.
from .header import IRHeader as IRHeader
from .header import pack as pack
from .header import unpack as unpack
from .packed_images import pack_img as pack_img
from .packed_images import unpack_img as unpack_img
from .boxes import boxes_of as boxes_of

# MXNet's classes over the same files.
from .mxnet import MXIndexedRecordIO as MXIndexedRecordIO
from .mxnet import MXRecordIO as MXRecordIO

# Damage: found, saved from, and noticed by checksums.
from .frames.check import verify as verify
from .frames.check import write_checksums as write_checksums
from .frames.check import Report as Report
from .frames.check import Problem as Problem

# Packs made of packs, compared and counted.
from .operations.join import join as join
from .operations.division import split as split
from .operations.selection import filter as filter
from .operations.order import sort as sort
from .operations.order import shuffle as shuffle
from .operations.selection import sample as sample
from .operations.relabel import relabel as relabel
from .operations.relabel import narrow as narrow
from .operations.repair import repair as repair
from .operations.division import shard as shard
from .operations.duplicates import dedup as dedup
from .operations.difference import diff as diff
from .operations.statistics import stats as stats

# What these functions return, and the files of a sharded pack.
from .operations.output import PackReport as PackReport
from .operations.output import PackWritten as PackWritten
from .operations.difference import Difference as Difference
from .operations.difference import PackDifference as PackDifference
from .operations.duplicates import Duplicates as Duplicates
from .operations.statistics import ClassStatistics as ClassStatistics
from .operations.statistics import PackStatistics as PackStatistics
from .operations.statistics import PixelStatistics as PixelStatistics
from .packs.manifest import Shard as Shard
from .packs.manifest import ShardManifest as ShardManifest
from .packs.manifest import check_shards as check_shards

# Numbers in text and idx files.
from .text.csv import CSVReader as CSVReader
from .text.csv import read_csv as read_csv
from .text.libsvm import read_libsvm as read_libsvm
from .protobuf import read_protobuf as read_protobuf
from .protobuf import write_protobuf as write_protobuf
from .idx_array import read_idx_array as read_idx_array
from .idx_array import write_idx_array as write_idx_array

# Errors about bad files, all of one family.
from .errors import RecordIOError as RecordIOError
from .errors import ArrayFileError as ArrayFileError
from .errors import ProtobufRecordError as ProtobufRecordError
from .errors import CacheFileError as CacheFileError
from .errors import ChecksumError as ChecksumError
from .errors import ChecksumFileError as ChecksumFileError
from .errors import CorruptRecordError as CorruptRecordError
from .errors import EmptyRecordFileError as EmptyRecordFileError
from .errors import ErrorBudgetError as ErrorBudgetError
from .errors import ExpressionError as ExpressionError
from .errors import FieldError as FieldError
from .errors import FileKindError as FileKindError
from .errors import ImageDecodeError as ImageDecodeError
from .errors import ImageSizeError as ImageSizeError
from .errors import ImageFileError as ImageFileError
from .errors import IndexFileError as IndexFileError
from .errors import KeyNotFoundError as KeyNotFoundError
from .errors import LabelError as LabelError
from .errors import ManifestError as ManifestError
from .errors import RecordHeaderError as RecordHeaderError
from .errors import RecordTooLargeError as RecordTooLargeError
from .errors import RemoteChangedError as RemoteChangedError
from .errors import RemoteFileError as RemoteFileError
from .errors import RemoteMissingError as RemoteMissingError
from .errors import TextFormatError as TextFormatError
from .errors import TruncatedArrayError as TruncatedArrayError
from .errors import TruncatedRecordError as TruncatedRecordError
from .errors import VerificationFileError as VerificationFileError

# The rooms.
from . import errors as errors
from . import frames as frames
from . import header as header
from . import idx_array as idx_array
from . import mxnet as mxnet
from . import text as text
