"""torchvision's warps, borders, flips and corners: pixels as Pillow's, numbers as torchvision's.

The numbers that torchvision draws are stored; see `library_draws`.
"""

import importlib.util
import json
import math

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats

import recordio
from faces.draws import drawn_warps
from iterators.images.augment.augmenter import Augmenter
from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from iterators.images.row_writer import LinearPlan

from .library_draws import GOLDEN, WARP_SIZE, WARPS, warps_of_torchvision

RARE = 1e-5
METHODS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def picture(width, height, channels, seed=0):
    """Smooth with edges, so that a shift by a pixel shows everywhere; alpha has all levels."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (height // 4 + 2, width // 4 + 2, channels), np.uint8)
    return cv2.resize(small, (width, height)).reshape(height, width, channels)


def record_of(image, suffix=".png", *options):
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[image.shape[2]]
    done, data = cv2.imencode(suffix, image[..., order], list(options))
    assert done
    return recordio.pack(recordio.IRHeader(0, 0, 0, 0), data.tobytes())


def rendered(recipe, record, number=0, **plan):
    plan = RenderPlan(recipe, layout="NHWC", dtype="uint8", **plan)
    return Renderer(plan).sample(record, 0, number)[0][0]


def affine_matrix(width, height, angle, shift, scale, shear):
    """The matrix of torchvision's `affine` for Pillow, in its order of operations."""
    turn, lean_x, lean_y = (math.radians(degrees) for degrees in (angle, *shear))
    x, y = width * 0.5, height * 0.5
    a = math.cos(turn - lean_y) / math.cos(lean_y)
    b = -math.cos(turn - lean_y) * math.tan(lean_x) / math.cos(lean_y) - math.sin(turn)
    c = math.sin(turn - lean_y) / math.cos(lean_y)
    d = -math.sin(turn - lean_y) * math.tan(lean_x) / math.cos(lean_y) + math.cos(turn)
    matrix = [number / scale for number in (d, -b, 0.0, -c, a, 0.0)]
    for i in (0, 3):
        matrix[i + 2] += matrix[i] * (-x - shift[0]) + matrix[i + 1] * (-y - shift[1])
    matrix[2] += x
    matrix[5] += y
    return matrix


def coefficients(width, height, corners):
    """As torchvision finds them, in float32."""
    starts = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
    rows = []
    for (x, y), (to_x, to_y) in zip(corners, starts):
        rows.append([x, y, 1, 0, 0, 0, -to_x * x, -to_x * y])
        rows.append([0, 0, 0, x, y, 1, -to_y * x, -to_y * y])
    found = np.linalg.lstsq(np.array(rows, float), np.ravel(starts).astype(float), rcond=None)[0]
    return found.astype(np.float32)


def by_pillow(image, recipe, number=0):
    """What torchvision does with the numbers that are drawn, by Pillow and NumPy."""
    height, width, channels = image.shape
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    one = Image.fromarray(image[..., 0] if channels == 1 else image, mode)
    method, level = METHODS[recipe.warp_interpolation], recipe.fill_value
    fill = {1: level, 3: (level,) * 3, 4: (level, level, level, 0)}[channels]
    drawn = drawn_warps(recipe, 0, 0, number, width, height)
    if "rotation" in drawn:
        one = one.rotate(drawn["rotation"], method, fillcolor=fill)
    if "affine" in drawn:
        matrix = affine_matrix(width, height, *drawn["affine"])
        one = one.transform((width, height), Image.AFFINE, matrix, method, fillcolor=fill)
    steps, mirror = drawn_steps(recipe, 0, 0, number, width, height)
    if "perspective" in drawn:
        (step,) = (step for step in steps if step["kind"] == 4)
        one = one.transform(
            (width, height), Image.PERSPECTIVE, step["inverse"], method, fillcolor=fill
        )
    image = np.asarray(one).reshape(height, width, channels)
    if recipe.pad:
        border = (recipe.pad, recipe.pad)
        if recipe.padding_mode == "constant":
            planes = [
                np.pad(image[..., c], (border, border), constant_values=np.atleast_1d(fill)[c])
                for c in range(channels)
            ]
            image = np.stack(planes, -1)
        else:
            image = np.pad(image, (border, border, (0, 0)), recipe.padding_mode)
    _, high, wide = recipe.data_shape
    top, left = (image.shape[0] - high) // 2, (image.shape[1] - wide) // 2
    image = image[top : top + high, left : left + wide]
    return image[:, ::-1] if mirror else image


