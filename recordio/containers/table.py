"""The table of containers: the rest of the package uses only their rows."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Sequence

from ..bytes.files import StoredFile, named_files
from ..bytes.remote.settings import RemoteSettings
from .arrow import ARROW
from .braces import expand_braces
from .container import Choice, Container
from .folder import FOLDER
from .lmdb import LMDB
from .mds import MDS
from .parquet import PARQUET
from .tar import TAR
from .tfrecord import TFRECORD
from .zip import ZIP

CONTAINERS: tuple[Container, ...] = (TAR, TFRECORD, PARQUET, ARROW, ZIP, LMDB, MDS, FOLDER)


def _row_named(name: str, choice: Choice) -> Container:
    return next(row for row in CONTAINERS if row.name == name).chosen(choice)


copyreg.pickle(Container, lambda row: (_row_named, (row.name, row.choice)))


def container_of(file: StoredFile) -> Container | None:
    """Find the kind of a file; None of a record file, and of whatever else there is.

    >>> container_of(StoredFile("a.rec")) is None
    True
    """
    bare = file.name if file.is_local else file.name.partition("?")[0]
    for row in CONTAINERS:
        if row.pattern.search(bare) or row.is_it(file):
            return row
    return None


def is_contained(name: str) -> bool:
    """Tell whether a name, which may have braces, is that of a container."""
    there = "://" not in name and os.path.exists(name)
    return container_of(StoredFile.at(name if there else expand_braces(name)[0])) is not None


def contained_files(
    paths: str | Sequence[str], settings: RemoteSettings | None = None
) -> list[StoredFile] | None:
    """List the files of containers that paths, braces and patterns name; None if they name none.

    Containers and record files in one list are a ValueError: give each as a `Pack`.
    """
    names = [paths] if isinstance(paths, str) else list(paths)
    if isinstance(paths, str) and not os.path.exists(paths) and "://" not in paths:
        names = [name for name in paths.split(";") if name]
    files: list[StoredFile] = []
    plain = []
    for name in names:
        there = "://" not in name and os.path.exists(name)
        for one in [name] if there else expand_braces(name):
            row = container_of(StoredFile.at(one))
            if row is None:
                plain.append(one)
                continue
            for file in [StoredFile.at(one)] if there else named_files([one], "", settings):
                files += row.shards(file, settings)
    if files and plain:
        raise ValueError(f"{plain[0]} is no container as {files[0].name} is: give each as a Pack")
    return files or None
