"""Packs, templates and addresses for all pages, and what a page keeps between requests."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from iterators.images.augment.pipelines.processor_rules import ProcessorRule

from ..payloads import number_text
from .pack import ShownPack
from .pictures import Pictures

HERE = Path(__file__).parent
#: Files that pages refer to; no other is ever sent.
STATIC = {
    "view.css": "text/css; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
LARGEST = 1 << 62

Kept = TypeVar("Kept")


class BadRequest(ValueError):
    """Address that no page has."""


class Site:
    """Packs that are shown and what belongs to them."""

    def __init__(
        self,
        packs: Mapping[str, ShownPack],
        threads: int | None = None,
        rule: ProcessorRule | None = None,
    ) -> None:
        import jinja2

        self.packs = dict(packs)
        #: Of the image processor whose tiles and patches are shown.
        self.rule = rule
        self.pictures = Pictures(threads)
        #: Names and texts of the pages of a pack that every page leads to.
        self.navigation: list[tuple[str, str]] = []
        self._kept: dict[tuple[Callable[..., Any], str], Any] = {}
        self._lock = threading.Lock()
        self.static = {name: (HERE / "static" / name).read_bytes() for name in STATIC}
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals.update(site=self, address=address)
        self._templates.filters.update(
            number=lambda value: f"{value:,}",
            size=bytes_text,
            label=number_text,
            percent=lambda share: f"{share:.0%}",
        )

    def start(self) -> None:
        """Begin the work in the background."""
        for pack in self.packs.values():
            pack.start()

    def close(self) -> None:
        """End it."""
        for pack in self.packs.values():
            pack.close()
        for close in (getattr(kept, "close", None) for kept in self._kept.values()):
            if close is not None:
                close()

    def kept(self, make: Callable[..., Kept], pack: ShownPack | None = None) -> Kept:
        """Return what a page keeps, of a pack or of all, made when it is first asked for.

        It is closed with the site if it can be.
        """
        key = make, "" if pack is None else pack.name
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make() if pack is None else make(pack)
            return self._kept[key]

    def pack(self, request: Any) -> ShownPack:
        """Return the pack that an address names; names are looked up, never opened."""
        name = request.path_params["pack"]
        if name not in self.packs:
            raise BadRequest(f"no pack is called {name[:80]!r}")
        return self.packs[name]

    def page(self, template: str, status: int = 200, **values: Any) -> Any:
        """Make an answer of a template; what is put into it is escaped."""
        from starlette.responses import Response

        values.setdefault("pack", None)
        text = self._templates.get_template(f"{template}.html").render(**values)
        return Response(
            text.encode("utf-8", "replace"),  # names of files may be any bytes
            status,
            {"cache-control": "no-store"},
            "text/html; charset=utf-8",
        )

    def problem(self, status: int, title: str, text: str, **values: Any) -> Any:
        """Make a page that says what is wrong."""
        return self.page("problem", status, title=title, text=text, **values)


def address(*parts: Any, **parameters: Any) -> str:
    """Return the address of a page, from parts of its path and parameters that are not empty."""
    shown = {name: value for name, value in parameters.items() if value not in ("", None)}
    query = urlencode(shown, errors="replace")
    return "/" + "/".join(map(str, parts)) + (f"?{query}" if query else "")


def number_from(request: Any, name: str, default: int, low: int = 0, high: int = LARGEST) -> int:
    """Return a whole number among the parameters of an address; BadRequest if there is none."""
    text = request.query_params.get(name, "").strip().replace(",", "")
    if not text:
        return default
    try:
        number = int(text) if len(text) < 25 else None
    except ValueError:
        number = None
    if number is None or not low <= number <= high:
        raise BadRequest(f"{name}={text[:40]!r}: expected a whole number from {low} to {high}")
    return number


def bytes_text(count: float) -> str:
    """Return a number of bytes for people."""
    if count < 1000:
        return f"{count:g} bytes"
    step = min(int(math.log10(count) / 3), 3)
    return f"{count / 1000**step:.3g} {('', 'kB', 'MB', 'GB')[step]}"
