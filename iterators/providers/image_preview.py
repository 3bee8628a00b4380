"""Previews of the batches of an image provider, without effect on its loop.

`seek` moves a provider to any batch of any epoch, and `samples_of` says what becomes of one record
in some epochs and where its pixels come from.  They go through the plans and the engine of the
provider itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from recordio.errors import RecordIOError
from recordio.formats.image_header import read_header
from recordio.formats.table import format_of
from recordio.payload import read_payload

from ..core.batch import DataBatch
from ..images.augment.geometry import drawn_steps
from ..images.augment.recipe import Recipe
from .engine import engine_apart, made
from .image_provider import RecordImageProvider


class SampleOfRecord(NamedTuple):
    """One record as it is in one epoch: a batch of this sample alone.

    `corners` says where the corners of the sample lie in the decoded image, in pixels: top left,
    top right, bottom right, bottom left, before it is mirrored or turned upside down.  It is None
    for recipes that draw otherwise than `ImageRecordIter`, and then `mirror` is False.
    """

    epoch: int
    batch: DataBatch
    corners: list[tuple[float, float]] | None
    mirror: bool

    @property
    def data(self) -> np.ndarray:
        """The sample without the batch axis."""
        return self.batch.data[0][0]

    @property
    def label(self) -> np.ndarray:
        """Its row of labels."""
        return np.atleast_1d(self.batch.label[0][0])


def seek(provider: RecordImageProvider, epoch: int, number: int) -> None:
    """Make the next batch of a provider batch `number` of an epoch, both from 0."""
    if not 0 <= number < len(provider):
        raise IndexError(f"there is no batch {number}: an epoch has {len(provider)}")
    done = 0
    for _ in range(number):
        done = provider._plan.behind(epoch, done)
    provider.load_state_dict({**provider.state_dict(), "epoch": epoch, "done": done})


def records_of(provider: RecordImageProvider, epoch: int, number: int) -> list[int]:
    """Offsets in the record file of the records of batch `number`; of one file."""
    rows, _ = provider._plan.rows(epoch, number)
    return _source(provider).offsets[rows].tolist()


def record_at(provider: RecordImageProvider, offset: int) -> int:
    """Return the number that a provider of one file gives to the record at an offset."""
    offsets = _source(provider).offsets
    number = int(np.searchsorted(offsets, offset))
    if number == len(offsets) or offsets[number] != offset:
        raise RecordIOError("it is not among the images of the iterator", offset=offset)
    return number


def samples_of(
    provider: RecordImageProvider, record: int, epochs: Sequence[int]
) -> list[SampleOfRecord]:
    """Make one record, a number that `record_at` returned, as it is in some epochs.

    Each epoch is taken to visit the record once.
    """
    pack = int(np.searchsorted(provider._firsts, record, side="right")) - 1
    recipe, key = provider._plans[pack].recipe, provider._job.key
    size = _decoded_size(provider, record, recipe) if type(recipe) is Recipe else None
    samples = []
    with engine_apart(provider._make_engine, 1) as engine:
        for epoch in epochs:
            batch = provider._batch(*made(engine, [record], epoch, [0]), pad=0)
            batch.source = np.array([pack])
            corners, mirror = None, False
            if size is not None:
                steps, mirror = drawn_steps(recipe, key, epoch, record, *size)
                corners = corners_of(steps)
            samples.append(SampleOfRecord(epoch, batch, corners, mirror))
    return samples


def corners_of(steps: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """Find the corners of the last step's window in the image that the first one reads.

    They are in pixels, edges of the image being at 0 and at its width and height.
    """
    last = steps[-1]
    points = [
        (float(x), float(y))
        for x, y in (
            (0, 0),
            (last["out_width"], 0),
            (last["out_width"], last["out_height"]),
            (0, last["out_height"]),
        )
    ]
    for step in reversed(steps):
        points = [_before(step, x + step["left"], y + step["top"]) for x, y in points]
    return points


RESAMPLE, WARP, PAD, AFFINE, PERSPECTIVE = range(5)


def _before(step: dict[str, Any], x: float, y: float) -> tuple[float, float]:
    """Map a point of the result of a step to its source."""
    if step["kind"] == PAD:
        return x - step["border_x"], y - step["border_y"]
    if step["kind"] == WARP:  # its map is that of the centres of pixels
        a, b, c, d, e, f = step["inverse"][:6]
        x, y = x - 0.5, y - 0.5
        return a * x + b * y + c + 0.5, d * x + e * y + f + 0.5
    if step["kind"] in (AFFINE, PERSPECTIVE):
        a, b, c, d, e, f, g, h = step["inverse"]
        depth = g * x + h * y + 1 if step["kind"] == PERSPECTIVE else 1
        return (a * x + b * y + c) / depth, (d * x + e * y + f) / depth
    return (
        step["x"] + x * step["width"] / step["target_width"],
        step["y"] + y * step["height"] / step["target_height"],
    )


def _decoded_size(provider: RecordImageProvider, record: int, recipe: Recipe) -> tuple[int, int]:
    """Width and height of an image as it is decoded."""
    source = _source(provider)
    file = int(np.searchsorted(source.starts, record, side="right")) - 1
    data, _ = source.files[file].reader.read_at(int(source.offsets[record]), record)
    content = read_payload(data).content
    header = read_header(content)
    is_turned = recipe.orient or format_of(content).is_always_turned
    return header.size if is_turned else (header.width, header.height)


def _source(provider: RecordImageProvider) -> Any:
    return provider._open_classes().source
