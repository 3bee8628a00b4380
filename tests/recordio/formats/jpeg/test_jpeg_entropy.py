"""The entropy decoder of our own for sequential images against that of the library.

Pixels, errors and warnings must be the same.  Every comparison of sound images also makes sure
that ours was the one that decoded.
"""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from faces.codecs import decode_jpeg, last_jpeg
from iterators import ImageRecordIter
from iterators.testing import encode_jpeg, picture, write_pack
from recordio.errors import ImageDecodeError

# Where ours cannot be used with the library that was found, this fails: better now than later.
pytestmark = pytest.mark.libjpeg

LIBRARY, OWN, GIVEN_BACK = 0, 1, 2
SAMPLINGS = ("411", "420", "422", "440", "444")


@pytest.fixture(autouse=True)
def own_entropy_decoder(monkeypatch):
    """Ours, whatever the environment says, and afterwards what was in use before."""
    monkeypatch.setenv("ITERATORS_JPEG", "")


def decode(data, own, **options):
    """Pixels or error text, number of warnings; and which decoder it was."""
    os.environ["ITERATORS_JPEG"] = "" if own else "plain"
    try:
        pixels = decode_jpeg(data, **options).tobytes()
    except ImageDecodeError as error:
        pixels = str(error)
    decoder, warnings = last_jpeg()
    return (pixels, warnings), decoder


def check_equal(data, **options):
    """Decode with both; what ours became."""
    theirs, decoder = decode(data, False, **options)
    assert decoder == LIBRARY
    ours, decoder = decode(data, True, **options)
    assert ours == theirs
    return decoder


def scan_of(data):
    """Offset of the entropy-coded data."""
    start = data.index(b"\xff\xda")
    return start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")


# ---- sound images ----


