"""recordio.formats.jpeg: blocks transformed in pairs have the pixels of the library's transform."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faces.codecs import decode_jpeg
from iterators.testing import encode_jpeg, picture

pytestmark = pytest.mark.libjpeg


def with_quantisation(data, draw, largest):
    """The same coefficients times other numbers, which may be far too large for pixels."""
    data, at = bytearray(data), 2
    while data[at + 1] != 0xDA:
        size = int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xDB:
            for table in range(at + 4, at + 2 + size, 65):
                data[table + 1 : table + 65] = draw.integers(1, largest + 1, 64, np.uint8).tobytes()
        at += 2 + size
    return bytes(data)


@given(
    st.integers(1, 130), st.integers(1, 70), st.sampled_from(["411", "420", "422", "440", "444"]),
    st.booleans(), st.sampled_from([1, 20, 254]), st.integers(0, 1 << 20), st.data(),
)  # fmt: skip
def test_pixels_are_those_of_the_library(width, height, sampling, progressive, largest, seed, data):
    draw = np.random.default_rng(seed)
    pixels = picture(height, width, seed=seed % 100)
    if seed & 1:
        pixels[:, : width // 2] = 77  # blocks without coefficients beside others
    elif seed & 2:
        pixels = draw.integers(0, 2, pixels.shape, np.uint8) * 255
    image = encode_jpeg(pixels, sampling, progressive=progressive)
    image = with_quantisation(image, draw, largest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ITERATORS_JPEG", "plain")
        wanted = {scale: decode_jpeg(image, denominator=scale) for scale in (1, 2)}
    for scale, whole in wanted.items():
        high, wide = whole.shape[:2]
        x, y = data.draw(st.integers(0, wide - 1)), data.draw(st.integers(0, high - 1))
        region = x, y, data.draw(st.integers(1, wide - x)), data.draw(st.integers(1, high - y))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("ITERATORS_JPEG", "")
            assert np.array_equal(decode_jpeg(image, denominator=scale), whole)
            part = decode_jpeg(image, 3, region, scale)
        assert np.array_equal(part, whole[y : y + region[3], x : x + region[2]]), region
