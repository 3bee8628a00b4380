"""The manifest of a pack that was cut into files: what belongs together, and whether it is whole.

It is JSON, and it names files of its own folder only.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from ..errors import ManifestError
from ..files import StoredFile, listed_files
from ..frames.index_file import read_index
from ..remote.objects import shown
from ..remote.settings import RemoteSettings
from ..storage import AtomicOutput

__all__ = [
    "ListedPacks",
    "Shard",
    "ShardManifest",
    "check_shards",
    "described_shard",
    "is_manifest",
    "json_of",
    "listed_packs",
    "sha256_of",
    "write_manifest",
]

#: What a manifest calls itself, and the version that is written and read.
FORMAT, VERSION = "recordio shards", 1
#: A manifest is read as a whole: no honest one is larger.
LARGEST_MANIFEST = 1 << 28
BUFFER = 1 << 20


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

    @property
    def indexes(self) -> list[str]:
        """Paths of their indexes."""
        folder = os.path.dirname(self.path)
        return [os.path.join(folder, shard.index) for shard in self.shards]

    def check_sizes(self) -> None:
        """See that the files are there, and that record files have the sizes that are listed.

        Raises
        ------
        ManifestError
            For the first that is missing or has another size.
        """
        for shard, *files in zip(self.shards, self.files, self.indexes, strict=True):
            self._check_files(shard, *files)

    def _check_files(self, shard: Shard, file: str, index: str) -> None:
        for name in (file, index):
            if not os.path.isfile(name):
                raise ManifestError(f"{self.path} lists it, and there is no such file", path=name)
        if os.path.getsize(file) != shard.bytes:
            raise ManifestError(
                f"it has {os.path.getsize(file)} bytes, and {shard.bytes} in {self.path}",
                path=file,
            )

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


class ListedPacks(NamedTuple):
    """Record files that were named, each with its index.

    Attributes
    ----------
    files : list of StoredFile
    indexes : list of StoredFile or None
    identities : int
        Identities of the face-recognition pack that a manifest describes, else 0.
    """

    files: list[StoredFile]
    indexes: list[StoredFile | None]
    identities: int


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a manifest and no record file: those end with ``.json``.

    Examples
    --------
    >>> is_manifest("train.shards.json"), is_manifest("train.rec")
    (True, False)
    """
    return os.fsdecode(path).endswith(".json")


def listed_packs(
    paths: str | Sequence[str],
    indexes: str | Sequence[str] = "",
    name: str = "path",
    settings: RemoteSettings | None = None,
) -> ListedPacks:
    """The record files, with their indexes, of paths, folders, patterns and manifests.

    Parameters
    ----------
    paths : str or sequence of str
        As `recordio.files.listed_files` takes them.  A path that ends with ``.json`` is a manifest,
        and stands for its files with their indexes; their sizes are compared.
    indexes : str or sequence of str
        The indexes in the same form; not together with a manifest, which names its own.
    name : str
        What errors call `paths`.
    settings : RemoteSettings, optional
        How URLs are reached.

    Returns
    -------
    ListedPacks

    Raises
    ------
    ManifestError
        If a manifest cannot be understood, or a file is missing or has another size.
    OSError
        If something is not there, or cannot be reached.
    ValueError
        If there is no file, the numbers of files and indexes differ, or the manifest of a
        face-recognition pack stands beside other files.

    Examples
    --------
    >>> import tempfile
    >>> from recordio import RecordWriter, shard
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(b"record %d" % number)
    >>> _ = shard(f"{folder}/a", folder, 2)
    >>> found = listed_packs(f"{folder}/a.shards.json")
    >>> [os.path.basename(file.name) for file in (*found.files, *found.indexes)]
    ['a-000000.rec', 'a-000001.rec', 'a-000000.idx', 'a-000001.idx']
    """
    named = shown(paths) if isinstance(paths, str) else ";".join(map(shown, paths))
    files: list[StoredFile] = []
    beside: list[StoredFile | None] = []
    manifests = []
    for file in listed_files(paths, ".rec", settings):
        if is_manifest(file.name):
            manifests.append(ShardManifest.read(file.name))
            manifests[-1].check_sizes()
            files += map(StoredFile.at, manifests[-1].files)
            beside += map(StoredFile.at, manifests[-1].indexes)
        else:
            files.append(file)
            beside.append(None)
    if not files:
        raise ValueError(f"{name}={named!r} names no file")
    identities = max((manifest.identities for manifest in manifests), default=0)
    if identities and len(files) != len(manifests[0].shards):
        raise ValueError(
            f"{name}={named!r}: every face-recognition pack has identities of its own: give each "
            "as a Pack"
        )
    if indexes and manifests:
        raise ValueError(f"{manifests[0].path} names the indexes of its files: drop {indexes!r}")
    if indexes:
        beside = list(listed_files(indexes, ".idx", settings))
    if len(beside) != len(files):
        raise ValueError(f"{len(files)} record files but {len(beside)} index files")
    return ListedPacks(files, beside, identities)


