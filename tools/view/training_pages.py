"""Pages with the samples of training: a batch, and one record in sixteen epochs."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats.general import upright_size

from .calls import KINDS, CallError, Settings, form_groups, parse_call, parse_fields
from .pack import ShownPack
from .site import BadRequest, Site, address, number_from
from .training import EPOCHS

__all__ = ["array", "sample", "training"]

MOST_EPOCH = (1 << 32) - 1 - EPOCHS
#: Images with a longer side between these are trained on as they are.
LEAST_SIDE, MOST_SIDE = 8, 160
#: Images of a batch on a page.
MOST_SHOWN = 128


def training(site: Site, request: Any) -> Any:
    """Show the form, and the batch of an iterator with these keywords."""
    from starlette.responses import RedirectResponse

    pack, query = site.pack(request), request.query_params
    here = ("pack", pack.name, "training")
    record = query.get("record", "").strip()
    place = {
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
            target = {**settings.query(), **place, "note": note, "show": 1}
            return RedirectResponse(address(*here, **target), 303)
        settings = parse_fields(query)
        unset = not settings.keywords and not query.get("show")
        if unset:
            settings = usual(pack)
        if not unset or record:
            values |= _shown(site, pack, settings, place)
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
        **place,
        **values,
    )


def usual(pack: ShownPack) -> Settings:
    """Return the first content of the form, by the first images of the pack."""
    images = [found for found in pack.records(pack.places.read(0, 8)) if found.is_image]
    size = (1, 1)
    with contextlib.suppress(ImageDecodeError):
        size = upright_size(images[0].content) if images else size
    small = LEAST_SIDE <= max(size) <= MOST_SIDE
    common = {
        "data_shape": (3, size[1], size[0]) if small else (3, 224, 224),
        "batch_size": 32,
        "shuffle": True,
    }
    if images and images[0].objects is not None:
        return Settings("ImageDetRecordIter", {**common, "rand_mirror_prob": 0.5})
    if small:
        return Settings("ImageRecordIter", {**common, "rand_mirror": True})
    areas = {"random_resized_crop": True, "min_random_area": 0.08}
    ratios = {"min_aspect_ratio": 0.75, "max_aspect_ratio": 4 / 3}
    return Settings("ImageRecordIter", {**common, **areas, **ratios, "rand_mirror": True})


def _shown(site: Site, pack: ShownPack, settings: Settings, place: dict[str, Any]) -> Any:
    if place["record"] == "":
        shown = site.trainer.batch(pack, settings, place["in_epoch"], place["batch"])
        return {"shown": shown, "notes": shown.notes}
    record = pack.record(place["record"])
    if record.damage:
        raise RecordIOError(record.damage, path=pack.path, offset=record.offset)
    found = site.trainer.epochs(pack, settings, record.offset, place["in_epoch"])
    from .browsing import tile  # the original beside them

    return {"epochs": found, "original": tile(pack, record)}


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
            found = site.trainer.epochs(pack, settings, record.offset, epoch)
            images: Any = [one.pixels for one in found]
        else:
            images = site.trainer.batch(pack, settings, epoch, batch).pixels
        pixels = images[slot]
    except (CallError, IndexError) as error:
        raise BadRequest(str(error)) from None
    data, kind = site.pictures.encoded(pixels)
    return Response(data, 200, {"cache-control": "no-store"}, kind)


def array(site: Site, request: Any) -> Any:
    """Send data or labels of a batch as ``.npy``, byte for byte as the iterator delivers them."""
    from starlette.responses import Response

    query, epoch, pack, settings, batch = _asked(site, request)
    what = query.get("what", "data")
    if what not in ("data", "label"):
        raise BadRequest("what: expected data or label")
    try:
        delivered = site.trainer.batch(pack, settings, epoch, batch).batch
    except (CallError, IndexError) as error:
        raise BadRequest(str(error)) from None
    target = io.BytesIO()
    np.save(target, getattr(delivered, what)[0], allow_pickle=False)
    name = f"{pack.name}-epoch{epoch}-batch{batch}-{what}.npy"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
    }
    return Response(target.getvalue(), 200, headers, "application/octet-stream")
