"""Names of the fields of a pack: the record files ``PREFIX.NAME.rec`` beside ``PREFIX.rec``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..bytes.files import StoredFile, named_files
from ..bytes.remote.settings import RemoteSettings
from ..errors import FieldError
from .fields_meta import FieldMeta, check_name, read_fields

SUFFIX = ".rec"


def field_file(file: StoredFile, name: str) -> StoredFile:
    """Name the record file of a field of a record file.

    >>> field_file(StoredFile("data/a.rec"), "mask").name
    'data/a.mask.rec'
    """
    return file.beside(f".{check_name(name)}{SUFFIX}")


def field_names(file: StoredFile, settings: RemoteSettings | None = None) -> list[str]:
    """List the fields that lie beside a record file, in order.

    ``PREFIX.fields.json`` names them; without it each ``PREFIX.NAME.rec`` is one, of which there
    are none on a server that lists no files.
    """
    described = read_fields(file, settings)
    return _lying(file, settings) if described is None else list(described)


def check_left(
    file: StoredFile,
    names: Sequence[str],
    described: bool,
    settings: RemoteSettings | None = None,
) -> None:
    """Refuse a new pack beside fields that it does not replace; `names` are its own.

    One that is not described would have all that lie there; beside one that is, those of the pack
    that is replaced would be nobody's.
    """
    try:
        there = field_names(file, settings) if described and file.exists(settings) else []
    except FieldError:  # a damaged description, which is replaced as well
        described = False
    for name in there if described else _lying(file, settings):
        if name not in names:
            raise FieldError(
                "it lies there, a field of another pack or of an older one: remove it, or give "
                "another output",
                path=field_file(file, name).name,
            )


def _lying(file: StoredFile, settings: RemoteSettings | None) -> list[str]:
    """List the names that lie beside a record file."""
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
        names = [item.name for item in named_files(f"{stem}*{SUFFIX}", SUFFIX, settings)]
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
    files: Sequence[StoredFile],
    paths: str | Sequence[str],
    suffix: str = SUFFIX,
    settings: RemoteSettings | None = None,
) -> list[StoredFile]:
    """Leave out the fields of others among them, which a folder or a pattern found.

    Whatever was given by its own name stays, and so does what the ``.fields.json`` of the other
    does not name.
    """
    names = {file.name for file in files}
    own = {paths, *paths.split(";")} if isinstance(paths, str) else set(paths)
    described: dict[str, dict[str, FieldMeta] | None] = {}

    def is_field(name: str) -> bool:
        owner = _owner(name, suffix)
        if owner not in names:
            return False
        if owner not in described:
            described[owner] = read_fields(StoredFile(owner), settings)
        listed = described[owner]
        return listed is None or name[len(owner) - len(suffix) + 1 : -len(suffix)] in listed

    return [file for file in files if file.name in own or not is_field(file.name)]
