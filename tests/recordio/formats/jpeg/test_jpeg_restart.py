"""Regions of images with restart markers: what is passed over, that it shows nowhere, and damage.

The rule for damaged images: pixels and errors are the library's, always.  Warnings are as well, but
for damage inside of segments that the region has no need of, which may go unseen.
"""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces.codecs import decode_jpeg, last_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.errors import ImageDecodeError

pytestmark = pytest.mark.libjpeg

LIBRARY, OWN, GIVEN_BACK = 0, 1, 2
MCU_SIZES = {"411": (32, 8), "420": (16, 16), "422": (16, 8), "440": (8, 16), "444": (8, 8)}


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch):
    """Ours, whatever the environment says, and afterwards what was in use before."""
    monkeypatch.setenv("ITERATORS_JPEG", "")


def decode(data, own, **options):
    """Pixels, or None; error text; number of warnings; and which decoder it was."""
    os.environ["ITERATORS_JPEG"] = "" if own else "plain"
    pixels, message = None, ""
    try:
        pixels = decode_jpeg(data, **options)
    except ImageDecodeError as error:
        message = str(error)
    decoder, warnings = last_jpeg()
    return pixels, message, warnings, decoder


def check_equal(data, **options):
    """Decode with both, with the same outcome; what ours became."""
    theirs, their_message, their_warnings, decoder = decode(data, False, **options)
    assert decoder == LIBRARY
    ours, message, warnings, decoder = decode(data, True, **options)
    assert (message, warnings) == (their_message, their_warnings)
    assert np.array_equal(ours, theirs) if theirs is not None else ours is None
    return decoder


def check_passing_over(data, **options):
    """The same, but ours may have seen less damage that is decoded over; whether that was so."""
    theirs, their_message, their_warnings, _ = decode(data, False, **options)
    ours, message, warnings, decoder = decode(data, True, **options)
    assert message == their_message
    assert np.array_equal(ours, theirs) if theirs is not None else ours is None
    if warnings != their_warnings:
        assert decoder == OWN  # whatever the library decodes, it decodes from the start
        assert message == ""
        assert warnings < their_warnings
    return decoder, warnings != their_warnings


def scan_of(data):
    """Offset of the entropy-coded data."""
    start = data.index(b"\xff\xda")
    return start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")


def markers_of(data):
    """Offsets of the restart markers."""
    at = range(scan_of(data), len(data) - 1)
    return [i for i in at if data[i] == 0xFF and 0xD0 <= data[i + 1] <= 0xD7]


def segments_of(data):
    """Offsets of the beginnings and ends of the segments between the markers."""
    markers = markers_of(data)
    return list(
        zip([scan_of(data)] + [at + 2 for at in markers], markers + [len(data) - 2], strict=True)
    )


