"""Rows of arrays into a batch, without the GIL.

`gather_rows` copies the rows that are asked for; `gather_scaled` makes float32 of bytes on the way.
Both fill memory that the caller gives and never allocate.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

__all__ = ["gather_rows", "gather_scaled"]

cdef extern from "iterators/core/gather.h" nogil:
    void gather_copy(const uint8_t*, ptrdiff_t, size_t, const int64_t*, ptrdiff_t, uint8_t*)
    void gather_scale(const uint8_t*, ptrdiff_t, size_t, const int64_t*, ptrdiff_t, float, float*,
                      int)


cdef Py_ssize_t first_outside(const int64_t[::1] rows, Py_ssize_t size) noexcept nogil:
    """Place of the first row number that is not in ``[0, size)``, or -1."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < size:
            return i
    return -1


cdef int check(const uint8_t[:, :] source, const int64_t[::1] rows, Py_ssize_t places,
               Py_ssize_t columns) except -1:
    if places < rows.shape[0] or columns != source.shape[1]:
        raise ValueError(
            f"{rows.shape[0]} rows of {source.shape[1]} do not fit ({places}, {columns})"
        )
    if source.shape[1] > 1 and source.strides[1] != 1:
        raise ValueError("the items of a row must lie side by side")
    cdef Py_ssize_t place = first_outside(rows, source.shape[0])
    if place >= 0:
        raise IndexError(f"row {rows[place]} of {source.shape[0]}")
    return 0


def gather_rows(const uint8_t[:, :] source not None, const int64_t[::1] rows not None,
                uint8_t[:, ::1] target not None):
    """Copy rows of a table of bytes.

    Parameters
    ----------
    source : numpy.ndarray of uint8, (n, row_bytes)
        The bytes of a row lie side by side; the rows may be apart.
    rows : numpy.ndarray of int64, (k,)
        Which rows, each in ``[0, n)``.
    target : numpy.ndarray of uint8, (at least k, row_bytes)
        The first k rows are filled.

    Raises
    ------
    IndexError
        For a row that does not exist; nothing is copied then.
    ValueError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> source, target = np.arange(6, dtype=np.uint8).reshape(3, 2), np.zeros((2, 2), np.uint8)
    >>> gather_rows(source, np.array([2, 0]), target)
    >>> target.tolist()
    [[4, 5], [0, 1]]
    """
    check(source, rows, target.shape[0], target.shape[1])
    if not target.shape[1] or not rows.shape[0]:
        return
    with nogil:
        gather_copy(&source[0, 0], source.strides[0], source.shape[1], &rows[0], rows.shape[0],
                    &target[0, 0])


def gather_scaled(const uint8_t[:, :] source not None, const int64_t[::1] rows not None,
                  float factor, float[:, ::1] target not None, bint vectors=True):
    """Copy rows of a table of bytes as float32, each value multiplied by `factor`.

    Parameters
    ----------
    source, rows, target
        As for `gather_rows`, `target` being float32.
    factor : float
    vectors : bool
        Use vector instructions where the processor has them; the result is the same.

    Raises
    ------
    IndexError, ValueError
        As `gather_rows`.

    Examples
    --------
    >>> import numpy as np
    >>> target = np.zeros((1, 2), np.float32)
    >>> gather_scaled(np.array([[0, 64], [128, 255]], np.uint8), np.array([1]), 1 / 256, target)
    >>> target
    array([[0.5       , 0.99609375]], dtype=float32)
    """
    check(source, rows, target.shape[0], target.shape[1])
    if not target.shape[1] or not rows.shape[0]:
        return
    with nogil:
        gather_scale(&source[0, 0], source.strides[0], source.shape[1], &rows[0], rows.shape[0],
                     factor, &target[0, 0], vectors)
