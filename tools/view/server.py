"""Server of `recordio view`: addresses and their pages, and messages about errors.

It listens on the loopback only.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import traceback
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

from recordio.errors import KeyNotFoundError, RecordIOError

from . import browsing, reports, training_pages
from .guard import HOSTS, Guard
from .lines import NotCounted
from .pack import open_packs
from .site import STATIC, BadRequest, Site

__all__ = ["application", "serve"]

LOOPBACK = "127.0.0.1"
#: Seconds for which answers under way are waited for at the end.
PATIENCE = 2

#: Addresses, in the order in which they are tried.
PAGES: dict[str, Callable[[Site, Any], Any]] = {
    "/": browsing.packs,
    "/side": reports.side_by_side,
    "/pack/{pack}/": browsing.grid,
    "/pack/{pack}/record/{position:int}": browsing.record,
    "/pack/{pack}/image/{position:int}/{side:int}": browsing.image,
    "/pack/{pack}/raw/{position:int}": browsing.raw,
    "/pack/{pack}/key": browsing.key,
    "/pack/{pack}/identities": browsing.identities,
    "/pack/{pack}/search": browsing.search_names,
    "/pack/{pack}/numbers": reports.numbers,
    "/pack/{pack}/damage": reports.damage,
    "/pack/{pack}/training": training_pages.training,
    "/pack/{pack}/training/sample": training_pages.sample,
    "/pack/{pack}/training/batch.npy": training_pages.array,
}


def application(site: Site, token: str, port: int) -> Any:
    """Return the pages of a site as an ASGI application; it answers nothing without the token."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import Response
    from starlette.routing import Route

    def bound(page: Callable[[Site, Any], Any]) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:  # not async: it runs in a thread
            try:
                return page(site, request)
            except NotCounted as error:
                return browsing.not_counted(site, request, error)
            except BadRequest as error:
                return site.problem(404, "The address has a mistake", str(error))
            except KeyNotFoundError as error:
                return site.problem(404, "Not found", str(error))
            except RecordIOError as error:
                return site.problem(422, "This cannot be shown", str(error))
            except Exception as error:  # what starlette would say of it has no headers of ours
                traceback.print_exc()
                return site.problem(500, "Something went wrong", f"{type(error).__name__}: {error}")

        return answer

    def static(request: Any) -> Any:
        name = request.path_params["name"]
        if name not in site.static:
            return missing(request, None)
        return Response(site.static[name], 200, {"cache-control": "no-cache"}, STATIC[name])

    def missing(request: Any, error: Any) -> Any:
        return site.problem(404, "There is no such page", "Nothing has this address.")

    routes = [Route(path, bound(page)) for path, page in PAGES.items()]
    routes.append(Route("/pack/{pack}/damage/check", bound(reports.start_check), methods=["POST"]))
    routes.append(Route("/static/{name}", static))
    return Starlette(
        routes=routes,
        exception_handlers={404: missing, 405: missing},
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
            Middleware(Guard, token=token, port=port),
        ],
    )


def serve(
    paths: Sequence[str],
    port: int = 0,
    threads: int | None = None,
    browser: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """Show packs until Ctrl-C.

    `port` 0 is any port of the loopback that is free.  `say` gets the address, with the token, when
    it can be opened.
    """
    import uvicorn

    site = Site(open_packs(paths), threads)
    token = secrets.token_urlsafe(24)
    with contextlib.closing(site), socket.create_server((LOOPBACK, port)) as listening:
        port = listening.getsockname()[1]
        config = uvicorn.Config(
            application(site, token, port),
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
            lifespan="off",
        )
        site.start()
        address = f"http://{LOOPBACK}:{port}/?token={token}"
        say(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[listening])
