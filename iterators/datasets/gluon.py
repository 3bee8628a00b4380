"""The datasets of MXNet's `gluon.data` and `gluon.data.vision`, under their names.

Images are uint8 arrays (height, width, channels), decoded when they are read.  Gluon's names
`Dataset` and `ImageRecordDataset` are those of other classes on the top level of `iterators`; here
they are also called `GluonDataset` and `GluonImageRecordDataset`, which goes by the index of its
file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from recordio.bytes.files import StoredFile
from recordio.containers.folder import walk_images
from recordio.errors import ImageDecodeError, ImageFileError, RecordIOError
from recordio.formats.decode import decode_image
from recordio.header import unpack
from recordio.keywords.checks import choice, integer
from recordio.notes import Notes

from ..core.indexing import by_position, resolve_rows
from ..images.stored_bits import CutBits
from .dataset_base import DatasetMixin
from .records import RecordDataset

Path = str | os.PathLike[str]
Transform = Callable[..., Any]

#: Suffixes of the files that are images.
EXTENSIONS = (".jpg", ".jpeg", ".png")
LEFT_OUT = (
    f"files were left out that are not images in folders of classes ({', '.join(EXTENSIONS)})"
)
#: What cuts images to 8 bits.
GLUON = "a data set of gluon (as in MXNet)"


class GluonDataset(DatasetMixin):
    """Base class: a number of samples, a sample at an index, and datasets made of them.

    A class of your own defines ``__len__`` and ``__getitem__``, as in gluon, or ``get_example``.

    Examples
    --------
    >>> numbers = SimpleDataset(range(10))
    >>> list(numbers.filter(lambda x: x % 2).transform(lambda x: x * x).take(3))
    [1, 9, 25]
    >>> [list(numbers.shard(3, k)) for k in range(3)]
    [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """

    def filter(self, fn: Callable[[Any], Any]) -> GluonDataset:
        """Return the samples for which a function is true; it is called for all of them now."""
        return _Chosen(self, [i for i in range(len(self)) if fn(self[i])])

    def shard(self, num_shards: int, index: int) -> GluonDataset:
        """Return one of several parts in a row; the first ones may be longer by one."""
        num_shards = integer("num_shards", num_shards, low=1)
        index = integer("index", index, 0, num_shards - 1)
        size, longer = divmod(len(self), num_shards)
        start = size * index + min(index, longer)
        return _Chosen(self, range(start, start + size + (index < longer)))

    def take(self, count: int | None) -> GluonDataset:
        """Return the first samples, at most `count`; all of them for None."""
        if count is None:
            return _Chosen(self, range(len(self)))
        return _Chosen(self, range(min(integer("count", count, low=0), len(self))))

    def sample(self, sampler: Iterable[int]) -> GluonDataset:
        """Return the samples at the indices that a sampler gives now, once."""
        return _Chosen(self, list(sampler))

    def transform(self, fn: Transform, lazy: bool = True) -> GluonDataset:
        """Apply a function to every sample; the items of a tuple are its arguments.

        Parameters
        ----------
        fn : callable
        lazy : bool
            Call it at every access to a sample.  If False, it is called once for all samples now.
        """
        changed = _Transformed(self, fn)
        return changed if lazy else SimpleDataset([changed[i] for i in range(len(self))])

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> GluonDataset:
        """Apply a function to the first item of every sample, the others staying as they are."""
        return self.transform(_OfFirst(fn), lazy)


class SimpleDataset(GluonDataset):
    """A list, an array, or anything else with a length and an index.

    Parameters
    ----------
    data : sequence
    """

    def __init__(self, data: Any) -> None:
        self._data = by_position(data)

    def __len__(self) -> int:
        return len(self._data)

    def get_example(self, i: Any) -> Any:
        """Return the item at an index."""
        return self._data[i]


class ArrayDataset(GluonDataset):
    """Tuples of the items of several sequences at an index; the items of a single one.

    Parameters
    ----------
    *args : sequence
        At least one, all of one length.

    Examples
    --------
    >>> ArrayDataset([10, 20], "ab")[1]
    (20, 'b')
    """

    def __init__(self, *args: Any) -> None:
        lengths = {len(data) for data in args}
        if len(lengths) != 1:
            raise ValueError(f"sequences of lengths {sorted(lengths)}: expected one length")
        self._data = tuple(map(by_position, args))

    def __len__(self) -> int:
        return len(self._data[0])

    def get_example(self, i: Any) -> Any:
        """Return the items at an index."""
        if len(self._data) == 1:
            return self._data[0][i]
        return tuple(data[i] for data in self._data)


class RecordFileDataset(GluonDataset):
    """The records of a file, in the order of its index.

    Parameters
    ----------
    filename : path
        The ``.rec`` file.  An ``.idx`` file of the same name beside it gives the records and their
        order; without one the file is scanned, and all records come in its order.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     _ = writer.write(b"one"), writer.write(b"two")
    >>> list(RecordFileDataset(path))
    [b'one', b'two']
    """

    def __init__(self, filename: Path) -> None:
        self.filename: str = os.fspath(filename)
        self.idx_file: str = os.path.splitext(self.filename)[0] + ".idx"
        index = self.idx_file if os.path.exists(self.idx_file) else None
        self._records = RecordDataset(self.filename, index)

    def __len__(self) -> int:
        return len(self._records)

    def get_example(self, i: Any) -> Any:
        """Return the record at a position, as bytes."""
        return self._records.get_example(i)


class GluonImageRecordDataset(RecordFileDataset):
    """The images of a record file and their labels, in the order of its index.

    Parameters
    ----------
    filename : path
        As for `RecordFileDataset`.
    flag : {1, 0}
        1 for RGB, 0 for grey.
    transform : callable, optional
        ``transform(image, label)`` returns the replacement of both.

    Notes
    -----
    A sample is ``(image, label)``: uint8 (height, width, channels), and a float or, for a record
    with several labels, a float32 array.

    Examples
    --------
    >>> import pathlib, recordio, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "a.rec")
    >>> with recordio.RecordWriter(path) as writer:
    ...     pixels = np.full((4, 6, 3), 9, np.uint8)
    ...     header = recordio.IRHeader(0, 7, 0, 0)
    ...     _ = writer.write(recordio.pack_img(header, pixels, img_fmt=".png"))
    >>> image, label = GluonImageRecordDataset(path)[0]
    >>> image.shape, label
    ((4, 6, 3), 7.0)
    """

    def __init__(self, filename: Path, flag: int = 1, transform: Transform | None = None) -> None:
        super().__init__(filename)
        self._cut = CutBits()
        self._channels = _channels(flag)
        self._transform = transform

    def get_example(self, i: Any) -> Any:
        """Return the image and the label at a position, transformed if there is a transform."""
        record = super().get_example(i)
        try:
            header, content = unpack(record)
            label = np.array(header.label) if header.flag else header.label
            self._cut.look(content, GLUON)
            sample = decode_image(content, channels=self._channels), label
        except RecordIOError as error:
            raise error.at(**self._records.location_of(i)) from None
        return sample if self._transform is None else self._transform(*sample)


class ImageFolderDataset(GluonDataset):
    """The images of a folder whose subfolders are the classes.

    Parameters
    ----------
    root : path
        The folder; ``~`` is the home folder.
    flag : {1, 0}
        1 for RGB, 0 for grey.
    transform : callable, optional
        ``transform(image, label)`` returns the replacement of both.

    Attributes
    ----------
    synsets : list of str
        The subfolders, sorted: names of the labels.
    items : list of (str, int)
        Path and label of every image: the ``.jpg``, ``.jpeg`` and ``.png`` files.  Hidden folders
        and files are none, unlike in MXNet.

    Warns
    -----
    UserWarning
        For what was left out, once for each kind.

    Examples
    --------
    >>> import cv2, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("cat", "dog"):
    ...     (folder / name).mkdir()
    ...     _ = cv2.imwrite(str(folder / name / "a.png"), np.zeros((4, 6, 3), np.uint8))
    >>> images = ImageFolderDataset(folder)
    >>> images.synsets, images[1][0].shape, images[1][1]
    (['cat', 'dog'], (4, 6, 3), 1)
    """

    def __init__(self, root: Path, flag: int = 1, transform: Transform | None = None) -> None:
        self._channels = _channels(flag)
        self._transform = transform
        self._cut = CutBits()
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        notes = Notes()
        root = os.path.expanduser(root)

        def pass_over(path: str, reason: str, error: OSError | None) -> None:
            if error is not None:
                raise ImageFileError(reason, path=os.path.join(root, path))
            notes.add(LEFT_OUT, path)

        # Each folder in the root has a label, as in Gluon, one without images too; im2rec differs.
        for folder, images, other_files in walk_images(root, EXTENSIONS, 1, pass_over, notes):
            for name in other_files if folder else images + other_files:
                notes.add(LEFT_OUT, os.path.join(folder, name))
            if folder:
                paths = [os.path.join(root, folder, name) for name in images]
                self.items += [(path, len(self.synsets)) for path in paths]
                self.synsets.append(folder)
        notes.say(root, stacklevel=2)

    def __len__(self) -> int:
        return len(self.items)

    def get_example(self, i: Any) -> Any:
        """Return the image and the label at a position, transformed if there is a transform."""
        path, label = self.items[resolve_rows(i, len(self))]
        with StoredFile.at(path).open() as file:
            content = file.read()
        try:
            self._cut.look(content, GLUON)
            image = decode_image(content, channels=self._channels)
        except ImageDecodeError as error:
            raise ImageDecodeError(error.reason, path=path) from None
        return (image, label) if self._transform is None else self._transform(image, label)


#: Gluon's names.
Dataset: TypeAlias = GluonDataset
ImageRecordDataset: TypeAlias = GluonImageRecordDataset


class _Chosen(GluonDataset):
    def __init__(self, data: Any, indices: Sequence[int]) -> None:
        self._data, self._indices = data, indices

    def __len__(self) -> int:
        return len(self._indices)

    def get_example(self, i: Any) -> Any:
        return self._data[self._indices[i]]


class _Transformed(SimpleDataset):
    def __init__(self, data: Any, fn: Transform) -> None:
        super().__init__(data)
        self._fn = fn

    def get_example(self, i: Any) -> Any:
        sample = self._data[i]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _OfFirst:
    """Can be pickled, unlike a function inside another one."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self._fn(first), *rest) if rest else self._fn(first)


def _channels(flag: int) -> int:
    return 3 if choice("flag", flag, (1, 0)) else 1
