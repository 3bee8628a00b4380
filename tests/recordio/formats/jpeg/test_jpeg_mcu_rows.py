"""recordio.formats.jpeg: rows of MCUs, transformed while they are read, equal the library's."""

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from faces.codecs import decode_jpeg, last_jpeg
from iterators.testing import encode_jpeg, picture
from recordio.formats.jpeg import jpeg

pytestmark = pytest.mark.libjpeg

OWN, GIVEN_BACK = 1, 2


@pytest.fixture(scope="module", autouse=True, params=["", "avx2"])
def kernels(request):
    """The best of this processor, and those for processors without AVX-512."""
    jpeg._choose_kernels(request.param)
    yield
    jpeg._choose_kernels("")


def decoded(data, monkeypatch, region=None):
    """Pixels and number of warnings, and who decoded: ours after the library's."""
    found = []
    for choice in ("plain", ""):
        monkeypatch.setenv("ITERATORS_JPEG", choice)
        pixels = decode_jpeg(data, 3, region)
        decoder, warnings = last_jpeg()
        found.append((pixels, warnings, decoder))
    (theirs, their_warnings, _), (ours, warnings, decoder) = found
    assert np.array_equal(ours, theirs)
    assert warnings == their_warnings
    return decoder


def with_sampling(data, factors):
    """The same blocks in other MCUs; with the same tables for all components any order is sound."""
    data = bytearray(data)
    at = data.index(b"\xff\xc0") + 11
    for number, (across, down) in enumerate(factors):
        data[at + 3 * number] = across << 4 | down
    return bytes(data)


@pytest.mark.parametrize(
    "factors",
    [
        [(3, 1), (1, 1), (1, 1)],
        [(4, 1), (2, 1), (1, 1)],
        [(3, 2), (1, 1), (3, 1)],
        [(1, 1), (2, 2), (1, 1)],
        [(1, 2), (1, 1), (1, 2)],
        [(2, 1), (1, 2), (2, 2)],
        [(1, 4), (1, 1), (1, 1)],
    ],
)
def test_samplings_of_any_number_of_blocks(factors, monkeypatch):
    for width in (*range(90, 106), 24, 8):
        file = io.BytesIO()
        image = Image.fromarray(picture(140, width + 60, seed=width, noise=20))
        image.save(file, "JPEG", keep_rgb=True, quality=90)
        data = bytearray(with_sampling(file.getvalue(), factors))
        at = data.index(b"\xff\xc0") + 5
        data[at : at + 4] = bytes([0, 90, 0, width])  # fewer blocks than there are
        assert decoded(bytes(data), monkeypatch) == OWN
        assert decoded(bytes(data), monkeypatch, (width // 3, 41, width // 2, 23)) == OWN


@given(
    st.sampled_from(["411", "420", "422", "440", "444"]), st.sampled_from([0, 1, 3, 5]),
    st.integers(33, 120), st.floats(0, 1), st.integers(1, 7), st.booleans(),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_damage_in_a_row_leaves_it_to_the_library(sampling, restart, width, place, bit, cut):
    data = bytearray(encode_jpeg(picture(100, width, seed=width, noise=30), sampling, 90, restart))
    scan = data.index(b"\xff\xda") + 14
    at = scan + int(place * (len(data) - scan - 3))
    if cut:
        data[at : at + 9] = bytes(9)  # zeros are coefficients without an end
    else:
        data[at] ^= 1 << bit
    with pytest.MonkeyPatch.context() as patch:
        decoded(bytes(data), patch)
        if restart == 0:  # otherwise damage beside the region is passed over
            decoded(bytes(data), patch, (width // 3, 30, width // 2, 40))


@pytest.mark.parametrize("sampling", ["420", "444"])
def test_damage_anywhere_before_or_in_a_region(sampling, monkeypatch):
    sound = encode_jpeg(picture(100, 110, seed=3, noise=30), sampling, 90)
    outcomes = set()
    for at in range(sound.index(b"\xff\xda") + 14, len(sound) - 12, 41):
        data = bytearray(sound)
        data[at : at + 9] = bytes(9)
        outcomes.add(decoded(bytes(data), monkeypatch, (36, 30, 55, 40)))
    assert outcomes == {OWN, GIVEN_BACK}


def test_an_image_after_a_damaged_one(monkeypatch):
    """What a damaged row left behind is not in the next image, whose MCUs have other blocks."""
    sound = [
        encode_jpeg(picture(96, 96, seed=i, noise=30), s) for i, s in enumerate(("444", "420"))
    ]
    for first, data in itertools.product(sound, sound):
        damaged = bytearray(first)
        at = len(first) // 2
        damaged[at : at + 10] = 5 * b"\xff\0"  # no code consists of ones, whatever comes before
        assert decoded(bytes(damaged), monkeypatch) == GIVEN_BACK
        assert decoded(data, monkeypatch) == OWN
