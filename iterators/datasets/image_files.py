"""Images in files and zip archives, as arrays of channel, row and column, with any labels.

Pillow reads them, and the pixels are those of the file: nothing is turned, resized or
converted to other colours.  Image records are in `iterators.datasets.records`.
"""

from __future__ import annotations

import os
import weakref
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from recordio.bytes.files import StoredFile, open_text
from recordio.bytes.regular_files import open_regular
from recordio.containers.names import note_system_name
from recordio.containers.zip import named_members
from recordio.errors import ImageDecodeError
from recordio.formats.image_header import complete_limits, open_within_limits
from recordio.notes import Notes

from ..core.fork_safe_lock import ForkSafeLock
from ..core.layout import plan
from .combine import ConcatenatedDataset
from .dataset_base import DatasetMixin

Path = str | os.PathLike[str]

TO_CHW = plan("hwc", "chw")


#: Larger members of archives are not read: a record cannot be larger either.
MOST_BYTES = 1 << 29

Limits = dict[str, int]


def read_image(content: bytes, dtype: Any, limits: Limits) -> np.ndarray:
    """The pixels of an image file, (channels, height, width)."""
    with open_within_limits(content, limits) as image:
        try:
            pixels = np.array(image, dtype=dtype)
        except MemoryError:
            raise
        except Exception as error:  # the plugins of Pillow raise what they like on damaged files
            raise ImageDecodeError(f"the image cannot be decoded ({error})") from error
    if pixels.ndim == 2:
        return pixels[None]
    return TO_CHW(pixels)


def read_file(path: str, dtype: Any, limits: Limits) -> np.ndarray:
    """Read the pixels of an image file by its name, which errors have."""
    with StoredFile.at(path).open() as file:
        try:
            return read_image(file.read(), dtype, limits)
        except ImageDecodeError as error:
            raise ImageDecodeError(error.reason, path=path) from error


