"""Loops over sizes of images: the class of each by its aspect, records by class, sizes for patches.

They run without the GIL, and are exact: the same results on every machine.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from recordio.kernels.philox cimport philox4x32, philox_block

import numpy as np

__all__ = ["MOST_CLASSES", "aspect_classes", "by_class", "count_steps", "draw",
           "patch_sizes"]

#: Classes of images; numbers of them take a byte.
MOST_CLASSES = 256


cdef enum:
    FRACTION_BITS = 10      # of a ratio that tell its cell
    OCTAVES = 8             # on both sides of 1; beyond, the first cell and the last one
    CELLS = 2 * OCTAVES << FRACTION_BITS
    SHIFT = 52 - FRACTION_BITS
    FIRST = (1023 - OCTAVES) << FRACTION_BITS


cdef inline int64_t cell_of(double ratio) noexcept nogil:
    """Number the cell of a ratio: cells ascend, and end at round numbers."""
    cdef uint64_t bits
    memcpy(&bits, &ratio, sizeof(bits))
    cdef int64_t cell = <int64_t>(bits >> SHIFT) - FIRST
    return 0 if cell < 0 else cell if cell < CELLS else CELLS - 1


def aspect_classes(const uint32_t[:, ::1] sizes not None, const double[::1] edges not None):
    """Count for each width and height the edges below their ratio, as uint8; `edges` ascend.

    An image without a size counts as a square.
    """
    cdef Py_ssize_t count = sizes.shape[0], i
    cdef int number = edges.shape[0], k
    cdef double ratio
    cdef int64_t cell
    cdef uint8_t[CELLS] least   # edges in the cells before each
    if sizes.shape[1] != 2 or number >= 256:
        raise ValueError("sizes have two numbers each, and there are at most 255 edges")
    array = np.empty(count, np.uint8)
    cdef uint8_t[::1] classes = array
    with nogil:
        k = 0
        for cell in range(CELLS):
            while k < number and cell_of(edges[k]) < cell:
                k += 1
            least[cell] = <uint8_t>k
        for i in range(count):
            ratio = 1.0
            if sizes[i, 0] != 0 and sizes[i, 1] != 0:
                ratio = <double>sizes[i, 0] / <double>sizes[i, 1]
            k = least[cell_of(ratio)]
            while k < number and edges[k] < ratio:
                k += 1
            classes[i] = <uint8_t>k
    return array


def by_class(const uint8_t[::1] classes not None, int number):
    """Sort record numbers by class, those of one in their order: uint32, and where each begins.

    The second array has one number more than there are classes: int64.
    """
    cdef Py_ssize_t count = classes.shape[0], i
    cdef int64_t[256] ends
    cdef int64_t before = 0
    cdef int k
    cdef bint inside = True
    if not 1 <= number <= 256 or count >= (<int64_t>1 << 32):
        raise ValueError("there are 1 to 256 classes, and less than 2**32 records")
    starts = np.zeros(number + 1, np.int64)
    cdef int64_t[::1] begins = starts
    records = np.empty(count, np.uint32)
    cdef uint32_t[::1] order = records
    with nogil:
        for k in range(256):
            ends[k] = 0
        for i in range(count):
            ends[classes[i]] += 1
        for k in range(256):
            if k < number:
                begins[k] = before
                before += ends[k]
                ends[k] = begins[k]
            elif ends[k]:
                inside = False
        begins[number] = before
        if inside:
            for i in range(count):
                k = classes[i]
                order[ends[k]] = <uint32_t>i
                ends[k] += 1
    if not inside:
        raise ValueError(f"a class is not below {number}")
    return records, starts


def patch_sizes(const uint32_t[:, ::1] sizes not None, int patch, int length):
    """Find the largest size with the aspect of each image that has at most `length` patches.

    `sizes` are widths and heights; the result, int32, has heights and widths, multiples of `patch`;
    see `patch_size`.  An image without a size counts as a square.
    """
    cdef Py_ssize_t count = sizes.shape[0], i
    cdef bint empty
    if sizes.shape[1] != 2:
        raise ValueError("sizes have two numbers each")
    if patch < 1 or length < 1:
        raise ValueError("a patch has at least one pixel, and a sequence at least one patch")
    array = np.empty((count, 2), np.int32)
    cdef int32_t[:, ::1] targets = array
    with nogil:
        for i in range(count):
            empty = sizes[i, 0] == 0 or sizes[i, 1] == 0
            patch_size(patch if empty else sizes[i, 1], patch if empty else sizes[i, 0], patch,
                       length, <int*>&targets[i, 0], <int*>&targets[i, 1])
    return array


def count_steps(uint64_t key, int64_t done, int64_t end, const int64_t[::1] sizes not None,
                bint whole=False):
    """Count the steps from a position to the end, each as long as one of `sizes`, drawn for it.

    `draw` says which.  A last step that is cut short counts unless they are to be `whole`.  The
    position behind the last step comes with the number.
    """
    cdef int64_t steps = 0, step
    cdef Py_ssize_t count = sizes.shape[0], i
    for i in range(count):
        if sizes[i] < 1:
            raise ValueError("a step has at least one position")
    with nogil:
        while done < end:
            step = sizes[drawn_at(key, done, count)]
            if whole and done + step > end:
                break
            done += step
            steps += 1
    return steps, done


def draw(uint64_t key, int64_t position, Py_ssize_t count):
    """Draw a number below `count` for a position, as `count_steps` does."""
    return drawn_at(key, position, count)


cdef inline Py_ssize_t drawn_at(uint64_t key, int64_t position, Py_ssize_t count) noexcept nogil:
    cdef philox_block block = philox4x32(key, <uint32_t>position,
                                         <uint32_t>(<uint64_t>position >> 32), 0x6C656E, 0)  # "len"
    return <Py_ssize_t>((<uint64_t>block.word[0] * <uint64_t>count) >> 32)
