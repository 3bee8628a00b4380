"""The size of an image from its header, and the limit on it."""

import contextlib
import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image

from iterators.images.codecs.jpeg import jpeg
from recordio import ImageDecodeError, IRHeader, pack, unpack_img
from recordio.image_size import DEFAULT_MAX_PIXELS, check_pixels, image_size, open_image


def saved(kind, size=(37, 21), **options):
    """An image as a file of some kind."""
    file = io.BytesIO()
    Image.new("RGB", size, (1, 2, 3)).save(file, kind, **options)
    return file.getvalue()


def png(width, height):
    """A few bytes that announce a PNG image of any size, whose pixels are not all there."""

    def chunk(name, body):
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(99)))


@pytest.mark.parametrize(
    "kind", ["png", "jpeg", "webp", "gif", "bmp", "tiff", "ppm", "jpeg2000", "dib"]
)
def test_the_size_of_every_common_format(kind):
    assert image_size(saved(kind)) == (37, 21)
    assert image_size(memoryview(saved(kind))) == (37, 21)


def test_the_size_of_unusual_jpeg_files():
    data = saved("jpeg", progressive=True, exif=b"Exif\0\0" + bytes(3000), comment=b"x" * 500)
    assert image_size(data) == (37, 21)
    assert image_size(data[:2] + b"\xff" * 5 + data[2:]) == (37, 21)  # fill bytes


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff", b"text", b"GIF89a", saved("png")[:15]])
def test_what_has_no_size(data):
    with pytest.raises(ImageDecodeError):
        image_size(data)


def test_damaged_headers_are_this_error_alone():
    random = np.random.default_rng(1)
    for kind in ("png", "jpeg", "webp", "gif", "bmp", "tiff", "ppm", "jpeg2000"):
        data = np.frombuffer(saved(kind), np.uint8)
        for _ in range(60):
            damaged = data.copy()[: random.integers(1, len(data))]
            damaged[random.integers(0, min(len(damaged), 99), 3) % len(damaged)] ^= 255
            with contextlib.suppress(ImageDecodeError):
                image_size(damaged.tobytes())


def test_no_limit_of_pillow_is_in_the_way(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    for kind in ("tiff", "bmp", "gif", "jpeg2000"):
        with open_image(io.BytesIO(saved(kind))) as image:
            assert image.size == (37, 21)
    with pytest.raises(ImageDecodeError, match=r"raise PIL.Image.MAX_IMAGE_PIXELS"):
        image_size(saved("webp"))


def test_the_limit():
    assert DEFAULT_MAX_PIXELS == jpeg.DEFAULT_MAX_PIXELS
    check_pixels((1 << 13, 1 << 13))
    check_pixels((1 << 20, 1 << 20), None)
    with pytest.raises(ImageDecodeError, match="raise max_pixels if it is meant"):
        check_pixels((1 << 13, (1 << 13) + 1))


def test_unpack_img_refuses_what_is_too_large():
    record = pack(IRHeader(0, 1.0, 5, 0), png(30000, 30000))
    with pytest.raises(ImageDecodeError, match="30000 x 30000 .* raise max_pixels"):
        unpack_img(record)
    small = pack(IRHeader(0, 1.0, 5, 0), saved("png"))
    with pytest.raises(ImageDecodeError, match="more than the limit of 99"):
        unpack_img(small, max_pixels=99)
    assert unpack_img(small, max_pixels=37 * 21)[1].shape == (21, 37, 3)
    for limit in (DEFAULT_MAX_PIXELS, None):
        assert unpack_img(pack(IRHeader(0, 1.0, 5, 0), b"GIF89a"), max_pixels=limit)[1] is None


def test_unpack_img_reads_what_has_no_known_header_when_asked_to():
    done, hdr = cv2.imencode(".hdr", np.ones((4, 6, 3), np.float32))
    assert done
    record = pack(IRHeader(0, 1.0, 5, 0), hdr.tobytes())
    assert unpack_img(record)[1] is None
    assert unpack_img(record, max_pixels=None)[1].shape == (4, 6, 3)
