"""The operations of `auto_augment` are drawn as torchvision and timm draw them.

Compared with what is stored of 100,000 images each, and with the libraries where they are
installed.
"""

import importlib.util
import json

import numpy as np
import pytest
from scipy import stats

from faces.draws import operations_of
from iterators.images.augment.program import PolicyChange
from iterators.images.augment.recipe import Recipe

from .library_draws import GOLDEN, SIZE, TIMM, TORCHVISION, of_timm, of_torchvision, statistics

RARE = 1e-5
DRAWS = 20_000
CONFIGURATIONS = {**TORCHVISION, **{text: {"auto_augment": text} for text in TIMM}}


def ours(keywords, count=DRAWS):
    change = PolicyChange(Recipe(data_shape=(3, SIZE[1], SIZE[0]), **keywords))
    return [
        [(name, value) for name, value, _ in operations_of(change, i % 3, i % 7, i)[0]]
        for i in range(count)
    ]


def same_counts(first, second):
    """Whether two tables of counts come from one distribution."""
    first, second = dict(map(tuple, first)), dict(map(tuple, second))
    assert first.keys() == second.keys()
    table = np.array([[first[key], second[key]] for key in first])
    if len(table) > 1:
        assert stats.chi2_contingency(table).pvalue > RARE


def same_values(name, mine, theirs):
    if "quantiles" in theirs:
        numbers, quantiles = np.array(mine["numbers"]), np.array(theirs["quantiles"])
        shares = np.linspace(0, 1, len(quantiles))
        if len(np.unique(quantiles)) == len(quantiles):
            test = stats.kstest(np.interp(numbers, quantiles, shares), "uniform")
            assert test.pvalue > RARE or test.statistic < 0.012, name  # between two quantiles
        # A value that comes often, such as the limit of the noise, has many quantiles.
        for share in (0.02, 0.25, 0.5, 0.75, 0.98):
            wanted = quantiles[round(share * (len(quantiles) - 1))]
            below, above = (numbers < wanted - 1e-2).mean(), (numbers <= wanted + 1e-2).mean()
            room = 5 / len(numbers) ** 0.5 / 2 + 0.012
            assert below - room < share < above + room, (name, share)
        return
    counted = dict(map(tuple, theirs["values"]))
    keys = np.array(sorted(counted))
    distances = np.abs(np.array(mine["numbers"])[:, None] - keys)
    # Noise may give a value that is hardly ever seen.
    assert (distances.min(1) > 2e-3).mean() < 2e-3, name
    places = distances.argmin(1)
    found = np.bincount(places, minlength=len(keys))
    table = np.array([found, [counted[key] for key in keys]]).T
    table = table[table.sum(1) > 20]
    if len(table) > 1:
        assert stats.chi2_contingency(table).pvalue > RARE, (name, table)


def compare(images, theirs):
    mine = statistics(images)
    same_counts(mine["lengths"], theirs["lengths"])
    same_counts(mine["first"], theirs["first"])
    assert mine["operations"].keys() == theirs["operations"].keys()
    same_counts(
        [(name, told["count"]) for name, told in mine["operations"].items()],
        [(name, told["count"]) for name, told in theirs["operations"].items()],
    )
    for name, told in theirs["operations"].items():
        numbers = [value for image in images for key, value in image if key == name]
        same_values(name, {"numbers": numbers}, told)


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_operations_are_drawn_as_the_libraries_draw_them(text):
    compare(ours(CONFIGURATIONS[text]), json.loads(GOLDEN.read_text())[text])


@pytest.mark.skipif(not importlib.util.find_spec("torchvision"), reason="torchvision is missing")
@pytest.mark.parametrize("text", TORCHVISION)
def test_torchvision_draws_what_is_stored(text):
    compare(of_torchvision(text, DRAWS), json.loads(GOLDEN.read_text())[text])


@pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is missing")
@pytest.mark.parametrize("text", TIMM)
def test_timm_draws_what_is_stored(text):
    compare(of_timm(text, DRAWS), json.loads(GOLDEN.read_text())[text])


@pytest.mark.parametrize(("step", "bins"), [(4, 10), (7, 10), (3, 8), (9, 31)])
def test_a_strength_between_two_of_31_moves_by_its_own_pixels(step, bins):
    keywords = {"auto_augment": "randaugment", "num_ops": 1, "magnitude": step * 30 / (bins - 1)}
    images = ours(keywords, 1000)
    moves = {abs(value) for image in images for name, value in image if name == "translate_x"}
    assert moves == {int(150 / 331 * SIZE[0] * step / (bins - 1))}
