"""A kind of container: which files are of it, and the function that finds the samples in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from .samples import Samples

__all__ = ["Container", "Rows"]


class Rows(Protocol):
    """Contents that a library reads, one by one, in any thread."""

    def read(self, number: int) -> bytes:
        """Read one content, by its number in `Samples.offsets`."""

    def edges(self) -> Sequence[int]:
        """Give the numbers at which blocks begin that are read as a whole, and the end."""

    def close(self) -> None:
        """Let the file go."""


def _by_name_only(file: StoredFile) -> bool:
    return False


def _itself(file: StoredFile, settings: RemoteSettings | None = None) -> Sequence[StoredFile]:
    return [file]


@dataclass(frozen=True)
class Container:
    """A row of the table.

    A file is of the kind if its name matches `pattern`, or `is_it` says so.  Without `rows`
    contents are spans of the file, or with `is_folder` files of their own; with `rows` those are
    spans that `Samples.packed` leaves out.
    """

    #: What messages call it, with an article: "a tar file".
    name: str
    #: Finds the samples of a file; it may take long, and is asked once for each version of a file.
    scan: Callable[[StoredFile, RemoteSettings | None], Samples]
    pattern: re.Pattern[str] = re.compile(r"(?!)")
    is_it: Callable[[StoredFile], bool] = _by_name_only
    #: The files behind a name, for containers of several.
    shards: Callable[[StoredFile, RemoteSettings | None], Sequence[StoredFile]] = _itself
    rows: Callable[[StoredFile, Samples], Rows] | None = None
    #: Contents are files of their own, below the folder, named by `Samples.name_of`.
    is_folder: bool = False
    #: Contents have checksums, `Samples.checks`, which `rows` compares.
    has_checksums: bool = False
    #: Scanning is so cheap that the samples are not kept in a file.
    is_listed_each_time: bool = False
