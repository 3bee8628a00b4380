"""Blurs against the definition in float64, and the instruction sets against one another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recordio.kernels.gaussian import blur
from recordio.kernels.resample import variants

sides = st.integers(0, 12).map(lambda n: 2 * n + 1)


def kernel(side, sigma):
    weights = np.exp(-0.5 * ((np.arange(side) - side // 2) / sigma) ** 2)
    return weights / weights.sum()


def exact(image, kernel_size, sigma):
    """The sums over both directions, not rounded."""
    found = image.astype(float)
    for axis, side in ((1, kernel_size[0]), (0, kernel_size[1])):
        margins = [(side // 2,) * 2 if i == axis else (0, 0) for i in range(3)]
        padded = np.pad(found, margins, "reflect")
        windows = np.lib.stride_tricks.sliding_window_view(padded, side, axis)
        found = windows @ kernel(side, sigma)
    return found


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(13, 40), st.integers(13, 40), st.sampled_from([1, 3, 4]),
    st.tuples(sides, sides), st.floats(0.05, 20),
)  # fmt: skip
def test_blurs_are_the_sums_of_their_definition(seed, height, width, channels, kernel_size, sigma):
    image = np.random.default_rng(seed).integers(0, 256, (height, width, channels), np.uint8)
    found = blur(image, kernel_size, sigma)
    assert np.abs(found - exact(image, kernel_size, sigma)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("variant", variants())
def test_every_instruction_set_gives_the_same_bytes(variant):
    for width in (1, 2, 5, 16, 31, 100):
        for channels in (1, 3, 4):
            shape = (9, width, channels)
            image = np.random.default_rng(width).integers(0, 256, shape, np.uint8)
            plain = blur(image, (7, 3), 1.7, "plain")
            np.testing.assert_array_equal(blur(image, (7, 3), 1.7, variant), plain)


def test_a_kernel_of_one_changes_nothing():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.testing.assert_array_equal(blur(image, (1, 1), 2.0), image)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((2, 3), 1.0), "two odd numbers"),
        (((3, 257), 1.0), "up to 255"),
        (((3, 3), 0.0), "above 0"),
    ],
)
def test_impossible_kernels_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        blur(np.zeros((4, 4, 3), np.uint8), *arguments)
