"""Files of checksums beside a record file."""

from __future__ import annotations

import contextlib
import os
import random
import struct

import numpy as np

from recordio import ChecksumFileError, RecordReader, repair, verify
from recordio.bytes.crc32c import crc32c
from recordio.frames.checksums import read_checksums
from recordio.frames.encoder import MAGIC, encode

from .mutate import change_number, move_item
from .target import Target, scratch

HEAD, ENTRY = struct.Struct("<8sIIQQI"), struct.Struct("<QII")
START = HEAD.size + 4
RECORDS = [b"record" * number for number in range(5)] + [b"in" + MAGIC * 2 + b"parts"]
DATA = b"".join(map(encode, RECORDS))


def check(data: bytes) -> None:
    """Only records whose bytes are those of their entry count, are saved, and are delivered."""
    path, beside = scratch("a.rec", DATA), scratch("a.crc", data)
    table = read_checksums(beside)
    entries = list(ENTRY.iter_unpack(data[START:]))
    assert len(table) == len(entries)
    assert table.offsets.tolist() == [offset for offset, _, _ in entries]
    assert sum(length for _, length, _ in entries) == table.size
    whole = [
        DATA[offset : offset + length]
        for offset, length, checksum in entries
        if offset + length <= len(DATA) and crc32c(DATA[offset : offset + length]) == checksum
    ]
    report = checked(path, beside)
    if report is None:
        assert table.size != len(DATA)
        return
    # A stretch with the right checksum may still be no record, or several.
    assert report.records <= len(whole)
    saved = scratch("b.rec")
    repaired = repair(path, saved, out_index=scratch("b.idx"), checksums=beside)
    assert (repaired.records, repaired.lost_bytes) == (report.records, report.lost_bytes)
    with RecordReader(saved) as reader:
        copied = [bytes(record) for record in reader]
    assert len(copied) == report.records and set(copied) <= set(RECORDS)
    assert os.path.getsize(saved) + report.lost_bytes == len(DATA)
    if copied:
        assert verify(saved, scratch("b.idx"), scratch("b.crc")).ok
    assert report.ok == (whole == list(map(encode, RECORDS)))


def checked(path: str, beside: str) -> object:
    """What is found with the checksums; None if they belong to another file."""
    with contextlib.suppress(ChecksumFileError):
        return verify(path, checksums=beside)
    return None


def change(data: bytes, draw: random.Random) -> bytes:
    """A number of the head or of an entry changed, or entries gone, twice or exchanged."""
    entries = [data[at : at + ENTRY.size] for at in range(START, len(data), ENTRY.size)]
    kind = draw.randrange(4)
    if kind == 0:
        return data[:START] + b"".join(move_item(entries, draw))
    if kind == 1:
        return change_number(data, draw, draw.choice([8, 12, 16, 24, 32]), 4)
    if kind == 2 and len(entries) > 1:  # two neighbours as one
        at = draw.randrange(len(entries) - 1)
        pair = b"".join(entries[at : at + 2])
        with contextlib.suppress(struct.error):
            (begin, first, _), (_, second, _) = ENTRY.iter_unpack(pair)
            joined = DATA[begin : begin + first + second]
            entries[at : at + 2] = [ENTRY.pack(begin, (first + second) % 2**32, crc32c(joined))]
        return data[:START] + b"".join(entries)
    at = draw.randrange(max(len(entries), 1))
    return change_number(data, draw, START + ENTRY.size * at + draw.choice([0, 8, 12]), 4)


def mend(data: bytes) -> bytes:
    """The count and the checksum of the file itself made right."""
    if len(data) < START:
        return data
    magic, version, width, _, size, zero = HEAD.unpack_from(data)
    count = (len(data) - START) // ENTRY.size
    head = HEAD.pack(magic, version, width, count, size, zero)
    return head + crc32c(data[START:], crc32c(head)).to_bytes(4, "little") + data[START:]


def sound() -> bytes:
    """The checksums of the records."""
    ends = np.cumsum([len(encode(record)) for record in RECORDS]).tolist()
    begins = [0, *ends[:-1]]
    table = b"".join(
        ENTRY.pack(begin, end - begin, crc32c(DATA[begin:end]))
        for begin, end in zip(begins, ends, strict=True)
    )
    return mend(HEAD.pack(b"\x89RECCRC\n", 1, ENTRY.size, 0, len(DATA), 0) + bytes(4) + table)


CHECKSUMS = Target("checksums", check, change, mend)
