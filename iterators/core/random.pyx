"""Random numbers that depend on their purpose alone, never on earlier draws.

Functions of a key: `philox`, a block of random bits for a counter; `uniform`, a number for every
position; and `permute`, a pseudo-random permutation of ``range(n)`` evaluated only at the positions
that are asked for.  None has state, so an epoch of any size needs no stored order, and every
thread, process and resumed run sees the same numbers.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from recordio.kernels.philox cimport philox4x32, philox_block

import numpy as np

# Alternating Feistel network on the smallest power of two that holds n, followed by cycle walking.
# Four rounds already give a permutation that needs many chosen queries to tell from random (Luby
# and Rackoff 1988).  On a domain of a few bits a round can do little, so small domains get many
# more: with 12 rounds the 120 orders of five items are measurably uneven, with 64 they are not.
cdef enum:
    ROUNDS = 12
    SMALL_ROUNDS = MOST_ROUNDS
    SMALL_BITS = 12
    LANES = 8           # values under way at a time, to hide the latency of multiplications


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """Apply the finaliser of SplitMix64: every bit of the result depends on every bit of `x`."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL
    return x ^ (x >> 31)


cdef void network_init(Network* network, uint64_t size, uint64_t key) noexcept nogil:
    cdef int bits = 2, i
    cdef philox_block block
    while bits < 62 and (<uint64_t>1 << bits) < size:
        bits += 1
    network.size = size
    network.right_bits = (bits + 1) // 2
    network.right_mask = (<uint64_t>1 << network.right_bits) - 1
    network.left_mask = (<uint64_t>1 << (bits - network.right_bits)) - 1
    network.rounds = SMALL_ROUNDS if bits <= SMALL_BITS else ROUNDS
    for i in range(network.rounds):
        block = philox4x32(key, i, 0x7065726D, 0, 0)  # "perm"
        network.keys[i] = <uint64_t>block.word[0] << 32 | block.word[1]


cdef inline void network_pass(const Network* network, uint64_t* x, int lanes) noexcept nogil:
    """Apply the network once; the processor works on several lanes at a time."""
    cdef uint64_t[LANES] left
    cdef uint64_t[LANES] right
    cdef int i, lane
    for lane in range(lanes):
        left[lane] = x[lane] >> network.right_bits
        right[lane] = x[lane] & network.right_mask
    for i in range(0, network.rounds, 2):
        for lane in range(lanes):
            left[lane] ^= mix(right[lane] ^ network.keys[i]) & network.left_mask
        for lane in range(lanes):
            right[lane] ^= mix(left[lane] ^ network.keys[i + 1]) & network.right_mask
    for lane in range(lanes):
        x[lane] = left[lane] << network.right_bits | right[lane]


cdef inline void network_apply(const Network* network, uint64_t* x, int lanes) noexcept nogil:
    """Permute the values in place."""
    cdef int lane
    network_pass(network, x, lanes)
    for lane in range(lanes):
        while x[lane] >= network.size:
            network_pass(network, x + lane, 1)


cdef int64_t network_at(const Network* network, int64_t position) noexcept nogil:
    cdef uint64_t x = position
    network_apply(network, &x, 1)
    return x


cdef uint64_t key_below(uint64_t key, int64_t number, uint64_t purpose) noexcept nogil:
    cdef philox_block block = philox4x32(
        key, <uint32_t>number, <uint32_t>(<uint64_t>number >> 32), <uint32_t>purpose,
        <uint32_t>(purpose >> 32))
    return <uint64_t>block.word[0] << 32 | block.word[1]


def permute(uint64_t key, int64_t n, positions):
    """Return values of a keyed pseudo-random permutation of ``range(n)`` at `positions`, as int64.

    The key has 64 bits, n is below 2**62, and the positions are in ``[0, n)``.
    """
    if not 1 <= n < (<int64_t>1 << 62):
        raise ValueError(f"the permuted range must have 1 to 2**62 - 1 items, not {n}")
    values = np.array(positions, dtype=np.int64, ndmin=1)
    cdef int64_t[::1] view = values.reshape(-1)
    cdef Py_ssize_t i, count = view.shape[0]
    if not count:
        return values
    cdef Network network
    cdef uint64_t* x = <uint64_t*>&view[0]
    cdef bint inside = True
    with nogil:
        for i in range(count):
            inside &= x[i] < <uint64_t>n
        if inside:
            network_init(&network, n, key)
            i = 0
            while i + LANES <= count:
                network_apply(&network, x + i, LANES)
                i += LANES
            while i < count:
                network_apply(&network, x + i, 1)
                i += 1
    if not inside:
        raise IndexError(f"positions must lie in [0, {n})")
    return values


def uniform(uint64_t key, positions):
    """Return random numbers in ``[0, 1)``, float64: one for every position, by its value alone."""
    cdef const int64_t[::1] where = np.ascontiguousarray(positions, np.int64).reshape(-1)
    values = np.empty(where.shape[0])
    cdef double[::1] view = values
    cdef philox_block block
    cdef uint64_t bits
    cdef Py_ssize_t i
    with nogil:
        for i in range(where.shape[0]):
            block = philox4x32(key, <uint32_t>where[i], <uint32_t>(<uint64_t>where[i] >> 32),
                               0x756E6966, 0)  # "unif"
            bits = <uint64_t>block.word[0] << 32 | block.word[1]
            view[i] = (bits >> 11) * (1.0 / 9007199254740992.0)
    return values


def philox(uint64_t key, counter):
    """Return four 32-bit words of Philox4x32-10 for a 64-bit key and a counter of four words."""
    cdef uint32_t c0, c1, c2, c3
    c0, c1, c2, c3 = counter
    cdef philox_block block = philox4x32(key, c0, c1, c2, c3)
    return block.word[0], block.word[1], block.word[2], block.word[3]


def derive_key(seed, *purpose):
    """Return a 64-bit key for one purpose, from a seed and the integers that name the purpose.

    64 bits of each count, so that negative seeds are distinct from small positive ones.
    """
    cdef philox_block block
    cdef uint64_t item, key = seed & 0xFFFFFFFFFFFFFFFF
    cdef uint32_t position = 0
    for value in purpose:
        item = value & 0xFFFFFFFFFFFFFFFF
        block = philox4x32(key, <uint32_t>item, <uint32_t>(item >> 32), position,
                           0x6B657973)  # "keys"
        key = <uint64_t>block.word[0] << 32 | block.word[1]
        position += 1
    return key
