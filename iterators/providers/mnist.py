"""`MNISTIter`: batches of images and labels from the files of the MNIST sets.

Both files are read at once and kept as bytes; pixels become floats when a batch is made.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from recordio.errors import ArrayFileError
from recordio.idx_array import read_idx_array
from recordio.keywords.checks import boolean, choice, integer, integers
from recordio.keywords.options import accepts, described, option, optional

from ..core.order import BatchPlan
from .array_rows import Columns, DenseColumn
from .mx_data_provider import MXDataProvider
from .provider_options import FileOptions
from .reorder import Axes
from .row_provider import RowProvider, order_of_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..core.keywords import MNISTKeywords

logger: logging.Logger = logging.getLogger("iterators")


@dataclass(frozen=True, kw_only=True)
class MNISTOptions(FileOptions):
    """The keywords of `MNISTIter`."""

    image: str | os.PathLike[str] = option(
        "./train-images-idx3-ubyte",
        "str or os.PathLike",
        "The images, a file in the idx format, ``.gz`` or plain, or an fsspec URL.",
    )
    label: str | os.PathLike[str] = option(
        "./train-labels-idx1-ubyte", "str or os.PathLike", "Their labels, likewise."
    )
    batch_size: int = option(128, "int", "Images in a batch, at least 1.", partial(integer, low=1))
    shuffle: bool = option(True, "bool", "A new permutation of all images in every epoch.", boolean)
    flat: bool = option(
        False,
        "bool",
        "Deliver ``(batch, rows * columns)`` instead of ``(batch, 1, rows, columns)``.",
        boolean,
    )
    silent: bool = option(False, "bool", "Do not log what was found.", boolean)
    data_shape: tuple[int, ...] | None = option(
        None,
        "tuple of int, optional",
        """Shape of an image, with or without the 1 for the channel, or of a flat one; it is only
        compared with the file.""",
        optional(integers),
    )
    num_parts: int = described(
        FileOptions,
        "num_parts",
        """Number of parts that share the images: without `shuffle`, part k has those from ``int(n
        / num_parts * k)`` on; with it, every `num_parts`-th position of the common permutation.""",
    )
    last_batch: Literal["drop", "pad"] = option(
        "drop",
        '{"drop", "pad"}',
        "Leave out a short last batch, or deliver it with zeros that `pad` counts.",
        partial(choice, allowed=("drop", "pad")),
    )
    layout: str = option(
        "NCHW",
        "str",
        "Axes of a batch of images, any order of NCHW; not with `flat`.",
    )
    dtype: str = option(
        "float32",
        "str",
        '"float32", or "uint8" for the pixels of the file. Labels are always float32.',
        lambda name, value: choice(name, value or "float32", ("float32", "uint8")),
    )
    max_array_bytes: int | None = option(
        None,
        "int, optional",
        """A larger array is an error. By default 64 times the size of the file as it is stored, at
        least 256 MiB.""",
    )
    on_error: str = described(
        FileOptions,
        "on_error",
        """As for all providers; a damaged file is an error in either case, and single images
        cannot be bad.""",
    )


@MXDataProvider.register
@accepts(MNISTOptions)
class MNISTIter(RowProvider):
    """Batches of MNIST images, each pixel divided by 256, and their labels.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ArrayFileError
        If a file is damaged, has another number of axes or another `data_shape`, or if the two do
        not belong together.
    ValueError
        For a batch that is larger than the set, or this part of it, unless short batches are kept.
    TypeError
        For a parameter that does not exist.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib, recordio
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> recordio.write_idx_array(folder / "images", np.full((5, 2, 2), 128, np.uint8))
    >>> recordio.write_idx_array(folder / "labels", np.arange(5, dtype=np.uint8))
    >>> provider = MNISTIter(image=folder / "images", label=folder / "labels", batch_size=2,
    ...                      shuffle=False, flat=True)
    >>> for batch in provider:
    ...     print(batch.data[0].tolist(), batch.label[0])
    [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]] [0. 1.]
    [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]] [2. 3.]
    """

    def __init__(self, **keywords: Unpack[MNISTKeywords]) -> None:
        options = MNISTOptions.of(type(self).__name__, keywords)
        image, label, dtype = options.image, options.label, options.dtype
        if options.flat and options.layout != "NCHW":
            raise ValueError(
                f"layout={options.layout!r} has no effect on flat images: drop one of the two"
            )
        images = _read(image, 3, options.max_array_bytes)
        labels = _read(label, 1, options.max_array_bytes)
        if len(images) != len(labels):
            raise ArrayFileError(
                f"{len(labels)} labels, but {os.fspath(image)} has {len(images)} images",
                path=os.fspath(label),
            )
        rows, columns = images.shape[1:]
        shape = (rows * columns,) if options.flat else (1, rows, columns)
        if options.data_shape not in (None, (1, rows, columns), (rows, columns), (rows * columns,)):
            raise ArrayFileError(
                f"the images have the shape {shape}, not data_shape={options.data_shape}",
                path=os.fspath(image),
            )
        data = DenseColumn(
            options.data_name,
            images,
            dtype,
            shape=shape,
            factor=1 / 256 if dtype == "float32" else None,
            axes=Axes(
                options.data_name, len(shape) + 1, layout=None if options.flat else options.layout
            ),
        )
        targets = []
        if options.label_name is not None:
            targets = [DenseColumn(options.label_name, labels, "float32")]
        table = Columns([data], targets)
        plan = BatchPlan(
            order_of_rows(options, len(table), _part), options.batch_size, options.last_batch
        )
        super().__init__(table, plan, options)
        if not options.silent:
            logger.info(
                "%s: %d of %d images of %d x %d",
                os.fspath(image),
                self.num_samples,
                len(table),
                rows,
                columns,
            )


MNISTProvider: TypeAlias = MNISTIter


def _read(path: str | os.PathLike[str], axes: int, max_array_bytes: int | None) -> np.ndarray:
    array = read_idx_array(path, max_array_bytes=max_array_bytes)
    if array.ndim != axes or array.dtype != np.uint8:
        what = "images: uint8 with 3 axes" if axes == 3 else "labels: uint8 with 1 axis"
        raise ArrayFileError(
            f"expected {what}, not {array.dtype} with {array.ndim}", path=os.fspath(path)
        )
    if not len(array):
        raise ArrayFileError("the file holds no samples", path=os.fspath(path))
    return array


def _part(count: int, num_parts: int, part_index: int) -> range:
    """MXNet's rule for this iterator; the last part always reaches the end."""
    stop = int(count / num_parts * (part_index + 1))
    return range(
        int(count / num_parts * part_index), count if part_index + 1 == num_parts else stop
    )
