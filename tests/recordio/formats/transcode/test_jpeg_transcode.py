"""Lossless rewriting of JPEG files: coefficients, pixels, segments, damage, and what is refused."""

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from faces.codecs import decode_jpeg
from iterators import optimize_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.errors import ImageDecodeError
from recordio.formats.jpeg import jpeg
from recordio.formats.transcode.transcode import coefficients, read_all_codes, rewrite

pytestmark = pytest.mark.libjpeg

SAMPLINGS = ("411", "420", "422", "440", "444")
SOF0, SOF1, SOF2, DHT, DQT, DRI, SOS, EOI = 0xC0, 0xC1, 0xC2, 0xC4, 0xDB, 0xDD, 0xDA, 0xD9
CODING = {SOF0, SOF1, SOF2, DHT, DRI, SOS}
NOTHING_TO_GAIN = (None, "nothing to gain")


def by_pillow(image, mode="RGB", **options):
    file = io.BytesIO()
    Image.fromarray(image).convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


def segments(data):
    """``(marker, payload)`` of everything before the entropy-coded data of the first scan."""
    found, at = [], 2
    while True:
        marker = data[at + 1]
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        found.append((marker, data[at + 4 : end]))
        if marker == SOS:
            return found
        at = end


def kept(data):
    return [segment for segment in segments(data) if segment[0] not in CODING]


def restart_interval(data):
    found = [payload for marker, payload in segments(data) if marker == DRI]
    return int.from_bytes(found[0], "big") if found else 0


def restart_markers(data):
    """Numbers of the restart markers, in order."""
    last, found = 0, []
    scan = data[data.index(b"\xff\xda") :]
    for byte in scan:
        if last == 0xFF and 0xD0 <= byte <= 0xD7:
            found.append(byte - 0xD0)
        last = byte
    return found


def decoders(data):
    """Pixels by OpenCV, Pillow and our own decoder, upright or as stored."""
    array = np.frombuffer(data, np.uint8)
    yield cv2.imdecode(array, cv2.IMREAD_COLOR)
    yield cv2.imdecode(array, cv2.IMREAD_UNCHANGED)
    with Image.open(io.BytesIO(data)) as image:
        yield np.array(image)
    if jpeg.header(data).supported:
        yield decode_jpeg(data)


def check_lossless(data, again):
    """The same coefficients, quantisation tables, segments and pixels; and one sequential scan."""
    before, after = coefficients(data), coefficients(again)
    assert len(before.blocks) == len(after.blocks)
    assert all(map(np.array_equal, before.blocks, after.blocks))
    assert all(map(np.array_equal, before.quantisation, after.quantisation))
    assert kept(data) == kept(again)
    assert again.count(b"\xff\xda") == 1 + sum(part.count(b"\xff\xda") for _, part in kept(again))
    assert not jpeg.header(again).progressive
    assert jpeg.header(data)._replace(progressive=False) == jpeg.header(again)
    for old, new in zip(decoders(data), decoders(again), strict=True):
        assert np.array_equal(old, new)


# ---- nothing is lost ----


@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.sampled_from(sorted(SAMPLINGS)),
    st.integers(1, 100),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 255),
    st.integers(0, 40),
    st.sampled_from(["optimal", "standard"]),
)
@settings(max_examples=150, deadline=None)
def test_coefficients_and_pixels_stay_the_same(
    size, sampling, quality, restart, optimize, progressive, grey, noise, wanted, tables
):
    image = picture(*size, noise, noise=noise)
    image = image[:, :, 0] if grey else image
    data = encode_jpeg(image, sampling, quality, restart, optimize, progressive)
    again, reason = rewrite(data, wanted, tables)
    if again is None:  # it may happen to be what is wanted already
        assert reason == "nothing to gain"
        assert restart_interval(data) == wanted
        return
    check_lossless(data, again)
    assert restart_interval(again) == wanted
    assert rewrite(again, wanted, tables) == NOTHING_TO_GAIN


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("size", [(1, 1), (8, 8), (9, 17), (200, 300), (3, 2000)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"progressive": True},
        {"optimize": True, "quality": 100},
        {"progressive": True, "quality": 1},
        {"restart_marker_blocks": 5},
        {"restart_marker_rows": 1, "progressive": True},
    ],
)
def test_files_of_pillow(mode, size, options):
    data = by_pillow(picture(*size), mode, **options)
    for restart in (0, 7):
        check_lossless(data, rewrite(data, restart)[0] or data)
    again = optimize_jpeg(data)
    check_lossless(data, again)
    assert optimize_jpeg(again) == again


