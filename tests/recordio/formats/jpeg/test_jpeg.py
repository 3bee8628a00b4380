"""recordio.formats.jpeg.jpeg: exactness of regions, limits, and damaged files."""

import doctest
import io
import struct
import threading
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from faces.codecs import decode_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.libjpeg

SAMPLINGS = ("411", "420", "422", "440", "444")
DENOMINATORS = (1, 2, 4, 8)


def encode_with_pillow(image, mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(image).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def decode_with_opencv(data, channels):
    flag = cv2.IMREAD_COLOR if channels == 3 else cv2.IMREAD_GRAYSCALE
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag | cv2.IMREAD_IGNORE_ORIENTATION)
    return pixels[:, :, ::-1] if channels == 3 else pixels[:, :, None]


def scan_starts(data):
    """Offsets of the start-of-scan markers of a file without thumbnail."""
    return [i for i in range(len(data) - 1) if data[i : i + 2] == b"\xff\xda"]


def with_sampling_factors(data, factors):
    """The same file with other sampling factors in its frame header: decodable nonsense."""
    data = bytearray(data)
    position = 2
    while data[position + 1] not in (0xC0, 0xC2):
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    for component in range(data[position + 9]):
        data[position + 11 + 3 * component] = factors[component]
    return bytes(data)


def with_size(data, width, height):
    """The same file claiming another size."""
    data = bytearray(data)
    position = 2
    while data[position + 1] not in (0xC0, 0xC2):
        position += 2 + struct.unpack_from(">H", data, position + 2)[0]
    struct.pack_into(">HH", data, position + 5, height, width)
    return bytes(data)


def exif_segment(entries, order="<", announced=None, signature=b"Exif\0\0", magic=42, start=8):
    """An APP1 segment with one directory; `entries` are (tag, type, 4 value bytes)."""
    body = signature + {"<": b"II", ">": b"MM"}[order] + struct.pack(order + "HI", magic, start)
    body += struct.pack(order + "H", len(entries) if announced is None else announced)
    for tag, kind, value in entries:
        body += struct.pack(order + "HHI", tag, kind, 1) + value
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def short(value, order="<"):
    return struct.pack(order + "HH", value, 0)


def outcome(data, **options):
    """What decoding gives, in a form that can be compared."""
    try:
        return decode_jpeg(data, **options).tobytes()
    except ImageDecodeError as error:
        return str(error)


def outcome_in_new_thread(data, **options):
    """The same from a decoder that has seen nothing before."""
    found = []
    thread = threading.Thread(target=lambda: found.append(outcome(data, **options)))
    thread.start()
    thread.join()
    return found[0]


def test_doctests():
    result = doctest.testmod(jpeg)
    assert result.attempted > 3
    assert result.failed == 0


# ---- exactness ----


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_whole_image_equals_opencv(sampling, progressive, channels):
    for height, width in ((1, 1), (16, 16), (37, 53), (64, 9), (101, 130)):
        data = encode_jpeg(picture(height, width), sampling, progressive=progressive)
        assert np.array_equal(decode_jpeg(data, channels), decode_with_opencv(data, channels))


