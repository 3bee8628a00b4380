import contextlib
import struct

import cv2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordio import ImageDecodeError
from recordio.formats.image_header import read_image_header


def test_jpeg_header(images):
    header = read_image_header(images.jpeg(24, 36))
    assert header == (".jpg", 36, 24, 3, 8, True)
    assert read_image_header(images.jpeg(5, 7, channels=1)) == (".jpg", 7, 5, 1, 8, True)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_only_upright_jpegs_are_plain(images, orientation):
    assert read_image_header(images.jpeg(orientation=orientation)).plain == (orientation == 1)


def test_png_header(images):
    assert read_image_header(images.png(24, 36)) == (".png", 36, 24, 3, 8, True)
    assert read_image_header(images.png(24, 36, 4)).channels == 4
    assert read_image_header(images.png(24, 36, 1, "uint16"))[3:5] == (1, 16)


def test_pnm_header(images):
    data = cv2.imencode(".ppm", images.gradient(24, 36))[1].tobytes()
    assert read_image_header(data) == ("raw", 36, 24, 3, 8, True)
    with pytest.raises(ImageDecodeError, match="truncated"):
        read_image_header(data[:-1])
    data = cv2.imencode(".pgm", images.gradient(24, 36, 1))[1].tobytes()
    assert read_image_header(data) == ("raw", 36, 24, 1, 8, True)
    assert read_image_header(data.replace(b"255", b"254", 1)) is None
    assert read_image_header(b"P6 and then some text") is None


@pytest.mark.parametrize("kind", ["jpeg", "png"])
def test_truncation_at_every_byte_is_found(images, kind):
    data = getattr(images, kind)(12, 9)
    for size in range(len(data)):
        start = data[:size]
        if size > 8 or (kind == "jpeg" and size >= 3):
            with pytest.raises(ImageDecodeError, match="truncated|ends before"):
                read_image_header(start)
        elif size:
            assert kind == "png" or size < 3
            assert size == 8 or read_image_header(start) is None


def test_what_a_camera_appends_does_not_matter(images):
    for data in (images.jpeg(), images.png()):
        assert read_image_header(data + b"\0" * 1000) == read_image_header(data)


def test_a_truncated_file_filled_up_with_zeros_is_found(images):
    data = images.jpeg(60, 60)
    with pytest.raises(ImageDecodeError, match="truncated"):
        read_image_header(data[: len(data) // 2].ljust(len(data), b"\0"))


def test_the_end_marker_of_a_thumbnail_does_not_count(images):
    thumbnail = b"Exif\0\0MM\0*\0\0\0\x08\0\0" + images.jpeg(4, 4)
    data = images.jpeg()
    data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail + data[2:]
    assert read_image_header(data)
    with pytest.raises(ImageDecodeError, match="truncated"):
        read_image_header(data[:-3])


def test_flipped_bits_in_png_pixels_are_found(images):
    data = bytearray(images.png())
    data[data.index(b"IDAT") + 10] ^= 1
    with pytest.raises(ImageDecodeError, match="checksum in IDAT"):
        read_image_header(bytes(data))


def test_an_empty_file_is_refused():
    with pytest.raises(ImageDecodeError, match="empty"):
        read_image_header(b"")


def test_other_formats_are_left_to_the_decoder():
    assert read_image_header(b"hello") is None
    assert read_image_header(b"GIF89a") is None


@given(st.binary(), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"]))
def test_random_bytes_give_a_header_none_or_the_typed_error(tail, start):
    with contextlib.suppress(ImageDecodeError):
        read_image_header(start + tail)


@given(st.data())
def test_damaged_files_give_a_header_none_or_the_typed_error(images, data):
    original = data.draw(st.sampled_from([images.jpeg(8, 8, orientation=6), images.png(8, 8)]))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ImageDecodeError):
        read_image_header(bytes(damaged))
