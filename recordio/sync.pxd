"""A mutex, a condition variable and a clock without Python, for Cython: `sync.h` says more."""

cdef extern from "recordio/sync.h" nogil:
    ctypedef struct sync_mutex:
        pass
    ctypedef struct sync_condition:
        pass
    void sync_mutex_init(sync_mutex*)
    void sync_mutex_destroy(sync_mutex*)
    void sync_lock(sync_mutex*)
    void sync_unlock(sync_mutex*)
    void sync_condition_init(sync_condition*)
    void sync_condition_destroy(sync_condition*)
    void sync_wake_all(sync_condition*)
    void sync_wait(sync_condition*, sync_mutex*)
    void sync_wait_ms(sync_condition*, sync_mutex*, int)
    double sync_now()
    double sync_thread_seconds()