class ImageDataset(DatasetMixin):
    """Images in files.

    Parameters
    ----------
    paths : list of path, or path
        The image files, or a text file with one of them on every line; blank lines do not count.
    root : path
        Folder that the paths are relative to.
    dtype : dtype_like, optional
        Element type; float32 by default.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, as for
        `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Raises
    ------
    OSError
        On reading, for an image file that cannot be read.
    ImageDecodeError
        On reading, for a file that exceeds a limit or cannot be decoded.
    ImportError
        On reading, if Pillow is missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (4, 2), (255, 0, 7)).save(folder / "red.png")
    >>> image = ImageDataset(["red.png"], root=folder)[0]
    >>> image.shape, image.dtype, image[:, 0, 0].tolist()
    ((3, 2, 4), dtype('float32'), [255.0, 0.0, 7.0])
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        root: Path = ".",
        dtype: Any = None,
        **limits: int | None,
    ) -> None:
        if isinstance(paths, (str, os.PathLike)):
            with open_text(paths) as file:
                paths = [line.strip() for line in file if line.strip()]
        self._paths = paths
        self._root = root
        self._dtype = np.dtype(np.float32 if dtype is None else dtype)
        self._limits = complete_limits(limits)

    def __len__(self) -> int:
        return len(self._paths)

    def get_example(self, i: Any) -> np.ndarray:
        """Return the image, (channels, height, width)."""
        return read_file(os.path.join(self._root, self._paths[i]), self._dtype, self._limits)


class LabeledImageDataset(DatasetMixin):
    """Images in files, each with an integer label.

    Parameters
    ----------
    pairs : list of (path, int), or path
        Image files and labels, or a text file with both on every line.
    root : path
        Folder that the paths are relative to.
    dtype : dtype_like, optional
        Element type of the images; float32 by default.
    label_dtype : dtype_like
        Element type of the labels, which are arrays without axes.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, as for
        `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Raises
    ------
    ValueError
        If a line does not have exactly two fields, or its label is no number.
    OSError
        On reading, for an image file that cannot be read.
    ImageDecodeError
        On reading, for a file that exceeds a limit or cannot be decoded.
    ImportError
        On reading, if Pillow is missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> Image.new("L", (4, 2)).save(folder / "black.png")
    >>> image, label = LabeledImageDataset([("black.png", 5)], root=folder)[0]
    >>> image.shape, label
    ((1, 2, 4), array(5, dtype=int32))
    """

    def __init__(
        self,
        pairs: Path | Sequence[tuple[Path, int]],
        root: Path = ".",
        dtype: Any = None,
        label_dtype: Any = np.int32,
        **limits: int | None,
    ) -> None:
        self._label_dtype = np.dtype(label_dtype)
        if isinstance(pairs, (str, os.PathLike)):
            pairs = read_pairs(pairs, self._label_dtype)
        self._pairs = pairs
        self._root = root
        self._dtype = np.dtype(np.float32 if dtype is None else dtype)
        self._limits = complete_limits(limits)

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the image, (channels, height, width), and its label."""
        path, label = self._pairs[i]
        image = read_file(os.path.join(self._root, path), self._dtype, self._limits)
        return image, np.array(label, self._label_dtype)


class ZippedImageDataset(DatasetMixin):
    """Images in a zip archive, by position or by name.

    Parameters
    ----------
    zipfilename : path
    dtype : dtype_like, optional
        Element type; float32 by default.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, as for
        `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Raises
    ------
    zipfile.BadZipFile
        If it is no zip archive, or a member is damaged.
    ImageDecodeError
        On reading, for a member that exceeds a limit or cannot be decoded.
    IndexError, KeyError
        If there is no such member.

    Notes
    -----
    Members that are folders do not count, nor do hidden files and those of a system.  The archive
    is opened again in a forked or spawned process.

    Examples
    --------
    >>> import io, pathlib, tempfile
    >>> from PIL import Image
    >>> path = pathlib.Path(tempfile.mkdtemp(), "images.zip")
    >>> with zipfile.ZipFile(path, "w") as archive, archive.open("grey.png", "w") as file:
    ...     Image.new("L", (4, 2), 9).save(file, "png")
    >>> images = ZippedImageDataset(path)
    >>> images[0].shape, images["grey.png"].max()
    ((1, 2, 4), np.float32(9.0))
    """

    def __init__(
        self,
        zipfilename: Path,
        dtype: Any = None,
        **limits: int | None,
    ) -> None:
        self._path = os.fspath(zipfilename)
        self._dtype = np.dtype(np.float32 if dtype is None else dtype)
        self._limits = complete_limits(limits)
        self._access = ForkSafeLock()
        self._opened: tuple[int, Any] = (-1, None)
        notes = Notes()
        named = named_members(self._open().infolist(), notes)
        seen: set[str] = set()
        #: Names in the archive, by those of the samples.
        self._stored: dict[str, str] = {}
        for name, entry in named:
            if not name.endswith("/") and not note_system_name(name, notes, seen):
                self._stored[name] = entry.filename
        self._names = list(self._stored)
        notes.say(self._path, stacklevel=2)

    def _open(self) -> zipfile.ZipFile:
        """Return the archive of this process; after a fork an open file has a shared position."""
        owner, archive = self._opened
        if owner != os.getpid():
            open_regular(self._path).close()  # refuses pipes; the archive opens and closes its own
            archive = zipfile.ZipFile(self._path)
            # In a cycle the collector may end its file first, which warns.
            weakref.finalize(self, archive.close)
            self._opened = os.getpid(), archive
        return archive

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: Any) -> Any:
        return self.get_example(index) if isinstance(index, str) else super().__getitem__(index)

    def __getitems__(self, indices: Any) -> list[np.ndarray]:
        """Return several images, as a list."""
        return [self.get_example(i) for i in indices]

    def get_example(self, i: Any) -> np.ndarray:
        """Return the image with a position or a name, (channels, height, width)."""
        with self._access.lock:
            name = i if isinstance(i, str) else self._names[i]
            entry = self._open().getinfo(self._stored.get(name, name))
        try:
            if entry.file_size > MOST_BYTES:
                raise ImageDecodeError(
                    f"{entry.file_size} bytes are more than the {MOST_BYTES} that are read from an "
                    "archive: store it outside of one"
                )
            with self._access.lock:  # an archive counts its readers without one
                with self._open().open(entry) as member:  # no more than it says is unpacked
                    content = member.read(entry.file_size + 1)
            return read_image(content, self._dtype, self._limits)
        except ImageDecodeError as error:
            reason = f"member {entry.filename}: {error.reason}"
            raise ImageDecodeError(reason, path=self._path) from error

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_path", "_dtype", "_limits", "_names", "_stored")
        return {name: vars(self)[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._access = ForkSafeLock()
        self._opened = -1, None


class MultiZippedImageDataset(ConcatenatedDataset):
    """Images in several zip archives, one after the other.

    Parameters
    ----------
    zipfilenames : list of path
    dtype : dtype_like, optional
        Element type; float32 by default.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, as for
        `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Notes
    -----
    Indices below 0 are out of range (rule of Chainer); slices may have negative bounds.

    Examples
    --------
    >>> len(MultiZippedImageDataset([]))
    0
    """

    def __init__(
        self,
        zipfilenames: Sequence[Path],
        dtype: Any = None,
        **limits: int | None,
    ) -> None:
        super().__init__(*(ZippedImageDataset(name, dtype, **limits) for name in zipfilenames))


class LabeledZippedImageDataset(DatasetMixin):
    """Images in a zip archive, with labels in a text file.

    Parameters
    ----------
    zipfilename : path
    labelfilename : path
        Lines of member name and label.
    dtype : dtype_like, optional
        Element type of the images; float32 by default.
    label_dtype : dtype_like
        Element type of the labels, which are arrays without axes.
    **limits : int or None
        Images that exceed `max_pixels`, `max_scans` or `max_scan_pixels`, as for
        `recordio.unpack_img`, are refused before they are decoded; None for no limit.

    Raises
    ------
    ValueError
        As `LabeledImageDataset`.
    KeyError
        On reading, if the archive has no member with that name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with zipfile.ZipFile(folder / "a.zip", "w") as archive, archive.open("a.png", "w") as file:
    ...     Image.new("L", (4, 2), 9).save(file, "png")
    >>> _ = (folder / "labels.txt").write_text("a.png 3")
    >>> image, label = LabeledZippedImageDataset(folder / "a.zip", folder / "labels.txt")[0]
    >>> image.shape, label
    ((1, 2, 4), array(3, dtype=int32))
    """

    def __init__(
        self,
        zipfilename: Path,
        labelfilename: Path,
        dtype: Any = None,
        label_dtype: Any = np.int32,
        **limits: int | None,
    ) -> None:
        self._label_dtype = np.dtype(label_dtype)
        self._pairs = read_pairs(labelfilename, self._label_dtype)
        self._images = ZippedImageDataset(zipfilename, dtype, **limits)

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the image, (channels, height, width), and its label."""
        name, label = self._pairs[i]
        return self._images[name], np.array(label, self._label_dtype)


def read_pairs(path: Path, label_dtype: np.dtype) -> list[tuple[str, Any]]:
    """Return lines of path and label."""
    number = float if label_dtype.kind == "f" else int
    pairs = []
    with open_text(path) as file:
        for i, line in enumerate(file):
            try:
                name, label = line.split()
                pairs.append((name, number(label)))
            except ValueError:
                raise ValueError(
                    f"invalid format at line {i} in file {os.fspath(path)}: expected a path and a "
                    f"label, found {line.strip()[:80]!r}"
                ) from None
    return pairs
