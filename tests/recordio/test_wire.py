"""The wire format of Protocol Buffers: fields, groups, and random bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio.wire import fields

NUMBERS = st.integers(1, (1 << 29) - 1)
VALUES = st.one_of(
    st.tuples(NUMBERS, st.just(0), st.integers(0, 2**64 - 1)),
    st.tuples(NUMBERS, st.just(2), st.binary(max_size=20)),
    st.tuples(NUMBERS, st.just(1), st.binary(min_size=8, max_size=8)),
    st.tuples(NUMBERS, st.just(5), st.binary(min_size=4, max_size=4)),
)


def varint(value):
    groups = [value >> shift & 0x7F for shift in range(0, 64, 7) if value >> shift] or [0]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def message(parts):
    data = b""
    for number, kind, value in parts:
        data += varint(number << 3 | kind)
        data += varint(value) if kind == 0 else varint(len(value)) * (kind == 2) + value
    return data


def listed(data):
    return [
        (number, kind, value if kind == 0 else data[slice(*value)])
        for number, kind, value in fields(data)
    ]


@given(st.lists(VALUES, max_size=6))
def test_fields_are_read_as_they_were_written(parts):
    assert listed(message(parts)) == parts


@given(VALUES)
def test_a_field_that_is_cut_off_is_an_error(part):
    data = message([part])
    for size in range(1, len(data)):
        with pytest.raises(ValueError):
            listed(data[:size])


@given(st.binary(max_size=80))
def test_random_bytes_are_fields_within_them_or_an_error(data):
    try:
        found = list(fields(data))
    except ValueError:
        return
    for number, kind, value in found:
        assert number >= 1
        assert kind in (0, 1, 2, 5)
        assert kind == 0 or 0 <= value[0] <= value[1] <= len(data)


def test_groups_are_passed_over():
    inside = message([(7, 0, 5)])
    data = varint(3 << 3 | 3) + inside + varint(3 << 3 | 4) + message([(1, 2, b"a")])
    assert listed(data) == [(1, 2, b"a")]
    assert listed(b"") == []


@pytest.mark.parametrize("data", [b"\xff" * 12, b"\x80", b"\x08\x80", b"\0\0", b"\x0f", b"\x0b"])
def test_no_message(data):
    with pytest.raises(ValueError):
        listed(data)
