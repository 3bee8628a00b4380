"""A kind of container: which files are of it, and the function that finds the samples in one."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from ..bytes.files import StoredFile
from ..bytes.remote.settings import RemoteSettings
from .samples import ContainedSamples


class ContentReader(Protocol):
    """Contents that a library reads, one by one, in any thread."""

    def read(self, number: int) -> bytes:
        """Read one content, by its number in `ContainedSamples.offsets`."""

    def close(self) -> None:
        """Let the file go."""


@runtime_checkable
class BlockReader(ContentReader, Protocol):
    """Contents of which a block is read at once, so that their order matters."""

    def edges(self) -> Sequence[int]:
        """Give the numbers at which blocks begin that are read as a whole, and the end."""

    def nbytes(self) -> int:
        """Count the bytes of all blocks as they are kept in memory."""


def _by_name_only(file: StoredFile) -> bool:
    return False


def _itself(file: StoredFile, settings: RemoteSettings | None = None) -> Sequence[StoredFile]:
    return [file]


@dataclass(frozen=True)
class Choice:
    """Say which part of a sample is used; what is empty is chosen by the rules of the container.

    >>> Choice(), Choice(label_field="fine", suffixes=(".jpg",)).changes
    (Choice(), {'label_field': 'fine', 'suffixes': ('.jpg',)})
    """

    #: The content is this field, which samples have beside the image.
    field: str = ""
    #: An ending in a tar, a feature of an example, a column, or a pattern of keys: "image_hr-%09d".
    image_field: str = ""
    #: The same, or a value in a JSON file of a tar: "json:label".
    label_field: str = ""
    #: Without them labels are not looked for, and each is 0.
    has_labels: bool = True
    #: Endings of files that count as images, in folders and zips.
    suffixes: tuple[str, ...] = ()
    #: Boxes go before a class of the whole image, where a container has both.
    boxes: bool = False
    #: A sample may have any number of images, and all are found, where a container tells of them.
    several: bool = False

    @property
    def changes(self) -> dict[str, object]:
        """Values that differ from the usual ones, by name."""
        values = ((item.name, getattr(self, item.name), item.default) for item in fields(self))
        return {name: value for name, value, default in values if value != default}

    def __repr__(self) -> str:
        return f"Choice({', '.join(f'{name}={value!r}' for name, value in self.changes.items())})"

    def suffix(self) -> str:
        """Return what an index is called for: ".mask" of a field alone, "" of the usual choice."""
        rest = replace(self, field="")
        digest = hashlib.sha256(repr(astuple(rest)).encode()).hexdigest()[:12]
        return "".join(f".{part}" for part in (self.field, rest.changes and digest) if part)


#: What is said of a file that is not the one in which samples were found.
CHANGED = (
    "it changed while it was open, and its samples may lie elsewhere now: open it again, and "
    "replace files instead of writing over them"
)
#: What is used where nothing is chosen.
USUAL: Choice = Choice()
#: Values of a choice that need nothing of the kind to be there.
WISHES = frozenset(["boxes", "several"])


@dataclass(frozen=True)
class Container:
    """A row of the table.

    A file is of the kind if its name matches `pattern`, or `is_it` says so.  Without `rows`
    contents are spans of the file, or with `is_folder` files of their own; with `rows` those are
    spans that `ContainedSamples.packed` leaves out.
    """

    #: What messages call it, with an article: "a tar file".
    name: str
    #: Finds the samples of a file, ``scan(file, settings, choice)``; it may take long, and is asked
    #: once for each version of a file.
    scan: Callable[..., ContainedSamples]
    pattern: re.Pattern[str] = re.compile(r"(?!)")
    is_it: Callable[[StoredFile], bool] = _by_name_only
    #: The files behind a name, for containers of several.
    shards: Callable[[StoredFile, RemoteSettings | None], Sequence[StoredFile]] = _itself
    #: ``rows(file, samples, choice)``
    rows: Callable[..., ContentReader] | None = None
    #: Contents are files of their own, below the folder, named by `ContainedSamples.name_of`.
    is_folder: bool = False
    #: Contents have checksums, `ContainedSamples.checks`, which `rows` compares.
    has_checksums: bool = False
    #: Scanning is so cheap that the samples are not kept in a file.
    is_listed_each_time: bool = False
    #: Raised when the samples that are found in a file, or what is kept of them, become others.
    rules: int = 1
    #: Names the fields that samples have besides: ``fields(file, settings, samples, choice)``.
    fields: Callable[..., list[str]] | None = None
    #: Names of what can be chosen in files of the kind.
    chooses: frozenset[str] = frozenset(["field"])
    #: The choice that samples are found by.
    choice: Choice = USUAL

    @lru_cache(64)  # noqa: B019 - rows of the table live as long as the process
    def chosen(self, choice: Choice) -> Container:
        """Return the kind of which that is used; a ValueError says that a file of it has no such.

        >>> Container("a made-up file", lambda *given: None).chosen(Choice(image_field="jpg"))
        Traceback (most recent call last):
        ValueError: image_field='jpg': a made-up file has none to choose
        """
        dropped: dict[str, Any] = dict.fromkeys(WISHES - self.chooses, False)
        choice = replace(choice, **dropped)
        if choice == self.choice:
            return self
        for name, value in choice.changes.items():
            if name not in self.chooses:
                raise ValueError(f"{name}={value!r}: {self.name} has none to choose")
        return replace(self, choice=choice)


def chosen_kind(container: Container | None, choice: Choice, path: str) -> Container | None:
    """Return the kind of a file by which that is used; of a record file nothing can be chosen."""
    if container is not None:
        return container.chosen(choice) if choice.changes else container
    for name, value in choice.changes.items():
        if name in WISHES:
            continue
        raise ValueError(f"{name}={value!r}: {path} is a record file, whose records say themselves")
    return None


def is_folder_of(pattern: re.Pattern[str]) -> Callable[[StoredFile], bool]:
    """Make the test for a folder with files of a kind, and none that is a record file."""

    def is_it(file: StoredFile) -> bool:
        if not file.is_local or not os.path.isdir(file.name):
            return False
        names = [entry.name for entry in os.scandir(file.name) if entry.is_file()]
        return any(map(pattern.search, names)) and not any(n.endswith(".rec") for n in names)

    return is_it


def files_of_folder(
    pattern: re.Pattern[str],
) -> Callable[[StoredFile, RemoteSettings | None], Sequence[StoredFile]]:
    """Make the function that lists the files of a kind in a folder; a file is itself."""

    def shards(file: StoredFile, settings: RemoteSettings | None) -> Sequence[StoredFile]:
        if not file.is_local or not os.path.isdir(file.name):
            return [file]
        names = sorted(entry.path for entry in os.scandir(file.name) if entry.is_file())
        return [StoredFile(name) for name in names if pattern.search(name)]

    return shards
