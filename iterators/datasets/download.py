"""The folder in which prepared data is kept, and the files in it: made once, or fetched once.

A download that was cut off goes on where it ended, and a file appears under its name only when it
is whole.  Nothing is unpacked.  pooch 1.9 does the second only: it begins a broken download again,
and several processes that need one file each fetch it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import urllib.parse
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from recordio.bytes.files import filesystem
from recordio.bytes.temporary import Temporary

#: Looked at in this order, once, when this module is imported.
VARIABLES = ("ITERATORS_DATASET_ROOT", "CHAINER_DATASET_ROOT")

_root = next(
    (os.environ[name] for name in VARIABLES if os.environ.get(name)),
    os.path.join(os.path.expanduser("~"), ".chainer", "dataset"),
)


def get_dataset_root() -> str:
    """Return the folder in which datasets are kept.

    It is the last one given to `set_dataset_root`, else the environment variable
    ``ITERATORS_DATASET_ROOT``, else ``CHAINER_DATASET_ROOT``, else ``~/.chainer/dataset``, where
    data that Chainer downloaded is found.  The variables are read once, when datasets are first
    used.

    Returns
    -------
    str

    Examples
    --------
    >>> isinstance(get_dataset_root(), str)
    True
    """
    return _root


def set_dataset_root(path: str | os.PathLike[str]) -> None:
    """Choose the folder in which datasets are kept, for this process.

    Parameters
    ----------
    path : path
        The folder; it is made when it is needed.

    Examples
    --------
    >>> before = get_dataset_root()
    >>> set_dataset_root("/data/sets")
    >>> get_dataset_root()
    '/data/sets'
    >>> set_dataset_root(before)
    """
    global _root
    _root = os.fspath(path)


def get_dataset_directory(dataset_name: str, create_directory: bool = True) -> str:
    """Return the folder of one dataset below the root.

    Parameters
    ----------
    dataset_name : str
        May contain slashes.
    create_directory : bool
        Make the folder if it does not exist.

    Returns
    -------
    str

    Raises
    ------
    OSError
        If the folder cannot be made, or something else has its name.

    Examples
    --------
    >>> get_dataset_directory("me/digits", create_directory=False).endswith("digits")
    True
    """
    path = os.path.join(get_dataset_root(), dataset_name)
    if create_directory:
        os.makedirs(path, exist_ok=True)
    return path


def cache_or_load_file(
    path: str | os.PathLike[str],
    creator: Callable[[str], Any],
    loader: Callable[[str], Any],
) -> Any:
    """Load a file if it exists, else make it.

    Parameters
    ----------
    path : path
        The file; its folder is made if there is none.
    creator : callable
        ``creator(temporary_path)`` writes the file and returns its content.  The path does not
        exist yet, lies in a new folder beside `path`, and has the same name.
    loader : callable
        ``loader(path)`` returns the content of an existing file.

    Returns
    -------
    object
        What `creator` or `loader` returned.

    Raises
    ------
    RuntimeError
        If the root folder of the datasets cannot be made.
    FileNotFoundError
        If `creator` wrote no file.
    OSError
        If the file cannot be put in place.

    Notes
    -----
    The file appears whole or not at all, by a rename on one file system.  Several processes may
    call this at once for one path: more than one may then run its `creator`; the first to finish
    provides the file, and the others return their own content without storing it.  An exception,
    Ctrl-C included, leaves nothing behind.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> before = get_dataset_root()
    >>> set_dataset_root(tempfile.mkdtemp())
    >>> path = pathlib.Path(get_dataset_directory("numbers"), "squares.npy")
    >>> def make(temporary):
    ...     squares = np.arange(4) ** 2
    ...     np.save(temporary, squares)
    ...     return squares
    >>> cache_or_load_file(path, make, np.load), cache_or_load_file(path, make, np.load)
    (array([0, 1, 4, 9]), array([0, 1, 4, 9]))
    >>> set_dataset_root(before)
    """
    path = os.path.abspath(path)
    if os.path.exists(path):
        return loader(path)
    root = get_dataset_root()
    try:
        os.makedirs(root, exist_ok=True)
    except OSError as error:
        raise RuntimeError(f"cannot make the root folder of the datasets, {root}") from error
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = Temporary(path, folder=True)
    try:
        temporary.make()
        file = os.path.join(temporary.path, name)
        content = creator(file)
        if not os.path.exists(file):
            raise FileNotFoundError(f"the creator wrote no file {file}, which was to become {path}")
        with lock(os.path.join(root, "_create_lock")):
            if not os.path.exists(path):
                os.replace(file, path)
    finally:
        temporary.remove()
    return content


def lock(path: str) -> Any:
    """Return a lock between processes and threads, for a ``with``; freed by the system at worst.

    Waiting can be interrupted with Ctrl-C.
    """
    import filelock

    return filelock.FileLock(path, thread_local=False)


CHUNK = 1 << 18
#: Seconds without a byte after which a server counts as gone.
TIMEOUT = 60.0
#: Digest by the number of its hexadecimal digits.
DIGESTS = {32: "md5", 40: "sha1", 64: "sha256", 96: "sha384", 128: "sha512"}


class DigestError(ValueError):
    """A file with another digest than the one that was given."""


#: Its name before `recordio` had one like it, under which scripts catch it.
ChecksumError = DigestError


def cached_download(url: str, *, checksum: str | None = None, progress: bool | None = None) -> str:
    """Fetch a file unless it was fetched before.

    Parameters
    ----------
    url : str
        ``http:``, ``https:`` and ``file:`` need nothing else; every other scheme that fsspec knows
        (``s3:``, ``gs:``, ``ftp:``, ``memory:``, ...) needs fsspec and the driver it names.
    checksum : str, optional
        Hexadecimal digest of the content, alone or after its kind: ``"sha256:..."``.  MD5, SHA-1,
        SHA-256, SHA-384 and SHA-512 are told apart by length.  A file that is in the cache is
        checked as well, and fetched again if it differs.
    progress : bool, optional
        Whether to show a bar on the standard error stream; by default if that is a terminal.

    Returns
    -------
    str
        Path of the file: ``_dl_cache/`` and the MD5 of the URL, below `get_dataset_root`.

    Raises
    ------
    DigestError
        If the content has another digest; it is not kept.
    ValueError
        If `url` has no scheme, or `checksum` is no digest.
    OSError
        If the server, the network or the disk fails.  What has arrived is kept, and the next call
        goes on from there, unless the disk is full.
    ImportError
        If the URL needs a package that is not installed.

    Notes
    -----
    Processes and threads that ask for one URL at the same time wait for each other, and one of them
    fetches it.  Going on with a part needs a server that names the version of a file (``ETag`` or
    ``Last-Modified``) and knows ranges; from others the file is fetched from its beginning.  A
    connection that breaks is made again as long as every attempt brings further bytes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from iterators import get_dataset_root, set_dataset_root
    >>> before = get_dataset_root()
    >>> set_dataset_root(tempfile.mkdtemp())
    >>> source = pathlib.Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = source.write_bytes(b"data")
    >>> path = cached_download(source.as_uri(), checksum="md5:8d777f385d3dfec8815d20f7496026dc")
    >>> pathlib.Path(path).read_bytes()
    b'data'
    >>> set_dataset_root(before)
    """
    digest = None if checksum is None else _parse_digest(checksum)
    scheme = urllib.parse.urlsplit(url).scheme
    if len(scheme) < 2:  # one letter is a drive of Windows
        raise ValueError(f"{url!r} is not a URL: it has no scheme such as https")
    folder = os.path.join(get_dataset_root(), "_dl_cache")
    os.makedirs(folder, exist_ok=True)
    target = os.path.join(folder, hashlib.md5(url.encode(), usedforsecurity=False).hexdigest())
    if digest is None and os.path.exists(target):
        return target
    with lock(target + ".lock"):
        if os.path.exists(target) and (
            digest is None or _digest_of(target, digest.kind) == digest.value
        ):
            return target
        part = target + ".partial"
        fetch = _fetch_http if scheme in ("http", "https") else _fetch_file
        fetch(url, part, progress)
        if digest is not None and (actual := _digest_of(part, digest.kind)) != digest.value:
            _remove(part, part + ".json")
            raise DigestError(
                f"{url}: the {digest.kind} of what arrived is {actual}, not {digest.value}; it was "
                "changed on its way or at its source"
            )
        os.replace(part, target)
        _remove(part + ".json")
    return target


class _Digest(NamedTuple):
    kind: str
    value: str


def _parse_digest(text: str) -> _Digest:
    kind, _, value = text.strip().lower().rpartition(":")
    expected = DIGESTS.get(len(value))
    if expected is None or set(value) - set("0123456789abcdef") or kind not in ("", expected):
        raise ValueError(f"checksum={text!r}: expected hexadecimal MD5, SHA-1 or SHA-2")
    return _Digest(expected, value)


def _digest_of(path: str, kind: str) -> str:
    digest = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


class _Part:
    """The bytes of a file that have arrived, and its version.

    The version is written beside it before the first byte, so that bytes of two versions never come
    into one file.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.note = path + ".json"

    def state(self) -> tuple[str | None, int]:
        """Return the version and number of the bytes that can be kept."""
        try:
            with open(self.note, encoding="utf-8") as file:
                version = json.load(file)["version"]
            return (version, os.path.getsize(self.path)) if version else (None, 0)
        except (OSError, ValueError, KeyError, TypeError):
            return None, 0

    def open(self, version: str | None, start: int) -> BinaryIO:
        """Return the file, to be written from `start` on."""
        if start:
            return open(self.path, "r+b")
        _remove(self.path)
        with open(self.note, "w", encoding="utf-8") as note:
            json.dump({"version": version}, note)
        return open(self.path, "wb")

    def receive(
        self,
        source: Any,
        version: str | None,
        start: int,
        total: int | None,
        bar: Callable[..., Any],
    ) -> int:
        """Append everything that the source gives; the number of bytes there are then."""
        done = start
        try:
            with self.open(version, start) as file, bar(start, total) as display:
                file.seek(start)
                while block := source.read(CHUNK):
                    file.write(block)
                    done += len(block)
                    display.update(len(block))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                _remove(self.path, self.note)  # what is kept would keep the disk full
            raise
        return done


