"""Names of the files of a pack: the record file, with or without its suffix, and its index."""

from __future__ import annotations

import os

from ..bytes.files import StoredFile
from ..bytes.remote.objects import shown
from ..containers.table import contained_files, container_of
from ..errors import RecordIOError

__all__ = ["container_files", "pack_files", "pack_prefix", "plain_files", "source_prefix"]


def record_file(path: str | os.PathLike[str]) -> StoredFile:
    """Find the record file that a name or URL stands for, with or without its suffix."""
    file = StoredFile.at(path)
    bare = file.name if file.is_local else file.name.partition("?")[0]
    if container_files(file.name):
        return file
    if not bare.endswith(".rec") and not (file.is_local and file.exists()):
        file = StoredFile(f"{file.name}.rec")
    if not file.exists():
        raise RecordIOError("there is no such file", path=shown(file.name))
    return file


def container_files(path: str | os.PathLike[str]) -> list[StoredFile]:
    """List the files of the container that a name, with braces or as a pattern, stands for.

    There are none behind the name of a record file, also where that is named without its suffix and
    a folder has the same name.
    """
    name = StoredFile.at(path).name
    if name.endswith(".rec") or os.path.isfile(f"{name}.rec"):
        return []
    try:
        found = contained_files(name) or []
    except ValueError as error:
        if isinstance(error, RecordIOError):
            raise
        raise RecordIOError(str(error), path=shown(name)) from None
    for file in found:
        if file.is_local and not os.path.exists(file.name):
            of = "" if file.name == name else f" (of {name})"
            raise RecordIOError(f"there is no such file{of}", path=file.name)
    kinds = {container.name for container in map(container_of, found) if container is not None}
    if len(kinds) > 1:
        raise RecordIOError(
            f"it names {' and '.join(sorted(kinds))}: give one of them at a time", path=shown(name)
        )
    return found


def plain_files(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Find a record file and its index as `pack_files` does; a container is refused."""
    found = container_files(path)
    if found:
        container = container_of(found[0])
        assert container is not None
        raise RecordIOError(
            f"it is {container.name}, and this needs a record file: `recordio pack {path} PREFIX` "
            "makes one of it",
            path=shown(found[0].name),
        )
    return pack_files(path)


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


def source_prefix(path: str | os.PathLike[str]) -> str:
    """Return the prefix of a pack, or what the names of the files of a container have in common.

    >>> source_prefix("data/train.rec"), source_prefix("data/no-set")
    ('data/train', 'data/no-set')
    """
    name = os.fsdecode(path)
    files = container_files(name)
    if not files:
        return pack_prefix(name)
    stems = [os.path.splitext(file.name.rstrip("/"))[0] for file in files]
    if len(stems) == 1:
        return stems[0]
    common = os.path.commonprefix([os.path.basename(stem) for stem in stems])  # noqa: RUF071
    return os.path.join(os.path.dirname(stems[0]), common.rstrip("0123456789-_") or "pack")
