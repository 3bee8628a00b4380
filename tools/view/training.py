"""Batches that training gets: from the image iterators themselves, for settings from a form.

One iterator is open at a time; it and the last batches are kept for the pictures of a page, which
browsers request one by one.
"""

from __future__ import annotations

import collections
import hashlib
import os
import threading
import warnings
from typing import Any, NamedTuple

import numpy as np

import iterators
from iterators.core.batch import DataBatch
from iterators.core.layout import plan
from iterators.providers.image_preview import record_at, records_of, samples_of, seek
from iterators.providers.image_provider import undo_normalisation
from iterators.providers.show import objects_of_row
from recordio.errors import RecordIOError

from .calls import CallError, Settings
from .pack import ShownPack

__all__ = ["EPOCHS", "RecordInEpoch", "Trainer", "TrainingBatch"]

#: Epochs of one record that are shown.
EPOCHS = 16
#: Bytes of a batch, and batches that are kept.
MOST_BYTES = 1 << 28
KEPT = 4


class TrainingBatch(NamedTuple):
    """Batch and what is known of it."""

    batch: DataBatch
    pixels: np.ndarray  # uint8, (batch, height, width, channels); normalisation is undone
    objects: list[np.ndarray | None]
    positions: list[int | None]  # of the images in the pack, where they are known
    batches: int  # of an epoch
    digest: str  # SHA-256 of the bytes of the data array
    notes: list[str]  # warnings of the iterator


class RecordInEpoch(NamedTuple):
    """Record in one epoch; `sample` is what the iterator delivers."""

    sample: Any
    pixels: np.ndarray
    objects: np.ndarray | None


class Trainer:
    """Opener of iterators over packs, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._name = ""
        self._provider: Any = None
        self._notes: list[str] = []
        self._kept: collections.OrderedDict[tuple[Any, ...], Any] = collections.OrderedDict()

    def batch(self, pack: ShownPack, settings: Settings, epoch: int, number: int) -> TrainingBatch:
        """Return batch `number` of an epoch, both from 0.

        Settings without a meaning are a CallError, and a batch that does not exist is an
        IndexError.
        """
        return self._remembered(
            ("batch", pack.name, settings.text(), epoch, number),
            lambda: self._batch(pack, settings, epoch, number),
        )

    def epochs(
        self, pack: ShownPack, settings: Settings, offset: int, first: int
    ) -> list[RecordInEpoch]:
        """Return the record at an offset in sixteen epochs."""
        return self._remembered(
            ("record", pack.name, settings.text(), offset, first),
            lambda: self._epochs(pack, settings, offset, first),
        )

    def _remembered(self, key: tuple[Any, ...], make: Any) -> Any:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def _open(self, pack: ShownPack, settings: Settings) -> Any:
        name = f"{pack.name}: {settings.text()}"
        if name == self._name:
            return self._provider
        self.close()
        files = {"path_imgrec": pack.path}
        if pack.index_path is not None:
            files["path_imgidx"] = pack.index_path
        keywords = dict(settings.keywords)
        try:
            shape = tuple(int(side) for side in keywords.get("data_shape", ()))
            size = int(np.prod(shape, dtype=object)) * int(keywords.get("batch_size", 1)) * 4
        except (TypeError, ValueError):
            size = 0  # the iterator says what is wrong
        if size > MOST_BYTES:
            raise CallError(
                f"a batch takes {size} bytes, more than the {MOST_BYTES} that the page shows: make "
                "batch_size smaller"
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self._provider = getattr(iterators, settings.kind)(
                    **files,
                    **keywords,
                    prefetch_buffer=1,
                    preprocess_threads=min(os.cpu_count() or 1, 4),
                    verbose=False,
                )
            except RecordIOError:
                raise
            except (TypeError, ValueError, OSError) as error:
                raise CallError(str(error)) from None
        self._notes = [str(warning.message) for warning in caught]
        self._name = name
        return self._provider

    def _batch(self, pack: ShownPack, settings: Settings, epoch: int, number: int) -> TrainingBatch:
        provider = self._open(pack, settings)
        seek(provider, epoch, number)
        batch = provider.next()
        (desc,) = provider.provide_data
        pixels = _pixels(provider, batch.data[0], desc.layout)
        data = np.ascontiguousarray(batch.data[0])
        labels = batch.label[0]
        rows = [np.atleast_1d(row) for row in labels]
        return TrainingBatch(
            batch,
            pixels,
            [objects_of_row(row, image.shape) for row, image in zip(rows, pixels, strict=True)],
            self._positions(pack, provider, batch, epoch, number),
            len(provider),
            hashlib.sha256(data.data).hexdigest(),
            self._notes,
        )

    def _positions(
        self, pack: ShownPack, provider: Any, batch: DataBatch, epoch: int, number: int
    ) -> list[int | None]:
        """Return the positions of images in the pack; None for one that replaced a bad record."""
        positions: list[int | None] = []
        offsets = records_of(provider, epoch, number)
        for offset, number_of in zip(offsets, batch.index, strict=False):
            position = pack.places.position_at(offset)
            if position is not None:
                header = pack.record(position).header
                if header is None or header.id != int(number_of):
                    position = None
            positions.append(position)
        return positions + [None] * (len(batch.index) - len(positions))

    def _epochs(
        self, pack: ShownPack, settings: Settings, offset: int, first: int
    ) -> list[RecordInEpoch]:
        provider = self._open(pack, settings)
        samples = samples_of(provider, record_at(provider, offset), range(first, first + EPOCHS))
        (desc,) = provider.provide_data
        images = _pixels(provider, np.stack([sample.data for sample in samples]), desc.layout)
        return [
            RecordInEpoch(sample, image, objects_of_row(np.atleast_1d(sample.label), image.shape))
            for sample, image in zip(samples, images, strict=True)
        ]

    def close(self) -> None:
        """Let the iterator go."""
        if self._provider is not None:
            self._provider.close()
        self._provider, self._name = None, ""


def _pixels(provider: Any, data: np.ndarray, layout: str) -> np.ndarray:
    """Return samples as before normalisation: uint8, (batch, height, width, channels)."""
    images = plan(layout.upper().replace("N", "B").lower(), "bhwc")(data)
    shown = undo_normalisation(provider)(images, None)
    return np.clip(np.rint(shown), 0, 255).astype(np.uint8)
