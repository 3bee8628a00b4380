"""recordio.formats.general: which decoder decodes what, and what is refused."""

import io
import re
import struct
import subprocess
import sys
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_variants import DEEP, variants
from PIL import Image, ImageOps

import iterators.__main__ as installation
from iterators.testing import check_decoder, strategies
from recordio import decode_image
from recordio.errors import ImageDecodeError
from recordio.formats import by_opencv
from recordio.formats import general as codec
from recordio.formats.image_header import read_header
from recordio.formats.jpeg import jpeg

RANDOM = np.random.default_rng(5)
COLOUR = RANDOM.integers(0, 256, (24, 40, 3), np.uint8)
VARIANTS = variants()
LOSSLESS = ("png", "bmp", "tiff", "ppm", "webp")


def save(image, kind, mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(image).convert(mode).save(file, kind, **options)
    return file.getvalue()


def save_lossless(image, kind):
    return save(image, kind, lossless=True) if kind == "webp" else save(image, kind)


def png_claiming(width, height):
    data = bytearray(save(COLOUR, "png"))
    struct.pack_into(">II", data, 16, width, height)
    struct.pack_into(">I", data, 29, zlib.crc32(data[12:29]))
    return bytes(data)


def with_orientation(data, orientation):
    entry = b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0, 0, 0])
    segment = b"\xff\xe1\0\x22Exif\0\0II\x2a\0\x08\0\0\0\x01\0" + entry + bytes(4)
    return data[:2] + segment + data[2:]


@pytest.fixture(params=[True, False], ids=["libjpeg-turbo", "Pillow"])
def with_libjpeg(request, monkeypatch):
    """Both kinds of installation."""
    if request.param and not jpeg.available():
        pytest.skip("built without libjpeg-turbo")
    if not request.param:
        monkeypatch.setattr(jpeg, "available", lambda: False)
    return request.param


@pytest.mark.parametrize("kind", LOSSLESS)
def test_colour_is_rgb(kind):
    assert np.array_equal(decode_image(save_lossless(COLOUR, kind)), COLOUR)


@pytest.mark.parametrize("kind", [*LOSSLESS, "gif", "jpeg2000", "avif"])
def test_grey_is_what_opencv_makes_of_it(kind):
    colours = np.random.default_rng(5).integers(0, 256, (96, 160, 3), np.uint8)
    if kind == "avif":
        data = save(colours, kind, quality=100, subsampling="4:4:4")
    else:
        data = save_lossless(colours, kind)
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_GRAYSCALE)
    if expected is None:
        pytest.skip(f"this OpenCV reads no {kind}")
    assert np.array_equal(decode_image(data, channels=1), expected[:, :, None])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_is_decoded_upright_and_alike_by_both(with_libjpeg, orientation, channels):
    data = with_orientation(cv2.imencode(".jpg", COLOUR)[1].tobytes(), orientation)
    flag = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    expected = expected[:, :, ::-1] if channels == 3 else expected[:, :, None]
    pixels = decode_image(data, channels=channels)
    assert pixels.dtype == np.uint8
    assert pixels.flags.c_contiguous
    assert np.array_equal(pixels, expected)
    assert np.array_equal(
        codec.decode_other(data, channels), expected
    )  # where nothing else is built


@pytest.mark.parametrize("scale", [1, 1 / 2, 1 / 4, 1 / 8])
@pytest.mark.parametrize("name", ["", ", progressive", " without marker", ", turned", ", YCCK"])
def test_inks_of_jpeg_have_the_pixels_of_pillow(with_libjpeg, name, scale):
    data = VARIANTS[f"jpeg inks{name}"]
    with Image.open(io.BytesIO(data)) as image:
        theirs = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    pixels = decode_image(data, scale=scale)
    if scale == 1:
        assert np.array_equal(pixels, theirs)
        part = decode_image(data, region=(3, 5, 14, 11))
        assert np.array_equal(part, theirs[5:16, 3:17])
    else:
        small = cv2.resize(theirs, pixels.shape[1::-1], interpolation=cv2.INTER_AREA)
        assert np.abs(pixels.astype(int) - small).mean() < 20
    grey = decode_image(data, channels=1, scale=scale)
    expected = codec.grey_of(pixels, codec.format_of(data).grey)
    assert np.array_equal(grey, expected) or not with_libjpeg


