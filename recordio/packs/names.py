"""Names of the files of a pack: the record file, with or without its suffix, and its index."""

from __future__ import annotations

import os

from ..bytes.files import StoredFile
from ..bytes.remote.objects import shown
from ..containers.table import container_of
from ..errors import RecordIOError

__all__ = ["pack_files", "pack_prefix"]


def record_file(path: str | os.PathLike[str]) -> StoredFile:
    """Find the record file that a name or URL stands for, with or without its suffix."""
    file = StoredFile.at(path)
    bare = file.name if file.is_local else file.name.partition("?")[0]
    if container_of(file) is not None:
        return file
    if not bare.endswith(".rec") and not (file.is_local and file.exists()):
        file = StoredFile(f"{file.name}.rec")
    if not file.exists():
        raise RecordIOError("there is no such file", path=shown(file.name))
    return file


def pack_files(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Find the record file that a name or URL stands for, and its index if there is one."""
    file = record_file(path)
    if container_of(file) is not None:
        return file.name, None
    index = file.beside(".idx")
    return file.name, index.name if index.exists() else None


def pack_prefix(path: str) -> str:
    """Return the name of a pack without its suffix: what other files of the pack begin with.

    >>> pack_prefix("data/train.rec"), pack_prefix("data/train")
    ('data/train', 'data/train')
    """
    return path[: -len(".rec")] if path.endswith(".rec") else path
