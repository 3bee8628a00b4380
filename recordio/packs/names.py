"""Names of the files of a pack: the record file, with or without its suffix, and its index."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import takewhile

from ..bytes.files import StoredFile
from ..bytes.remote.objects import redacted_url
from ..containers.table import contained_files, container_of
from ..errors import RecordIOError


def record_file(path: str | os.PathLike[str]) -> StoredFile:
    """Find the record file that a name or URL stands for, with or without its suffix."""
    file = StoredFile.at(path)
    bare = file.name if file.is_local else file.name.partition("?")[0]
    if container_files(file.name):
        return file
    if not bare.endswith(".rec") and not (file.is_local and file.exists()):
        file = StoredFile(f"{file.name}.rec")
    if not file.exists():
        raise RecordIOError("there is no such file", path=redacted_url(file.name))
    return file


#: One name, with braces or as a pattern, or several of them.
PackPaths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def single_path(path: PackPaths) -> str:
    """Return the name of a pack in messages: with semicolons where it consists of several.

    >>> single_path("a.rec"), single_path(["a.tar", "b.tar"])
    ('a.rec', 'a.tar;b.tar')
    """
    if isinstance(path, (str, os.PathLike)):
        return StoredFile.at(path).name
    return ";".join(StoredFile.at(part).name for part in path)


def container_files(path: PackPaths) -> list[StoredFile]:
    """List the files of the container that a name, or several, stand for.

    There are none behind the name of a record file, also where that is named without its suffix and
    a folder has the same name.
    """
    name = single_path(path)
    if name.endswith(".rec") or os.path.isfile(f"{name}.rec"):
        return []
    names = name if isinstance(path, (str, os.PathLike)) else [single_path(part) for part in path]
    try:
        files = contained_files(names) or []
    except ValueError as error:
        if isinstance(error, RecordIOError):
            raise
        raise RecordIOError(str(error), path=redacted_url(name)) from None
    for file in files:
        if file.is_local and not os.path.exists(file.name):
            of = "" if file.name == name else f" (of {name})"
            raise RecordIOError(f"there is no such file{of}", path=file.name)
    kinds = {container.name for container in map(container_of, files) if container is not None}
    if len(kinds) > 1:
        raise RecordIOError(
            f"it names {' and '.join(sorted(kinds))}: give one of them at a time",
            path=redacted_url(name),
        )
    return files


def plain_files(path: PackPaths) -> tuple[str, str | None]:
    """Find a record file and its index as `pack_files` does; a container is refused."""
    files = container_files(path)
    if files:
        container = container_of(files[0])
        assert container is not None
        raise RecordIOError(
            f"it is {container.name}, and this needs a record file: "
            f"`recordio pack {single_path(path)} PREFIX` makes one of it",
            path=redacted_url(files[0].name),
        )
    return pack_files(single_path(path))


def pack_files(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Find the record file that a name or URL stands for, and its index if there is one."""
    file = record_file(path)
    if container_files(file.name):
        return file.name, None
    index = file.beside(".idx")
    return file.name, index.name if index.exists() else None


def pack_prefix(path: str) -> str:
    """Return the name of a pack without its suffix: what other files of the pack begin with.

    >>> pack_prefix("data/train.rec"), pack_prefix("data/train")
    ('data/train', 'data/train')
    """
    return path[: -len(".rec")] if path.endswith(".rec") else path


def source_prefix(path: PackPaths) -> str:
    """Return the prefix of a pack, or what the names of the files of a container have in common.

    >>> source_prefix("data/train.rec"), source_prefix("data/no-set")
    ('data/train', 'data/no-set')
    """
    files = container_files(path)
    if not files:
        return pack_prefix(single_path(path))
    stems = [os.path.splitext(file.name.rstrip("/"))[0] for file in files]
    if len(stems) == 1:
        return stems[0]
    names = sorted(os.path.basename(stem) for stem in stems)
    # All of them have in common what the first and the last have.
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(names[0], names[-1], strict=False))
    common = "".join(one for one, _ in pairs)
    return os.path.join(os.path.dirname(stems[0]), common.rstrip("0123456789-_") or "pack")
