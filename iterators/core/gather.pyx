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
    """Return the position of the first row number that is not in ``[0, size)``, or -1."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < size:
            return i
    return -1


cdef int check(const uint8_t[:, :] source, const int64_t[::1] rows, Py_ssize_t slots,
               Py_ssize_t columns) except -1:
    if slots < rows.shape[0] or columns != source.shape[1]:
        raise ValueError(
            f"{rows.shape[0]} rows of {source.shape[1]} do not fit ({slots}, {columns})"
        )
    if source.shape[1] > 1 and source.strides[1] != 1:
        raise ValueError("the items of a row must lie side by side")
    cdef Py_ssize_t wrong = first_outside(rows, source.shape[0])
    if wrong >= 0:
        raise IndexError(f"row {rows[wrong]} of {source.shape[0]}")
    return 0


def gather_rows(const uint8_t[:, :] source not None, const int64_t[::1] rows not None,
                uint8_t[:, ::1] target not None):
    """Copy rows of a table of bytes, (n, row_bytes), to the first rows of `target`.

    The bytes of a source row lie side by side; the rows may be apart.  Nothing is copied if a row
    does not exist, an IndexError.
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

    As `gather_rows`; vector instructions do not change the result.
    """
    check(source, rows, target.shape[0], target.shape[1])
    if not target.shape[1] or not rows.shape[0]:
        return
    with nogil:
        gather_scale(&source[0, 0], source.strides[0], source.shape[1], &rows[0], rows.shape[0],
                     factor, &target[0, 0], vectors)
