"""Engines of an image provider: the image stage, or one that runs in Python or on a device.

Whoever makes the images, records on servers are fetched ahead of it.  Entry points and mean images
are what engines need besides, and leave in files.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from recordio.errors import RecordIOError
from recordio.formats.jpeg import MISSING, jpeg
from recordio.formats.jpeg.entry_store import EntryStore
from recordio.packs.entry_points import keep_entry_points, load_entry_points

from ..core.order import BatchPlan, SequentialOrder
from ..images.augment.mean_image import read_mean_image, write_mean_image
from ..images.device.cuda import CudaMachine
from ..images.fields.image_fields import ImageFields
from ..images.plan import RenderPlan
from ..images.stage import Stage
from ..images.stored_bits import CutBits, cuts_of
from ..images.view_plans import PackPlan
from ..images.workers import PlanGroup
from .auto_threads import adapting, thread_count
from .device_images import DeviceImages, decoded_there
from .engine import Engine
from .fetched_ahead import fetched_ahead
from .image_job import ImageJob
from .image_options import ImageRecordOptions
from .image_sources import ImageSource
from .processor_images import ProcessorImages
from .python_images import PythonImages

#: Images that a mean image is made from at a time.
MEAN_BATCH = 64

logger: logging.Logger = logging.getLogger("iterators")


@dataclass(frozen=True)
class ImageEngines:
    """Makes engines over the same images: ``make(batch_size, depth)``."""

    job: ImageJob
    source: ImageSource
    plans: list[PackPlan]
    caches: list[Any]
    #: Of the labels of an image.
    label_shape: tuple[int, ...]
    fields: ImageFields
    entries: EntryStore | None = None
    #: Of the arrays of images in a batch.
    names: Sequence[str] = ()
    cut: CutBits = field(default_factory=CutBits)

    def __call__(self, batch_size: int, depth: int) -> Engine:
        """Make one."""
        job, source, options = self.job, self.source, self.job.options
        plans = [pack.plan for pack in self.plans]
        sizes: dict[str, Any] = {
            "batch_size": batch_size,
            "threads": thread_count(options.preprocess_threads),
            "depth": min(depth, options.prefetch_buffer),
        }
        on_cut = partial(self.cut, self._cuts(plans))
        engine: Engine
        if decoded_there(options):
            machine = CudaMachine(job.placement.device)
            engine = DeviceImages(source, plans, machine, job.normalise, on_cut=on_cut, **sizes)
        elif job.rule is not None:
            del sizes["batch_size"]  # a batch has a slot for each of its images
            engine = ProcessorImages(
                source, plans, job.rule, self.fields, self.names, dtype=job.dtype, **sizes
            )
        elif job.change is None:
            parts = zip(plans, self.caches, source.firsts.tolist(), strict=True)
            groups = (PlanGroup(*part) for part in parts)
            engine = Stage(
                source.bytes_source(),
                *groups,
                strict=options.strict,
                fields=self.fields.plans(plans[0]),
                entries=self.entries,
                allocate=job.placement.allocate,
                on_cut=on_cut,
                **sizes,
            )
        else:
            changes = [job.change(plan, self.label_shape) for plan in plans]
            engine = PythonImages(
                source,
                plans[0],
                changes,
                self.label_shape,
                key=job.key,
                allocate=job.placement.allocate,
                on_cut=on_cut,
                **sizes,
            )
        engine = adapting(engine, options.preprocess_threads)
        return fetched_ahead(engine, source, batch_size, options)

    def _cuts(self, plans: list[RenderPlan]) -> list[str]:
        """Name what cuts images to 8 bits."""
        options = self.job.options
        if decoded_there(options):
            return ['decode_on="device"']
        if options.normalise_on == "device":
            return ['normalise_on="device"']
        return [*chain.from_iterable(plan.cuts for plan in plans), *["cache"] * any(self.caches)]


class OpenEntries:
    """Entry points of all records of a provider, and the packs beside which they are kept."""

    def __init__(self, source: Any, kept: bool) -> None:
        self.store: EntryStore = EntryStore(len(source))
        self._packs = list(zip(source.files, source.starts.tolist(), strict=True)) if kept else []
        self._process = os.getpid()
        for pack, first in self._packs:
            load_entry_points(pack, self.store, first)

    def close(self) -> None:
        """Write what is new; a forked child leaves that to its parent.  Idempotent."""
        packs, self._packs = self._packs, []
        for pack, first in packs if self._process == os.getpid() else ():
            keep_entry_points(pack, self.store, first)


def open_entries(source: Any, options: Any) -> OpenEntries | None:
    """Open what `entry_points` asks for; None for nothing."""
    entry_points = options.entry_points
    if not entry_points:
        return None
    if not jpeg.available():
        raise RecordIOError(f"entry_points={entry_points!r}: {MISSING}")
    return OpenEntries(source, entry_points == "pack")


def mean_image_of(source: ImageSource, job: ImageJob) -> np.ndarray | None:
    """Read the mean image, or make it from the images of all parts, resized and not normalised.

    Processes that start together and share the file make it once.
    """
    options, recipe = job.options, job.recipe
    path = options.mean_img
    if not path or recipe.mean_rgb_overrides_file:
        return None
    if not os.path.exists(path):
        from filelock import FileLock  # only here, and for files on servers

        guard = f"{os.fspath(path)}.lock"
        with FileLock(guard, thread_local=False):
            if not os.path.exists(path):  # nobody else has made it meanwhile
                own: dict[str, Any] = {"label_width": 0, **options.limits}
                if options.cache or cuts_of(recipe, str(options.dtype)):
                    own["dtype"] = "uint8"  # as images are delivered, and a quarter of the bytes
                plan = job.plan_class(recipe.plain(), **own)
                write_mean_image(path, _average(source, plan, options))
        with contextlib.suppress(OSError):  # somebody who still waits may keep it
            os.remove(guard)
    return read_mean_image(path)


def _average(source: ImageSource, plan: RenderPlan, options: ImageRecordOptions) -> np.ndarray:
    """Average all images, each once and in the order of the file: every rank finds the same."""
    logger.info("%s does not exist: averaging %d images", options.mean_img, len(source))
    batches = BatchPlan(SequentialOrder(0, len(source)), MEAN_BATCH, "pad")
    made = Stage(
        source.bytes_source(),
        PlanGroup(plan),
        batch_size=MEAN_BATCH,
        threads=thread_count(options.preprocess_threads),
        depth=2,
        strict=options.strict,
    )
    stage = fetched_ahead(made, source, MEAN_BATCH, options)
    total = np.zeros(plan.recipe.data_shape, np.float64)
    good = len(source)
    try:
        for number in range(len(batches)):
            rows = batches.rows(0, number)[0]
            stage.submit(rows, 0, np.zeros(len(rows), np.int64))
            data, _, _, failures = stage.collect()
            for slot, error in failures:
                if options.on_error == "raise" or not isinstance(error, RecordIOError):
                    raise error
                data[slot] = 0
            good -= len(failures)
            total += data.sum(0, dtype=np.float64)
    finally:
        stage.close()
    if not good:
        raise ValueError(
            f"mean_img: {options.mean_img} does not exist, and {source.name} has no image to make "
            "it from"
        )
    return total / good
