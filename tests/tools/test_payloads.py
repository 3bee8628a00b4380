"""Kinds of payloads that are recognised in records."""

import io
import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recordio import IRHeader, RecordIOError, pack
from recordio.formats.table import kind_of
from recordio.payload import read_payload
from recordio.tools import payloads
from recordio.tools.npy import decode_npy, encode_npy, npy_header
from recordio.tools.payloads import (
    check_content,
    describe,
    labels_of,
    number_text,
    numbers_text,
    raw_values_in,
)


def encoded(name, mode="RGB"):
    target = io.BytesIO()
    Image.new(mode, (5, 3)).save(target, name)
    return target.getvalue()


@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp", "bmp", "tiff", "jpeg2000", "ppm"])
def test_images_are_known_by_their_first_bytes(kind):
    content = encoded(kind)
    assert kind_of(content) == kind
    assert describe(content, kind).startswith("5 x 3 x ")
    check_content(content)
    with pytest.raises(RecordIOError):
        check_content(content[:17])


@given(st.binary(max_size=200))
def test_any_record_is_taken_apart(record):
    payload = read_payload(record)
    assert bytes(record).endswith(bytes(payload.content))
    try:
        describe(payload.content, payload.kind)
    except RecordIOError:
        assert payload.kind not in ("other", "empty")


@pytest.mark.parametrize("label", [3.0, [1, 2, 3]])
@pytest.mark.parametrize("content", [b"", b"bytes of any kind", b"\x89PNG\r\n\x1a\n"])
def test_headers_are_recognised(label, content):
    payload = read_payload(pack(IRHeader(0, label, 7, 0), content))
    assert payload.header.id == 7
    assert bytes(payload.content) == content


@pytest.mark.parametrize("label", [0.0, 3.0, -1.0, 0.25, np.nan, [1, 2, 3]])
def test_headers_with_a_second_id_are_recognised(label):
    payload = read_payload(pack(IRHeader(0, label, 7, 9), b"bytes of any kind"))
    assert (payload.header.id, payload.header.id2) == (7, 9)
    assert bytes(payload.content) == b"bytes of any kind"


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"short",
        b"a text of more than twenty-four bytes",
        encoded("png"),
        np.arange(20, dtype="<i4").tobytes(),
        np.arange(1, 20, dtype="<f4").tobytes(),
        np.arange(60, dtype="u1").tobytes(),
        struct.pack("<5Q", *[3 << 40] * 5),
    ],
)
def test_records_without_header_are_recognised(record):
    payload = read_payload(record)
    assert payload.header is None
    assert bytes(payload.content) == record


@given(st.floats(width=32))
def test_the_text_of_a_number_reads_back_as_the_same(value):
    again = np.float32(number_text(value))
    assert again.tobytes() == np.float32(value).tobytes() or value != value


def test_every_truncation_of_an_array_is_an_error():
    whole = encode_npy(np.arange(3))
    for size in range(len(whole)):
        with pytest.raises(RecordIOError):
            decode_npy(whole[:size], path="a.rec", record=4)
    with pytest.raises(RecordIOError, match=r"a\.rec, record 4: .* there are 25"):
        decode_npy(whole + b"x", path="a.rec", record=4)


def headed(text):
    header = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000, 1000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 10000000000000000000), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 0), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (0,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': 3, }",
        "{'descr': 'x', 'fortran_order': False, 'shape': (), }",
        "__import__('os').abort()",
        "(" * 100,
        "",
    ],
)
def test_headers_of_arrays_that_lie_are_errors(text):
    with pytest.raises(RecordIOError):
        decode_npy(headed(text))


@given(st.binary(max_size=80))
def test_any_bytes_give_an_array_or_an_error(data):
    try:
        decode_npy(b"\x93NUMPY\x01\x00" + data)
    except RecordIOError:
        return
    raise AssertionError("80 bytes are too short for a header")


def test_arrays_with_columns_first_are_read():
    target = io.BytesIO()
    np.save(target, np.asfortranarray(np.arange(6).reshape(2, 3)))
    np.testing.assert_array_equal(decode_npy(target.getvalue()), [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize("shape", [(3,), (1000, 1000, 7), ()])
def test_elements_of_arrays_begin_at_a_multiple_of_64(shape):
    header = npy_header(np.dtype("<f4"), shape)
    assert header.startswith(b"\x93NUMPY\x01\x00") and len(header) % 64 == 0


def test_numbers_are_as_short_as_they_can_be():
    assert [number_text(value) for value in (3.0, 0.10000000149011612, 1e20)] == [
        "3", "0.1", "100000002004087734272"
    ]  # fmt: skip
    array = np.array([[0.1, 2], [-0.0, 1e-7]], np.float32)
    assert numbers_text(array) == ["0.1", "2", "-0.0", "1e-07"]


def test_an_array_is_described_by_type_and_shape():
    assert describe(encode_npy(np.zeros((2, 3), "f4")), "npy") == "float32 (2, 3)"


def test_labels_of_a_header_are_a_list():
    assert labels_of(IRHeader(0, 3.0, 7, 0)) == [3.0]
    assert labels_of(IRHeader(2, np.array([1, 2.5], "f4"), 7, 0)) == [1.0, 2.5]


@pytest.mark.parametrize(
    ("pixels", "text"),
    [
        (np.zeros((3, 5), np.uint16), "5 x 3 x 1, 16 bits"),
        (np.zeros((3, 5), np.uint8), "5 x 3 x 1"),
        (np.zeros((3, 5), bool), "5 x 3 x 1, 1 bit"),
    ],
)
def test_bits_are_named_where_they_are_not_8(pixels, text):
    target = io.BytesIO()
    Image.fromarray(pixels).save(target, "PNG")
    assert describe(target.getvalue(), "png") == text


def test_images_are_described_upright(images):
    for kind in ("JPEG", "PNG", "WEBP", "TIFF", "AVIF"):
        content = images.turned(images.gradient(3, 5), kind, 6)
        assert describe(content, kind_of(content)).startswith("5 x 3"), kind


@pytest.mark.parametrize("kind", ["jpeg", "png", "gif", "webp", "bmp", "tiff", "jpeg2000", "ppm"])
def test_content_that_is_cut_is_refused(kind):
    target = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    Image.fromarray(noise).save(target, kind)
    check_content(target.getvalue())
    with pytest.raises(RecordIOError):
        check_content(target.getvalue()[: len(target.getvalue()) // 2])


def test_only_the_header_of_a_large_image_of_another_format_may_be_looked_at(monkeypatch):
    monkeypatch.setattr(payloads, "check_whole", partial(payloads.check_whole, max_pixels=14))
    monkeypatch.setattr(payloads, "DEFAULT_MAX_PIXELS", 14)
    check_content(encoded("png"))  # which shows by itself that it is whole
    with pytest.raises(RecordIOError, match="5 x 3 pixels.*--check none"):
        check_content(encoded("webp"))


def test_raw_values_are_told_from_other_bytes():
    for size, sides, shown in (
        (3072, (), "32 x 32 x 3"),
        (784, (), "28 x 28 x 1"),
        (1800, (20, 30, 3), "20 x 30 x 3"),
        (3072, (0, -5), "32 x 32 x 3"),
        (3072, (7, 7), "32 x 32 x 3"),
    ):
        with pytest.raises(RecordIOError, match=rf"as many as {shown} values.*encode them first"):
            check_content(bytes(size), sides)
    for size in (1, 48, 3071):
        assert not raw_values_in(bytes(size))
