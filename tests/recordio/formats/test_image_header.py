"""recordio.formats.image_header: what an image says about itself, and limits on it."""

import contextlib
import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_variants import variants
from PIL import Image

from recordio import ImageDecodeError, IRHeader, decode_image, pack, unpack_img
from recordio.formats.decode import check_whole
from recordio.formats.image_header import (
    DEFAULT_MAX_PIXELS,
    check_limits,
    check_pixels,
    open_image,
    read_header,
)
from recordio.formats.jpeg import jpeg
from recordio.formats.table import FORMATS
from recordio.operations.pictures import picture_hash
from recordio.tools.encode import EncodeOptions, encode_image
from recordio.tools.images import decode_content

VARIANTS = variants()


def image_size(data):
    """Width and height as stored."""
    return read_header(data)[:2]


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


@pytest.mark.parametrize("size", [(1, 1), (37, 21), (300, 9), (16383, 2)])
def test_the_size_of_webp_files(size):
    for options in ({}, {"lossless": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\0\0"}):
        assert image_size(saved("webp", size, **options)) == size
    frames = [Image.new("RGB", size, (i, 0, 0)) for i in range(2)]
    file = io.BytesIO()
    frames[0].save(file, "webp", save_all=True, append_images=frames[1:])
    assert image_size(file.getvalue()) == size


@pytest.mark.parametrize("size", [(1, 1), (37, 21), (300, 9)])
def test_the_size_of_avif_files(size):
    pytest.importorskip("PIL._avif")
    assert image_size(saved("avif", size)) == size
    file = io.BytesIO()
    Image.new("RGBA", size, (1, 2, 3, 4)).save(file, "avif")
    assert image_size(file.getvalue()) == size


#: How files of libjxl begin.
JXL_FILES = {
    (1, 1): "ff0a0090010013880200c400",
    (17, 5): "ff0a2000200c002588020028",
    (256, 256): "ff0a7f06002d880200e2f003",
    (512, 300): "ff0a5809fe0f002d8802001c",
    (300, 200): "ff0a3107002d880200e0114b",
    (1920, 1080): "ff0aba211d002d8802008460",
    (8, 16): "ff0a03c000258802008403b5",
}


@pytest.mark.parametrize("size", JXL_FILES)
def test_the_size_of_jpeg_xl_files(size):
    stream = bytes.fromhex(JXL_FILES[size]) + bytes(9)
    assert image_size(stream) == size
    start = b"\0\0\0\x0cJXL \r\n\x87\n" + b"\0\0\0\x14ftypjxl \0\0\0\0jxl "
    length = struct.pack(">I", 8 + len(stream))
    assert image_size(start + length + b"jxlc" + stream) == size
    assert image_size(start + bytes(4) + b"jxlc" + stream) == size
    long = struct.pack(">IIQ", 1, int.from_bytes(b"jxlc", "big"), 16 + len(stream))
    assert image_size(start + long + stream) == size
    parts = struct.pack(">I", 12 + len(stream)) + b"jxlp" + bytes(4) + stream
    assert image_size(start + parts) == size
    short = struct.pack(">I", 14) + b"jxlp" + bytes(4) + stream[:2]
    rest = struct.pack(">I", 10 + len(stream)) + b"jxlp" + b"\x80\0\0\1" + stream[2:]
    assert image_size(start + short + rest) == size
    for damaged in (stream[:9], start, start + bytes(4) + b"jxlc", start + length + b"jxlx"):
        with pytest.raises(ImageDecodeError):
            image_size(damaged)


def test_the_size_of_tiff_files_that_pillow_does_not_know():
    for dtype in (np.float64, np.int8, np.uint16, np.float32):
        pixels = np.zeros((21, 37), dtype)
        assert image_size(cv2.imencode(".tiff", pixels)[1].tobytes()) == (37, 21)


@pytest.mark.parametrize(("first", "second"), [(4, 4), (3, 1027), (8, 3)])
def test_a_tiff_file_with_a_tag_twice_is_refused(first, second):
    """Pillow takes the last one, libtiff the first."""
    entries = [(256, first, 1, 7), (256, second, 1, 30_000), (257, first, 1, 5)]
    table = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    content = b"II*\0\x08\0\0\0" + struct.pack("<H", 3) + table + bytes(4)
    if second == 1027:  # of no known type
        assert image_size(content) == (7, 5)
    else:
        with pytest.raises(ImageDecodeError, match="header of the TIFF image is damaged"):
            image_size(content)


def test_the_tiles_of_a_tiff_file_count():
    entries = [(256, 4, 1, 20), (257, 4, 1, 10), (322, 4, 1, 4000), (323, 4, 1, 3000)]
    table = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    tiled = b"II*\0\x08\0\0\0" + struct.pack("<H", 4) + table + bytes(4)
    with pytest.raises(ImageDecodeError, match="4000 x 3000 pixels .* limit of 11999999"):
        check_limits(tiled, {"max_pixels": 11_999_999})
    check_limits(tiled, {"max_pixels": 12_000_000})


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
    for kind in ("png", "jpeg", "webp", "gif", "bmp", "tiff", "ppm", "jpeg2000", "avif"):
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
    assert image_size(saved("webp")) == (37, 21)
    with pytest.raises(ImageDecodeError, match=r"raise PIL.Image.MAX_IMAGE_PIXELS"):
        open_image(io.BytesIO(saved("webp")))


def test_the_limit():
    assert DEFAULT_MAX_PIXELS == jpeg.DEFAULT_MAX_PIXELS
    check_pixels((1 << 13, 1 << 13))
    check_pixels((1 << 20, 1 << 20), None)
    with pytest.raises(ImageDecodeError, match="raise max_pixels to allow it"):
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


@pytest.mark.opencv
def test_formats_of_opencv_have_headers_and_limits():
    hdr = cv2.imencode(".hdr", np.ones((4, 6, 3), np.float32))[1].tobytes()
    pfm = cv2.imencode(".pfm", np.ones((4, 6, 3), np.float32))[1].tobytes()
    for data in (hdr, pfm):
        assert image_size(data) == (6, 4)
        assert (decode_image(data, dtype="float32") == 1).all()
        assert unpack_img(pack(IRHeader(0, 1.0, 5, 0), data))[1].shape == (4, 6, 3)
        with pytest.raises(ImageDecodeError, match="limit of 23"):
            decode_image(data, dtype="float32", max_pixels=23)
    window = b"dataWindow\0box2i\0" + struct.pack("<I4i", 16, -2, 1, 3, 4)
    exr = b"\x76\x2f\x31\x01\2\0\0\0" + b"channels\0chlist\0\1\0\0\0\0" + window + b"\0"
    assert image_size(exr) == (6, 4)
    with pytest.raises(ImageDecodeError, match="OpenEXR image cannot be decoded"):
        decode_image(exr, dtype="float32")


def cut_short(kind, length, *, after_pixels=False):
    """An animated PNG whose second or third chunk announces more bytes than there are."""
    whole = png(3, 2)
    animation = struct.pack(">I4sIII", 8, b"acTL", 2, 0, 0)
    place = len(whole) if after_pixels else 33
    return whole[:33] + animation + whole[33:place] + struct.pack(">I", length) + kind + bytes(9)


@pytest.mark.parametrize("length", [10, 0x7FFFFFF0, 0xFFFFFFF4, 0xFFFFFFFF])
@pytest.mark.parametrize("kind", [b"IDAT", b"PLTE", b"fdAT", b"\xffEXt"])
@pytest.mark.parametrize("after_pixels", [False, True])
def test_no_memory_is_taken_for_what_a_chunk_announces(kind, length, after_pixels, monkeypatch):
    content = cut_short(kind, length, after_pixels=after_pixels)

    def never(*_):
        raise AssertionError("OpenCV would take memory")

    monkeypatch.setattr(cv2, "imdecode", never)
    record = pack(IRHeader(0, 1.0, 7, 0), content)
    assert unpack_img(record)[1] is None
    for decode in (
        decode_image,
        lambda data: decode_image(data, dtype="float32"),
        decode_content,
        lambda data: encode_image(data, EncodeOptions(resize=2)),
        picture_hash,
    ):
        with pytest.raises(ImageDecodeError):
            decode(content)


def test_facts_of_common_files():
    for name in ("jpeg", "png", "ppm"):
        assert read_header(VARIANTS[name]) == (30, 20, 1, 8, 3, False, True, "u")
    for name in ("jpeg grey", "png grey", "pgm"):
        assert read_header(VARIANTS[name]) == (30, 20, 1, 8, 1, False, True, "u")
    assert read_header(VARIANTS["jpeg progressive"]).progressive
    assert read_header(VARIANTS["png 16 bits"])[3:5] == (16, 1)
    for name in ("pgm to 100", "png palette", "png two frames", "png grey, transparent"):
        assert not read_header(VARIANTS[name]).plain


@pytest.mark.parametrize("name", ["jpeg", "jpeg grey", "jpeg progressive", "jpeg inks", "png"])
def test_truncation_at_every_byte_is_found_or_cuts_no_pixel(name):
    data = VARIANTS[name]
    whole = decode_image(data)
    for size in range(len(data)):
        try:
            check_whole(data[:size])
        except ImageDecodeError:
            continue
        assert np.array_equal(decode_image(data[:size]), whole)
        assert size >= len(data) - 20, size


def test_what_a_camera_appends_does_not_matter():
    for data in (VARIANTS["jpeg"], VARIANTS["png"]):
        check_whole(data + b"\0" * 1000)
        assert read_header(data + b"\0" * 1000) == read_header(data)


def test_the_end_marker_of_a_thumbnail_does_not_count():
    thumbnail = b"Exif\0\0MM\0*\0\0\0\x08\0\0" + VARIANTS["jpeg grey"]
    data = VARIANTS["jpeg"]
    data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail + data[2:]
    check_whole(data)
    with pytest.raises(ImageDecodeError, match="truncated"):
        check_whole(data[: len(data) * 3 // 4])


def test_flipped_bits_in_png_pixels_are_found():
    data = bytearray(VARIANTS["png"])
    data[data.index(b"IDAT") + 10] ^= 1
    with pytest.raises(ImageDecodeError, match="checksum of its chunk IDAT"):
        check_whole(bytes(data))


@given(st.binary(), st.sampled_from([b"", *(m[0][1] for f in FORMATS for m in f.signatures)]))
def test_random_bytes_give_a_header_or_the_typed_error(tail, start):
    with contextlib.suppress(ImageDecodeError):
        read_header(start + tail)


@given(st.data())
def test_damaged_files_give_a_header_that_agrees_or_the_typed_error(data):
    names = sorted(VARIANTS)
    damaged = bytearray(VARIANTS[data.draw(st.sampled_from(names))] or b"x")
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        header = read_header(bytes(damaged))
        pixels = decode_image(bytes(damaged), max_pixels=1 << 20)
    except ImageDecodeError:
        return
    assert header.size == (pixels.shape[1], pixels.shape[0])
