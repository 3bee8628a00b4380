"""Packs, work in the background, templates and addresses for all pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ..payloads import number_text
from .damage import Check
from .pack import ShownPack
from .pictures import Pictures
from .statistics import Statistics, bytes_text
from .training import Trainer

__all__ = ["BadRequest", "Site", "address", "number_from"]

HERE = Path(__file__).parent
#: Files that pages refer to; no other is ever sent.
STATIC = {
    "view.css": "text/css; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
LARGEST = 1 << 62


class BadRequest(ValueError):
    """Address that no page has."""


class Site:
    """Packs that are shown and what belongs to them."""

    def __init__(self, packs: Mapping[str, ShownPack], threads: int | None = None) -> None:
        import jinja2

        self.packs = dict(packs)
        self.pictures = Pictures(threads)
        self.statistics = {name: Statistics(pack) for name, pack in self.packs.items()}
        self.checks = {name: Check(pack) for name, pack in self.packs.items()}
        self.trainer = Trainer()
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
        self.trainer.close()

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
