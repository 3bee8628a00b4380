"""recordio.formats.pnm: raw images, and what is no raw image."""

import io
import itertools

import cv2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from recordio import decode_image
from recordio.errors import ImageDecodeError
from recordio.formats import pnm
from recordio.formats.image_header import read_header

RANDOM = np.random.default_rng(8)
COLOUR = RANDOM.integers(0, 256, (5, 7, 3), np.uint8)
GREY = RANDOM.integers(0, 256, (5, 7, 1), np.uint8)

#: Headers of a 3 x 2 image that every decoder reads.
ORDINARY = [
    b"P6\n3 2\n255\n",
    b"P6 3 2 255 ",
    b"P6\t3\t2\t255\t",
    b"P6\r\n3\r\n2\r\n255\n",
    b"P6\n\n  3   2 \n 255\n",
    b"P6\v3\f2\v255\f",
    b"P6\n# by hand\n3 2\n255\n",
    b"P6\n# one\n# two 9 9 255\n3 # side\n2 #\n#\r255\n",
    b"P6\n003 0002\n00255\n",
]

#: Headers that are left to the general decoder, whatever it makes of them.
OTHER = [
    b"",
    b"P",
    b"P6",
    b"P6\n",
    b"P63 2 255\n",
    b"P6#\n3 2 255\n",
    b"P6\n3#\n2 255\n",
    b"P6\n3 2#\n255\n",
    b"P6\n3 2\n255#\n",
    b"P6\n3 2\n255",
    b"P6\n3 2\n",
    b"P6\n-3 2\n255\n",
    b"P6\n+3 2\n255\n",
    b"P6\n3.0 2\n255\n",
    b"P6\n0 2\n255\n",
    b"P6\n3 0\n255\n",
    b"P6\n3 2\n0\n",
    b"P6\n3 2\n254\n",
    b"P6\n3 2\n256\n",
    b"P6\n3 2\n65535\n",
    b"P6\n3 2\n99999999999\n",
    b"P6\n99999999999 2\n255\n",
    b"P6\n# a comment without end",
    b"P6\n3 2\n# a comment without end 255",
    b"P6\nx3 2\n255\n",
    b"p6\n3 2\n255\n",
    b"P1\n3 2\n",
    b"P2\n3 2\n255\n",
    b"P3\n3 2\n255\n",
    b"P4\n3 2\n",
    b"P7\nWIDTH 3\nHEIGHT 2\nDEPTH 3\nMAXVAL 255\nENDHDR\n",
    b" P6\n3 2\n255\n",
    b"P6\0003 2\n255\n",
]


@pytest.mark.parametrize("start", ORDINARY)
@pytest.mark.parametrize("kind", ["P5", "P6"])
def test_headers_in_any_spelling_are_read_as_others_read_them(kind, start):
    start = start.replace(b"P6", kind.encode())
    channels = 1 if kind == "P5" else 3
    pixels = bytes(range(10, 10 + 6 * channels))
    data = start + pixels
    assert pnm.header(data) == (3, 2, channels, len(start))
    image = pnm.decode(data, channels)
    assert image.tobytes() == pixels
    assert image.shape == (2, 3, channels)
    with Image.open(io.BytesIO(data)) as other:
        assert np.array(other).tobytes() == pixels
    other = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert np.array_equal(other.reshape(image.shape)[..., ::-1], image)


@pytest.mark.parametrize("start", OTHER)
def test_other_headers_are_left_to_the_general_decoder(start):
    for data in (start, start + bytes(100)):
        assert pnm.header(data) is None
        assert pnm.decode(data, 3) is None
        assert pnm.decode(data, 1) is None


@pytest.mark.parametrize(("image", "channels"), [(COLOUR, 3), (GREY, 1)])
def test_images_come_back_as_they_were_written(image, channels):
    data = pnm.encode(image)
    assert pnm.header(data)[:3] == (7, 5, channels)
    assert np.array_equal(pnm.decode(data, channels), image)
    assert np.array_equal(decode_image(data, channels=channels), image)
    assert read_header(data).size == (7, 5)


