"""The pages of `recordio view`: what browsers ask for, and packs of any content."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from urllib.parse import quote_from_bytes, unquote

from recordio import IRHeader, RecordIOError, pack
from recordio.frames.encoder import encode
from recordio.operations.expression import NAMES
from recordio.tools.view.browsing import SIDES
from recordio.tools.view.calls import KINDS
from recordio.tools.view.damage import Check
from recordio.tools.view.server import PAGES

from .mutate import EDGES, move_item
from .target import Target, clear_folder, scratch

TOKEN, PORT = "the-token", 8642
HEADERS = [
    (b"host", b"127.0.0.1:%d" % PORT),
    (b"cookie", f"recordio_view_{PORT}={TOKEN}".encode()),
    (b"origin", b"http://127.0.0.1:%d" % PORT),
]
#: Requests of one input, and bytes of an answer; none is larger than twice this.
MOST_REQUESTS, LARGEST = 8, 8 << 20
#: Pieces that are no records: the files beside the pack, and bytes behind the last record.
BESIDE = {b"#classes\n": "a.classes.txt", b"#list\n": "a.lst", b"#index\n": "a.idx"}
BETWEEN, TAIL = b"\n--\n", b"#tail\n"
PARAMETERS = [
    "at", "before", "n", "where", "by", "key", "identity", "record", "in_epoch", "batch", "show",
    "note", "call", "kind", "whole", "q", "pack", "slot", "decode", "data_shape", "batch_size",
    "shuffle", "resize", "rand_crop", "max_rotate_angle", "dtype", "layout", "mean_r", "recipe",
    "auto_augment", "fill_value", "seed", "views", "token",
]  # fmt: skip
VALUES = (
    *(str(number) for number in EDGES),
    *("-1", "1.5", "x", "None", "(3, 8, 8)", "(3, 100000, 100000)", "[", "'", "nan", "<b>", "\0"),
    *("label == 1", "decodable and width > 1", "bytes // 0 > 1", "7 in labels", "a", "b"),
    *("ImageRecordIter(batch_size=2, data_shape=(3, 8, 8))", "{'a': 1}", *KINDS, *NAMES),
)


_templates: dict[int, Any] = {}


def parts_of(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """Requests, one in a line, and behind a blank line the records."""
    lines, _, contents = data.partition(b"\n\n")
    return lines.split(b"\n")[:MOST_REQUESTS], contents.split(BETWEEN) if contents else []


def write_pack(pieces: list[bytes]) -> str:
    """A pack of these records, every second one with an image header; its path."""
    clear_folder(scratch("pages"))
    records, tail = [], b""
    for piece in pieces:
        start = next((start for start in (*BESIDE, TAIL) if piece.startswith(start)), b"")
        rest = piece[len(start) :]
        if start == TAIL:
            tail = rest
        elif start:
            scratch(f"pages/{BESIDE[start]}", rest)
        else:
            number = len(records)
            header = IRHeader(0, number // 2 % 3, number, 0)
            records.append(encode(piece if number % 2 else pack(header, piece)))
    return scratch("pages/a.rec", b"".join(records) + tail)


async def answer(application: Any, line: bytes) -> tuple[int, int]:
    """Status and size of the answer to one request, such as ``GET /pack/a/?at=0``."""
    method, _, target = line.partition(b" ")
    path, _, query = target.partition(b"?")
    status = size = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, size
        status = message.get("status", status)
        size += len(message.get("body", b""))

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST" if method == b"POST" else "GET",
        "scheme": "http",
        "path": unquote(path.decode("latin-1"), errors="replace"),
        "raw_path": path,
        "root_path": "",
        "query_string": query,
        "headers": HEADERS,
        "server": ("127.0.0.1", PORT),
        "client": ("127.0.0.1", 1),
    }
    await application(scope, receive, send)
    return status, size


def compile_once(site: Any) -> None:
    """Have the templates that another site compiled, which takes longer than all else."""
    site._templates = _templates.setdefault(0, site._templates)
    site._templates.globals["site"] = site


async def ask(site: Any, application: Any, requests: list[bytes]) -> None:
    """All requests, one after the other."""
    for line in requests:
        status, size = await answer(application, line)
        assert 200 <= status < 500, (status, line)
        assert size <= LARGEST, (size, line)
        for shown in site.packs.values():
            site.kept(Check, shown).join()


def check(data: bytes) -> None:
    """Every request has an answer that is no failure, of bounded size."""
    from recordio.tools.view.pack import open_packs
    from recordio.tools.view.server import application
    from recordio.tools.view.site import Site

    requests, pieces = parts_of(data)
    site = Site(open_packs([write_pack(pieces)]), threads=1)
    try:
        compile_once(site)
        for shown in site.packs.values():
            shown.locations.survey(lambda: False)
            if shown.list is not None:
                shown.list.survey()
        asyncio.run(ask(site, application(site, TOKEN, PORT), requests))
    finally:
        site.close()


def request(draw: random.Random) -> bytes:
    """A request for one of the pages."""
    path = draw.choice([*(page.address for page in PAGES), "/static/view.css", "/x"])
    path = path.replace("{pack}", draw.choice("aaaaab"))
    for name in ("{position:int}", "{side:int}"):
        path = path.replace(name, str(draw.choice([0, 0, 1, 2, 3, *SIDES * 4, *EDGES])))
    method = "POST" if path.endswith("/check") else "GET"
    names = [draw.choice(PARAMETERS) for _ in range(draw.choice([0, 1, 1, 2, 4]))]
    query = b"&".join(f"{name}=".encode() + value(draw) for name in names)
    return f"{method} {path}".encode() + (b"?" + query if query else b"")


def value(draw: random.Random) -> bytes:
    """The value of a parameter."""
    if draw.random() < 0.1:
        return quote_from_bytes(draw.randbytes(draw.randrange(12))).encode()
    return quote_from_bytes(draw.choice(VALUES).encode()).encode()


def change(data: bytes, draw: random.Random) -> bytes:
    """Another request, or records or requests gone, twice or exchanged."""
    requests, pieces = parts_of(data)
    kind = draw.randrange(6)
    if kind < 3:
        requests.insert(draw.randrange(len(requests) + 1), request(draw))
    elif kind == 3:
        requests = move_item(requests, draw)
    elif kind == 4:
        pieces = move_item(pieces, draw)
    elif requests:
        at = draw.randrange(len(requests))
        joint = b"&" if b"?" in requests[at] else b"?"
        more = f"{draw.choice(PARAMETERS)}=".encode()
        requests[at] += joint + more + value(draw)
    return b"\n".join(requests[-MOST_REQUESTS:]) + b"\n\n" + BETWEEN.join(pieces)


PAGES_OF_PACKS = Target(
    "pages", check, change, words=(BETWEEN, *BESIDE, TAIL), errors=(RecordIOError,)
)
