"""One walk over damaged files; tests/tools/test_record_pack.py compares who goes by it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import (
    CorruptRecordError,
    FileKindError,
    RecordReader,
    TruncatedRecordError,
    verify,
)
from recordio.file_kinds import refuse_other_files
from recordio.frames.encoder import MAGIC, encode
from recordio.frames.frame import scan_offsets
from recordio.frames.record_bytes import HEAD_BYTES
from recordio.frames.walk import walk

FRAMES = [encode(payload) for payload in (b"zero", b"one" * 7, MAGIC * 3, b"three", b"", b"five")]
WHOLE = b"".join(FRAMES)
OFFSETS = np.cumsum([0, *map(len, FRAMES)])[:-1]


def rows(data, **keywords):
    """Number, offset and kind of everything in a file."""
    return [
        (number, offset, piece.kind)
        for piece in walk(data, **keywords)
        for number, offset in zip(piece.numbers.tolist(), piece.offsets.tolist(), strict=True)
    ]


def test_a_whole_file_is_numbered_through():
    assert rows(WHOLE) == [(n, offset, "ok") for n, offset in enumerate(OFFSETS.tolist())]
    assert rows(b"") == []


def test_damage_has_a_number_of_its_own():
    data = b"junk" + FRAMES[0] + bytes(12) + MAGIC + b"\4\0\0\xff" + FRAMES[4] + b"x"
    assert rows(data) == [
        (0, 0, "bad_magic"), (1, 4, "ok"), (2, 16, "zeros"), (3, 36, "ok"), (4, 44, "bad_magic"),
    ]  # fmt: skip


def test_an_index_gives_the_numbers():
    data = bytearray(WHOLE)
    data[OFFSETS[1] : OFFSETS[3]] = bytes(OFFSETS[3] - OFFSETS[1])
    listed = OFFSETS[::-1]
    assert [row[0] for row in rows(bytes(data), listed=listed)] == [0, 1, 3, 4, 5]
    assert [row[0] for row in rows(bytes(data))] == [0, 1, 2, 3, 4]
    # What it does not list has none: neither garbage nor a whole record.
    data = WHOLE[:12] + b"junk" + WHOLE[12:]
    listed = np.where(OFFSETS < 12, OFFSETS, OFFSETS + 4)
    assert [row[0] for row in rows(data, listed=listed[[0, 2, 3, 4, 5]])] == [0, -1, -1, 1, 2, 3, 4]


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE)), st.binary(max_size=40))
def test_any_damage(tmp_path_factory, first, second, junk):
    first, second = sorted((first, second))
    data = WHOLE[:first] + junk + WHOLE[second:]
    found = rows(data)
    assert [number for number, _, _ in found] == list(range(len(found)))
    assert rows(data, payloads=True) == found  # payloads are not needed to tell what is whole
    pieces = list(walk(data))
    assert [p.end for p in pieces] == [*(int(p.offsets[0]) for p in pieces[1:]), len(data)][
        : len(pieces)
    ]
    for number, offset, _ in found:  # and it can begin anywhere
        assert rows(data, start=offset) == [(n - number, at, k) for n, at, k in found[number:]]
    damage = [row for row in found if row[2] != "ok"]
    path = tmp_path_factory.mktemp("walk") / "a.rec"
    path.write_bytes(data)
    try:
        refuse_other_files(str(path), data[:HEAD_BYTES])
    except FileKindError:  # it begins as files of another kind do
        with pytest.raises(FileKindError):
            verify(path)
        return
    assert [(p.record, p.offset) for p in verify(path).problems] == [row[:2] for row in damage]
    if not damage:
        assert scan_offsets(data).tolist() == [offset for _, offset, _ in found]
        return
    with pytest.raises((CorruptRecordError, TruncatedRecordError)) as error:
        len(RecordReader(path))
    assert error.value.record == damage[0][0]
    # A later part may be what is named, or the record that begins too early.
    first = next(p for p in pieces if p.is_damage)
    assert first.offsets[0] <= error.value.offset <= first.end