def test_what_is_written_is_what_opencv_writes():
    assert pnm.encode(COLOUR) == cv2.imencode(".ppm", COLOUR[..., ::-1])[1].tobytes()
    assert pnm.encode(GREY) == cv2.imencode(".pgm", GREY)[1].tobytes()


@pytest.mark.parametrize(
    "image", [np.zeros((2, 2, 2), "u1"), np.zeros((2, 2, 4), "u1"), np.zeros((0, 2, 3), "u1")]
)
def test_only_grey_and_rgb_can_be_written(image):
    with pytest.raises(ValueError, match="1 or 3 bytes"):
        pnm.encode(image)


@pytest.mark.parametrize("image", [COLOUR, GREY], ids=["colour", "grey"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_colour_and_grey_become_of_each_other_what_opencv_makes_of_them(image, channels):
    data = pnm.encode(image)
    if channels == 4:
        with pytest.raises(ImageDecodeError, match="channels, not the 4"):
            decode_image(data, channels=4)
        return
    mode = cv2.IMREAD_GRAYSCALE if channels == 1 else cv2.IMREAD_COLOR
    other = cv2.imdecode(np.frombuffer(data, np.uint8), mode).reshape(5, 7, channels)
    assert np.array_equal(decode_image(data, channels=channels), other[..., ::-1])


def test_all_greys_of_colours_are_those_of_opencv():
    steps = np.arange(0, 256, 5, np.uint8)
    cube = np.array(list(itertools.product(steps, steps, steps)), np.uint8)[None]
    data = pnm.encode(cube)
    other = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert np.array_equal(pnm.decode(data, 1)[..., 0], other)
    greys = np.arange(256, dtype=np.uint8).repeat(3)[None].reshape(1, 256, 3)
    assert np.array_equal(pnm.decode(pnm.encode(greys), 1)[0, :, 0], np.arange(256))


@pytest.mark.parametrize("image", [COLOUR, GREY], ids=["colour", "grey"])
def test_truncation_at_every_byte_is_an_error_that_says_what_is_missing(image):
    data = pnm.encode(image)
    start = pnm.header(data).start
    for length in range(len(data)):
        with pytest.raises(ImageDecodeError) as caught:
            decode_image(data[:length])
        if length < start:
            assert pnm.header(data[:length]) is None
        else:
            assert f"are {image.nbytes} bytes, {length - start} are there" in str(caught.value)
    assert np.array_equal(decode_image(data + b"P6\n", channels=image.shape[2]), image)


@pytest.mark.parametrize(
    "size",
    ["8193 8193", "9999999999 1", "1 9999999999", "4294967297 1", "9999999999 9999999999",
     "2147483648 4294967296", "67108865 1"],
)  # fmt: skip
def test_huge_sizes_are_refused_before_anything_is_read(size):
    data = f"P5\n{size}\n255\n".encode() + bytes(16)
    with pytest.raises(ImageDecodeError, match="too large") as caught:
        decode_image(data)
    assert size.replace(" ", " x ") in str(caught.value)


def test_the_limit_is_exact():
    data = pnm.encode(COLOUR)
    assert decode_image(data, max_pixels=35).shape == (5, 7, 3)
    with pytest.raises(ImageDecodeError, match="limit of 34"):
        decode_image(data, max_pixels=34)
    with pytest.raises(ImageDecodeError, match="limit of 34"):
        pnm.decode(data, 3, max_pixels=34)


@given(st.binary(max_size=40), st.sampled_from([b"", b"P5", b"P6", b"P6\n3 2\n", b"P5 1 1 255 "]))
@example(b"\n1 1\n255\n\0", b"P5")
def test_random_bytes_are_an_image_an_error_or_nothing(tail, start):
    data = start + tail
    try:
        header = pnm.header(data)
    except ImageDecodeError:
        return
    if header is None:
        return
    assert header.start + header.width * header.height * header.channels <= len(data)
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (header.width, header.height)
        assert np.array_equal(
            np.array(image).reshape(header.height, header.width, header.channels),
            pnm.decode(data, header.channels),
        )


def test_any_buffer_will_do_and_channels_are_checked():
    data = pnm.encode(GREY)
    for view in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert np.array_equal(pnm.decode(view, 1), GREY)
    with pytest.raises(ValueError, match="1 or 3"):
        pnm.decode(data, 4)
