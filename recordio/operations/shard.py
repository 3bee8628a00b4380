"""A pack cut into files of about equal size, with a manifest."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import numpy as np

from ..errors import EmptyRecordFileError, ManifestError
from ..keywords.checks import integer
from ..keywords.functions import checked
from ..keywords.options import option
from ..packs.manifest import Shard, ShardManifest, json_of, sha256_of
from ..packs.names import pack_prefix
from ..packs.source import SourcePack
from .changes import output_path
from .options import Cancelled, Path, SkipErrors, Told
from .output import PackReport, PackWritten, Seal, write_packs
from .rewriting import need_folder, need_records, plan_of

__all__ = ["check_older", "number_template", "shard", "shard_names"]

#: How the name of a manifest ends.
SUFFIX = ".shards.json"
DIGITS = 6  # of numbers in the names of shards
#: Open files for each shard - record file, index and names of classes, each with its lock - and
#: for everything else.
DESCRIPTORS, OTHER_DESCRIPTORS = 6, 32


Template = Annotated[
    str | os.PathLike[str],
    option(
        kind="str or os.PathLike",
        text="""A folder that exists, in which the files are named after the pack; or how they are
        named: ``data/train`` gives ``data/train-000000.rec`` and so on, and ``%04d`` in it says
        where the number stands.  Each gets an index.  The manifest is
        ``data/train.shards.json``.""",
    ),
]
Count = Annotated[
    int,
    option(
        kind="int",
        text="How many files; at most as many as there are records.",
        check=partial(integer, low=1),
    ),
]


@checked
def shard(
    path: Path,
    out: Template,
    n: Count,
    *,
    skip_errors: SkipErrors = False,
    progress: Told = None,
    cancelled: Cancelled = lambda: False,
) -> PackReport:
    """Cut a pack into files of about equal size, with a manifest.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    PackReport
        With the files in their order.

    Raises
    ------
    ValueError
        If `n` is not above 0.
    EmptyRecordFileError
        If there are fewer records than files.
    ManifestError
        If the manifest is there already and lists files that would stay beside the new ones.
    RecordIOError
        If the source is damaged or would be overwritten.
    OSError
        If a file cannot be read or written, or if so many cannot be open at a time.

    Notes
    -----
    Records stay in the order of the file, and one file follows the other.  The files appear
    together, and the manifest last: where it stands, all of them are complete.  Keys are numbered
    from 0 in every file; ids and labels stay.  Of a face-recognition pack every file is one, with
    all identities, some of which have no image in it.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import RecordWriter, check_shards
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(b"record %d" % number)
    >>> shard(f"{folder}/a", f"{folder}/part-%02d", 3).records
    10
    >>> [(shard.file, shard.first) for shard in check_shards(f"{folder}/part.shards.json").shards]
    [('part-00.rec', 0), ('part-01.rec', 3), ('part-02.rec', 7)]
    """
    if n < 1:
        raise ValueError(f"n={n}: expected at least 1")
    with SourcePack(path, skip_errors) as pack:
        need_records(pack)
        if len(pack) < n:
            raise EmptyRecordFileError(
                f"{n} files cannot be made of {len(pack)} records", path=pack.path
            )
        names, manifest = shard_names(pack.prefix, out, n)
        check_older(manifest, names)
        _check_descriptors(n)
        cuts = _cuts(pack.ends - pack.offsets, n)
        parts = np.split(np.arange(len(pack)), cuts)
        plans = [plan_of(pack, *pair) for pair in zip(names, parts, strict=True)]

        def content(packs: Sequence[PackWritten], files: Sequence[Sequence[str]]) -> bytes:
            firsts = [0, *cuts.tolist()]
            shards = tuple(
                _described(*words, cancelled) for words in zip(packs, files, firsts, strict=True)
            )
            found = ShardManifest(
                manifest,
                sum(shard.records for shard in shards),
                sum(shard.bytes for shard in shards),
                packs[0].identities,
                shards,
            )
            return json_of(found)

        return write_packs(
            [pack], plans, seal=Seal(manifest, content), progress=progress, cancelled=cancelled
        )


def _described(
    pack: PackWritten, files: Sequence[str], first: int, cancelled: Callable[[], bool]
) -> Shard:
    begin = 1 if pack.identities else 0  # key 0 lists identities
    return Shard(
        file=os.path.basename(pack.path),
        index=os.path.basename(f"{pack_prefix(pack.path)}.idx"),
        first=first,
        records=pack.records,
        keys=[begin, begin + pack.records - 1],
        bytes=pack.bytes,
        sha256=sha256_of(files[0], cancelled),
        index_sha256=sha256_of(files[1], cancelled),
    )


def _cuts(sizes: np.ndarray, n: int) -> np.ndarray:
    """Where all files but the first begin: as near to equal bytes as records allow, none empty."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    targets = before[-1] * np.arange(1, n) / n
    cuts = np.searchsorted(before, targets)
    cuts -= targets - before[cuts - 1] < before[cuts] - targets  # the nearer of two places
    least = np.arange(1, n)
    cuts = np.maximum.accumulate(np.maximum(cuts, least) - least) + least
    return np.minimum(cuts, len(sizes) - n + least)


