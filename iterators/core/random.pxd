from libc.stdint cimport int64_t, uint64_t

cdef enum:
    MOST_ROUNDS = 64


# A permutation of range(size): `permute` one value at a time.
cdef struct Network:
    uint64_t size
    int right_bits
    uint64_t left_mask
    uint64_t right_mask
    int rounds
    uint64_t keys[MOST_ROUNDS]


cdef void network_init(Network* network, uint64_t size, uint64_t key) noexcept nogil
# The value at one position, in [0, size).
cdef int64_t network_at(const Network* network, int64_t position) noexcept nogil
# A key for something that has a number, below another key.
cdef uint64_t key_below(uint64_t key, int64_t number, uint64_t purpose) noexcept nogil
