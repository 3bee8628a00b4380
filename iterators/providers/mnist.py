"""`MNISTIter`: batches of images and labels from the files of the MNIST sets.

Both files are read at once and kept as bytes; pixels become floats when a batch is made.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import numpy as np

from recordio.errors import ArrayFileError
from recordio.idx_array import read_idx_array

from ..core.order import BatchPlan
from ..core.parameters import boolean, choice, integer
from .array_rows import Columns, DenseColumn
from .reorder import Axes
from .row_provider import RowOptions, RowProvider

__all__ = ["MNISTIter", "MNISTProvider"]

logger = logging.getLogger("iterators")


class MNISTIter(RowProvider):
    """Batches of MNIST images, each pixel divided by 256, and their labels.

    Parameters
    ----------
    image, label : str or os.PathLike
        Files in the idx format, ``.gz`` or plain, or fsspec URLs.
    batch_size : int
        Images in a batch, at least 1.
    shuffle : bool
        A new permutation of all images in every epoch.
    flat : bool
        Deliver ``(batch, rows * columns)`` instead of ``(batch, 1, rows, columns)``.
    seed : int
        Determines the permutations.
    silent : bool
        Do not log what was found.
    num_parts, part_index : int
        Deliver only part `part_index` of `num_parts`: without `shuffle` the block from
        ``int(n / num_parts * part_index)`` on, with it every `num_parts`-th place of the one
        permutation.
    even : bool
        Give every part the same number of places; those missing to that come twice in the epoch.
    prefetch_buffer : int
        Batches prepared ahead of the consumer, at least 1.
    last_batch : {"drop", "pad"}
        Whether a short last batch is left out, or delivered with zeros that `pad` counts.
    data_name, label_name : str
        Names in `provide_data` and `provide_label`; ``label_name=None`` for no labels.
    layout : str
        Axes of a batch of images, any order of NCHW; with `flat` it must be left alone.
    dtype : str
        "float32", or "uint8" for pixels as they are in the file.  Labels are float32 always.
    data_specs : (Space, source), optional
        What a batch must look like: a tuple in exactly that form, which is a `DataBatch` as well.
        The sources are "features" and "targets"; a VectorSpace of as many elements as there are
        classes makes a single label one-hot.
    device : str or torch.device, optional
        None for NumPy arrays, "cpu" for torch tensors that share their memory, "cuda" or "cuda:i"
        for tensors on that device.
    epoch : int
        Number of the first epoch.
    on_error, error_budget
        As for all providers; a damaged file is an error in either case, single images cannot be
        bad.
    max_array_bytes : int, optional
        Larger arrays are errors.  By default 64 times the file as it is stored, at least 256 MiB.
    ctx : {"cpu", "gpu"}
        Accepted because scripts pass it; where MXNet would put its buffers, which is `device` here.

    Raises
    ------
    ArrayFileError
        If a file is damaged, has another number of axes, or if the two do not belong together.
    TypeError
        For a parameter that does not exist.

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

    def __init__(
        self,
        *,
        image: str | os.PathLike[str] = "./train-images-idx3-ubyte",
        label: str | os.PathLike[str] = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        even: bool = False,
        prefetch_buffer: int = 4,
        last_batch: str = "drop",
        data_name: str = "data",
        label_name: str | None = "softmax_label",
        layout: str = "NCHW",
        dtype: str | None = None,
        data_specs: Any = None,
        device: Any = None,
        epoch: int = 0,
        on_error: str = "raise",
        error_budget: float | None = None,
        max_array_bytes: int | None = None,
        ctx: str = "gpu",
        **unknown: Any,
    ) -> None:
        options = RowOptions.of(
            self,
            unknown,
            ctx,
            num_parts=num_parts,
            part_index=part_index,
            even=even,
            shuffle=shuffle,
            seed=seed,
            prefetch_buffer=prefetch_buffer,
            device=device,
            epoch=epoch,
            on_error=on_error,
            error_budget=error_budget,
            data_specs=data_specs,
        )
        dtype = choice("dtype", dtype or "float32", ("float32", "uint8"))
        flat = boolean("flat", flat)
        if flat and layout != "NCHW":
            raise ValueError(f"layout={layout!r} has no effect on flat images: drop one of the two")
        images, labels = _read(image, 3, max_array_bytes), _read(label, 1, max_array_bytes)
        if len(images) != len(labels):
            raise ArrayFileError(
                f"{len(labels)} labels, but {os.fspath(image)} has {len(images)} images",
                path=os.fspath(label),
            )
        rows, columns = images.shape[1:]
        shape = (rows * columns,) if flat else (1, rows, columns)
        data = DenseColumn(
            data_name,
            images,
            dtype,
            shape=shape,
            factor=1 / 256 if dtype == "float32" else None,
            axes=Axes(data_name, len(shape) + 1, wanted=None if flat else layout),
        )
        targets = [] if label_name is None else [DenseColumn(label_name, labels, "float32")]
        table = Columns([data], targets)
        plan = BatchPlan(
            options.order(len(table), _part),
            integer("batch_size", batch_size, low=1),
            choice("last_batch", last_batch, ("drop", "pad")),
        )
        super().__init__(table, plan, options)
        if not boolean("silent", silent):
            logger.info(
                "%s: %d of %d images of %d x %d",
                os.fspath(image),
                self.num_samples,
                len(table),
                rows,
                columns,
            )


MNISTProvider = MNISTIter


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
