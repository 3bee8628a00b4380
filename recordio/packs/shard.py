"""A pack cut into files of about equal size, and the manifest that says what belongs together.

`check_shards` compares the files with their manifest.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import EmptyRecordFileError, ManifestError
from ..frames.index_file import read_index
from .changes import output_path
from .output import PackReport, PackWritten, Progress, Seal, write_packs
from .rewriting import need_records, plan_of
from .source import SourcePack, pack_prefix

__all__ = ["Shard", "ShardManifest", "check_shards", "number_template", "shard", "shard_names"]

#: What a manifest calls itself, and the version that is written and read.
FORMAT, VERSION = "recordio shards", 1
SUFFIX = ".shards.json"
#: A manifest is read as a whole: no honest one is larger.
LARGEST_MANIFEST = 1 << 28
DIGITS = 6  # of numbers in the names of shards
BUFFER = 1 << 20
#: Open files for each shard - record file, index and names of classes, each with its lock - and
#: for everything else.
DESCRIPTORS, OTHER_DESCRIPTORS = 6, 32


@dataclass(frozen=True)
class Shard:
    """One file of a pack that was cut.

    Attributes
    ----------
    file, index : str
        Names of the record file and its index, in the folder of the manifest.
    first : int
        Number of its first record in the whole pack, from 0.
    records : int
        Records in it, without those that list identities.
    keys : list of int
        The least and the largest key of these.
    bytes : int
        Size of the record file.
    sha256, index_sha256 : str
        Checksums of both files, in hexadecimal, as the command ``sha256sum`` prints them.
    """

    file: str
    index: str
    first: int
    records: int
    keys: list[int]
    bytes: int
    sha256: str
    index_sha256: str


@dataclass(frozen=True)
class ShardManifest:
    """What a manifest says.

    Attributes
    ----------
    path : str
        The manifest.
    records, bytes : int
        Records of all shards, and the size of all record files.
    identities : int
        Identities of a face-recognition pack, which every shard lists; 0 for others.
    shards : tuple of Shard
        In the order of the pack.
    """

    path: str
    records: int
    bytes: int
    identities: int
    shards: tuple[Shard, ...]

    @property
    def files(self) -> list[str]:
        """Paths of the record files, in the order of the pack: what iterators take."""
        folder = os.path.dirname(self.path)
        return [os.path.join(folder, shard.file) for shard in self.shards]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> ShardManifest:
        """Read a manifest; nothing is compared with it.

        Raises
        ------
        ManifestError
            If it is none, or one of a later version.
        OSError
            If it cannot be read.
        """
        name = os.fsdecode(path)
        with open(name, "rb") as file:
            text = file.read(LARGEST_MANIFEST + 1)
        if len(text) > LARGEST_MANIFEST:
            raise ManifestError("it is too large for a manifest of shards", path=name)
        try:
            words = json.loads(text)
            if words["format"] != FORMAT:
                raise ValueError(words["format"])
            version = words["version"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise ManifestError("it is no manifest of shards", path=name) from None
        if version != VERSION:
            raise ManifestError(
                f"it has version {version!r}, and this package reads version {VERSION}", path=name
            )
        return cls(name, **_fields(words, name))


def _json_of(manifest: ShardManifest) -> bytes:
    words = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    del words["path"]
    return json.dumps(words, indent=1).encode() + b"\n"


def _fields(words: dict[str, Any], path: str) -> dict[str, Any]:
    """The attributes of a manifest, each of its type."""
    try:
        shards = tuple(Shard(**shard) for shard in words["shards"])
        numbers = {name: words[name] for name in ("records", "bytes", "identities")}
        counts = [*numbers.values()]
        for shard in shards:
            least, largest = shard.keys
            counts += [shard.first, shard.records, shard.bytes, least, largest]
            names = (shard.file, shard.index)
            # A manifest speaks of its own folder only.
            if any(not name or os.path.basename(name) != name for name in names):
                raise ManifestError(f"{names} are no names of files in its folder", path=path)
            if not all(re.fullmatch("[0-9a-f]{64}", x) for x in (shard.sha256, shard.index_sha256)):
                raise ValueError(shard)
        if not shards or not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError(counts)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError("a field is missing, or not what it should be", path=path) from None
    return {**numbers, "shards": shards}


def shard(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    n: int,
    *,
    skip_errors: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> PackReport:
    """Cut a pack into files of about equal size, with a manifest.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, with or without ``.rec``; ``PREFIX.idx`` is used if it is there.
    out : str or os.PathLike
        A folder that exists, in which the files are named after the pack; or how they are named:
        ``data/train`` gives ``data/train-000000.rec`` and so on, and ``%04d`` in it says where the
        number stands.  Each gets an index.  The manifest is ``data/train.shards.json``.
    n : int
        How many files; at most as many as there are records.
    skip_errors : bool
        Leave damaged records out and count them; otherwise the first one stops everything.
    progress : callable, optional
        ``progress(done, total)``: records written so far, and in all.
    cancelled : callable, optional
        Asked now and then; when true, `KeyboardInterrupt` is raised and nothing is published.

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
    >>> from recordio import RecordWriter
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
        _check_older(manifest, names)
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
            return _json_of(found)

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
        sha256=_sha256(files[0], cancelled),
        index_sha256=_sha256(files[1], cancelled),
    )