def unneeded(data, size, sampling, restart, region):
    """Numbers of the segments that lie beside the region, or more than a row of MCUs above it, and
    of those below it that the library does not come to."""
    mcu_width, mcu_height = MCU_SIZES[sampling]
    per_row = -(-size[1] // mcu_width)
    x, y, width, height = region
    if width < 32:  # the least that is decoded
        x, width = max(0, x - 32), width + 64
    columns = range(max(0, x - 4) // mcu_width, (x + width + 3) // mcu_width + 1)
    rows = range(max(0, y - 1) // mcu_height, (y + height) // mcu_height + 1)
    needed = {
        (row * per_row + column) // restart
        for row in rows
        for column in columns
        if column < per_row
    }
    return [number for number in range(len(segments_of(data))) if number not in needed]


# ---- sound images ----


@given(
    st.tuples(st.integers(1, 150), st.integers(1, 200)),
    st.sampled_from(sorted(MCU_SIZES)),
    st.one_of(st.integers(1, 12), st.integers(1, 600)),
    st.booleans(),
    st.integers(0, 60),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_regions_equal_the_library_and_the_whole(size, sampling, restart, grey, noise, draw):
    image = picture(*size, noise, noise=noise)
    data = encode_jpeg(
        image[:, :, 0] if grey else image, sampling, restart=restart, optimize=noise % 2
    )
    denominator = draw.draw(st.sampled_from([1, 1, 1, 2, 4, 8]))
    channels = draw.draw(st.sampled_from([3, 3, 1]))
    options = {"channels": channels, "denominator": denominator}
    assert check_equal(data, **options) == OWN
    whole = decode_jpeg(data, **options)
    height, width = whole.shape[:2]
    for _ in range(3):
        x, y = draw.draw(st.integers(0, width - 1)), draw.draw(st.integers(0, height - 1))
        w, h = draw.draw(st.integers(1, width - x)), draw.draw(st.integers(1, height - y))
        assert check_equal(data, region=(x, y, w, h), **options) == OWN
        part = decode_jpeg(data, region=(x, y, w, h), **options)
        assert np.array_equal(part, whole[y : y + h, x : x + w])


@pytest.mark.parametrize("sampling", MCU_SIZES)
@pytest.mark.parametrize("divisor", [1, 2, 4])
def test_every_column_and_row_with_segments_that_divide_the_row(sampling, divisor):
    """Regions that begin and end everywhere, with smooth upsampling across their edges."""
    size = 96, 256
    data = encode_jpeg(
        picture(*size), sampling, restart=size[1] // MCU_SIZES[sampling][0] // divisor
    )
    whole = decode_jpeg(data)
    for x in range(0, size[1] - 40):
        y = x % (size[0] - 12)
        part = decode_jpeg(data, region=(x, y, 40, 12))
        assert last_jpeg() == (OWN, 0)
        assert np.array_equal(part, whole[y : y + 12, x : x + 40])


@pytest.mark.parametrize("sampling", MCU_SIZES)
@pytest.mark.parametrize("restart", [1, 2, 3, 5, 8])
def test_what_is_not_needed_is_not_looked_at(sampling, restart):
    """Junk in its place is not noticed."""
    size, passed_over = (160, 320), 0
    data = encode_jpeg(picture(*size), sampling, restart=restart)
    segments = segments_of(data)
    for region in [
        (140, 70, 60, 40),
        (0, 0, 320, 20),
        (300, 0, 20, 160),
        (10, 149, 3, 3),
        (0, 100, 50, 1),
    ]:
        expected = decode_jpeg(data, region=region)
        changed = bytearray(data)
        numbers = unneeded(data, size, sampling, restart, region)
        for number in numbers:
            start, end = segments[number]
            changed[start:end] = bytes((17 * i) % 255 for i in range(end - start))
        passed_over += len(numbers)
        assert np.array_equal(decode_jpeg(bytes(changed), region=region), expected)
        assert last_jpeg() == (OWN, 0)
        decoder, unseen = check_passing_over(bytes(changed), region=region)
        assert decoder == OWN
        assert unseen == (region[2] < 320)  # the library, too, does not get below a region
    assert passed_over > 2 * len(segments)


def test_shortened_and_emptied_segments_that_are_not_needed():
    size, region = (120, 200), (90, 50, 40, 30)
    data = encode_jpeg(picture(*size), "420", restart=3)
    expected = decode_jpeg(data, region=region)
    for number in reversed(unneeded(data, size, "420", 3, region)):
        start, end = segments_of(data)[number]
        data = data[: start + number % 3] + data[end:]
        assert np.array_equal(decode_jpeg(data, region=region), expected)
        assert last_jpeg() == (OWN, 0)


@pytest.mark.parametrize("restart", [40, 41, 500])
def test_no_segment_to_pass_over(restart):
    """As many MCUs as there are, or more: then all damage that the library meets is seen."""
    data = encode_jpeg(picture(80, 128), "420", restart=restart)
    damaged = bytearray(data)
    damaged[len(data) - 60 : len(data) - 50] = bytes(10)
    region = (0, 60, 40, 20)
    assert check_equal(data, region=region) == OWN
    assert check_equal(bytes(damaged), region=region) == GIVEN_BACK


# ---- damaged images ----

REGIONS = [(0, 0, 9, 9), (30, 25, 9, 9), (70, 40, 20, 10), (0, 30, 90, 5), (80, 0, 10, 61)]
SMALL = {
    (sampling, restart): encode_jpeg(picture(61, 90, restart), sampling, 80, restart, restart % 2)
    for sampling, restart in [("420", 1), ("420", 3), ("444", 4), ("444", 7), ("422", 2)]
}


def everywhere(data, region):
    """Every fifth offset of the scan: all regions together meet every one."""
    return range(scan_of(data) + REGIONS.index(region), len(data), len(REGIONS))


@pytest.mark.parametrize("kind", [("420", 1), ("420", 3), ("444", 7), ("422", 2)])
@pytest.mark.parametrize("region", REGIONS)
def test_truncated_at_every_byte(kind, region):
    """Without a marker behind the scan nothing is passed over, so that a missing end is noticed."""
    data = SMALL[kind]
    expected = decode_jpeg(data, region=region)
    decoders = set()
    for size in [*everywhere(data, region), len(data) - 2, len(data) - 1]:
        decoders.add(check_equal(data[:size], region=region))
        pixels, message, _, _ = decode(data[:size], True, region=region)
        assert message or np.array_equal(pixels, expected)
    assert decoders == {GIVEN_BACK, OWN}


@pytest.mark.parametrize(
    "end", [b"\xff\xd9", b"\xff\xff\xd9", b"\xff\xc4", b"junk\xff\xd9" + bytes(99)]
)
@pytest.mark.parametrize("region", REGIONS)
def test_ended_at_every_byte(end, region):
    """A marker behind the scan: what is missing before it is decoded over, whoever decodes."""
    for kind in [("420", 3), ("444", 4)]:
        data = SMALL[kind]
        for size in everywhere(data, region):
            check_passing_over(data[:size] + end, region=region)
            assert decode(data[:size] + end, True, region=region)[1] == ""


def test_damage_passed_over_and_the_end_missing():
    """The library is out of data twice: in the damaged segment, and where it reads ahead."""
    refused = 0
    for kind in [("420", 1), ("444", 4)]:
        data = SMALL[kind][:-2]
        for start, end in segments_of(SMALL[kind])[:-1]:
            changed = data[: start + (end - start) // 3] + data[end:]
            for size in (len(changed), len(changed) - 1, len(changed) - 9):
                for region in REGIONS:
                    check_equal(changed[:size], region=region)
                    refused += decode(changed[:size], True, region=region)[1] != ""
    assert refused > 20


@pytest.mark.parametrize("kind", SMALL)
def test_one_marker_wrong(kind):
    """Renumbered, removed, doubled, with another or with fill bytes before it: the library's
    outcome, read from the start.  Early or late, all numbers are in order."""
    data = SMALL[kind]
    region = (30, 55, 9, 6)  # every marker but those at the end lies before it
    markers = [at for at in markers_of(data) if at < len(data) * 3 // 4]
    for at in markers:
        head, marker, tail = data[:at], data[at : at + 2], data[at + 2 :]
        number = marker[1] & 7
        for changed in [
            *(head + bytes((0xFF, 0xD0 + other)) + tail for other in range(8) if other != number),
            head + tail,
            head + marker + marker + tail,
            head + b"\xff" + marker + tail,
            head + b"\xff\xd9" + marker + tail,
            head + b"\xff\x01" + marker + tail,
            head + b"\xff\xc4\x00\x02" + marker + tail,
        ]:
            decoder, _ = check_passing_over(changed, region=region)
            assert decoder == GIVEN_BACK
        check_passing_over(head[:-9] + marker + head[-9:] + tail, region=region)
        check_passing_over(head + tail[:9] + marker + tail[9:], region=region)


def test_segments_missing_and_doubled_by_eights():
    """Their numbers are in order: the library, too, takes the later ones for the earlier."""
    data = encode_jpeg(picture(96, 160), "420", restart=1)
    segments, region = segments_of(data), (100, 80, 30, 16)
    start, end = segments[3][0], segments[11][0]
    for changed in (data[:start] + data[end:], data[:end] + data[start:end] + data[end:]):
        check_passing_over(changed, region=region)
        check_passing_over(changed, region=(0, 0, 30, 16))
    assert check_passing_over(data[:end] + data[start:end] + data[end:], region=region)[0] == OWN


@pytest.mark.parametrize("inserted", [b"\xff\xd0", b"\xff\xd5", b"\xff\xff", b"\xff\xd9", b"junk"])
@pytest.mark.parametrize("region", REGIONS)
def test_marker_anywhere_in_the_scan(inserted, region):
    data = SMALL["420", 3]
    for at in everywhere(data, region):
        check_passing_over(data[:at] + inserted + data[at:], region=region)


@given(
    st.sampled_from(sorted(SMALL)),
    st.lists(
        st.tuples(st.integers(0, 1 << 20), st.binary(max_size=3), st.integers(0, 3)), max_size=4
    ),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 9)), max_size=2),
    st.sampled_from(REGIONS),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 1, 2, 8]),
)
@settings(max_examples=400, deadline=None)
def test_changed_bytes_and_markers(kind, changes, markers, region, channels, denominator):
    """Bytes replaced, inserted and removed in the scan; markers renumbered and removed."""
    data = SMALL[kind]
    for at, number in markers:
        places = markers_of(data)
        at = places[at % len(places)]
        data = data[:at] + (bytes((0xFF, 0xD0 + number)) if number < 8 else b"") + data[at + 2 :]
    start = scan_of(data)
    for at, bytes_in, out in changes:
        at = start + at % (len(data) - start)
        data = data[:at] + bytes_in + data[at + out :]
    x, y, width, height = (-(-side // denominator) for side in region)
    region = min(x, 89 // denominator), min(y, 60 // denominator), 1, max(1, height - 1)
    region = region[0], region[1], 1, min(region[3], -(-61 // denominator) - region[1])
    check_passing_over(data, region=region, channels=channels, denominator=denominator)


def test_sound_after_damaged_and_damaged_after_sound():
    sound = SMALL["444", 4]
    damaged = sound[: len(sound) // 2]
    for _ in range(3):
        assert check_passing_over(damaged, region=(30, 40, 9, 9)) == (GIVEN_BACK, False)
        assert check_passing_over(sound, region=(30, 40, 9, 9)) == (OWN, False)
