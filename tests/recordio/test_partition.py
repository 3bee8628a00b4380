"""Parts are those of MXNet's iterators: disjoint, complete and in order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.frames.encoder import encode
from recordio.frames.frame import find_head, scan_offsets
from recordio.partition import (
    balanced_part,
    byte_range,
    part_by_bytes,
    part_by_count,
    part_by_lines,
)


@given(st.integers(0, 200), st.integers(1, 60))
def test_counted_parts_are_disjoint_complete_and_in_order(count, num_parts):
    parts = [part_by_count(count, num_parts, k) for k in range(num_parts)]
    assert [position for part in parts for position in part] == list(range(count))
    assert {len(part) for part in parts[: count // max(1, -(-count // num_parts))]} <= {
        -(-count // num_parts)
    }


@given(st.integers(0, 200), st.integers(1, 60))
def test_balanced_parts_are_disjoint_complete_and_differ_by_one(count, num_parts):
    parts = [balanced_part(count, num_parts, k) for k in range(num_parts)]
    assert [position for part in parts for position in part] == list(range(count))
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] - sizes[-1] <= 1


def test_five_records_in_four_parts():
    assert [list(part_by_count(5, 4, k)) for k in range(4)] == [[0, 1], [2, 3], [4], []]


def test_a_part_of_the_bytes_ends_at_a_multiple_of_four():
    assert [byte_range([100], 3, k) for k in range(3)] == [(0, 36), (36, 72), (72, 100)]
    assert [byte_range([8], 4, k) for k in range(4)] == [(0, 4), (4, 8), (8, 8), (8, 8)]
    assert byte_range([], 2, 1) == byte_range([0, 0], 2, 1) == (0, 0)


files_of_records = st.lists(st.lists(st.binary(max_size=40), max_size=8), min_size=1, max_size=4)


@given(files_of_records, st.integers(1, 12), st.booleans())
def test_parts_of_the_bytes_hold_what_a_search_for_heads_finds(files, num_parts, as_array):
    data = [b"".join(map(encode, payloads)) for payloads in files]
    sizes = [len(file) for file in data]
    offsets = [scan_offsets(file) for file in data]
    if not as_array:
        offsets = [table.tolist() for table in offsets]
    everything = b"".join(data)
    found = [[] for _ in files]
    for k in range(num_parts):
        begin, end = byte_range(sizes, num_parts, k)
        parts = part_by_bytes(sizes, offsets, num_parts, k)
        # The rule as it is stated: both ends move forward to the next head.
        first, last = find_head(everything, begin), find_head(everything, end)
        starts = np.cumsum([0, *sizes[:-1]])
        selected = [
            start + table[position]
            for start, table, part in zip(starts, offsets, parts, strict=True)
            for position in part
        ]
        assert selected == [
            start + offset
            for start, table in zip(starts, offsets, strict=True)
            for offset in table
            if first <= start + offset < last
        ]
        for positions, part in zip(found, parts, strict=True):
            positions += part
    assert found == [list(range(len(payloads))) for payloads in files]


@pytest.mark.parametrize(("num_parts", "part_index"), [(0, 0), (-1, 0), (3, 3), (3, -1), (1, 1)])
def test_parts_that_do_not_exist(num_parts, part_index):
    for part in (
        lambda: part_by_count(5, num_parts, part_index),
        lambda: byte_range([8], num_parts, part_index),
        lambda: part_by_bytes([8], [[0]], num_parts, part_index),
    ):
        with pytest.raises(ValueError, match=r"num_parts|part_index"):
            part()


def test_other_mistakes():
    with pytest.raises(TypeError):
        part_by_count(5, 2.0, 0)
    with pytest.raises(ValueError, match="multiple of 4"):
        byte_range([8, 9], 2, 0)
    with pytest.raises(ValueError, match="2 sizes"):
        part_by_bytes([8, 8], [[0]], 2, 0)


def test_a_cut_between_lines_moves_behind_the_next_one():
    parts = [part_by_lines([12], np.array([0, 4, 6]), 3, k) for k in range(3)]
    assert parts == [range(0, 2), range(2, 3), range(3, 3)]