@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.sampled_from(sorted(SAMPLINGS)),
    st.integers(1, 100),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.integers(0, 255),
    st.data(),
)
@settings(max_examples=150, deadline=None)
def test_sound_images_and_their_regions_equal_the_library(
    size, sampling, quality, restart, optimize, grey, noise, draw
):
    image = picture(*size, noise, noise=noise)
    data = encode_jpeg(image[:, :, 0] if grey else image, sampling, quality, restart, optimize)
    denominator = draw.draw(st.sampled_from([1, 1, 1, 2, 4, 8]))
    channels = draw.draw(st.sampled_from([3, 3, 1]))
    assert check_equal(data, channels=channels, denominator=denominator) == OWN
    height, width = (-(-side // denominator) for side in size)
    x, y = draw.draw(st.integers(0, width - 1)), draw.draw(st.integers(0, height - 1))
    region = x, y, draw.draw(st.integers(1, width - x)), draw.draw(st.integers(1, height - y))
    assert check_equal(data, channels=channels, denominator=denominator, region=region) == OWN


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("restart", [0, 1, 7])
def test_small_regions_of_a_large_image(sampling, restart):
    """Most of it is passed over: columns beside the region, rows above it."""
    data = encode_jpeg(picture(400, 500), sampling, 95, restart)
    for x, y, width, height in [
        (0, 0, 9, 9),
        (490, 390, 10, 10),
        (250, 130, 3, 200),
        (3, 300, 400, 1),
    ]:
        assert check_equal(data, region=(x, y, width, height)) == OWN


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize(
    "options", [{"optimize": True}, {"restart_marker_rows": 1}, {"quality": 100}]
)
def test_files_of_pillow(mode, options):
    file = io.BytesIO()
    Image.fromarray(picture(70, 110)).convert(mode).save(file, "JPEG", **options)
    assert check_equal(file.getvalue()) == OWN


def test_rgb_without_transformation():
    file = io.BytesIO()
    Image.fromarray(picture(40, 60)).save(file, "JPEG", keep_rgb=True)
    assert check_equal(file.getvalue()) == OWN
    assert check_equal(file.getvalue(), channels=1) == OWN


def test_coefficients_of_every_size():
    """Noise in full contrast at the finest quantisation: long codes, long values, long runs."""
    random = np.random.default_rng(0)
    for threshold in (1, 30, 128):
        extreme = np.where(random.integers(0, 256, (64, 64, 3)) < threshold, 255, 0).astype(
            np.uint8
        )
        for optimize in (False, True):
            data = encode_jpeg(extreme, "444", 100, optimize=optimize)
            assert check_equal(data) == OWN
            assert check_equal(data, region=(40, 40, 8, 8)) == OWN


def test_more_tables_than_are_kept():
    """Optimised tables differ from file to file, and files come again after they were forgotten."""
    files = [
        encode_jpeg(picture(48, 48, i, noise=9 * i), optimize=True, quality=30 + 5 * i)
        for i in range(12)
    ]
    for data in [*files, *reversed(files), *files]:
        assert check_equal(data) == OWN
        assert check_equal(data, region=(40, 40, 5, 5)) == OWN


def test_what_is_left_to_the_library():
    data = bytearray(encode_jpeg(picture(40, 60)))
    data[scan_of(data) - 2] = 62  # the last coefficient of the scan: allowed, with a warning
    assert check_equal(bytes(data)) == LIBRARY


@pytest.mark.parametrize("sampling", [0, 1, 2])
def test_four_inks(sampling):
    file = io.BytesIO()
    image = Image.fromarray(picture(40, 60)).convert("CMYK")
    image.save(file, "JPEG", subsampling=sampling)
    assert check_equal(file.getvalue()) == OWN
    assert check_equal(file.getvalue(), region=(7, 9, 30, 20)) == OWN


def test_scans_of_one_component_each_are_left_to_the_library():
    data = encode_jpeg(picture(40, 60)[:, :, 0])
    scan = data[data.index(b"\xff\xda") : -2]
    twice = data[:-2] + scan + b"\xff\xd9"  # of which the second is never read
    assert check_equal(twice) == OWN
    interleaved = encode_jpeg(picture(40, 60), "444")
    start = interleaved.index(b"\xff\xda")
    luma = interleaved[:start] + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + interleaved[start + 14 :]
    assert check_equal(luma) == LIBRARY


# ---- damaged images ----


@pytest.mark.parametrize("restart", [0, 2])
@pytest.mark.parametrize("sampling", ["420", "444"])
def test_truncated_at_every_byte(sampling, restart):
    data = encode_jpeg(picture(33, 49), sampling, 60, restart)
    given_back = 0
    for size in range(len(data)):
        given_back += check_equal(data[:size]) == GIVEN_BACK
        if not restart:  # otherwise a region may need less: test_jpeg_restart.py
            check_equal(data[:size], region=(20, 18, 9, 9))
    assert given_back > (len(data) - scan_of(data)) / 2


@pytest.mark.parametrize("restart", [0, 1])
def test_every_bit_of_the_scan_flipped(restart):
    data = encode_jpeg(picture(16, 24), "420", 50, restart)
    decoders = set()
    for bit in range(8 * scan_of(data), 8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 128 >> bit % 8
        decoders.add(check_equal(bytes(changed)))
    assert decoders == {OWN, GIVEN_BACK}


DAMAGED = [
    encode_jpeg(picture(41, 57, seed), sampling, quality, restart, optimize)
    for seed, (sampling, quality, restart, optimize) in enumerate(
        [("420", 90, 0, False), ("444", 40, 3, True), ("422", 75, 1, False), ("420", 98, 0, True)]
    )
]


@given(
    st.sampled_from(range(len(DAMAGED))),
    st.lists(
        st.tuples(st.integers(0, 1 << 20), st.binary(max_size=3), st.integers(0, 3)), max_size=4
    ),
    st.sampled_from([None, (0, 0, 57, 41), (30, 25, 5, 9), (0, 40, 57, 1)]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=300, deadline=None)
def test_changed_bytes_have_the_outcome_of_the_library(number, changes, region, channels):
    """Bytes replaced, inserted and removed in the scan."""
    data = DAMAGED[number]
    start = scan_of(data)
    for at, bytes_in, out in changes:
        at = start + at % (len(data) - start)
        data = data[:at] + bytes_in + data[at + out :]
    if number in (1, 2):  # with restart markers: test_jpeg_restart.py
        region = None
    check_equal(data, region=region, channels=channels)


@given(
    st.sampled_from(range(len(DAMAGED))),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=3),
)
@settings(max_examples=300, deadline=None)
def test_changed_headers_have_the_outcome_of_the_library(number, changes):
    """Among them Huffman tables with codes that do not exist."""
    data = bytearray(DAMAGED[number])
    start = scan_of(data)
    for at, value in changes:
        data[2 + at % (start - 2)] = value
    check_equal(bytes(data), max_pixels=1 << 20)


@pytest.mark.parametrize(
    ("lengths", "symbols"),
    [
        ({1: 2}, [0, 1]),  # the code of all ones, which is not allowed
        ({2: 5}, [0, 1, 2, 3, 4]),  # more codes than there are
        ({2: 3}, [0, 1, 16]),  # a DC difference of 16 bits
        ({}, []),  # no code at all
    ],
)
def test_codes_that_the_library_refuses(lengths, symbols):
    data = encode_jpeg(picture(24, 24)[:, :, 0])
    counts = bytes(lengths.get(length, 0) for length in range(1, 17))
    body = b"\0" + counts + bytes(symbols)  # another DC table 0
    segment = b"\xff\xc4" + (len(body) + 2).to_bytes(2, "big") + body
    start = data.index(b"\xff\xda")
    changed = data[:start] + segment + data[start:]
    assert check_equal(changed) != OWN
    assert isinstance(decode(changed, True)[0][0], str) or not symbols


@pytest.mark.parametrize(
    "marker", [b"\xff\xd0", b"\xff\xd3", b"\xff\xd9", b"\xff\xff\x00", b"\xff\xff\xd0", b"\xff\x01"]
)
def test_marker_anywhere_in_the_scan(marker):
    for restart in (0, 2):
        data = encode_jpeg(picture(20, 40), "420", 70, restart)
        for at in range(scan_of(data), len(data)):
            check_equal(data[:at] + marker + data[at:])


def test_padding_and_junk_before_a_restart_marker():
    data = encode_jpeg(picture(33, 49), restart=2)
    at = data.index(b"\xff\xd1")
    assert check_equal(data[:at] + b"\xff" + data[at:]) == GIVEN_BACK
    assert check_equal(data[:at] + b"junk" + data[at:]) == GIVEN_BACK
    assert check_equal(data[: at + 1] + b"\xd2" + data[at + 2 :]) == GIVEN_BACK
    assert check_equal(data[:at] + data[at + 2 :]) == GIVEN_BACK


def test_sound_image_after_a_damaged_one():
    sound = encode_jpeg(picture(50, 50))
    damaged = sound[: len(sound) * 2 // 3]
    for _ in range(3):
        assert check_equal(damaged) == GIVEN_BACK
        assert check_equal(sound) == OWN


# ---- choosing ----


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_environment_variable():
    ask = "from recordio.formats.jpeg import jpeg; print(jpeg.entropy_decoder())"
    assert run_python(ask, ITERATORS_JPEG="plain").stdout == "plain\n"
    assert run_python(ask, ITERATORS_JPEG="").stdout == "own\n"
    assert "must be 'plain'" in run_python(ask, ITERATORS_JPEG="fast").stderr


def test_report_says_which():
    code = "from iterators.__main__ import report; print(report())"
    assert "entropy decoder: plain" in run_python(code, ITERATORS_JPEG="plain").stdout
    assert "entropy decoder: own" in run_python(code, ITERATORS_JPEG="").stdout


def test_batches_are_the_same(tmp_path):
    images = [
        encode_jpeg(picture(60 + i, 90 - i, i), ("420", "444")[i % 2], restart=i % 3)
        for i in range(24)
    ]
    path = write_pack(tmp_path / "images.rec", images, index=False)

    def batches(own):
        os.environ["ITERATORS_JPEG"] = "" if own else "plain"
        with ImageRecordIter(
            path_imgrec=str(path), data_shape=(3, 32, 32), batch_size=6, shuffle=True, seed=3,
            random_resized_crop=True, rand_mirror=True, min_random_area=0.1, max_random_area=1,
        ) as provider:  # fmt: skip
            return [np.array(batch.data[0]) for _ in range(2) for batch in provider]

    for ours, theirs in zip(batches(True), batches(False), strict=True):
        assert np.array_equal(ours, theirs)
