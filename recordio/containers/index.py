"""The samples of a container, found once and kept in a file: ``FILE.index``, or in a cache folder.

The file says which version of the container it belongs to, and ends with a checksum: one of another
version, or one that is not whole, is made anew.  docs/formats/container-index.md has its layout.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..bytes.crc32c import crc32c
from ..bytes.files import StoredFile
from ..bytes.mapping import map_file
from ..bytes.remote.settings import RemoteSettings
from ..bytes.storage import AtomicOutput
from .container import Container
from .samples import Samples

__all__ = ["index_paths", "samples_of"]

MAGIC = b"recordio index 1\n"
SUFFIX = ".index"
#: Names the folder of indexes that cannot lie beside their containers.
CACHE_VARIABLE = "RECORDIO_INDEX_CACHE"
TABLES = ("offsets", "sizes", "labels", "starts", "names", "name_starts")
WORDS = ("classes", "faults", "left_out", "damage")
ALIGNMENT = 8
_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")


def samples_of(
    file: StoredFile, container: Container, settings: RemoteSettings | None = None
) -> Samples:
    """Read the samples of a file from its index, or find them and keep them there."""
    if container.is_listed_each_time:
        return container.scan(file, settings)
    version = [container.name, *file.version()]
    paths = index_paths(file)
    for path in paths:
        found = _read(path, version)
        if found is not None:
            return found
    samples = container.scan(file, settings)
    if [container.name, *file.version()] == version:  # else somebody writes it just now
        _keep(paths, samples, version)
    return samples


def index_paths(file: StoredFile) -> list[str]:
    """List where the index of a container may lie, the best place first."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if not chosen:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = str(Path(caches, "recordio", "indexes"))
    name = os.path.abspath(file.name) if file.is_local else file.name
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    cached = os.path.join(chosen, digest + SUFFIX)
    return [file.name.rstrip("/") + SUFFIX, cached] if file.is_local else [cached]


def _keep(paths: Sequence[str], samples: Samples, version: list) -> None:
    """Write the index at the first path where that is possible; without one, nowhere."""
    content = _content(samples, version)
    for number, path in enumerate(paths):
        with contextlib.suppress(OSError):
            if number:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with AtomicOutput(path) as output:
                output.write(content)
            return


def _content(samples: Samples, version: list) -> bytes:
    tables = {name: getattr(samples, name) for name in TABLES}
    about = {
        "version": version,
        "tables": {n: [t.dtype.str, len(t)] for n, t in tables.items() if t is not None},
        **{name: list(getattr(samples, name).items()) for name in WORDS},
    }
    words = json.dumps(about).encode()
    words += b" " * (-(len(MAGIC) + _LENGTH.size + len(words)) % ALIGNMENT)
    pieces = [MAGIC, _LENGTH.pack(len(words)), words]
    for table in tables.values():
        if table is not None:
            data = np.ascontiguousarray(table).tobytes()
            pieces += [data, bytes(-len(data) % ALIGNMENT)]
    whole = b"".join(pieces)
    return whole + _CHECKSUM.pack(crc32c(whole))


def _read(path: str, version: list) -> Samples | None:
    """Read an index that is whole and of this version; None of any other."""
    try:
        data = map_file(path)
        begin = len(MAGIC) + _LENGTH.size
        if bytes(data[: len(MAGIC)]) != MAGIC:
            return None
        (length,) = _LENGTH.unpack_from(data, len(MAGIC))
        about = json.loads(bytes(data[begin : begin + length]))
        if about["version"] != version:
            return None
        (check,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
        if crc32c(data[: -_CHECKSUM.size]) != check:
            return None
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None
    tables = {}
    begin += length
    for name, (dtype, count) in about["tables"].items():
        tables[name] = np.frombuffer(data, dtype, count, begin)
        begin += tables[name].nbytes + -tables[name].nbytes % ALIGNMENT
    words = {name: dict(about[name]) for name in WORDS}
    return Samples(**tables, **words)