def test_rgb_without_transformation():
    data = by_pillow(picture(180, 200), keep_rgb=True, progressive=True)
    check_lossless(data, optimize_jpeg(data))


@pytest.mark.parametrize(
    ("sampling", "size"),
    [
        ((2, 1, 1, 1, 1, 1), (48, 155)),
        ((1, 1, 2, 2, 1, 1), (80, 128)),
        ((4, 2, 1, 1, 1, 1), (57, 180)),
        ((1, 2, 1, 1, 2, 1), (96, 128)),
    ],
)
def test_unusual_sampling_factors(sampling, size):
    """No encoder at hand writes them: 240 blocks, all of one table, are given another meaning."""
    data = bytearray(by_pillow(picture(64, 80, noise=3), keep_rgb=True))
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = b"".join(side.to_bytes(2, "big") for side in size)
    for component in range(3):
        columns, rows = sampling[2 * component : 2 * component + 2]
        data[frame + 11 + 3 * component] = columns << 4 | rows
    data = bytes(data)
    for restart in (0, 3, 4):
        again, reason = rewrite(data, restart)
        assert reason == ""
        before, after = coefficients(data), coefficients(again)
        assert all(map(np.array_equal, before.blocks, after.blocks))
        assert kept(data) == kept(again)
        for old, new in zip(decoders(data), decoders(again), strict=True):
            assert np.array_equal(old, new)


def in_three_scans(factors, height, width):
    """A sequential file with a scan for each component, made of the scans of grey images."""
    most = [max(factor[i] for factor in factors) for i in (0, 1)]
    head, scans, components = b"", b"", b""
    for number, (columns, rows) in enumerate(factors, 1):
        size = -(-height * rows // most[1]), -(-width * columns // most[0])
        grey = encode_jpeg(picture(*size, number)[:, :, 0])
        frame, scan = grey.index(b"\xff\xc0"), grey.index(b"\xff\xda")
        head = head or grey[:frame]
        components += bytes([number, columns << 4 | rows, 0])
        tables = [payload for marker, payload in segments(grey) if marker == DHT]
        for payload in tables:
            scans += b"\xff\xc4" + (len(payload) + 2).to_bytes(2, "big") + payload
        scans += b"\xff\xda\x00\x08\x01" + bytes([number, 0, 0, 63, 0]) + grey[scan + 10 : -2]
    frame = b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\x03" + components
    return head + b"\xff\xc0\x00\x11" + frame + scans + b"\xff\xd9"


@pytest.mark.parametrize("factors", [[(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)], [(2, 1)] * 3])
def test_scans_of_single_components_become_one(factors):
    data = in_three_scans(factors, 77, 101)
    assert len(coefficients(data).blocks) == 3
    for restart in (0, 4):
        again, reason = rewrite(data, restart)
        assert reason == ""
        check_lossless(data, again)
    assert not jpeg.header(data).progressive


def test_what_does_not_fit_into_one_scan_is_refused():
    impossible = (None, "its coefficients do not fit into one baseline scan")
    assert rewrite(in_three_scans([(4, 2), (2, 2), (1, 1)], 77, 101)) == impossible
    # Grey, one block; its AC code has a symbol for 11 bits, of which there may be only 10.
    tables = b"\xff\xdb\x00\x43\x00" + bytes([1] * 64)
    frame = b"\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
    dc = b"\xff\xc4\x00\x14\x00" + bytes([1] + [0] * 15) + b"\x00"
    ac = b"\xff\xc4\x00\x15\x10" + bytes([1, 1] + [0] * 14) + b"\x00\x0b"
    scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
    bits = int("0" + "10" + "10000000001" + "0" + "1", 2).to_bytes(2, "big")
    data = b"\xff\xd8" + tables + frame + dc + ac + scan + bits + b"\xff\xd9"
    assert coefficients(data).blocks[0][0, 0, 0, 1] == 1025
    assert rewrite(data, 2) == impossible


def test_sixteen_bit_quantisation_is_kept():
    tables = [[*range(1, 249, 4), 300, 32767], [30000] * 64]
    data = by_pillow(picture(180, 260), qtables=tables, progressive=True)
    again = optimize_jpeg(data)
    check_lossless(data, again)
    assert coefficients(again).quantisation[1].min() == 30000
    assert SOF1 in dict(segments(again))


def test_every_segment_is_kept_byte_for_byte():
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    options = {"exif": exif, "icc_profile": profile, "comment": b"a comment", "dpi": (300, 72)}
    data = by_pillow(picture(170, 250), progressive=True, **options)
    large = b"\xff\xef\xff\xff" + bytes(range(256)) * 255 + bytes(253)
    data = data[:2] + large + b"\xff\xfe\x00\x02" + data[2:]
    again = optimize_jpeg(data)
    check_lossless(data, again)
    assert jpeg.header(again).orientation == 6
    with Image.open(io.BytesIO(again)) as image:
        assert image.info["icc_profile"] == profile
        assert image.info["comment"] == b"a comment"
        assert image.info["dpi"] == (300, 72)
        assert image.getexif()[0x010E] == "a description"


def test_fill_bytes_before_a_marker_are_no_obstacle():
    data = encode_jpeg(picture(180, 200), progressive=True)
    at = data.index(b"\xff\xdb")
    again = optimize_jpeg(data[:at] + b"\xff\xff\xff" + data[at:])
    assert again == optimize_jpeg(data)


@pytest.mark.parametrize("tail", [b"\0", b"\xff\xd8\xff\xd9", b"video" * 1000])
def test_what_follows_the_image_is_kept(tail):
    data = encode_jpeg(picture(180, 200), progressive=True)
    assert optimize_jpeg(data + tail) == optimize_jpeg(data) + tail


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind):
    data = encode_jpeg(picture(180, 200), progressive=True)
    assert optimize_jpeg(kind(data)) == optimize_jpeg(data)
    small = encode_jpeg(picture(20, 20))
    assert optimize_jpeg(kind(small)) == small
    assert type(optimize_jpeg(kind(small))) is bytes


