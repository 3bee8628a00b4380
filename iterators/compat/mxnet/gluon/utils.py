"""Names of `mx.gluon.utils` that concern data: batches cut for several contexts, and checksums."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np

from recordio.keywords.checks import integer

from ..context import host
from ..ndarray.array import NDArray, as_nd

__all__ = ["check_sha1", "split_and_load", "split_data"]


def split_data(
    data: Any, num_slice: int, batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Cut a batch into parts along an axis, the first ones longer by one if they must be uneven."""
    array = np.asarray(data)
    size, parts = array.shape[batch_axis], integer("num_slice", num_slice, low=1)
    if even_split and size % parts:
        raise ValueError(
            f"{size} samples cannot be cut into {parts} equal parts: even_split=False allows others"
        )
    return [as_nd(part) for part in np.array_split(array, parts, batch_axis)]


def split_and_load(
    data: Any, ctx_list: Any, batch_axis: int = 0, even_split: bool = True
) -> list[NDArray]:
    """Cut a batch into a part for each context, which must be of host memory."""
    for context in ctx_list:
        host(context)
    return split_data(data, len(ctx_list), batch_axis, even_split)


def check_sha1(filename: str | os.PathLike[str], sha1_hash: str) -> bool:
    """Return whether a file has a SHA-1."""
    with open(filename, "rb") as file:
        return hashlib.file_digest(file, "sha1").hexdigest() == sha1_hash


def __getattr__(name: str) -> Any:
    """Refuse `download` and the helpers of training."""
    if name == "download":
        raise NotImplementedError(
            "download of mx.gluon.utils is not here: iterators.cached_download(url) fetches a file "
            "once, and everything that takes a path takes a URL"
        )
    raise AttributeError(f"mx.gluon.utils.{name} is not in iterators.compat.mxnet")
