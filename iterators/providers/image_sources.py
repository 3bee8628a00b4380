"""Sources of the images of a provider: packs of records, or image files that a list names.

Lists are read here, images never: the image stage reads each one when its turn comes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from recordio.bytes.remote.settings import RemoteSettings
from recordio.errors import FieldError, LabelError, RecordIOError
from recordio.header import IRHeader
from recordio.list_files import read_entries
from recordio.packs.sizes import SizedPaths, measured_sizes

from ..core.order import check_of
from ..images.sources.mixed_packs import Pack, Packs, as_packs
from ..images.sources.record_source import file_versions
from ..images.sources.source import ImageArrays, ImageFiles, Source
from .fetched_ahead import warn_of_refetching
from .image_caching import RAM, check_cache
from .image_options import ImageRecordOptions


class ImagePack(Protocol):
    """Images of one origin: what there is, in which parts and blocks, with which labels."""

    #: What messages call it.
    name: str

    @property
    def num_identities(self) -> int | None:
        """For a face-recognition pack, how many identities it has."""

    @property
    def identities(self) -> np.ndarray | None:
        """For a face-recognition pack, the keys of every identity's images."""

    @property
    def is_remote(self) -> bool:
        """True if some lie on servers, so that they have to be pinned while they are read."""

    @property
    def image_sizes(self) -> list[np.ndarray]:
        """Width and height of every image, upright, or both 0: uint32, (n, 2), for each file."""

    @property
    def images(self) -> ImagePack | None:
        """All images of samples that may have any number, numbered through; None if each is one."""

    @property
    def image_starts(self) -> np.ndarray | None:
        """Tell where the images of each sample begin among `images`, and the end: int64."""

    def header_of(self, record: int) -> IRHeader:
        """Read the header of a sample, which may have no image."""

    def __len__(self) -> int:
        """Number of images, or of samples that may have any number."""

    def bytes_source(self) -> Source:
        """Return what the image stage reads."""

    def field(self, name: str) -> Source:
        """Return what the image stage reads of a field: as many images, numbered alike."""

    def part(self, num_parts: int, part_index: int) -> range:
        """Records of one part, when they are not shuffled."""

    def blocks(self, nbytes: int) -> np.ndarray:
        """Cut the records into blocks of about `nbytes` of neighbours: their edges."""

    def shuffled_blocks(self) -> tuple[np.ndarray, int] | None:
        """Find the edges of blocks that are read as a whole, and how many of them are mixed."""

    def labels(
        self, listed: tuple[np.ndarray, ...] | None, on_error: str
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """First label of every record, and why some have none."""

    def location_of(self, record: int) -> dict[str, Any]:
        """Return the location of an image, as `RecordIOError` names it."""

    def fingerprint(self) -> str:
        """Short text that tells this source from others."""

    def version(self) -> str:
        """Short text that changes whenever one of the files does."""


class ImageSource(ImagePack, Protocol):
    """The images behind a provider, from one pack or several."""

    @property
    def members(self) -> Sequence[ImagePack]:
        """The packs that it consists of; itself if there are none."""

    @property
    def firsts(self) -> np.ndarray:
        """Number of the first image of each."""


def packs_of(options: ImageRecordOptions) -> tuple[Pack, ...]:
    """The packs that keywords name; what holds for one of several has to stand in its `Pack`."""
    single = ("path_imgidx", "path_imglist", "image_field", "label_field", "classes")
    own = options.values(*single, "cache", "cache_size")
    check_cache(own["cache"], own["cache_size"])
    packs = as_packs(options.path_imgrec)
    if packs is None:
        return (Pack(options.path_imgrec, **own),)
    for name in single:
        if own[name]:
            raise ValueError(f"{name} belongs to one pack: give it to that Pack")
    if own["cache"]:
        if any(pack.cache for pack in packs):
            raise ValueError("cache is given to the provider and to a Pack: drop one of both")
        if own["cache"] != RAM and len(packs) > 1:
            raise ValueError(
                f"cache={own['cache']!r}: every pack needs a file of its own: give it to each Pack"
            )
    for pack in packs:
        check_cache(pack.cache, pack.cache_size)
    return packs


def open_packs(
    packs: Sequence[Pack],
    options: ImageRecordOptions,
    kind: type[Packs] = Packs,
    **wishes: bool,
) -> Packs:
    """Open the record files of packs, and say what is odd about them.

    The `wishes` are those of `recordio.containers.container.Choice`: with `boxes` those of a
    container go before a class of the whole image, with `several` a sample may have any number of
    images.  There is a warning, too, if an epoch fetches them again and again.
    """
    source = kind(packs, options.on_error, options.verify, options.remote, **wishes)
    source.say_notes(options.fields, strict=options.strict, stacklevel=4)
    warn_of_refetching(source, options)
    return source


class FlooredPacks(Packs):
    """Record files whose parts follow the rule of MXNet's Python iterators."""

    def part(self, num_parts: int, part_index: int) -> range:
        """Records of one part; see `floor_part`."""
        return floor_part(len(self), num_parts, part_index)


class ImageFileSource:
    """Image files below `root`, with what `read_image_list` or `listed_images` made of a list.

    Messages call the list `name`.
    """

    identities: np.ndarray | None = None
    num_identities: int | None = None
    is_remote = False
    images: ImageFileSource | None = None
    image_starts: np.ndarray | None = None

    def __init__(
        self,
        name: str,
        images: tuple[list[str], np.ndarray, np.ndarray],
        root: str | os.PathLike[str] = "",
    ) -> None:
        self.name = name
        names, self._ids, self._labels = images
        if not names:
            raise ValueError(f"{name} names no image")
        # An absolute path stays what it is.
        self._paths = [os.path.join(root, item) for item in names]
        self._check = zlib.crc32("\n".join(names).encode("utf-8", "surrogateescape"))

    def header_of(self, record: int) -> IRHeader:
        """Make the header of an image."""
        labels = self._labels[record]
        return IRHeader(0, labels if len(labels) > 1 else float(labels[0]), self._ids[record], 0)

    def __len__(self) -> int:
        return len(self._paths)

    @property
    def members(self) -> list[ImageFileSource]:
        """Itself: the files are one pack."""
        return [self]

    @property
    def firsts(self) -> np.ndarray:
        """0, where it begins."""
        return np.zeros(1, np.int64)

    @property
    def image_sizes(self) -> list[np.ndarray]:
        """Width and height of every image, read from all files now; see `RecordSource`."""
        return [measured_sizes(SizedPaths(self._paths))]

    def bytes_source(self) -> Source:
        """Return what the image stage reads."""
        return ImageFiles(self._paths, self._ids, self._labels)

    def field(self, name: str) -> Source:
        """Refused: fields lie beside packs, and in containers."""
        raise FieldError(
            f"images outside a pack have no field {name}: `recordio pack` or im2rec, with "
            f"--field {name}=..., make one of them",
            path=self.name,
        )

    def part(self, num_parts: int, part_index: int) -> range:
        """Images of one part; see `floor_part`."""
        return floor_part(len(self), num_parts, part_index)

    def blocks(self, nbytes: int) -> np.ndarray:
        """Refused: neighbours in a list are not neighbours on a disk."""
        raise ValueError(f"blocks of {nbytes} bytes need a record file: {self.name} lists files")

    def shuffled_blocks(self) -> None:
        """Return None: files are read one by one."""

    def labels(
        self, listed: tuple[np.ndarray, ...] | None = None, on_error: str = "raise"
    ) -> tuple[np.ndarray, dict[int, RecordIOError]]:
        """First label of every image; none is without."""
        return self._labels[:, 0], {}

    def location_of(self, record: int) -> dict[str, Any]:
        """Return the location of an image, as `RecordIOError` names it."""
        return {"path": self._paths[record], "record": record}

    def fingerprint(self) -> str:
        """Short text that tells this list from others; the files are not read."""
        check = zlib.crc32(self._ids.tobytes(), self._check)
        return f"{len(self)} images, check {zlib.crc32(self._labels.tobytes(), check):08x}"

    def version(self) -> str:
        """Short text that changes whenever the list of files or one of them does."""
        check = zlib.crc32(file_versions(self._paths), self._check)
        return f"{len(self)} images, check {check:08x}"


class SampleFileSource(ImageFileSource):
    """Image files of which each sample has a list, which may be empty.

    A sample has the name and the place of its first file.
    """

    def __init__(
        self, name: str, samples: Sequence[Sequence[str]], labels: np.ndarray, root: str = ""
    ) -> None:
        firsts = [sample[0] if len(sample) else "" for sample in samples]
        super().__init__(name, (firsts, np.arange(len(samples), dtype=np.uint64), labels), root)
        files = [file for sample in samples for file in sample]
        self.image_starts = np.append(0, np.cumsum([len(sample) for sample in samples]))
        zeros = np.zeros((len(files), 1), np.float32)
        numbers = np.arange(len(files), dtype=np.uint64)
        if files:
            self.images = ImageFileSource(name, (files, numbers, zeros), root)
        self._check = zlib.crc32(self.image_starts.tobytes(), self._check)
        self._check = zlib.crc32("\n".join(files).encode("utf-8", "surrogateescape"), self._check)


class ImageArraySource(ImageFileSource):
    """Images of one size in an array, uint8 (n, height, width) or (n, height, width, 3).

    Messages call the array `name`; an image has one label.
    """

    def __init__(self, name: str, images: np.ndarray, labels: np.ndarray) -> None:
        if not len(images):
            raise ValueError(f"{name} has no image")
        if labels.shape != images.shape[:1]:
            raise ValueError(
                f"{name} has {len(images)} images and labels of shape {labels.shape}: expected one "
                "label for each image"
            )
        self.name = name
        self._images = np.ascontiguousarray(images)
        self._labels = _exactly(labels.astype(np.float64)[:, None])

    def __len__(self) -> int:
        return len(self._images)

    @property
    def image_sizes(self) -> list[np.ndarray]:
        """Width and height of every image: the same."""
        size = np.array(self._images.shape[2:0:-1], np.uint32)
        return [np.broadcast_to(size, (len(self), 2))]

    def bytes_source(self) -> Source:
        """Return what the image stage reads."""
        return ImageArrays(self._images, self._labels[:, 0])

    def location_of(self, record: int) -> dict[str, Any]:
        """Return the number of an image, as `RecordIOError` names it."""
        return {"path": self.name, "record": record}

    def fingerprint(self) -> str:
        """Short text that tells these images and labels from others."""
        return f"{len(self)} images, check {check_of(self._images, self._labels)}"

    version = fingerprint


def floor_part(count: int, num_parts: int, part_index: int) -> range:
    """Part of `count` by MXNet's rule for its Python iterators: all equal, a rest is of none."""
    size = count // num_parts
    return range(part_index * size, (part_index + 1) * size)


def read_image_list(
    path: str | os.PathLike[str], label_width: int, remote: RemoteSettings | None = None
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Paths, ids and labels, float32 (n, `label_width`), of the images of a list file."""
    names, ids, rows = [], [], []
    for line, entry in read_entries(path, settings=remote):
        if len(entry.labels) != label_width:
            raise LabelError(
                f"the line has {len(entry.labels)} labels, label_width is {label_width}",
                path=path,
                line=line,
            )
        names.append(entry.path)
        ids.append(entry.id)
        rows.append(entry.labels)
    table = np.array(rows, np.float64).reshape(-1, label_width)
    return names, np.array(ids, np.uint64), _exactly(table)


def listed_images(
    images: Sequence[Any], label_width: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Paths, ids (positions) and labels of items ``[label, ..., path]`` or ``[labels, path]``."""
    names, rows = listed_items(images)
    for number, numbers in enumerate(rows):
        if len(numbers) != label_width:
            raise LabelError(
                f"imglist: {images[number]!r} has {len(numbers)} labels, label_width is "
                f"{label_width}",
                record=number,
            )
    table = np.array(rows, np.float64).reshape(-1, label_width)
    return names, np.arange(len(names), dtype=np.uint64), _exactly(table)


def listed_items(images: Sequence[Any]) -> tuple[list[str], list[Sequence[float]]]:
    """Paths and labels, of any number, of a list in memory; as `listed_images`."""
    if isinstance(images, str) or not isinstance(images, Sequence):
        raise TypeError(f"imglist={images!r}: expected a sequence of [label, path]")
    names, rows = [], []
    for number, item in enumerate(images):
        try:
            *labels, name = item
            names.append(os.fspath(name))
            if not isinstance(names[-1], str) or not labels:
                raise TypeError
            rows.append(_numbers(labels[0] if len(labels) == 1 else labels))
        except (TypeError, ValueError):
            raise LabelError(
                f"imglist: expected [label, path] or [labels, path], found {item!r}", record=number
            ) from None
    return names, rows


def _numbers(labels: Any) -> Sequence[float]:
    """The labels of one image; raises if they are no numbers."""
    if isinstance(labels, (int, float)):  # what almost all are
        return (labels,)
    values = np.asarray(labels).ravel()
    if values.dtype.kind not in "biuf":
        raise TypeError
    return values.astype(np.float64).tolist()


def _exactly(labels: np.ndarray) -> np.ndarray:
    """The labels as float32, which whole numbers must survive."""
    rounded = labels.astype(np.float32)
    lost = (rounded != labels) & (labels == np.floor(labels))
    if lost.any():
        raise LabelError(
            f"the label {int(labels[lost][0])} is too large: labels are float32, which holds whole "
            "numbers up to 2**24"
        )
    return rounded