ranges = st.tuples(st.floats(-400, 400, width=32), st.floats(0, 90, width=32)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)


@st.composite
def parts(draw):
    """Any `affine`."""
    told = {"degrees": draw(st.sampled_from([0, (90, 90), (-180, -180)]) | ranges)}
    if draw(st.booleans()):
        told["translate"] = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    if draw(st.booleans()):
        low = draw(st.sampled_from([0.001, 0.1, 0.5, 1, 2]))
        told["scale"] = low, low * draw(st.sampled_from([1, 1.5, 4]))
    if draw(st.booleans()):
        limit = st.floats(-60, 60)
        low, other = draw(limit), draw(limit)
        told["shear"] = (low, low + 20, other, other) if draw(st.booleans()) else (low, low + 5)
    return told


@st.composite
def cases(draw):
    """A recipe, an image and the number of its record."""
    width, height = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    if draw(st.integers(0, 3)) == 0:
        height = width
    channels, pad = draw(st.sampled_from([1, 3, 4])), draw(st.sampled_from([0, 0, 1, 7, 70]))
    chosen = {
        "data_shape": (
            channels,
            draw(st.integers(1, height + 2 * pad)),
            draw(st.integers(1, width + 2 * pad)),
        )
    }
    if draw(st.booleans()):
        turns = st.sampled_from([0, 90, 180, 270, -90, 360, 450]).map(lambda angle: (angle, angle))
        chosen["rotation"] = draw(turns | ranges)
    if draw(st.booleans()):
        chosen["affine"] = draw(parts())
    if draw(st.booleans()):
        chosen |= {"perspective": draw(st.floats(0.01, 1)), "perspective_p": 1.0}
    if set(chosen) & {"rotation", "affine", "perspective"}:
        chosen["warp_interpolation"] = draw(st.sampled_from(list(METHODS)))
    if pad:
        chosen |= {"pad": pad, "padding_mode": draw(st.sampled_from(PADDINGS))}
    if len(chosen) > 1 and chosen.get("padding_mode", "constant") == "constant":
        chosen["fill_value"] = draw(st.integers(0, 255))
    chosen["mirror"] = draw(st.booleans())
    return Recipe(**chosen), picture(width, height, channels, width), draw(st.integers(0, 99))


PADDINGS = ["constant", "edge", "reflect", "symmetric"]


# Less than a turn that changes the matrix: colours are rounded by alpha nevertheless.
ALMOST_NO_TURN = Recipe(
    data_shape=(4, 1, 1), rotation=(0, 2**-52), warp_interpolation="bilinear", fill_value=0
)


