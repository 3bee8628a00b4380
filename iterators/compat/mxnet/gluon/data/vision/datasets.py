"""Names of `mx.gluon.data.vision.datasets`: images as NDArrays, from files that are at hand.

Nothing is downloaded: `root` is where the files are, by default MXNet's folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from recordio.image_sets import read_cifar, read_mnist

from ......datasets import gluon as _gluon
from ....ndarray.array import as_nd
from ....ndarray_results import without_examples

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageRecordDataset",
]

Transform = Callable[..., Any]


class _OfNDArrays:
    """A transform of a script, which takes the image as an NDArray."""

    def __init__(self, function: Transform) -> None:
        self._function = function

    def __call__(self, image: Any, label: Any) -> Any:
        return self._function(as_nd(image), label)


def _of_files(kind: Any) -> Any:
    """Return a data set of files whose images are NDArrays, also for its transform."""

    def init(self: Any, where: Any, flag: int = 1, transform: Transform | None = None) -> None:
        kind.__init__(self, where, flag, transform and _OfNDArrays(transform))

    def get_example(self: Any, i: Any) -> Any:
        sample = kind.get_example(self, i)
        if self._transform is None and isinstance(sample, tuple):
            return (as_nd(sample[0]), *sample[1:])
        return sample

    members = {"__init__": init, "get_example": get_example, "__doc__": without_examples(kind)}
    name = kind.__name__.removeprefix("Gluon")
    return type(name, (kind,), {"__module__": __name__, **members})


ImageRecordDataset: Any = _of_files(_gluon.ImageRecordDataset)
ImageFolderDataset: Any = _of_files(_gluon.ImageFolderDataset)


class _InMemory(_gluon.GluonDataset):
    """A set of small images that is read as a whole."""

    def __init__(
        self, root: Any, images: np.ndarray, labels: np.ndarray, transform: Transform | None
    ) -> None:
        self._root, self._transform = root, transform
        self._data, self._label = as_nd(images), labels.astype(np.int32)

    def __len__(self) -> int:
        return len(self._label)

    def get_example(self, i: Any) -> Any:
        """Return an image (height, width, channels) and its label, transformed if asked for."""
        sample = self._data[i], self._label[i]
        return sample if self._transform is None else self._transform(*sample)


def _folder(root: Any, name: str) -> str:
    home = os.environ.get("MXNET_HOME", os.path.join("~", ".mxnet"))
    return os.path.expanduser(root or os.path.join(home, "datasets", name))


class MNIST(_InMemory):
    """MNIST: images of (28, 28, 1), uint8, and labels of int32."""

    _name = "mnist"

    def __init__(
        self, root: Any = None, train: bool = True, transform: Transform | None = None
    ) -> None:
        folder = _folder(root, self._name)
        images, labels = read_mnist(folder, "train" if train else "test")
        super().__init__(folder, images[..., None], labels, transform)


class FashionMNIST(MNIST):
    """Fashion-MNIST, in the form of `MNIST`."""

    _name = "fashion-mnist"


class CIFAR10(_InMemory):
    """CIFAR-10: images of (32, 32, 3), uint8, and labels of int32.

    `root` is a folder with the files "for Python" or "binary", or the archive of either.
    """

    def __init__(
        self, root: Any = None, train: bool = True, transform: Transform | None = None
    ) -> None:
        self._read(_folder(root, "cifar10"), 10, train, transform)

    def _read(self, folder: str, classes: int, train: bool, transform: Any, **kind: Any) -> None:
        images, labels = read_cifar(folder, classes, "train" if train else "test", **kind)
        super().__init__(
            folder, np.ascontiguousarray(np.moveaxis(images, 1, -1)), labels, transform
        )


class CIFAR100(CIFAR10):
    """CIFAR-100, in the form of `CIFAR10`; labels are the coarse ones by default, as in gluon."""

    def __init__(
        self,
        root: Any = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Transform | None = None,
    ) -> None:
        self._read(_folder(root, "cifar100"), 100, train, transform, coarse=not fine_label)
