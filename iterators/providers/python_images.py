"""Images that functions in Python change, one at a time: in place of the image stage, or behind it.

`PythonImages` is an engine: it reads and decodes records, calls what it is given for each, and puts
the results into batches, in a few threads.  `PythonTail` calls functions for the images of a batch
that is made.  Neither knows what the functions do.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.errors import LabelError, RecordIOError
from recordio.extras import need
from recordio.formats.decode import decode_image
from recordio.header import IRHeader
from recordio.packs.labels import LabelChange

from ..core.batch import DataDesc
from ..core.dtypes import array_over, tensor_over
from ..core.example_random import drawing_for
from ..core.example_seeds import kept_generators, seed_generators, seeds_at_hand
from ..core.layout import plan as layout_plan
from ..core.pool import BufferPool
from ..core.prefetch import Prefetcher
from ..images.plan import RenderPlan
from ..images.stored_bits import has_more_bits
from .image_options import ImageRecordOptions
from .image_sources import ImageSource

if TYPE_CHECKING:
    from ..images.augment.named_recipes import NamedRecipe

#: Layout in which each kind of images is given to the first function behind the image stage.
_LAYOUTS = {"tensor": "NCHW", "image": "NHWC", "array": "NHWC"}

#: ``change(image, header)`` returns the image in its final size and its labels.
ImageChange = Callable[[np.ndarray, IRHeader], tuple[Any, Any]]


@dataclass(frozen=True)
class ImageSteps:
    """Functions on images one after the other, and labels that they do not touch."""

    steps: Sequence[Callable[[Any], Any]]
    label_width: int
    listed: tuple[Any, ...] | None = None
    label_change: LabelChange | None = None

    def __call__(self, image: np.ndarray, header: IRHeader) -> tuple[Any, np.ndarray]:
        """The image after all steps, and its labels."""
        labels = self.labels(header)
        for step in self.steps:
            image = step(image)
        return image, labels

    def labels(self, header: IRHeader) -> np.ndarray:
        """Return the labels of an image."""
        labels = np.atleast_1d(np.asarray(header.label, np.float32))
        if self.listed is not None:
            labels = listed_labels(self.listed, header.id)
        elif len(labels) != self.label_width:
            raise LabelError(
                f"the record has {len(labels)} labels, label_width is {self.label_width}"
            )
        return labels if self.label_change is None else self._changed(labels)

    def _changed(self, labels: np.ndarray) -> np.ndarray:
        """The labels with the class as it becomes."""
        assert self.label_change is not None
        if self.label_change.absent:
            return np.full(self.label_width, -1, np.float32)
        return self.label_change.of_record(labels)


def listed_labels(listed: tuple[np.ndarray, ...], record_id: int) -> np.ndarray:
    """Return the labels of an id in a list: rows of a table, or the values between two starts."""
    ids = listed[0]
    row = int(np.searchsorted(ids, np.uint64(record_id)))
    if row == len(ids) or ids[row] != record_id:
        raise LabelError("the list of labels has no line for this id")
    if len(listed) == 2:
        return listed[1][row]
    starts, values = listed[1:]
    return values[starts[row] : starts[row + 1]]


class PythonImages(Prefetcher):
    """An engine whose images are decoded here and changed by a function in Python.

    For each member of the source there is one of `changes`: it takes an image (height, width,
    channels) and its header, returns the image in its final size and its labels, of `label_shape`,
    and is called in several threads at once if `threads` is above 1, each with a batch of its own.
    What it draws from `core.example_random` depends on `key`, the epoch, the record and its
    occurrence alone.  Of `plan` only the form of a batch, `orient` and the limits count.  `on_cut`
    is called once if images have more than 8 bits.
    """

    def __init__(
        self,
        source: ImageSource,
        plan: RenderPlan,
        changes: Sequence[ImageChange],
        label_shape: tuple[int, ...],
        *,
        key: int,
        batch_size: int,
        threads: int,
        depth: int,
        allocate: Callable[[int], Any] | None = None,
        on_cut: Callable[[], object] | None = None,
    ) -> None:
        threads = min(threads, depth)
        super().__init__(self._batch, depth, threads=threads, name="python-images")
        self._source, self._bytes, self._key = source, source.bytes_source(), key
        self._batch_size, self._allocate = batch_size, allocate
        self._on_cut, self._cut = on_cut, False
        self._spent = dict.fromkeys(("read", "decode", "python", "collate"), 0.0)
        self.reform(plan, changes, label_shape)

    def reform(
        self, plan: RenderPlan, changes: Sequence[ImageChange], label_shape: tuple[int, ...]
    ) -> None:
        """Make other batches from now on, of as many images; those under way are forgotten."""
        self.cancel()
        self.plan: RenderPlan = plan
        self._changes = changes
        channels, height, width = plan.recipe.data_shape
        self._image_shape = height, width, channels
        self._limits: dict[str, Any] = plan.limits
        self._shape, self._dtype = plan.shape(self._batch_size), plan.dtype
        self._label_shape = (self._batch_size, *label_shape)
        nbytes = int(np.prod(self._shape)) * self._dtype.itemsize
        self._pool = BufferPool(nbytes, self.depth + len(self._threads) + 1, self._allocate)
        self._rows = layout_plan(plan.layout, "NHWC")

    def submit(self, records: Any, epoch: int, draws: Any = None) -> None:
        """Start work on a batch; `draws` tells occurrences of a record in the epoch apart."""
        if draws is None:
            draws = np.zeros(len(records), np.int64)
        super().submit((records, draws), epoch)

    def collect(self) -> tuple[Any, Any, Any, list[Any]]:
        """Wait for the oldest batch; say once that images had more than 8 bits."""
        made: tuple[Any, Any, Any, list[Any]] = super().collect()
        if self._cut and self._on_cut is not None:
            on_cut, self._on_cut = self._on_cut, None
            on_cut()
        return made

    def stats(self) -> dict[str, float]:
        """Return what every `Prefetcher` counts, with the seconds of all threads by phase."""
        counts = super().stats()
        del counts[self._phase]
        return {**counts, **{f"{name}_seconds": value for name, value in self._spent.items()}}

    def retry(
        self, record: int, epoch: int, draw: int, data: Any, label: Any, ids: Any, slot: int
    ) -> None:
        """Put another record into a slot of a collected batch."""
        self._fill(record, epoch, draw, self._rows(data), label, ids, slot)

    def _batch(
        self, job: tuple[np.ndarray, np.ndarray], epoch: int
    ) -> tuple[Any, Any, Any, list[Any]]:
        records, draws = job
        data = np.frombuffer(self._pool.take(), self._dtype).reshape(self._shape)
        label = np.zeros(self._label_shape, np.float32)
        ids = np.zeros(len(label), np.uint64)
        rows, failures = self._rows(data), []
        rows[len(records) :] = 0
        for slot, (record, draw) in enumerate(zip(records.tolist(), draws.tolist(), strict=True)):
            try:
                self._fill(record, epoch, draw, rows, label, ids, slot)
            except Exception as error:
                failures.append((slot, error))
        return data, label, ids, failures

    def _fill(
        self,
        record: int,
        epoch: int,
        draw: int,
        rows: np.ndarray,
        label: np.ndarray,
        ids: np.ndarray,
        slot: int,
    ) -> None:
        """Make one image and put it into its slot."""
        rows[slot] = 0
        location, number = self._source.location_of(record), None
        member = int(np.searchsorted(self._source.firsts, record, side="right")) - 1
        times = [time.perf_counter()]
        try:
            header, content = self._bytes.image(record)
            number = header.id
            times.append(time.perf_counter())
            if not self._cut:
                self._cut = has_more_bits(content)
            image = decode_image(
                content,
                channels=self._image_shape[2],
                orient=self.plan.recipe.orient,
                background=self.plan.recipe.background,
                **self._limits,
            )
            times.append(time.perf_counter())
            with drawing_for(self._key, epoch, record, draw):
                image, labels = self._changes[member](image, header)
            times.append(time.perf_counter())
        except RecordIOError as error:
            if error.path is not None:
                raise
            raise error.at(record_id=number, **location) from None
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"raised by aug_list for image {number}: {location}")
            raise
        image = np.asarray(image)
        if image.shape != self._image_shape:
            raise ValueError(
                f"aug_list makes an image of shape {image.shape}, data_shape needs (height, width, "
                f"channels) = {self._image_shape}; image {number}: {location}"
            )
        rows[slot], label[slot], ids[slot] = image, labels, number
        times.append(time.perf_counter())
        with self._lock:
            for name, (begin, end) in zip(self._spent, pairwise(times), strict=True):
                self._spent[name] += end - begin


class PythonTail:
    """Calls the functions at the end of a recipe for each image; `desc` describes what it returns.

    A recipe made of another library's pipeline has them.  They run one image after the other, in
    the thread that takes the batch.  What they draw from the generators of the process can be
    repeated where the loop gives every image a seed.
    """

    def __init__(
        self, named: NamedRecipe, options: ImageRecordOptions, views: bool, desc: DataDesc
    ) -> None:
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
        with kept_generators():
            output, is_tensor = self._one(np.zeros(desc.shape[1:], desc.dtype))  # a black image
        if output.ndim != 3:
            raise ValueError(f"{self.names}: returned an array of shape {output.shape}, no image")
        layout = "NCHW" if is_tensor else "NHWC"
        #: What becomes of a batch.
        self.desc: DataDesc = DataDesc(
            desc.name, (desc.shape[0], *output.shape), output.dtype, layout
        )

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Return the finished batch."""
        finished = np.empty((len(images), *self.desc.shape[1:]), self.desc.dtype)
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
            output, _ = self._one(image)
            if output.shape != finished.shape[1:] or output.dtype != finished.dtype:
                raise ValueError(
                    f"{self.names}: returned {output.dtype} of shape {output.shape} for an image, "
                    f"and {finished.dtype} of shape {finished.shape[1:]} for a black one: a batch "
                    "needs one shape and type"
                )
            finished[slot] = output

    def _one(self, image: np.ndarray) -> tuple[np.ndarray, bool]:
        """Return a finished image, and whether it came as a tensor."""
        output: Any = self._begin(image)
        for call in self._calls:
            output = call(image=output)["image"] if self._named else call(output)
        is_tensor = hasattr(output, "detach")
        return (array_over(output) if is_tensor else np.asarray(output)), is_tensor


def _same(image: np.ndarray) -> np.ndarray:
    return image


def _picture(image: np.ndarray) -> Any:
    """Return the image as Pillow's, which is what torchvision's transforms get."""
    make: Callable[[Any], Any] = need("PIL.Image", "functions that take images of Pillow").fromarray
    return make(image[..., 0] if image.shape[2] == 1 else image)
