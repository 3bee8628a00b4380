"""CSV, LibSVM and idx arrays; mean images."""

from __future__ import annotations

import contextlib
import gzip
import math
import random
import re
import struct
import zlib
from fractions import Fraction

import numpy as np

from iterators.images.augment.mean_image import read_mean_image, write_mean_image
from recordio import (
    CSVReader,
    RecordIOError,
    TextFormatError,
    read_csv,
    read_idx_array,
    read_libsvm,
    write_idx_array,
)
from recordio.text.row_count import count_rows

from .mutate import EDGES, change_line, change_number
from .target import LONGEST, Target, drawing, scratch

DTYPES = ["float32", "float64", "int32", "int64", "uint8"]
REAL = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.I)
INTEGER = re.compile(rb"[+-]?\d+")
#: A file that says so much more than it is: no reader is asked to hold it.
MOST_TEXT = 1 << 20


def plain_text(data: bytes) -> bytes | None:
    """What a text file says; None if gzip is damaged or says too much."""
    if data[:2] == b"\x1f\x8b":
        try:
            unpacked = zlib.decompressobj(31)
            text = unpacked.decompress(data, MOST_TEXT)
        except zlib.error:
            return None
        if not unpacked.eof or unpacked.unused_data:
            return None
        data = text
    return data.removeprefix(b"\xef\xbb\xbf")


# ---- CSV


def csv_row(line: bytes, columns: int, delimiter: bytes, dtype: str) -> list | None:
    """The numbers of a line by the plainest code; None if they are none."""
    blanks = b" \t\r".replace(delimiter, b"")
    fields = [field.strip(blanks) for field in line.split(delimiter)]
    if len(fields) == columns + 1 and not fields[-1]:
        fields.pop()
    if len(fields) != columns:
        return None
    if dtype.startswith("float"):
        return [float(x) for x in fields] if all(map(REAL.fullmatch, fields)) else None
    if not all(len(x) < 400 and INTEGER.fullmatch(x) for x in fields):
        return None
    limits, numbers = np.iinfo(dtype), [int(x) for x in fields]
    return numbers if all(limits.min <= x <= limits.max for x in numbers) else None


def csv_rows(text: bytes, columns: int, delimiter: bytes, dtype: str, skip: int) -> list:
    """All rows by the plainest code."""
    blanks = b" \t\r".replace(delimiter, b"")
    lines = text.split(b"\n")[skip:]
    return [csv_row(line, columns, delimiter, dtype) for line in lines if line.strip(blanks)]


def outcome(read):
    """Rows and bad rows, or the text of the error."""
    bad: dict = {}
    try:
        rows = read(bad)
    except RecordIOError as error:
        # Which line is the last one before damage in gzip depends on how much is read at a time.
        return "damaged gzip" if "gzip data" in str(error) else str(error)
    return rows.shape, rows.tobytes(), {row: str(error) for row, error in bad.items()}


def check_csv(data: bytes) -> None:
    """All ways of reading CSV agree with one another and with the plainest code."""
    path, draw = scratch("a.csv", data), drawing(data)
    columns, delimiter = draw.choice([1, 2, 3]), draw.choice(",,; \t")
    skip, dtype = draw.choice([0, 0, 1, 3]), draw.choice(DTYPES)
    form = {"shape": columns, "dtype": dtype, "delimiter": delimiter, "skip_header": skip}
    chunk_bytes = draw.choice([1, 5, 40, 1 << 16])

    def streamed(bad, start=0):
        with CSVReader(path, chunk_bytes=chunk_bytes, threads=2, **form) as reader:
            return np.concatenate([np.empty((0, columns), dtype), *reader.rows(start, bad)])

    whole = outcome(lambda bad: read_csv(path, threads=2, bad_rows=bad, **form))
    assert outcome(streamed) == whole, (whole, outcome(streamed))
    with contextlib.suppress(RecordIOError):
        read_csv(path, delimiter=delimiter)
    if isinstance(whole, str):
        return
    shape, raw, bad = whole
    assert count_rows(path, skip, delimiter) == shape[0]
    rows = np.frombuffer(raw, dtype).reshape(shape)
    check_csv_reference(data, rows, bad, columns, delimiter.encode(), dtype, skip)
    start = draw.randrange(shape[0] + 2)
    later = {row: text for row, text in bad.items() if row >= start}
    want = rows[start:]
    assert outcome(lambda bad: streamed(bad, start)) == (want.shape, want.tobytes(), later)
    try:
        read_csv(path, **form)
    except TextFormatError as error:
        assert error.line == int(bad[min(bad)].split("line ")[1].split(",")[0])
    else:
        assert not bad


