"""Images encoded as a pack asks for it: size, colour, quality and orientation."""

import io
import os

import cv2
import numpy as np
import pytest
from image_variants import tiff
from PIL import Image

from recordio import ImageDecodeError, LabelError, RecordTooLargeError, decode_image, unpack
from recordio.formats import by_opencv
from recordio.formats.image_header import read_header
from recordio.list_files import ListEntry
from recordio.tools import encode as encode_module
from recordio.tools.encode import (
    EncodeOptions,
    encode_image,
    encode_record,
    loses_bits,
)
from recordio.tools.pack import ListedFiles


def shape(images, data):
    return images.decode(data).shape


@pytest.mark.parametrize(
    ("options", "untouched"),
    [
        ({}, True),
        ({"resize": 24}, True),
        ({"resize": 25}, False),
        ({"resize": 36}, False),
        ({"center_crop": True}, False),
        ({"quality": 95}, False),
        ({"encoding": ".png"}, False),
        ({"color": 0}, False),
        ({"color": -1}, True),
        ({"inter_method": 2}, True),
        ({"check": "decode"}, True),
        ({"check": "none"}, False),
    ],
)
def test_a_colour_jpeg_is_stored_untouched_only_when_nothing_would_change(
    images, options, untouched
):
    data = images.jpeg(24, 36)
    assert (encode_image(data, EncodeOptions(**options)) == data) == untouched


def test_a_square_jpeg_is_not_changed_by_a_center_crop(images):
    data = images.jpeg(24, 24)
    assert encode_image(data, EncodeOptions(center_crop=True, resize=24)) == data


@pytest.mark.parametrize("color", [-1, 0, 1])
def test_a_rotated_jpeg_is_encoded_upright(images, color):
    data = images.jpeg(24, 36, orientation=6)
    stored = encode_image(data, EncodeOptions(color=color))
    assert stored != data
    assert shape(images, stored)[:2] == (36, 24)


@pytest.mark.parametrize(("color", "untouched"), [(0, True), (1, False), (-1, True)])
def test_grey_jpegs(images, color, untouched):
    data = images.jpeg(channels=1)
    stored = encode_image(data, EncodeOptions(color=color))
    assert (stored == data) == untouched
    assert shape(images, stored) == ((24, 36, 3) if color == 1 else (24, 36))


@pytest.mark.parametrize(
    ("channels", "dtype", "color", "expected", "kind"),
    [
        (3, "uint8", 1, (24, 36, 3), "uint8"),
        (1, "uint8", 1, (24, 36, 3), "uint8"),
        (4, "uint8", 1, (24, 36, 3), "uint8"),
        (4, "uint8", 0, (24, 36), "uint8"),
        (4, "uint8", -1, (24, 36, 4), "uint8"),
        (1, "uint16", 1, (24, 36, 3), "uint8"),
        (3, "uint16", 0, (24, 36), "uint8"),
        pytest.param(3, "uint16", -1, (24, 36, 3), "uint16", marks=pytest.mark.opencv),
        pytest.param(1, "uint16", -1, (24, 36), "uint16", marks=pytest.mark.opencv),
    ],
)
@pytest.mark.parametrize("resize", [0, 12])
def test_pngs_are_read_by_color_as_opencv_reads_them(
    images, channels, dtype, color, expected, kind, resize
):
    data = images.png(24, 36, channels, dtype)
    stored = images.decode(
        encode_image(data, EncodeOptions(color=color, encoding=".png", resize=resize))
    )
    reference = images.decode(data, color)
    assert reference.shape == expected
    if resize:
        reference = cv2.resize(reference, (18, 12))
    assert stored.dtype == kind
    np.testing.assert_array_equal(stored, reference)


def test_deep_samples_are_refused_for_jpeg_instead_of_clipped(images):
    with pytest.raises(ImageDecodeError, match=r"uint16.*--encoding .png"):
        encode_image(images.png(8, 8, 1, "uint16"), EncodeOptions(color=-1))


