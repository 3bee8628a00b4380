"""TensorFlow's `Example` messages, and bytes that are none."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import RecordIOError
from recordio.containers.tf_example import decode_example
from recordio.tools.convert.tf_example import encode_example, varint

features = st.dictionaries(
    st.text(max_size=9),
    st.lists(st.binary(max_size=9), min_size=1, max_size=4)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4)
    | st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4),
    max_size=4,
)


@given(features)
def test_there_and_back(example):
    assert decode_example(encode_example(example)) == example


@given(st.binary(max_size=60))
def test_any_bytes_give_features_or_an_error(data):
    try:
        found = decode_example(data)
    except RecordIOError:
        return
    assert all(isinstance(name, str) and isinstance(values, list) for name, values in found.items())


@given(features, st.data())
def test_truncated_messages_give_features_or_an_error(example, data):
    whole = encode_example(example)
    with contextlib.suppress(RecordIOError):
        decode_example(whole[: data.draw(st.integers(0, len(whole)))])


def length(content):
    return bytes([len(content)]) + content


def test_numbers_that_are_not_packed_are_read():
    floats = b"\x0d\0\0\xc0\x3f" + b"\x0d\0\0\0\x40"
    integers = b"\x08" + b"\xff" * 9 + b"\x01" + b"\x08\xac\x02"
    entries = b""
    for name, number, items in ((b"f", 0x12, floats), (b"i", 0x1A, integers)):
        value = bytes([number]) + length(items)
        entries += b"\x0a" + length(b"\x0a" + length(name) + b"\x12" + length(value))
    assert decode_example(b"\x0a" + length(entries)) == {"f": [1.5, 2.0], "i": [-1, 300]}


def test_unknown_fields_are_passed_over():
    known = encode_example({"x": [1]})
    assert decode_example(b"\x18\x05" + known + b"\x25\0\0\0\0" + b"\x32\x01z") == {"x": [1]}


@pytest.mark.parametrize(
    "data",
    [b"\x0a", b"\x0a\x05ab", b"\x0b", b"\x0a" + b"\xff" * 11, b"\x0a\x04\x0a\x02\x0a\x01"],
)
def test_damage_is_named(data):
    with pytest.raises(RecordIOError, match=r"no tf\.train\.Example"):
        decode_example(data)


def test_endless_lists_of_numbers_are_refused_where_they_are_wanted():
    data = encode_example({"label": [3]})
    items = b"\x0a" + varint(5 << 22) + bytes(5 << 22)
    integers = b"\x1a" + varint(len(items)) + items
    entry = b"\x0a\x04many\x12" + varint(len(integers)) + integers
    features = b"\x0a" + varint(len(entry)) + entry
    data += b"\x0a" + varint(len(features)) + features
    with pytest.raises(RecordIOError, match="more than 4194304 numbers"):
        decode_example(data)
    assert decode_example(data, {"label"}) == {"label": [3], "many": []}


def test_the_bytes_of_an_example():
    assert encode_example({"x": [1]}).hex() == "0a0c0a0a0a017812051a030a0101"
