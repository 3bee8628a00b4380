"""The colour kernels against MXNet 1.9.1's results, a numpy reference, and each other."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faces import colour
from recordio.kernels.resample import variants

GOLDEN = Path(__file__).parents[2] / "golden" / "colour_mxnet.npz"
f = np.float32


def to_byte(values):
    return np.rint(np.clip(values, 0, 255)).astype(np.uint8)


def grey(image):
    red, green, blue = image.astype(np.int64).transpose(2, 0, 1)
    return (red * 1868 + green * 9617 + blue * 4899 + 8192) >> 14


def reference_brightness(image, factor):
    return to_byte(image.astype(f) * f(factor))


def reference_contrast(image, factor):
    offset = f(float(f(1) - f(factor)) * grey(image).mean())
    return to_byte(image.astype(f) * f(factor) + offset)


def reference_saturation(image, factor):
    rest = grey(image)[:, :, None].astype(f) * (f(1) - f(factor))
    return to_byte(image.astype(f) * f(factor) + rest)


def reference_lighting(image, delta):
    return np.clip(np.trunc(image.astype(f) + np.asarray(delta, f)), 0, 255).astype(np.uint8)


def to_hls(image):
    """Hue 0..180, lightness and saturation 0..255, as whole float32 numbers."""
    r, g, b = (image.astype(f) * f(1 / 255)).transpose(2, 0, 1)
    high, low = np.maximum(np.maximum(r, g), b), np.minimum(np.minimum(r, g), b)
    total, spread = high + low, high - low
    coloured = spread > np.finfo(f).eps
    spread_or_one = np.where(coloured, spread, f(1))
    below = np.where(total * f(0.5) < f(0.5), total, f(2) - total)
    saturation = np.where(coloured, spread / np.where(coloured, below, f(1)), f(0))
    sixth = f(60) / spread_or_one
    hue = np.where(high == g, (b - r) * sixth + f(120), (r - g) * sixth + f(240))
    hue = np.where(high == r, (g - b) * sixth, hue)
    hue = np.where(coloured, np.where(hue < 0, hue + f(360), hue), f(0))
    return np.rint(hue * f(0.5)), np.rint(total * f(0.5) * f(255)), np.rint(saturation * f(255))


def from_hls(hue, lightness, saturation):
    lightness, saturation = lightness * f(1 / 255), saturation * f(1 / 255)
    bright = lightness + saturation - lightness * saturation
    most = np.where(lightness <= f(0.5), lightness * (f(1) + saturation), bright)
    least = f(2) * lightness - most
    turn = hue * f(6 / 180)
    turn = np.where(turn >= 6, turn - f(6), turn)
    sector = np.floor(turn)
    part = turn - sector
    falling, rising = least + (most - least) * (f(1) - part), least + (most - least) * part
    red = np.choose(sector.astype(int), [most, falling, least, least, rising, most])
    green = np.choose(sector.astype(int), [rising, most, most, falling, least, least])
    blue = np.choose(sector.astype(int), [least, least, rising, most, most, falling])
    return to_byte(np.stack([red, green, blue], -1) * f(255))


def reference_hls(image, hue, lightness, saturation):
    h, l, s = to_hls(image)  # noqa: E741
    return from_hls(
        np.clip(h + f(hue), 0, 180).astype(f),
        np.clip(l + f(lightness), 0, 255).astype(f),
        np.clip(s + f(saturation), 0, 255).astype(f),
    )


CHANGES = {
    "brightness": (colour.brightness, reference_brightness),
    "contrast": (colour.contrast, reference_contrast),
    "saturation": (colour.saturation, reference_saturation),
}


def draw_image(seed, height, width):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    if seed % 3 == 0:  # few levels: many equal channels, greys, blacks and whites
        image = image // 64 * 85
    return image.astype(np.uint8)


@pytest.mark.parametrize("variant", variants())
def test_frozen_results_of_mxnet(variant):
    golden = np.load(GOLDEN)
    image, compared = golden["image"], 0
    for name in golden.files:
        if "|" not in name:
            continue
        change, arguments = name.split("|")
        numbers = [float(number) for number in arguments.split(",")]
        if change == "hls":
            result = colour.shift_hls(image, *map(int, numbers), variant=variant)
        elif change == "lighting":
            result = colour.lighting(image, numbers, variant=variant)
        else:
            result = CHANGES[change][0](image, numbers[0], variant=variant)
        np.testing.assert_array_equal(result, golden[name], err_msg=name)
        compared += 1
    assert compared == 18


@settings(deadline=None, max_examples=200)
@given(
    st.integers(1, 3), st.integers(1, 80), st.sampled_from(list(CHANGES)),
    st.floats(-1, 4, width=32), st.integers(0, 2**16),
)  # fmt: skip
def test_factors_equal_the_reference(height, width, change, factor, seed):
    image = draw_image(seed, height, width)
    function, reference = CHANGES[change]
    expected = reference(image, factor)
    for variant in variants():
        np.testing.assert_array_equal(function(image, factor, variant=variant), expected)


shifts = st.integers(-260, 260)


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 3), st.integers(1, 80), shifts, shifts, shifts, st.integers(0, 2**16))
def test_hls_equals_the_reference(height, width, hue, lightness, saturation, seed):
    image = draw_image(seed, height, width)
    expected = reference_hls(image, hue, lightness, saturation)
    for variant in variants():
        result = colour.shift_hls(image, hue, lightness, saturation, variant=variant)
        np.testing.assert_array_equal(result, expected, err_msg=variant)


def every_colour(step):
    """All combinations of every step-th level and the full one."""
    levels = np.unique(np.append(np.arange(0, 256, step), 255)).astype(np.uint8)
    return np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(
        len(levels), -1, 3
    )


@pytest.mark.parametrize(
    "shift", [(0, 0, 0), (7, -3, 5), (-180, 0, 0), (180, 0, 0), (0, 255, -255)]
)
def test_hls_variants_agree_on_every_third_colour(shift):
    image = every_colour(3)
    plain = colour.shift_hls(image, *shift, variant="plain")
    for variant in variants():
        np.testing.assert_array_equal(colour.shift_hls(image, *shift, variant=variant), plain)


def test_hls_is_close_to_the_installed_opencv():
    image = every_colour(5)
    hls = cv2.cvtColor(image, cv2.COLOR_RGB2HLS).astype(int)
    hls = np.clip(hls + np.array([11, -20, 30]), 0, [180, 255, 255]).astype(np.uint8)
    expected = cv2.cvtColor(hls, cv2.COLOR_HLS2RGB)
    difference = np.abs(colour.shift_hls(image, 11, -20, 30).astype(int) - expected)
    assert difference.max() <= 8
    assert np.count_nonzero(difference) < difference.size / 1000


@settings(deadline=None, max_examples=100)
@given(
    st.integers(1, 80), st.lists(st.floats(-300, 300, width=32), min_size=3, max_size=3),
    st.integers(0, 2**16),
)  # fmt: skip
def test_lighting_equals_the_reference(width, delta, seed):
    image = draw_image(seed, 2, width)
    expected = reference_lighting(image, delta)
    for variant in variants():
        np.testing.assert_array_equal(colour.lighting(image, delta, variant=variant), expected)


@pytest.mark.parametrize("factor", [1e30, -1e30, float("inf"), float("nan")])
def test_wild_factors_saturate_alike_in_every_variant(factor):
    image = draw_image(1, 2, 37)
    for function, _ in CHANGES.values():
        plain = function(image, factor, variant="plain")
        for variant in variants():
            np.testing.assert_array_equal(function(image, factor, variant=variant), plain)


def test_neutral_arguments_change_nothing_and_the_input_is_kept():
    image = draw_image(1, 9, 13)
    kept = image.copy()
    for function, _ in CHANGES.values():
        np.testing.assert_array_equal(function(image, 1.0), image)
        function(image, 0.3)
    np.testing.assert_array_equal(colour.lighting(image, (0, 0, 0)), image)
    colour.shift_hls(image, 20)
    np.testing.assert_array_equal(image, kept)


def test_strided_and_empty_images():
    image = draw_image(1, 20, 60)
    view = image[::2, ::-3]
    result = colour.saturation(view, 0.5)
    np.testing.assert_array_equal(result, reference_saturation(np.ascontiguousarray(view), 0.5))
    assert colour.contrast(image[:0], 0.5).shape == (0, 60, 3)


@pytest.mark.parametrize(
    "image",
    [np.zeros((4, 4), np.uint8), np.zeros((4, 4, 4), np.uint8), np.zeros((4, 4, 3), np.int32)],
)
def test_other_images_are_refused(image):
    with pytest.raises(ValueError, match="height, width, 3"):
        colour.brightness(image, 1.0)


def test_impossible_arguments_are_refused():
    image = draw_image(1, 2, 2)
    with pytest.raises(ValueError, match="hue must lie"):
        colour.shift_hls(image, 1001)
    with pytest.raises(ValueError, match="three numbers"):
        colour.lighting(image, (1, 2))
    with pytest.raises(ValueError, match="variant"):
        colour.brightness(image, 1.0, variant="mmx")


def test_pixels_by_hand():
    pixel = np.array([[[10, 100, 200]]], np.uint8)
    assert colour.brightness(pixel, 1.5).ravel().tolist() == [15, 150, 255]
    assert colour.lighting(pixel, (1.9, -200, 60)).ravel().tolist() == [11, 0, 255]
    blue, red = np.array([[[0, 0, 255]]], np.uint8), np.array([[[255, 0, 0]]], np.uint8)
    assert colour.saturation(blue, 0.0).ravel().tolist() == [76, 76, 76]
    assert colour.shift_hls(red, hue=60).ravel().tolist() == [1, 255, 1]
    pair = np.array([[[0] * 3, [200] * 3]], np.uint8)
    assert colour.contrast(pair, 0.5).ravel().tolist() == [50] * 3 + [150] * 3
