"""The files of well-known sets of small images as arrays: MNIST and similar sets, and CIFAR.

Nothing is downloaded, scaled or split.  CIFAR's files "for Python" are pickled; they are read here
without running anything that they name.  Those of the binary version are read as well.
"""

from __future__ import annotations

import errno
import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordio.bytes.regular_files import open_regular
from recordio.errors import ArrayFileError
from recordio.file_limits import SMALLEST_LIMIT
from recordio.idx_array import read_idx_array
from recordio.pickled import array_of, bytes_of, read_pickle

#: Pictures of CIFAR: channels, rows, columns.
_CIFAR_IMAGE = (3, 32, 32)
#: Names of the files by number of classes, and of their labels, in the order of binary files.
_CIFAR_FILES = {
    10: ([f"data_batch_{number}" for number in range(1, 6)], ["test_batch"], ["labels"]),
    100: (["train"], ["test"], ["coarse_labels", "fine_labels"]),
}
#: Classes of the coarse labels of CIFAR-100.
_COARSE = 20


def read_mnist(
    folder: str | os.PathLike[str], part: str = "train"
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read the images and labels of MNIST, or of a set in the same files (Fashion, Kuzushiji).

    Parameters
    ----------
    folder : str or os.PathLike
        With ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte`` and the same of ``t10k``,
        plain or ``.gz``; ``train-images.idx3-ubyte`` is found as well.
    part : {"train", "test"}

    Returns
    -------
    images : numpy.ndarray, (n, rows, columns), uint8
    labels : numpy.ndarray, (n,), uint8

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ArrayFileError
        If a file is damaged, or the two do not belong together.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from recordio import write_idx_array
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_idx_array(folder / "t10k-images-idx3-ubyte", np.zeros((5, 28, 28), np.uint8))
    >>> write_idx_array(folder / "t10k-labels-idx1-ubyte.gz", np.arange(5, dtype=np.uint8))
    >>> images, labels = read_mnist(folder, "test")
    >>> images.shape, labels.tolist()
    ((5, 28, 28), [0, 1, 2, 3, 4])
    """
    prefix = {"train": "train", "test": "t10k"}[part]
    image_file = _find(folder, f"{prefix}-images-idx3-ubyte")
    label_file = _find(folder, f"{prefix}-labels-idx1-ubyte")
    images, labels = read_idx_array(image_file), read_idx_array(label_file)
    for array, axes, path in ((images, 3, image_file), (labels, 1, label_file)):
        if array.dtype != np.uint8 or array.ndim != axes:
            raise ArrayFileError(
                f"expected bytes along {axes} axes, not {array.dtype} of shape {array.shape}",
                path=path,
            )
    if len(images) != len(labels):
        raise ArrayFileError(
            f"has {len(images)} images, but {label_file} has {len(labels)} labels", path=image_file
        )
    return images, labels


def _find(folder: str | os.PathLike[str], name: str) -> str:
    names = [name + end for name in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    for candidate in names:
        path = os.path.join(os.fspath(folder), candidate)
        if os.path.exists(path):
            return path
    raise FileNotFoundError(
        errno.ENOENT, "no such file, nor one that ends in .gz", os.path.join(folder, name)
    )


def read_cifar(
    path: str | os.PathLike[str],
    classes: int = 10,
    part: str = "train",
    *,
    coarse: bool = False,
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read the images and labels of CIFAR-10 or CIFAR-100, from files for Python or binary ones.

    Parameters
    ----------
    path : str or os.PathLike
        The archive as it is downloaded (``cifar-10-python.tar.gz``, ``cifar-10-binary.tar.gz``), or
        a folder with its files.
    classes : {10, 100}
        Which of the two.
    part : {"train", "test"}
    coarse : bool
        The 20 coarse labels of CIFAR-100 instead of its 100 fine ones.

    Returns
    -------
    images : numpy.ndarray, (n, 3, 32, 32), uint8
        Channels are red, green and blue.
    labels : numpy.ndarray, (n,), uint8

    Raises
    ------
    FileNotFoundError
        If a file is missing, in the archive or in the folder.
    ArrayFileError
        If a file is damaged, larger than 2**28 bytes, or holds anything but lists, texts, numbers
        and arrays of bytes.

    Examples
    --------
    >>> import pickle, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> batch = {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [98, 3]}
    >>> _ = (folder / "test").write_bytes(pickle.dumps(batch, protocol=2))
    >>> images, labels = read_cifar(folder, 100, "test")
    >>> images.shape, labels.tolist()
    ((2, 3, 32, 32), [98, 3])
    """
    train, test, keys = _CIFAR_FILES[classes]
    names = {"train": train, "test": test}[part]
    if coarse and classes != 100:
        raise ValueError("coarse labels are those of CIFAR-100: drop coarse, or pass classes=100")
    key = keys[0] if coarse else keys[-1]
    contents = _contents(Path(path), names)
    limit = _COARSE if coarse else classes
    batches = []
    for name in names:
        if name in contents:
            batches.append(_batch(contents[name], key, f"{path}: {name}", limit))
        else:
            source = f"{path}: {name}.bin"
            columns = _binary_batch(contents[f"{name}.bin"], keys, source)
            batches.append(_checked(columns["data"], columns[key], source, limit))
    images, labels = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
    return images, labels


def _contents(path: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of files by name or by name and ``.bin``, from a folder or an archive."""
    contents: dict[str, bytes] = {}
    binary = [f"{name}.bin" for name in names]
    if path.is_dir():
        for name in binary if (path / binary[0]).exists() else names:
            _check_size(os.path.getsize(path / name), path / name)
            with open_regular(path / name) as file:
                contents[name] = file.read()
        return contents
    try:
        with open_regular(path) as file, tarfile.open(fileobj=file) as archive:
            for member in archive:
                name = os.path.basename(member.name)
                if name in (*names, *binary) and member.isfile():
                    _check_size(member.size, f"{path}: {member.name}")
                    file_of_member = archive.extractfile(member)
                    assert file_of_member is not None  # it is a file
                    contents[name] = file_of_member.read()
    except (tarfile.TarError, EOFError) as error:
        raise ArrayFileError(f"is no archive that can be read: {error}", path=str(path)) from error
    for name in binary if contents and not contents.keys() & set(names) else names:
        if name not in contents:
            raise FileNotFoundError(errno.ENOENT, f"no {name} in the archive", str(path))
    return contents


def _check_size(size: int, path: str | Path) -> None:
    if size > SMALLEST_LIMIT:
        raise ArrayFileError(f"has {size} bytes, more than a file of CIFAR", path=str(path))


def _batch(
    data: bytes, key: str, source: str, classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images and labels of one file."""
    try:
        stored = read_pickle(memoryview(data), source, ArrayFileError)
        fields = {bytes_of(name).decode(): value for name, value in stored.items()}
        images, labels = array_of(fields["data"]), np.array(fields[key])
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
        raise ArrayFileError(f"is no batch of CIFAR: {error!r}", path=source) from error
    return _checked(images, labels, source, classes)


def _binary_batch(data: bytes, keys: Sequence[str], source: str) -> dict[str, NDArray[np.uint8]]:
    """Return images and labels of a file of rows: a byte for each label, and an image."""
    width = len(keys) + int(np.prod(_CIFAR_IMAGE))
    if len(data) % width:
        raise ArrayFileError(f"has {len(data)} bytes, which is no multiple of {width}", path=source)
    rows = np.frombuffer(bytearray(data), np.uint8).reshape(-1, width)
    return {"data": rows[:, len(keys) :]} | {key: rows[:, i] for i, key in enumerate(keys)}


def _checked(
    images: NDArray[np.uint8], labels: NDArray[Any], source: str, classes: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return images in their shape, and labels, if they are those of a file of CIFAR."""
    if images.dtype != np.uint8 or images.shape[1:] != (np.prod(_CIFAR_IMAGE),):
        raise ArrayFileError(
            f"holds images of {images.dtype} of shape {images.shape[1:]}, not bytes of (3072,)",
            path=source,
        )
    if labels.shape != images.shape[:1] or (labels.size and labels.dtype.kind not in "iu"):
        raise ArrayFileError(f"has {len(images)} images and {labels.shape} labels", path=source)
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ArrayFileError(f"has labels from {labels.min()} to {labels.max()}", path=source)
    return images.reshape(len(images), *_CIFAR_IMAGE), labels.astype(np.uint8)
