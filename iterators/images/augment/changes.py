"""The changes of pixels that a recipe consists of, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .augmenter import Augmenter
from .det_recipe import DetRecipe
from .pixel_changes import ColourJitter, DetColourJitter, FaceChange, PixelChange
from .program import PolicyChange, StepChange
from .recipe import Recipe

Changes = tuple[tuple[Any, Callable[[Any], Any]], ...]

#: Changes of every recipe that are not MXNet's, each with a test for it.
_COMMON: Changes = (
    (PolicyChange, lambda recipe: recipe.auto_augment is not None),
    (
        lambda recipe: StepChange(recipe, recipe.photometric_steps()),
        lambda recipe: recipe.photometric_steps(),
    ),
    (lambda recipe: StepChange(recipe, recipe.steps), lambda recipe: recipe.steps),
)
_RECIPE_CHANGES: Changes = ((FaceChange, FaceChange.is_needed), *_COMMON)

#: The colours of an `Augmenter` change when it is normalised: see `row_writer`.
CHANGES: dict[type, Changes] = {
    Recipe: ((ColourJitter, lambda recipe: True), *_RECIPE_CHANGES),
    Augmenter: _RECIPE_CHANGES,
    DetRecipe: ((DetColourJitter, lambda recipe: True), *_COMMON),
}


def changes_of(recipe: Recipe | DetRecipe) -> tuple[PixelChange, ...]:
    """Make new changes for a recipe: each serves one renderer."""
    kind = next(kind for kind in type(recipe).__mro__ if kind in CHANGES)
    return tuple(change(recipe) for change, is_needed in CHANGES[kind] if is_needed(recipe))
