"""Record files, their indexes, image headers and image lists."""

from __future__ import annotations

import contextlib
import os
import random
import struct

import numpy as np

from iterators.images.sources.record_source import read_label_list, read_label_vectors
from iterators.providers.image_sources import read_image_list
from recordio import (
    IndexFileError,
    IRHeader,
    KeyNotFoundError,
    MXIndexedRecordIO,
    MXRecordIO,
    RecordHeaderError,
    RecordIOError,
    RecordReader,
    build_index,
    pack,
    repair,
    unpack,
    unpack_img,
    verify,
)
from recordio.frames.encoder import MAGIC, encode
from recordio.frames.frame import find_head, scan_offsets
from recordio.frames.index_file import read_index
from recordio.list_files import parse_line, read_entries
from recordio.payload import read_payload
from recordio.tools.image_list import format_line, read_list
from recordio.tools.npy import decode_npy, encode_npy
from recordio.tools.payloads import check_content, describe, labels_of

from .mutate import EDGES, change_line, change_number, move_item, near, put
from .target import Target, drawing, scratch

HEAD = struct.Struct("<II")


# ---- record files


def records_of(data: bytes) -> tuple[list[bytes], list[int], int | None]:
    """Records of a file and where they begin, by the plainest code; and where damage begins."""
    records, offsets, at = [], [], 0
    while at < len(data):
        begin, parts = at, []
        while True:
            head = data[at : at + 8]
            if len(head) < 8 or head[:4] != MAGIC:
                return records, offsets, at
            flag, length = divmod(HEAD.unpack(head)[1], 1 << 29)
            end = at + 8 + (length + 3) // 4 * 4
            if flag > 3 or (flag < 2) == bool(parts) or end > len(data):
                return records, offsets, at
            parts.append(data[at + 8 : at + 8 + length])
            at = end
            if flag in (0, 3):
                break
        records.append(MAGIC.join(parts))
        offsets.append(begin)
    return records, offsets, None


