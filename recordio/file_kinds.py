"""The kind of a file that a reader does not expect, found from its first bytes and its name.

`refuse_other_files` tells where a record file is wanted and another file is given; `other_text`
tells where text is wanted.  `recordio.formats.table` knows images, and the containers know theirs.
"""

from __future__ import annotations

import codecs
import os
import re
import struct

from .bytes.crc32c import crc32c
from .encodings import wrong_encoding
from .errors import FileKindError
from .formats.table import FORMATS, format_of, kind_of

#: What every record file begins with.
RECORD = struct.pack("<I", 0xCED7230A)

IMAGE = "give the record file that `im2rec` makes of images, or read a folder or a list of them"
NUMPY = "`recordio from-numpy` makes a record file of it"
TABLE = "`recordio from-csv` makes a record file of it, and iterators.CSVIter reads it"
UNPACK = "unpack it first"
NEAR = "give the record file (.rec) beside it"
LIST = (
    "give the record file, or let `im2rec` make one of the images that the list names; as a list "
    "it goes to path_imglist"
)
PICKLE = (
    "`recordio from-bin` packs verification sets of faces; read others with the library that wrote "
    "them, and write records with recordio.RecordWriter"
)
HDF5 = "read it with h5py, and write records with recordio.RecordWriter"
MNIST = "`recordio from-mnist` makes a record file of images and labels"
FETCH = "what was fetched is a page and not the file: fetch it again, and log in if you have to"
NAMED = "give it a name that ends with {}, and it is read in place; `recordio pack` packs it"
NONE = "give a record file, as im2rec and recordio.RecordWriter write them"

#: Bytes at an offset, the kind that they tell, and what to do with such a file.
SIGNATURES: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"\x1f\x8b", "gzip data", UNPACK),
    (0, b"BZh", "bzip2 data", UNPACK),
    (0, b"\xfd7zXZ\0", "xz data", UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "zstd data", UNPACK),
    (0, b"\x04\x22\x4d\x18", "lz4 data", UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (0, b"Rar!\x1a\x07", "a rar archive", UNPACK),
    (257, b"ustar", "a tar archive", NAMED.format(".tar")),
    (0, b"PAR1", "a Parquet file", NAMED.format(".parquet")),
    (0, b"\x93NUMPY", "a NumPy array", NUMPY),
    (0, b"\x89HDF\r\n\x1a\n", "an HDF5 file", HDF5),
    (0, b"MATLAB 5.0", "a MATLAB file", PICKLE),
    (0, b"SQLite format 3\0", "an SQLite database", PICKLE),
    (0, b"ARROW1\0", "an Arrow file", PICKLE),
    (0, b"FEA1", "a Feather file", PICKLE),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel workbook", "export it as CSV"),
    (0, b"%PDF-", "a PDF", NONE),
    (16, b"\xde\xc0\xef\xbe", "an LMDB database", "give its folder"),
    (0, b"version https://git-lfs", "a pointer of Git LFS", "`git lfs pull` fetches the file"),
)
#: The same by the end of a name.
SUFFIXES: dict[str, tuple[str, str]] = {
    ".idx": ("an index", NEAR),
    ".crc": ("a file of checksums", NEAR),
    ".sizes": ("a file of sizes", NEAR),
    ".lst": ("a list of images", LIST),
    ".npz": ("NumPy arrays", NUMPY),
    ".npy": ("a NumPy array", NUMPY),
    ".csv": ("a table", TABLE),
    ".tsv": ("a table", TABLE),
    ".h5": ("an HDF5 file", HDF5),
    ".hdf5": ("an HDF5 file", HDF5),
    ".mat": ("a MATLAB file", PICKLE),
    ".pkl": ("a pickle", PICKLE),
    ".pickle": ("a pickle", PICKLE),
    ".pt": ("a file of PyTorch", PICKLE),
    ".pth": ("a file of PyTorch", PICKLE),
    ".params": ("parameters of MXNet", PICKLE),
    ".mdb": ("an LMDB database", "give its folder"),
    ".gz": ("gzip data", UNPACK),
    ".json": ("JSON", NONE),
    ".jsonl": ("JSON", NONE),
    ".manifest": ("a manifest", "`recordio from-manifest` makes a record file of one"),
    ".yaml": ("YAML", NONE),
    ".xml": ("XML", NONE),
    ".txt": ("a text file", NONE),
    ".bin": ("a file of another kind", NONE),
    ".dat": ("a file of another kind", NONE),
    **{end: ("an image", IMAGE) for row in FORMATS for end in row.suffixes},
}
#: What Office and others put into zip archives.
ZIPPED = {
    ".npz": ("NumPy arrays (.npz)", NUMPY),
    ".xlsx": ("an Excel workbook", "export it as CSV"),
    ".ods": ("a table of LibreOffice", "export it as CSV"),
    ".pt": SUFFIXES[".pt"],
    ".pth": SUFFIXES[".pth"],
}
#: How files begin that are no text, whatever follows.
NO_TEXT = (
    b"PK\x03\x04",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
    b"\x89HDF\r\n",
    b"PAR1",
    b"\x93NUMPY",
    b"%PDF-",
    b"\xff\xd8\xff",
    b"\x89PNG\r\n",
    b"SQLite format 3\0",
    b"version https://git-lfs",
    RECORD,
)
PAGE = re.compile(rb"\s*<(!doctype html|html|head|body)\b", re.IGNORECASE)


