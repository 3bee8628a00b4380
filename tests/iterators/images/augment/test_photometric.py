"""Colour jitter, greying, blur and solarizing of torchvision's, DINO's and DeiT's recipes."""

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from faces.draws import drawn_photometric
from iterators.images.augment.recipe import Recipe
from recordio.kernels.operations import operate

from .test_policy import picture, rendered

RARE = 1e-4
DRAWS = 4000


def drawn(count=DRAWS, **keywords):
    recipe = Recipe(data_shape=(3, 8, 8), **keywords)
    return [drawn_photometric(recipe, i % 3, i % 5, i) for i in range(count)]


def test_a_jitter_draws_factors_and_order_as_torchvision_does():
    images = drawn(color_jitter=(0.4, 1.5, 0.2, 0.1))
    orders = Counter(tuple(name for name, _ in image) for image in images)
    names = ("brightness", "contrast", "colour", "hue")
    counts = [orders[order] for order in permutations(names)]
    assert sum(counts) == DRAWS
    assert stats.chisquare(counts).pvalue > RARE
    values = {name: np.array([dict(image)[name] for image in images]) for name in names}
    for name, low, high in (("brightness", 0.6, 1.4), ("contrast", 0, 2.5), ("colour", 0.8, 1.2)):
        assert stats.kstest(values[name], stats.uniform(low, high - low).cdf).pvalue > RARE
    # int(255 * x), which is cut towards 0.
    assert set(values["hue"]) == set(range(-25, 26))
    assert stats.chisquare(np.bincount((values["hue"] + 25).astype(int))[1:25]).pvalue > RARE


def test_one_number_is_brightness_contrast_and_saturation():
    recipe = Recipe(data_shape=(3, 8, 8), color_jitter=0.3)
    assert recipe.color_jitter == ((0.7, 1.3), (0.7, 1.3), (0.7, 1.3), (0, 0))
    assert {name for name, _ in drawn_photometric(recipe, 0, 0, 0)} == {
        "brightness", "contrast", "colour",
    }  # fmt: skip


def test_a_range_is_drawn_from_as_it_is():
    images = drawn(color_jitter=((1, 1), (1, 1), (1, 1.2), (0, 0.25)))
    saturation, hue = (
        np.array([dict(image)[key] for image in images]) for key in ("colour", "hue")
    )
    assert {len(image) for image in images} == {2}
    assert stats.kstest(saturation, stats.uniform(1, 0.2).cdf).pvalue > RARE
    assert hue.min() == 0
    assert hue.max() == 63


@pytest.mark.parametrize(
    ("keywords", "name"),
    [
        ({"random_grayscale": 0.2}, "grey"),
        ({"gaussian_blur": 0.2, "blur_sigma": (0.5, 1.5)}, "blur"),
        ({"solarize_p": 0.2, "solarize_threshold": 99}, "solarize"),
        ({"color_jitter": (0.4, 0, 0), "color_jitter_prob": 0.2}, "brightness"),
    ],
)
def test_changes_come_as_often_as_asked(keywords, name):
    images = drawn(**keywords)
    assert {key for image in images for key, _ in image} == {name}
    happened = sum(map(len, images))
    assert stats.binomtest(happened, DRAWS, 0.2).pvalue > RARE
    values = np.array([image[0][1] for image in images if image])
    if name == "blur":
        assert stats.kstest(values, stats.uniform(0.5, 1).cdf).pvalue > RARE
    if name == "solarize":
        assert (values == 99).all()


def test_an_image_gets_the_changes_that_it_always_got():
    """Saved states and old runs count on it: every number has a word of its own."""
    recipe = Recipe(
        data_shape=(3, 8, 8), three_augment=True, color_jitter=(0.4, 0.3, 0.2, 0.1),
        random_grayscale=1, gaussian_blur=1, solarize_p=1,
    )  # fmt: skip
    names, values = zip(*drawn_photometric(recipe, 7, 2, 3), strict=True)
    jitter = ("contrast", "colour", "brightness", "hue")
    assert names == ("solarize", *jitter, "grey", "blur", "solarize")
    wanted = [128, 1.2754197, 0.8427171, 1.2955724, 20, 0, 0.4285206, 128]
    assert values == pytest.approx(wanted, rel=1e-6)


def test_three_augment_does_one_of_three():
    images = drawn(three_augment=True)
    assert {len(image) for image in images} == {1}
    counts = Counter(image[0][0] for image in images)
    assert stats.chisquare([counts["grey"], counts["solarize"], counts["blur"]]).pvalue > RARE


def test_chances_are_independent():
    images = drawn(random_grayscale=0.5, gaussian_blur=0.5, solarize_p=0.5)
    patterns = Counter(tuple(name for name, _ in image) for image in images)
    assert len(patterns) == 8
    assert stats.chisquare(list(patterns.values())).pvalue > RARE


def test_the_stage_applies_them_in_their_order():
    recipe = Recipe(
        data_shape=(3, 40, 48), color_jitter=(0.4, 0.4, 0.2, 0.1), color_jitter_prob=0.8,
        random_grayscale=0.2, gaussian_blur=0.5, solarize_p=0.5,
    )  # fmt: skip
    image = picture()
    for record in range(30):
        wanted = image
        for name, value in drawn_photometric(recipe, 9, 0, record):
            wanted = operate(wanted, name, value)
        np.testing.assert_array_equal(rendered(recipe, image, record), wanted)


def test_grey_images_may_be_blurred_and_solarized():
    recipe = Recipe(data_shape=(1, 40, 48), gaussian_blur=1.0, solarize_p=1.0)
    (_, sigma), (_, threshold) = drawn_photometric(recipe, 9, 0, 0)
    image = picture(1)
    wanted = operate(operate(image, "blur", sigma), "solarize", threshold)
    np.testing.assert_array_equal(rendered(recipe, image), wanted)


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"color_jitter": (1, 2)}, "1, 3 or 4 numbers or ranges"),
        ({"color_jitter": (0, 0, 0, 0.6)}, "from 0 to 0.5"),
        ({"blur_sigma": (2, 1)}, "2 is above 1"),
        ({"random_grayscale": -0.1}, "from 0 to 1"),
        ({"solarize_threshold": 300}, "from 0 to 256"),
        ({"data_shape": (1, 8, 8), "random_grayscale": 0.5}, "needs RGB images"),
    ],
)
def test_what_cannot_be_is_refused(keywords, text):
    with pytest.raises(ValueError, match=text):
        Recipe(**{"data_shape": (3, 8, 8)} | keywords)


def test_a_certain_change_is_drawn():
    recipe = Recipe(data_shape=(3, 8, 8), random_grayscale=1)
    assert drawn_photometric(recipe, 0, 0, 0) == [("grey", 0.0)]
