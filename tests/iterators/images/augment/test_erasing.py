"""Erased rectangles: drawn as torchvision's and timm's, and what is put in them."""

import math
import random

import numpy as np
import pytest
from scipy import stats

from faces.draws import drawn_rectangles
from iterators.images.augment.recipe import Recipe
from iterators.images.plan import RenderPlan
from iterators.images.render import Renderer
from iterators.images.row_writer import LinearPlan
from recordio import IRHeader, pack_img

RARE = 1e-4
IMAGENET = {
    "mean_r": 123.675, "mean_g": 116.28, "mean_b": 103.53,
    "std_r": 58.395, "std_g": 57.12, "std_b": 57.375,
}  # fmt: skip


def recipe(**more):
    return Recipe(**{"data_shape": (3, 40, 60), "random_erasing": 1.0} | more)


def rendered(recipe, record=0, value=50, plan_class=RenderPlan, **more):
    channels, height, width = recipe.data_shape
    image = np.full((height, width, channels), value, np.uint8)
    packed = pack_img(IRHeader(0, 0.0, 0, 0), image[:, :, : channels or None], img_fmt=".png")
    plan = plan_class(recipe, key=3, **more)
    return Renderer(plan).sample(packed, 1, record)[0][0]


def torchvisions_rectangle(rng, width, height, area, ratio):
    """The rule of `RandomErasing.get_params`, which is timm's too, with another generator."""
    for _ in range(10):
        erased = width * height * rng.uniform(*area)
        aspect = math.exp(rng.uniform(*map(math.log, ratio)))
        h, w = round(math.sqrt(erased * aspect)), round(math.sqrt(erased / aspect))
        if h < height and w < width:
            return rng.randint(0, width - w), rng.randint(0, height - h), w, h
    return None


@pytest.mark.parametrize(
    ("width", "height", "area", "ratio"),
    [(224, 224, (0.02, 0.33), (0.3, 3.3)), (100, 30, (0.3, 0.9), (0.2, 1.0))],
)
def test_rectangles_have_the_distribution_of_the_libraries(width, height, area, ratio):
    rng, count = random.Random(1), 6000
    theirs = [torchvisions_rectangle(rng, width, height, area, ratio) for _ in range(count)]
    mine_of = recipe(data_shape=(3, height, width), erasing_area=area, erasing_ratio=ratio)
    mine = [drawn_rectangles(mine_of, i % 3, i % 5, i) for i in range(count)]
    found = np.array([one[0] for one in mine if one])
    wanted = np.array([one for one in theirs if one])
    missing = [[count - len(found), len(found)], [count - len(wanted), len(wanted)]]
    if np.array(missing)[:, 0].any():
        assert stats.chi2_contingency(missing).pvalue > RARE
    for column in range(4):
        assert stats.ks_2samp(found[:, column], wanted[:, column]).pvalue > RARE
    size = stats.ks_2samp(found[:, 2] * found[:, 3], wanted[:, 2] * wanted[:, 3])
    assert size.pvalue > RARE


def test_rectangles_lie_inside_and_come_as_often_as_asked():
    some = recipe(random_erasing=0.25, erasing_count=(1, 3))
    drawn = [drawn_rectangles(some, 0, 0, i) for i in range(6000)]
    for x, y, width, height in (one for found in drawn for one in found):
        assert 0 <= x <= 60 - width
        assert 0 <= y <= 40 - height
    counts = np.bincount([len(found) for found in drawn], minlength=4)
    assert (
        stats.chisquare(counts, np.array([0.75, 0.25 / 3, 0.25 / 3, 0.25 / 3]) * 6000).pvalue > RARE
    )


