"""Images that a CUDA device decodes: an engine beside the image stage.

Labels, sizes and the geometry of every record are those of the stage; the device decodes the
rectangle that is needed and resamples it into the batch.  Images that it does not decode, such as
progressive JPEG and other formats, are made by the stage's renderer and moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recordio.errors import RecordIOError
from recordio.formats.decode import image_info
from recordio.header import pack

from ..core.device import handing_over
from ..core.layout import plan as layout_plan
from ..core.prefetch import Prefetcher
from ..images.augment.recipe import PLAIN, Recipe
from ..images.device_decode import INTERPOLATIONS, DeviceDecoder, DrawnStep, resampled
from ..images.plan import RenderPlan
from ..images.render import Renderer

if TYPE_CHECKING:
    from .image_sources import ImageSource

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

#: The marker behind the pixels of a JPEG image, and the bytes at the end where it is looked for.
END_OF_IMAGE, TRAILING = b"\xff\xd9", 256

Decode = Callable[[Sequence[bytes], Sequence[DrawnStep], Any], list[Any]]


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
        if recipe.method not in INTERPOLATIONS:
            raise ValueError(
                f'{asked} resamples with inter_method 1 or 2, or with resample="pillow" and '
                'interpolation "bilinear" or "bicubic"'
            )


class _Worker(NamedTuple):
    """Makes one batch at a time: renderers by member of the source, a decoder and its stream."""

    renderers: list[Renderer]
    decode: Decode
    stream: Any


class DeviceImages(Prefetcher):
    """An engine whose images are decoded on a device, `depth` batches ahead, in two threads.

    One prepares a batch while the other waits for the device.  For each member of the source there
    is one of `plans`, of uint8 images; `decode` is called with contents, first steps and a stream,
    as a `DeviceDecoder`.
    """

    _phase = "decode_seconds"

    def __init__(
        self,
        source: ImageSource,
        plans: Sequence[RenderPlan],
        device: Any,
        *,
        batch_size: int,
        depth: int,
        decode: Decode | None = None,
        on_cut: Callable[[], object] | None = None,
    ) -> None:
        import torch

        super().__init__(self._batch, depth, threads=min(2, depth), name="device-images")
        self._torch, self._device = torch, device
        self._source, self._bytes = source, source.bytes_source()
        self._plans, plan = plans, plans[0]
        self._shape, self._label_shape = plan.shape(batch_size), (batch_size, plan.label_width)
        self._rows = layout_plan(plan.layout, "NCHW")
        self._make_decoder = (
            partial(DeviceDecoder, device, plan.recipe.channels)
            if decode is None
            else lambda: decode
        )
        #: Those that make no batch now; the first tells at once if there is no decoder.
        self._free = [self._worker()]
        self._spare = [Renderer(plan) for plan in plans]
        self._counts = {"device_images": 0, "host_images": 0}
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
            renderer = self._spare[self._member(record)]
            packed = pack(*self._bytes.image(record))
            *_, label[slot], ids[slot] = renderer.drawn(packed, epoch, record, draw)
            row = self._rows(data)[slot]
            self._render(renderer, packed, epoch, record, draw, row)
        except Exception as error:
            raise self._located(error, record) from None

    def stats(self) -> dict[str, float]:
        """Counters of the prefetcher, and of images decoded on the device and on the processor."""
        return {**super().stats(), **self._counts}

    def _count(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def _worker(self) -> _Worker:
        stream = self._torch.cuda.Stream(self._device) if self._device.type == "cuda" else None
        return _Worker([Renderer(plan) for plan in self._plans], self._make_decoder(), stream)

    def _batch(
        self, job: tuple[np.ndarray, np.ndarray], epoch: int
    ) -> tuple[Any, Any, Any, list[Any]]:
        try:
            worker = self._free.pop()
        except IndexError:  # all are at work
            worker = self._worker()
        try:
            return self._made(worker, *job, epoch)
        finally:
            self._free.append(worker)

    def _made(
        self, worker: _Worker, records: np.ndarray, draws: np.ndarray, epoch: int
    ) -> tuple[Any, Any, Any, list[Any]]:
        label = np.zeros(self._label_shape, np.float32)
        ids = np.zeros(len(label), np.uint64)
        with self._torch.cuda.stream(worker.stream):  # none is the one that is current
            data = self._torch.zeros(self._shape, dtype=self._torch.uint8, device=self._device)
            rows, failures = self._rows(data), []
            waiting = []
            for slot, (record, draw) in enumerate(
                zip(records.tolist(), draws.tolist(), strict=True)
            ):
                try:
                    packed = pack(*self._bytes.image(record))
                    renderer = worker.renderers[self._member(record)]
                    found = renderer.drawn(packed, epoch, record, draw)
                    begin, steps, mirror, flip, label[slot], ids[slot] = found
                    render = partial(self._render, renderer, packed, epoch, record, draw)
                    content = packed[begin:]
                    if decodes(content):
                        drawn = [DrawnStep(*step) for step in steps], mirror, flip
                        waiting.append((slot, record, content, drawn, render))
                    else:
                        render(rows[slot])
                except Exception as error:
                    failures.append((slot, self._located(error, record)))
            contents, firsts = [one[2] for one in waiting], [one[3][0][0] for one in waiting]
            images = worker.decode(contents, firsts, worker.stream)
            for image, (slot, record, _, drawn, render) in zip(images, waiting, strict=True):
                try:
                    if image is None:
                        render(rows[slot])
                    else:
                        rows[slot].copy_(resampled(image, *drawn))
                        self._count("device_images")
                except Exception as error:
                    failures.append((slot, self._located(error, record)))
            receive = handing_over([data])
        return (data, receive), label, ids, sorted(failures, key=lambda failure: failure[0])

    def _render(
        self, renderer: Renderer, packed: bytes, epoch: int, record: int, draw: int, row: Any
    ) -> None:
        """Make one image on the processor."""
        image, _, _ = renderer.sample(packed, epoch, record, draw)
        self._cut = self._cut or renderer.num_cut() > 0
        row.copy_(self._torch.from_numpy(self._rows(image)[0]))
        self._count("host_images")

    def _member(self, record: int) -> int:
        return int(np.searchsorted(self._source.firsts, record, side="right")) - 1

    def _located(self, error: Exception, record: int) -> Exception:
        """Return the error with the place of its record, as the stage's errors have it."""
        if not isinstance(error, RecordIOError) or error.path is not None:
            return error
        return error.at(**self._source.location_of(record))


def decodes(content: bytes) -> bool:
    """Return whether the device decodes an image: an upright JPEG in one pass, grey or RGB.

    One that is cut off is left to the stage: the device would fill what is missing, silently.
    """
    found = image_info(content)
    return (
        found.kind == "jpeg"
        and not found.progressive
        and found.orientation == 1
        and found.channels in (1, 3)
        and content.rfind(END_OF_IMAGE, -TRAILING) >= 0
    )