def test_float_images_are_refused(images):
    data = cv2.imencode(".tiff", np.ones((4, 4), np.float32))[1].tobytes()
    for color in (-1, 0, 1):
        with pytest.raises(ImageDecodeError, match="floating point values.*--pass-through"):
            encode_image(data, EncodeOptions(color=color, encoding=".png"))


@pytest.mark.parametrize(
    ("size", "resize", "crop", "expected"),
    [
        ((30, 20), 10, False, (15, 10)),
        ((20, 30), 10, False, (10, 15)),
        ((31, 20), 7, False, (10, 7)),
        ((20, 31), 7, False, (7, 10)),
        ((20, 31), 41, False, (41, 63)),
        ((20, 20), 33, False, (33, 33)),
        ((21, 30), 0, True, (21, 21)),
        ((31, 20), 9, True, (9, 9)),
    ],
)
def test_sizes(images, size, resize, crop, expected):
    options = EncodeOptions(resize=resize, center_crop=crop, encoding=".png")
    assert shape(images, encode_image(images.png(*size), options))[:2] == expected


@pytest.mark.parametrize(("height", "width"), [(20, 33), (33, 20), (21, 32)])
def test_the_crop_is_central_and_comes_first(images, height, width):
    pixels = images.gradient(height, width)
    side, margin = min(height, width), abs(height - width) // 2
    rows = slice(margin, margin + side) if height > width else slice(None)
    columns = slice(margin, margin + side) if width > height else slice(None)
    options = EncodeOptions(center_crop=True, resize=11, encoding=".png")
    stored = images.decode(encode_image(images.png(height, width), options))
    np.testing.assert_array_equal(stored, cv2.resize(pixels[rows, columns], (11, 11)))


