# build: small
"""Images class by class: the record at a position of an order that visits classes in turn.

Two sequences without end are joined: classes, each once in every cycle, and the images of each
class, each once in every cycle.  Both are permuted cycle by cycle such that a *window*, a run of
positions that belong together (the classes of a batch, the images of a class in it), has nothing
twice.
"""

from libc.stdint cimport int64_t, uint64_t

import numpy as np

from iterators.core.random cimport Network, key_below, network_at, network_init

cdef enum:
    CYCLE = 0x7475726E      # purposes of keys: "turn"
    CLASS = 0x636C6173      # "clas"


cdef class Windows:
    """A sequence without end of the numbers ``0 ... size - 1``, each once in every cycle.

    Within a window, `width` positions from a multiple of `width` on, all numbers differ if there
    are enough.  Where a window spans the end of a cycle, numbers at the start of the next one that
    the window has already are exchanged for others from the middle of that cycle; small sets, which
    have no middle, keep their permutation until a cycle ends where a window does.
    """

    cdef int64_t size, width
    cdef int64_t cycle          # whose permutation is at hand; -1 for none
    cdef uint64_t key
    cdef Network network
    cdef dict moved             # position -> number where this cycle differs from its permutation

    def __cinit__(self):
        self.cycle = -1

    cdef void reset(self, uint64_t key, int64_t size, int64_t width):
        """Begin with another sequence."""
        self.key, self.size, self.width, self.cycle = key, size, width, -1

    cdef int64_t at(self, int64_t position) except -1:
        """Return the number at a position."""
        cdef int64_t cycle = position // self.size, at = position % self.size
        if self.size < 4 * self.width:
            self.enter(cycle // cycles_together(self.size, self.width))
            return network_at(&self.network, at)
        if cycle != self.cycle:
            self.enter(cycle)
            self.mend()
        if self.moved and at in self.moved:
            return self.moved[at]
        return network_at(&self.network, at)

    cdef void enter(self, int64_t cycle):
        if cycle != self.cycle:
            self.cycle, self.moved = cycle, None
            network_init(&self.network, self.size, key_below(self.key, cycle, CYCLE))

    cdef int mend(self) except -1:
        """Find the numbers that are exchanged in this cycle."""
        cdef int64_t before = self.cycle * self.size % self.width, i, number, spare = self.width
        cdef Network last
        if before == 0:
            return 0
        # Never exchanged themselves: a cycle differs from its permutation only before its last
        # window, as at most three times `width` positions from its start are touched.
        network_init(&last, self.size, key_below(self.key, self.cycle - 1, CYCLE))
        taken = {network_at(&last, self.size - before + i) for i in range(before)}
        self.moved = {}
        for i in range(self.width - before):
            number = network_at(&self.network, i)
            if number in taken:
                while network_at(&self.network, spare) in taken:
                    spare += 1
                self.moved[i], self.moved[spare] = network_at(&self.network, spare), number
                spare += 1
        return 0


cdef int64_t cycles_together(int64_t size, int64_t width) noexcept:
    """Return the cycles after which a cycle ends where a window does."""
    cdef int64_t a = size, b = width
    while b:
        a, b = b, a % b
    return width // a


def draw_by_class(uint64_t key, const int64_t[::1] starts not None,
                  const int64_t[::1] records not None, Py_ssize_t images, Py_ssize_t classes,
                  const int64_t[::1] positions not None):
    """Return the int64 record numbers at positions of a sequence without end.

    The records of class c are ``records[starts[c]:starts[c + 1]]``; no class is empty.  A class has
    `images` positions when its turn comes, and the `classes` of a batch differ if there are so
    many.  Positions count over all epochs and should be ascending.
    """
    cdef int64_t num_classes = starts.shape[0] - 1, position, group, last = -1, chosen = 0
    cdef Windows drawn_classes = Windows(), members = Windows()
    cdef Py_ssize_t i
    drawn_records = np.empty(positions.shape[0], np.int64)
    cdef int64_t[::1] record = drawn_records
    drawn_classes.reset(key, num_classes, classes)
    for i in range(positions.shape[0]):
        group, position = positions[i] // images, positions[i] % images
        if group != last:
            last, chosen = group, drawn_classes.at(group)
            members.reset(key_below(key, chosen, CLASS), starts[chosen + 1] - starts[chosen],
                          images)
        position += group // num_classes * images      # once in every cycle of the classes
        record[i] = records[starts[chosen] + members.at(position)]
    return drawn_records
