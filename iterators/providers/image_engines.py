"""The engine of an image provider: the image stage, or what makes images in Python or on a device.

Whoever makes the images, records on servers are fetched ahead of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from recordio.formats.jpeg.entry_store import EntryStore

from ..core.device import Placement
from ..images.fields.image_fields import ImageFields
from ..images.plan import RenderPlan
from ..images.sections import Section
from ..images.stage import Stage
from ..images.stored_bits import CutBits
from .auto_threads import adapting, thread_count
from .device_images import DeviceImages, decoded_there
from .engine import Engine
from .fetched_ahead import fetched_ahead
from .image_options import ImageRecordOptions
from .image_sources import ImageSource
from .python_images import ImageChange, PythonImages

__all__ = ["ImageEngines"]


@dataclass(frozen=True)
class ImageEngines:
    """Makes engines over the same images: ``make(batch_size, depth)``."""

    source: ImageSource
    plans: list[partial[RenderPlan]]
    caches: list[Any]
    options: ImageRecordOptions
    placement: Placement
    key: int
    #: ``change(plan)`` returns what is called for every image of a pack, if that is done in Python.
    change: Callable[[RenderPlan], ImageChange] | None
    #: Of the labels of an image that come of it.
    label_shape: tuple[int, ...]
    fields: ImageFields
    entries: EntryStore | None = None
    cut: CutBits = field(default_factory=CutBits)

    def __call__(self, batch_size: int, depth: int) -> Engine:
        """Make one."""
        source, options = self.source, self.options
        plans = [make() for make in self.plans]
        sizes: dict[str, Any] = {
            "batch_size": batch_size,
            "threads": thread_count(options.preprocess_threads),
            "depth": min(depth, options.prefetch_buffer),
        }
        on_cut = partial(self.cut, self._cuts(plans))
        engine: Engine
        if decoded_there(options):
            del sizes["threads"]  # the decoder needs one
            device = self.placement.device
            engine = DeviceImages(source, plans, device, on_cut=on_cut, **sizes)
        elif self.change is None:
            parts = zip(plans, self.caches, source.firsts.tolist(), strict=True)
            sections = (Section(*part) for part in parts)
            engine = Stage(
                source.bytes_source(),
                *sections,
                strict=options.strict,
                fields=self.fields.plans(plans[0]),
                entries=self.entries,
                allocate=self.placement.allocate,
                on_cut=on_cut,
                **sizes,
            )
        else:
            changes = [self.change(plan) for plan in plans]
            engine = PythonImages(
                source,
                plans[0],
                changes,
                self.label_shape,
                key=self.key,
                allocate=self.placement.allocate,
                on_cut=on_cut,
                **sizes,
            )
        if not decoded_there(options):
            engine = adapting(engine, options.preprocess_threads)
        return fetched_ahead(engine, source, batch_size, options)

    def _cuts(self, plans: list[RenderPlan]) -> list[str]:
        """Name what cuts images to 8 bits."""
        options = self.options
        if decoded_there(options):
            return ['decode_on="device"']
        if getattr(options, "normalise_on", "host") == "device":
            return ['normalise_on="device"']
        return [*chain.from_iterable(plan.cuts for plan in plans), *["cache"] * any(self.caches)]