def check_frames(data: bytes) -> None:
    """Every way of reading gives the records that the plainest code finds, and the same damage."""
    path = scratch("a.rec", data)
    records, offsets, damage = records_of(data)
    found = []
    with RecordReader(path) as reader:
        try:
            for record in reader:
                found.append(bytes(record))
        except RecordIOError as error:
            assert error.offset == damage, (error.offset, damage)
            assert error.record == len(records)
        else:
            assert damage is None
        assert found == records
        with contextlib.suppress(RecordIOError):
            assert reader.offsets.tolist() == offsets
            assert [bytes(record) for record in reader[::-1]] == records[::-1]
            assert reader.check_tail() >= 0
        for at in drawing(data).sample(range(0, len(data) + 8, 4), min(20, len(data) // 4)):
            with contextlib.suppress(RecordIOError):
                reader.read_at(at)
    with contextlib.suppress(RecordIOError):
        assert scan_offsets(data).tolist() == offsets
    with MXRecordIO(path, "r") as reader, contextlib.suppress(RecordIOError):
        assert [reader.read() for _ in records] == records
        assert reader.read() is None
    check_repair(path, data, records)
    for keys in ("position", "id"):
        index = scratch("a.idx")
        with contextlib.suppress(RecordIOError):
            assert build_index(path, index, keys) == len(records)
            with RecordReader(path, index) as reader:
                assert [bytes(record) for record in reader] == records


def check_repair(path: str, data: bytes, records: list[bytes]) -> None:
    """What is repaired is sound, holds what was counted, and what is lost is said."""
    report = verify(path)
    out = scratch("b.rec")
    repaired = repair(path, out)
    assert (repaired.records, repaired.lost_bytes) == (report.records, report.lost_bytes)
    assert os.path.getsize(out) + report.lost_bytes == len(data)
    again = verify(out, scratch("b.idx"))
    assert again.ok, str(again)
    assert again.records == report.records
    assert sum(problem.length for problem in report.problems) == report.lost_bytes
    if report.ok:
        with RecordReader(out) as reader:
            assert [bytes(record) for record in reader] == records
    at = find_head(data, 4)
    assert at == len(data) or data[at : at + 4] == MAGIC


def change_frames(data: bytes, draw: random.Random) -> bytes:
    """A head with another length or flag, or records gone, twice or exchanged."""
    _, offsets, damage = records_of(data)
    if not offsets:
        return data + encode(draw.randbytes(draw.randrange(40)))
    ends = [*offsets[1:], len(data) if damage is None else damage]
    kind = draw.randrange(4)
    if kind == 0:
        pieces = [data[begin:end] for begin, end in zip(offsets, ends, strict=True)]
        return b"".join(move_item(pieces, draw)) + data[ends[-1] :]
    at = draw.choice(offsets)
    if kind == 1:
        return put(data, at, draw.choice([bytes(8), MAGIC, b"\xce\xd7\x23\x0a", draw.randbytes(4)]))
    word = HEAD.unpack_from(data, at)[1]
    flag, length = word >> 29, word % (1 << 29)
    if kind == 2:
        flag = draw.randrange(8)
    else:
        length = near(length, draw) % (1 << 29)
    return put(data, at + 4, (flag << 29 | length).to_bytes(4, "little"))


FRAMES = Target(
    "frames", check_frames, change_frames, words=(MAGIC, MAGIC + bytes(4), bytes(4), encode(b"x"))
)


# ---- indexes

SIX = [pack(IRHeader(0, i, 10 * i, 0), b"record" * i) for i in range(6)]
RECORDS = b"".join(map(encode, SIX))


def index_of(data: bytes) -> tuple[list[tuple[int, int]], int | None]:
    """Lines of an index by the plainest code, and the number of the first that is wrong."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    found = []
    for number, line in enumerate(lines, 1):
        fields = line.strip(b" \r\v\f\t").split(b"\t")
        try:
            if len(fields) < 2:
                raise ValueError
            key, offset = (_integer(field) for field in fields[:2])
            if not (-(2**63) <= key < 2**63 and 0 <= offset < 2**63 and offset % 4 == 0):
                raise ValueError
        except ValueError:
            return found, number
        found.append((key, offset))
    return found, None


def _integer(field: bytes) -> int:
    field = field.strip(b" \r\v\f\t")
    if not field.removeprefix(b"-" if field[:1] == b"-" else b"+").isdigit():
        raise ValueError
    return int(field)


def check_index(data: bytes) -> None:
    """The same lines as by the plainest code; and readers that use them."""
    path, index = scratch("a.rec", RECORDS), scratch("a.idx", data)
    expected, wrong = index_of(data)
    try:
        keys, offsets = read_index(index)
    except IndexFileError as error:
        assert error.line == wrong, (error.line, wrong)
    else:
        assert wrong is None
        assert list(zip(keys.tolist(), offsets.tolist(), strict=True)) == expected
    with contextlib.suppress(RecordIOError), RecordReader(path, index) as reader:
        for position, (key, _) in enumerate(expected):
            with contextlib.suppress(RecordIOError):
                assert bytes(reader[position]) in SIX
            with contextlib.suppress(RecordIOError):
                reader.by_key(key)
    with contextlib.suppress(RecordIOError), MXIndexedRecordIO(index, path, "r") as reader:
        for key in reader.keys:
            with contextlib.suppress(RecordIOError):
                assert reader.read_idx(key) in SIX
        with contextlib.suppress(KeyNotFoundError):
            reader.read_idx(7)
    verify(path, index)
    out = scratch("b.rec")
    repair(path, out, index)
    assert verify(out, scratch("b.idx")).ok


def change_index(data: bytes, draw: random.Random) -> bytes:
    """A line or a number of it."""
    return change_line(data, draw, [b"", b"-1", b"+4", b" 8", b"1e3", b"0x10", b"9" * 30, b"\r"])


INDEX = Target("index", check_index, change_index, words=(b"\t", b"\n", b"\r\n", b"-", b"0", b"4"))


# ---- headers of image records, and what kind of content follows


def check_headers(data: bytes) -> None:
    """Header and content of a record, taken apart and put together again."""
    try:
        header, content = unpack(data)
    except RecordHeaderError:
        assert len(data) < 24 or len(data) < 24 + 4 * int.from_bytes(data[:4], "little")
    else:
        again = pack(header, content)
        assert again[8:] == data[8:]
        assert np.array_equal(unpack(again)[0].label, header.label, equal_nan=True)
        unpack_img(data, drawing(data).choice([-1, 0, 1]))
    payload = read_payload(data)
    if payload.header is not None:
        assert len(labels_of(payload.header)) == max(payload.header.flag, 1)
    with contextlib.suppress(RecordIOError):
        describe(payload.content, payload.kind)
    with contextlib.suppress(RecordIOError):
        check_content(payload.content)


def change_headers(data: bytes, draw: random.Random) -> bytes:
    """A field of the header."""
    at, width = draw.choice([(0, 4), (0, 1), (4, 4), (8, 8), (16, 8), (24, 4)])
    return change_number(data, draw, at, width)


HEADERS = Target("headers", check_headers, change_headers, words=(bytes(24), b"\xff\xd8\xff"))


def check_npy(data: bytes) -> None:
    """An array that can be written again, or an error."""
    array = decode_npy(data)
    again = decode_npy(encode_npy(array))
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert again.tobytes() == array.tobytes()


NPY_WORDS = (
    b"'descr' 'fortran_order' 'shape' <f4 >i8 |O |S0 |V0 <U1 True (0,) (1,2) [('a','<f4')] ( {"
)
NPY = Target("npy", check_npy, words=(*NPY_WORDS.split(), b" ", b",", b"\n", b"\x93NUMPY\2\0"))


# ---- image lists


def check_lists(data: bytes) -> None:
    """All readers of lists."""
    path = scratch("a.lst", data)
    for entry in read_list(path).entries:
        assert parse_line(format_line(entry)).id == entry.id
    draw = drawing(data)
    width = draw.choice([1, 1, 2, 5])
    with contextlib.suppress(RecordIOError):
        names, ids, labels = read_image_list(path, width)
        assert labels.shape == (len(ids), width) == (len(names), width)
    with contextlib.suppress(RecordIOError):
        ids, labels = read_label_list(path, width)
        assert (np.diff(ids.astype(object)) > 0).all()
        assert labels.shape == (len(ids), width)
    ids, starts, labels = read_label_vectors(path)
    assert len(starts) == len(ids) + 1
    assert starts[-1] == len(labels) <= sum(len(entry.labels) for _, entry in read_entries(path))


def change_lists(data: bytes, draw: random.Random) -> bytes:
    """A line or a field of it."""
    return change_line(data, draw, LIST_WORDS, b"\t\t ")


LIST_WORDS = [b"nan", b"inf", b"-1", b"1e39", b"1_0", b"\xff.jpg", b"a b.jpg", b"", b"#", b"x"]
LIST_WORDS += [str(number).encode() for number in EDGES] + ["\u0663".encode(), b"9" * 5000]
LISTS = Target(
    "lists", check_lists, change_lists, words=(b"\t", b"\n", b"\r", b"\0", b"\x85", b"\xe2\x80\xa8")
)
