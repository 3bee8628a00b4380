"""The manifest of a pack that was cut into files: which they are, and whether they are complete.

It is JSON, and it names files of its own folder only, which may be on a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from ..bytes.files import StoredFile, named_files, with_mirrors
from ..bytes.remote.objects import redacted_url
from ..bytes.remote.settings import RemoteSettings
from ..bytes.storage import AtomicOutput
from ..errors import ManifestError
from ..frames.companions import set_paths
from ..frames.index_file import read_index
from .field_files import field_file, without_fields
from .fields_meta import check_name

#: What a manifest calls itself, and the version that is written and read.
FORMAT, VERSION = "recordio shards", 1
#: A manifest is read as a whole: no honest one is larger.
LARGEST_MANIFEST = 1 << 28
BUFFER = 1 << 20


@dataclass(frozen=True)
class ShardField:
    """The pack of one field of a shard: names of its files in the folder, sizes and checksums."""

    name: str
    file: str
    index: str
    bytes: int
    sha256: str
    index_sha256: str


@dataclass(frozen=True)
class Shard:
    """One file of a sharded pack.

    Attributes
    ----------
    file, index : str
        Names of the record file and its index, in the folder of the manifest.
    first : int
        Number of its first record in the whole pack, from 0.
    records : int
        Records in it, without those that list identities.
    keys : list of int
        The smallest and the largest key of these records.
    bytes : int
        Size of the record file.
    sha256, index_sha256 : str
        SHA-256 of both files, in hexadecimal, as the command ``sha256sum`` prints them.
    fields : tuple of ShardField
        Record files of its fields, each with its index, size and checksums.
    """

    file: str
    index: str
    first: int
    records: int
    keys: list[int]
    bytes: int
    sha256: str
    index_sha256: str
    fields: tuple[ShardField, ...] = ()

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Shard:
        """Make a shard from its entry in a manifest."""
        shard = cls(**words)
        return replace(shard, fields=tuple(ShardField(**entry) for entry in shard.fields))  # type: ignore[arg-type]

    def words(self) -> dict[str, Any]:
        """Return the entry of the shard in a manifest."""
        words = asdict(self)
        if not self.fields:
            del words["fields"]
        return words


@dataclass(frozen=True)
class ShardManifest:
    """The content of a manifest.

    Attributes
    ----------
    path : str
        The manifest, or its URL.
    records, bytes : int
        Records of all shards, and bytes of all record files.
    identities : int
        Identities of a face-recognition pack, which every shard lists; 0 for other packs.
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
        """Paths of the record files, in the order of the pack, as iterators take them."""
        return [StoredFile(self.path).neighbour(shard.file).name for shard in self.shards]

    @property
    def indexes(self) -> list[str]:
        """Paths of their indexes."""
        return [StoredFile(self.path).neighbour(shard.index).name for shard in self.shards]

    def check_sizes(self) -> None:
        """Check that all files exist and the record files have the listed sizes.

        Raises
        ------
        ManifestError
            For the first file that is missing or has another size.
        RemoteFileError
            If a file on a server cannot be reached.
        """
        pairs = ([StoredFile.at(name) for name in names] for names in (self.files, self.indexes))
        self._check_files(*(with_mirrors(files, None) for files in pairs))

    def _check_files(self, files: Sequence[StoredFile], indexes: Sequence[StoredFile]) -> None:
        """Check the sizes of opened files."""
        for shard, *pair in zip(self.shards, files, indexes, strict=True):
            self._check_pair(shard, *pair)

    def _check_pair(self, shard: Shard | ShardField, file: StoredFile, index: StoredFile) -> None:
        for stored in (file, index):
            if stored.is_local and not stored.exists():
                raise ManifestError(
                    f"{self.path} lists it, and there is no such file", path=stored.name
                )
        if file.size() != shard.bytes:
            raise ManifestError(
                f"it has {file.size()} bytes, and {shard.bytes} in {redacted_url(self.path)}",
                path=redacted_url(file.name),
            )

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], settings: RemoteSettings | None = None
    ) -> ShardManifest:
        """Read a manifest without looking at its files.

        Parameters
        ----------
        path : str or os.PathLike
            The manifest, or its URL.
        settings : RemoteSettings, optional
            How a URL is reached.

        Returns
        -------
        ShardManifest

        Raises
        ------
        ManifestError
            If the file is no manifest, or one of another version.
        OSError
            If the file cannot be read.
        """
        file = StoredFile.at(path)
        if not file.is_local:
            file = StoredFile(file.name, file.mirrored(settings))
        name = redacted_url(file.name)
        if file.size() > LARGEST_MANIFEST:
            raise ManifestError("it is too large for a manifest of shards", path=name)
        text = bytes(file.map())
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
        return cls(file.name, **_fields(words, name))