@settings(max_examples=200, deadline=None)
@given(cases())
@example((ALMOST_NO_TURN, np.array([[[197, 184, 51, 172]]], np.uint8), 0))
def test_pixels_are_those_of_pillow(case):
    recipe, image, number = case
    assert np.array_equal(
        rendered(recipe, record_of(image), number), by_pillow(image, recipe, number)
    )


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 300), st.integers(2, 300), st.floats(0.01, 0.9), st.integers(0, 99))
def test_perspectives_have_the_coefficients_of_torchvision(width, height, distortion, number):
    """Of what is solved in float64, the last bit of float32 may differ."""
    recipe = Recipe(data_shape=(3, 8, 8), perspective=distortion, perspective_p=1)
    corners = drawn_warps(recipe, 0, 0, number, width, height)["perspective"]
    (step, *_), _ = drawn_steps(recipe, 0, 0, number, width, height)
    wanted = coefficients(width, height, corners)
    np.testing.assert_allclose(step["inverse"], wanted, rtol=2.0**-22, atol=1e-10)


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("resize", [-1, 40, 200])
def test_a_warp_sees_the_whole_image_and_without_one_a_region_is_decoded(suffix, resize):
    """A crop far from the turned corner: the same as the crop of what is rendered whole."""
    image = picture(160, 120, 3)
    record = record_of(image, suffix)
    base = {"resize": resize, "scaled_decode": False, "perspective": 0.5, "fill_value": 9}
    high, wide = (120, 160) if resize == -1 else (resize, resize * 160 // 120)
    whole = Recipe(data_shape=(3, high, wide), **base)
    part = Recipe(data_shape=(3, 20, 30), crop_x_start=5, crop_y_start=11, **base)
    applied = 0
    for number in range(20):
        applied += "perspective" in drawn_warps(whole, 0, 0, number, 160, 120)
        np.testing.assert_array_equal(
            rendered(part, record, number), rendered(whole, record, number)[11:31, 5:35]
        )
    assert 0 < applied < 20
    (step,), _ = next(
        drawn_steps(part, 0, 0, number, 160, 120)
        for number in range(20)
        if "perspective" not in drawn_warps(part, 0, 0, number, 160, 120)
    )
    assert (step["kind"], step["out_width"], step["out_height"]) == (0, 30, 20)


@pytest.mark.parametrize("mode", PADDINGS)
def test_a_border_is_the_same_if_only_a_region_is_decoded(mode):
    """Crops within, across and outside of the image."""
    image = picture(50, 40, 3)
    for pad in (3, 30, 130):
        keywords = {} if mode == "constant" else {"padding_mode": mode}
        whole = rendered(
            Recipe(data_shape=(3, 40 + 2 * pad, 50 + 2 * pad), pad=pad, **keywords),
            record_of(image),
        )
        for x, y in ((0, 0), (pad, pad), (pad + 47, 2), (2 * pad + 45, 2 * pad + 33)):
            recipe = Recipe(
                data_shape=(3, 7, 5), pad=pad, crop_x_start=x, crop_y_start=y, **keywords
            )
            found = rendered(recipe, record_of(image))
            np.testing.assert_array_equal(found, whole[y : y + 7, x : x + 5])


@pytest.mark.parametrize("size", [(50, 41), (31, 30), (33, 64)])
@pytest.mark.parametrize("flips", [{}, {"mirror": True}, {"flip_p": 1.0}])
def test_positions_are_the_crops_of_torchvision(size, flips):
    """`five_crop` of the mirrored or flipped image: the order of ten crops."""
    image = picture(*size, 3)
    wanted = image[:, ::-1] if "mirror" in flips else image[::-1] if flips else image
    right, bottom = size[0] - 30, size[1] - 29
    corners = {"top_left": (0, 0), "top_right": (right, 0), "bottom_left": (0, bottom)}
    corners |= {"bottom_right": (right, bottom)}
    for name, (x, y) in corners.items():
        recipe = Recipe(data_shape=(3, 29, 30), crop_position=name, **flips)
        found = rendered(recipe, record_of(image))
        np.testing.assert_array_equal(found, wanted[y : y + 29, x : x + 30])
    if not flips:
        plain = rendered(Recipe(data_shape=(3, 29, 30)), record_of(image))
        middle = rendered(Recipe(data_shape=(3, 29, 30), crop_position="center"), record_of(image))
        np.testing.assert_array_equal(middle, plain)


def test_flips_turn_rows_round_in_every_layout():
    image = picture(20, 14, 3)
    recipe = Recipe(data_shape=(3, 14, 20), flip_p=1)
    np.testing.assert_array_equal(rendered(recipe, record_of(image)), image[::-1])
    planes = Renderer(RenderPlan(recipe, dtype="float32")).sample(record_of(image))[0][0]
    np.testing.assert_array_equal(planes, image[::-1].transpose(2, 0, 1))


def test_colours_changed_in_float_are_flipped_too():
    """MXNet's Python augmenters have a writer of their own."""
    image = picture(26, 20, 3)
    keywords = {"data_shape": (3, 14, 20), "crop_position": "top_left", "contrast": 0.3}
    plain = Renderer(LinearPlan(Augmenter(**keywords))).sample(record_of(image[::-1]))[0]
    flipped = Renderer(LinearPlan(Augmenter(**keywords, flip_p=1))).sample(record_of(image))[0]
    np.testing.assert_array_equal(flipped, plain)


# -- numbers ---------------------------------------------------------------------------------------


def flat(values):
    if isinstance(values, (tuple, list)):
        return [number for value in values for number in flat(value)]
    return [float(values)]


def warps_of_ours(keywords, count):
    recipe = Recipe(data_shape=(3, 8, 8), **keywords)
    drawn = []
    for i in range(count):
        key, epoch, number = i % 3, i // 3 % 7, i // 21
        if recipe.rand_mirror:
            _, mirror = drawn_steps(recipe, key, epoch, number, *WARP_SIZE)
            drawn.append([1.0] if mirror else [])
        else:
            found = drawn_warps(recipe, key, epoch, number, *WARP_SIZE)
            drawn.append(flat(list(found.values())))
    return drawn


def compare(images, theirs):
    """Whether two sets of numbers come from one distribution."""
    changed = [numbers for numbers in images if numbers]
    test = stats.fisher_exact([
        [len(changed), len(images) - len(changed)],
        [theirs["changed"], theirs["images"] - theirs["changed"]],
    ])  # fmt: skip
    assert test.pvalue > RARE
    assert {len(numbers) for numbers in changed} == {len(theirs["numbers"])}
    for mine, told in zip(np.array(changed).T, theirs["numbers"], strict=True):
        if "quantiles" in told:
            shares = np.linspace(0, 1, len(told["quantiles"]))
            found = np.interp(mine, told["quantiles"], shares)
            test = stats.kstest(found, "uniform")
            assert test.pvalue > RARE or test.statistic < 0.008
            continue
        counts = dict(map(tuple, told["values"]))
        values, found = np.unique(mine, return_counts=True)
        assert set(values) == set(counts)
        if len(counts) > 1:
            table = [found, [counts[value] for value in values]]
            assert stats.chi2_contingency(table).pvalue > RARE


@pytest.mark.parametrize("text", [text for text in WARPS if "Vertical" not in text])
def test_warps_are_drawn_as_torchvision_draws_them(text):
    compare(warps_of_ours(WARPS[text], 20_000), json.loads(GOLDEN.read_text())[text])


@pytest.mark.skipif(not importlib.util.find_spec("torchvision"), reason="torchvision is missing")
@pytest.mark.parametrize("text", WARPS)
def test_torchvision_draws_what_is_stored(text):
    compare(warps_of_torchvision(text, 20_000), json.loads(GOLDEN.read_text())[text])


def test_flips_are_drawn_as_torchvision_draws_them():
    """By what is written: a flip is no step."""
    (text,) = (text for text in WARPS if "Vertical" in text)
    renderer = Renderer(
        RenderPlan(Recipe(data_shape=(1, 2, 1), **WARPS[text]), layout="NHWC", dtype="uint8")
    )
    pixels = np.array([[[1]], [[2]]], np.uint8)
    upside_down = [renderer.pixels(pixels, 0, i)[0, 0, 0, 0] == 2 for i in range(20_000)]
    compare([[1.0] if flip else [] for flip in upside_down], json.loads(GOLDEN.read_text())[text])


def test_an_image_gets_the_warps_that_it_always_got():
    """Saved states and old runs count on it: every number has a word of its own."""
    affine = {"degrees": 20, "translate": (0.2, 0.3), "scale": (0.5, 1.5), "shear": (-9, 9, -5, 5)}
    recipe = Recipe(
        data_shape=(3, 8, 8), rotation=30, affine=affine, perspective=0.5, perspective_p=1
    )
    drawn = drawn_warps(recipe, 7, 2, 3, 100, 80)
    wanted = [11.519822, 15.715795, 3, -9, 0.587283, -0.1305176, 1.9732237]
    assert flat([drawn["rotation"], drawn["affine"]]) == pytest.approx(wanted, rel=1e-6)
    assert drawn["perspective"] == [(17, 5), (95, 9), (86, 63), (24, 78)]


def test_one_draw_does_not_depend_on_another():
    recipe = Recipe(
        data_shape=(3, 8, 8), rotation=10, perspective=0.5, affine={"degrees": 10, "shear": 10}
    )
    drawn = [drawn_warps(recipe, 0, 0, i, 64, 64) for i in range(5000)]
    angles = np.array([[told["rotation"], *flat(told["affine"])] for told in drawn])
    chance = ["perspective" in told for told in drawn]
    for i, j in ((0, 1), (0, 5), (1, 5)):
        assert stats.spearmanr(angles[:, i], angles[:, j]).pvalue > RARE
    assert stats.spearmanr(angles[:, 0], chance).pvalue > RARE


# -- keywords --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"rotation": -3}, ValueError, "rotation=-3"),
        ({"rotation": (5, 3)}, ValueError, "5 is above 3"),
        ({"rotation": (1, 2, 3)}, ValueError, "expected a number, or the two ends"),
        ({"affine": 30}, TypeError, "expected a dict"),
        ({"affine": {"angle": 3}}, ValueError, "has no part 'angle': its parts are degrees"),
        ({"affine": {"scale": (0, 1)}}, ValueError, "scale"),
        ({"affine": {"shear": 90}}, ValueError, "shear"),
        ({"affine": {"shear": (1, 2, 3)}}, ValueError, "2 or 4 ends"),
        ({"affine": {"translate": 0.5}}, ValueError, "shares of the width"),
        ({"perspective": 1.5}, ValueError, "perspective=1.5"),
        ({"perspective_p": 0.3}, ValueError, "has no effect without perspective"),
        ({"warp_interpolation": "bilinear"}, ValueError, "has no effect without rotation"),
        ({"rotation": 3, "warp_interpolation": "lanczos"}, ValueError, "'nearest', 'bilinear'"),
        ({"padding_mode": "edge"}, ValueError, "has no effect without pad"),
        ({"pad": 3, "padding_mode": "wrap"}, ValueError, "'reflect', 'symmetric'"),
        ({"mirror_p": 0.3}, ValueError, "has no effect without rand_mirror"),
        ({"flip_p": 2}, ValueError, "flip_p=2"),
        ({"crop_position": "left"}, ValueError, "'center', 'top_left'"),
        ({"crop_position": "center", "rand_crop": True}, ValueError, "contradicts crop_position"),
        ({"crop_position": "center", "crop_x_start": 0}, ValueError, "contradicts crop_position"),
        ({"rotation": 3, "rotate": 4}, ValueError, "rotate=4 contradicts rotation"),
        ({"affine": {}, "max_aspect_ratio": 0.2}, ValueError, "stretches in MXNet's warp"),
        ({"perspective": 0.2, "max_shear_ratio": 0.2}, ValueError, "contradicts rotation"),
    ],
)
def test_keywords_that_make_no_sense_are_refused(keywords, error, message):
    with pytest.raises(error, match=message):
        Recipe(data_shape=(3, 8, 8), **keywords)


def test_recipes_print_themselves_as_keywords():
    recipe = Recipe(
        data_shape=(3, 8, 8), rotation="5", affine={"shear": 3, "scale": [1, 2]}, flip_p=0.5
    )
    assert recipe.rotation == (-5, 5)
    assert recipe.affine == {
        "degrees": (0, 0), "translate": None, "scale": (1, 2), "shear": (-3, 3, 0, 0),
    }  # fmt: skip
    assert eval(repr(recipe)) == recipe


def test_sides_that_pillow_counts_otherwise_are_refused():
    with pytest.raises(ValueError, match="too large"):
        drawn_steps(Recipe(data_shape=(3, 8, 8), rotation=(3, 4)), 0, 0, 0, 40000, 10)


def test_corners_on_a_line_leave_the_image_as_it_is():
    image = picture(1, 9, 3)
    recipe = Recipe(data_shape=(3, 9, 1), perspective=0.5, perspective_p=1)
    np.testing.assert_array_equal(rendered(recipe, record_of(image)), image)
