"""Pages with the samples of training, from the image iterators, for settings from a form.

One iterator is open at a time; it and the last batches are kept for the pictures of a page, which
browsers request one by one.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import io
import os
import threading
import warnings
from typing import Any, NamedTuple

import numpy as np

import iterators
from iterators.core.batch import DataBatch
from iterators.images.contact_sheet import Tile
from iterators.providers.image_preview import record_at, records_of, samples_of, seek
from iterators.providers.image_provider import undo_normalisation
from iterators.providers.show import tiles_of
from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.image_header import read_header

from .browsing import tile
from .calls import KINDS, CallError, Settings, form_groups, parse_call, parse_fields
from .pack import ShownPack
from .site import BadRequest, Site, address, number_from

#: Epochs of one record that are shown.
EPOCHS = 16
#: Bytes of a batch, and batches that are kept.
MOST_BYTES = 1 << 28
KEPT = 4
MOST_EPOCH = (1 << 32) - 1 - EPOCHS
#: Images with a longer side between these are trained on as they are.
LEAST_SIDE, MOST_SIDE = 8, 160
#: Images of a batch on a page.
MOST_SHOWN = 128


class TrainingBatch(NamedTuple):
    """Batch and what is known of it."""

    batch: DataBatch
    described: list[Any]  # its data arrays
    tiles: list[Tile]  # normalisation is undone
    positions: list[int | None]  # of the images in the pack, where they are known
    batches: int  # of an epoch
    digest: str  # SHA-256 of the bytes of the data array
    notes: list[str]  # warnings of the iterator


class RecordInEpoch(NamedTuple):
    """Record in one epoch; `sample` is what the iterator delivers."""

    sample: Any
    tile: Tile


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
        data = np.ascontiguousarray(batch.data[0])
        return TrainingBatch(
            batch,
            provider.provide_data,
            _tiles(pack, provider, batch),
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
            position = pack.locations.position_at(offset)
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
        return [RecordInEpoch(one, *_tiles(pack, provider, one.batch)) for one in samples]

    def close(self) -> None:
        """Let the iterator go."""
        if self._provider is not None:
            self._provider.close()
        self._provider, self._name = None, ""


def _tiles(pack: ShownPack, provider: Any, batch: DataBatch) -> list[Tile]:
    """Return samples as before normalisation, with what is drawn over them."""
    described = pack.opened.fields_meta
    return tiles_of(batch, undo_normalisation(provider), pack.classes, described=described)[0]


# -- pages ----------------------------------------------------------------------------------------


def training(site: Site, request: Any) -> Any:
    """Show the form, and the batch of an iterator with these keywords."""
    from starlette.responses import RedirectResponse

    pack, query = site.pack(request), request.query_params
    here = ("pack", pack.name, "training")
    record = query.get("record", "").strip()
    chosen = {
        "in_epoch": number_from(request, "in_epoch", 0, 0, MOST_EPOCH),
        "batch": number_from(request, "batch", 0, 0, 1 << 40),
        "record": number_from(request, "record", 0) if record else "",
    }
    values: dict[str, Any] = {"wrong": "", "notes": [], "shown": None, "epochs": None}
    settings = Settings()
    try:
        if call := query.get("call", "").strip():
            settings, notes = parse_call(call)
            note = "; ".join(notes)
            target = {**settings.query(), **chosen, "note": note, "show": 1}
            return RedirectResponse(address(*here, **target), 303)
        settings = parse_fields(query)
        unset = not settings.keywords and not query.get("show")
        if unset:
            settings = usual(pack)
        if not unset or record:
            values |= _shown(site, pack, settings, chosen)
    except (CallError, IndexError) as error:
        values["wrong"] = str(error)
    except RecordIOError as error:
        values["wrong"] = str(error)
    if query.get("note"):
        values["notes"] = [*query["note"][:2000].split("; "), *values["notes"]]
    files = {"path_imgrec": f"{pack.name}.rec"}
    if pack.index_path:
        files["path_imgidx"] = f"{pack.name}.idx"
    return site.page(
        "training",
        422 if values["wrong"] else 200,
        pack=pack,
        title=f"{pack.name}, training",
        kinds=KINDS,
        settings=settings,
        groups=form_groups(settings),
        query={**settings.query(), "show": 1},
        call=query.get("call") or settings.text(**files),  # a refused one, to be mended
        limit=MOST_SHOWN,
        **chosen,
        **values,
    )


def usual(pack: ShownPack) -> Settings:
    """Return the first content of the form, by the first images of the pack."""
    images = [record for record in pack.records(pack.locations.read(0, 8)) if record.is_image]
    size = (1, 1)
    with contextlib.suppress(ImageDecodeError):
        size = read_header(images[0].content).size if images else size
    small = LEAST_SIDE <= max(size) <= MOST_SIDE
    common = {
        "data_shape": (3, size[1], size[0]) if small else (3, 224, 224),
        "batch_size": 32,
        "shuffle": True,
    }
    if fields := pack.fields.whole():
        common["fields"] = fields
    if images and images[0].objects is not None:
        return Settings("ImageDetRecordIter", {**common, "rand_mirror_prob": 0.5})
    if small:
        return Settings("ImageRecordIter", {**common, "rand_mirror": True})
    areas = {"random_resized_crop": True, "min_random_area": 0.08}
    ratios = {"min_aspect_ratio": 0.75, "max_aspect_ratio": 4 / 3}
    return Settings("ImageRecordIter", {**common, **areas, **ratios, "rand_mirror": True})


def _shown(site: Site, pack: ShownPack, settings: Settings, chosen: dict[str, Any]) -> Any:
    if chosen["record"] == "":
        shown = site.kept(Trainer).batch(pack, settings, chosen["in_epoch"], chosen["batch"])
        return {"shown": shown, "notes": shown.notes}
    record = pack.record(chosen["record"])
    if record.damage:
        raise RecordIOError(record.damage, path=pack.path, offset=record.offset)
    epochs = site.kept(Trainer).epochs(pack, settings, record.offset, chosen["in_epoch"])
    return {"epochs": epochs, "original": tile(pack, record)}


def _asked(site: Site, request: Any) -> tuple[Any, int, ShownPack, Settings, int]:
    pack = site.pack(request)
    try:
        settings = parse_fields(request.query_params)
    except CallError as error:
        raise BadRequest(str(error)) from None
    epoch = number_from(request, "in_epoch", 0, 0, MOST_EPOCH)
    return request.query_params, epoch, pack, settings, number_from(request, "batch", 0)


def sample(site: Site, request: Any) -> Any:
    """Send the picture of one sample of a batch, or of a record in one epoch."""
    from starlette.responses import Response

    query, epoch, pack, settings, batch = _asked(site, request)
    slot = number_from(request, "slot", 0)
    try:
        if query.get("record"):
            record = pack.record(number_from(request, "record", 0))
            epochs = site.kept(Trainer).epochs(pack, settings, record.offset, epoch)
            tiles = [one.tile for one in epochs]
        else:
            tiles = site.kept(Trainer).batch(pack, settings, epoch, batch).tiles
        chosen = tiles[slot]._replace(faint=False)  # the page makes padding pale
    except (CallError, IndexError) as error:
        raise BadRequest(str(error)) from None
    data, kind = site.pictures.drawn(chosen, pack.classes)
    return Response(data, 200, {"cache-control": "no-store"}, kind)


def array(site: Site, request: Any) -> Any:
    """Send data or labels of a batch as ``.npy``, byte for byte as the iterator delivers them."""
    from starlette.responses import Response

    query, epoch, pack, settings, batch = _asked(site, request)
    what = query.get("what", "data")
    try:
        delivered = site.kept(Trainer).batch(pack, settings, epoch, batch)
    except (CallError, IndexError) as error:
        raise BadRequest(str(error)) from None
    arrays = {desc.name: delivered.batch[desc.name] for desc in delivered.described[1:]}
    arrays |= {"data": delivered.batch.data[0], "label": delivered.batch.label[0]}
    if what not in arrays:
        raise BadRequest(f"what: expected {', '.join(arrays)}")
    target = io.BytesIO()
    np.save(target, arrays[what], allow_pickle=False)
    name = f"{pack.name}-epoch{epoch}-batch{batch}-{what}.npy"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
    }
    return Response(target.getvalue(), 200, headers, "application/octet-stream")
