"""Numbers that threads change while others read them, for Cython: `counter.h` says more."""

from libc.stdint cimport int64_t

cdef extern from "recordio/counter.h" nogil:
    int64_t counter_load(const int64_t* counter)
    void counter_store(int64_t* counter, int64_t value)
    void counter_add(int64_t* counter, int64_t number)
    int64_t counter_published(const int64_t* counter)
    void counter_publish(int64_t* counter, int64_t value)
    void counter_raise(int64_t* counter, int64_t least)
    void seconds_add(double* seconds, double more)
    double seconds_load(const double* seconds)
