"""Find the position of a key among millions, without a Python object for each.

Binary search in the keys themselves where they ascend, else through their sorting order.  This
module knows nothing of files.
"""

import numpy as np

from libc.stdint cimport int64_t

__all__ = ["KeyLookup"]


cdef class KeyLookup:
    """Positions by key.

    Parameters
    ----------
    keys : numpy.ndarray
        int64, shape (n,); kept, not copied.  If the keys do not ascend, 8 bytes more are kept for
        each.

    Examples
    --------
    >>> lookup = KeyLookup(np.array([7, 3, 7]))
    >>> lookup.position_of(7), lookup.position_of(3), lookup.position_of(0)
    (2, 1, -1)
    """

    def __init__(self, keys):
        self.keys = keys
        with nogil:
            self.ascending = _ascends(self.keys)
        if not self.ascending:
            # Sorting is stable, so that the last of several equal keys stays the last.
            self.order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)

    def position_of(self, int64_t key):
        """Position of a key, of the last of several equal ones; -1 if there is none."""
        return self.find(key)

    cdef int64_t find(self, int64_t key) noexcept nogil:
        cdef int64_t low = 0, high = self.keys.shape[0], middle
        # The first place behind all keys that are not greater than `key`.
        while low < high:
            middle = low + (high - low) // 2
            if self.keys[middle if self.ascending else self.order[middle]] <= key:
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return -1
        low = low - 1 if self.ascending else self.order[low - 1]
        return low if self.keys[low] == key else -1


cdef bint _ascends(const int64_t[::1] keys) noexcept nogil:
    cdef int64_t i
    for i in range(1, keys.shape[0]):
        if keys[i - 1] > keys[i]:
            return False
    return True
