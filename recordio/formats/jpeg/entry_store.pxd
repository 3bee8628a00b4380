from libc.stdint cimport int64_t, uint8_t, uint32_t

from recordio.sync cimport sync_lock, sync_mutex, sync_unlock

cdef extern from "recordio/formats/jpeg/entries.h" nogil:
    enum:
        ENTRY_LOCKS
        ENTRY_SHARE

    ctypedef struct entry_points:
        int count

    ctypedef struct entry_record:
        uint8_t* packed
        uint32_t size

    ctypedef struct entry_store:
        int64_t count
        entry_record* records
        sync_mutex locks[ENTRY_LOCKS]

    int entry_unpack(const uint8_t* packed, size_t size, entry_points* points) noexcept
    entry_store* entry_store_new(int64_t count, int share) noexcept
    void entry_store_free(entry_store* store) noexcept
    void entry_store_put(entry_store* store, int64_t record, uint8_t* packed, size_t size) noexcept


# Entry points of the records of a pack.
cdef class EntryStore:
    cdef entry_store* store
    cdef int64_t _size(self, int64_t record) noexcept nogil
    cdef int _check(self, int64_t record) except -1
