"""Random numbers by counters, for Cython: `philox.h` says more."""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "recordio/kernels/philox.h" nogil:
    ctypedef struct philox_block:
        uint32_t word[4]
    philox_block philox4x32(uint64_t key, uint32_t, uint32_t, uint32_t, uint32_t)
    double philox_unit(uint32_t word)
    uint32_t philox_below(uint32_t word, uint32_t n)
