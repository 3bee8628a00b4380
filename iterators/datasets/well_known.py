"""MNIST, similar sets and CIFAR from local files, under the names of Chainer's functions."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from recordio.image_sets import read_cifar, read_mnist

from ..core.layout import Layout, plan
from .combine import TupleDataset

Path = str | os.PathLike[str]


def get_mnist(
    path: Path,
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: Any = None,
    label_dtype: Any = np.int32,
    rgb_format: bool = False,
) -> tuple[Any, Any]:
    """Return the training and the test set of MNIST, or of a set with files of the same names.

    Parameters
    ----------
    path : str or os.PathLike
        Folder with the four idx files, plain or ``.gz``; see `recordio.image_sets.read_mnist`.
    withlabel : bool
        Give data sets of (image, label) instead of arrays of images.
    ndim : {1, 2, 3}
        Images of shape (784,), (28, 28) or (1, 28, 28).
    scale : float
        Value that a pixel of 255 gets.
    dtype : dtype, optional
        Element type of the images, floating point; float32 by default.
    label_dtype : dtype
        Element type of the labels.
    rgb_format : bool
        With ``ndim=3``, images of shape (3, 28, 28), whose channels are equal.

    Returns
    -------
    train, test : TupleDataset or numpy.ndarray

    Raises
    ------
    FileNotFoundError
        If one of the files is missing.
    ArrayFileError
        If one of them is damaged.
    ValueError
        For another `ndim`, and `rgb_format` without ``ndim=3``.
    TypeError
        If `dtype` is not floating point.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in ("train", "t10k"):
    ...     images, labels = np.full((3, 28, 28), 255, np.uint8), np.arange(3, dtype=np.uint8)
    ...     recordio.write_idx_array(folder / f"{part}-images-idx3-ubyte", images)
    ...     recordio.write_idx_array(folder / f"{part}-labels-idx1-ubyte", labels)
    >>> train, test = get_mnist(folder, ndim=3)
    >>> image, label = train[2]
    >>> image.shape, image.max(), label
    ((1, 28, 28), np.float32(1.0), np.int32(2))
    """
    axes = {1: "bf", 2: "bhw", 3: "bchw"}.get(ndim)
    if axes is None:
        raise ValueError(f"ndim={ndim!r}: expected 1, 2 or 3")
    if rgb_format and ndim != 3:
        raise ValueError(f"rgb_format=True needs ndim=3, not ndim={ndim}")

    def part(name: str) -> Any:
        images, labels = read_mnist(path, name)
        count, rows, columns = images.shape
        form = Layout(axes, f_order="hw") if ndim == 1 else axes
        images = plan(Layout("bhw", h=rows, w=columns), form)(images)
        if rgb_format:
            images = np.broadcast_to(images, (count, 3, rows, columns))
        return _scaled(images, labels, withlabel, scale, dtype, label_dtype)

    return part("train"), part("test")


#: Fashion-MNIST and Kuzushiji-MNIST, whose files have MNIST's names.
get_fashion_mnist = get_mnist
get_kuzushiji_mnist = get_mnist


def get_cifar10(
    path: Path,
    withlabel: bool = True,
    ndim: int = 3,
    scale: float = 1.0,
    dtype: Any = None,
) -> tuple[Any, Any]:
    """Return the training and the test set of CIFAR-10.

    Parameters
    ----------
    path : str or os.PathLike
        ``cifar-10-python.tar.gz``, or the folder of its files; no code in them is run, see
        `recordio.image_sets.read_cifar`.
    withlabel : bool
        Give data sets of (image, label) instead of arrays of images; labels are int32.
    ndim : {1, 3}
        Images of shape (3072,) or (3, 32, 32), channels red, green and blue.
    scale : float
        Value that a pixel of 255 gets.
    dtype : dtype, optional
        Element type of the images, floating point; float32 by default.

    Returns
    -------
    train, test : TupleDataset or numpy.ndarray

    Raises
    ------
    FileNotFoundError
        If one of the files is missing.
    ArrayFileError
        If one of them is damaged, or pickled anything but such data.
    ValueError
        For another `ndim`.
    TypeError
        If `dtype` is not floating point.

    Examples
    --------
    >>> import tempfile, pathlib, pickle
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> batch = {"data": np.zeros((2, 3072), np.uint8), "labels": [7, 3]}
    >>> for name in ["test_batch"] + [f"data_batch_{i}" for i in range(1, 6)]:
    ...     _ = (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    >>> train, test = get_cifar10(folder)
    >>> len(train), test[0][0].shape, int(test[1][1])
    (10, (3, 32, 32), 3)
    """
    return _cifar(path, 10, withlabel, ndim, scale, dtype)


def get_cifar100(
    path: Path,
    withlabel: bool = True,
    ndim: int = 3,
    scale: float = 1.0,
    dtype: Any = None,
) -> tuple[Any, Any]:
    """Return the training and the test set of CIFAR-100, with the fine labels.

    Parameters, results and errors are those of `get_cifar10`; the file is
    ``cifar-100-python.tar.gz``.
    """
    return _cifar(path, 100, withlabel, ndim, scale, dtype)


def _cifar(
    path: Path, classes: int, withlabel: bool, ndim: int, scale: float, dtype: Any
) -> tuple[Any, Any]:
    if ndim not in (1, 3):
        raise ValueError(f"ndim={ndim!r}: expected 1 or 3")

    def part(name: str) -> Any:
        images, labels = read_cifar(path, classes, name)
        if ndim == 1:
            images = plan("bchw", Layout("bf", f_order="chw"))(images)
        return _scaled(images, labels, withlabel, scale, dtype, np.int32)

    return part("train"), part("test")


def _scaled(
    images: Any, labels: Any, withlabel: bool, scale: float, dtype: Any, label_dtype: Any
) -> Any:
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind.kind != "f":
        raise TypeError(f"dtype={kind.name!r}: scaled pixels need a floating point type")
    images = images.astype(kind)
    images *= scale / 255
    return TupleDataset(images, labels.astype(label_dtype)) if withlabel else images
