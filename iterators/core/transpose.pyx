"""Copy an array whose axes are in another order into a contiguous one, faster than NumPy.

The one job is moving elements of 1, 2, 4 or 8 bytes where the innermost axes of source and target
differ.  It converts no types, and refuses everything that a plain copy does as well.
"""

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stddef cimport ptrdiff_t

__all__ = ["copy_transposed"]

cdef enum:
    MAX_AXES = 32


cdef extern from "iterators/core/transpose.h" nogil:
    void transpose_1(char*, const char*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t)
    void transpose_2(char*, const char*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t)
    void transpose_4(char*, const char*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t)
    void transpose_8(char*, const char*, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t)


cdef struct Axis:
    ptrdiff_t size
    ptrdiff_t source
    ptrdiff_t target


cdef struct Copy:
    Axis axes[MAX_AXES]
    int count
    int across  # the axis along which the source is contiguous


cdef int understand(Copy* copy, Py_buffer* target, Py_buffer* source) noexcept nogil:
    """Fill in the axes, joining neighbours that run on; return 0 if tiles do not help."""
    cdef int axis
    cdef Axis* last
    copy.count = 0
    copy.across = -1
    for axis in range(source.ndim):
        if source.shape[axis] == 1:
            continue
        if copy.count:
            last = &copy.axes[copy.count - 1]
            if (last.source == source.strides[axis] * source.shape[axis]
                    and last.target == target.strides[axis] * source.shape[axis]):
                last.size *= source.shape[axis]
                last.source = source.strides[axis]
                last.target = target.strides[axis]
                continue
        copy.axes[copy.count].size = source.shape[axis]
        copy.axes[copy.count].source = source.strides[axis]
        copy.axes[copy.count].target = target.strides[axis]
        copy.count += 1
    for axis in range(copy.count - 1):
        if copy.axes[axis].source == source.itemsize:
            copy.across = axis
    return (
        copy.count > 1 and copy.across >= 0
        and copy.axes[copy.count - 1].target == target.itemsize
        and copy.axes[copy.count - 1].source != source.itemsize
    )


cdef void run(Copy* copy, char* target, const char* source, int itemsize) noexcept nogil:
    """Transpose the plane of the two innermost axes at every position of the others."""
    cdef ptrdiff_t position[MAX_AXES]
    cdef int axis, inner = copy.count - 1
    cdef Axis across = copy.axes[copy.across], along = copy.axes[inner]
    for axis in range(copy.count):
        position[axis] = 0
    while True:
        if itemsize == 1:
            transpose_1(target, source, across.target, along.source, across.size, along.size)
        elif itemsize == 2:
            transpose_2(target, source, across.target, along.source, across.size, along.size)
        elif itemsize == 4:
            transpose_4(target, source, across.target, along.source, across.size, along.size)
        else:
            transpose_8(target, source, across.target, along.source, across.size, along.size)
        axis = inner - 1
        while axis >= 0:
            if axis != copy.across:
                position[axis] += 1
                target += copy.axes[axis].target
                source += copy.axes[axis].source
                if position[axis] < copy.axes[axis].size:
                    break
                target -= position[axis] * copy.axes[axis].target
                source -= position[axis] * copy.axes[axis].source
                position[axis] = 0
            axis -= 1
        if axis < 0:
            return


def copy_transposed(target, source):
    """Copy `source` into `target`, which is C-contiguous, if that takes a transposition.

    Return False if nothing was done, because a plain copy is as good.  Shapes and element types are
    equal; `source` has any strides.
    """
    cdef Py_buffer to, origin
    cdef Copy copy
    cdef int axis
    cdef bint helps = False
    PyObject_GetBuffer(target, &to, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)
    try:
        PyObject_GetBuffer(source, &origin, PyBUF_STRIDES | PyBUF_FORMAT)
        try:
            if to.ndim != origin.ndim or to.itemsize != origin.itemsize or to.ndim > MAX_AXES:
                raise ValueError("target and source differ in axes or element size")
            for axis in range(to.ndim):
                if to.shape[axis] != origin.shape[axis]:
                    raise ValueError("target and source differ in shape")
                if to.shape[axis] == 0:
                    return False
            if to.itemsize not in (1, 2, 4, 8) or b"O" in <bytes>origin.format:
                return False
            with nogil:
                helps = understand(&copy, &to, &origin)
                if helps:
                    run(&copy, <char*>to.buf, <const char*>origin.buf, <int>to.itemsize)
            return helps
        finally:
            PyBuffer_Release(&origin)
    finally:
        PyBuffer_Release(&to)
