"""Pages about whole packs: damage, and packs side by side."""

from __future__ import annotations

from typing import Any

from recordio.errors import KeyNotFoundError

from .browsing import tile
from .damage import Check
from .site import BadRequest, Site, address, number_from

#: Rows on a page: usually, and at most.
SHOWN, MOST = 20, 100


def damage(site: Site, request: Any) -> Any:
    """Show the findings of a check, or how far it is."""
    pack = site.pack(request)
    check = site.kept(Check, pack)
    return site.page("damage", pack=pack, title=f"{pack.name}, damage", check=check)


def start_check(site: Site, request: Any) -> Any:
    """Begin a check."""
    from starlette.responses import RedirectResponse

    pack = site.pack(request)
    site.kept(Check, pack).start(request.query_params.get("decode") == "1")
    return RedirectResponse(address("pack", pack.name, "damage"), 303)


def side_by_side(site: Site, request: Any) -> Any:
    """Show the records of several packs with the same position or key, one row each."""
    names = request.query_params.getlist("pack") or list(site.packs)
    if unknown := [name for name in names if name not in site.packs]:
        raise BadRequest(f"no pack is called {unknown[0][:80]!r}")
    chosen = [site.packs[name] for name in names]
    by = "key" if request.query_params.get("by") == "key" else "position"
    at = number_from(request, "at", 0)
    count = number_from(request, "n", SHOWN, 1, MOST)
    if by == "key":
        for pack in chosen:
            pack.locations.wait_for(1 << 62, 3)
        locations = chosen[0].locations.from_key(at, count + 1)
        numbers = [location.key for location in locations[:count]]
        following = locations[count].key if len(locations) > count else None
    else:
        numbers = list(range(at, at + count))
        following = at + count
    rows = []
    for number in numbers:
        row = [_one(pack, number, by) for pack in chosen]
        if any(row):
            rows.append((number, row))
    if not rows or len(rows) < count:
        following = None
    query = "&".join(f"pack={name}" for name in names)

    def page_at(number: int | None) -> str:
        return "" if number is None else f"/side?{query}&by={by}&at={number}"

    return site.page(
        "side",
        title="Side by side",
        chosen=chosen,
        rows=rows,
        by=by,
        at=at,
        previous=page_at(max(at - count, 0)) if at > 0 else "",
        next=page_at(following),
    )


def _one(pack: Any, number: int, by: str) -> Any:
    try:
        position = pack.locations.position_of(number) if by == "key" else number
        return tile(pack, pack.record(position))
    except KeyNotFoundError:
        return None
