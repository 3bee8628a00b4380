"""Random crops lie and are as large as those of torchvision; see `library_draws`."""

import importlib.util
import json

import numpy as np
import pytest
from scipy import stats

from iterators.images.augment.geometry import drawn_steps
from iterators.images.augment.recipe import Recipe

from .library_draws import (
    CROP_SIZE,
    CROPS,
    GOLDEN,
    box_numbers,
    crops_of_torchvision,
)

RARE = 1e-5


def crops_of_ours(keywords, count):
    recipe = Recipe(**keywords)
    boxes = np.empty((count, 4), np.int64)
    # A crop that is not resized is a window of the whole image.
    window = "left", "top", "out_width", "out_height"
    names = ("x", "y", "width", "height") if recipe.random_resized_crop else window
    for i in range(count):
        (step, *_), _ = drawn_steps(recipe, i % 3, i // 3 % 7, i // 21, *CROP_SIZE)
        boxes[i] = [step[name] for name in names]
    return boxes


def compare(boxes, theirs):
    """Compare counts between stored edges, by chi-square."""
    for mine, told in zip(box_numbers(boxes), theirs["numbers"], strict=True):
        edges, counts = told["edges"], told["counts"]
        if len(edges) == 1:
            assert set(mine) == set(edges)
            continue
        places = np.searchsorted(edges, mine, side="right")
        found = np.bincount(places, minlength=len(counts))
        some = (found > 0) | (np.array(counts) > 0)
        table = [found[some], np.array(counts)[some]]
        assert stats.chi2_contingency(table).pvalue > RARE


@pytest.mark.parametrize("text", CROPS)
def test_crops_are_drawn_as_torchvision_draws_them(text):
    compare(crops_of_ours(CROPS[text], 100_000), json.loads(GOLDEN.read_text())[text])


def test_another_range_is_told_apart():
    text, *_ = CROPS
    keywords = {**CROPS[text], "min_random_area": 0.1}
    with pytest.raises(AssertionError):
        compare(crops_of_ours(keywords, 100_000), json.loads(GOLDEN.read_text())[text])


@pytest.mark.skipif(not importlib.util.find_spec("torchvision"), reason="torchvision is missing")
@pytest.mark.parametrize("text", CROPS)
def test_torchvision_draws_what_is_stored(text):
    compare(crops_of_torchvision(text, 20_000), json.loads(GOLDEN.read_text())[text])


def test_where_no_area_fits_the_crop_is_the_largest_that_is_allowed():
    keywords = {
        "data_shape": (3, 9, 9), "random_resized_crop": True, "min_random_area": 0.9,
        "min_aspect_ratio": 3 / 4, "max_aspect_ratio": 4 / 3,
    }  # fmt: skip
    recipe = Recipe(**keywords, log_aspect_ratio=True)
    steps = [drawn_steps(recipe, 0, 0, i, 1000, 1000)[0][0] for i in range(1000)]
    assert min(step["width"] * step["height"] for step in steps) > 850_000
    assert any(step["width"] == step["height"] == 1000 for step in steps)
    # MXNet's own crop is one of the size of the result then.
    theirs = Recipe(**keywords)
    steps = [drawn_steps(theirs, 0, 0, i, 1000, 1000)[0][0] for i in range(1000)]
    assert any(step["target_width"] == 1000 and step["out_width"] == 9 for step in steps)


def test_a_whole_square_is_the_largest_at_the_centre():
    recipe = Recipe(
        data_shape=(3, 9, 9), random_resized_crop=True, log_aspect_ratio=True,
        min_aspect_ratio=1, max_aspect_ratio=1,
    )  # fmt: skip
    ((step,), _) = drawn_steps(recipe, 0, 0, 0, 100, 60)
    assert [step[name] for name in ("x", "y", "width", "height")] == [20, 0, 60, 60]
