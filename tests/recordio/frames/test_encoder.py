"""Frames are written as MXNet writes them, byte for byte."""

import mmap
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import RecordTooLargeError
from recordio.frames.encoder import MAGIC, MAX_RECORD_LENGTH, encode, encode_into

M = MAGIC

EXAMPLES = [
    (b"", "0a23d7ce00000000"),
    (b"a", "0a23d7ce0100000061000000"),
    (b"abcd", "0a23d7ce0400000061626364"),
    (b"abcde", "0a23d7ce050000006162636465000000"),
    (M, "0a23d7ce00000020 0a23d7ce00000060"),
    (M + b"ab", "0a23d7ce00000020 0a23d7ce0200006061620000"),
    (b"abcd" + M, "0a23d7ce0400002061626364 0a23d7ce00000060"),
    (
        b"abcd" + M + b"efgh" + M + b"ij",
        "0a23d7ce0400002061626364 0a23d7ce0400004065666768 0a23d7ce02000060696a0000",
    ),
    (M + M, "0a23d7ce00000020 0a23d7ce00000040 0a23d7ce00000060"),
    (b"a" + M + b"bcd", "0a23d7ce08000000610a23d7ce626364"),
    (b"abcd" + M[:3], "0a23d7ce07000000616263640a23d700"),
]


@pytest.mark.parametrize(("payload", "expected"), EXAMPLES)
def test_examples_of_the_format_description(payload, expected):
    assert encode(payload) == bytes.fromhex(expected)


def test_golden_payloads_give_the_golden_file(golden, golden_payloads):
    assert b"".join(map(encode, golden_payloads)) == (golden / "frames.rec").read_bytes()


def escaped_words(payload):
    return sum(payload[i : i + 4] == M for i in range(0, len(payload) - 3, 4))


@given(st.lists(st.one_of(st.just(M), st.binary(max_size=5)), max_size=40).map(b"".join))
def test_size_is_head_padded_payload_and_a_word_for_each_escaped_one(payload):
    assert len(encode(payload)) == 8 + (len(payload) + 3) // 4 * 4 + 4 * escaped_words(payload)


@given(st.lists(st.one_of(st.just(M), st.binary(max_size=5)), max_size=40).map(b"".join))
def test_magic_stands_only_at_heads(payload):
    frame = encode(payload)
    words = sum(frame[i : i + 4] == M for i in range(0, len(frame), 4))
    assert words == 1 + escaped_words(payload)


@pytest.mark.parametrize("words", [255, 256, 257, 511, 512, 1000])
def test_magic_words_are_found_at_every_place_of_long_payloads(words):
    for place in {0, 1, words // 2, 255, 256, words - 2, words - 1} & set(range(words)):
        payload = bytearray(4 * words)
        payload[4 * place : 4 * place + 4] = M
        assert len(encode(payload)) == 8 + 4 * words + 4


@pytest.mark.parametrize(
    "payload",
    [
        bytearray(b"abcdef"),
        memoryview(b"xabcdefx")[1:7],
        np.frombuffer(b"abcdef", np.uint8),
        np.frombuffer(b"abcdef", np.int16),
        array("b", b"abcdef"),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_any_contiguous_bytes_are_taken(payload):
    assert encode(payload) == encode(b"abcdef")


@pytest.mark.parametrize("payload", ["text", 7, None, np.zeros(8, np.uint8)[::2]])
def test_anything_else_is_refused(payload):
    with pytest.raises(TypeError):
        encode(payload)


def test_empty_arrays_are_empty_records():
    assert encode(np.zeros((0, 3), np.float32)) == encode(b"")


def test_two_to_the_29_bytes_are_refused_and_one_less_is_not():
    with mmap.mmap(-1, 2**29) as zeros, memoryview(zeros) as view:
        with pytest.raises(RecordTooLargeError, match="536870912"):
            encode(view)
        buffer = bytearray(4)
        with pytest.raises(RecordTooLargeError):
            encode_into(buffer, 0, view)
        # One byte less does not fit into this buffer, but is no error.
        assert encode_into(buffer, 0, view[:MAX_RECORD_LENGTH]) == -1


@given(st.lists(st.binary(max_size=30), max_size=10), st.integers(0, 100))
def test_encode_into_fills_a_buffer_or_leaves_it_alone(payloads, size):
    buffer = bytearray(b"\xaa" * size)
    position, expected = 0, b""
    for payload in payloads:
        frame = encode(payload)
        end = encode_into(buffer, position, payload)
        if position + len(frame) > size:
            assert end == -1
        else:
            expected += frame
            assert end == len(expected)
            position = end
    assert buffer == expected + b"\xaa" * (size - len(expected))


@pytest.mark.parametrize("position", [-1, 9, 2**40])
def test_encode_into_refuses_positions_outside(position):
    with pytest.raises(ValueError, match="outside"):
        encode_into(bytearray(8), position, b"")


def test_encode_into_needs_a_writable_buffer():
    with pytest.raises((TypeError, ValueError, BufferError)):
        encode_into(bytes(100), 0, b"abc")
