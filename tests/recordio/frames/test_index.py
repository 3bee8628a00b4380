"""The text of an index becomes two arrays, and back; junk is named with its line."""

import os
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import IndexFileError, RecordHeaderError, TruncatedRecordError, build_index
from recordio.frames.encoder import encode
from recordio.frames.index_file import KeyLookup, format_index, read_index, write_index

INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSETS = st.integers(0, 2**61 - 1).map(lambda words: 4 * words)


def parse(tmp_path, text):
    path = tmp_path / "some.idx"
    path.write_bytes(text)
    keys, offsets = read_index(path)
    assert keys.dtype == offsets.dtype == np.int64
    return keys.tolist(), offsets.tolist()


@pytest.mark.parametrize(
    ("text", "keys", "offsets"),
    [
        (b"", [], []),
        (b"0\t0\n7\t16\n3\t32\n7\t40\n", [0, 7, 3, 7], [0, 16, 32, 40]),
        (b"1\t4\r\n2\t8\r\n", [1, 2], [4, 8]),
        (b"1\t4\n2\t8", [1, 2], [4, 8]),
        (b"1\t4\textra\tcolumns\n", [1], [4]),
        (b"1\t4\t\n", [1], [4]),
        (b" 1 \t 4 \n", [1], [4]),
        (b"-5\t+4\n", [-5], [4]),
        (b"007\t0008\n", [7], [8]),
        (b"-9223372036854775808\t0\n", [-(2**63)], [0]),
        (b"9223372036854775807\t9223372036854775804\n", [2**63 - 1], [2**63 - 4]),
    ],
)
def test_accepted_text(tmp_path, text, keys, offsets):
    assert parse(tmp_path, text) == (keys, offsets)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "blank"),
        (b"  \r", "blank"),
        (b"3 8", "no tab"),
        (b"3", "no tab"),
        (b"\t8", "no tab"),
        (b"3\t", "no tab"),
        (b"1.0\t8", "key is no decimal"),
        (b"x\t8", "key is no decimal"),
        (b"-\t8", "key is no decimal"),
        (b"1_0\t8", "key is no decimal"),
        (b"0x10\t8", "key is no decimal"),
        (b"\xff\xfe\t8", "key is no decimal"),
        (b"3\t8.0", "offset is no decimal"),
        (b"3\t8 8", "offset is no decimal"),
        (b"3\t\t8", "offset is no decimal"),
        (b"3\t-8", "offset is no decimal"),
        (b"3\t\x00", "offset is no decimal"),
        (b"3\t10", "multiple of 4"),
        (b"9223372036854775808\t8", "key does not fit"),
        (b"-9223372036854775809\t8", "key does not fit"),
        (b"3\t18446744073709551615", "offset does not fit"),
        (b"3\t9999999999999999999999999999999999999999", "offset does not fit"),
    ],
)
@pytest.mark.parametrize("newline", [b"\n", b""])
def test_refused_lines_are_named(tmp_path, line, reason, newline):
    if line == b"" and newline == b"":
        return  # the same as the final newline of the line before
    path = tmp_path / "some.idx"
    path.write_bytes(b"1\t0\n2\t4\n" + line + newline)
    with pytest.raises(IndexFileError, match=reason) as caught:
        read_index(path)
    assert (caught.value.path, caught.value.line) == (str(path), 3)
    assert "build_index" in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_index(tmp_path / "none.idx")


