"""The changes of pixels that a recipe consists of, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from .augmenter import Augmenter
from .det_jitter import DetColourJitter
from .det_recipe import DetRecipe
from .face_changes import FaceChange
from .jitter import ColourJitter
from .pixel_change import PixelChange
from .policy import PolicyChange
from .recipe import Recipe
from .step_program import StepChange

__all__ = ["changes_of"]

Changes = tuple[tuple[Any, Callable[[Any], Any]], ...]


def photometric_steps(recipe: Recipe | DetRecipe) -> tuple[dict[str, Any], ...]:
    """Return the program that the photometric keywords of a recipe are.

    Their random numbers come from other words than those of `steps`: ((block, word) of the chance,
    (block, word) of the value, first block of the order).
    """
    solarize = {"op": "solarize", "threshold": recipe.solarize_threshold}
    blur = {"op": "blur", "sigma": recipe.blur_sigma}
    names = ("brightness", "contrast", "saturation", "hue")
    ranges = cast(Iterable[Any], recipe.color_jitter)
    jitter = {"op": "color_jitter", **dict(zip(names, ranges, strict=False))}
    three = ({"op": "grayscale"}, solarize, {**blur, "words": ((0, 0), (3, 1), 0)})
    return (
        *([{"op": "choice", "of": three, "words": ((3, 2), (0, 0), 0)}] * recipe.three_augment),
        *_likely(jitter, recipe.color_jitter_prob if recipe.color_jitter else 0, 0, (1, 0)),
        *_likely({"op": "grayscale"}, recipe.random_grayscale, 1),
        *_likely(blur, recipe.gaussian_blur, 2, (3, 0)),
        *_likely(solarize, recipe.solarize_p, 3),
    )


def _likely(
    step: dict[str, Any], chance: float, word: int, value: tuple[int, int] = (0, 0)
) -> tuple[dict[str, Any], ...]:
    return ({**step, "p": chance, "words": ((0, word), value, 2)},) if chance else ()


#: Changes of every recipe that are not MXNet's, each with a test for it.
_COMMON: Changes = (
    (PolicyChange, lambda recipe: recipe.auto_augment is not None),
    (lambda recipe: StepChange(recipe, photometric_steps(recipe)), photometric_steps),
    (lambda recipe: StepChange(recipe, recipe.steps), lambda recipe: recipe.steps),
)
_RECIPE_CHANGES: Changes = ((FaceChange, FaceChange.wanted), *_COMMON)

#: The colours of an `Augmenter` change when it is normalised: see `linear_render`.
CHANGES: dict[type, Changes] = {
    Recipe: ((ColourJitter, lambda recipe: True), *_RECIPE_CHANGES),
    Augmenter: _RECIPE_CHANGES,
    DetRecipe: ((DetColourJitter, lambda recipe: True), *_COMMON),
}


def changes_of(recipe: Recipe | DetRecipe) -> tuple[PixelChange, ...]:
    """Make new changes for a recipe: each serves one renderer."""
    kind = next(kind for kind in type(recipe).__mro__ if kind in CHANGES)
    return tuple(change(recipe) for change, wanted in CHANGES[kind] if wanted(recipe))