@pytest.mark.parametrize(
    ("method", "resize", "flag"),
    [
        (0, 10, cv2.INTER_NEAREST),
        (1, 10, cv2.INTER_LINEAR),
        (2, 10, cv2.INTER_CUBIC),
        (3, 10, cv2.INTER_AREA),
        (4, 10, cv2.INTER_LANCZOS4),
        (9, 10, cv2.INTER_AREA),
        (9, 48, cv2.INTER_CUBIC),
    ],
)
def test_resampling_methods(images, method, resize, flag):
    options = EncodeOptions(resize=resize, inter_method=method, encoding=".png")
    stored = images.decode(encode_image(images.png(24, 36), options))
    size = (36 * resize // 24, resize)
    reference = cv2.resize(images.gradient(24, 36), size, interpolation=flag)
    cubic = flag == cv2.INTER_CUBIC and not by_opencv.available()
    np.testing.assert_allclose(stored, reference, rtol=0, atol=int(cubic))  # NumPy's rounds apart


@pytest.mark.parametrize("method", [0, 1, 2, 3, 4, 9])
@pytest.mark.parametrize("resize", [10, 24, 48])
@pytest.mark.parametrize("center_crop", [False, True])
@pytest.mark.parametrize("color", [-1, 0, 1])
@pytest.mark.parametrize(("channels", "orientation"), [(3, None), (1, None), (3, 6)])
def test_decoding_and_resizing_in_one_pass_changes_no_byte(
    images, monkeypatch, method, resize, center_crop, color, channels, orientation
):
    data = images.jpeg(24, 39, channels, orientation)
    options = EncodeOptions(
        resize=resize, center_crop=center_crop, color=color, inter_method=method, quality=95
    )
    stored = encode_image(data, options)
    monkeypatch.setattr(encode_module, "decode_resized", lambda *args, **options: None)
    assert encode_image(data, options) == stored


@pytest.mark.libjpeg
@pytest.mark.parametrize(("method", "resize"), [(1, 10), (1, 48), (3, 10), (9, 10)])
@pytest.mark.parametrize("check", ["header", "decode"])
def test_an_ordinary_jpeg_does_not_reach_the_decoder_of_opencv(
    images, monkeypatch, method, resize, check
):
    monkeypatch.delattr(encode_module, "_decode")
    options = EncodeOptions(resize=resize, inter_method=method, quality=90, check=check)
    assert images.decode(encode_image(images.jpeg(), options)).shape[0] == resize


def test_quality_sets_the_size_of_a_jpeg(images):
    data = images.jpeg(60, 60, quality=99)
    low, high = (encode_image(data, EncodeOptions(quality=quality)) for quality in (10, 95))
    assert len(low) < len(high)
    reference = cv2.imencode(".jpg", images.decode(data, 1), [cv2.IMWRITE_JPEG_QUALITY, 10])[1]
    assert low == reference.tobytes()


def test_a_png_is_compressed_again_only_when_quality_is_given(images):
    data = images.png(60, 60)
    assert encode_image(data, EncodeOptions(encoding=".png")) == data
    loose = encode_image(data, EncodeOptions(encoding=".png", quality=0))
    tight = encode_image(data, EncodeOptions(encoding=".png", quality=95))
    assert len(loose) > len(tight)
    np.testing.assert_array_equal(images.decode(loose), images.decode(tight))


@pytest.mark.parametrize("pass_through", [False, True])
def test_bad_files_are_refused(images, pass_through):
    options = EncodeOptions(pass_through=pass_through)
    jpeg, png = images.jpeg(60, 60), images.png(60, 60)
    bmp = cv2.imencode(".bmp", images.gradient(9, 9))[1].tobytes()
    bad = [
        b"",
        b"a",
        b"just text\n" * 50,
        jpeg[:2],
        jpeg[:200],
        jpeg[:-5],
        png[:-24],
        png[:40],
        bmp[:60],
    ]
    for data in bad:
        with pytest.raises(ImageDecodeError):
            encode_image(data, options)


def test_other_formats_are_packed(images):
    bmp = cv2.imencode(".bmp", images.gradient(9, 12))[1].tobytes()
    assert encode_image(bmp, EncodeOptions(pass_through=True)) == bmp
    assert shape(images, encode_image(bmp, EncodeOptions())) == (9, 12, 3)


def test_damage_that_only_a_decoder_sees_is_found_by_the_decode_check(images):
    data = images.jpeg(60, 60)
    counts = data.index(b"\xff\xc4") + 5  # a Huffman table with more codes than there can be
    data = data[:counts] + b"\xfe" * 16 + data[counts + 16 :]
    assert encode_image(data, EncodeOptions(pass_through=True)) == data
    with pytest.raises(ImageDecodeError, match="damaged"):
        encode_image(data, EncodeOptions(pass_through=True, check="decode"))


def test_without_a_check_any_file_is_passed_through():
    assert encode_image(b"words", EncodeOptions(pass_through=True, check="none")) == b"words"
    assert encode_image(b"", EncodeOptions(pass_through=True, check="none")) == b""


def test_an_image_of_absurd_size_is_refused(images):
    with pytest.raises(ImageDecodeError):
        encode_image(images.bomb(), EncodeOptions())


def test_an_image_that_would_become_too_large_is_refused(images):
    data = images.png(1, 400)
    with pytest.raises(ImageDecodeError, match="larger than a JPEG"):
        encode_image(data, EncodeOptions(resize=256))
    with pytest.raises(ImageDecodeError, match=r"2\*\*30"):
        encode_image(images.png(1, 40000), EncodeOptions(resize=256, encoding=".png"))


def test_a_record_has_the_id_and_the_first_or_all_labels(images):
    entry = ListEntry(9, (1.5, 2.5), "a.jpg")
    header, content = unpack(encode_record(entry, images.jpeg(), EncodeOptions()))
    assert (header.flag, header.label, header.id, header.id2) == (0, 1.5, 9, 0)
    assert content == images.jpeg()
    header, content = unpack(encode_record(entry, images.jpeg(), EncodeOptions(pack_label=True)))
    assert (header.flag, list(header.label)) == (2, [1.5, 2.5])
    assert content == images.jpeg()
    single = encode_record(
        entry._replace(labels=(3,)), images.jpeg(), EncodeOptions(pack_label=True)
    )
    assert unpack(single)[0].flag == 0


@pytest.mark.parametrize("entry", [(2**64, (0,), "a.jpg"), (-1, (0,), "a.jpg"), (0, (), "a.jpg")])
def test_entries_that_fit_no_header_are_refused(images, entry):
    with pytest.raises(LabelError):
        encode_record(ListEntry(*entry), images.jpeg(), EncodeOptions())


def test_missing_files_folders_and_pipes_are_refused_without_hanging(tmp_path):
    (tmp_path / "folder.jpg").mkdir()
    for name, error in (("missing.jpg", FileNotFoundError), ("folder.jpg", IsADirectoryError)):
        with pytest.raises(error):
            ListedFiles(str(tmp_path)).read(ListEntry(0, (0,), name))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.jpg")
        with pytest.raises(ImageDecodeError, match="regular"):
            ListedFiles(str(tmp_path)).read(ListEntry(0, (0,), "pipe.jpg"))


def test_a_record_of_2_to_the_29_bytes_is_refused(images, monkeypatch):
    entry = ListEntry(0, (0,), "a.jpg")
    size = len(encode_record(entry, images.jpeg(), EncodeOptions()))
    monkeypatch.setattr(encode_module, "RECORD_LIMIT", size)
    with pytest.raises(RecordTooLargeError):
        encode_record(entry, images.jpeg(), EncodeOptions())


@pytest.mark.parametrize(
    "options",
    [
        {"resize": -1},
        {"quality": 101},
        {"quality": -1},
        {"encoding": ".gif"},
        {"encoding": ".raw"},
        {"color": 2},
        {"inter_method": 5},
        {"check": "some"},
    ],
)
def test_options_out_of_range_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        EncodeOptions(**options)


# -- raw images -------------------------------------------------------------------------------

RAW = EncodeOptions(encoding="raw")


def test_quality_of_raw_images_is_refused():
    with pytest.raises(ValueError, match="raw images have no quality"):
        EncodeOptions(encoding="raw", quality=95)


@pytest.mark.parametrize("color", [-1, 0, 1])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("options", [{}, {"resize": 12}, {"resize": 60, "inter_method": 9}])
@pytest.mark.parametrize("crop", [False, True])
def test_raw_images_hold_the_pixels_that_png_would_hold(images, color, channels, options, crop):
    for data in (images.png(24, 36, channels), images.jpeg(24, 36, channels, orientation=6)):
        chosen = {**options, "color": color, "center_crop": crop}
        raw = encode_image(data, EncodeOptions(encoding="raw", **chosen))
        png = encode_image(data, EncodeOptions(encoding=".png", **chosen))
        expected = images.decode(png)
        kind = b"P5" if expected.ndim == 2 else b"P6"
        height, width = expected.shape[:2]
        assert raw.startswith(kind + f"\n{width} {height}\n255\n".encode())
        np.testing.assert_array_equal(images.decode(raw), expected)


@pytest.mark.parametrize(
    ("channels", "dtype", "reason"),
    [
        (4, "uint8", "not 4"),
        pytest.param(3, "uint16", "uint16", marks=pytest.mark.opencv),
    ],
)
@pytest.mark.parametrize("resize", [0, 12])
def test_what_raw_images_cannot_hold_is_refused_with_what_to_do(
    images, channels, dtype, reason, resize
):
    data = images.png(24, 36, channels, dtype)
    with pytest.raises(ImageDecodeError, match=rf"{reason}.*--color 1 or --encoding .png"):
        encode_image(data, EncodeOptions(encoding="raw", color=-1, resize=resize))
    assert encode_image(data, RAW).startswith(b"P6\n36 24\n")


@pytest.mark.parametrize(
    ("suffix", "channels", "options", "untouched"),
    [
        (".ppm", 3, {}, True),
        (".ppm", 3, {"resize": 24}, True),
        (".ppm", 3, {"resize": 23}, False),
        (".ppm", 3, {"center_crop": True}, False),
        (".ppm", 3, {"color": 0}, False),
        (".ppm", 3, {"color": -1}, True),
        (".pgm", 1, {}, False),
        (".pgm", 1, {"color": 0}, True),
        (".pgm", 1, {"color": -1}, True),
        (".ppm", 3, {"encoding": ".png"}, False),
        (".ppm", 3, {"encoding": ".jpg"}, False),
    ],
)
def test_pnm_files_are_stored_untouched_only_when_nothing_would_change(
    images, suffix, channels, options, untouched
):
    data = cv2.imencode(suffix, images.gradient(24, 36, channels))[1].tobytes()
    data = data.replace(b"\n", b"\n# a comment\n", 1)
    assert (
        encode_image(data, EncodeOptions(**{"encoding": "raw", **options})) == data
    ) == untouched


def test_truncated_pnm_files_are_refused_though_they_are_passed_through(images):
    data = cv2.imencode(".ppm", images.gradient(24, 36))[1].tobytes()
    for options in (RAW, EncodeOptions(pass_through=True), EncodeOptions(resize=5)):
        with pytest.raises(ImageDecodeError, match="truncated"):
            encode_image(data[:-1], options)
    assert encode_image(data, EncodeOptions(pass_through=True)) == data


def test_raw_images_that_no_record_holds_are_refused_before_they_are_made(images):
    with pytest.raises(RecordTooLargeError, match="16384x11000 pixels are 540672000 bytes"):
        encode_module._encode_raw(np.broadcast_to(np.uint8(0), (11000, 16384, 3)))


def test_images_that_are_too_large_are_not_decoded(images):
    data = images.png(24, 36)
    few = {"max_pixels": 24 * 36 - 1}
    for changed in ({"resize": 10}, {"quality": 5}, {"check": "decode", "pass_through": True}):
        with pytest.raises(ImageDecodeError, match="36 x 24 .* raise --max-pixels"):
            encode_image(data, EncodeOptions(**few, **changed))
        encode_image(data, EncodeOptions(max_pixels=24 * 36, **changed))
    with pytest.raises(ImageDecodeError, match="raise --max-pixels"):
        encode_image(images.jpeg(24, 36), EncodeOptions(resize=10, **few))
    assert encode_image(data, EncodeOptions(pass_through=True, **few)) is data


def test_a_small_file_of_a_huge_image_takes_no_memory(images):
    with pytest.raises(ImageDecodeError, match="60000 x 60000"):
        encode_image(images.bomb(), EncodeOptions(check="none"))


# -- orientation, bits and missing ends -------------------------------------------------------


@pytest.mark.parametrize("encoding", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("color", [-1, 1])
def test_images_of_any_format_are_encoded_upright(images, encoding, color):
    pixels = images.gradient(24, 36)
    for orientation in range(1, 9):
        data = images.turned(pixels, encoding, orientation)
        stored = encode_image(data, EncodeOptions(color=color, encoding=".png"))
        assert read_header(stored).orientation == 1
        assert abs(decode_image(stored).astype(int) - pixels).max() < 12
        assert encode_image(data, EncodeOptions(pass_through=True)) == data


def test_an_image_with_alpha_is_encoded_upright(images):
    pixels = images.gradient(24, 36, 4)
    data = images.turned(pixels, "PNG", 6)
    stored = images.decode(encode_image(data, EncodeOptions(color=-1, encoding=".png")))
    np.testing.assert_array_equal(stored, pixels[..., [2, 1, 0, 3]])


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({}, True),
        ({"encoding": ".png"}, True),
        ({"color": 0, "resize": 12}, True),
        ({"encoding": "raw"}, True),
        ({"color": -1, "encoding": ".png"}, False),
        ({"pass_through": True}, False),
    ],
)
def test_images_that_lose_bits_are_known(images, options, lost):
    deep, plain = images.png(24, 36, 1, "uint16"), images.png(24, 36, 1)
    assert loses_bits(deep, EncodeOptions(**options)) == lost
    assert not loses_bits(plain, EncodeOptions(**options))
    stored = images.decode(encode_image(deep, EncodeOptions(**options)))
    assert (stored.dtype == np.uint8) == lost


