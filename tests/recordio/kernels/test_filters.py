"""Pillow's filters in the streaming resampler, against Pillow itself: to the byte."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from faces.resample import draft, resize
from recordio.kernels import resample
from recordio.kernels.resample import variants

#: The order of the two passes is that of Pillow 13.
pytestmark = pytest.mark.skipif(
    int(PIL.__version__.partition(".")[0]) < 13, reason="needs Pillow 13 or later"
)
FILTERS = {
    16: Image.Resampling.NEAREST,
    17: Image.Resampling.BOX,
    18: Image.Resampling.BILINEAR,
    19: Image.Resampling.HAMMING,
    20: Image.Resampling.BICUBIC,
    21: Image.Resampling.LANCZOS,
}

sides = st.integers(1, 60)
methods = st.sampled_from(sorted(FILTERS))
channel_counts = st.sampled_from([1, 3, 4])
seeds = st.integers(0, 2**16)


def pixels(seed, height, width, channels):
    """Noise, or black and white noise, which reaches the limits of every sum."""
    image = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    return np.where(image > 127, 255, 0).astype(np.uint8) if seed % 3 == 0 else image


def by_pillow(image, size, method, crop=None, box=None):
    picture = Image.fromarray(image if image.shape[2] > 1 else image[:, :, 0])
    if crop is not None:
        picture = picture.crop((crop[0], crop[1], crop[0] + crop[2], crop[1] + crop[3]))
    return np.asarray(picture.resize(size, FILTERS[method], box)).reshape(*size[::-1], -1)


@st.composite
def part(draw, sizes):
    """A rectangle (x, y, width, height) inside an area."""
    starts = [draw(st.integers(0, size - 1)) for size in sizes]
    spans = [draw(st.integers(1, size - start)) for size, start in zip(sizes, starts, strict=True)]
    return (*starts, *spans)


@settings(deadline=None, max_examples=150)
@given(sides, sides, sides, sides, channel_counts, methods, seeds, st.data())
def test_crops_and_windows_equal_pillow_in_all_variants(
    width, height, new_width, new_height, channels, method, seed, data
):
    image = pixels(seed, height, width, channels)
    crop = data.draw(part((width, height)))
    left, top, columns, rows = window = data.draw(part((new_width, new_height)))
    expected = by_pillow(image, (new_width, new_height), method, crop)
    expected = expected[top : top + rows, left : left + columns]
    for variant in variants():
        result = resize(
            image, (new_width, new_height), method, crop=crop, window=window, variant=variant
        )
        np.testing.assert_array_equal(result, expected, err_msg=variant)


@settings(deadline=None, max_examples=150)
@given(sides, sides, sides, sides, channel_counts, methods, seeds, st.data())
def test_boxes_of_fractions_equal_pillow(
    width, height, new_width, new_height, channels, method, seed, data
):
    image = pixels(seed, height, width, channels)
    ends = [
        sorted(data.draw(st.lists(st.integers(0, 16 * n), min_size=2, max_size=2, unique=True)))
        for n in (width, height)
    ]
    box = tuple(ends[axis][end] / 16 for end in range(2) for axis in range(2))
    size = new_width, new_height
    np.testing.assert_array_equal(
        resize(image, size, method, box=box), by_pillow(image, size, method, box=box)
    )


@pytest.mark.parametrize("method", FILTERS)
@pytest.mark.parametrize("size", [(1, 1), (224, 224), (700, 90), (90, 700), (1300, 1000)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_large_images_equal_pillow(method, size, channels):
    image = pixels(7, 811, 1203, channels)
    expected = by_pillow(image, size, method)
    for variant in variants():
        np.testing.assert_array_equal(resize(image, size, method, variant=variant), expected)
    np.testing.assert_array_equal(resample.resize(image, size, method), expected)


@pytest.mark.parametrize("height", [1, 8, 9, 31, 32, 33, 40, 41, 64, 73])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("new_height", [None, 7, 100])
def test_rows_that_go_across_together_equal_pillow(height, channels, new_height):
    image = pixels(height, height, 50, channels)
    for width, method in ((17, 21), (71, 20), (1, 18)):
        size = width, new_height or height
        expected = by_pillow(image, size, method)
        for variant in variants():
            result = resize(image, size, method, variant=variant)
            np.testing.assert_array_equal(result, expected, err_msg=variant)


@pytest.mark.parametrize("size", [(40, 20), (20, 40), (60, 10), (10, 60)])
def test_either_axis_may_come_first(size):
    """Pillow begins with the height where that is less work; the bytes show the order."""
    image = pixels(1, 64, 64, 3)
    for method in FILTERS:
        np.testing.assert_array_equal(resize(image, size, method), by_pillow(image, size, method))


@pytest.mark.parametrize("denominator", [2, 4, 8])
def test_an_image_decoded_at_a_fraction_is_a_box_of_fractions(denominator):
    width, height = 203, 157
    small = pixels(5, -(-height // denominator), -(-width // denominator), 3)
    for method in sorted(FILTERS)[1:]:
        expected = by_pillow(
            small, (17, 13), method, box=(0, 0, width / denominator, height / denominator)
        )
        result = resize(small, (17, 13), method, denominator=denominator, stored=(width, height))
        np.testing.assert_array_equal(result, expected)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 400), st.integers(1, 400), st.floats(1, 5), st.integers(1, 50))
def test_the_fraction_is_that_of_draft(width, height, gap, side):
    file = io.BytesIO()
    Image.new("L", (width, height)).save(file, "JPEG")
    with Image.open(file) as picture:
        result = picture.draft(None, (side * gap, side * gap))
        scale = round(width / result[1][2]) if result else 1
    assert draft(gap, (width, height), (side, side)) == scale


def test_threads_do_not_disturb_each_other():
    image = pixels(2, 300, 400, 3)
    expected = {method: by_pillow(image, (224, 160), method) for method in FILTERS}
    wrong = []

    def work(method):
        for _ in range(20):
            if not np.array_equal(resize(image, (224, 160), method), expected[method]):
                wrong.append(method)

    with ThreadPoolExecutor(len(FILTERS)) as pool:
        list(pool.map(work, FILTERS))
    assert wrong == []


@pytest.mark.parametrize("method", [5, 15, 22])
def test_other_numbers_are_refused(method):
    with pytest.raises(ValueError, match="cannot resize"):
        resample.resize(np.zeros((4, 4, 3), np.uint8), (2, 2), method)