def number_template(target: str) -> tuple[str, int, str]:
    """What stands before and after the numbers of shards, and how many digits these have.

    Examples
    --------
    >>> number_template("out/train.tar"), number_template("out/%04d-train.tar")
    (('out/train-', 6, '.tar'), ('out/', 4, '-train.tar'))
    """
    folder, name = os.path.split(target)
    place = re.search(r"%0?(\d*)d", name)
    if place is None:
        stem, suffix = os.path.splitext(target)
        return f"{stem}-", DIGITS, suffix
    return os.path.join(folder, name[: place.start()]), int(place[1] or 0), name[place.end() :]


def shard_names(prefix: str, out: str | os.PathLike[str], n: int) -> tuple[list[str], str]:
    """The files that `shard` writes, without the indexes.

    Parameters
    ----------
    prefix : str
        The pack, without ``.rec``.
    out, n
        As for `shard`.

    Returns
    -------
    names : list of str
        Record files.
    manifest : str

    Raises
    ------
    FileNotFoundError
        If their folder does not exist.

    Examples
    --------
    >>> shard_names("data/train", "part-%02d", 2)
    (['part-00.rec', 'part-01.rec'], 'part.shards.json')
    """
    name = os.fsdecode(out)
    if os.path.isdir(name):
        name = os.path.join(name, os.path.basename(prefix))
    target = output_path(name)
    need_folder(target)
    before, digits, after = number_template(target)
    names = [f"{before}{number:0{digits}d}{after}" for number in range(n)]
    stem = os.path.basename(before).rstrip("-_.") or pack_prefix(after).strip("-_.") or "pack"
    return names, os.path.join(os.path.dirname(target), f"{stem}{SUFFIX}")


def _check_descriptors(n: int) -> None:
    """Refuse more shards than this process can have open: all are, until they appear together."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = n * DESCRIPTORS + OTHER_DESCRIPTORS
    if most != resource.RLIM_INFINITY and needed > most:
        raise OSError(
            errno.EMFILE,
            f"{n} shards need {needed} open files at a time, and this process may have {most}: "
            "raise the limit (ulimit -n) or make fewer",
        )


def check_older(manifest: str, names: Sequence[str]) -> None:
    """Refuse to leave files of an older manifest that would be taken for some of the new ones.

    Parameters
    ----------
    manifest : str
        Path of the manifest, which need not exist.
    names : sequence of str
        The record files that are to be written.

    Raises
    ------
    ManifestError
        If it is there and lists others that are there as well.
    """
    if not os.path.lexists(manifest):
        return
    files = ShardManifest.read(manifest).files
    left = [file for file in files if file not in names and os.path.lexists(file)]
    if left:
        raise ManifestError(
            f"it lists {len(left)} files that would be left beside the new ones, {left[0]} for one:"
            " remove them, or give another name",
            path=manifest,
        )
