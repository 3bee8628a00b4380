"""Ranges by the libraries behind fsspec that show what a server says about the bytes it sends.

``cat_file`` of fsspec returns bytes and nothing else, so bytes of another place or of another
version of the object would pass for those that were asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

__all__ = ["RangeAnswer", "range_reader"]


class RangeAnswer(NamedTuple):
    """What a server says about the bytes that follow.

    Attributes
    ----------
    content_range : str
        ``bytes FIRST-LAST/SIZE``; empty if it says nothing.
    etag, changed : str
        The ETag of the object, and the time of its last change; empty if it says nothing.
    """

    content_range: str
    etag: str
    changed: str

    def is_of(self, tag: str) -> bool | None:
        """Whether they are of a version, as `Version` has it; None if that cannot be said.

        Examples
        --------
        >>> answer = RangeAnswer("bytes 0-9/100", '"7f"', "")
        >>> answer.is_of('"7f"'), answer.is_of('"80"'), answer.is_of("Sat, 21 Nov 2026")
        (True, False, None)
        """
        if tag and tag in (self.etag, self.changed):
            return True
        return False if self.etag and tag.startswith(_ETAG) else None


#: How ETags begin, and times do not.
_ETAG = ('"', 'W/"')


#: ``check(answer)`` is called before the bytes are read; what it raises ends the request.
Check = Callable[[RangeAnswer], None]
#: ``read(files, path, start, end, check)`` gives the bytes ``[start, end)``.
RangeReader = Callable[[Any, str, int, int, Check], Awaitable[bytes]]


def range_reader(files: Any) -> RangeReader | None:
    """The function that reads ranges by a file system of fsspec; None if it only has ``cat_file``.

    Examples
    --------
    >>> import fsspec
    >>> range_reader(fsspec.filesystem("memory")) is None
    True
    """
    names = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if not files.async_impl:
        return None
    return _read_http if "http" in names else _read_s3 if "s3" in names else None


async def _read_http(files: Any, url: str, start: int, end: int, check: Check) -> bytes:
    headers = {**files.kwargs.get("headers", {}), "Range": f"bytes={start}-{end - 1}"}
    headers["Accept-Encoding"] = "identity"
    session = await files.set_session()
    asked = session.get(files.encode_url(url), **{**files.kwargs, "headers": headers})
    async with asked as answer:
        files._raise_not_found_for_status(answer, url)
        found = answer.headers
        said = found.get("Content-Range", "")
        if answer.status != 206 and answer.content_length is not None:  # all of the object
            said = f"bytes 0-{answer.content_length - 1}/{answer.content_length}"
        check(RangeAnswer(said, found.get("ETag", ""), found.get("Last-Modified", "")))
        data: bytes = await answer.read()
        return data


async def _read_s3(files: Any, path: str, start: int, end: int, check: Check) -> bytes:
    bucket, key, version = files.split_path(path)
    which = {} if version is None else {"VersionId": version}
    answer = await files._call_s3(
        "get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}", **which
    )
    body = answer["Body"]
    try:
        said, changed = answer.get("ContentRange", ""), str(answer.get("LastModified", ""))
        check(RangeAnswer(said, answer.get("ETag", ""), changed))
        data: bytes = await body.read()
        return data
    finally:
        body.close()
