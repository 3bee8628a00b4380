from libc.math cimport ceil
from libc.stdint cimport int64_t


cdef inline double patches_of(double scaled, int patch) noexcept nogil:
    """Count the patches of a side, at least one; the product of two may be beyond 64 bits."""
    cdef double count = ceil(scaled / patch)
    return count if count > 1 else 1


cdef inline void patch_size(double height, double width, int patch, int length, int* down,
                            int* across) noexcept nogil:
    """Find the largest size, in pixels, of an image that has at most `length` patches.

    The search is timm's, and so are its results: a scale from 1e-6 to 100 is halved until 1e-5 is
    left.  Where even the least scale gives too many patches, both sides are cut down to what is
    possible.
    """
    cdef double low = 1e-5 / 10.0, high = 100.0, middle
    cdef int64_t rows, columns
    while high - low >= 1e-5:
        middle = (low + high) / 2.0
        if patches_of(height * middle, patch) * patches_of(width * middle, patch) <= length:
            low = middle
        else:
            high = middle
    rows, columns = (
        <int64_t>patches_of(height * low, patch), <int64_t>patches_of(width * low, patch))
    if rows * columns > length:
        rows, columns = min(rows, <int64_t>length), min(columns, <int64_t>length)
        if height >= width:
            columns = max(length // rows, <int64_t>1)
        else:
            rows = max(length // columns, <int64_t>1)
    down[0], across[0] = <int>(rows * patch), <int>(columns * patch)