class ListedPacks(NamedTuple):
    """Record files that were named, each with its index."""

    files: list[StoredFile]
    indexes: list[StoredFile | None]
    #: The manifest that names each.
    manifests: list[ShardManifest | None]


def is_manifest(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path names a manifest and no record file: those end with ``.json``.

    >>> is_manifest("train.shards.json"), is_manifest("train.rec")
    (True, False)
    """
    return redacted_url(os.fsdecode(path)).endswith(".json")


def named_manifest(path: str | os.PathLike[str]) -> ShardManifest | None:
    """Read the manifest that a path names and check its sizes; None for a record file."""
    if not is_manifest(path):
        return None
    manifest = ShardManifest.read(path)
    manifest.check_sizes()
    return manifest


def listed_packs(
    paths: str | Sequence[str],
    indexes: str | Sequence[str] = "",
    name: str = "path",
    settings: RemoteSettings | None = None,
) -> ListedPacks:
    """Find the record files, with their indexes, of paths, folders, patterns and manifests.

    Paths are those of `bytes.files.listed_files`, and one that ends with ``.json`` is a manifest,
    which stands for its files with their indexes; their sizes are compared.  Errors call the paths
    by the name given.

    >>> import tempfile
    >>> from recordio import RecordWriter, shard
    >>> folder = tempfile.mkdtemp()
    >>> with RecordWriter(f"{folder}/a.rec") as writer:
    ...     for number in range(10):
    ...         _ = writer.write(b"record %d" % number)
    >>> _ = shard(f"{folder}/a", folder, 2)
    >>> packs = listed_packs(f"{folder}/a.shards.json")
    >>> [os.path.basename(file.name) for file in (*packs.files, *packs.indexes)]
    ['a-000000.rec', 'a-000001.rec', 'a-000000.idx', 'a-000001.idx']
    """
    named = redacted_url(paths) if isinstance(paths, str) else ";".join(map(redacted_url, paths))
    files: list[StoredFile] = []
    beside: list[StoredFile | None] = []
    named_by: list[ShardManifest | None] = []
    manifests: dict[int, ShardManifest] = {}  # by the position of their first file
    for file in without_fields(named_files(paths, ".rec", settings), paths, ".rec", settings):
        if is_manifest(file.name):
            manifest = manifests[len(files)] = ShardManifest.read(file.name, settings)
            files += map(StoredFile.at, manifest.files)
            beside += map(StoredFile.at, manifest.indexes)
            named_by += [manifest] * len(manifest.shards)
        else:
            files.append(file)
            beside.append(None)
            named_by.append(None)
    if not files:
        raise ValueError(f"{name}={named!r} names no file")
    with_identities = any(manifest.identities for manifest in manifests.values())
    if with_identities and any(manifest is not named_by[0] for manifest in named_by):
        raise ValueError(
            f"{name}={named!r}: every face-recognition pack has identities of its own: give each "
            "as a Pack"
        )
    if indexes and manifests:
        raise ValueError(f"{named} names the indexes of its files: drop {indexes!r}")
    if indexes:
        index_files = named_files(indexes, ".idx", settings)
        beside = list(without_fields(index_files, indexes, ".idx", settings))
    if len(beside) != len(files):
        raise ValueError(f"{len(files)} record files but {len(beside)} index files")
    # Before the record files, because an index has to be there as a whole even if these cannot be.
    opened = with_mirrors([index for index in beside if index is not None], settings)
    for index in opened:
        if index.mirror is not None:
            index.mirror.prefetch(0, index.mirror.size)  # many at a time: readers take them in turn
    following = iter(opened)
    beside = [None if index is None else next(following) for index in beside]
    files = with_mirrors(files, settings)
    for first, manifest in manifests.items():
        mine = slice(first, first + len(manifest.shards))
        manifest._check_files(files[mine], [index for index in beside[mine] if index is not None])
    return ListedPacks(files, beside, named_by)


def json_of(manifest: ShardManifest) -> bytes:
    """Make the content of the file."""
    words = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    words["shards"] = [shard.words() for shard in manifest.shards]
    del words["path"]
    return json.dumps(words, indent=1).encode() + b"\n"


def described_fields(
    packs: Iterable[tuple[str, str]],
    files: Iterable[str],
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[ShardField, ...]:
    """Describe fields of a shard: the name and the record file of each.

    `files` are where their record files and indexes are now, in turn.
    """
    shard_fields, left = [], iter(files)
    for name, path in packs:
        file, index = next(left), next(left)
        shard_fields.append(
            ShardField(
                name,
                os.path.basename(path),
                f"{os.path.basename(path).removesuffix('.rec')}.idx",
                os.path.getsize(file),
                sha256_of(file, cancelled),
                sha256_of(index, cancelled),
            )
        )
    return tuple(shard_fields)


def described_shard(
    path: str,
    index: str,
    cancelled: Callable[[], bool] = lambda: False,
    fields: Sequence[str] = (),
) -> Shard:
    """Describe a pack without identities, which is to be one of the shards, with ``first=0``.

    `cancelled` is asked now and then; when it is true, `KeyboardInterrupt` is raised.
    """
    keys, _ = read_index(index)
    packs = [(name, field_file(StoredFile(path), name).name) for name in fields]
    return Shard(
        file=os.path.basename(path),
        index=os.path.basename(index),
        first=0,
        records=len(keys),
        keys=[int(keys.min()), int(keys.max())],
        bytes=os.path.getsize(path),
        sha256=sha256_of(path, cancelled),
        index_sha256=sha256_of(index, cancelled),
        fields=described_fields(packs, set_paths(path.removesuffix(".rec"), fields), cancelled),
    )


def write_manifest(path: str, shards: Sequence[Shard]) -> ShardManifest:
    """Write the manifest of shards without identities, in their folder and in their order.

    It appears whole or not at all; one that is there and the same is left alone.  The number of the
    first record of each shard is found here.
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
    """Read the attributes of a manifest, each of its type."""
    try:
        shards = tuple(Shard.of(shard) for shard in words["shards"])
        numbers = {name: words[name] for name in ("records", "bytes", "identities")}
        counts = [*numbers.values()]
        for shard in shards:
            least, largest = shard.keys
            counts += [shard.first, shard.records, least, largest]
            both: list[Shard | ShardField] = [shard, *shard.fields]
            for part in both:
                counts.append(part.bytes)
                check_name(getattr(part, "name", "shard"))
                names = (part.file, part.index)
                # A manifest speaks of its own folder only.
                if any(not name or os.path.basename(name) != name for name in names):
                    raise ManifestError(f"{names} are no names of files in its folder", path=path)
                sums = (part.sha256, part.index_sha256)
                if not all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in sums):
                    raise ValueError(part)
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
    """Check that the shards of a manifest exist and match it.

    Parameters
    ----------
    path : str or os.PathLike
        The manifest, on a disk of this machine; the files are beside it.
    contents : bool
        Read all files, those of fields too, and compare their checksums; otherwise compare only
        sizes and indexes.
    progress : callable, optional
        Called as ``progress(done, total)``, in bytes of record files.

    Returns
    -------
    ShardManifest
        Its `files` can be given to the iterators.

    Raises
    ------
    ManifestError
        If the manifest cannot be parsed or contradicts itself, or a file is missing or differs from
        it.  The error names the file.
    IndexFileError
        If an index cannot be parsed.
    OSError
        If a file cannot be read, or `path` is a URL.

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
    StoredFile.at(path).check_local()
    manifest = ShardManifest.read(path)
    first = done = 0
    for shard, file, index in zip(manifest.shards, manifest.files, manifest.indexes, strict=True):
        manifest._check_pair(shard, StoredFile.at(file), StoredFile.at(index))
        _check_index(manifest, shard, index)
        if contents:
            _check_contents(manifest, shard, file, index)
        for field in shard.fields:
            pair = [StoredFile.at(path).neighbour(name) for name in (field.file, field.index)]
            manifest._check_pair(field, *pair)
            if contents:
                _check_contents(manifest, field, *(stored.name for stored in pair))
        if shard.first != first:
            raise ManifestError(
                f"{shard.file} begins with record {shard.first} instead of {first}",
                path=manifest.path,
            )
        first += shard.records
        done += shard.bytes
        if progress is not None:
            progress(done, manifest.bytes)
    if (first, done) != (manifest.records, manifest.bytes):
        raise ManifestError(
            f"its files have {first} records and {done} bytes, instead of {manifest.records} and "
            f"{manifest.bytes}",
            path=manifest.path,
        )
    return manifest


def _check_contents(
    manifest: ShardManifest, shard: Shard | ShardField, file: str, index: str
) -> None:
    """Compare a record file and its index with the checksums that are listed."""
    for name, expected in ((file, shard.sha256), (index, shard.index_sha256)):
        if sha256_of(name) != expected:
            raise ManifestError(
                f"it is not the file whose checksum is in {manifest.path}", path=name
            )


def _check_index(manifest: ShardManifest, shard: Shard, index: str) -> None:
    keys, _ = read_index(index)
    images = (keys >= shard.keys[0]) & (keys <= shard.keys[-1])
    lines = shard.records + (manifest.identities + 1 if manifest.identities else 0)
    if len(keys) != lines or int(images.sum()) != shard.records:
        raise ManifestError(
            f"it does not list the {shard.records} records that are in {manifest.path}", path=index
        )


def sha256_of(path: str, cancelled: Callable[[], bool] = lambda: False) -> str:
    """Compute the checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(BUFFER):
            digest.update(block)
            if cancelled():
                raise KeyboardInterrupt
    return digest.hexdigest()