def mask_of(recipe, record):
    mask = np.zeros(recipe.data_shape[1:], bool)
    for x, y, width, height in drawn_rectangles(recipe, 3, 1, record):
        mask[y : y + height, x : x + width] = True
    return mask


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int8"])
def test_rectangles_are_filled_in_every_form(dtype, layout, mirror):
    means = IMAGENET if dtype.startswith("float") else {}
    for value, wanted in ((200, 200.0), ("mean", None)):
        one = recipe(erasing_value=value, erasing_count=2, mirror=mirror, **means)
        whole = recipe(random_erasing=0.0, mirror=mirror, **means)
        for record in range(4):
            mask = mask_of(one, record)
            found = rendered(one, record, layout=layout, dtype=dtype)
            plain = rendered(whole, record, layout=layout, dtype=dtype)
            level = rendered(whole, record, 200, layout=layout, dtype=dtype)
            if layout == "NHWC":
                found, plain, level = (a.transpose(2, 0, 1) for a in (found, plain, level))
            np.testing.assert_array_equal(found[:, ~mask], plain[:, ~mask])
            if wanted is not None:
                np.testing.assert_array_equal(found[:, mask], level[:, mask])
            elif dtype == "uint8":
                np.testing.assert_array_equal(
                    found[:, mask], np.array([[124], [116], [104]]).repeat(mask.sum(), 1)
                )
            elif dtype != "int8":
                assert (found[:, mask] == 0).all()


def test_noise_of_pixels_is_normal_and_every_value_its_own():
    one = recipe(data_shape=(3, 200, 200), erasing_value="pixel", erasing_area=0.3, **IMAGENET)
    values = []
    for record in range(3):
        mask = mask_of(one, record)
        values.append(rendered(one, record)[:, mask].ravel())
    assert not np.array_equal(values[0][:100], values[1][:100])
    numbers = np.concatenate(values)
    assert stats.kstest(numbers[:100_000], "norm").statistic < 0.008
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 1) < 0.02
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.01


def test_a_colour_is_one_normal_number_for_every_channel():
    one = recipe(erasing_value="colour", **IMAGENET)
    colours = []
    for record in range(300):
        erased = rendered(one, record)[:, mask_of(one, record)]
        assert (erased == erased[:, :1]).all()
        colours.append(erased[:, 0])
    colours = np.array(colours)
    assert stats.kstest(colours.ravel(), "norm").pvalue > RARE
    assert stats.spearmanr(colours[:, 0], colours[:, 1]).pvalue > RARE


def test_noise_of_integers_is_that_of_imagenet_cut_off():
    one = recipe(data_shape=(3, 200, 200), erasing_value="pixel", erasing_area=0.3)
    red = rendered(one, dtype="uint8")[0][mask_of(one, 0)].astype(float)
    wanted = np.clip(stats.norm(123.675, 58.395).rvs(20000, random_state=1).round(), 0, 255)
    assert abs(red.mean() - wanted.mean()) < 2
    assert abs(red.std() - wanted.std()) < 2


@pytest.mark.parametrize("channels", [1, 4])
def test_grey_and_alpha_are_erased_too(channels):
    one = recipe(data_shape=(channels, 40, 60), erasing_value=7.0)
    found = rendered(one)
    assert (found[:, mask_of(one, 0)] == 7).all()


def test_the_colours_of_an_augmenter_leave_what_is_erased():
    from iterators.images.augment.augmenter import Augmenter

    one = Augmenter(data_shape=(3, 40, 60), random_erasing=1.0, brightness=0.5)
    found = rendered(one, plan_class=LinearPlan)
    assert (found[:, mask_of(one, 0)] == 0).all()


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"random_erasing": 1.1}, "from 0 to 1"),
        ({"erasing_area": (0.5, 0.2)}, "0.5 is above 0.2"),
        ({"erasing_area": (0.1, 0.2, 0.3)}, "the ends of a range"),
        ({"erasing_ratio": 0}, "from 0.001"),
        ({"erasing_count": 17}, "from 1 to 16"),
        ({"erasing_value": "white"}, "'mean', 'colour', 'pixel'"),
        ({"erasing_value": 256}, "a grey level from 0 to 255"),
    ],
)
def test_what_cannot_be_is_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        recipe(**keywords)


def test_a_chance_of_almost_nothing_erases_nothing():
    assert drawn_rectangles(Recipe(data_shape=(3, 8, 8), random_erasing=1e-9), 0, 0, 0) == []
