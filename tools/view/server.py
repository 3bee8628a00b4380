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
from typing import Any, NamedTuple

from iterators.images.augment.pipelines.processor_rules import ProcessorRule
from recordio.errors import KeyNotFoundError, RecordIOError

from . import browsing, reports, statistics, training
from .guard import HOSTS, Guard
from .lines import NotCounted
from .pack import open_packs
from .site import STATIC, BadRequest, Site

LOOPBACK = "127.0.0.1"
#: Seconds for which answers under way are waited for at the end.
PATIENCE = 2


class Page(NamedTuple):
    """Address and what answers it; `text` is that of a link on every page of a pack."""

    address: str
    answer: Callable[[Site, Any], Any]
    text: str = ""
    method: str = "GET"


#: In the order in which addresses are tried, and links shown.
PAGES = (
    Page("/", browsing.packs),
    Page("/side", reports.side_by_side),
    Page("/pack/{pack}/", browsing.grid, "Browse"),
    Page("/pack/{pack}/record/{position:int}", browsing.record),
    Page("/pack/{pack}/image/{position:int}/{side:int}", browsing.image),
    Page("/pack/{pack}/field/{name}/{position:int}/{side:int}", browsing.field),
    Page("/pack/{pack}/raw/{position:int}", browsing.raw),
    Page("/pack/{pack}/key", browsing.key),
    Page("/pack/{pack}/identities", browsing.identities),
    Page("/pack/{pack}/search", browsing.search_names),
    Page("/pack/{pack}/numbers", statistics.numbers, "Numbers"),
    Page("/pack/{pack}/training", training.training, "Training"),
    Page("/pack/{pack}/training/sample", training.sample),
    Page("/pack/{pack}/training/batch.npy", training.array),
    Page("/pack/{pack}/damage", reports.damage, "Damage"),
    Page("/pack/{pack}/damage/check", reports.start_check, method="POST"),
)


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

    site.navigation = [(page.address.rpartition("/")[2], page.text) for page in PAGES if page.text]
    routes = [Route(page.address, bound(page.answer), methods=[page.method]) for page in PAGES]
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
    rule: ProcessorRule | None = None,
) -> None:
    """Show packs until Ctrl-C.

    `port` 0 is any port of the loopback that is free.  `say` gets the address, with the token, when
    it can be opened.
    """
    import uvicorn

    site = Site(open_packs(paths), threads, rule)
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