def _bar(url: str, progress: bool | None, start: int, total: int | None) -> Any:
    """Return a progress bar; called only when bytes come."""
    from tqdm import tqdm

    return tqdm(
        desc=urllib.parse.urlsplit(url).path.rpartition("/")[2] or url,
        initial=start,
        total=total,
        unit="B",
        unit_scale=True,
        unit_divisor=1024,
        disable=None if progress is None else not progress,
    )


def _fetch_http(url: str, path: str, progress: bool | None) -> None:
    from http.client import HTTPException

    part, bar = _Part(path), functools.partial(_bar, url, progress)
    while True:
        version, have = part.state()
        try:
            with _request(url, version, have) as response:
                start, total = _range_of(response, have)
                if start:
                    now = version
                else:
                    now = response.headers.get("ETag")
                    if now is None or now.startswith("W/"):  # which does not promise equal bytes
                        now = response.headers.get("Last-Modified")
                done = part.receive(response, now, start, total, bar)
        except (ConnectionError, TimeoutError, HTTPException) as error:
            reason: Exception = error
        else:
            if total is None or done == total:
                return
            reason = ConnectionError(f"{done} of {total} bytes")
        if part.state()[1] <= have:
            raise ConnectionError(
                f"{url}: the connection broke ({reason}); call again to go on"
            ) from reason


