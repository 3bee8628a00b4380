"""Duplicates among all files of a manifest, found and left out by tasks of a Ray cluster.

Each file is hashed by a task, which leaves a table in a folder that all nodes see.  Then a task for
each range of hashes looks at the rows of all files that begin so: records with the same content
meet there.  No process holds the hashes of all records.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import ManifestError
from ..image_size import complete_limits
from ..packs.content_table import (
    ROW,
    ContentTable,
    check_distance,
    first_of_same,
    first_of_similar,
)
from ..packs.duplicates import Duplicates, duplicates_of, in_groups
from ..packs.manifest import Shard, ShardManifest, described_shard, write_manifest
from ..packs.output import write_packs
from ..packs.rewriting import plan_of
from ..packs.shard import new_shards
from ..packs.source import SourcePack, pack_prefix
from ..storage import AtomicOutput
from .tasks import run_tasks

__all__ = ["dedup"]

#: About how many records a task compares, which takes 220 MB.
COMPARED_RECORDS = 1 << 21
#: The hash of a content, and the number of the record in the whole pack.
HASHED = np.dtype([("content", "<u8", 2), ("number", "<i8")])


def dedup(
    manifest: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    near: int | None = None,
    *,
    skip_errors: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    address: str | None = None,
    progress: Callable[[int, int], object] | None = None,
    **limits: int | None,
) -> tuple[Duplicates, ShardManifest | None]:
    """Find the records that are more than once in the files of a manifest: `recordio.dedup`.

    Parameters
    ----------
    manifest : path
        Its files must be found under the same paths by all nodes.
    out : path, optional
        Write each file without the duplicates: ``data/unique`` gives ``data/unique-000000.rec`` and
        so on, without files of which nothing is left, and ``data/unique.shards.json``.
    near, skip_errors, **limits
        As for `recordio.dedup`.
    scratch : path, optional
        A folder that all nodes see, for tables that are removed at the end: about 62 bytes for each
        record.  By default that of the manifest.
    address : str, optional
        Of the cluster, as for `recordio.ray.run_tasks`.
    progress : callable, optional
        ``progress(done, total)`` is told how many records were hashed.

    Returns
    -------
    Duplicates
        What `recordio.dedup` finds in one file with the same records; `path` is the manifest, and
        `number` and `kept_number` are those in the whole pack.  Keys are those of the files, which
        need not differ between files.
    ShardManifest or None
        That of the files that were written.

    Raises
    ------
    ManifestError
        If files are to be written of a face-recognition pack, or the manifest is that of others.
    RecordIOError, ImageDecodeError, ValueError, OSError
        As `recordio.dedup`, naming the file.

    Notes
    -----
    Tasks send this process two numbers for each duplicate, and it keeps some 150 bytes for each,
    and a kilobyte for each file.  With `near` it compares the pictures itself, which takes some 130
    bytes for each record.
    """
    check_distance(near)
    complete = complete_limits(limits)
    listed = ShardManifest.read(manifest)
    listed.check_sizes()
    names: list[str] = []
    if out is not None:
        if listed.identities:
            raise ManifestError("the identities of its files cannot be kept", path=listed.path)
        names, target = new_shards(out, listed.files)
    folder = tempfile.mkdtemp(prefix="dedup-", dir=scratch or os.path.dirname(listed.path) or ".")
    try:
        tables = _Tables(folder, listed)
        looks = partial(_hash, looks=near is not None, skip_errors=skip_errors, limits=complete)
        tables.fill(looks, address, progress)
        numbers, twins = tables.same(address)
        others, kept = numbers, twins
        if near is not None:
            others, kept, twins = tables.similar(numbers, twins, near)
        rows = tables.rows(others), tables.rows(kept)
        found = duplicates_of(listed.path, tables.records, tables.skipped, *rows, twins)
        if out is None:
            return found, None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)  # the files that it lists are about to be replaced
        tasks = tables.writings(names, others)
        written = dict(run_tasks(partial(_write, skip_errors=skip_errors), tasks, address=address))
        shards = [shard for number in range(len(tasks)) if (shard := written[number]) is not None]
        return found, write_manifest(target, shards)
    finally:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class _File:
    """A file to hash, and where its tables go; `first` is the number of its first record."""

    path: str
    first: int
    table: str
    buckets: int


def _hash(
    file: _File, looks: bool, skip_errors: bool, limits: dict[str, int]
) -> tuple[int, int, list[int]]:
    """Write the tables of one file; how many records were compared and damaged, and the buckets."""
    with SourcePack(file.path, skip_errors) as pack:
        table = ContentTable(pack, looks, skip_errors, **limits)
        table.find(threads=1)
        rows = table.rows(np.arange(len(pack)))
        rows["number"] += file.first
        hashed = np.empty(len(pack), HASHED)
        hashed["content"], hashed["number"] = table.contents, rows["number"]
        hashed = hashed[~table.alone]
        hashed = hashed[np.argsort(hashed["content"][:, 0])]
        skipped = len(pack.problems)
    for name, array in ((f"{file.table}.rows", rows), (f"{file.table}.hashes", hashed)):
        with AtomicOutput(name) as output:
            output.write(array.tobytes())
    bounds = [(number << 64) // file.buckets for number in range(1, file.buckets)]
    edges = np.searchsorted(hashed["content"][:, 0], np.array(bounds, np.uint64))
    return len(rows), skipped, [0, *edges.tolist(), len(hashed)]


@dataclass(frozen=True)
class _Bucket:
    """The rows `begins` to `ends` of the tables of all files."""

    tables: list[str]
    begins: np.ndarray
    ends: np.ndarray


def _compare(bucket: _Bucket) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the records whose content an earlier one has, and of the first with it."""
    pieces = [
        np.fromfile(f"{table}.hashes", HASHED, end - begin, offset=begin * HASHED.itemsize)
        for table, begin, end in zip(
            bucket.tables, bucket.begins.tolist(), bucket.ends.tolist(), strict=True
        )
        if begin < end
    ]
    hashed = np.concatenate(pieces) if pieces else np.empty(0, HASHED)
    first = first_of_same(hashed["content"], hashed["number"])
    again = first < hashed["number"]
    return hashed["number"][again], first[again]