@given(
    st.integers(0, 1 << 30), st.sampled_from(["4:4:4", "4:2:0", "4:2:2"]), st.booleans(),
    st.integers(1, 100), st.integers(1, 70), st.integers(1, 70),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_any_inks_have_the_pixels_of_pillow(seed, sampling, progressive, quality, width, height):
    inks = np.random.default_rng(seed).integers(0, 256, (height, width, 4), np.uint8)
    file = io.BytesIO()
    Image.fromarray(inks, "CMYK").save(
        file, "JPEG", quality=quality, subsampling=sampling, progressive=progressive
    )
    with Image.open(file) as image:
        theirs = np.asarray(image.convert("RGB"))
    assert np.array_equal(decode_image(file.getvalue()), theirs)


def test_rgba():
    rgba = RANDOM.integers(0, 256, (9, 7, 4), np.uint8)
    file = io.BytesIO()
    Image.fromarray(rgba).save(file, "png")
    assert np.array_equal(decode_image(file.getvalue(), channels=4), rgba)
    assert decode_image(file.getvalue(), channels=3).shape == (9, 7, 3)
    assert decode_image(file.getvalue(), channels=1).shape == (9, 7, 1)


def test_rgba_of_sixteen_bits_gives_the_upper_eight():
    rgba = RANDOM.integers(0, 65536, (9, 7, 4), np.uint16)
    data = cv2.imencode(".png", rgba)[1].tobytes()
    assert np.array_equal(decode_image(data, channels=4), (rgba >> 8)[:, :, [2, 1, 0, 3]])
    assert decode_image(data, channels=3).dtype == np.uint8


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_four_channels_where_there_are_fewer(kind, mode):
    with pytest.raises(ImageDecodeError, match="channel"):
        decode_image(save(COLOUR, kind, mode), channels=4)


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "I;16"])
def test_other_modes_become_rgb(mode):
    if mode == "I;16":
        data = cv2.imencode(".png", RANDOM.integers(0, 65536, (24, 40), np.uint16))[1].tobytes()
    else:
        data = save(COLOUR, "png", mode)
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
    assert np.array_equal(decode_image(data), expected)


def test_first_of_several_frames_counts():
    frames = [Image.fromarray(np.full((8, 9, 3), value, np.uint8)) for value in (40, 200)]
    for kind in ("gif", "tiff"):
        file = io.BytesIO()
        frames[0].save(file, kind, save_all=True, append_images=frames[1:])
        assert np.all(np.abs(decode_image(file.getvalue()).astype(int) - 40) < 4)


@pytest.mark.parametrize("channels", [0, 2, 5, None, "3"])
def test_wrong_number_of_channels(channels):
    with pytest.raises(ValueError, match="channels"):
        decode_image(save(COLOUR, "png"), channels=channels)


