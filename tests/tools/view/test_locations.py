"""Lines and locations by number, compared with reading everything."""

import os
import random

import numpy as np
import pytest

import recordio
from iterators.testing import write_records
from recordio import RecordReader
from recordio.errors import IndexFileError, KeyNotFoundError, RecordIOError
from recordio.tools.view import locations as locations_module
from recordio.tools.view.lines import BLOCK, Lines, NotCounted
from recordio.tools.view.locations import FrameLocations, IndexLocations


@pytest.fixture
def lines_of(tmp_path):
    opened = []

    def make(data):
        path = tmp_path / "lines.txt"
        path.write_bytes(data)
        opened.append(Lines(str(path)))
        return opened[-1]

    yield make
    for lines in opened:
        lines.close()


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n"])
@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_lines_are_those_of_the_file(lines_of, monkeypatch, count, end):
    monkeypatch.setattr("recordio.tools.view.lines.PIECE", 1000)
    data = b"\n".join(b"%d" % (n * n) for n in range(count)) + end
    lines = lines_of(data)
    lines.survey()
    expected = [line.rstrip(b"\r") for line in data.split(b"\n")]
    if not expected[-1]:
        expected.pop()
    assert lines.count == len(expected)
    assert lines.read(0, count + 9) == expected
    for first in (0, 1, BLOCK - 2, BLOCK, 2 * BLOCK + 5, count - 1, count + 3):
        if first >= 0:
            assert lines.read(first, first + 7) == expected[first : first + 7]


def test_the_first_lines_are_read_before_any_is_counted(lines_of):
    lines = lines_of(b"a\n" * (3 * BLOCK))
    assert len(lines.read(0, 60)) == 60 and lines.count is None
    with pytest.raises(NotCounted) as error:
        lines.read(2 * BLOCK, 2 * BLOCK + 1)
    assert error.value.share == 0
    with pytest.raises(NotCounted):
        lines.wait_for(2 * BLOCK, 0)


def test_a_line_without_end_is_an_error(lines_of):
    with pytest.raises(RecordIOError, match="a line is longer"):
        lines_of(b"x" * (3 << 20)).read(0, 1)


def test_text_is_found_across_pieces(lines_of, monkeypatch):
    monkeypatch.setattr("recordio.tools.view.lines.PIECE", 7)
    data = b"".join(b"%d\tx\n" % n for n in range(200))
    lines = lines_of(data)
    lines.survey()
    for n in (1, 9, 10, 99, 199):
        offset = lines.find(b"\n%d\t" % n)
        assert offset == data.index(b"\n%d\t" % n) and lines.number_of(offset + 1) == n
    assert lines.find(b"\n200\t") == -1


@pytest.fixture
def index(tmp_path):
    opened = []

    def make(keys, offsets=None):
        path = tmp_path / "a.idx"
        offsets = [16 * n for n in range(len(keys))] if offsets is None else offsets
        path.write_text("".join(f"{k}\t{o}\n" for k, o in zip(keys, offsets, strict=True)))
        opened.append(IndexLocations(str(path)))
        opened[-1].survey()
        return opened[-1]

    yield make
    for locations in opened:
        locations.close()


def shuffled(count):
    keys = list(range(5, count + 5))
    random.Random(1).shuffle(keys)
    return keys


@pytest.mark.parametrize("keys", [list(range(10000)), list(range(7, 30007, 3)), shuffled(9000)])
def test_keys_are_found_in_any_order(index, keys):
    locations = index(keys)
    assert locations.count == len(keys)
    for position in (0, 1, 4095, 4096, 8191, len(keys) - 1):
        assert locations.position_of(keys[position]) == position
        assert locations.position_at(16 * position) == position
    for key in (-1, max(keys) + 1, 10**18):
        with pytest.raises(KeyNotFoundError):
            locations.position_of(key)
    assert locations.position_at(8) is None and locations.position_at(16 * len(keys)) is None


@pytest.mark.parametrize("keys", [list(range(0, 30000, 3)), shuffled(9000)])
@pytest.mark.parametrize("few", [False, True])
def test_pages_by_key_are_in_the_order_of_the_keys(index, monkeypatch, keys, few):
    if few:
        monkeypatch.setattr(locations_module, "MOST_SORTED", 100)
    locations = index(keys)
    if few and keys != sorted(keys):
        with pytest.raises(RecordIOError, match="do not ascend"):
            locations.from_key(500, 50)
        return
    found = [location.key for location in locations.from_key(500, 50)]
    assert found == sorted(key for key in keys if key >= 500)[:50]


