"""Pack a list into shards, each made on its own: by one process, or by many on many machines.

The cuts depend on the list alone, and so do the contents of a shard.  A note beside each shard has
its lines, its options and its result; with the last of them the manifest is written.  A shard that
is whole is not made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Protocol

from recordio import EmptyRecordFileError
from recordio.bytes.regular_files import open_regular
from recordio.bytes.storage import AtomicOutput
from recordio.file_limits import LONGEST_LINE
from recordio.frames.companions import CHECKSUMS, FIELDS, INDEX, RECORDS, set_paths
from recordio.list_files import names_image
from recordio.operations.division import check_older, shard_names
from recordio.packs.manifest import (
    Shard,
    ShardField,
    ShardManifest,
    described_shard,
    sha256_of,
    write_manifest,
)

from .encode import EncodeOptions
from .image_list import ImageList, listed, write_skipped
from .pack import Images, PackingError, pack

#: Lines of the list that become one shard unless their number is asked for: 1 GB of photographs.
IMAGES_PER_SHARD = 10_000
#: Format name in a note.
FORMAT = "recordio shard 1"


@dataclass(frozen=True)
class ShardNote:
    """Result of a shard, kept in a file."""

    job: str  # checksum of the task
    shard: Shard | None  # with ``first=0``; None if not one image could be packed
    skipped: int  # images and lines
    reduced_to_8_bits: int = 0  # images of more bits


class Span(Protocol):
    """Some images of a longer list; it can be sent to another process."""

    @property
    def images(self) -> int:
        """Number of images, or of lines that name some."""

    @property
    def fields(self) -> Sequence[str]:
        """Names of the fields that they have themselves, besides those of the options."""

    def read(self) -> bytes:
        """Return bytes that change with the images that are listed."""

    def listed(self) -> ImageList:
        """List the images."""

    def contents(self, root: str) -> Images | str:
        """Return where the images are: a folder, or what reads them."""


@dataclass(frozen=True)
class ShardTask:
    """One shard to make: lines of a list, and the settings."""

    number: int
    shards: int
    span: Span
    prefix: str
    manifest: str
    root: str
    options: EncodeOptions
    checksums: bool = False

    @property
    def note_path(self) -> str:
        """Path of its note: in a folder beside the manifest."""
        folder = self.manifest.removesuffix(".json")
        return os.path.join(folder, f"{self.number:06d}.json")

    def job(self) -> str:
        """Return a checksum of lines, options and number of shards; images are not looked at."""
        words = {
            "shard": [self.number, self.shards],
            "root": self.root,
            "options": asdict(self.options),
            "checksums": self.checksums,
        }
        digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
        digest.update(self.span.read())
        return digest.hexdigest()

    def done(self) -> ShardNote | None:
        """Return the note of the shard if it is whole and made of the same lines in the same way.

        Sizes are compared, and the checksum of the index.
        """
        try:
            with open(self.note_path, "rb") as file:
                words = json.load(file)
            if words.pop("format") != FORMAT:
                return None
            note = ShardNote(**words)
            shard = None if note.shard is None else Shard.of(words["shard"])
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None
        note = replace(note, shard=shard)
        return note if note.job == self.job() and self._is_there(shard) else None

    def _is_there(self, shard: Shard | None) -> bool:
        if shard is None:
            return True
        files: list[Shard | ShardField] = [shard, *shard.fields]
        try:
            folder = os.path.dirname(self.prefix)
            return all(
                os.path.getsize(os.path.join(folder, part.file)) == part.bytes
                and sha256_of(os.path.join(folder, part.index)) == part.index_sha256
                for part in files
            )
        except FileNotFoundError:
            return False

    def make(
        self,
        *,
        threads: int | None = None,
        strict: bool = False,
        progress: Callable[[int], object] = lambda count: None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ShardNote:
        """Make the shard, and then its note; both appear whole or not at all.

        The parameters are those of `recordio.tools.pack.pack`.
        """
        job, fields = self.job(), [*self.span.fields, *(name for name, _ in self.options.field)]
        # A manifest is no longer true from here on; the maker of the last shard writes it.
        _remove(self.manifest)
        _remove(self.note_path)
        try:
            report = pack(
                self.span.listed(),
                self.span.contents(self.root),
                self.prefix,
                self.options,
                threads=threads,
                strict=strict,
                checksums=self.checksums,
                progress=progress,
                cancelled=cancelled,
            )
        except PackingError as error:
            if strict:
                raise
            own = [self.prefix + row.ending for row in (RECORDS, INDEX, CHECKSUMS, FIELDS)]
            for path in own + set_paths(self.prefix, fields, checksums=True):
                _remove(path)
            write_skipped(self.prefix, error.skipped)
            note = ShardNote(job, None, len(error.skipped))
        else:
            rec, idx = f"{self.prefix}.rec", f"{self.prefix}.idx"
            shard = described_shard(rec, idx, cancelled, fields)
            note = ShardNote(job, shard, len(report.skipped), report.reduced_to_8_bits)
        os.makedirs(os.path.dirname(self.note_path), exist_ok=True)
        with AtomicOutput(self.note_path) as output:
            output.write(json.dumps({"format": FORMAT, **asdict(note)}, indent=1).encode())
        return note


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def shard_tasks(
    path: str,
    root: str,
    options: EncodeOptions | None = None,
    shards: int | None = None,
    *,
    checksums: bool = False,
) -> list[ShardTask]:
    """Return the shards that a list becomes; nothing is made yet.

    The shards of ``PREFIX.lst`` are ``PREFIX-000000.rec`` and so on, by default one for every
    `IMAGES_PER_SHARD` lines.  They can be made in any order, by any number of processes, and hold
    the same bytes.

    A manifest that lists files which would stay beside the new ones is a ManifestError.
    """
    spans = cut_list(path, shards, IMAGES_PER_SHARD)
    if not spans:
        raise EmptyRecordFileError("the list is empty; --list makes it again", path=path)
    if shards is not None and len(spans) < shards:
        raise EmptyRecordFileError(
            f"{shards} shards cannot be made of {len(spans)} lines", path=path
        )
    prefix = os.path.splitext(path)[0]
    return tasks_of(spans, prefix, os.path.abspath(root), options, checksums=checksums)


def tasks_of(
    spans: Sequence[Span],
    prefix: str,
    root: str,
    options: EncodeOptions | None = None,
    *,
    checksums: bool = False,
) -> list[ShardTask]:
    """Return the shards ``PREFIX-000000.rec`` and so on that spans become."""
    names, manifest = shard_names("", prefix, len(spans))
    check_older(manifest, names)
    return [
        ShardTask(
            number,
            len(spans),
            span,
            os.path.splitext(name)[0],
            manifest,
            root,
            options or EncodeOptions(),
            checksums,
        )
        for number, (span, name) in enumerate(zip(spans, names, strict=True))
    ]


def part_of(tasks: Sequence[ShardTask], part: int, parts: int) -> Sequence[ShardTask]:
    """Return the shards of one of several workers, counted from 1: every `parts`-th."""
    return tasks[part - 1 :: parts]


def finish(tasks: Sequence[ShardTask], notes: Iterable[ShardNote] = ()) -> ShardManifest | None:
    """Write the manifest if all shards are whole; else return None.

    `notes` are known to be of whole shards; those of the other shards are read.
    """
    notes_by_file = {note.shard.file: note for note in notes if note.shard is not None}
    whole = []
    for task in tasks:
        note = notes_by_file.get(f"{os.path.basename(task.prefix)}.rec") or task.done()
        if note is None:
            return None
        whole.append(note)
    shards = [note.shard for note in whole if note.shard is not None]
    if not shards:
        raise EmptyRecordFileError(
            f"not one image could be packed; {tasks[0].prefix}.skipped.txt says why",
            path=tasks[0].manifest,
        )
    return write_manifest(tasks[0].manifest, shards)


@dataclass(frozen=True)
class ListSpan:
    """Some lines of a list."""

    path: str
    begin: int  # in bytes
    end: int
    before: int  # lines
    images: int  # lines that are neither blank nor comments
    fields: ClassVar[tuple[str, ...]] = ()

    def read(self) -> bytes:
        """Return the bytes of the lines."""
        with open_regular(self.path) as file:
            file.seek(self.begin)
            return file.read(self.end - self.begin)

    def listed(self) -> ImageList:
        """Return the images in the lines, as `recordio.tools.image_list.read_list` does for all."""
        encoding = "utf-8" if self.begin else "utf-8-sig"
        lines = io.TextIOWrapper(io.BytesIO(self.read()), encoding, errors="surrogateescape")
        return listed(lines, self.path, self.before)

    def contents(self, root: str) -> str:
        """Return where the images are: in files below a folder."""
        return root


def cut_list(path: str, count: int | None, most: int) -> list[ListSpan]:
    """Cut a list into spans of equally many images, give or take one.

    There are `count` spans, or as many as there are images; without `count`, spans of at most
    `most` images.
    """
    images = sum(is_image for _, is_image in _lines(path))
    spans = min(-(-images // most) if count is None else count, images)
    result: list[ListSpan] = []
    begin = end = before = cut = done = 0
    for number, (size, is_image) in enumerate(_lines(path), 1):
        end += size
        done += is_image
        if is_image and done == images * (len(result) + 1) // spans:
            result.append(ListSpan(path, begin, end, before, done - cut))
            begin, before, cut = end, number, done
    if result:  # blank lines and comments at the end
        result[-1] = replace(result[-1], end=end)
    return result


def _lines(path: str) -> Iterator[tuple[int, bool]]:
    """Yield size in bytes of each line, and if it names an image; too long ones come in pieces."""
    with open_regular(path) as file:
        while line := file.readline(4 * LONGEST_LINE):
            yield len(line), names_image(line)
