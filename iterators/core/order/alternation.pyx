"""Which of several packs each place of an epoch takes from: exact shares, without a visible period.

After any number of places every pack has given its share of them to within one.  A schedule with
that property (R. Tijdeman, "The chairman assignment problem", 1980) is the start; inside blocks of
places neighbours are then exchanged at random as often as the property allows.  The schedule repeats
after as many places as the weights have in all and can be entered anywhere; the exchanges follow
from a key.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

import numpy as np

cdef extern from "iterators/core/philox.h" nogil:
    ctypedef struct philox_block:
        uint32_t word[4]
    philox_block philox4x32(uint64_t key, uint32_t, uint32_t, uint32_t, uint32_t)

#: Places of a block, inside which neighbours are exchanged.
BLOCK = 1024

cdef enum:
    PASSES = 16             # over a block: how far an item can get is a matter of chance after a few
    BITS = 128              # of a word of random numbers
    STRIDE = 1 << 16        # places between two that are remembered


cdef class Alternation:
    """How packs with certain weights take turns.

    Parameters
    ----------
    weights : numpy.ndarray of int64
        At least 1 each, with a sum of at most 2**30.  A pack with weight w of W in all has given
        n * w / W of the first n items, to within one.

    Examples
    --------
    >>> turns = Alternation(np.array([7, 3]))
    >>> packs, before = turns.block(0, key=1)
    >>> np.bincount(packs[:10]).tolist(), before.tolist(), turns.counts(1000).tolist()
    ([7, 3], [0, 0], [700, 300])
    """

    cdef readonly object weights
    cdef const int64_t[::1] weight
    cdef int64_t total
    cdef Py_ssize_t num_packs
    cdef list marks             # debts and counts at every STRIDE places of the first period
    cdef object debts, given    # of the place that was reached last
    cdef int64_t[::1] debt      # how much of its share a pack has not given, times `total`
    cdef int64_t[::1] count
    cdef int64_t place

    def __init__(self, weights):
        self.weights = np.ascontiguousarray(weights, np.int64)
        self.weight = self.weights
        self.total, self.num_packs = self.weights.sum(), len(self.weights)
        if not self.num_packs or self.weights.min() < 1 or self.total > 1 << 30:
            raise ValueError("weights must be at least 1 each, with a sum of at most 2**30")
        self.marks = []
        self._remember(np.zeros(self.num_packs, np.int64), np.zeros(self.num_packs, np.int64), 0)
        self._mark()

    def counts(self, int64_t places):
        """How many of the first places belong to each pack; int64 of one per pack."""
        turns, rest = divmod(places, self.total)
        self._go_to(rest)
        return self.given + turns * self.weights

    def block(self, int64_t number, uint64_t key, int64_t size=BLOCK):
        """The packs of places ``[BLOCK * number, BLOCK * number + size)``.

        Parameters
        ----------
        number : int
        key : int
            Chooses the exchanges.
        size : int
            At most `BLOCK`; less where an epoch ends.

        Returns
        -------
        packs : numpy.ndarray of int32, (size,)
        before : numpy.ndarray of int64
            As `counts` gives them for the first place.
        """
        cdef int64_t first = number * BLOCK, i
        before = self.counts(first)
        packs = np.empty(size, np.int32)
        debts = np.array(self.debts)
        cdef int32_t[::1] pack = packs
        for i in range(size):
            if self.place == self.total:
                self._go_to(0)
            pack[i] = self.step()
        self.exchange(pack, debts, key, number)
        return packs, before

    cdef int step(self) noexcept:
        """The pack of the next place, by the schedule."""
        cdef Py_ssize_t i, chosen = 0
        cdef int64_t scale = max(2 * self.num_packs - 2, 1)
        cdef double deadline, first = 0
        cdef bint found = False
        for i in range(self.num_packs):
            self.debt[i] += self.weight[i]
            if self.debt[i] * scale < self.total:
                continue        # taken now, it would be too far ahead
            deadline = <double>(self.total * (scale - 1) - self.debt[i] * scale) / self.weight[i]
            if not found or deadline < first:
                chosen, first, found = i, deadline, True
        self.debt[chosen] -= self.total
        self.count[chosen] += 1
        self.place += 1
        return <int>chosen

    cdef int exchange(self, int32_t[::1] pack, debts, uint64_t key, int64_t number) except -1:
        """Exchange neighbours at random where both packs stay within one of their shares."""
        cdef int64_t[::1] start = debts
        cdef int64_t[::1] taken = np.zeros(self.num_packs, np.int64)
        cdef philox_block bits
        cdef Py_ssize_t i, run
        cdef int32_t a, b
        cdef uint32_t word = 0
        for run in range(PASSES):
            taken[:] = 0
            for i in range(pack.shape[0] - 1):
                if i % BITS == 0:
                    bits = philox4x32(key, <uint32_t>(i // BITS), <uint32_t>run,
                                      <uint32_t>number, <uint32_t>(<uint64_t>number >> 32))
                if i % 32 == 0:
                    word = bits.word[i // 32 % 4]
                a, b = pack[i], pack[i + 1]
                taken[a] += 1
                # What is left of their shares once `a` has had this place.
                if (word & 1 and a != b
                        and start[a] + (i + 1) * self.weight[a] <= taken[a] * self.total
                        and start[b] + (i + 1) * self.weight[b] >= taken[b] * self.total):
                    pack[i], pack[i + 1] = b, a
                    taken[a] -= 1
                    taken[b] += 1
                word >>= 1
        return 0

    cdef _go_to(self, int64_t place):
        """Have debts and counts be those at a place of the first period."""
        cdef int64_t near = place // STRIDE
        if not self.place <= place < self.place + STRIDE:
            near = min(near, <int64_t>len(self.marks) - 1)
            debts, given = self.marks[near]
            self._remember(debts, given, near * STRIDE)
        while self.place < place:
            self.step()
            if self.place == len(self.marks) * STRIDE:
                self._mark()

    cdef _mark(self):
        self.marks.append((self.debts.copy(), self.given.copy()))

    cdef _remember(self, debts, given, int64_t place):
        self.debts, self.given, self.place = debts.copy(), given.copy(), place
        self.debt, self.count = self.debts, self.given
