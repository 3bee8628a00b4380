"""Images that a CUDA device decodes: an engine whose image stage writes tables.

The threads of the stage read records, draw crops and copy encoded images into a block of
page-locked memory.  One more thread gives the blocks to the device: a few calls decode, resample
and normalise a whole batch there.  Images that the device does not decode, such as progressive JPEG
and other formats, are made by the stage and lie in the same block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recordio.errors import RecordIOError
from recordio.header import pack

from ..core.device import DeviceNormalisation, handing_over
from ..core.dtypes import tensor_over
from ..core.layout import plan as layout_plan
from ..core.prefetch import Prefetcher
from ..images.augment.recipe import FILTERS, FIRST_FILTER, PLAIN, Recipe
from ..images.device.decoder import lay_out
from ..images.device.table import (
    TablePlan,
    TableRenderer,
    batch_form,
    cramped_slots,
    drop_rows,
    grown,
)
from ..images.plan import RenderPlan
from ..images.render import Renderer
from ..images.stage import Stage
from ..images.workers import PlanGroup

if TYPE_CHECKING:
    from ..images.device.cuda import CudaMachine
    from .image_sources import ImageSource

#: Images of a batch: blocks of a grid.
MOST_IMAGES = 65535
#: Batches on the device at once: while one is resampled, the next is decoded.
PLACES = 2
#: Keywords of a recipe that a device can follow.
ON_DEVICE = {
    *PLAIN,
    *("scale", "scaled_decode", "fill_value", "crop_position", "rand_crop"),
    *("crop_x_start", "crop_y_start", "max_crop_size", "min_crop_size"),
    *("random_resized_crop", "log_aspect_ratio"),
    *("min_random_area", "max_random_area", "min_aspect_ratio", "max_aspect_ratio"),
    *("mirror", "rand_mirror", "mirror_p", "flip_p"),
    *(f"{kind}_{channel}" for kind in ("mean", "std") for channel in "rgba"),
} - {"background", "reducing_gap"}
#: Keywords of the provider that go with the stage alone, and the values that ask for nothing.
HOST_ONLY: dict[str, tuple[Any, ...]] = {
    "views": (None,),
    "fields": (None,),
    "data_specs": (None,),
    "cache": (None, ""),
    "mean_img": ("", None),
    "entry_points": (False,),
    "strict": (False,),
    "buckets": (None,),
    "patches": (None,),
}
#: Methods of a resize that the kernel has.
METHODS = (1, 2, *(FIRST_FILTER + FILTERS.index(name) for name in ("bilinear", "bicubic")))


def decoded_there(options: Any) -> bool:
    """Return whether images are decoded on the device; not every provider has the keyword."""
    return getattr(options, "decode_on", "host") == "device"


def check_on_device(
    options: Any, recipes: Sequence[Recipe], device: Any, many_shapes: bool
) -> None:
    """Raise a ValueError that names the first keyword that a device cannot follow."""
    asked = 'decode_on="device"'
    if getattr(device, "type", None) != "cuda":
        raise ValueError(f'{asked} needs device="cuda" or "cuda:i"')
    for name, allowed in HOST_ONLY.items():
        if getattr(options, name) not in allowed:
            raise ValueError(f'{name} needs decode_on="host": drop one of them')
    if options.batch_size > MOST_IMAGES:
        raise ValueError(f"{asked} makes batches of at most {MOST_IMAGES} images")
    if many_shapes:
        raise ValueError(f"{asked} makes batches of one data_shape")
    for recipe in recipes:
        for name in recipe.changed():
            if name not in ON_DEVICE:
                raise ValueError(
                    f"{name} is drawn on the processor: {asked} resizes, crops, mirrors and "
                    "normalises; drop one of them"
                )
        if recipe.channels == 4:
            raise ValueError(f"{asked} decodes 1 or 3 channels, not 4")
        if recipe.method not in METHODS:
            raise ValueError(
                f'{asked} resamples with inter_method 1 or 2, or with resample="pillow" and '
                'interpolation "bilinear" or "bicubic"'
            )


class _Place:
    """Memory on the device for one batch after the other, and the block of the present one."""

    def __init__(self, machine: CudaMachine) -> None:
        self._machine = machine
        self.tail: Any = machine.empty(1)
        self.pixels: Any = machine.empty(1)
        self.block: Any = None
        self.wait: Callable[[], None] = lambda: None

    def begin(self, block: np.ndarray, tail: int, pixels: int) -> None:
        """Take a block, and make room; nothing is under way here any more."""
        self.block = block
        if len(self.tail) < tail:
            self.tail = self._machine.empty(tail + tail // 4)
        if len(self.pixels) < pixels:
            self.pixels = self._machine.empty(pixels + pixels // 4)


class DeviceImages(Prefetcher):
    """An engine whose images are decoded on a device, `depth` batches ahead.

    For each member of the source there is one of `plans`, of uint8 images; what `normalise` says is
    done on the way.  `threads` is the number of those of the stage.
    """

    def __init__(
        self,
        source: ImageSource,
        plans: Sequence[RenderPlan],
        machine: CudaMachine,
        normalise: DeviceNormalisation | None = None,
        *,
        batch_size: int,
        depth: int,
        threads: int,
        on_cut: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(self._batch, depth, name="device-images", finish=self._let_go)
        plan = plans[0]
        self._machine, self._source, self._bytes = machine, source, source.bytes_source()
        self._channels, self._slots = plan.recipe.channels, batch_size
        self._decoder = machine.decoder(self._channels)
        self._tables = [TablePlan(own, self._decoder, batch_size) for own in plans]
        self._room = self._tables[0].room
        groups = zip(self._tables, source.firsts.tolist(), strict=True)
        self._stage = Stage(
            self._bytes,
            *(PlanGroup(table, None, first) for table, first in groups),
            batch_size=batch_size,
            threads=threads,
            depth=depth,
            allocate=machine.allocate,
            on_cut=self._note_cut,
        )
        # One of each for the thread, and one for whoever collects.
        self._renderers = [Renderer(own) for own in plans]
        self._spare = [Renderer(own) for own in plans]
        self._again = [TableRenderer(table) for table in self._tables]
        self._shape, self._rows = plan.shape(batch_size), layout_plan(plan.layout, "NCHW")
        self._normalise, self._dtype = normalise, "uint8"
        self._form = batch_form(plan, batch_size)
        if normalise is not None:
            self._dtype = normalise.dtype
            numbers = normalise.mean.flat, normalise.factor.flat
            self._form = batch_form(plan, batch_size, self._dtype, *numbers)
        with machine.working():
            self._places = deque(_Place(machine) for _ in range(PLACES))
        self._counts = {"device_images": 0, "host_images": 0}
        self._in_stage = 0  # batches that the stage was given and has not given back
        self._on_cut, self._cut = on_cut, False

    def submit(self, records: Any, epoch: int, draws: Any = None) -> None:
        """Start work on a batch; `draws` tells occurrences of a record in the epoch apart."""
        if draws is None:
            draws = np.zeros(len(records), np.int64)
        super().submit((records, draws), epoch)

    def collect(self) -> tuple[Any, Any, Any, list[Any]]:
        """Wait for the oldest batch, which is valid on the stream that is current."""
        made, label, ids, failures = super().collect()
        if self._cut and self._on_cut is not None:
            on_cut, self._on_cut = self._on_cut, None
            on_cut()
        if made is None:
            return made, label, ids, failures
        data, receive = made
        receive()
        return data, label, ids, failures

    def retry(
        self, record: int, epoch: int, draw: int, data: Any, label: Any, ids: Any, slot: int
    ) -> None:
        """Put another record into a slot of a collected batch, made on the processor."""
        try:
            made = self._render(self._spare, record, epoch, draw, data, slot)
            label[slot], ids[slot] = made
        except Exception as error:
            raise self._located(error, record) from None

    def stats(self) -> dict[str, float]:
        """Counters of the stage, of batches, and of images made on the device and here."""
        own = super().stats()
        own = {name: own[name] for name in ("batches", "produce_seconds")}
        return {**self._stage.stats(), **own, **self._counts}

    def use_threads(self, count: int) -> None:
        """Have only so many of the threads of the stage work."""
        self._stage.use_threads(count)

    def cancel(self) -> None:
        """Forget all batches under way; waits only for what is being made."""
        super().cancel()
        self._stage.cancel()
        self._in_stage = 0

    def close(self, timeout: float | None = None) -> None:
        """Stop the threads.  Idempotent."""
        self._stage.close()  # the thread that waits for it sees that
        super().close(timeout)

    def _let_go(self) -> None:
        """Wait for the device, which still reads page-locked memory, and give all memory back."""
        while self._places:
            self._places.pop().wait()
        if self._stage.ended:  # else, closed by one of its threads, it may still ask the decoder
            self._decoder.close()

    def _note_cut(self) -> None:
        self._cut = True

    def _batch(
        self, job: tuple[np.ndarray, np.ndarray], epoch: int
    ) -> tuple[Any, Any, Any, list[Any]]:
        machine = self._machine
        self._feed(job, epoch)
        block: Any
        block, label, ids, failures = self._stage.collect()
        self._in_stage -= 1
        block = self._with_room(block, *job, epoch, failures)
        drop_rows(block, [slot for slot, _ in failures])
        self._places.rotate()
        place = self._places[0]
        place.wait()
        layout = lay_out(block, self._channels, self._decoder.hardware)
        with machine.working():
            tail = block[layout.tail]
            place.begin(block, len(tail), layout.pixels)
            try:
                data = machine.zeros(self._shape, self._dtype)
                place.tail[: len(tail)].copy_(tensor_over(tail), non_blocking=True)
                refused = machine.decode(self._decoder, block, place.pixels)
                machine.resample(layout, place.tail, place.pixels, data, self._form, self._slots)
                self._replace_refused(refused, *job, epoch, data, failures)
            finally:
                place.wait = machine.mark()
            receive = handing_over([data])
        with self._lock:
            self._counts["device_images"] += layout.jpegs - len(refused)
            self._counts["host_images"] += layout.made
        return (data, receive), label, ids, sorted(failures, key=lambda failure: failure[0])

    def _feed(self, *present: Any) -> None:
        """Give the stage the present job and those behind it, as far as it does not have them.

        The thread does it, which no Ctrl-C interrupts between the two queues.
        """
        with self._lock:
            jobs = [present, *((job.records, job.epoch) for job in self._waiting)]
        for (records, draws), epoch in jobs[self._in_stage :]:
            for table in self._tables:
                table.room = self._room
            try:
                self._stage.submit(records, epoch, draws)
            except IndexError:
                if not self._in_stage:
                    raise
                return  # at the turn of that job
            self._in_stage += 1

    def _with_room(
        self,
        block: np.ndarray,
        records: np.ndarray,
        draws: np.ndarray,
        epoch: int,
        failures: list[Any],
    ) -> np.ndarray:
        """Return a block that has all images: the same, or a larger one, as are those after it."""
        cramped = cramped_slots(block)
        if not cramped:
            return block
        block, room = grown(block, self._machine.allocate)
        self._room = max(self._room, room)
        for slot in cramped:
            record = int(records[slot])
            try:
                packed, member = pack(*self._bytes.image(record)), self._member(record)
                self._again[member].fill(packed, epoch, record, int(draws[slot]), block, slot)
            except Exception as error:
                failures.append((slot, self._located(error, record)))
        return block

    def _replace_refused(
        self,
        slots: Sequence[int],
        records: np.ndarray,
        draws: np.ndarray,
        epoch: int,
        data: Any,
        failures: list[Any],
    ) -> None:
        """Make images here whose call the library refused, though their headers looked well."""
        for slot in slots:
            record = int(records[slot])
            try:
                self._render(self._renderers, record, epoch, int(draws[slot]), data, slot)
            except Exception as error:
                failures.append((slot, self._located(error, record)))

    def _render(
        self,
        renderers: Sequence[Renderer],
        record: int,
        epoch: int,
        draw: int,
        data: Any,
        slot: int,
    ) -> tuple[Any, int]:
        """Make one image on the processor, and put it into a slot; its labels and its id."""
        renderer = renderers[self._member(record)]
        image: Any
        image, label, number = renderer.sample(
            pack(*self._bytes.image(record)), epoch, record, draw
        )
        self._cut = self._cut or renderer.num_cut() > 0
        pixels = tensor_over(image)
        if self._normalise is not None:
            pixels = self._normalise(pixels)
        self._rows(data)[slot].copy_(self._rows(pixels)[0])
        with self._lock:
            self._counts["host_images"] += 1
        return label[0], number

    def _member(self, record: int) -> int:
        return int(np.searchsorted(self._source.firsts, record, side="right")) - 1

    def _located(self, error: Exception, record: int) -> Exception:
        """Return the error with the place of its record, as the stage's errors have it."""
        if not isinstance(error, RecordIOError) or error.path is not None:
            return error
        return error.at(**self._source.location_of(record))