@pytest.mark.libjpeg  # Pillow refuses grey and progressive ones
@pytest.mark.parametrize("check", ["header", "decode"])
@pytest.mark.parametrize("pass_through", [False, True])
@pytest.mark.parametrize("mode", [{"mode": "RGB"}, {"mode": "L"}, {"progressive": True}])
@pytest.mark.parametrize("options", [{}, {"resize": 10, "center_crop": True}])
def test_a_jpeg_without_its_end_marker_is_whole(images, check, pass_through, mode, options):
    file = io.BytesIO()
    mode = dict(mode)
    image = Image.fromarray(images.gradient(60, 40)).convert(mode.pop("mode", "RGB"))
    image.save(file, "JPEG", **mode)
    whole = file.getvalue()
    settings = EncodeOptions(pass_through=pass_through, check=check, **options)
    expected = whole if pass_through else encode_image(whole, settings)
    for data in (whole[:-2], whole[:-1], whole[:-2] + b"what a camera added" * 9):
        stored = encode_image(data, settings)
        assert stored in (data, expected)
    for data in (whole[:-9], whole[: len(whole) * 2 // 3]):
        with pytest.raises(ImageDecodeError, match="truncated"):
            encode_image(data, settings)


@pytest.mark.libjpeg
def test_warnings_about_what_changes_no_pixel_are_no_damage(images):
    data = images.jpeg(40, 60)
    sound = [
        data.replace(b"JFIF\0\1\1", b"JFIF\0\0\0"),
        data[:-2] + bytes(100) + data[-2:],
        data[:-2] + b"\xff" * 100 + data[-2:],
        data + b"behind the image",
    ]
    options = EncodeOptions(pass_through=True, check="decode")
    for changed in sound:
        assert changed != data and encode_image(changed, options) == changed
    with pytest.raises(ImageDecodeError, match='libjpeg reports ".* extraneous bytes before'):
        encode_image(data[:-2] + bytes(range(1, 90)) + data[-2:], options)


def test_values_that_no_encoding_keeps_are_named(images):
    for dtype, words in ((np.float32, "floating point"), (np.int16, "with a sign")):
        data = tiff(np.ones((4, 4), dtype), 8 * np.dtype(dtype).itemsize,
                    numbers=3 if dtype == np.float32 else 2)  # fmt: skip
        with pytest.raises(ImageDecodeError, match=words):
            encode_image(data, EncodeOptions())


def test_transparent_images_over_a_colour():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 4), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG")
    content = file.getvalue()
    beneath = Image.new("RGBA", (30, 20), (9, 200, 255, 255))
    wanted = Image.alpha_composite(beneath, Image.open(io.BytesIO(content))).convert("RGB")
    stored = encode_image(content, EncodeOptions(encoding=".png", background="9,200,255"))
    np.testing.assert_array_equal(decode_image(stored), np.asarray(wanted))
    plain = encode_image(content, EncodeOptions(encoding=".png"))
    np.testing.assert_array_equal(decode_image(plain), pixels[:, :, :3])
    with pytest.raises(ValueError, match="keeps the alpha channel"):
        EncodeOptions(color=-1, encoding=".png", background=255)