@pytest.mark.parametrize("channels", [1, 3])
def test_grey_file_and_rgb_file_equal_opencv(channels):
    grey = encode_jpeg(picture(45, 67)[:, :, 0])
    assert jpeg.header(grey).components == 1
    assert np.array_equal(decode_jpeg(grey, channels), decode_with_opencv(grey, channels))
    untransformed = encode_with_pillow(picture(45, 67), keep_rgb=True)
    assert np.array_equal(
        decode_jpeg(untransformed, channels), decode_with_opencv(untransformed, channels)
    )


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_scaled_image_equals_pillow(denominator):
    data = encode_jpeg(picture(90, 131), "444")
    image = Image.open(io.BytesIO(data))
    image.draft("RGB", (131 // denominator, 90 // denominator))
    assert np.array_equal(decode_jpeg(data, denominator=denominator), np.asarray(image))


@pytest.mark.parametrize("denominator", DENOMINATORS)
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_random_regions_equal_the_whole(sampling, progressive, denominator):
    random = np.random.default_rng(7)
    for height, width in ((7, 200), (33, 40), (100, 131), (150, 65)):
        data = encode_jpeg(
            picture(height, width), sampling, restart=int(width) % 3, progressive=progressive
        )
        for channels in (1, 3):
            whole = decode_jpeg(data, channels, denominator=denominator)
            for _ in range(40):
                x, y = random.integers(0, whole.shape[1]), random.integers(0, whole.shape[0])
                w = random.integers(1, whole.shape[1] - x + 1)
                h = random.integers(1, whole.shape[0] - y + 1)
                part = decode_jpeg(data, channels, (x, y, w, h), denominator)
                assert np.array_equal(part, whole[y : y + h, x : x + w]), (x, y, w, h)


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_one_pixel_and_one_line_everywhere(sampling):
    data = encode_jpeg(picture(51, 83), sampling)
    whole = decode_jpeg(data)
    height, width = whole.shape[:2]
    for y in range(height):
        assert np.array_equal(decode_jpeg(data, region=(0, y, width, 1)), whole[y : y + 1])
        for x in range(y % 5, width, 5):
            assert np.array_equal(decode_jpeg(data, region=(x, y, 1, 1))[0, 0], whole[y, x])
    for x in range(width):
        assert np.array_equal(decode_jpeg(data, region=(x, 0, 1, height)), whole[:, x : x + 1])
        rest = decode_jpeg(data, region=(x, 20, width - x, 20))
        assert np.array_equal(rest, whole[20:40, x:])


@given(
    st.lists(st.sampled_from([16 * h + v for h in (1, 2, 3, 4) for v in (1, 2, 3, 4)]),
             min_size=3, max_size=3),
    st.booleans(), st.sampled_from(DENOMINATORS), st.sampled_from([1, 3]),
    st.tuples(*[st.floats(0, 1)] * 4),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_regions_of_any_sampling_equal_the_whole(
    factors, progressive, denominator, channels, place
):
    data = with_sampling_factors(
        encode_jpeg(picture(70, 90), "444", progressive=progressive), factors
    )
    try:
        whole = decode_jpeg(data, channels, denominator=denominator)
    except ImageDecodeError:
        return  # libjpeg refuses fractions and more than ten blocks
    height, width = whole.shape[:2]
    x, y = int(place[0] * (width - 1)), int(place[1] * (height - 1))
    w, h = 1 + int(place[2] * (width - x - 1)), 1 + int(place[3] * (height - y - 1))
    part = decode_jpeg(data, channels, (x, y, w, h), denominator)
    assert np.array_equal(part, whole[y : y + h, x : x + w])


def test_regions_of_a_progressive_image_without_its_last_scans_equal_the_whole():
    data = encode_jpeg(picture(120, 140), "420", progressive=True)
    starts = scan_starts(data)
    assert len(starts) > 4
    for start in starts[1:]:
        early = data[:start] + b"\xff\xd9"
        for denominator in DENOMINATORS:
            whole = decode_jpeg(early, denominator=denominator)
            height, width = whole.shape[:2]
            x, y, w, h = width // 3, height // 2, width // 4, height // 3
            part = decode_jpeg(early, region=(x, y, w, h), denominator=denominator)
            assert np.array_equal(part, whole[y : y + h, x : x + w])


@pytest.mark.parametrize("option", ["restart_marker_blocks", "restart_marker_rows", "optimize"])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_files_of_pillow(option, subsampling):
    data = encode_with_pillow(picture(77, 99), subsampling=subsampling, **{option: 1})
    whole = decode_jpeg(data)
    assert np.array_equal(whole, decode_with_opencv(data, 3))
    assert np.array_equal(decode_jpeg(data, region=(30, 40, 50, 30)), whole[40:70, 30:80])


# ---- arguments ----


@pytest.mark.parametrize(
    "region",
    [
        (-1, 0, 5, 5), (0, -1, 5, 5), (0, 0, 0, 5), (0, 0, 5, 0), (0, 0, 31, 5), (0, 0, 5, 21),
        (30, 0, 1, 1), (0, 20, 1, 1), (1, 1, 2**31 - 1, 2**31 - 1), (2**31 - 1, 0, 1, 1),
    ],
)  # fmt: skip
def test_region_outside_the_image(region):
    data = encode_jpeg(picture(20, 30))
    with pytest.raises(ValueError, match="outside"):
        decode_jpeg(data, region=region)
    assert decode_jpeg(data).shape == (20, 30, 3)


def test_other_arguments():
    data = encode_jpeg(picture(20, 30))
    for denominator in (0, 3, 16, -1):
        with pytest.raises(ValueError, match="denominator"):
            decode_jpeg(data, denominator=denominator)
    for channels in (0, 2, 4):
        with pytest.raises(ValueError, match="channels"):
            decode_jpeg(data, channels)
    assert decode_jpeg(data, region=(14, 9, 1, 1), denominator=2).shape == (1, 1, 3)
    with pytest.raises(ValueError, match="outside"):
        decode_jpeg(data, region=(15, 9, 1, 1), denominator=2)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, np.frombuffer])
def test_any_buffer(kind):
    data = encode_jpeg(picture(20, 30))
    buffer = kind(data, np.uint8) if kind is np.frombuffer else kind(data)
    assert np.array_equal(decode_jpeg(buffer), decode_jpeg(data))


# ---- header ----


def test_header():
    data = encode_jpeg(picture(20, 30), progressive=True)
    assert jpeg.header(data) == (30, 20, 3, 1, True, True)
    assert jpeg.header(encode_jpeg(picture(20, 30)[:, :, 0])) == (30, 20, 1, 1, False, True)


def test_inks_are_decoded_to_the_pixels_of_pillow():
    data = encode_with_pillow(picture(20, 30), "CMYK")
    assert jpeg.header(data) == (30, 20, 4, 1, False, True)
    with Image.open(io.BytesIO(data)) as image:
        assert np.array_equal(decode_jpeg(data), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("frame", [0xC3, 0xC5, 0xC9, 0xCA, 0xCB, 0xCD])
def test_lossless_hierarchical_and_arithmetic_coding_are_left_to_others(frame):
    data = encode_jpeg(picture(20, 30)).replace(b"\xff\xc0", bytes([0xFF, frame]), 1)
    assert jpeg.header(data)[:3] == (30, 20, 3)
    assert not jpeg.header(data).supported
    with pytest.raises(ImageDecodeError, match="not decoded here"):
        decode_jpeg(data)


def test_twelve_bits_are_left_to_others():
    data = bytearray(encode_jpeg(picture(20, 30)))
    data[data.index(b"\xff\xc0") + 4] = 12
    assert not jpeg.header(data).supported


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("orientation", range(10))
def test_orientation(orientation, order):
    data = encode_jpeg(picture(20, 30))
    segment = exif_segment([(0x0112, 3, short(orientation, order))], order)
    expected = orientation if 1 <= orientation <= 8 else 1
    assert jpeg.header(data[:2] + segment + data[2:]).orientation == expected
    before_scan = data.index(b"\xff\xda")
    assert jpeg.header(data[:before_scan] + segment + data[before_scan:]).orientation == expected


def test_which_exif_counts():
    data = encode_jpeg(picture(20, 30))
    six = exif_segment([(0x0112, 3, short(6))])
    eight = exif_segment([(0x0112, 3, short(8))])
    other = b"\xff\xe1" + struct.pack(">H", 36) + b"http://ns.adobe.com/xap/1.0/\0<x/>\0"
    silent = exif_segment([(0x0100, 3, short(6))])
    for segments, expected in (
        ([six, eight], 6),
        ([other, six], 6),
        ([silent, eight], 8),
        ([exif_segment([(0x010F, 3, short(1)), (0x0112, 3, short(6))])], 6),
        ([exif_segment([(0x0112, 3, short(6))], announced=5000)], 6),
        ([exif_segment([(0x0112, 3, short(6))], announced=0)], 1),
        ([exif_segment([(0x0112, 3, short(6))], magic=43)], 1),
        ([exif_segment([(0x0112, 3, short(6))], signature=b"Nope\0\0")], 1),
        ([exif_segment([(0x0112, 3, short(6))], start=2**32 - 1)], 1),
        ([exif_segment([(0x0112, 3, short(6))], start=22)], 1),
    ):
        assert jpeg.header(data[:2] + b"".join(segments) + data[2:]).orientation == expected


def test_thumbnail_in_exif_is_not_mistaken_for_the_image():
    thumbnail = encode_jpeg(picture(8, 8))
    segment = b"\xff\xe1" + struct.pack(">H", len(thumbnail) + 2) + thumbnail
    data = encode_jpeg(picture(20, 30))
    assert jpeg.header(data[:2] + segment + data[2:])[:2] == (30, 20)


@given(st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_hostile_exif_neither_crashes_nor_invents(payload):
    data = encode_jpeg(picture(20, 30))
    body = b"Exif\0\0" + payload
    segment = b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
    assert 1 <= jpeg.header(data[:2] + segment + data[2:]).orientation <= 8


# ---- damaged and hostile files ----


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n", bytes(100), b"\xff\xd8\x00"],
)
def test_not_jpeg(data):
    with pytest.raises(ImageDecodeError, match="not a JPEG"):
        decode_jpeg(data)
    with pytest.raises(ImageDecodeError, match="not a JPEG"):
        jpeg.header(data)


@pytest.mark.parametrize("sampling", ["420", "444"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("restart", [0, 2])
def test_truncated_anywhere(sampling, progressive, restart):
    data = encode_jpeg(picture(50, 60), sampling, restart=restart, progressive=progressive)
    whole = decode_jpeg(data)
    header_end = scan_starts(data)[0]
    for size in range(3, len(data) - 2):
        try:
            pixels = decode_jpeg(data[:size])
        except ImageDecodeError as error:
            assert "truncated" in str(error)
        else:  # nothing but padding bits was missing
            assert size > len(data) - 6
            assert np.array_equal(pixels, whole)
        if size < header_end:
            with pytest.raises(ImageDecodeError, match="truncated"):
                jpeg.header(data[:size])


def test_missing_end_marker_is_harmless():
    for progressive in (False, True):
        data = encode_jpeg(picture(50, 60), progressive=progressive)
        assert data.endswith(b"\xff\xd9")
        assert np.array_equal(decode_jpeg(data[:-2]), decode_jpeg(data))


def test_rows_above_the_damage_can_be_had():
    data = encode_jpeg(picture(200, 60))
    start = data[: len(data) // 2]
    whole = decode_jpeg(data)
    assert np.array_equal(decode_jpeg(start, region=(0, 0, 60, 60)), whole[:60])
    with pytest.raises(ImageDecodeError, match="truncated"):
        decode_jpeg(start, region=(0, 150, 60, 20))
    with pytest.raises(ImageDecodeError, match="truncated"):
        decode_jpeg(start, region=(0, 0, 60, 180))


def test_progressive_file_cut_between_scans_is_truncated():
    data = encode_jpeg(picture(50, 60), progressive=True)
    for start in scan_starts(data)[1:]:
        with pytest.raises(ImageDecodeError, match="truncated"):
            decode_jpeg(data[:start])


def test_junk_behind_the_image_is_ignored():
    data = encode_jpeg(picture(50, 60))
    assert np.array_equal(decode_jpeg(data + bytes(1000) + data[:500]), decode_jpeg(data))


def test_zero_size():
    data = encode_jpeg(picture(50, 60))
    for width, height in ((0, 50), (60, 0), (0, 0)):
        with pytest.raises(ImageDecodeError, match="damaged"):
            decode_jpeg(with_size(data, width, height))


def test_header_that_claims_huge_size():
    for progressive in (False, True):
        bomb = with_size(encode_jpeg(picture(50, 60), progressive=progressive), 65500, 65500)
        assert jpeg.header(bomb)[:2] == (65500, 65500)
        with pytest.raises(ImageDecodeError, match="too large.*65500 x 65500"):
            decode_jpeg(bomb)
        with pytest.raises(ImageDecodeError, match="damaged"):  # libjpeg's own limit of a side
            decode_jpeg(with_size(bomb, 65535, 65535))


def test_pixel_limit_is_inclusive():
    data = encode_jpeg(picture(50, 60))
    assert decode_jpeg(data, max_pixels=3000).shape == (50, 60, 3)
    with pytest.raises(ImageDecodeError, match="max_pixels"):
        decode_jpeg(data, max_pixels=2999)
    with pytest.raises(ImageDecodeError, match="max_pixels"):
        decode_jpeg(data, max_pixels=2999, region=(0, 0, 1, 1))


def test_scan_bomb():
    data = encode_jpeg(picture(50, 60), progressive=True)
    starts = scan_starts(data)
    scan = data[starts[1] : data.index(b"\xff\xc4", starts[1])]
    bomb = data[: starts[1]] + scan * 300 + data[starts[1] :]
    with pytest.raises(ImageDecodeError, match="more than 256 scans"):
        decode_jpeg(bomb)
    assert decode_jpeg(bomb, max_scans=400).shape == (50, 60, 3)
    with pytest.raises(ImageDecodeError, match="more than 3 scans"):
        decode_jpeg(data, max_scans=3)
    assert decode_jpeg(data, max_scans=len(starts)).shape == (50, 60, 3)


def test_tables_of_one_image_do_not_help_the_next():
    whole = encode_with_pillow(picture(50, 60), optimize=True)
    tables = [i for i in range(len(whole) - 1) if whole[i : i + 2] == b"\xff\xdb"]
    position = tables[0]
    without = whole[:position]
    while whole[position : position + 2] == b"\xff\xdb":
        position += 2 + struct.unpack_from(">H", whole, position + 2)[0]
    without += whole[position:]
    decode_jpeg(whole)
    with pytest.raises(ImageDecodeError, match="damaged"):
        decode_jpeg(without)


def test_image_without_huffman_tables_uses_the_standard_ones_after_any_predecessor():
    standard = encode_with_pillow(picture(50, 60))
    without = standard[: standard.index(b"\xff\xc4")] + standard[standard.index(b"\xff\xda") :]
    expected = decode_jpeg(standard)
    decode_jpeg(encode_with_pillow(picture(50, 60, 1), optimize=True))
    assert np.array_equal(decode_jpeg(without), expected)


@given(
    st.sampled_from([("420", 0, False), ("444", 0, True), ("422", 2, False), ("411", 3, True)]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=20),
    st.floats(0.3, 1), st.sampled_from([1, 3]), st.sampled_from(DENOMINATORS),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_changed_bytes_give_the_same_outcome_every_time(kind, changes, keep, channels, denominator):
    data = bytearray(encode_jpeg(picture(60, 70), kind[0], 90, kind[1], progressive=kind[2]))
    for place, value in changes:
        data[int(place * (len(data) - 1))] = value
    data = bytes(data[: int(keep * len(data))] if keep < 0.6 else data)
    options = dict(channels=channels, denominator=denominator, max_pixels=2**20, max_scans=64)
    first = outcome(data, **options)
    decode_jpeg(encode_jpeg(picture(33, 44, 1)))
    assert outcome(data, **options) == first
    assert outcome_in_new_thread(data, **options) == first


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=300, deadline=None)
def test_random_bytes(data, prefixed):
    data = b"\xff\xd8\xff" + data if prefixed else data
    with pytest.raises(ImageDecodeError):
        decode_jpeg(data)


def test_many_images_good_and_bad_through_one_decoder():
    good = [encode_jpeg(picture(30 + i, 90 - i, i), s) for i, s in enumerate(SAMPLINGS)]
    good += [encode_jpeg(picture(64, 64, i), "420", progressive=True) for i in range(3)]
    expected = [decode_jpeg(data) for data in good]
    bad = [
        good[0][:200],
        b"",
        good[5][:-300],
        b"\xff\xd8\xff\xe0",
        with_size(good[1], 65000, 65000),
    ]
    for turn in range(400):
        index = turn * 7 % len(good)
        assert np.array_equal(decode_jpeg(good[index]), expected[index])
        assert "Error" not in outcome(bad[turn % len(bad)]).__class__.__name__
        assert isinstance(outcome(bad[turn % len(bad)]), str)


def test_threads_do_not_disturb_each_other():
    images = [
        encode_jpeg(picture(80, 100, i), s, progressive=i % 2 == 0) for i, s in enumerate(SAMPLINGS)
    ]
    expected = [decode_jpeg(data).tobytes() for data in images]
    wrong = []

    def work(offset):
        for turn in range(60):
            index = (offset + turn) % len(images)
            if outcome(images[index]) != expected[index]:
                wrong.append(index)
            outcome(images[index][: 300 + turn])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert wrong == []


def test_nothing_is_printed(capfd):
    data = bytearray(encode_jpeg(picture(60, 70)))
    data[-100:-50] = bytes(50)
    outcome(bytes(data))
    outcome(bytes(data[:300]))
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""