@pytest.mark.parametrize(
    "kind", ["png", "bmp", "webp", "gif", "tiff", "ppm", "jpeg", "progressive"]
)
def test_truncated(with_libjpeg, kind):
    options = {"progressive": True} if kind == "progressive" else {}
    data = save(COLOUR, "jpeg" if options else kind, **options)
    end = len(data) - (40 if kind == "png" else 16)  # the last chunk is not needed
    for size in sorted({*range(0, end, max(1, len(data) // 60)), end}):
        with pytest.raises(ImageDecodeError):
            decode_image(data[:size])


def test_too_many_pixels(with_libjpeg):
    bomb = bytearray(save(COLOUR, "jpeg"))
    frame = bomb.index(b"\xff\xc0")
    struct.pack_into(">HH", bomb, frame + 5, 65000, 65000)
    for data in (png_claiming(10000, 10000), png_claiming(2**31 - 1, 2**31 - 1), bytes(bomb)):
        with pytest.raises(ImageDecodeError, match="too large"):
            decode_image(data)
    for kind in ("png", "jpeg"):
        data = save(COLOUR, kind)
        assert decode_image(data, max_pixels=24 * 40).shape == (24, 40, 3)
        with pytest.raises(ImageDecodeError, match="too large"):
            decode_image(data, max_pixels=24 * 40 - 1)


@pytest.mark.parametrize("mode", ["RGB", "CMYK"])
def test_too_many_scans(with_libjpeg, mode):
    data = save(COLOUR, "jpeg", mode, progressive=True)
    assert decode_image(data, max_scans=40).shape == (24, 40, 3)
    with pytest.raises(ImageDecodeError, match="more than 2 scans"):
        decode_image(data, max_scans=2)


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"no image at all", bytes(1000), b"\x89PNG\r\n\x1a\n"]
)
def test_not_an_image(data):
    with pytest.raises(ImageDecodeError):
        decode_image(data)


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM"])
)
@settings(max_examples=200, deadline=None)
def test_random_bytes(data, prefix):
    with pytest.raises(ImageDecodeError):
        decode_image(prefix + data)


@given(
    st.sampled_from(["png", "bmp", "jpeg", "webp"]), st.sampled_from(["RGB", "CMYK"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=10),
    st.sampled_from([1, 3, 4]),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_changed_bytes_give_an_image_or_a_typed_error(kind, mode, changes, channels):
    data = bytearray(save(COLOUR, kind, mode if kind == "jpeg" else "RGB"))
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    try:
        pixels = decode_image(bytes(data), channels=channels, max_pixels=2**20)
    except ImageDecodeError:
        return
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == channels


DEPTHS = RANDOM.integers(0, 1 << 16, (24, 40), np.uint16)
VALUES = {
    "uint8": DEPTHS.astype(np.uint8),
    "uint16": DEPTHS,
    "int16": DEPTHS.view(np.int16),
    "int8": DEPTHS.astype(np.int8),
    "int32": DEPTHS.astype(np.int32) - 40000,
    "float32": RANDOM.standard_normal((24, 40)).astype(np.float32),
    "float64": RANDOM.standard_normal((24, 40)).astype(np.float32).astype(np.float64),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("tiff", name, marks=[pytest.mark.opencv] * (name in ("int8", "float64")))
        for name in VALUES
    ]
    + [(kind, name) for kind in ("png", "pgm") for name in ("uint8", "uint16")],
)
def test_values_keep_every_bit(kind, name):
    data = cv2.imencode(f".{kind}", VALUES[name])[1].tobytes()
    values = decode_image(data, channels=1, dtype="float32")
    assert values.dtype == np.float32
    assert values.shape == (24, 40, 1)
    assert np.array_equal(values[..., 0], VALUES[name])
    assert values.flags.c_contiguous


@pytest.mark.parametrize("kind", ["png", "tiff"])
@pytest.mark.parametrize("dtype", [np.uint8, pytest.param(np.uint16, marks=pytest.mark.opencv)])
def test_values_of_colours(kind, dtype):
    colours = (COLOUR.astype(np.uint16) * 251).astype(dtype)
    data = cv2.imencode(f".{kind}", colours[..., ::-1])[1].tobytes()
    assert np.array_equal(decode_image(data, dtype="float32"), colours)
    flags = cv2.IMREAD_GRAYSCALE | cv2.IMREAD_ANYDEPTH
    grey = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    assert np.array_equal(decode_image(data, channels=1, dtype="float32")[..., 0], grey)


@pytest.mark.parametrize("kind", ["jpeg", "webp", "bmp"])
def test_values_of_eight_bits(kind):
    data = save(COLOUR, kind)
    for channels in (1, 3):
        values = decode_image(data, channels=channels, dtype="float32")
        assert np.array_equal(values, decode_image(data, channels=channels))


def test_values_that_float32_cannot_hold_are_refused():
    for value in (16777217, 2**31 - 1):
        data = cv2.imencode(".tiff", np.full((2, 3), value, np.int32))[1].tobytes()
        with pytest.raises(ImageDecodeError, match="int32 values that float32 cannot"):
            decode_image(data, channels=1, dtype="float32")


@pytest.mark.opencv
def test_doubles_that_float32_cannot_hold_are_refused():
    data = cv2.imencode(".tiff", np.array([[0.1, np.nan]]))[1].tobytes()
    with pytest.raises(ImageDecodeError, match="float64 values that float32 cannot"):
        decode_image(data, channels=1, dtype="float32")
    data = cv2.imencode(".tiff", np.array([[0.5, np.nan]]))[1].tobytes()
    values = decode_image(data, channels=1, dtype="float32").ravel()
    assert np.array_equal(values, [0.5, np.nan], True)
    with pytest.raises(ValueError, match="dtype must be"):
        decode_image(data, channels=1, dtype="int16")
    with pytest.raises(ImageDecodeError, match="uint16 cannot"):
        decode_image(data, channels=1, dtype="uint16")
    with pytest.raises(ImageDecodeError, match="has 1 channels, not the 4"):
        decode_image(data, channels=4, dtype="float32")


def test_values_that_pillow_would_cut_to_bytes_are_refused(monkeypatch):
    monkeypatch.setattr(by_opencv, "available", lambda: False)
    data = cv2.imencode(".tiff", COLOUR.astype(np.uint16))[1].tobytes()
    with pytest.raises(ImageDecodeError, match="gives 8 of 16 bits.*pip install opencv"):
        decode_image(data, dtype="float32")
    assert np.array_equal(decode_image(data), COLOUR >> 8)


@pytest.mark.parametrize("kind", ["tiff signed", "tiff signed bytes", "tiff int32", "tiff float"])
def test_values_with_a_sign_are_never_wrapped(kind):
    with pytest.raises(ImageDecodeError, match="ask for dtype='float32'"):
        decode_image(VARIANTS[kind])
    with Image.open(io.BytesIO(VARIANTS[kind])) as image:
        theirs = np.asarray(image)
    theirs = theirs.view(np.int8) if theirs.dtype == np.uint8 else theirs
    values = decode_image(VARIANTS[kind], channels=1, dtype="float32")[..., 0]
    assert np.array_equal(values, theirs.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "largest"),
    [("tiff 12 bits", 12), ("pgm 12 bits", 12), ("tiff 16 bits", 16), ("png 16 bits", 16)]
    + [("tiff uint32", 32), ("jpeg2000 16 bits", 16)]
    + [pytest.param("tiff 14 bits", 14, marks=pytest.mark.opencv)],
)
def test_eight_bits_are_the_upper_ones_of_those_that_are_stored(name, largest):
    if name not in VARIANTS:
        pytest.skip("this Pillow does not write it")
    stored = DEEP.astype(np.uint64) << 16 if largest == 32 else DEEP >> (16 - largest)
    assert read_header(VARIANTS[name]).bits == largest
    values = decode_image(VARIANTS[name], channels=1, dtype="float32")[..., 0]
    assert np.array_equal(values, stored)
    pixels = decode_image(VARIANTS[name], channels=1)[..., 0]
    assert np.array_equal(pixels, stored >> (largest - 8))


#: Orientations that Pillow takes from texts, and files that it refuses.
OURS = (
    "png exif as",
    "png wrong",
    "png junk",
    "png 16",
    "tiff 1",
    "pgm",
    "tiff uint32",
    "jpeg2000 16",
)


@pytest.mark.parametrize("name", [name for name in VARIANTS if not name.startswith(OURS)])
def test_pixels_are_those_of_pillow(name):
    """Beside it, of what is read: the size of the header, and both with the same turn."""
    data = VARIANTS[name]
    try:
        pixels = decode_image(data)
    except ImageDecodeError:
        return
    header = read_header(data)
    assert header.size == (pixels.shape[1], pixels.shape[0])
    if not name.startswith("tiff"):  # always turned, as Pillow does
        assert decode_image(data, orient=False).shape[:2] == (header.height, header.width)
    assert name != "half a png"
    if "without end" in name or name in ("gif with an empty block", "tiff small colour map"):
        return
    with Image.open(io.BytesIO(data)) as image:
        theirs = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    assert np.abs(pixels.astype(int) - theirs).max() <= (1 if name.startswith("avif") else 0)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("half a tiff", "TIFF image .3 samples of 8 bits.* truncated"),
        ("half a gif", "GIF image cannot be decoded.*truncated"),
        ("half a png", "PNG image"),
        ("pfm grey", "floating point.*float32"),
        ("no image", "not an image of a known format"),
    ],
)
def test_errors_name_the_format_and_the_cause(name, words):
    with pytest.raises(ImageDecodeError, match=words):
        decode_image(VARIANTS[name])


