"""What commands do with a pack, as tasks of a Ray cluster: one for each file of a manifest.

The tasks call the functions of the commands.  This needs Ray, which is imported with the module.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from recordio.errors import ManifestError
from recordio.frames.check import Report, verify
from recordio.packs.manifest import Shard, ShardManifest, described_shard, write_manifest
from recordio.packs.shard import new_shards
from recordio.packs.statistics import Measured, PackStatistics, measure
from recordio.ray.duplicates import dedup
from recordio.ray.tasks import run_tasks

from .decode_check import check_contents
from .optimize import OptimizeReport, Tally, optimize_records

__all__ = ["check", "dedup", "optimize", "stats"]

Result = TypeVar("Result")


def stats(
    manifest: str | os.PathLike[str],
    mean_std: bool = False,
    *,
    skip_errors: bool = False,
    address: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> PackStatistics:
    """What `recordio.stats` finds in the pack that a manifest describes.

    Parameters
    ----------
    manifest : path
        Its files must be found under the same paths by all nodes.
    mean_std, skip_errors
        As for `recordio.stats`.
    address : str, optional
        Of the cluster, as for `recordio.ray.run_tasks`.
    progress : callable, optional
        ``progress(done, total)`` is told how many records were read.

    Returns
    -------
    PackStatistics
        The numbers that it finds in one file with the same records; `path` is the manifest, and
        `bytes` the sum of the files.

    Raises
    ------
    LabelError
        If only some of the files hold labels of objects.
    RecordIOError
        As `recordio.stats`, naming the file.
    """
    listed = _listed(manifest)
    work = partial(measure, mean_std=mean_std, skip_errors=skip_errors, threads=1)
    parts: list[Measured] = _for_each_file(work, listed.files, listed, address, progress)
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    return replace(whole, path=listed.path).statistics()


def check(
    manifest: str | os.PathLike[str],
    *,
    decode: bool = True,
    address: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[Report]:
    """What ``recordio check`` finds in each file of a manifest.

    Parameters
    ----------
    manifest, address, progress
        As for `stats`.
    decode : bool
        Decode every image, as ``recordio check --decode`` does.

    Returns
    -------
    list of Report
        One for each file, in the order of the manifest.
    """
    listed = _listed(manifest)
    pairs = list(zip(listed.files, listed.indexes, strict=True))
    return _for_each_file(partial(_checked, decode=decode), pairs, listed, address, progress)


def _checked(files: tuple[str, str], decode: bool) -> Report:
    report = verify(*files)
    if decode:
        check_contents(report, threads=1, progress=False)
    return report


@dataclass(frozen=True)
class _Optimizing:
    path: str
    index: str
    prefix: str


def optimize(
    manifest: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    address: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> tuple[ShardManifest, Tally]:
    """Do with each file of a manifest what ``recordio optimize`` does, and write a new manifest.

    Parameters
    ----------
    manifest, address, progress
        As for `stats`; of a pack without identities.
    out : path
        How the new files are named: ``data/fast`` gives ``data/fast-000000.rec`` and so on, and
        ``data/fast.shards.json``.

    Returns
    -------
    ShardManifest
        The new one.
    Tally
        What became of the images.

    Raises
    ------
    ManifestError
        If the pack lists identities, whose keys are not those of a manifest of this kind.
    RecordIOError
        If a file is damaged or would be overwritten.
    """
    listed = _listed(manifest)
    if listed.identities:
        raise ManifestError(
            "it is a face-recognition pack: optimize each of its files with recordio optimize",
            path=listed.path,
        )
    names, target = new_shards(out, listed.files)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(target)  # the files that it lists are about to be replaced
    rows = zip(listed.files, listed.indexes, names, strict=True)
    tasks = [_Optimizing(path, index, os.path.splitext(name)[0]) for path, index, name in rows]
    done = _for_each_file(_optimized, tasks, listed, address, progress)
    whole = Tally()
    for report, _ in done:
        whole.rewritten += report.tally.rewritten
        whole.bytes_before += report.tally.bytes_before
        whole.bytes_after += report.tally.bytes_after
        whole.left += report.tally.left
    return write_manifest(target, [shard for _, shard in done]), whole


def _optimized(task: _Optimizing) -> tuple[OptimizeReport, Shard]:
    report = optimize_records(task.path, task.prefix, task.index, progress=False)
    return report, described_shard(report.path, f"{task.prefix}.idx")


def _listed(manifest: str | os.PathLike[str]) -> ShardManifest:
    listed = ShardManifest.read(manifest)
    listed.check_sizes()
    return listed


def _for_each_file(
    work: Callable[[Any], Result],
    items: Sequence[Any],
    listed: ShardManifest,
    address: str | None,
    progress: Callable[[int, int], object] | None,
) -> list[Result]:
    """The results in the order of the manifest."""
    found: dict[int, Result] = {}
    done = 0
    for number, result in run_tasks(work, items, address=address):
        found[number] = result
        done += listed.shards[number].records
        if progress is not None:
            progress(done, listed.records)
    return [found[number] for number in range(len(items))]
