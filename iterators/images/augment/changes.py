"""Which changes of pixels a kind of recipe asks for, in the order in which they are made."""

from __future__ import annotations

from typing import Any

from .augmenter import Augmenter
from .det_jitter import DetColourJitter
from .det_recipe import DetRecipe
from .jitter import ColourJitter
from .pixel_change import PixelChange
from .recipe import Recipe

__all__ = ["changes_of"]

#: The colours of an `Augmenter` change when it is normalised: see `linear_render`.
CHANGES: dict[type, tuple[Any, ...]] = {
    Recipe: (ColourJitter,),
    Augmenter: (),
    DetRecipe: (DetColourJitter,),
}


def changes_of(recipe: Recipe | DetRecipe) -> tuple[PixelChange, ...]:
    """New changes for a recipe: each serves one renderer.

    Examples
    --------
    >>> len(changes_of(Recipe(data_shape=(3, 8, 8))))
    1
    """
    kind = next(kind for kind in type(recipe).__mro__ if kind in CHANGES)
    return tuple(change(recipe) for change in CHANGES[kind])