def check_csv_reference(data, rows, bad, columns, delimiter, dtype, skip) -> None:
    """The same rows are bad, and the others hold the same numbers."""
    text = plain_text(data)
    if text is None or len(text) > LONGEST:
        return
    expected = csv_rows(text, columns, delimiter, dtype, skip)
    assert len(expected) == len(rows)
    assert [i for i, row in enumerate(expected) if row is None] == sorted(bad)
    with np.errstate(over="ignore"):
        table = np.array([row or [0] * columns for row in expected], _wide(dtype)).astype(dtype)
    np.testing.assert_array_equal(rows, table.reshape(rows.shape))


def _wide(dtype: str) -> str:
    return "float64" if dtype.startswith("float") else "int64"


NUMBERS = [
    b"0",
    b"-0",
    b"+1",
    b"1.5",
    b".5",
    b"5.",
    b"1e5",
    b"1e-400",
    b"4.9e-324",
    b"1e400",
    b"e5",
]
NUMBERS += [b"nan", b"-inf", b"Infinity", b"infi", b"1_0", b"0x10", b"1e", b".", b"-", b"--1"]
NUMBERS += [b"1" * 30, b"0." + b"3" * 800, b"123456789.123456789", b"9007199254740993", b"", b" 1 "]
NUMBERS += [str(number + step).encode() for number in EDGES for step in (-1, 0, 1)]
TEXT_WORDS = (
    b"\n",
    b"\r\n",
    b",",
    b";",
    b" ",
    b"\t",
    b"#",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\x0b",
)
TEXT_WORDS += (b"," * 300, b"\n" * 300, b"1," * 500, b"\x1f\x8b\x08")


def packed_sometimes(data: bytes, draw: random.Random) -> bytes | None:
    """A text as gzip, or gzip as text; mostly None."""
    if draw.random() > 0.06:
        return None
    text = plain_text(data)
    if text is None or data[:2] == b"\x1f\x8b":
        return text
    return gzip.compress(text * draw.choice([1, 1, 2, 400]), draw.choice([0, 9]))


def change_csv(data: bytes, draw: random.Random) -> bytes:
    """A field or a line."""
    return packed_sometimes(data, draw) or change_line(data, draw, NUMBERS, b",,; \t")


CSV = Target("csv", check_csv, change_csv, words=TEXT_WORDS)


# ---- LibSVM


def libsvm_row(line: bytes, features: int | None) -> tuple[float, list[tuple[int, float]]] | None:
    """Label and entries of a line by the plainest code; None if they are none."""
    label, *items = re.split(rb"[ \t\r]+", line.strip(b" \t\r"))
    if not REAL.fullmatch(label) or loses_digits(label):
        return None
    entries = []
    for item in items:
        index, colon, value = item.partition(b":")
        if index == b"qid" and colon:
            if not INTEGER.fullmatch(value):
                return None
            continue
        if not (colon and len(index) < 400 and INTEGER.fullmatch(index) and REAL.fullmatch(value)):
            return None
        if not 0 <= int(index) < (2**63 - 1 if features is None else features):
            return None
        entries.append((int(index), float(value)))
    sums: dict[int, float] = {}
    for index, value in sorted(entries):
        sums[index] = np.float32(sums.get(index, 0) + np.float32(value))
    return float(label), list(sums.items())


def loses_digits(label: bytes) -> bool:
    """Tell whether a label is a whole number that no 32-bit float is."""
    if not math.isfinite(float(label)) or abs(float(label)) > 3.4e38:
        return False
    number = Fraction(label.decode())
    return number.denominator == 1 and int(np.float32(float(label))) != number


def libsvm_rows(text: bytes, features: int | None) -> list:
    """All rows by the plainest code."""
    lines = [line.partition(b"#")[0] for line in text.split(b"\n")]
    return [libsvm_row(line, features) for line in lines if line.strip(b" \t\r")]


