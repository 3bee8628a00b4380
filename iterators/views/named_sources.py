"""Data sources by name: `Mnist`, `Cifar10` and others, from local files.

They put arrays into views and split them; files are read by `recordio` and `ImageClassSet`, and
nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from recordio.image_sets import read_cifar, read_mnist
from recordio.keywords.checks import boolean, integer, real

from .array_views import ClassView, ImageView
from .image_sets import ImageClassSet
from .sets import DataSet, DataSource

Path = str | os.PathLike[str]
#: Images and labels of the rows of a part, "train" or "test".
Read = Callable[[str], tuple[np.ndarray, np.ndarray]]

#: Files of notMNIST that hold no image.
_BROKEN = (
    "RnJlaWdodERpc3BCb29rSXRhbGljLnR0Zg==.png",
    "Um9tYW5hIEJvbGQucGZi.png",
    "SG90IE11c3RhcmQgQlROIFBvc3Rlci50dGY=.png",
    "TmlraXNFRi1TZW1pQm9sZEl0YWxpYy5vdGY=.png",
    "VHJhbnNpdCBCb2xkLnR0Zg==.png",
    "RGVtb2NyYXRpY2FCb2xkT2xkc3R5bGUgQm9sZC50dGY=.png",
    "Q3Jvc3NvdmVyIEJvbGRPYmxpcXVlLnR0Zg==.png",
)


class _Images(DataSource):
    """Bytes of images, scaled, in a train, a valid and a test set."""

    #: Order of the axes of the inputs.
    image_axes: str

    def _put(
        self,
        read: Read,
        classes: Sequence[Any],
        valid_ratio: float,
        scale: tuple[float, float] | None,
        binarize: bool,
        shuffle: bool,
        random_seed: int,
        input_preprocess: Any,
        target_preprocess: Any,
    ) -> None:
        valid_ratio = real("valid_ratio", valid_ratio, low=0, high=1)
        draw = np.random.default_rng(integer("random_seed", random_seed, low=0))
        if scale is not None:
            low, high = scale
            scale = (real("scale", low), real("scale", high))
        binarize, shuffle = boolean("binarize", binarize), boolean("shuffle", shuffle)

        def shuffled(part: str) -> tuple[np.ndarray, np.ndarray]:
            images, labels = read(part)
            order = draw.permutation(len(labels)) if shuffle else slice(None)
            return images[order], labels[order]

        def data_set_of(name: str, images: np.ndarray, labels: np.ndarray) -> DataSet | None:
            if not len(labels):
                return None
            targets = ClassView("b", labels.astype(np.int64))
            targets.set_classes(classes)
            values = _scaled(images, scale, binarize)
            return DataSet(name, ImageView(self.image_axes, values), targets)

        images, labels = shuffled("train")
        count = int(len(labels) * (1 - valid_ratio))
        super().__init__(
            data_set_of("train", images[:count], labels[:count]),
            data_set_of("valid", images[count:], labels[count:]),
            data_set_of("test", *shuffled("test")),
            input_preprocess,
            target_preprocess,
        )


def _scaled(images: np.ndarray, scale: tuple[float, float] | None, binarize: bool) -> np.ndarray:
    if binarize:
        return (images >= 128).astype(np.float32)
    values = images.astype(np.float32)
    if scale is not None:
        values *= (scale[1] - scale[0]) / 255
        values += scale[0]
    return values


class Mnist(_Images):
    """The digits of MNIST, or any set in the same four idx files.

    Parameters
    ----------
    data_path : str or os.PathLike
        Folder with the files; see `recordio.image_sets.read_mnist`.
    valid_ratio : float
        The share of the training rows that are the valid set: the last ones.
    scale : (float, float) or None
        Values of pixels of 0 and of 255; None leaves pixels unchanged.
    binarize : bool
        Instead of scaling, deliver 0 for pixels below 128 and 1 for others.
    shuffle : bool
        Put the rows in another order, before they are split.
    random_seed : int
        Seed of that order.
    input_preprocess, target_preprocess : preprocess or list of them, optional
        As for `DataSource`.

    Raises
    ------
    FileNotFoundError, ArrayFileError
        If a file is missing or damaged.
    ValueError
        If `valid_ratio` is not between 0 and 1.

    Notes
    -----
    Inputs are an `ImageView` with the base ``bhwc``, float32; targets a `ClassView` with the base
    ``b``, counted from 0.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for part in ("train", "t10k"):
    ...     images, labels = np.full((6, 28, 28), 255, np.uint8), np.arange(6, dtype=np.uint8)
    ...     recordio.write_idx_array(folder / f"{part}-images-idx3-ubyte", images)
    ...     recordio.write_idx_array(folder / f"{part}-labels-idx1-ubyte", labels)
    >>> source = Mnist(folder)
    >>> len(source.train_set), len(source.valid_set), len(source.test_set)
    (5, 1, 6)
    >>> source.get("valid", "input", "bf")[0].shape, source.i_size()
    ((1, 784), (28, 28, 1))
    """

    name = "mnist"
    image_axes = "bhwc"

    def __init__(
        self,
        data_path: Path,
        valid_ratio: float = 1 / 6,
        scale: tuple[float, float] | None = (0, 1),
        binarize: bool = False,
        shuffle: bool = False,
        random_seed: int = 777,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        def read(part: str) -> tuple[np.ndarray, np.ndarray]:
            images, labels = read_mnist(data_path, part)
            return images[..., None], labels

        self._put(read, range(10), valid_ratio, scale, binarize, shuffle, random_seed,
                  input_preprocess, target_preprocess)  # fmt: skip


class Cifar10(_Images):
    """The colour images of CIFAR-10.

    Parameters
    ----------
    data_path : str or os.PathLike
        ``cifar-10-python.tar.gz``, or the folder of its files; see
        `recordio.image_sets.read_cifar`.
    valid_ratio, scale, shuffle, random_seed, input_preprocess, target_preprocess
        As for `Mnist`.

    Raises
    ------
    FileNotFoundError, ArrayFileError, ValueError
        As for `Mnist`.

    Notes
    -----
    Inputs are an `ImageView` with the base ``bchw``, float32; targets a `ClassView` with the base
    ``b``, counted from 0.
    """

    name = "cifar10"
    image_axes = "bchw"

    def __init__(
        self,
        data_path: Path,
        valid_ratio: float = 1 / 5,
        scale: tuple[float, float] | None = (0, 1),
        shuffle: bool = False,
        random_seed: int = 777,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        self._put(lambda part: read_cifar(data_path, 10, part), range(10), valid_ratio, scale,
                  False, shuffle, random_seed, input_preprocess, target_preprocess)  # fmt: skip


class Cifar100(_Images):
    """The colour images of CIFAR-100, with their fine classes, shuffled by default.

    Parameters, results and errors are those of `Cifar10`; the file is ``cifar-100-python.tar.gz``.
    """

    name = "cifar100"
    image_axes = "bchw"

    def __init__(
        self,
        data_path: Path,
        valid_ratio: float = 1 / 5,
        scale: tuple[float, float] | None = (0, 1),
        shuffle: bool = True,
        random_seed: int = 777,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        self._put(lambda part: read_cifar(data_path, 100, part), range(100), valid_ratio, scale,
                  False, shuffle, random_seed, input_preprocess, target_preprocess)  # fmt: skip


class SmallImageSource(_Images):
    """Small images in two folders, for training and testing, with a subfolder for every class.

    Parameters
    ----------
    data_path : str or os.PathLike
        Folder with the two folders.
    image_size : tuple of int
        (channels, height, width); see `ImageClassSet` for how images come to it.
    train_dir, test_dir : str
        Names of the two folders.
    valid_ratio, scale, binarize, shuffle, random_seed, input_preprocess, target_preprocess
        As for `Mnist`; rows are shuffled by default, because files are sorted by class.

    Raises
    ------
    ValueError
        If there are no images, or the two folders have other classes.
    ImageDecodeError
        For a file that cannot be read.

    Notes
    -----
    All images are held in memory, as float32, with the base ``bchw``.  For more of them there is
    `ImageClassSet`.
    """

    name = "images"
    image_axes = "bchw"
    _skipped: Sequence[str] = ()

    def __init__(
        self,
        data_path: Path,
        image_size: tuple[int, int, int],
        valid_ratio: float = 1 / 6,
        train_dir: str = "train",
        test_dir: str = "test",
        scale: tuple[float, float] | None = (0, 1),
        binarize: bool = False,
        shuffle: bool = True,
        random_seed: int = 777,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        folders = {
            part: ImageClassSet(os.path.join(data_path, name), image_size, which_set="test")
            for part, name in (("train", train_dir), ("test", test_dir))
        }
        classes, test_classes = (folder.classes for folder in folders.values())
        if classes != test_classes:
            raise ValueError(
                f"{train_dir} has the classes {classes}, but {test_dir} has {test_classes}"
            )

        def read(part: str) -> tuple[np.ndarray, np.ndarray]:
            folder = folders[part]
            kept = [os.path.basename(path) not in self._skipped for path in folder.paths]
            batch: Any = folder.index(np.flatnonzero(kept))
            return batch.inputs.forward_get(self.image_axes), batch.targets.forward_get("b")

        self._put(read, classes or (), valid_ratio, scale, binarize, shuffle, random_seed,
                  input_preprocess, target_preprocess)  # fmt: skip


class NotMnist(SmallImageSource):
    """The letters A to J of notMNIST, grey, 28 by 28.

    Parameters
    ----------
    data_path : str or os.PathLike
        Folder with the unpacked folders ``notMNIST_large`` and ``notMNIST_small``.
    valid_ratio, train_dir, test_dir, scale, binarize, shuffle, random_seed
        As for `SmallImageSource`.
    input_preprocess, target_preprocess
        Likewise.

    Notes
    -----
    The base is ``bhwc``.  The seven files of the set that hold no image are left out by name.
    """

    name = "notMnist"
    image_axes = "bhwc"
    _skipped = _BROKEN

    def __init__(
        self,
        data_path: Path,
        valid_ratio: float = 1 / 6,
        train_dir: str = "notMNIST_large",
        test_dir: str = "notMNIST_small",
        scale: tuple[float, float] | None = (0, 1),
        binarize: bool = False,
        shuffle: bool = True,
        random_seed: int = 777,
        input_preprocess: Any = None,
        target_preprocess: Any = None,
    ) -> None:
        super().__init__(data_path, (1, 28, 28), valid_ratio, train_dir, test_dir, scale, binarize,
                         shuffle, random_seed, input_preprocess, target_preprocess)  # fmt: skip
