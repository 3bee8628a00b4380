"""The samples of a container as images to pack: a list of them, contents, and parts of both."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from recordio.errors import EmptyRecordFileError, RecordIOError
from recordio.lists import ListEntry, safe_name
from recordio.packs.names import Names, one_name
from recordio.packs.open_pack import OpenPack, open_pack
from recordio.verification import is_verification_set

from .image_list import ImageList, format_line, shuffle_entries

__all__ = ["SampleImages", "SampleSpan", "cut_samples", "sample_list"]


class SampleImages:
    """The samples of a container, all its files together; the id of one is its number."""

    doubt = ""

    def __init__(self, source: Names) -> None:
        self.source = source
        self.pack: OpenPack = open_pack(source)
        if self.pack.container is None:
            if is_verification_set(self.pack.path):
                raise RecordIOError(
                    "it is a pickle, as verification sets of faces are; `recordio from-bin` packs "
                    "one",
                    path=self.pack.path,
                )
            _ = self.pack.reader  # a file of another kind says so
            raise RecordIOError(
                "it is a record file already; `recordio filter`, `shuffle`, `shard` and `optimize` "
                "make others of it",
                path=self.pack.path,
            )

    @cached_property
    def entries(self) -> list[ListEntry]:
        """List all samples in their order; their paths are names that a list can hold."""
        samples = self.pack.reader.samples
        labels, starts = samples.labels.tolist(), samples.label_starts().tolist()
        return [
            ListEntry(row, tuple(labels[starts[row] : starts[row + 1]]), safe_name(name))
            for row, name in enumerate(map(samples.name_of, range(len(samples))))
        ]

    def read(self, entry: ListEntry) -> bytes:
        """Copy the content of a sample."""
        return self.pack.reader.copied_content(entry.id)

    def name_of(self, entry: ListEntry) -> str:
        """Name the sample and its file."""
        where = self.pack.reader.location(entry.id)
        if self.pack.container is not None and self.pack.container.is_folder:
            return entry.path or where["path"]
        return f"{where['path']}, {entry.path or 'record {}'.format(where['record'])}"

    def path_of(self, name: str) -> str:
        """Return the same name: it has the file in it."""
        return name


@functools.lru_cache(maxsize=1)  # shards are made one after the other
def _opened(source: Names, stamp: str) -> SampleImages:
    return SampleImages(source)


def _stamp(source: Names) -> str:
    """Say in one word which version of its files a container has."""
    with open_pack(source) as pack:
        return repr(pack.version())


def sample_list(images: SampleImages, shuffle: bool = False) -> list[ListEntry]:
    """List the samples in their order, or in that in which im2rec shuffles so many."""
    if not images.entries:
        raise EmptyRecordFileError("there is no sample in it", path=images.pack.path)
    return shuffle_entries(images.entries) if shuffle else images.entries


@dataclass(frozen=True)
class SampleSpan:
    """Samples of a list; see `recordio.tools.pack_shards.Span`."""

    source: str | tuple[str, ...]
    stamp: str
    shuffle: bool
    begin: int
    end: int

    @property
    def images(self) -> int:
        """Number of samples."""
        return self.end - self.begin

    def read(self) -> bytes:
        """Return bytes that change with the files of the container and with the samples."""
        lines = "".join(map(format_line, self.listed().entries))
        return f"{self.stamp}\n{lines}".encode("utf-8", "surrogateescape")

    def listed(self) -> ImageList:
        """List the samples."""
        entries = sample_list(_opened(self.source, self.stamp), self.shuffle)
        return ImageList(entries[self.begin : self.end])

    def contents(self, root: str) -> SampleImages:
        """Return what reads the samples."""
        return _opened(self.source, self.stamp)


def _everywhere(name: str | os.PathLike[str]) -> str:
    """Return a name that means the same in other processes."""
    text = os.fsdecode(name)
    return text if "://" in text else os.path.abspath(text)


def cut_samples(source: Names, count: int | None, most: int, shuffle: bool) -> Sequence[SampleSpan]:
    """Cut the samples of a container into `count` spans, or into spans of at most `most`."""
    name: str | tuple[str, ...]
    if isinstance(source, (str, os.PathLike)):
        name = _everywhere(source)
    else:
        name = tuple(map(_everywhere, source))
    stamp = _stamp(name)
    total = len(sample_list(_opened(name, stamp)))
    spans = -(-total // most) if count is None else count
    if spans > total:
        raise EmptyRecordFileError(
            f"{spans} shards cannot be made of {total} samples", path=one_name(name)
        )
    cuts = [total * number // spans for number in range(spans + 1)]
    return [SampleSpan(name, stamp, shuffle, begin, end) for begin, end in itertools.pairwise(cuts)]
