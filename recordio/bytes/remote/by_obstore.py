"""Objects through obstore: the server checks conditions on the ETag."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from recordio.bytes.remote.library import (
    CLOUDS,
    FIRST_DELAY,
    LONGEST_DELAY,
    Access,
    Interrupted,
    Library,
    PartWriter,
    Version,
    no_ranges,
    object_was_replaced,
    request_seconds,
)

if TYPE_CHECKING:
    import asyncio

SCHEMES = (*CLOUDS, "http", "https")
#: Parts under way at once.
AT_ONCE = 4


def is_installed() -> bool:
    """Find out whether obstore can be imported."""
    try:
        import obstore  # noqa: F401
    except ImportError:
        return False
    return True


class Obstore(Library):
    """An object or a folder of a cloud, or an object on a web server."""

    repeats_changes = True
    #: Text takes the options of fsspec's file systems, which obstore does not know.
    reads_text = False

    def __init__(self, url: str, access: Access) -> None:
        import obstore
        from obstore.exceptions import NotModifiedError, NotSupportedError, PreconditionError

        super().__init__(url, access)
        self._obstore = obstore
        self._changed_errors = (PreconditionError, NotModifiedError)
        self._no_ranges_error = NotSupportedError
        self._store, self._path = obstore_at(url, access)

    @classmethod
    def reaches(cls, url: str) -> bool:
        return urlsplit(url).scheme in SCHEMES and is_installed()

    def head(self) -> Version:
        facts = self._obstore.head(self._store, self._path)
        tag = facts["e_tag"]
        self._match = tag if tag and not tag.startswith("W/") else None
        return _version_of(facts)

    def read(self, start: int, end: int, version: Version) -> Any:
        options: dict[str, Any] = {"range": (start, end)}
        if self._match is not None:
            options["if_match"] = self._match
        try:
            answer = self._obstore.get(self._store, self._path, options=options)
        except self._changed_errors:
            raise object_was_replaced(self._url) from None
        except self._no_ranges_error:
            raise no_ranges(self._url, start) from None
        if _version_of(answer.meta) != version:
            raise object_was_replaced(self._url)
        return answer.bytes()

    def names(self) -> list[str]:
        return [item["path"].rpartition("/")[2] for item in self._listed()["objects"]]

    def _listed(self) -> Any:
        return self._obstore.list_with_delimiter(self._store, self._path.rstrip("/") or None)

    @classmethod
    def is_folder(cls, url: str, access: Access) -> bool:
        listing = cls(url, access)._listed()
        return bool(listing["objects"] or listing["common_prefixes"])

    def copy(self, target: str) -> None:
        store, path = obstore_at(self._url, self._access, write=True)
        self._obstore.copy(store, path, obstore_at(target, self._access)[1])

    def delete(self) -> None:
        self._obstore.delete(*obstore_at(self._url, self._access, write=True))

    def writer(self, part: int) -> PartWriter:
        return _ObstoreWriter(*obstore_at(self._url, self._access, write=True), part)


def _version_of(facts: Mapping[str, Any]) -> Version:
    """Take the version from the facts that obstore gives of an object."""
    tag = facts["e_tag"] or f"changed {facts['last_modified'].isoformat()}"
    return Version(facts["size"], tag)


def obstore_at(url: str, access: Access, write: bool = False) -> tuple[Any, str]:
    """Make the store of a URL, and name the path in it.

    With `write` for requests that change objects: those the library itself makes again.
    """
    from obstore.store import from_url

    scheme, _, rest = url.partition("://")
    server, _, path = rest.partition("/")
    root = f"{scheme}://{server}"
    keywords: dict[str, Any] = {}
    seconds = access.timeout if write else request_seconds(access)
    client: dict[str, Any] = {"allow_http": True, "timeout": timedelta(seconds=seconds)}
    client.update(access.options.get("client_options", {}))
    if scheme in ("http", "https"):
        root, path = (url, "") if "?" in path else (root, unquote(path))
    else:
        config = {n: v for n, v in access.options.items() if n != "client_options"}
        keywords["config"] = config or None
    retries: dict[str, Any] = {"max_retries": 0}
    if write:
        longest = timedelta(seconds=LONGEST_DELAY)
        retries = {
            "max_retries": 1_000_000,
            "retry_timeout": timedelta(seconds=access.timeout),
            "backoff": {
                "init_backoff": timedelta(seconds=FIRST_DELAY), "max_backoff": longest, "base": 2
            },
        }  # fmt: skip
    return from_url(root, client_options=client, retry_config=retries, **keywords), path


class _ObstoreWriter:
    """Several parts at once, which obstore itself sends again."""

    def __init__(self, store: Any, path: str, part: int) -> None:
        import obstore

        self._writer = obstore.open_writer_async(
            store, path, buffer_size=part, max_concurrency=AT_ONCE
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._begun = self._interrupted = False

    def _run(self, call: Callable[[], Awaitable[Any]], whole: bool = False) -> None:
        """Wait for what a call gives; `interrupt` ends that unless it has to be done as a whole."""
        if self._loop is None:
            from asyncio import new_event_loop  # takes longer to import than all else here

            self._loop = new_event_loop()

        async def run() -> None:
            await call()

        task = self._loop.create_task(run())
        self._task = None if whole else task
        if self._interrupted and not whole:
            task.cancel()
        self._loop.run_until_complete(task)

    def write(self, part: bytearray) -> None:
        # The first one begins the upload; ended inside of that it could not be aborted.
        self._run(lambda: self._writer.write(part), whole=not self._begun)
        self._begun = True

    def finish(self, rest: bytearray) -> None:
        if rest:
            self.write(rest)
        self._run(self._writer.flush)  # all but the rest has arrived, and can be aborted
        self._run(self._writer.close)
        self._close()

    def abort(self) -> None:
        try:
            if self._loop is not None:
                self._run(
                    lambda: self._writer.__aexit__(Interrupted, Interrupted(), None), whole=True
                )
        finally:
            self._close()

    def _close(self) -> None:
        if self._loop is not None:
            self._loop.close()

    def interrupt(self) -> None:
        self._interrupted = True
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(self._task.cancel)