def refuse_other_files(name: str, head: bytes) -> None:
    """Raise FileKindError for a file that is no record file; `head` are its first bytes.

    A damaged record file passes, for readers to say where the damage is, and so does an empty one.
    """
    if RECORD.startswith(head[:4]):
        return
    guess = kind_and_remedy(name, head)
    if guess is not None:
        kind, remedy = guess
        raise FileKindError(f"this is no record file: it looks like {kind}; {remedy}", path=name)


def kind_and_remedy(name: str, head: bytes) -> tuple[str, str] | None:
    r"""Return what a file looks like, and what to do with it; None of what may be anything.

    >>> kind_and_remedy("a.rec", b"\xff\xd8\xff\xe0")[0]
    'a JPEG image'
    >>> kind_and_remedy("a.idx", b"0\t0\n")[0], kind_and_remedy("a.rec", b"\1\2\3")
    ('an index', None)
    """
    suffix = os.path.splitext(name.partition("?")[0] if "://" in name else name)[1].lower()
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        if suffix not in ZIPPED and (b"xl/" in head or b"[Content_Types].xml" in head):
            suffix = ".xlsx"
        return ZIPPED.get(suffix, ("a zip archive", NAMED.format(".zip")))
    for offset, mark, kind, remedy in SIGNATURES:
        if head.startswith(mark, offset):
            return kind, remedy
    kind = kind_of(head)
    if kind not in ("other", "empty", "bmp") or (kind == "bmp" and suffix != ".rec"):
        row = format_of(head)
        article = "an" if row.name[0] in "AEO" else "a"
        return f"{article} {row.name} image", IMAGE
    if PAGE.match(head):
        return "an HTML page", FETCH
    if head[:1] == b"\x80" and head[1:2] in b"\2\3\4\5" and head[2:3] in b"\x95}])(cXKMGNq":
        return "a pickle", PICKLE
    if head[:2] == b"\0\0" and head[2:3] in b"\x08\x09\x0b\x0c\x0d\x0e" and 0 < head[3:4][0] < 5:
        return "an array in the format of MNIST", MNIST
    if _is_tfrecord(head):
        return "a TFRecord file", NAMED.format(".tfrecord")
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    if guess := wrong_encoding(head):
        return guess
    return ("a text file", NONE) if _is_text(head) else None


def other_text(head: bytes, name: str = "") -> tuple[str, str] | None:
    r"""Return what a file given as text is instead of UTF-8, and what to do with it.

    >>> other_text(b"\xff\xfe1\0")[0], other_text(b"1\0,\0")[0], other_text(b"1,2\n")
    ('UTF-16 text', 'UTF-16 text', None)
    """
    if guess := wrong_encoding(head):
        return guess
    if PAGE.match(head):
        return "an HTML page", FETCH
    record = "a record file", "give a file of text"
    if head.startswith(RECORD):
        return record
    return kind_and_remedy(name, head) or record if head.startswith(NO_TEXT) else None


def _is_text(head: bytes) -> bool:
    """Tell whether bytes are printable UTF-8, which may end inside a character."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return len(text) > 0 and all(letter.isprintable() or letter in "\t\r\n\f" for letter in text)


def _is_tfrecord(head: bytes) -> bool:
    """Tell whether a length with its masked checksum comes first."""
    if len(head) < 12:
        return False
    check = crc32c(head[:8])
    masked = ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.unpack_from("<I", head, 8)[0] == masked