def test_limits_hold_for_values():
    for kind in ("png", "tiff"):
        data = cv2.imencode(f".{kind}", DEPTHS)[1].tobytes()
        assert decode_image(data, channels=1, dtype="float32", max_pixels=960).shape == (24, 40, 1)
        with pytest.raises(ImageDecodeError, match="more than the limit of 959"):
            decode_image(data, channels=1, dtype="float32", max_pixels=959)
        with pytest.raises(ImageDecodeError):
            decode_image(data[: len(data) // 2], channels=1, dtype="float32")


@pytest.mark.opencv
def test_describe_names_both(with_libjpeg):
    text = codec.describe()
    assert cv2.__version__ in text
    assert ("libjpeg-turbo 2" in text or "libjpeg-turbo 3" in text) == with_libjpeg


def test_import_leaves_opencv_alone():
    code = (
        "import sys, recordio.formats.general, recordio.formats.jpeg.jpeg\n"
        "sys.exit('cv2' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_report_of_the_installation(capsys):
    assert installation.main() == 0
    printed = capsys.readouterr().out
    for word in (codec.describe(), np.__version__, "python", "torch", "cores", "cpu"):
        assert word in printed
    assert re.search(r"^kernels +(plain|sse4.1|avx2|avx512) \(of ", printed, re.M)


def test_report_names_the_commands_that_bring_what_is_missing(monkeypatch):
    monkeypatch.setattr(installation, "_version", lambda package: "not installed")
    lines = dict(line.split(maxsplit=1) for line in installation.report().splitlines())
    assert lines["torch"] == "not installed; pip install 'recordio-iterators[torch]'"
    assert lines["scipy"] == "not installed; pip install 'recordio-iterators[libsvm]'"


def test_report_without_opencv(monkeypatch):
    """Free-threaded interpreters have none yet."""
    monkeypatch.setattr(by_opencv, "available", lambda: False)
    report = installation.report()
    assert "no OpenCV (pip install opencv-python-headless) for what Pillow cannot read" in report


def test_missing_memory_is_no_fault_of_the_image(monkeypatch):
    """Not an `ImageDecodeError`, which would be skipped on request."""

    def hungry(*arguments, **keywords):
        raise MemoryError

    data = save(COLOUR, "gif")
    monkeypatch.setitem(Image.OPEN, "GIF", (hungry, None))
    with pytest.raises(MemoryError):
        decode_image(data)


@pytest.mark.opencv
def test_memory_that_opencv_misses_is_no_fault_of_the_image(monkeypatch):
    data = VARIANTS["pfm colours"]

    def hungry_opencv(*arguments):
        error = cv2.error("Failed to allocate 60 bytes")
        error.code, error.err = cv2.Error.StsNoMem, "Failed to allocate 60 bytes"
        raise error

    monkeypatch.setattr(cv2, "imdecode", hungry_opencv)
    with pytest.raises(MemoryError, match="Failed to allocate"):
        decode_image(data, dtype="float32")


@pytest.mark.parametrize("orientation", [None, 1, 3, 6, 8])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_upright_size_is_that_of_the_decoded_image(with_libjpeg, kind, orientation, monkeypatch):
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {kind}")
    exif, file = Image.Exif(), io.BytesIO()
    if orientation:
        exif[0x0112] = orientation
    Image.new("RGB", (6, 4), "red").save(file, kind, exif=exif)
    pixels = decode_image(file.getvalue())
    with monkeypatch.context() as patch:
        patch.delattr(codec, "decode_other")  # nothing is decoded for it
        assert read_header(file.getvalue()).size == (pixels.shape[1], pixels.shape[0])


@given(strategies.blobs(most=20))
def test_every_codec_decodes_as_opencv_does(blob):
    def opencv(blob):
        pixels = np.frombuffer(blob, np.uint8)
        return cv2.imdecode(pixels, cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)[..., ::-1]

    check_decoder(decode_image, opencv, [blob], errors=(ImageDecodeError,))
