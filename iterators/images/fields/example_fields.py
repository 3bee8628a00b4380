"""Fields of single images, made one at a time beside the image, for data sets.

The caller's thread makes them, and gets the values that the image stage would have made.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..augment.recipe import Recipe
from ..plan import RenderPlan
from ..render import Renderer
from ..workers import FieldSet, FieldWorkers
from .image_fields import ImageFields


class ExampleFields:
    """Makes the fields of the images that one renderer makes; serves one thread."""

    def __init__(self, fields: ImageFields, renderer: Renderer) -> None:
        self._fields, self._renderer = fields, renderer
        self._plans = fields.plans(renderer.plan)
        self._workers = FieldWorkers(FieldSet(self._plans, batch_size=1, depth=0), [renderer])

    def of(self, number: int, epoch: int = 0, size: tuple[int, int] | None = None) -> list[Any]:
        """Return the fields of the image that was made last, record `number` of its source.

        `size` is its height and width, if it has another one than the plan says.
        """
        arrays: list[Any] = [
            np.empty(plan.shape(1, size), plan.dtype) if plan.is_array else [None]
            for plan in self._plans
        ]
        self._workers.sample(self._renderer, arrays, number, epoch)
        return self._fields.example(self._plans, arrays)


class StoredFields:
    """Makes the fields of images that stay as they are; any number of threads may share it.

    An image has `channels`; further images have the layout and the dtype of the image.
    """

    def __init__(self, fields: ImageFields, channels: int, orient: bool, **form: Any) -> None:
        self._recipe = Recipe(data_shape=(channels, 1, 1), orient=orient)
        self._fields, self._form = fields, form
        self._own = threading.local()

    def of(self, number: int, height: int, width: int) -> list[Any]:
        """Return the fields of an image of that size, record `number` of its source."""
        if not hasattr(self._own, "made"):
            self._own.renderer = Renderer(RenderPlan(self._recipe, label_width=0, **self._form))
            self._own.made = ExampleFields(self._fields, self._own.renderer)
        self._own.renderer.place(width, height)
        made: ExampleFields = self._own.made
        return made.of(number, size=(height, width))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_own"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._own = threading.local()
