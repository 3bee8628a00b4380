"""Recipes by name: complete, comparable, and the same after JSON."""

import json

import numpy as np
import pytest

from iterators.images.augment.named_recipes import NAMED_RECIPES, NamedRecipe, expanded
from iterators.images.augment.recipe import Recipe
from iterators.providers.mix_batches import MixOptions

NAMES = [recipe.name for recipe in NAMED_RECIPES]


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_made_of_keywords_that_exist_and_says_what_it_reproduces(name):
    recipe = NamedRecipe.named(name)
    keywords = dict(recipe.keywords)
    views = keywords.pop("views", ({},))
    for view in views:
        made = Recipe(**keywords | view)
        assert made.changed().keys() >= (keywords | view).keys() - {"data_shape"}
    assert len(recipe.reproduces) > 30
    if recipe.mixing:
        MixOptions(provider=None, **recipe.mixing)
    assert all(f"    {key}=" in str(recipe) for key in (*recipe.keywords, *recipe.mixing))


@pytest.mark.parametrize("name", NAMES)
def test_json_keeps_everything(name):
    recipe = NamedRecipe.named(name)
    text = recipe.to_json()
    assert json.loads(text)["name"] == name
    assert NamedRecipe.of(text) == recipe
    assert NamedRecipe.of(text).to_json() == text
    assert recipe != NamedRecipe(name, recipe.reproduces, {**recipe.keywords, "pad": 1})


def test_names_are_different_and_in_the_page(request):
    page = (request.config.rootpath / "docs" / "how-to" / "recipes.md").read_text()
    assert len(set(NAMES)) == len(NAMES)
    assert all(f'`"{name}"`' in page for name in NAMES)


def test_keywords_beside_a_recipe_win():
    found = expanded({"recipe": {"pad": 1, "resize": 9}, "pad": 2, "seed": 3})
    assert (found["pad"], found["resize"], found["seed"]) == (2, 9, 3)
    assert expanded({"pad": 2}) == {"pad": 2}


NORMALISED = {"mean_r": 3.0, "std_b": 2.0, "scale": 0.5, "resize": 9}


@pytest.mark.parametrize("dtype", ["uint8", np.uint8])
def test_uint8_pixels_leave_normalisation_out(dtype):
    recipe = {**NORMALISED, "views": ({"mean_r": 4.0, "pad": 2}, {})}
    asked = {"recipe": recipe, "dtype": dtype}
    found = expanded(asked)
    assert (found.pop("recipe").keywords, found) == (
        recipe, {"resize": 9, "dtype": dtype, "views": ({"pad": 2}, {})},
    )  # fmt: skip
    assert expanded({"recipe": NORMALISED}, "uint8").keys() == {"recipe", "resize"}
    assert expanded({"recipe": NORMALISED, "dtype": "float32"}, "uint8").keys() >= NORMALISED.keys()


@pytest.mark.parametrize("more", [{}, {"dtype": "int8"}, {"normalise_on": "device"}])
def test_other_pixels_are_normalised(more):
    asked = {"recipe": NORMALISED, "dtype": "uint8", **more} if more else {"recipe": NORMALISED}
    assert expanded(asked).keys() >= NORMALISED.keys()
    own = expanded({"recipe": NORMALISED, "dtype": "uint8", "scale": 2.0})
    assert (own["scale"], "mean_r" in own) == (2.0, False)


def test_what_json_has_no_value_for_is_named():
    with pytest.raises(TypeError, match="recipe has array.*ndarray, which a saved state"):
        NamedRecipe("mine", keywords={"mean_r": np.zeros(3)}).to_json()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        ("timm/deit", ValueError, "did you mean 'timm/deit-s'"),
        ("qqqq", ValueError, "expected one of torchvision/resnet50-v1"),
        ('{"title": 1}', ValueError, "not a recipe in JSON"),
        ("{", ValueError, "not a recipe in JSON"),
        ('{"name": ' + "[" * 100_000, ValueError, "not a recipe in JSON"),
        ('{"name": "mine", "keywords": [1]}', ValueError, r"keywords=\(1,\) is not a part"),
        ('{"name": "mine", "tail": ["print"]}', ValueError, "tail=.* is not a part"),
        (3, TypeError, "expected a name"),
    ],
)
def test_what_is_no_recipe_is_refused(value, error, text):
    with pytest.raises(error, match=text):
        NamedRecipe.of(value)
