"""recordio.formats.avif: how large the frames are that a decoder takes memory for."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from recordio import decode_image, pack, unpack_img
from recordio.errors import ImageDecodeError
from recordio.formats.avif import avif_frames, avif_picture


def avif(size=(37, 21), mode="RGB", **options):
    Image.init()
    if "AVIF" not in Image.SAVE:
        pytest.skip("this Pillow writes no AVIF")
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), np.uint8)
    Image.fromarray(pixels).convert(mode).save(file, "AVIF", **options)
    return file.getvalue()


def box(kind, content):
    return struct.pack(">I", 8 + len(content)) + kind + content


def file_of(*items, version=0, inline=False):
    """A file of items, each a type and its data, as one extent; `inline`: in ``idat``."""
    long = ">I" if version == 2 else ">H"

    def meta(start):
        places, kinds = b"", b""
        for number, (kind, data) in enumerate(items, 1):
            method = struct.pack(">H", inline) if version else b""
            place = struct.pack(">HHII", 0, 1, start, len(data))
            places += struct.pack(long, number) + method + place
            kinds += box(b"infe", b"\2\0\0\0" + struct.pack(">HH", number, 0) + kind + b"\0")
            start += len(data)
        table = bytes([version, 0, 0, 0, 0x44, 0]) + struct.pack(long, len(items)) + places
        content = box(b"iloc", table) + box(
            b"iinf", bytes(4) + struct.pack(">H", len(items)) + kinds
        )
        data = b"".join(data for _, data in items) if inline else b""
        return box(b"meta", bytes(4) + content + box(b"idat", data))

    begin = box(b"ftyp", b"avif" + bytes(4) + b"avif")
    start = 0 if inline else len(begin) + len(meta(0)) + 8
    data = box(b"mdat", b"" if inline else b"".join(data for _, data in items))
    return memoryview(begin + meta(start) + data)


def unit(kind, payload, sized=True):
    """A unit of AV1."""
    return (
        bytes([kind << 3 | (2 if sized else 0)])
        + (bytes([len(payload)]) if sized else b"")
        + payload
    )


def header(width, height, reduced=True, timing=False, model=False, delay=False, points=1):
    """A sequence header."""
    bits = "000" + "1" + str(int(reduced))
    if reduced:
        bits += "00000"
    else:
        bits += "1" + "0" * 64 + "1" + "00101" if timing else "0"
        if timing:
            bits += ("1" + "00111" + "0" * 42) if model else "0"
        bits += str(int(delay)) + f"{points - 1:05b}"
        for number in range(points):
            bits += "0" * 12 + ("01001" + "0" if number % 2 else "00000")
            if timing and model:
                bits += "1" + "0" * 17
            if delay:
                bits += "1" + "0000"
    bits += "1111" * 2 + f"{width - 1:016b}{height - 1:016b}"
    bits += "0" * (-len(bits) % 8 + 16)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


@pytest.mark.parametrize("size", [(1, 1), (37, 21), (300, 9)])
def test_frames_of_sound_files_have_the_size_of_the_picture(size):
    assert avif_frames(memoryview(avif(size))) == [size]
    assert set(avif_frames(memoryview(avif(size, "RGBA")))) == {size}
    # Like a sequence header, and no item of AV1.
    assert avif_frames(memoryview(avif(size, xmp=b"\x0a\x0b" * 99))) == [size]
    frames = [Image.new("RGB", size, colour) for colour in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "AVIF", save_all=True, append_images=frames[1:])
    assert set(avif_frames(memoryview(file.getvalue()))) == {size}


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("sized", [True, False])
def test_items_of_all_kinds_of_tables(version, sized):
    data = unit(2, b"") + unit(1, header(9000, 8000), sized)
    assert avif_frames(file_of((b"av01", data), version=version)) == [(9000, 8000)]
    if version:
        assert avif_frames(file_of((b"av01", data), version=version, inline=True)) == [(9000, 8000)]
    other = (b"Exif", data), (b"mime", data), (b"av01", unit(2, b""))
    assert avif_frames(file_of(*other, version=version)) == []
    grid = b"\0\0\1\1" + struct.pack(">HH", 7000, 6000)
    assert avif_frames(file_of((b"grid", grid), version=version)) == [(7000, 6000)]
    grid = b"\0\1\1\1" + struct.pack(">II", 70_000, 60_000)
    assert avif_frames(file_of((b"grid", grid), version=version)) == [(70_000, 60_000)]


@pytest.mark.parametrize("points", [1, 3])
@pytest.mark.parametrize("delay", [False, True])
@pytest.mark.parametrize(("timing", "model"), [(False, False), (True, False), (True, True)])
def test_everything_that_can_stand_before_the_size(timing, model, delay, points):
    made = header(1234, 4321, False, timing, model, delay, points)
    assert avif_frames(file_of((b"av01", unit(1, made)))) == [(1234, 4321)]


def test_a_frame_that_is_larger_than_the_picture_counts():
    data = avif((64, 48))
    at = data.index(b"ispe") + 8
    smaller = data[:at] + struct.pack(">II", 8, 6) + data[at + 8 :]
    assert avif_picture(memoryview(smaller))[:2] == (8, 6)
    for door in (
        lambda limit: decode_image(smaller, max_pixels=limit),
        lambda limit: unpack_img(pack((0, 1.0, 1, 0), smaller), max_pixels=limit),
    ):
        with pytest.raises(ImageDecodeError, match="64 x 48 pixels .* limit of 3071"):
            door(3071)
        door(3072)


def test_damage_is_no_error_and_what_overlaps_is_read_once():
    random = np.random.default_rng(0)
    for data in (avif(), bytes(file_of((b"av01", unit(1, header(5, 5, False, True, True)))))):
        for _ in range(300):
            damaged = bytearray(data)
            for at in random.integers(0, min(len(data), 300), 3):
                damaged[at] = random.integers(256)
            assert isinstance(avif_frames(memoryview(damaged)), list)
    large = memoryview(bytes(1 << 20))
    extents = b"".join(struct.pack(">II", 0, len(large)) for _ in range(60_000))
    table = bytes([0, 0, 0, 0, 0x44, 0]) + struct.pack(">HHHH", 1, 1, 0, 60_000) + extents
    kinds = bytes(4) + struct.pack(">H", 1)
    kinds += box(b"infe", b"\2\0\0\0" + struct.pack(">HH", 1, 0) + b"av01\0")
    meta = box(b"meta", bytes(4) + box(b"iloc", table) + box(b"iinf", kinds))
    assert avif_frames(memoryview(meta + large)) == []
    sizes = struct.pack(">III", 0, len(large), 1)
    table = box(b"stsz", sizes) + box(b"stco", struct.pack(">III", 0, 1, 0)) * 10_000
    track = box(b"trak", box(b"mdia", box(b"minf", box(b"stbl", table))))
    assert avif_frames(memoryview(box(b"moov", track) + large)) == []
