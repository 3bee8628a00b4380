"""Fields of the samples of an image provider: opened, planned, and described as arrays of a batch.

The image stage makes them; here it is said where they lie, and what a batch has of each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.batch import DataDesc
from ..core.field_specs import FieldKind, Image, Mask
from ..images.fields.field import FieldPlan
from ..images.fields.pixel_fields import ImagePlan, ValuePlan
from ..images.plan import RenderPlan
from .image_options import ImageRecordOptions
from .image_sources import ImageSource

__all__ = ["ImageFields", "field_names"]


def field_names(specs: Mapping[str, FieldKind], views: int = 0) -> list[tuple[str, str, int]]:
    """Name the fields of a batch: their names there, those of their packs, and their views."""
    return [
        (f"{name}{view}" if views else name, name, view)
        for name in specs
        for view in range(max(views, 1))
    ]


class ImageFields:
    """The fields of the images of a source, as `options` ask for them."""

    def __init__(self, options: ImageRecordOptions, source: ImageSource, views: int) -> None:
        self.specs: Mapping[str, FieldKind] = options.fields or {}
        self._names = field_names(self.specs, views)
        self._options, self._views = options, max(views, 1)
        taken = {options.data_name, options.label_name, "features", "targets"}
        for name, *_ in self._names:
            if name in taken:
                raise ValueError(f"fields: {name!r} is the name of the images or labels")
        self._sources = {name: source.field(name) for name in self.specs}

    def __bool__(self) -> bool:
        return bool(self.specs)

    def plans(self, image: RenderPlan) -> list[FieldPlan]:
        """Plan the fields of images that `image` describes."""
        return [self._plan(image, *names) for names in self._names]

    def _plan(self, image: RenderPlan, name: str, field: str, view: int) -> FieldPlan:
        spec: Any = self.specs[field]
        source = self._sources[field]
        own = (image, *image.views)[view]
        if isinstance(spec, Mask) or spec.dtype == "uint16":
            size = own.recipe.data_shape[1:]
            return ValuePlan(name, spec, source, view, size, isinstance(spec, Mask))
        return ImagePlan(name, spec, source, view, own)

    def described(self, image: RenderPlan, batch_size: int, dtype: Any) -> list[DataDesc]:
        """Describe the arrays of a batch; `dtype` is that of images normalised on a device."""
        described = []
        for plan in self.plans(image):
            own = dtype if dtype and _is_like_the_image(plan.spec) else plan.dtype
            described.append(DataDesc(plan.name, plan.shape(batch_size), own, plan.layout))
        return described

    def finish(self, data: Sequence[Any], normalise: Any) -> list[Any]:
        """Normalise the images of a batch on their device, and the fields that are like them."""
        alike = [True] * self._views + [
            _is_like_the_image(self.specs[field]) for _, field, _ in self._names
        ]
        return [normalise(one) if like else one for one, like in zip(data, alike, strict=True)]


def _is_like_the_image(spec: FieldKind) -> bool:
    """Return whether a field is normalised as the image is."""
    return isinstance(spec, Image) and spec.dtype is None
