"""Image headers are packed and unpacked as MXNet does it."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import IRHeader, RecordHeaderError, pack, pack_img, unpack, unpack_img
from recordio.formats import by_opencv

IDS = st.integers(0, 2**64 - 1)
FLOATS = st.floats(width=32, allow_nan=False)


def header_of(label, flag=9):
    return IRHeader(flag, label, 7, 1)


@pytest.mark.parametrize(
    "label", [3, 3.0, True, np.float32(3), np.int64(3), np.uint8(3), Fraction(3)], ids=repr
)
def test_numbers_are_stored_in_the_header_and_the_flag_is_lost(label):
    if isinstance(label, bool):
        expected = struct.pack("<IfQQ", 0, 1.0, 7, 1)
    else:
        expected = struct.pack("<IfQQ", 0, 3.0, 7, 1)
    assert pack(header_of(label), b"content") == expected + b"content"


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ([1, 2.5], [1, 2.5]),
        ((1,), [1]),
        (np.array([[1, 2], [3, 4]]), [1, 2, 3, 4]),
        (np.array(5.0), [5]),
        (np.array([1, 2], np.float16), [1, 2]),
        (np.array([True, False]), [1, 0]),
        (np.array([2**24 + 1], np.int64), [2**24]),
        ([Fraction(1, 2), 2**70], [0.5, 2.0**70]),
        (np.arange(6.0)[::2], [0, 2, 4]),
        (np.array([1.0], ">f8"), [1]),
        (np.bool_(True), [1]),
        ([], []),
        (np.zeros((0, 5)), []),
    ],
    ids=repr,
)
def test_everything_else_is_a_vector_behind_the_header(label, values):
    expected = struct.pack(f"<IfQQ{len(values)}f", len(values), 0, 7, 1, *values)
    assert pack(header_of(label), b"content") == expected + b"content"


@pytest.mark.parametrize("label", [None, "1", b"1", [None], ["1"], [1, "x"], {1: 2}, [1j]])
def test_labels_that_are_no_numbers_are_refused(label):
    with pytest.raises(TypeError, match="label"):
        pack(header_of(label), b"content")


def test_the_examples_of_the_format_description():
    assert pack((0, 3.0, 7, 0), b"\xff\xd8\xff\xd9").hex() == (
        "000000000000404007000000000000000000000000000000ffd8ffd9"
    )
    assert pack((0, [1.0, 2.5], 8, 0), b"IMG").hex() == (
        "0200000000000000080000000000000000000000000000000000803f00002040494d47"
    )


def test_refused_headers_and_contents():
    with pytest.raises(TypeError):
        pack((0, 1.0, 7), b"")
    with pytest.raises(TypeError):
        pack(header_of(1.0), "text")
    for number in (-1, 2**64, 1.5):
        with pytest.raises(struct.error):
            pack((0, 1.0, number, 0), b"")


@given(FLOATS, IDS, IDS, st.binary())
def test_round_trip_of_scalars(label, number, high, content):
    header, rest = unpack(pack((0, label, number, high), content))
    assert header == IRHeader(0, label, number, high)
    assert type(header.label) is float
    assert rest == content


@given(st.lists(FLOATS, min_size=1), IDS, st.binary())
def test_round_trip_of_vectors(labels, number, content):
    record = pack((0, labels, number, 0), content)
    header, rest = unpack(record)
    assert (header.flag, header.id, rest) == (len(labels), number, content)
    assert header.label.dtype == np.float32
    assert header.label.tolist() == labels
    assert pack(header, rest) == record


def test_an_empty_vector_comes_back_as_zero():
    assert unpack(pack(header_of([]), b"x"))[0].label == 0.0


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
@pytest.mark.parametrize("label", [1.5, [1, 2, 3]])
def test_content_has_the_type_of_the_input_and_labels_view_it(kind, label):
    record = kind(pack(header_of(label), b"content"))
    header, content = unpack(record)
    assert type(content) is kind
    assert content == b"content"
    if label != 1.5:
        assert not header.label.flags.writeable
        assert np.shares_memory(header.label, np.frombuffer(record, np.uint8))


@pytest.mark.parametrize("size", range(36))
def test_short_records_are_refused_by_the_error_that_scripts_expect(size):
    record = pack(header_of([1, 2, 3]), b"")[:size]
    with pytest.raises(RecordHeaderError) as caught:
        unpack(record)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, struct.error)


def test_a_flag_larger_than_any_record():
    with pytest.raises(RecordHeaderError, match="4294967295 labels"):
        unpack(struct.pack("<IfQQ", 2**32 - 1, 0, 0, 0) + bytes(100))


@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_unpacked_or_refused(data):
    try:
        header, content = unpack(data)
    except RecordHeaderError:
        return
    assert len(content) == len(data) - 24 - 4 * header.flag


IMAGE = (np.arange(20 * 30 * 3) % 251).astype(np.uint8).reshape(20, 30, 3)


@pytest.mark.parametrize("shape", [(20, 30), (20, 30, 3), (20, 30, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("suffix", [".png", ".PNG"])
def test_png_keeps_pixels(shape, dtype, suffix):
    if dtype == np.uint16 and shape[2:] == (4,) and not by_opencv.available():
        pytest.skip("only OpenCV reads four channels of 16 bits")
    image = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    header, decoded = unpack_img(pack_img((0, 2.0, 7, 0), image, img_fmt=suffix))
    assert header == IRHeader(0, 2.0, 7, 0)
    assert decoded.dtype == dtype
    assert np.array_equal(decoded, image)


@pytest.mark.parametrize(("iscolor", "ndim"), [(-1, 3), (0, 2), (1, 3)])
def test_colour_modes(iscolor, ndim):
    record = pack_img((0, [1, 2], 7, 0), IMAGE, img_fmt=".png")
    header, decoded = unpack_img(memoryview(record), iscolor)
    assert decoded.ndim == ndim
    assert header.label.tolist() == [1, 2]


@pytest.mark.parametrize("suffix", [".jpg", ".JPEG"])
def test_jpeg_quality_is_clamped(suffix):
    sizes = [len(pack_img((0, 0, 0, 0), IMAGE, q, suffix)) for q in (-5, 0, 50, 95, 100, 900)]
    assert sizes[0] == sizes[1] < sizes[2] < sizes[3] < sizes[4] == sizes[5]
    assert pack_img((0, 0, 0, 0), IMAGE, 95, suffix) == pack_img((0, 0, 0, 0), IMAGE, 95, ".jpg")


def test_png_compression_is_clamped():
    levels = {q: pack_img((0, 0, 0, 0), IMAGE, q, ".png") for q in (-5, 0, 9, 95)}
    assert levels[-5] == levels[0]
    assert levels[9] == levels[95] == pack_img((0, 0, 0, 0), IMAGE, img_fmt=".png")
    assert len(levels[0]) > len(levels[9])


def test_other_formats_and_unknown_ones():
    _, decoded = unpack_img(pack_img((0, 0, 0, 0), IMAGE, img_fmt=".bmp"))
    assert np.array_equal(decoded, IMAGE)
    with pytest.raises(by_opencv.errors()):
        pack_img((0, 0, 0, 0), IMAGE, img_fmt="jpg")


@pytest.mark.parametrize("content", [b"", b"no image", b"\xff\xd8\xff\xd9"])
def test_what_cannot_be_decoded_is_none(content):
    header, image = unpack_img(pack((0, 1.0, 5, 0), content))
    assert header.id == 5
    assert image is None