def _request(url: str, version: str | None, have: int) -> Any:
    import urllib.error
    import urllib.request

    # Servers that compress on their own would make ranges and lengths those of something else.
    headers = {"User-Agent": "iterators", "Accept-Encoding": "identity"}
    if version is not None and have:
        resuming = {**headers, "Range": f"bytes={have}-", "If-Range": version}
        try:
            return urllib.request.urlopen(
                urllib.request.Request(url, headers=resuming), timeout=TIMEOUT
            )
        except urllib.error.HTTPError as error:
            if error.code != 416:  # there is nothing behind what has arrived: begin again
                raise
            error.close()
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)


def _range_of(response: Any, have: int) -> tuple[int, int | None]:
    """Return the first byte of a response, and the size of the whole file if it is given."""
    if response.status == 206:
        kind, _, rest = (response.headers.get("Content-Range") or "").partition(" ")
        span, _, size = rest.partition("/")
        if kind != "bytes" or span.partition("-")[0] != str(have):
            raise OSError(f"{response.url}: the server sent another range than the one requested")
        return have, int(size) if size.isdecimal() else None
    length = response.headers.get("Content-Length")
    return 0, int(length) if length is not None and length.isdecimal() else None


def _fetch_file(url: str, path: str, progress: bool | None) -> None:
    """Fetch from a local file, or from anything that fsspec can open."""
    from urllib.request import url2pathname

    part, bar = _Part(path), functools.partial(_bar, url, progress)
    with contextlib.ExitStack() as stack:
        if url.lower().startswith("file:"):
            local = url2pathname(urllib.parse.urlsplit(url).path)
            source: Any = stack.enter_context(open(local, "rb"))
            version, total = None, os.fstat(source.fileno()).st_size
        else:
            system, name = filesystem(url)
            details = system.info(name)
            total = details.get("size")
            marks = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")
            stamps = {mark: str(details[mark]) for mark in marks if details.get(mark)}
            version = json.dumps([stamps, total]) if stamps else None
            source = stack.enter_context(system.open(name, "rb"))
        before, have = part.state()
        start = have if version is not None and version == before and have <= (total or 0) else 0
        if start:
            source.seek(start)
        done = part.receive(source, version, start, total, bar)
    if total is not None and done != total:
        raise OSError(f"{url}: {done} of {total} bytes arrived; call again to go on")


def _remove(*paths: str) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
