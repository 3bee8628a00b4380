"""Strategies of Hypothesis for records, headers, images, boxes, parts and indices."""

from __future__ import annotations

from typing import Any

import numpy as np

import recordio
from recordio.extras import need

from .material import encode, noise

st: Any = need("hypothesis.strategies", "iterators.testing.strategies")

#: The word that begins every part of a record, and is escaped inside of it.
MAGIC = b"\x0a\x23\xd7\xce"


def payloads(most: int = 40) -> Any:
    """Draw the content of a record: bytes of any length, with the magic word in any position.

    Parameters
    ----------
    most : int
        Pieces of at most four bytes.

    Returns
    -------
    SearchStrategy of bytes

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(payloads())
    ... def test(payload):
    ...     assert isinstance(payload, bytes)
    >>> test()
    """
    pieces = st.sampled_from([MAGIC, MAGIC[:2], b"\0" * 4]) | st.binary(max_size=4)
    return st.lists(pieces, max_size=most).map(b"".join)


def labels(most: int = 6) -> Any:
    """Draw a label of a record: one number, or a list of at most `most`, exact as float32.

    Returns
    -------
    SearchStrategy of float or list of float

    Examples
    --------
    >>> labels().example is not None
    True
    """
    numbers = st.floats(width=32, allow_nan=False)
    return numbers | st.lists(numbers, min_size=1, max_size=most)


def headers(most: int = 6) -> Any:
    """Draw an image header whose flag fits its label.

    Parameters
    ----------
    most : int
        Numbers in a label.

    Returns
    -------
    SearchStrategy of IRHeader

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(headers())
    ... def test(header):
    ...     unpacked, content = recordio.unpack(recordio.pack(header, b"content"))
    ...     assert (unpacked.flag, unpacked.id, content) == (header.flag, header.id, b"content")
    >>> test()
    """
    ids = st.integers(0, 2**64 - 1)
    return st.builds(
        lambda label, first, second: recordio.IRHeader(
            len(label) if isinstance(label, list) else 0, label, first, second
        ),
        labels(most), ids, ids,
    )  # fmt: skip


def sizes(most: int = 40) -> Any:
    """Draw a height and a width of at least 1.

    Returns
    -------
    SearchStrategy of tuple of int

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(sizes(9))
    ... def test(size):
    ...     assert 1 <= min(size) <= max(size) <= 9
    >>> test()
    """
    return st.tuples(st.integers(1, most), st.integers(1, most))


def images(most: int = 40, channels: tuple[int, ...] = (1, 3)) -> Any:
    """Draw an image of noise.

    Parameters
    ----------
    most : int
        Rows and columns.
    channels : tuple of int
        How many it may have.

    Returns
    -------
    SearchStrategy of numpy.ndarray of uint8, (height, width, channels)

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(images(5))
    ... def test(image):
    ...     assert image.dtype == np.uint8 and image.ndim == 3
    >>> test()
    """
    return st.builds(
        lambda size, count, seed: noise(size[0], size[1], seed, count),
        sizes(most), st.sampled_from(channels), st.integers(0, 2**16),
    )  # fmt: skip


def blobs(
    kinds: tuple[str, ...] = (".png", ".jpg", ".bmp", ".pnm"),
    most: int = 40,
    channels: tuple[int, ...] = (1, 3),
) -> Any:
    r"""Draw an encoded image of noise.

    Parameters
    ----------
    kinds : tuple of str
        Suffixes of formats.
    most, channels
        As for `images`.

    Returns
    -------
    SearchStrategy of bytes

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5)
    ... @given(blobs((".png",)))
    ... def test(blob):
    ...     assert blob.startswith(b"\x89PNG")
    >>> test()
    """
    return st.builds(encode, images(most, channels), st.sampled_from(kinds))


def objects(most: int = 4) -> Any:
    """Draw the objects of a detection record: class, left, top, right, bottom in fractions.

    Parameters
    ----------
    most : int
        Objects; there is at least one.

    Returns
    -------
    SearchStrategy of numpy.ndarray of float32, (objects, 5)

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(objects())
    ... def test(rows):
    ...     assert (rows[:, 1:3] < rows[:, 3:]).all() and rows[:, 1:].max() <= 1
    >>> test()
    """

    def boxes(draws: list[tuple[float, ...]]) -> np.ndarray:
        rows = [
            [number, x, y, min(x + width, 1), min(y + height, 1)]
            for number, (x, y, width, height) in enumerate(draws)
        ]
        return np.array(rows, np.float32)

    corner, side = st.floats(0, 0.8), st.floats(0.05, 1)
    drawn = st.tuples(corner, corner, side, side)
    return st.lists(drawn, min_size=1, max_size=most).map(boxes)


def parts(most: int = 5) -> Any:
    """Draw a part and the number of parts, as keyword arguments of a provider.

    Parameters
    ----------
    most : int
        Parts.

    Returns
    -------
    SearchStrategy of dict
        With `num_parts`, `part_index` and `even`.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(parts())
    ... def test(part):
    ...     assert 0 <= part["part_index"] < part["num_parts"] <= 5
    >>> test()
    """
    return st.integers(1, most).flatmap(
        lambda number: st.fixed_dictionaries(
            {
                "num_parts": st.just(number),
                "part_index": st.integers(0, number - 1),
                "even": st.booleans(),
            }
        )
    )


def slices(reach: int = 15) -> Any:
    """Draw a slice, forwards or backwards, that may go beyond both ends.

    Parameters
    ----------
    reach : int
        Largest bound, positive or negative.

    Returns
    -------
    SearchStrategy of slice

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(slices())
    ... def test(index):
    ...     assert len("abcde"[index]) <= 5
    >>> test()
    """
    bounds = st.none() | st.integers(-reach, reach)
    return st.builds(slice, bounds, bounds, st.none() | st.integers(-4, 4).filter(bool))


def rows_asked_for(length: int) -> Any:
    """Draw an index that asks for several rows, and the rows.

    Parameters
    ----------
    length : int
        Rows that there are, at least one.

    Returns
    -------
    SearchStrategy of tuple
        A slice, list, array or mask; and the list of row numbers.

    Examples
    --------
    >>> from hypothesis import given
    >>> from iterators import TransformDataset
    >>> data = TransformDataset(np.arange(5), float)
    >>> @given(rows_asked_for(5))
    ... def test(case):
    ...     index, rows = case
    ...     assert data[index] == [data[row] for row in rows]
    >>> test()
    """
    numbers = list(range(length))
    listed = st.lists(st.integers(-length, length - 1))
    masks = st.lists(st.booleans(), min_size=length, max_size=length)
    return st.one_of(
        slices(length + 5).map(lambda index: (index, numbers[index])),
        listed.map(lambda rows: (rows, [numbers[row] for row in rows])),
        listed.map(lambda rows: (np.array(rows, int), [numbers[row] for row in rows])),
        masks.map(lambda mask: (mask, np.flatnonzero(mask).tolist())),
        masks.map(lambda mask: (np.array(mask), np.flatnonzero(mask).tolist())),
    )
