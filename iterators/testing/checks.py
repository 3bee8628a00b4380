"""Checks of spaces, decoders and packs: each raises AssertionError with the reason."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import recordio
from recordio.frames.check import Report
from recordio.frames.companions import CHECKSUMS, INDEX

from .comparing import assert_same


def require(condition: Any, text: str) -> None:
    """Raise AssertionError with a text unless the condition holds, with ``python -O`` too."""
    if not condition:
        raise AssertionError(text)


def check_space(space: Any, batch: Any, others: Iterable[Any] = ()) -> None:
    """Check that a space describes a batch, and that it converts to other spaces and back.

    Parameters
    ----------
    space : Space
    batch : array or tuple
        In its form.
    others : iterable of Space
        Spaces that hold the same values: converting to them loses nothing.

    Raises
    ------
    AssertionError
        If equal spaces differ or a pickled one does; if the batch changes on its way to another
        space and back, or by a conversion to its own form; if what comes out is not in the other
        form; or if torch tensors, where torch was imported, come out otherwise than arrays.

    Examples
    --------
    >>> from iterators import Conv2DSpace, VectorSpace
    >>> images = np.arange(24.0).reshape(2, 2, 2, 3)
    >>> space = Conv2DSpace((2, 2), 3)
    >>> check_space(space, images, [VectorSpace(12), Conv2DSpace((2, 2), 3, axes=("c", 0, 1, "b"))])
    """
    copied = pickle.loads(pickle.dumps(space))
    require(
        copied == space and hash(copied) == hash(space), f"{space} is not itself after pickling"
    )
    space.np_validate(batch)
    size = space.np_batch_size(batch)
    for other in (space, *others):
        converted = space.np_format_as(batch, other)
        other.np_validate(converted)
        require(
            other.np_batch_size(converted) == size,
            f"{size} samples of {space} are {other.np_batch_size(converted)} of {other}",
        )
        assert_same(space.undo_np_format_as(converted, other), batch)
        if torch := sys.modules.get("torch"):
            tensors = space.format_as(_each(torch.as_tensor, batch), other)
            other.validate(tensors)
            assert_same(_each(np.asarray, tensors), _each(np.asarray, converted))


def _each(convert: Callable[[Any], Any], batch: Any) -> Any:
    """Convert the arrays of a batch, which may be nested tuples; sparse ones become dense."""
    if isinstance(batch, tuple):
        return tuple(_each(convert, part) for part in batch)
    if hasattr(batch, "toarray"):
        batch = batch.toarray()
    elif getattr(batch, "is_sparse", False) or "sparse" in str(getattr(batch, "layout", "")):
        batch = batch.to_dense()
    return convert(batch)


def check_decoder(
    decode: Callable[[Any], np.ndarray],
    reference: Callable[[bytes], np.ndarray],
    blobs: Iterable[bytes],
    *,
    tolerance: float = 0,
    errors: tuple[type[BaseException], ...] = (ValueError,),
) -> None:
    """Check that a decoder gives the same as another, and refuses damage with its own errors.

    Parameters
    ----------
    decode : callable
        ``decode(blob)`` gives an array; the blob is bytes, a bytearray or a memoryview.
    reference : callable
        The same of a decoder that is known to be right.
    blobs : iterable of bytes
        Whole encoded images.
    tolerance : float
        Largest difference of a value.
    errors : tuple of type
        What `decode` may raise for blobs that were cut off.  It may also give an array, as
        decoders do that fill what is missing.

    Raises
    ------
    AssertionError
        If shapes, dtypes or values differ, if nothing at all was decoded, or if another error is
        raised for a blob that was cut off.

    Examples
    --------
    >>> import cv2
    >>> from iterators.testing import encode, noise
    >>> def reference(blob):
    ...     return cv2.imdecode(np.frombuffer(blob, np.uint8), 1)
    >>> def decode(blob):
    ...     image = reference(blob) if len(blob) else None
    ...     if image is None:
    ...         raise ValueError("no image")
    ...     return image
    >>> check_decoder(decode, reference, [encode(noise(5, 6)), encode(noise(1, 1), ".bmp")])
    """
    number = -1
    for number, blob in enumerate(blobs):
        expected = np.asarray(reference(blob))
        for kind in (bytes, bytearray, memoryview):
            _compare(np.asarray(decode(kind(blob))), expected, tolerance, f"blob {number}")
        for end in sorted({0, 1, len(blob) // 4, len(blob) // 2, len(blob) - 1}):
            try:
                decode(blob[:end])
            except errors:
                continue
            except Exception as error:
                raise AssertionError(
                    f"blob {number} cut off at byte {end}: {type(error).__name__} is none of "
                    f"{', '.join(kind.__name__ for kind in errors)}"
                ) from error
    require(number >= 0, "there was no blob to decode")


def _compare(actual: np.ndarray, expected: np.ndarray, tolerance: float, position: str) -> None:
    forms = [f"{array.dtype} {array.shape}" for array in (actual, expected)]
    require(forms[0] == forms[1], f"{position}: found {forms[0]}, wanted {forms[1]}")
    apart = np.abs(actual.astype(float) - expected.astype(float)).max(initial=0)
    require(apart <= tolerance, f"{position}: values differ by {apart}, more than {tolerance}")


def check_pack(
    path: str | os.PathLike[str],
    *,
    records: int | None = None,
    keys: Sequence[int] | None = None,
    labels: Sequence[Any] | None = None,
    ids: Sequence[int] | None = None,
    contents: Sequence[bytes] | None = None,
    images: bool = False,
) -> Report:
    """Check that a pack is intact: its records, its index and, if there are any, its checksums.

    Parameters
    ----------
    path : str or os.PathLike
        The record file, ``PREFIX.rec``; the index and the checksums are looked for beside it.
    records : int, optional
        How many there must be.
    keys, labels, ids, contents : sequence, optional
        What the records must have, in the order of the file.
    images : bool
        Whether every content must be an image that can be decoded; empty contents are left out.

    Returns
    -------
    Report
        Of `recordio.verify`.

    Raises
    ------
    AssertionError
        If something is damaged, is not listed by the index, or is not as it must be.

    Examples
    --------
    >>> import tempfile
    >>> from iterators.testing import write_pack
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_pack(f"{folder}/a.rec", 3)
    ...     report = check_pack(path, records=3, labels=[0, 1, 2], images=True)
    ...     _ = path.write_bytes(path.read_bytes()[:-4])
    ...     check_pack(path)
    Traceback (most recent call last):
        ...
    AssertionError: .../a.rec: ...
    """
    path = Path(path)
    beside = [path.with_suffix(row.ending) for row in (INDEX, CHECKSUMS)]
    index, checksums = (file if file.exists() else None for file in beside)
    report = recordio.verify(path, index, checksums)
    require(report.ok, f"{path}: {'; '.join(map(str, report.problems))}")
    _equal(path, "records", report.records, records)
    if index:
        _equal(path, "lines of the index", report.index_lines, report.records)
    if not any((keys, labels, ids, contents, images)):
        return report
    contents_by_name: dict[str, list[Any]] = {"labels": [], "ids": [], "contents": []}
    with recordio.RecordReader(path, index) as reader:
        rows = np.argsort(reader.offsets) if index else range(len(reader))
        keyed = reader.keys[rows].tolist() if index else list(rows)
        for row, key in zip(rows, keyed, strict=True):
            record = reader[int(row)]
            header, content = recordio.unpack(record)
            contents_by_name["labels"].append(np.atleast_1d(header.label).tolist())
            contents_by_name["ids"].append(header.id)
            contents_by_name["contents"].append(bytes(content))
            if images and len(content):
                image = recordio.unpack_img(record)[1]
                require(image is not None, f"{path}: the record with key {key} is not an image")
    if labels is not None:
        labels = [np.atleast_1d(label).astype(np.float32).tolist() for label in labels]
    for name, expected in (("labels", labels), ("ids", ids), ("contents", contents)):
        _equal(path, name, contents_by_name[name], None if expected is None else list(expected))
    _equal(path, "keys", keyed, None if keys is None else list(keys))
    return report


def _equal(path: Path, name: str, actual: Any, expected: Any) -> None:
    if expected is not None:
        require(actual == expected, f"{path}: {name} are {actual}, not {expected}")
