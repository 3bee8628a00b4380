"""Frames are located, and every kind of damage is noticed at its place."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordio import CorruptRecordError, RecordIOError, TruncatedRecordError
from recordio.frames.encoder import MAGIC, encode
from recordio.frames.frame import find_head, scan_offsets, survey


def head(flag, length):
    return MAGIC + struct.pack("<I", flag << 29 | length)


GOOD = encode(b"first") + encode(b"second!!")

#: name of the damage: (bytes behind two good records, class, offset noticed behind them)
DAMAGE = {
    "bad_magic": (b"garbage!", CorruptRecordError, 0),
    "zeros": (bytes(8), CorruptRecordError, 0),
    "bad_flag": (head(5, 0), CorruptRecordError, 0),
    "orphan_part": (head(3, 0), CorruptRecordError, 0),
    "unfinished": (head(1, 4) + b"abcd" + encode(b"next"), CorruptRecordError, 12),
    "truncated_head": (MAGIC + b"\0\0", TruncatedRecordError, 0),
    "truncated_payload": (head(0, 9) + b"12345678", TruncatedRecordError, 0),
    "truncated_pad": (head(0, 5) + b"12345", TruncatedRecordError, 0),
    "missing_part": (head(1, 4) + b"abcd", TruncatedRecordError, 12),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_with_path_offset_and_record(kind):
    tail, error, place = DAMAGE[kind]
    with pytest.raises(error) as caught:
        scan_offsets(GOOD + tail, "a.rec")
    assert type(caught.value) is error
    assert (caught.value.path, caught.value.record) == ("a.rec", 2)
    assert caught.value.offset == len(GOOD) + place
    assert f"a.rec, offset {len(GOOD) + place}, record 2: " in str(caught.value)
    assert survey(GOOD + tail).kind == kind


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        (b"\0", "zeros"),
        (bytes(3), "zeros"),
        (bytes(4), "zeros"),
        (bytes(7), "zeros"),
        (b"x", "bad_magic"),
        (MAGIC[:1], "truncated_head"),
        (MAGIC[:3], "truncated_head"),
        (MAGIC, "truncated_head"),
        (head(2, 4) + b"abcd", "orphan_part"),
        (head(4, 0), "bad_flag"),
        (head(6, 0), "bad_flag"),
        (head(7, 0), "bad_flag"),
        (head(1, 0) + head(0, 0), "unfinished"),
        (head(1, 0) + head(1, 0) + head(3, 0), "unfinished"),
        (head(1, 0) + head(4, 0), "bad_flag"),
        (head(1, 0) + bytes(8), "zeros"),
        (head(1, 0) + b"garbage!", "bad_magic"),
        (head(1, 0) + head(2, 0), "missing_part"),
        (head(1, 0) + MAGIC, "truncated_head"),
        (head(1, 0) + head(3, 1) + b"a", "truncated_pad"),
        (head(0, 16) + b"swal" + encode(b"") + b"owed" + b"stray", "swallowed_head"),
        (head(0, 16) + b"swal" + encode(b"") + b"owed" + MAGIC, "swallowed_head"),
        (head(0, 16) + b"swal" + encode(b"") + b"owed" + head(2, 0), "swallowed_head"),
    ],
)
def test_variants_of_damage(tail, kind):
    run = survey(GOOD + tail)
    assert (run.kind, run.end, len(run.offsets)) == (kind, len(GOOD), 2)
    assert run.reason


@pytest.mark.parametrize("tail", [b"", encode(b"next"), head(0, 99), head(1, 4) + b"abcd"])
def test_a_length_that_leads_to_a_head_or_the_end_is_right_whatever_it_covers(tail):
    inside = head(0, 16) + b"abcd" + encode(b"") + b"efgh"
    run = survey(GOOD + inside + tail)
    assert run.offsets.tolist()[:3] == [0, 16, len(GOOD)]
    assert run.unescaped.tolist() == [len(GOOD)]
    assert len(survey(GOOD).unescaped) == 0


def test_parts_that_add_up_to_too_much_are_damage():
    # Zero pages of a sparse map would do, but 2**29 bytes in two parts need no real memory either.
    import mmap

    part = 2**28
    with mmap.mmap(-1, 2 * (part + 8)) as file:
        file[:8] = head(1, part)
        file[part + 8 : part + 16] = head(3, part)
        with pytest.raises(CorruptRecordError, match=r"2\*\*29"):
            scan_offsets(file)
        file[part + 8 : part + 16] = head(3, part - 8)
        file[-8:] = head(0, 0)
        assert scan_offsets(file).tolist() == [0, 2 * part + 8]


def test_every_reason_says_what_to_do():
    for kind, (tail, _, _) in DAMAGE.items():
        assert "repair" in survey(GOOD + tail).reason, kind


@pytest.mark.parametrize("offset", [-4, 2, 6, 1 << 40])
def test_offsets_where_no_record_can_begin(offset):
    assert survey(GOOD, offset).kind == "bad_offset"


def test_offsets_of_the_golden_file(golden):
    index = [line.split("\t") for line in (golden / "frames.idx").read_text().splitlines()]
    offsets = scan_offsets((golden / "frames.rec").read_bytes())
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [int(offset) for _, offset in index]


def test_nothing_is_an_empty_sequence():
    assert scan_offsets(b"").tolist() == []
    assert scan_offsets(b"").dtype == np.int64


def test_more_records_than_are_located_at_a_time():
    data = encode(b"1") * 10_000
    assert np.array_equal(scan_offsets(data), np.arange(10_000) * 12)
    with pytest.raises(TruncatedRecordError) as caught:
        scan_offsets(data[:-1])
    assert (caught.value.record, caught.value.offset) == (9_999, 9_999 * 12)


def test_scanning_may_begin_in_the_middle():
    assert scan_offsets(GOOD, None, 16).tolist() == [16]
    assert scan_offsets(GOOD, None, len(GOOD)).tolist() == []


def test_a_middle_part_that_needs_padding_is_read_as_mxnet_reads_it():
    data = head(1, 1) + b"a\0\0\0" + head(3, 1) + b"b\0\0\0"
    assert survey(data).payload_bytes == 6


@pytest.mark.parametrize("length", range(len(GOOD) + 1))
def test_every_truncation_is_an_error_but_at_a_boundary(length):
    if length in (0, 16, 32):
        assert len(scan_offsets(GOOD[:length])) == length // 16
    else:
        with pytest.raises(TruncatedRecordError) as caught:
            scan_offsets(GOOD[:length])
        assert caught.value.record == length // 16


pieces = st.one_of(
    st.binary(max_size=9),
    st.just(MAGIC),
    st.builds(head, st.integers(0, 7), st.integers(0, 20)),
    st.binary(max_size=12).map(encode),
)


@settings(max_examples=250)
@given(st.lists(pieces, max_size=12).map(b"".join), st.integers(-5, 60))
def test_arbitrary_bytes_never_crash(data, start):
    try:
        offsets = scan_offsets(data)
    except RecordIOError as error:
        assert 0 <= error.offset <= len(data)
    else:
        assert all(data[offset : offset + 4] == MAGIC for offset in offsets)
    survey(data, start)
    found = find_head(data, start)
    assert found == len(data) or data[found : found + 4] == MAGIC


@given(st.lists(pieces, max_size=12).map(b"".join), st.integers(-5, 60))
def test_find_head_finds_the_first_plausible_head(data, start):
    expected = len(data)
    for offset in range(0, len(data) - 7, 4):
        if offset >= start and data[offset : offset + 4] == MAGIC and data[offset + 7] >> 5 < 2:
            expected = offset
            break
    assert find_head(data, start) == expected
