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
from typing import Any

import numpy as np

from ..bytes.crc32c import crc32c
from ..bytes.files import StoredFile
from ..bytes.mapping import map_file
from ..bytes.remote.settings import RemoteSettings
from ..bytes.storage import AtomicOutput
from ..errors import RecordIOError
from ..notes import Notes
from .container import Container
from .samples import ContainedSamples

MAGIC = b"recordio index 1\n"
SUFFIX = ".index"
#: Names the folder of indexes that cannot lie beside their containers.
CACHE_VARIABLE = "RECORDIO_INDEX_CACHE"
TABLES = {
    "offsets": np.int64,
    "sizes": np.int64,
    "labels": np.float32,
    "starts": np.int64,
    "names": np.uint8,
    "name_starts": np.int64,
    "packed": np.bool_,
    "checks": np.uint32,
    "image_starts": np.int64,
    "image_offsets": np.int64,
    "image_sizes": np.int64,
}
#: The types of their keys and values.
WORDS = {"classes": (int, str), "faults": (int, str), "left_out": (str, int), "damage": (int, str)}
#: What words that mean something else lead to.
UNREADABLE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, struct.error,
)  # fmt: skip
ALIGNMENT = 8
_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")


def samples_of(
    file: StoredFile, container: Container, settings: RemoteSettings | None = None
) -> ContainedSamples:
    """Read the samples of a file from its index, or find them and keep them there."""
    if container.is_listed_each_time:
        return container.scan(file, settings, container.choice)
    about = container.name + (f", rules {container.rules}" if container.rules > 1 else "")
    about += f", {container.choice}" if container.choice.changes else ""
    version = [about, *file.version()]
    paths = index_paths(file, container.choice.suffix() + SUFFIX)
    for path in paths:
        kept_samples = _read(path, version)
        if kept_samples is not None:
            return kept_samples
    samples = container.scan(file, settings, container.choice)
    if [about, *file.version()] == version:  # else somebody writes it just now
        write_beside_or_cached(paths, _pieces(samples, version))
    return samples


def index_paths(file: StoredFile, suffix: str = SUFFIX, beside: str = "") -> list[str]:
    """List where what is known of a file may be kept, the best path first: its index, say.

    By default the best path is the name of the file with the suffix.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if not chosen:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = str(Path(caches, "recordio", "indexes"))
    name = os.path.abspath(file.name) if file.is_local else file.name
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    cached = os.path.join(chosen, digest + suffix)
    return [beside or file.name.rstrip("/") + suffix, cached] if file.is_local else [cached]


def write_beside_or_cached(paths: Sequence[str], pieces: Sequence[Any]) -> str | None:
    """Write a file at the first path where that is possible, and return it; else nowhere."""
    for path in paths:
        with contextlib.suppress(OSError, RecordIOError):
            if path == paths[-1]:  # in the cache folder
                os.makedirs(os.path.dirname(path), exist_ok=True)
            with AtomicOutput(path, durable=False) as output:
                for piece in pieces:
                    output.write(piece)
            return path
    return None


def _pieces(samples: ContainedSamples, version: list) -> list[Any]:
    tables = {name: getattr(samples, name) for name in TABLES}
    about = {
        "version": version,
        "tables": {name: len(table) for name, table in tables.items() if table is not None},
        **{name: list(getattr(samples, name).items()) for name in WORDS},
        "notes": samples.notes.kinds,
        "labelled": samples.labelled,
    }
    words = json.dumps(about).encode()
    words += b" " * (-(len(MAGIC) + _LENGTH.size + len(words)) % ALIGNMENT)
    pieces: list[Any] = [MAGIC + _LENGTH.pack(len(words)) + words]
    for name, table in tables.items():
        if table is not None:
            data: np.ndarray = np.ascontiguousarray(table, TABLES[name])
            pieces += [data.data, bytes(-data.nbytes % ALIGNMENT)]
    check = 0
    for piece in pieces:
        check = crc32c(piece, check)
    return [*pieces, _CHECKSUM.pack(check)]


def _read(path: str, version: list) -> ContainedSamples | None:
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
        end = len(data) - _CHECKSUM.size
        if crc32c(data[:end]) != _CHECKSUM.unpack_from(data, end)[0]:
            return None
        tables: dict[str, Any] = {}
        begin += length
        for name, count in about["tables"].items():
            tables[name] = np.frombuffer(data[:end], TABLES[name], count, begin)
            begin += -(-tables[name].nbytes // ALIGNMENT) * ALIGNMENT
        tables |= {name: dict(about[name]) for name in WORDS}
        tables |= {"notes": Notes.of(about["notes"]), "labelled": about["labelled"]}
        samples = ContainedSamples(**tables)
        return samples if begin == end and _fits(samples) else None
    except UNREADABLE:
        return None


def _length(table: np.ndarray | None) -> int:
    """Return how many entries a table has; -1 of none."""
    return -1 if table is None else len(table)


def _fits(samples: ContainedSamples) -> bool:
    """Tell whether the tables are of one number of samples, and lead nowhere else."""
    count = len(samples)
    edges = [(samples.label_starts(), len(samples.labels))]
    if samples.name_starts is not None:
        edges.append((samples.name_starts, len(samples.names)))
    if samples.image_starts is not None:
        edges += [
            (samples.image_starts, _length(t)) for t in (samples.image_offsets, samples.image_sizes)
        ]
    tables = (samples.sizes, samples.packed, samples.checks)
    words = [
        type(key) is kind and type(value) is other
        for name, (kind, other) in WORDS.items()
        for key, value in getattr(samples, name).items()
    ]
    return (
        all(table is None or len(table) == count for table in tables)
        and all(words)
        and samples.labelled in (True, False, None)
        and all(
            len(starts) == count + 1
            and starts[0] == 0
            and starts[-1] == end
            and bool((starts[1:] >= starts[:-1]).all())
            for starts, end in edges
        )
    )
