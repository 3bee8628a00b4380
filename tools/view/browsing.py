"""Pages to browse: grid, record, its pictures and its bytes, identities, and the search."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from iterators.images.contact_sheet import Layer
from iterators.images.processors.drawing import MadePicture, made_pictures, plan_words
from recordio.errors import (
    ExpressionError,
    FieldError,
    ImageDecodeError,
    ImageSizeError,
    KeyNotFoundError,
    RecordIOError,
)
from recordio.formats.image_header import read_header
from recordio.formats.table import IMAGE_KINDS, suffixes_of
from recordio.list_files import entries_among
from recordio.operations.expression import NAMES, Condition

from .contents import read_content
from .jpeg_facts import jpeg_facts
from .lines import NotCounted
from .pack import ShownPack, ShownRecord
from .selection import search
from .site import BadRequest, Site, address, number_from

#: Records on a page.
USUAL, MOST = 60, 240
#: Sides of the pictures that are made, in pixels.
SIDES = (224, 1280)
MOST_NAMES = 100
SECONDS = 1.5
#: What a condition may ask of the format of a content.
KINDS = (*IMAGE_KINDS, "npy", "empty", "other", "damaged")
LONGEST_QUERY = 200
PIECE = 1 << 22
#: What addresses call the boxes in the labels of records, among the names of fields.
OF_LABELS = ".labels"


class RecordTile(NamedTuple):
    """Record on a grid."""

    record: ShownRecord
    label: str
    name: str
    size: tuple[int, int] | None
    #: Of its fields.
    texts: list[str]


class Prepared(NamedTuple):
    """All that the processor of a model makes of an image."""

    name: str
    words: str
    pictures: list[MadePicture]


class Switch(NamedTuple):
    """Link that hides what is drawn over images, or shows it again."""

    name: str
    is_on: bool
    link: str


def tile(pack: ShownPack, record: ShownRecord) -> RecordTile:
    """Return a record with the texts of its tile."""
    size = None
    if record.is_image:
        try:
            size = read_header(record.content).size
        except ImageDecodeError:
            size = None
    texts = [] if record.damage else pack.fields.texts(record.key)
    return RecordTile(record, pack.label_text(record), pack.file_name(record), size, texts)


def prepared(site: Site, size: tuple[int, int] | None) -> Prepared | None:
    """Return what the processor makes of an image of (width, height), if there is a processor."""
    if site.rule is None or size is None:
        return None
    width, height = size
    try:
        words = plan_words(site.rule, site.rule.plan(height, width))
        return Prepared(site.rule.name, words, made_pictures(site.rule, height, width))
    except ImageSizeError as error:
        return Prepared(site.rule.name, f"refused: {error}", [])


def hidden_from(request: Any, pack: ShownPack) -> frozenset[str]:
    """Return the names among the parameters of an address of what is not drawn over images."""
    names = frozenset(filter(None, request.query_params.get("hide", "").split(",")))
    if odd := names - {OF_LABELS, *pack.fields.drawn}:
        raise BadRequest(f"hide: {min(odd)[:40]!r} is nothing that is drawn over images")
    return names


def switches(request: Any, pack: ShownPack, has_boxes: bool) -> list[Switch]:
    """Return links for all that is drawn over the images of a page; none without images."""
    hidden = hidden_from(request, pack)
    links = []
    for name in [OF_LABELS] * has_boxes + pack.fields.drawn:
        query = {**request.query_params, "hide": ",".join(sorted(hidden ^ {name}))}
        link = address(request.url.path.lstrip("/"), **query)
        links.append(Switch(name.replace(OF_LABELS, "boxes of labels"), name not in hidden, link))
    return links


def packs(site: Site, request: Any) -> Any:
    """Show all packs; the grid, if there is one pack only."""
    from starlette.responses import RedirectResponse

    if len(site.packs) == 1:
        return RedirectResponse(address("pack", next(iter(site.packs)), ""), 303)
    return site.page("packs", title="Packs")


def grid(site: Site, request: Any) -> Any:
    """Show a page of thumbnails by position, by key, of an identity, or under a condition."""
    from starlette.responses import RedirectResponse

    pack, query = site.pack(request), request.query_params
    if query.get("set"):
        where = _condition_of(query)
        at = number_from(request, "at", 0)
        return RedirectResponse(address("pack", pack.name, "", where=where, at=at or ""), 303)
    count = number_from(request, "n", USUAL, 1, MOST)
    hide = ",".join(sorted(hidden_from(request, pack)))
    shown = {"n": count if count != USUAL else "", "hide": hide}
    where = query.get("where", "").strip()
    values = {
        "pack": pack, "title": pack.name, "where": where, "by": "position", "wrong": "", "on": "",
        "names": NAMES, "stopped": None, "count": count, "at": 0,
        "first": "", "previous": "", "next": "", "last": "", "hide": hide, "kinds": KINDS,
    }  # fmt: skip
    try:
        if query.get("identity"):
            values |= _of_identity(pack, request, count, shown)
        elif where:
            values |= _filtered(pack, request, where, count, shown)
        elif query.get("by") == "key":
            values |= _by_key(pack, request, count, shown)
        else:
            values |= _by_position(pack, request, count, shown)
    except ExpressionError as error:
        values |= {"wrong": f"column {error.column}: {error.reason}", "records": []}
        values["heading"] = "The condition has a mistake"
    values["tiles"] = [tile(pack, record) for record in values.pop("records")]
    has_boxes = any(one.record.objects is not None for one in values["tiles"])
    values["switches"] = switches(request, pack, has_boxes)
    return site.page("grid", 422 if values["wrong"] else 200, **values)


def _by_position(pack: ShownPack, request: Any, count: int, shown: dict[str, Any]) -> Any:
    at = number_from(request, "at", 0)
    pack.locations.wait_for(at, 2)
    total = pack.locations.count
    if total is not None and at >= total:
        at = max(total - count, 0)
    records = pack.records(pack.locations.read(at, at + count))
    here = ("pack", pack.name, "")
    more = total is None or at + count < total
    return {
        "records": records,
        "at": at,
        "heading": f"Records {at:,} to {at + max(len(records) - 1, 0):,}",
        "first": address(*here, **shown),
        "previous": address(*here, at=max(at - count, 0) or "", **shown) if at else "",
        "next": address(*here, at=at + count, **shown) if more else "",
        "last": address(*here, at=max(total - count, 0), **shown) if total is not None else "",
    }


def _by_key(pack: ShownPack, request: Any, count: int, shown: dict[str, Any]) -> Any:
    start = number_from(request, "at", 0, low=-(1 << 62))
    pack.locations.wait_for(1 << 62, 3)
    locations = pack.locations.from_key(start, count + 1)
    here = ("pack", pack.name, "")
    following = locations[count].key if len(locations) > count else None
    keys = [location.key for location in locations[:count]]
    heading = f"Keys {keys[0]} to {keys[-1]}" if keys else "No more keys"
    return {
        "records": pack.records(locations[:count]),
        "by": "key",
        "at": start,
        "heading": heading,
        "first": address(*here, by="key", **shown),
        "previous": address(*here, by="key", at=start - count, **shown) if start > 0 else "",
        "next": "" if following is None else address(*here, by="key", at=following, **shown),
    }


def _of_identity(pack: ShownPack, request: Any, count: int, shown: dict[str, Any]) -> Any:
    number = number_from(request, "identity", 0)
    keys = pack.identity(number)
    first = number_from(request, "at", 0)
    here = ("pack", pack.name, "")
    locations = []
    for key in keys[first : first + count]:
        position = pack.locations.position_of(key)
        locations += pack.locations.read(position, position + 1)
    more = {"identity": number, **shown}
    return {
        "records": pack.records(locations),
        "by": "identity",
        "at": first,
        "heading": f"Identity {number:,}: {len(keys):,} images",
        "first": address(*here, **more),
        "previous": address(*here, at=max(first - count, 0) or "", **more) if first else "",
        "next": address(*here, at=first + count, **more) if first + count < len(keys) else "",
    }


def _filtered(pack: ShownPack, request: Any, where: str, count: int, shown: dict[str, Any]) -> Any:
    condition = Condition(where, pack.classes)
    backwards = "before" in request.query_params
    start = number_from(request, "before" if backwards else "at", 0)
    matches = search(pack, condition, start, count, backwards, SECONDS)
    here, more = ("pack", pack.name, ""), {"where": where, **shown}
    total = pack.locations.count
    at_end = total is not None and matches.end >= total
    back = address(*here, before=matches.begin, **more) if matches.begin else ""
    on = "" if at_end else address(*here, at=matches.end, **more)
    return {
        "records": matches.records,
        "at": matches.begin,
        "on": (back if backwards else on) if not matches.complete else "",
        "stopped": None if matches.complete else matches.begin if backwards else matches.end,
        "heading": f"{len(matches.records):,} found in records {matches.begin:,} to "
        f"{max(matches.end - 1, matches.begin):,}",
        "first": address(*here, **more),
        "previous": back,
        "next": on,
        "last": "" if total is None else address(*here, before=total, **more),
    }


def _condition_of(query: Any) -> str:
    """Return the condition of the fields of the filter, added to the one that is written."""
    parts = [query.get("where", "").strip()]
    if label := query.get("label", "").strip():
        parts.append(f"label == {label}" if _is_number(label) else f"class == {label!r}")
    for name, text in (
        ("min_width", "width >= {}"),
        ("max_width", "width <= {}"),
        ("min_height", "height >= {}"),
        ("max_height", "height <= {}"),
        ("min_bytes", "bytes >= {}"),
    ):
        if value := query.get(name, "").strip():
            parts.append(text.format(value))
    if kind := query.get("format", ""):
        parts.append(f"format == {kind!r}")
    if query.get("failed"):
        parts.append("not decodable")
    parts = [part for part in parts if part]
    return " and ".join(f"({part})" if " or " in part else part for part in parts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def record(site: Site, request: Any) -> Any:
    """Show one record with all that is known about it."""
    pack = site.pack(request)
    record = pack.record(request.path_params["position"])
    values: dict[str, Any] = {"reading": None, "facts": {}, "size": None, "wrong": record.damage}
    if record.is_image:
        try:
            values["size"] = read_header(record.content).size
            site.pictures.picture(record.content, SIDES[0])
        except (ImageDecodeError, MemoryError) as error:
            values["wrong"] = getattr(error, "reason", "not enough memory")
        if record.kind == "jpeg":
            values["facts"] = jpeg_facts(record.content)
            if values["size"] and (turned := read_header(record.content).orientation) != 1:
                values["facts"]["EXIF orientation"] = f"{turned}; shown upright"
    elif not record.damage:
        values["reading"] = read_content(record.content, record.kind)
    fields = [] if record.damage else pack.fields.on_page(record.key, values["size"])
    hide = ",".join(sorted(hidden_from(request, pack)))
    total = pack.locations.count
    position = record.position
    return site.page(
        "record",
        pack=pack,
        title=f"{pack.name}, record {position}",
        record=record,
        tile=tile(pack, record),
        stored_parts=0 if record.damage else pack.parts(record),
        previous=address("pack", pack.name, "record", position - 1, hide=hide) if position else "",
        next=""
        if total is not None and position + 1 >= total
        else address("pack", pack.name, "record", position + 1, hide=hide),
        hide=hide,
        fields=fields,
        prepared=prepared(site, values["size"]) if not values["wrong"] else None,
        switches=switches(request, pack, record.objects is not None) if record.is_image else [],
        **values,
    )


def key(site: Site, request: Any) -> Any:
    """Show the page of the record with a key."""
    from starlette.responses import RedirectResponse

    pack = site.pack(request)
    if "key" not in request.query_params:
        raise BadRequest("which key?")
    key = number_from(request, "key", 0, low=-(1 << 63))
    try:
        position = pack.locations.position_of(key)
    except NotCounted:
        pack.locations.wait_for(1 << 62, 3)
        position = pack.locations.position_of(key)
    return RedirectResponse(address("pack", pack.name, "record", position), 303)


def image(site: Site, request: Any) -> Any:
    """Send the picture of a record with its fields, or a placeholder if it cannot be decoded."""
    pack = site.pack(request)
    hidden = hidden_from(request, pack)

    def content(record: ShownRecord) -> Any:
        if not record.is_image:
            raise ImageDecodeError("no image")
        return record.content

    def layers(record: ShownRecord, shape: tuple[int, ...]) -> list[Layer]:
        boxes = record.objects if OF_LABELS not in hidden else None
        own = [] if boxes is None else [Layer("boxes", boxes)]
        return [*pack.fields.layers(record.key, shape, hidden), *own]

    return _picture(site, request, ",".join(sorted(hidden)), content, layers)


def field(site: Site, request: Any) -> Any:
    """Send the picture of a field of a record that is an image itself."""
    pack, name = site.pack(request), request.path_params["name"]
    return _picture(site, request, name, lambda record: pack.fields.picture(name, record.key))


def _picture(
    site: Site,
    request: Any,
    which: str,
    content: Callable[[ShownRecord], Any],
    layers: Callable[[ShownRecord, tuple[int, ...]], list[Layer]] = lambda record, shape: [],
) -> Any:
    """Send a picture of a record, whose address says position and side, and `which` it is."""
    from starlette.responses import Response

    pack, side = site.pack(request), request.path_params["side"]
    if side not in SIDES:
        raise BadRequest(f"pictures have a side of {' or '.join(map(str, SIDES))} pixels")
    position = request.path_params["position"]
    check = zlib.crc32(f"{which} {pack.fields.version}".encode())
    tag = f'"{pack.version}-{check:08x}-{position}-{side}"'
    headers = {"etag": tag, "cache-control": "private, no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    record = pack.record(position)
    try:
        data, kind = site.pictures.picture(
            content(record), side, partial(layers, record), pack.classes, side == SIDES[-1]
        )
    except (ImageDecodeError, FieldError, MemoryError):
        return Response(BROKEN, 200, {"cache-control": "no-store"}, "image/svg+xml")
    return Response(data, 200, headers, kind)


BROKEN = b"""<svg xmlns="http://www.w3.org/2000/svg" width="224" height="224" viewBox="0 0 224 224">
<rect width="224" height="224" fill="#8883"/><path d="M72 84h80v56H72zM72 140l80-56" fill="none"
stroke="#c33" stroke-width="4"/><text x="112" y="172" font-family="sans-serif" font-size="15"
text-anchor="middle" fill="#c33">cannot be decoded</text></svg>"""


def raw(site: Site, request: Any) -> Any:
    """Send the content of a record, or all of it, as a file."""
    from starlette.responses import Response

    pack = site.pack(request)
    record = pack.record(request.path_params["position"])
    if record.damage:
        raise RecordIOError(record.damage, path=pack.path, offset=record.offset)
    whole = request.query_params.get("whole") == "1"
    suffix = ".record" if whole else suffixes_of(record.kind)[0]
    name = f"{pack.name}-{record.position}{suffix}"
    headers = {
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
    }
    data = bytes(record.data if whole else record.content)
    return Response(data, 200, headers, "application/octet-stream")


def identities(site: Site, request: Any) -> Any:
    """Show the identities of a face-recognition pack, each with its first image."""
    pack = site.pack(request)
    if pack.locations.count is None:
        pack.locations.wait_for(1 << 62, 3)
    if pack.identities is None:
        raise KeyNotFoundError("the pack lists no identities", path=pack.path)
    total = len(pack.identities)
    count = number_from(request, "n", USUAL, 1, MOST)
    at = number_from(request, "at", 0)
    at = min(at, max(total - 1, 0))
    shown = []
    for number in range(at, min(at + count, total)):
        images = pack.identity(number)
        shown.append((number, images, pack.locations.position_of(images[0]) if images else None))
    here = ("pack", pack.name, "identities")
    return site.page(
        "identities",
        pack=pack,
        title=f"{pack.name}, identities",
        shown=shown,
        total=total,
        at=at,
        previous=address(*here, at=max(at - count, 0) or "") if at else "",
        next=address(*here, at=at + count) if at + count < total else "",
    )


def search_names(site: Site, request: Any) -> Any:
    """Show classes and files whose names hold some text."""
    pack = site.pack(request)
    text = request.query_params.get("q", "").strip()[:LONGEST_QUERY]
    classes = [
        (label, name)
        for label, name in sorted(pack.classes.items())
        if text and text.casefold() in name.casefold()
    ]
    files: list[tuple[int, str]] = []
    following, share = 0, 1.0
    if text and pack.list is not None:
        start = number_from(request, "at", 0)
        files, following = _files_named(pack, text, start)
        share = following / max(pack.list.size, 1) if following else 1.0
    here = ("pack", pack.name, "search")
    return site.page(
        "search",
        pack=pack,
        title=f"{pack.name}, search",
        query=text,
        classes=classes[:MOST_NAMES],
        more_classes=max(len(classes) - MOST_NAMES, 0),
        files=files,
        share=share,
        next=address(*here, q=text, at=following) if following else "",
    )


def _files_named(pack: ShownPack, text: str, start: int) -> tuple[list[tuple[int, str]], int]:
    """Return id and path of lines of the list from a byte on, and the next byte; 0 at the end."""
    assert pack.list is not None
    needle = text.casefold().encode("utf-8", "surrogateescape")
    latest = time.monotonic() + SECONDS
    files: list[tuple[int, str]] = []
    while start < pack.list.size:
        piece = pack.list.bytes_at(start, PIECE)
        end = piece.rfind(b"\n") + 1 if start + len(piece) < pack.list.size else len(piece)
        end = end or len(piece)
        lines, offset = piece[:end], 0
        lowered = lines.lower()
        while (position := lowered.find(needle, offset)) >= 0:
            stop = lines.find(b"\n", position)
            stop = len(lines) if stop < 0 else stop
            line = lines[lines.rfind(b"\n", 0, position) + 1 : stop]
            offset = stop + 1
            entry = next(entries_among([line]), None)
            if entry is None or text.casefold() not in entry.path.casefold():
                continue
            files.append((entry.id, entry.path))
            if len(files) == MOST_NAMES:
                return files, start + offset
        start += end
        if time.monotonic() > latest:
            return files, start if start < pack.list.size else 0
    return files, 0


def not_counted(site: Site, request: Any, error: NotCounted) -> Any:
    """Show a page that asks for itself again, as long as locations are not known yet."""
    name = request.path_params.get("pack")
    return site.page(
        "counting", 503, pack=site.packs.get(name), title="Counting", share=error.share
    )