@given(st.lists(st.tuples(INT64, OFFSETS)))
def test_round_trip(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("index") / "some.idx"
    keys = np.array([key for key, _ in pairs], np.int64)
    offsets = np.array([offset for _, offset in pairs], np.int64)
    write_index(path, keys, offsets)
    assert path.read_text() == "".join(f"{key}\t{offset}\n" for key, offset in pairs)
    for read, written in zip(read_index(path), (keys, offsets), strict=True):
        assert np.array_equal(read, written)


@given(st.lists(st.sampled_from([b"\n", b"\r", b"\t", b" ", b"-", b"0", b"12", b"x", b"\0"])))
def test_arbitrary_text_is_parsed_as_python_would_or_refused(tmp_path_factory, pieces):
    text = b"".join(pieces)
    path = tmp_path_factory.mktemp("index") / "some.idx"
    path.write_bytes(text)
    try:
        keys, offsets = read_index(path)
    except IndexFileError as error:
        assert 1 <= error.line <= text.count(b"\n") + 1
        return
    lines = [line.strip().split(b"\t") for line in text.split(b"\n")]
    if text.endswith(b"\n") or not text:
        lines.pop()
    assert keys.tolist() == [int(line[0]) for line in lines]
    assert offsets.tolist() == [int(line[1]) for line in lines]


def test_a_million_keys_in_any_order(tmp_path):
    keys = np.random.default_rng(0).permutation(1_000_000)
    offsets = np.arange(1_000_000) * 1012
    path = tmp_path / "some.idx"
    write_index(path, keys, offsets)
    read_keys, read_offsets = read_index(path)
    assert np.array_equal(read_keys, keys)
    assert np.array_equal(read_offsets, offsets)


def test_lines_longer_than_a_piece_of_text(tmp_path):
    comment = b"x" * (3 << 20)
    text = b"1\t4\t" + comment + b"\n2\t8\n3\t12\t" + comment
    assert parse(tmp_path, text) == ([1, 2, 3], [4, 8, 12])


def test_lines_cut_at_every_place_by_the_end_of_a_piece(tmp_path):
    for shift in range(12):
        text = b"1\t4\t" + b"x" * ((1 << 20) - 11 + shift - 6) + b"\n22\t88\r\n333\t124\n"
        assert parse(tmp_path, text) == ([1, 22, 333], [4, 88, 124])


def test_formatting_needs_as_many_keys_as_offsets():
    with pytest.raises(ValueError, match="2 keys for 1 offsets"):
        list(format_index([1, 2], [0]))


@given(st.lists(st.integers(-5, 20)), st.integers(-7, 22))
def test_lookup_finds_the_last_of_equal_keys(keys, wanted):
    expected = {key: position for position, key in enumerate(keys)}.get(wanted, -1)
    assert KeyLookup(np.array(keys, np.int64)).position_of(wanted) == expected
    keys.sort()
    expected = {key: position for position, key in enumerate(keys)}.get(wanted, -1)
    assert KeyLookup(np.array(keys, np.int64)).position_of(wanted) == expected


def image_record(number, content=b"content"):
    return struct.pack("<IfQQ", 0, 1.0, number, 0) + content


def test_build_index_by_position_and_by_id(tmp_path):
    ids = [7, 3, 0xCED7230A, 2**63 - 1]  # the third id is the magic word: its header is cut in two
    frames = [encode(image_record(number)) for number in ids]
    path = tmp_path / "some.rec"
    path.write_bytes(b"".join(frames))
    offsets = [sum(map(len, frames[:i])) for i in range(4)]
    assert build_index(path) == 4
    keys, built = read_index(tmp_path / "some.idx")
    assert (keys.tolist(), built.tolist()) == ([0, 1, 2, 3], offsets)
    assert build_index(path, tmp_path / "other", keys="id") == 4
    keys, built = read_index(tmp_path / "other")
    assert (keys.tolist(), built.tolist()) == (ids, offsets)


def test_build_index_gives_the_golden_index(golden, tmp_path):
    build_index(golden / "frames.rec", tmp_path / "some.idx")
    assert (tmp_path / "some.idx").read_bytes() == (golden / "frames.idx").read_bytes()


def test_build_index_of_an_empty_file(tmp_path):
    (tmp_path / "some.rec").touch()
    assert build_index(tmp_path / "some.rec", keys="id") == 0
    assert (tmp_path / "some.idx").read_bytes() == b""


def test_build_index_of_damage_leaves_the_old_index_alone(tmp_path):
    path = tmp_path / "some.rec"
    path.write_bytes(encode(b"whole") + encode(b"truncated")[:-1])
    (tmp_path / "some.idx").write_bytes(b"old")
    with pytest.raises(TruncatedRecordError) as caught:
        build_index(path)
    assert (caught.value.path, caught.value.record) == (str(path), 1)
    assert (tmp_path / "some.idx").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["some.idx", "some.rec"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [(b"23 bytes are too few   ", "too short"), (image_record(2**63), "does not fit")],
)
def test_build_index_by_id_needs_ids(write_records, record, reason):
    path = write_records([image_record(1), record])
    with pytest.raises(RecordHeaderError, match=reason) as caught:
        build_index(path, keys="id")
    assert (caught.value.offset, caught.value.record) == (40, 1)


def test_build_index_refuses_unknown_keys_and_its_own_file(write_records):
    path = write_records([b"a"])
    with pytest.raises(ValueError, match="'position' or 'id'"):
        build_index(path, keys="name")
    with pytest.raises(ValueError, match="own index"):
        build_index(path, path)
    assert path.read_bytes() == encode(b"a")