def check_shards(
    path: str | os.PathLike[str],
    contents: bool = True,
    *,
    progress: Callable[[int, int], object] | None = None,
) -> ShardManifest:
    """See that the shards of a manifest are there and are what it says.

    Parameters
    ----------
    path : str or os.PathLike
        The manifest; the files are beside it.
    contents : bool
        Read all files and compare their checksums; otherwise only sizes and indexes.
    progress : callable, optional
        ``progress(done, total)``: bytes of record files that were compared, and of all.

    Returns
    -------
    ShardManifest
        Its `files` can be given to the iterators.

    Raises
    ------
    ManifestError
        If the manifest cannot be understood, contradicts itself, or a file is missing or not what
        it says.  The error names the file.
    OSError
        If a file cannot be read.

    Examples
    --------
    See `shard`.
    """
    manifest = ShardManifest.read(path)
    first = done = 0
    for shard, file in zip(manifest.shards, manifest.files, strict=True):
        index = os.path.join(os.path.dirname(file), shard.index)
        for name in (file, index):
            if not os.path.isfile(name):
                raise ManifestError(
                    f"{manifest.path} lists it, and there is no such file", path=name
                )
        if os.path.getsize(file) != shard.bytes:
            raise ManifestError(
                f"it has {os.path.getsize(file)} bytes, and {shard.bytes} in {manifest.path}",
                path=file,
            )
        _check_index(manifest, shard, index)
        if contents:
            for name, expected in ((file, shard.sha256), (index, shard.index_sha256)):
                if _sha256(name) != expected:
                    raise ManifestError(
                        f"it is not the file whose checksum is in {manifest.path}", path=name
                    )
        if shard.first != first:
            raise ManifestError(
                f"{shard.file} begins with record {shard.first}, and should with {first}",
                path=manifest.path,
            )
        first += shard.records
        done += shard.bytes
        if progress is not None:
            progress(done, manifest.bytes)
    if (first, done) != (manifest.records, manifest.bytes):
        raise ManifestError(
            f"its files have {first} records and {done} bytes, and it says {manifest.records} and "
            f"{manifest.bytes}",
            path=manifest.path,
        )
    return manifest


def _check_index(manifest: ShardManifest, shard: Shard, index: str) -> None:
    keys, _ = read_index(index)
    images = (keys >= shard.keys[0]) & (keys <= shard.keys[-1])
    lines = shard.records + (manifest.identities + 1 if manifest.identities else 0)
    if len(keys) != lines or int(images.sum()) != shard.records:
        raise ManifestError(
            f"it does not list the {shard.records} records that are in {manifest.path}", path=index
        )


def _sha256(path: str, cancelled: Callable[[], bool] = lambda: False) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(BUFFER):
            digest.update(block)
            if cancelled():
                raise KeyboardInterrupt
    return digest.hexdigest()


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
    folder = os.path.dirname(target)
    if folder and not os.path.isdir(folder):
        raise FileNotFoundError(
            2, "the folder for the output does not exist; make it first", folder
        )
    before, digits, after = number_template(target)
    names = [f"{before}{number:0{digits}d}{after}" for number in range(n)]
    stem = os.path.basename(before).rstrip("-_.") or pack_prefix(after).strip("-_.") or "pack"
    return names, os.path.join(folder, f"{stem}{SUFFIX}")


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


def _check_older(manifest: str, names: Sequence[str]) -> None:
    """Refuse to leave files of an older manifest that would be taken for some of the new ones."""
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