@dataclass(frozen=True)
class _Writing:
    """A file to write without some of its records."""

    path: str
    target: str
    table: str
    gone: np.ndarray


def _write(task: _Writing, skip_errors: bool) -> Shard | None:
    """Write one file; None if nothing is left of it."""
    stays = ~np.fromfile(f"{task.table}.rows", ROW)["damaged"]
    stays[task.gone] = False
    index = f"{pack_prefix(task.target)}.idx"
    if not stays.any():
        for older in (task.target, index):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(older)
        return None
    with SourcePack(task.path, skip_errors) as pack:
        write_packs([pack], [plan_of(pack, task.target, np.flatnonzero(stays))])
    return described_shard(task.target, index)


class _Tables:
    """The tables of all files, in a folder.

    Attributes
    ----------
    records, skipped : int
        Records that were compared, and damaged ones.
    """

    def __init__(self, folder: str, listed: ShardManifest) -> None:
        self._manifest, self._files, self._total = listed.path, listed.files, listed.records
        self._sizes = [shard.records for shard in listed.shards]
        self._firsts = np.array([shard.first for shard in listed.shards])
        self._tables = [os.path.join(folder, f"{n:06d}") for n in range(len(self._files))]
        self._buckets = -(-listed.records // COMPARED_RECORDS) or 1
        self.records = self.skipped = 0

    def fill(
        self,
        work: Callable[[_File], tuple[int, int, list[int]]],
        address: str | None,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        """Have all files hashed."""
        rows = zip(self._files, self._firsts.tolist(), self._tables, strict=True)
        tasks = [_File(*row, self._buckets) for row in rows]
        self._edges = np.empty((len(tasks), self._buckets + 1), np.int64)
        done = 0
        for number, found in run_tasks(work, tasks, address=address):
            records, skipped, self._edges[number] = found
            if records > self._sizes[number]:
                raise ManifestError(
                    f"it has {records} records, and {self._sizes[number]} in {self._manifest}",
                    path=tasks[number].path,
                )
            self.records += records
            self.skipped += skipped
            done += self._sizes[number]
            if progress is not None:
                progress(done, self._total)

    def same(self, address: str | None) -> tuple[np.ndarray, np.ndarray]:
        """Records with the content of an earlier one, and the first that has it; group by group."""
        edges = self._edges
        buckets = [
            _Bucket(self._tables, edges[:, number], edges[:, number + 1])
            for number in range(self._buckets)
        ]
        pairs = [found for _, found in run_tasks(_compare, buckets, address=address)]
        others, first = (np.concatenate(column) for column in zip(*pairs, strict=True))
        order = np.lexsort((others, first))
        return others[order], first[order]

    def similar(
        self, numbers: np.ndarray, twins: np.ndarray, near: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same with pictures that look alike, and the first with the same content of each."""
        pictures, has_picture = np.zeros(self._total, np.uint64), np.zeros(self._total, bool)
        for rows in map(self._read, range(len(self._files))):
            pictures[rows["number"]] = rows["picture"]
            has_picture[rows["number"]] = rows["has_picture"]
        first = np.arange(self._total)
        first[numbers] = twins
        others, kept = in_groups(first_of_similar(pictures, has_picture, first, near))
        return others, kept, first[others]

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """What is known of some records: `ROW`."""
        found = np.empty(len(numbers), ROW)
        files = np.searchsorted(self._firsts, numbers, side="right") - 1
        order = np.argsort(files, kind="stable")
        begin, counts = 0, np.bincount(files, minlength=len(self._files))
        for file in np.flatnonzero(counts).tolist():
            mine = order[begin : begin + counts[file]]
            found[mine] = self._read(file)[numbers[mine] - self._firsts[file]]
            begin += counts[file]
        return found

    def writings(self, names: Sequence[str], gone: np.ndarray) -> list[_Writing]:
        """What is to be written, each file without its records among some."""
        gone = np.sort(gone)
        edges = np.searchsorted(gone, [*self._firsts.tolist(), self._total])
        parts = np.split(gone, edges[1:-1])
        rows = zip(self._files, names, self._tables, parts, self._firsts, strict=True)
        return [
            _Writing(path, target, table, part - first) for path, target, table, part, first in rows
        ]

    def _read(self, file: int) -> np.ndarray:
        return np.fromfile(f"{self._tables[file]}.rows", ROW)
