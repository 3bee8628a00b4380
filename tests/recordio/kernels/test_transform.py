"""Affine and perspective maps against Pillow's Image.transform, to the byte and in every form."""

import math

import numpy as np
import pytest
from by_pillow import RESAMPLING
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from recordio.kernels.operations import METHODS
from recordio.kernels.resample import variants
from recordio.kernels.transform import affine_map, perspective_map, rotation_map, transform

PERSPECTIVE = Image.Transform.PERSPECTIVE
AFFINE = Image.Transform.AFFINE

small = st.integers(1, 40)


def picture(seed, height, width, channels):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, channels), dtype=np.uint8)


images = st.builds(picture, st.integers(0, 10**6), small, small, st.sampled_from([1, 3, 4]))


def of_pillow(image, matrix, method, fill, size):
    """Each channel alone, because Pillow multiplies colours by alpha before it mixes them."""
    kind = AFFINE if len(matrix) == 6 else PERSPECTIVE
    parts = [
        Image.fromarray(np.ascontiguousarray(image[:, :, c])).transform(
            size[::-1], kind, matrix, RESAMPLING[method], fillcolor=fill
        )
        for c in range(image.shape[2])
    ]
    return np.stack([np.asarray(part) for part in parts], -1)


numbers = st.floats(-2, 2) | st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-3, 40.0])
shifts = st.floats(-50, 50) | st.integers(-50, 50)
affines = st.tuples(numbers, numbers, shifts, numbers, numbers, shifts)
slopes = st.floats(-0.05, 0.05) | st.just(0.0)
perspectives = st.tuples(numbers, numbers, shifts, numbers, numbers, shifts, slopes, slopes)


@pytest.mark.parametrize("variant", variants())
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=100, deadline=None)
@given(images, affines | perspectives, small, small, st.integers(0, 255))
def test_maps_are_pillows(variant, method, image, matrix, height, width, fill):
    found = transform(
        image, matrix, method=method, fill=fill, size=(height, width), variant=variant
    )
    wanted = of_pillow(image, matrix, method, fill, (height, width))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=80, deadline=None)
@given(images, affines | perspectives, st.data())
def test_a_window_is_a_part_of_the_result(method, image, matrix, data):
    height, width = 23, 31
    left, top = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    wide, high = (data.draw(st.integers(1, side)) for side in (width - left, height - top))
    keywords = {"method": method, "fill": 9, "size": (height, width)}
    whole = transform(image, matrix, **keywords)
    part = transform(image, matrix, window=(left, top, wide, high), **keywords)
    np.testing.assert_array_equal(part, whole[top : top + high, left : left + wide])


angles = st.floats(-720, 720) | st.integers(-8, 8).map(lambda n: 45.0 * n)
# Their cosine and sine are rounded to 0 and 1, yet Pillow does not exchange rows and columns.
almost = st.tuples(st.sampled_from([-90, 0, 90, 180, 270, 360]), st.sampled_from([-1e4, 1e4])).map(
    lambda turn: math.nextafter(*turn)
)


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=100, deadline=None)
@given(small, small, angles | almost)
def test_turns_are_those_of_image_rotate(method, expand, height, width, degrees):
    image = picture(3, height, width, 3)
    matrix, size = rotation_map(degrees, (height, width), expand)
    turned = Image.fromarray(image).rotate(degrees, RESAMPLING[method], expand=expand)
    assert size == turned.size[::-1]
    np.testing.assert_array_equal(transform(image, matrix, method=method, size=size), turned)


def inverse_affine(degrees, translate, scale, shear, size):
    """torchvision's ``_get_inverse_affine_matrix`` about the centre."""
    turn, sx, sy = map(math.radians, (degrees, *shear))
    x, y = size[1] * 0.5, size[0] * 0.5
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    m = [value / scale for value in (d, -b, 0.0, -c, a, 0.0)]
    m[2] += m[0] * (-x - translate[0]) + m[1] * (-y - translate[1])
    m[5] += m[3] * (-x - translate[0]) + m[4] * (-y - translate[1])
    return [m[0], m[1], m[2] + x, m[3], m[4], m[5] + y]


@given(angles, st.tuples(shifts, shifts), st.floats(0.1, 4), st.tuples(*[st.floats(-60, 60)] * 2))
def test_affine_maps_are_torchvisions(degrees, translate, scale, shear):
    size = (37, 50)
    wanted = inverse_affine(degrees, translate, scale, shear, size)
    assert affine_map(degrees, translate, scale, shear, size) == wanted


@given(st.lists(st.integers(0, 15), min_size=8, max_size=8))
def test_perspective_maps_bring_corners_where_they_belong(moves):
    height, width = 40, 60
    starts = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
    ends = [
        (moves[0], moves[1]), (width - 1 - moves[2], moves[3]),
        (width - 1 - moves[4], height - 1 - moves[5]), (moves[6], height - 1 - moves[7]),
    ]  # fmt: skip
    a, b, c, d, e, f, g, h = matrix = perspective_map(ends, (height, width))
    assert matrix == [float(np.float32(value)) for value in matrix]
    for (x, y), start in zip(ends, starts, strict=True):
        depth = g * x + h * y + 1
        found = (a * x + b * y + c) / depth, (d * x + e * y + f) / depth
        np.testing.assert_allclose(found, start, atol=1e-3)


def test_corners_in_one_point_have_no_map():
    assert perspective_map([(4, 4)] * 4, (10, 10)) is None


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"matrix": (1, 0, 0)}, "6 or 8 numbers"),
        ({"matrix": (math.nan,) * 6}, "6 or 8 numbers"),
        ({"method": "lanczos"}, "method must be one of"),
        ({"window": (0, 0, 9, 1)}, "a part of 4 x 4 pixels"),
        ({"size": (0, 4)}, "sides of 1"),
        ({"image": np.zeros((4, 4), np.float32)}, "uint8"),
    ],
)
def test_impossible_transforms_are_refused(keywords, text):
    arguments = {"image": np.zeros((4, 4), np.uint8), "matrix": (1, 0, 0, 0, 1, 0)} | keywords
    with pytest.raises(ValueError, match=text):
        transform(**arguments)
