"""How files on servers are reached and where they are mirrored: the ``remote_`` keywords."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["FIRST_DELAY", "LONGEST_DELAY", "RemoteSettings", "default_cache", "is_url"]

#: Seconds for which a request that fails is tried again.
TIMEOUT = 60.0
#: Seconds between two attempts: the first, and the longest.
FIRST_DELAY, LONGEST_DELAY = 0.1, 5.0
#: Names the folder of mirrors when nothing else does.
CACHE_VARIABLE = "RECORDIO_REMOTE_CACHE"


def is_url(name: str) -> bool:
    """Whether a name is a URL and no path of this machine.

    Examples
    --------
    >>> is_url("s3://bucket/a.rec"), is_url("/data/a.rec")
    (True, False)
    """
    return "://" in name


def default_cache() -> str:
    """The folder of mirrors where none is given.

    ``RECORDIO_REMOTE_CACHE`` of the environment, or ``recordio/remote`` in the user's folder of
    caches.
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return named
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(folder, "recordio", "remote"))


@dataclass(frozen=True)
class RemoteSettings:
    """How files on servers are reached, and where their bytes are kept.

    Parameters
    ----------
    remote_cache : str or os.PathLike, optional
        Folder of the local mirrors; by default that of ``RECORDIO_REMOTE_CACHE``, or
        ``~/.cache/recordio/remote``.
    remote_cache_size : int, optional
        Bytes that the mirrors in that folder may take on the disk; by default what they take now
        and half of what is free.
    remote_timeout : float, optional
        Seconds for which a request that fails is tried again, above 0; 60 by default.
    remote_options : mapping, optional
        How to reach the server, for example ``{"endpoint_url": ..., "access_key_id": ...,
        "secret_access_key": ..., "region": ...}``: the options of obstore's stores, or those of the
        file system of fsspec; ``"library"`` chooses one of both, "obstore" or "fsspec".  What is
        not given comes from the standard environment, such as ``AWS_ENDPOINT_URL``.

    Examples
    --------
    >>> RemoteSettings(remote_timeout=5)
    RemoteSettings(remote_timeout=5.0)
    """

    remote_cache: str | os.PathLike[str] | None = None
    remote_cache_size: int | None = None
    remote_timeout: float | None = None
    remote_options: Mapping[str, Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        size, timeout, options = self.remote_cache_size, self.remote_timeout, self.remote_options
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"remote_cache_size={size!r}: expected a number of bytes, at least 1")
        if timeout is not None:
            if not isinstance(timeout, int | float) or not 0 < timeout < 1e9:
                raise ValueError(f"remote_timeout={timeout!r}: expected seconds, above 0")
            object.__setattr__(self, "remote_timeout", float(timeout))
        if options is not None:
            if not isinstance(options, Mapping):
                raise TypeError("remote_options: expected a mapping from names to values")
            if options.get("library") not in (None, "obstore", "fsspec"):
                raise ValueError('remote_options: "library" is "obstore" or "fsspec"')

    def __repr__(self) -> str:
        given = {
            name: value
            for name, value in vars(self).items()
            if value is not None and name != "remote_options"
        }
        return f"RemoteSettings({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def folder(self) -> str:
        """Absolute path of the folder of mirrors."""
        given = self.remote_cache
        return os.path.abspath(default_cache() if given is None else os.fsdecode(given))

    @property
    def timeout(self) -> float:
        """Seconds for which a request that fails is tried again."""
        return TIMEOUT if self.remote_timeout is None else self.remote_timeout

    @property
    def options(self) -> dict[str, Any]:
        """The options, `library` left out."""
        return {n: v for n, v in (self.remote_options or {}).items() if n != "library"}

    @property
    def library(self) -> str | None:
        """Which library has to be used, if that is said."""
        return (self.remote_options or {}).get("library")

    def access(self) -> str:
        """What tells ways to a server apart, as text; holds credentials, so never show it."""
        return json.dumps([self.library, self.options], sort_keys=True, default=repr)
