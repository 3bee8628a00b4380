"""The ``remote_`` keywords: how files on servers are reached, and where they are mirrored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from ...keywords.checks import integer, path
from ...keywords.options import Options, accepts, option, optional
from .objects import LIBRARIES

#: Seconds for which a request that fails is tried again.
TIMEOUT = 60.0
#: Names the folder of mirrors when nothing else does.
CACHE_VARIABLE = "RECORDIO_REMOTE_CACHE"


def is_url(name: str) -> bool:
    """Tell a URL from a path of this machine.

    >>> is_url("s3://bucket/a.rec"), is_url("/data/a.rec")
    (True, False)
    """
    return "://" in name


def _seconds(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ValueError(f"{name}={value!r}: expected seconds, above 0")
    return float(value)


def _access(name: str, value: Any) -> Mapping[str, Any]:
    # The value is not shown: it may hold credentials.
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: expected a mapping from names to values")
    if value.get("library") not in (None, *LIBRARIES):
        libraries = " or ".join(f'"{library}"' for library in LIBRARIES)
        raise ValueError(f'{name}: "library" is {libraries}')
    return value


@dataclass(frozen=True)
class RemoteOptions(Options):
    """The keywords of everything that reads files on servers."""

    remote_cache: str | os.PathLike[str] | None = option(
        None,
        "str or os.PathLike, optional",
        """Folder for the partial copies of files on servers, shared by all processes of the
        machine and kept for later runs; by default that of ``RECORDIO_REMOTE_CACHE``, or
        ``recordio/remote`` in ``XDG_CACHE_HOME`` or ``~/.cache``.""",
        optional(path),
    )
    remote_cache_size: int | None = option(
        None,
        "int, optional",
        """Bytes that all copies in that folder may take on the disk; by default their present
        size plus half of the free space.""",
        optional(partial(integer, low=1)),
    )
    remote_timeout: float | None = option(
        None,
        "float, optional",
        """Seconds for which a failed request to a server is repeated, 60 by default, before a
        `recordio.RemoteFileError` is raised.""",
        optional(_seconds),
    )
    remote_options: Mapping[str, Any] | None = option(
        None,
        "mapping, optional",
        """How to reach the server, for example ``{"endpoint_url": ..., "access_key_id": ...,
        "secret_access_key": ..., "region": ...}``: the options of obstore's stores, or those of
        fsspec's file systems; ``"library"`` chooses between them, "obstore" or "fsspec". Other
        settings come from the standard environment, such as ``AWS_ENDPOINT_URL``.""",
        optional(_access),
        secret=True,
    )

    @property
    def remote(self) -> RemoteSettings:
        """These alone."""
        return RemoteSettings(**self.values(*(item.name for item in fields(RemoteOptions))))


@accepts()
@dataclass(frozen=True)
class RemoteSettings(RemoteOptions):
    """Settings for files on servers: how to reach them, and where to keep their bytes.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> RemoteSettings(remote_timeout=5)
    RemoteSettings(remote_timeout=5.0)
    """

    positional = "remote_cache remote_cache_size remote_timeout remote_options"

    def __repr__(self) -> str:
        facts = {n: value for n, value in self.changed().items() if n != "remote_options"}
        return f"RemoteSettings({', '.join(f'{name}={value!r}' for name, value in facts.items())})"

    @property
    def folder(self) -> str:
        """Absolute path of the folder for partial copies."""
        chosen = self.remote_cache or os.environ.get(CACHE_VARIABLE)
        if not chosen:
            caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            chosen = Path(caches, "recordio", "remote")
        return os.path.abspath(chosen)

    @property
    def timeout(self) -> float:
        """Seconds for which a failed request is repeated."""
        return TIMEOUT if self.remote_timeout is None else self.remote_timeout

    @property
    def options(self) -> dict[str, Any]:
        """The options without ``library``."""
        return {n: v for n, v in (self.remote_options or {}).items() if n != "library"}

    @property
    def library(self) -> str | None:
        """Name of the library to use, "obstore" or "fsspec"; None for the default."""
        return (self.remote_options or {}).get("library")
