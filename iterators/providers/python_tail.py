"""Functions in Python that finish the images of a batch after all other steps.

A recipe made of another library's pipeline has them.  They run one image after the other, in the
thread that takes the batch.  What they draw from the generators of the process can be repeated
where the loop gives every image a seed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.extras import need

from ..core.batch import DataDesc
from ..core.dtypes import array_over, tensor_over
from ..core.example_seeds import kept_generators, seed_generators, seeds_at_hand
from .image_options import ImageRecordOptions

if TYPE_CHECKING:
    from ..images.augment.named_recipes import NamedRecipe

__all__ = ["PythonTail"]

#: Layout in which each kind of images is given to the first function.
_LAYOUTS = {"tensor": "NCHW", "image": "NHWC", "array": "NHWC"}


class PythonTail:
    """Calls the functions of a recipe with each image of a batch."""

    def __init__(self, named: NamedRecipe, options: ImageRecordOptions, views: bool) -> None:
        layout = _LAYOUTS[named.tail_of]
        for name, wrong in (
            ("views", views),
            ("data_specs", options.data_specs is not None),
            ("normalise_on", options.normalise_on != "host"),
            ("layout", options.layout != layout),
        ):
            if wrong:
                raise ValueError(
                    f"the recipe calls {', '.join(named.tail_names)} in Python, which get one "
                    f"image each, of {layout}: drop {name}, or the functions"
                )
        self._calls, self.names = named.tail, ", ".join(named.tail_names)
        self._begin = {"tensor": tensor_over, "image": _picture, "array": _same}[named.tail_of]
        self._named = named.tail_of == "array"
        self._desc: DataDesc | None = None

    def described(self, desc: DataDesc) -> DataDesc:
        """Describe what becomes of a batch, by what becomes of a black image."""
        with kept_generators():
            found, is_tensor = self._one(np.zeros(desc.shape[1:], desc.dtype))
        if found.ndim != 3:
            raise ValueError(f"{self.names}: returned an array of shape {found.shape}, no image")
        layout = "NCHW" if is_tensor else "NHWC"
        self._desc = DataDesc(desc.name, (desc.shape[0], *found.shape), found.dtype, layout)
        return self._desc

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the finished batch."""
        assert self._desc is not None
        finished = np.empty((len(images), *self._desc.shape[1:]), self._desc.dtype)
        seeds = seeds_at_hand()
        with contextlib.nullcontext() if seeds is None else kept_generators():
            self._finish(images, finished, seeds)
        return finished

    def _finish(
        self, images: np.ndarray, finished: np.ndarray, seeds: Sequence[int] | None
    ) -> None:
        """Finish the images of a batch, each with its seed; those that fill it have none."""
        for slot, image in enumerate(images):
            if seeds is not None and slot < len(seeds):
                seed_generators(seeds[slot])
            found, _ = self._one(image)
            if found.shape != finished.shape[1:] or found.dtype != finished.dtype:
                raise ValueError(
                    f"{self.names}: returned {found.dtype} of shape {found.shape} for an image, "
                    f"and {finished.dtype} of shape {finished.shape[1:]} for a black one: a batch "
                    "needs one shape and type"
                )
            finished[slot] = found

    def _one(self, image: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return a finished image, and whether it came as a tensor."""
        found: Any = self._begin(image)
        for call in self._calls:
            found = call(image=found)["image"] if self._named else call(found)
        is_tensor = hasattr(found, "detach")
        return (array_over(found) if is_tensor else np.asarray(found)), is_tensor


def _same(image: np.ndarray) -> np.ndarray:
    return image


def _picture(image: np.ndarray) -> Any:
    """Return the image as Pillow's, which is what torchvision's transforms get."""
    make: Callable[[Any], Any] = need("PIL.Image", "functions that take images of Pillow").fromarray
    return make(image[..., 0] if image.shape[2] == 1 else image)
