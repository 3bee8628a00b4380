"""Names of the fields of a pack: the record files ``PREFIX.NAME.rec`` beside ``PREFIX.rec``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..bytes.files import StoredFile, named_files
from ..bytes.remote.settings import RemoteSettings

__all__ = ["check_name", "field_file", "field_names", "without_fields"]

SUFFIX = ".rec"


def check_name(name: str) -> str:
    """Return the name of a field; one that no file and no keyword can have is a ValueError.

    >>> check_name("mask")
    'mask'
    """
    if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
        raise ValueError(
            f"{name!r} names no field: letters, digits and underscores, no digit in front"
        )
    return name


def field_file(file: StoredFile, name: str) -> StoredFile:
    """Name the record file of a field of a record file.

    >>> field_file(StoredFile("data/a.rec"), "mask").name
    'data/a.mask.rec'
    """
    return file.beside(f".{check_name(name)}{SUFFIX}")


def field_names(file: StoredFile, settings: RemoteSettings | None = None) -> list[str]:
    """List the fields that lie beside a record file, in order; none on a server without lists."""
    if file.name.startswith(("http://", "https://")):
        return []
    stem = file.name.removesuffix(SUFFIX) + "."
    if file.is_local:
        folder = os.path.dirname(file.name)
        if not os.path.isdir(folder or "."):
            return []
        entries = (entry for entry in os.scandir(folder or ".") if entry.is_file())
        names = [os.path.join(folder, entry.name) for entry in entries]
    else:
        names = [one.name for one in named_files(f"{stem}*{SUFFIX}", SUFFIX, settings)]
    own = f"{stem[:-1]}{SUFFIX}"
    return [n[len(stem) : -len(SUFFIX)] for n in sorted(names) if _owner(n) == own]


def _owner(name: str, suffix: str = SUFFIX) -> str:
    """Name the record file that a file would be a field of; "" for names that no field has.

    >>> _owner("sets/a.mask.rec"), _owner("sets/a.rec"), _owner("sets/a.1.rec")
    ('sets/a.rec', '', '')
    """
    stem, _, field = name.removesuffix(suffix).rpartition(".")
    can_be = name.endswith(suffix) and stem and field.isascii() and field.isidentifier()
    return f"{stem}{suffix}" if can_be else ""


def without_fields(
    files: Sequence[StoredFile], given: str | Sequence[str], suffix: str = SUFFIX
) -> list[StoredFile]:
    """Leave out the fields of others among them, which a folder or a pattern found.

    Whatever was given by its own name stays.
    """
    names = {file.name for file in files}
    own = {given, *given.split(";")} if isinstance(given, str) else set(given)
    return [f for f in files if f.name in own or _owner(f.name, suffix) not in names]
