"""recordio.formats.headers: turned by a quarter or not, without a look at the pixels."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from image_variants import variants
from PIL import Image, ImageOps

from recordio import ImageDecodeError
from recordio.formats.image_header import read_header

VARIANTS = variants()
TURNED = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x112, 3, 1, 6, 0, 0)
UPRIGHT = TURNED.replace(b"\0\x06\0\0", b"\0\x01\0\0")


def is_turned(data):
    """Whether width and height change their places."""
    return read_header(data).orientation >= 5


def png(*chunks):
    """A PNG file of these chunks between header and end; its pixels are not looked at."""
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", 6, 4, 8, 2, 0, 0, 0)),
            *chunks,
            (b"IEND", b""),
        )
    )


def jxl(orientation, *boxes):
    """A container of JPEG XL: a header, in two parts, and other boxes."""
    # Not in eights, 5 x 5, not all as usual, with extra fields, the first of which is this.
    bits = 4 << 3 | 4 << 17 | 1 << 27 | (orientation - 1) << 28
    stream = b"\xff\x0a" + bits.to_bytes(5, "little") + bytes(9)
    parts = [(b"jxlp", bytes(4) + stream[:3]), (b"jxlp", b"\x80\0\0\1" + stream[3:]), *boxes]
    return b"\0\0\0\x0cJXL \r\n\x87\n" + b"".join(
        struct.pack(">I", 8 + len(content)) + kind + content for kind, content in parts
    )


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_orientations_from_five_on_exchange_the_sides(kind, orientation):
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = orientation
    Image.new("RGB", (6, 4)).save(file, kind, exif=exif)
    assert is_turned(file.getvalue()) == (orientation >= 5)


def test_the_first_sound_chunk_of_a_png_file_counts_wherever_it_is():
    exif, upright, pixels = (b"eXIf", TURNED), (b"eXIf", UPRIGHT), (b"IDAT", b"")
    assert is_turned(png(exif, pixels)) and is_turned(png(pixels, exif))
    assert is_turned(png(exif, upright)) and not is_turned(png(upright, exif))
    assert not is_turned(png(pixels) + png(exif)[8:])  # behind the end
    damaged = bytearray(png(exif))
    damaged[-13] ^= 1  # the checksum
    assert not is_turned(damaged)


def test_exif_data_that_a_webp_file_does_not_announce_do_not_count():
    exif, file = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6
    Image.new("RGB", (6, 4)).save(file, "WEBP", exif=exif)
    data = bytearray(file.getvalue())
    data[20] &= ~8
    assert is_turned(file.getvalue()) and not is_turned(data)


@pytest.mark.parametrize("in_stream", [1, 3, 5, 8])
def test_jpeg_xl_is_turned_by_its_stream_alone(in_stream):
    for boxes in ((), ((b"Exif", bytes(4) + TURNED),), ((b"jbrd", b""),)):
        assert read_header(jxl(in_stream, *boxes)).orientation == in_stream


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["jpeg", "png", "webp"])
@pytest.mark.parametrize("number", [1, 3, 4, 6, 8, 9, 11])
def test_an_orientation_counts_as_in_pillow_whatever_its_type(name, number, order):
    data = VARIANTS.get(f"{name} orientation of type {number}, {order}")
    if data is None:
        pytest.skip("this Pillow does not write it")
    with Image.open(io.BytesIO(data)) as image:
        assert read_header(data).size == ImageOps.exif_transpose(image).size


def test_damage_is_a_typed_error():
    random = np.random.default_rng(0)
    for data in (png((b"eXIf", TURNED)), jxl(5, (b"Exif", TURNED)), b"II*\0" + TURNED):
        for size in range(len(data)):
            damaged = bytearray(data)
            damaged[random.integers(len(data))] ^= 255
            for content in (data[:size], damaged):
                with contextlib.suppress(ImageDecodeError):
                    assert is_turned(content) in (True, False)