def check_libsvm(data: bytes) -> None:
    """A sound matrix that the plainest code gives as well, or a typed error."""
    path, draw = scratch("a.libsvm", data), drawing(data)
    features = draw.choice([None, 3, 100])
    bad: dict = {}
    try:
        matrix, labels = read_libsvm(path, features, threads=2, bad_rows=bad)
    except RecordIOError:
        return
    matrix.check_format(full_check=True)
    assert matrix.shape[0] == len(labels)
    try:
        again, others = read_libsvm(path, features, threads=1)
    except TextFormatError as error:
        assert error.line == bad[min(bad)].line
    else:
        assert not bad
        assert again.data.tobytes() == matrix.data.tobytes()
        assert others.tobytes() == labels.tobytes()
    text = plain_text(data)
    if text is None or len(text) > LONGEST:
        return
    rows = libsvm_rows(text, features)
    assert [i for i, row in enumerate(rows) if row is None] == sorted(bad)
    entries = [row[1] if row else [] for row in rows]
    assert np.diff(matrix.indptr).tolist() == [len(row) for row in entries]
    assert matrix.indices.tolist() == [index for row in entries for index, _ in row]
    with np.errstate(over="ignore"):
        values = np.array([value for row in entries for _, value in row]).astype(np.float32)
        wanted = np.array([row[0] if row else 0 for row in rows], np.float64).astype(np.float32)
    np.testing.assert_array_equal(matrix.data, values)
    np.testing.assert_array_equal(labels, wanted)


def change_libsvm(data: bytes, draw: random.Random) -> bytes:
    """An item or a line, or one side of a colon."""
    return packed_sometimes(data, draw) or change_line(data, draw, LIBSVM_WORDS, b" : ")


LIBSVM_WORDS = [*NUMBERS, b"qid:1", b"qid:", b"qid:x", b"1:2", b"3:nan", b":", b"1:2:3", b"# c"]
LIBSVM = Target("libsvm", check_libsvm, change_libsvm, words=(*TEXT_WORDS, b":", b"qid:"))


# ---- idx arrays

IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def idx_array(text: bytes) -> np.ndarray | None:
    """The array by the plainest code; None if there is none."""
    if len(text) < 4 or text[:2] != b"\0\0" or text[2] not in IDX_TYPES or text[3] > 64:
        return None
    start = 4 + 4 * text[3]
    if len(text) < start:
        return None
    shape, dtype = struct.unpack(f">{text[3]}I", text[4:start]), np.dtype(IDX_TYPES[text[2]])
    if len(text) - start != math.prod(shape) * dtype.itemsize:
        return None
    try:
        return np.frombuffer(text, dtype, offset=start).reshape(shape)
    except ValueError:  # lengths that NumPy cannot hold beside a length of 0
        return None


def check_idx_array(data: bytes) -> None:
    """The array that the plainest code gives, which comes back when it is written."""
    path = scratch("a.idx", data)
    text = data
    if data[:2] == b"\x1f\x8b":
        text = plain_text(data)
        if text is None:
            read_idx_array(path)
            return
    expected = idx_array(text)
    try:
        array = read_idx_array(path)
    except RecordIOError:
        assert expected is None
        return
    assert array.dtype == expected.dtype.newbyteorder("=")
    assert array.shape == expected.shape
    assert array.astype(expected.dtype).tobytes() == expected.tobytes()
    write_idx_array(path, array)
    with open(path, "rb") as file:
        assert file.read() == text


def change_idx_array(data: bytes, draw: random.Random) -> bytes:
    """A length, the type or the number of axes."""
    packed = packed_sometimes(data, draw)
    return packed or change_number(data, draw, draw.choice([2, 3, 4, 8, 12]), draw.choice([1, 4]))


IDX_ARRAY = Target("idx_array", check_idx_array, change_idx_array, words=(bytes(4), b"\0\0\x0d\2"))


# ---- mean images


def check_mean_image(data: bytes) -> None:
    """An image that comes back when it is written, or an error."""
    image = read_mean_image(scratch("mean.bin", data))
    assert image.ndim == 3
    assert image.nbytes <= 8 * len(data)  # float32 of what has a byte at least
    again = scratch("again.bin")
    write_mean_image(again, image)
    np.testing.assert_array_equal(read_mean_image(again), image)


def change_mean_image(data: bytes, draw: random.Random) -> bytes:
    """A field of the head or of the names."""
    at, width = draw.choice(
        [(0, 8), (16, 8), (24, 4), (28, 4), (32, 4), (36, 8), (44, 8), (52, 8), (60, 4), (68, 4)]
        + [(max(len(data) - 24, 0), 8), (max(len(data) - 16, 0), 8)]
    )
    return change_number(data, draw, at, width)


MEAN_IMAGE = Target(
    "mean_image",
    check_mean_image,
    change_mean_image,
    words=tuple(bytes.fromhex(text) for text in ("c8fa93f9", "cafa93f9", "03000000", "00" * 8)),
)
