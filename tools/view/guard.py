"""Access to the pages: those with the token, on this machine; and limits for their browser.

The first address holds the token, which becomes a cookie; nothing is answered without it, not even
whether there is anything.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

#: Names of this machine that a browser may have used.
HOSTS = ("127.0.0.1", "localhost")
POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
REFUSAL = (
    b"This page needs the address that `recordio view` printed, with its token: open that one "
    b"again.\n"
)


class Guard:
    """ASGI middleware that lets in those whose first address has the token."""

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token, self.port = app, token, port
        self.cookie = f"recordio_view_{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer, or let the application answer."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            await send({"type": "websocket.close", "code": 1008})
            return

        async def headed(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        headers = {name: value for name, value in scope["headers"]}
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and self._is_token(query.get("token", [""])[0]):
            text = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            await _answer(headed, 303, b"", location="/", **{"set-cookie": text})
        elif not self._is_token(self._token_in(headers.get(b"cookie", b""))):
            await _answer(headed, 403, REFUSAL)
        elif not scope["query_string"].isascii():  # browsers send %XX instead
            await _answer(headed, 400, b"An address has characters of ASCII alone.\n")
        elif scope["method"] not in ("GET", "HEAD", "POST"):
            await _answer(headed, 405, b"Only GET, HEAD and POST are answered.\n")
        elif scope["method"] == "POST" and not self._is_own(headers):
            await _answer(headed, 403, b"Another page asked for this.\n")
        else:
            await self.app(scope, receive, headed)

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self.token.encode())

    def _token_in(self, text: bytes) -> str:
        try:
            morsel = SimpleCookie(text.decode("latin-1")).get(self.cookie)
        except CookieError:
            return ""
        return "" if morsel is None else morsel.value

    def _is_own(self, headers: dict[bytes, bytes]) -> bool:
        """Return True if a form of ours was sent: browsers say where a form came from."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        return origin in {f"http://{host}:{self.port}" for host in HOSTS}


async def _answer(send: Any, status: int, body: bytes, **headers: str) -> None:
    shown = {"content-type": "text/plain; charset=utf-8", "cache-control": "no-store", **headers}
    pairs = [(name.encode(), value.encode()) for name, value in shown.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