def test_a_line_that_is_none_is_named(index):
    locations = index([1, "x", 3])
    with pytest.raises(IndexFileError) as error:
        locations.read(0, 3)
    assert error.value.line == 2


def test_records_without_an_index_are_followed(tmp_path):
    records = [b"%d" % n for n in range(2 * BLOCK + 100)]
    path = write_records(tmp_path / "a.rec", records, index=False)
    with RecordReader(path) as reader:
        locations = FrameLocations(reader)
        assert [location.position for location in locations.read(0, 3)] == [0, 1, 2]
        with pytest.raises(NotCounted):
            locations.read(BLOCK, BLOCK + 1)
        locations.survey()
        assert locations.count == len(reader)
        offsets = reader.offsets
        for first in (0, BLOCK - 3, 2 * BLOCK, 2 * BLOCK + 98):
            found = locations.read(first, first + 6)
            assert [p.offset for p in found] == offsets[first : first + 6].tolist()
            assert locations.position_at(int(offsets[first])) == first
        with pytest.raises(KeyNotFoundError):
            locations.position_of(len(reader))


@pytest.mark.parametrize("seed", range(4))
def test_damage_has_positions_as_in_the_check(tmp_path, seed):
    rng = np.random.default_rng(seed)
    records = [bytes(rng.integers(0, 256, rng.integers(0, 60), np.uint8)) for n in range(300)]
    path = write_records(tmp_path / "a.rec", records, index=False)
    data = bytearray(path.read_bytes())
    for word in rng.integers(0, len(data) // 4, 6):
        data[word * 4 : word * 4 + 4] = bytes(rng.integers(0, 256, 4, np.uint8))
    path.write_bytes(data)
    with RecordReader(path) as reader:
        locations = FrameLocations(reader)
        locations.survey()
        found = {location.position: location.offset for location in locations.read(0, 400)}
        report = recordio.verify(path)
        assert len(found) == locations.count == report.records + len(report.problems)
        assert {(p.record, p.offset) for p in report.problems} <= found.items()


def test_memory_does_not_grow_with_the_index(tmp_path):
    """Of a million lines only locations of blocks are kept."""
    path = tmp_path / "a.idx"
    path.write_bytes(b"".join(b"%d\t%d\n" % (n, 16 * n) for n in range(1_000_000)))
    locations = IndexLocations(str(path))
    locations.survey()
    assert locations.count == 1_000_000
    assert len(locations.lines._starts) <= 1_000_000 // BLOCK + 1
    assert locations.position_of(999_999) == 999_999
    assert locations.lines.block.cache_info().currsize <= 32
    assert os.path.getsize(path) > 10_000_000
    locations.close()


@pytest.mark.parametrize(
    "text",
    [
        "7\t0\n3\t16\n", "7\t0\n3\t16", "7\t0\r\n3\t16\r\n", "7\t0\tmore\n3\t16\n",
        " 7\t0 \n+3\t16\n",
        "-7\t0\n-9223372036854775808\t9223372036854775804\n",
    ],
)  # fmt: skip
def test_indexes_are_read_as_by_the_library(index, tmp_path, text):
    locations = index([1])
    locations.close()
    path = tmp_path / "b.idx"
    path.write_bytes(text.encode())
    keys, offsets = recordio.frames.index_file.read_index(path)
    locations = IndexLocations(str(path))
    assert locations.table(0, 9).tolist() == np.stack([keys, offsets], -1).tolist()
    locations.close()


@pytest.mark.parametrize(
    "text",
    ["1\t2\t3\n4\n", "1\t2\n\n3\t4\n", "1 2\t3\n", "1\t2.5\n", "1\t0x8\n"]
    + ["9" * 25 + "\t0\n", "-" + "9" * 25 + "\t0\n"],
)
def test_lines_that_are_none_are_refused(tmp_path, text):
    path = tmp_path / "b.idx"
    path.write_bytes(text.encode())
    locations = IndexLocations(str(path))
    try:
        with pytest.raises(IndexFileError):
            locations.table(0, 9)
    finally:
        locations.close()
