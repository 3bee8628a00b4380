"""The pack of each position of an epoch over several packs: exact shares, without a visible period.

After any number of positions every pack has given its share of them to within one.  A schedule with
that property (R. Tijdeman, "The chairman assignment problem", 1980) is the start; inside blocks of
positions neighbours are then exchanged at random as often as the property allows.  The schedule
repeats after as many positions as the weights have in all and can be entered anywhere; the
exchanges follow from a key.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from recordio.kernels.philox cimport philox4x32, philox_block

import numpy as np

#: Positions of a block, inside which neighbours are exchanged.
BLOCK = 1024

cdef enum:
    PASSES = 8              # over a block; with more of them it looks no different
    BITS = 128              # of a word of random numbers
    STRIDE = 1 << 16        # positions between two that are remembered


cdef int schedule(int64_t* debt, int64_t* count, const int64_t* weight, Py_ssize_t num_packs,
                  int64_t total) noexcept nogil:
    """Return the pack that comes next: of those that may, the one that can wait least."""
    cdef Py_ssize_t i, chosen = 0
    cdef int64_t scale = max(2 * num_packs - 2, 1)
    cdef double deadline, first = 0
    cdef bint any_chosen = False
    for i in range(num_packs):
        debt[i] += weight[i]
        if debt[i] * scale < total:
            continue        # taken now, it would be too far ahead
        deadline = <double>(total * (scale - 1) - debt[i] * scale) / weight[i]
        if not any_chosen or deadline < first:
            chosen, first, any_chosen = i, deadline, True
    debt[chosen] -= total
    count[chosen] += 1
    return <int>chosen


cdef void exchange_once(int32_t* pack, Py_ssize_t size, int64_t* owed, const int64_t* weight,
                        int64_t total, uint64_t key, uint32_t run, int64_t number) noexcept nogil:
    """Go through a block once; `owed` holds the rest of the shares, without this block's."""
    cdef philox_block bits
    cdef uint32_t word = 0
    cdef int32_t a, b
    cdef Py_ssize_t i
    for i in range(size - 1):
        if i % BITS == 0:
            bits = philox4x32(key, <uint32_t>(i // BITS), run, <uint32_t>number,
                              <uint32_t>(<uint64_t>number >> 32))
        if i % 32 == 0:
            word = bits.word[i // 32 % 4]
        a, b = pack[i], pack[i + 1]
        # `a` must not be owed anything once it has had this position, nor `b` be ahead without it.
        if (word & 1 and a != b and owed[a] + (i + 1) * weight[a] <= total
                and owed[b] + (i + 1) * weight[b] >= 0):
            pack[i], pack[i + 1] = b, a
            owed[b] -= total
        else:
            owed[a] -= total
        word >>= 1


cdef class Alternation:
    """Alternation between packs in proportion to their weights.

    The weights are int64, at least 1 each, with a sum of at most 2**30.  A pack with weight w of W
    in all has given n * w / W of the first n items, to within one.
    """

    cdef readonly object weights
    cdef const int64_t* weight
    cdef int64_t total
    cdef Py_ssize_t num_packs
    cdef list marks             # debts and counts at every STRIDE positions of the first period
    cdef object debts, tallies  # of the position that was reached last
    cdef int64_t* debt          # how much of its share a pack has not given, times `total`
    cdef int64_t* count
    cdef int64_t position
    cdef int64_t next_mark

    def __init__(self, weights):
        cdef const int64_t[::1] table = np.array(weights, np.int64)
        self.weights = np.asarray(table)
        self.total, self.num_packs = self.weights.sum(), len(self.weights)
        if not self.num_packs or self.weights.min() < 1 or self.total > 1 << 30:
            raise ValueError("weights must be at least 1 each, with a sum of at most 2**30")
        self.weight = &table[0]
        self.marks = []
        self._remember(np.zeros(self.num_packs, np.int64), np.zeros(self.num_packs, np.int64), 0)
        self._mark()

    def counts(self, int64_t positions):
        """Return the number of the first positions that belong to each pack; int64."""
        periods, rest = divmod(positions, self.total)
        self._go_to(rest)
        return self.tallies + periods * self.weights

    def block(self, int64_t number, uint64_t key, int64_t size=BLOCK):
        """Return the packs of `size` positions from ``BLOCK * number``, and `counts` before them.

        The packs are int32; `key` chooses the exchanges; `size` is less where an epoch ends.
        """
        cdef int64_t first = number * BLOCK, i
        before = self.counts(first)
        packs = np.empty(size, np.int32)
        debts = np.array(self.debts)
        cdef int32_t[::1] pack = packs
        for i in range(size):
            pack[i] = self.step()
        self.exchange(pack, debts, key, number)
        return packs, before

    cdef int step(self) except -1:
        """Return the pack of the next position, by the schedule."""
        if self.position == self.total:    # nobody is owed anything: it begins again
            memset(self.count, 0, self.num_packs * sizeof(int64_t))
            self.position = 0
        cdef int chosen = schedule(self.debt, self.count, self.weight, self.num_packs, self.total)
        self.position += 1
        if self.position == self.next_mark:
            self._mark()
        return chosen

    cdef int exchange(self, int32_t[::1] packs, debts, uint64_t key, int64_t number) except -1:
        """Exchange neighbours at random where both packs stay within one of their shares."""
        cdef const int64_t[::1] start = debts
        cdef int64_t[::1] owed = np.empty(self.num_packs, np.int64)
        cdef Py_ssize_t run
        for run in range(PASSES):
            owed[:] = start
            if packs.shape[0] > 1:
                exchange_once(&packs[0], packs.shape[0], &owed[0], self.weight, self.total,
                              key, run, number)
        return 0

    cdef _go_to(self, int64_t position):
        """Set debts and counts to those at a position of the first period."""
        cdef int64_t near = position // STRIDE
        if not self.position <= position < self.position + STRIDE:
            near = min(near, self.next_mark // STRIDE - 1)
            debts, tallies = self.marks[near]
            self._remember(debts, tallies, near * STRIDE)
        while self.position < position:
            self.step()

    cdef _mark(self):
        self.marks.append((self.debts.copy(), self.tallies.copy()))
        self.next_mark += STRIDE

    cdef _remember(self, debts, tallies, int64_t position):
        cdef int64_t[::1] debt = debts.copy(), count = tallies.copy()
        self.debts, self.tallies, self.position = np.asarray(debt), np.asarray(count), position
        self.debt, self.count = &debt[0], &count[0]