def test_all_threads_write_the_same():
    data = [encode_jpeg(picture(200, 180 + i, i), progressive=bool(i % 2)) for i in range(6)]
    expected = [optimize_jpeg(one) for one in data]
    found = [[] for _ in range(4)]

    def work(results):
        results.extend(optimize_jpeg(one) for one in data * 3)

    with ThreadPoolExecutor(len(found)) as pool:
        list(pool.map(work, found))
    assert all(results == expected * 3 for results in found)


# ---- what is written ----


@pytest.mark.parametrize("restart", [1, 7, 8, 30, 31, 900, 65535])
def test_restart_markers_are_where_they_are_asked_for(restart):
    data = encode_jpeg(picture(400, 480), "420")
    again, _ = rewrite(data, restart)
    assert restart_interval(again) == restart
    mcus = 30 * 25
    assert restart_markers(again) == [i % 8 for i in range((mcus - 1) // restart)]
    check_lossless(data, again)


def test_without_restart_markers():
    data = encode_jpeg(picture(400, 480), restart=5)
    again, _ = rewrite(data, 0)
    assert restart_interval(again) == 0
    assert restart_markers(again) == []


@pytest.mark.parametrize("sampling", ["420", "444"])
@pytest.mark.parametrize("size", [(375, 500), (400, 496), (1200, 1600), (160, 160)])
def test_the_automatic_interval_makes_a_few_segments_of_a_row(size, sampling):
    again = optimize_jpeg(encode_jpeg(picture(*size), sampling))
    interval = restart_interval(again)
    columns = -(-size[1] // (16 if sampling == "420" else 8))
    assert 2 <= interval <= columns
    if columns % interval and size[1] < 1000:
        assert all(columns % other for other in (interval - 1, interval, interval + 1) if other > 1)


@pytest.mark.parametrize("quality", [30, 75, 90, 100])
def test_automatic_markers_cost_few_bytes(quality):
    for size in [(200, 200), (375, 500), (800, 1200)]:
        data = encode_jpeg(picture(*size, noise=6), quality=quality, optimize=True)
        assert len(optimize_jpeg(data)) < 1.03 * len(data)


def test_small_images_stay_as_they_are():
    for optimize in (False, True):
        data = encode_jpeg(picture(112, 112), optimize=optimize)
        assert rewrite(data) == NOTHING_TO_GAIN
        assert optimize_jpeg(data) is data


def test_small_progressive_images_get_the_tables_that_decoders_keep():
    data = encode_jpeg(picture(112, 112), progressive=True)
    again = optimize_jpeg(data)
    plain = encode_jpeg(picture(112, 112))
    assert [s for s in segments(plain) if s[0] == DHT] != []
    assert restart_interval(again) == 0
    codes = b"".join(payload for marker, payload in segments(plain) if marker == DHT)
    assert b"".join(payload for marker, payload in segments(again) if marker == DHT) == codes
    assert again[again.index(b"\xff\xda") :] == plain[plain.index(b"\xff\xda") :]


def test_the_codes_are_as_short_as_the_library_finds_them():
    for seed, quality in enumerate([20, 60, 90, 100]):
        data = encode_jpeg(picture(200, 300, seed), quality=quality)
        theirs = encode_jpeg(picture(200, 300, seed), quality=quality, optimize=True)
        ours, _ = rewrite(data, 0, "optimal")
        assert len(ours) <= len(theirs)


def test_codes_of_one_symbol_and_of_the_longest_kind():
    flat = encode_jpeg(np.full((200, 200), 128, np.uint8))
    again, _ = rewrite(flat, 0, "optimal")
    check_lossless(flat, again)
    # Frequencies that fall like powers of two ask for codes of more than 16 bits.
    noise = np.random.default_rng(0).standard_cauchy((900, 900)) * 3
    data = encode_jpeg(np.clip(128 + noise, 0, 255).astype(np.uint8), quality=98)
    again, _ = rewrite(data, 0, "optimal")
    check_lossless(data, again)
    lengths = next(payload for marker, payload in segments(again) if marker == DHT)
    at, longest = 0, 0
    while at < len(lengths):
        counts = lengths[at + 1 : at + 17]
        longest = max(longest, max(i + 1 for i in range(16) if counts[i]))
        at += 17 + sum(counts)
    assert longest == 16


# ---- what is refused ----


def test_what_is_no_jpeg():
    for data in (b"", b"\xff", b"\xff\xd8", b"GIF89a", b"\x89PNG\r\n\x1a\n", bytes(100)):
        assert rewrite(data) == (None, "not a JPEG image")
        with pytest.raises(ImageDecodeError, match="not a JPEG image"):
            optimize_jpeg(data)
        with pytest.raises(ImageDecodeError):
            coefficients(data)


@pytest.mark.parametrize("progressive", [False, True])
def test_a_truncated_file_is_refused_wherever_it_ends(progressive):
    data = encode_jpeg(picture(40, 60), progressive=progressive)
    for end in range(3, len(data)):
        assert rewrite(data[:end], 2)[1] in ("truncated", "damaged")


@given(st.data(), st.booleans(), st.sampled_from([0, 3]))
@settings(max_examples=200, deadline=None)
def test_random_damage_is_refused_or_harmless(draw, progressive, restart):
    data = bytearray(encode_jpeg(picture(60, 80), restart=restart, progressive=progressive))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    data = bytes(data)
    again, reason = rewrite(data, 4, max_pixels=1 << 20)
    if again is None:
        assert reason
        return
    before, after = coefficients(data), coefficients(again)
    assert all(map(np.array_equal, before.blocks, after.blocks))
    assert kept(data) == kept(again)


@given(st.binary(max_size=400), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_random_bytes_are_refused(noise, start):
    prefix = [b"", b"\xff\xd8\xff", encode_jpeg(picture(20, 20))[:300], b"\xff\xd8\xff\xc0"][start]
    assert rewrite(prefix + noise)[0] is None


def test_bytes_that_do_not_belong_to_a_segment_are_damage():
    data = encode_jpeg(picture(180, 200))
    at = data.index(b"\xff\xdb")
    assert rewrite(data[:at] + b"junk" + data[at:]) == (None, "damaged")


def test_limits():
    data = encode_jpeg(picture(100, 200), progressive=True)
    assert rewrite(data, max_pixels=100 * 200)[1] == ""
    assert rewrite(data, max_pixels=100 * 200 - 1) == (None, "too many pixels")
    assert rewrite(data, max_scans=2) == (None, "too many scans")


def test_incomplete_progressive_files_are_refused():
    """Decoders smooth them, which they would not do any more."""
    data = encode_jpeg(picture(180, 200), progressive=True)
    last = data.rindex(b"\xff\xda")
    previous = data.rindex(b"\xff\xc4", 0, last)
    assert rewrite(data[:previous] + b"\xff\xd9")[1] == "it is progressive and lacks its last scans"


def test_files_that_point_behind_their_image_are_refused():
    data = encode_jpeg(picture(180, 200), progressive=True)
    pictures = b"\xff\xe2\x00\x10MPF\0MM\0*\0\0\0\x08\0\0"
    assert "MPF" in rewrite(data[:2] + pictures + data[2:])[1]
    profile = b"\xff\xe2\x00\x10ICC_PROFILE\0\x01\x01"
    assert rewrite(data[:2] + profile + data[2:])[1] == ""


def test_segments_between_scans_are_refused():
    data = encode_jpeg(picture(180, 200), progressive=True)
    second = data.index(b"\xff\xc4", data.index(b"\xff\xda"))
    comment = b"\xff\xfe\x00\x06text"
    unusual = data[:second] + comment + data[second:]
    assert rewrite(unusual) == (None, "its segments are in an unusual order")


def test_arithmetic_coding_and_lossless_files_are_refused():
    data = encode_jpeg(picture(180, 200))
    frame = data.index(b"\xff\xc0")
    for marker in (0xC3, 0xC5, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD):
        assert rewrite(data[: frame + 1] + bytes([marker]) + data[frame + 2 :])[0] is None
    twelve_bits = data[: frame + 4] + b"\x0c" + data[frame + 5 :]
    assert rewrite(twelve_bits)[0] is None


def test_a_memory_of_damage_does_not_outlive_the_file():
    good = encode_jpeg(picture(180, 200), progressive=True)
    expected = optimize_jpeg(good)
    for end in range(10, len(good), 500):
        assert rewrite(good[:end])[0] is None
        assert optimize_jpeg(good) == expected


@pytest.mark.parametrize("restart", [-1, 65536, "often", 1.5, None])
def test_wrong_intervals_are_refused(restart):
    with pytest.raises((TypeError, ValueError)):
        optimize_jpeg(encode_jpeg(picture(20, 20)), restart)


def test_wrong_tables_are_refused():
    with pytest.raises(ValueError, match="tables"):
        rewrite(b"", tables="short")


def test_memory_does_not_grow():
    program = (
        "import resource, sys\n"
        "from recordio.formats.transcode.transcode import rewrite\n"
        "data = sys.stdin.buffer.read()\n"
        "def work(count):\n"
        "    for i in range(count):\n"
        "        assert rewrite(data, i % 9 + 1)[0]\n"
        "        assert not rewrite(data[: 1000 + i])[0]\n"
        "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = work(30)\n"
        "grown = work(200) - before\n"
        "sys.exit(f'{grown} KiB more' if grown > 4000 else 0)\n"
    )
    pytest.importorskip("resource")
    data = encode_jpeg(picture(300, 400), progressive=True)
    subprocess.run([sys.executable, "-c", program], input=data, check=True, timeout=60)


# ---- reading to the end ----


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("restart", [0, 3])
def test_a_file_without_its_end_marker_is_read_and_a_cut_one_is_not(progressive, restart):
    data = encode_jpeg(picture(40, 60), progressive=progressive, restart=restart)
    scan = data.rindex(b"\xff\xda")
    for end in (len(data), len(data) - 1, len(data) - 2):
        assert read_all_codes(data[:end])
    for end in range(scan + 20, len(data) - 3, 7):
        with pytest.raises(ImageDecodeError, match="the JPEG image is (truncated|damaged)"):
            read_all_codes(data[:end])


@given(st.data(), st.booleans())
@settings(max_examples=200, deadline=None)
def test_what_is_read_without_a_warning_is_read_leniently_too(draw, progressive):
    data = bytearray(encode_jpeg(picture(60, 80), progressive=progressive))
    for _ in range(draw.draw(st.integers(0, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    data = bytes(data[: draw.draw(st.integers(0, len(data)))])
    try:
        coefficients(data)
    except ImageDecodeError:
        try:
            read_all_codes(data)
        except ImageDecodeError as error:
            assert error.reason
    else:
        assert read_all_codes(data)


def test_filling_in_front_of_the_end_marker_is_no_damage():
    data = encode_jpeg(picture(40, 60))
    for filling in (bytes(60), b"a" * 60, b"\xff" * 60):
        assert read_all_codes(data[:-2] + filling + data[-2:])
    with pytest.raises(ImageDecodeError, match="extraneous bytes before marker 0xd9"):
        read_all_codes(data[:-2] + bytes(range(1, 60)) + data[-2:])
