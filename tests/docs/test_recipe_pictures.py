"""The pictures of operations and recipes beside Pillow's."""

import sys
from pathlib import Path

import numpy as np
import pytest

from iterators.images.augment.named_recipes import NAMED_RECIPES
from recordio.kernels.operations import NAMES

sys.path.append(str(Path(__file__).parents[2] / "docs"))
import make_recipe_pictures as pictures  # noqa: E402


def test_every_operation_is_shown_and_is_pillows():
    assert [*pictures.STRENGTHS] == [name for name in NAMES if name != "identity"]
    small = np.ascontiguousarray(pictures.photograph()[100:160, 150:210])
    for name, method in pictures.operations():
        ours, pillows = pictures.both(small, name, method)
        difference = np.abs(np.array(ours, int) - pillows).max()
        assert difference <= (method in ("bilinear", "bicubic")), (name, method)


@pytest.mark.parametrize("named", NAMED_RECIPES, ids=lambda named: named.name)
def test_recipes_do_what_pillow_makes_of_the_same_draws(named):
    ours, pillows = pictures.samples(named, pictures.photograph())
    assert len(ours) == pictures.SAMPLES
    # Turned with bilinear or bicubic, and stretched afterwards, a level can become a few.
    assert np.abs(np.array(ours, int) - pillows).max() <= 3
    assert "level" in pictures.largest(ours, pillows) or np.array_equal(ours, pillows)


def test_a_page_shows_all_of_them(tmp_path):
    pictures.main(tmp_path)
    text = (tmp_path / "operations.md").read_text() + (tmp_path / "recipes.md").read_text()
    drawn = {path.name for path in tmp_path.glob("*.jpg")}
    assert len(drawn) == len([*pictures.operations()]) + len(NAMED_RECIPES)
    assert all(f"]({name})" in text for name in drawn)