def json_of(manifest: ShardManifest) -> bytes:
    """The content of the file."""
    words = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    del words["path"]
    return json.dumps(words, indent=1).encode() + b"\n"


def described_shard(path: str, index: str, cancelled: Callable[[], bool] = lambda: False) -> Shard:
    """What a manifest says about a pack without identities, which is to be one of its shards.

    Parameters
    ----------
    path, index : str
        The record file and its index, in one folder.
    cancelled : callable, optional
        Asked now and then; when true, `KeyboardInterrupt` is raised.

    Returns
    -------
    Shard
        With ``first=0``.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    keys, _ = read_index(index)
    return Shard(
        file=os.path.basename(path),
        index=os.path.basename(index),
        first=0,
        records=len(keys),
        keys=[int(keys.min()), int(keys.max())],
        bytes=os.path.getsize(path),
        sha256=sha256_of(path, cancelled),
        index_sha256=sha256_of(index, cancelled),
    )


def write_manifest(path: str, shards: Sequence[Shard]) -> ShardManifest:
    """Write the manifest of shards without identities; it appears whole or not at all.

    Parameters
    ----------
    path : str
        The manifest, in the folder of the shards.  If it is there and the same, it is left alone.
    shards : sequence of Shard
        In the order of the pack; their ``first`` is found here.

    Returns
    -------
    ShardManifest

    Raises
    ------
    ManifestError
        If a file is missing or has another size by now.
    OSError
        If it cannot be written.
    """
    firsts = itertools.accumulate((shard.records for shard in shards), initial=0)
    manifest = ShardManifest(
        path,
        records=sum(shard.records for shard in shards),
        bytes=sum(shard.bytes for shard in shards),
        identities=0,
        shards=tuple(replace(s, first=first) for s, first in zip(shards, firsts, strict=False)),
    )
    manifest.check_sizes()
    content = json_of(manifest)
    with contextlib.suppress(FileNotFoundError):
        with open(path, "rb") as file:
            if file.read(len(content) + 1) == content:
                return manifest
    with AtomicOutput(path) as output:
        output.write(content)
    return manifest


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
    >>> import tempfile
    >>> from recordio import RecordWriter, shard
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(b"record %d" % number)
    >>> _ = shard(f"{folder}/a", folder, 2)
    >>> manifest = check_shards(f"{folder}/a.shards.json")
    >>> manifest.records, [os.path.basename(file) for file in manifest.files]
    (10, ['a-000000.rec', 'a-000001.rec'])
    """
    manifest = ShardManifest.read(path)
    first = done = 0
    for shard, file, index in zip(manifest.shards, manifest.files, manifest.indexes, strict=True):
        manifest._check_files(shard, file, index)
        _check_index(manifest, shard, index)
        if contents:
            for name, expected in ((file, shard.sha256), (index, shard.index_sha256)):
                if sha256_of(name) != expected:
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


def sha256_of(path: str, cancelled: Callable[[], bool] = lambda: False) -> str:
    """The checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(BUFFER):
            digest.update(block)
            if cancelled():
                raise KeyboardInterrupt
    return digest.hexdigest()
