# build: small
"""Entry points of the JPEG images of a pack: where a decoder can begin within them.

They are noted while images are decoded; `entries.h` says what they are.  A store belongs to one set
of records and may be used by several threads; it knows nothing of files.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

__all__ = ["EntryStore"]


cdef class EntryStore:
    """Entry points of `count` records, of each one byte for `share` bytes of its image.

    >>> store = EntryStore(3)
    >>> store.images, store.packed(0), len(store)
    (0, None, 3)
    """

    def __cinit__(self, int64_t count, int share=ENTRY_SHARE):
        self.store = NULL
        if count < 0 or share < 1:
            raise ValueError(f"count={count}, share={share}: expected at least 0 and 1")
        self.store = entry_store_new(count, share)
        if self.store == NULL:
            raise MemoryError("no memory for a store of entry points")

    def __dealloc__(self):
        entry_store_free(self.store)

    def __len__(self):
        return self.store.count

    @property
    def images(self):
        """Count the records of which points are known."""
        cdef int64_t i, count = 0
        for i in range(self.store.count):
            count += self._size(i) > 0
        return count

    @property
    def nbytes(self):
        """Add up the bytes of the points."""
        cdef int64_t i, total = 0
        for i in range(self.store.count):
            total += self._size(i)
        return total

    cdef int64_t _size(self, int64_t record) noexcept nogil:
        cdef sync_mutex* lock = &self.store.locks[record % ENTRY_LOCKS]
        cdef int64_t size
        sync_lock(lock)
        size = self.store.records[record].size
        sync_unlock(lock)
        return size

    cdef int _check(self, int64_t record) except -1:
        if not 0 <= record < self.store.count:
            raise IndexError(f"record {record} of {self.store.count}")
        return 0

    def packed(self, int64_t record):
        """Return the points of a record as bytes, or None."""
        cdef sync_mutex* lock
        cdef const entry_record* entry
        self._check(record)
        lock, entry = &self.store.locks[record % ENTRY_LOCKS], &self.store.records[record]
        sync_lock(lock)
        try:
            return None if entry.packed == NULL else entry.packed[:entry.size]
        finally:
            sync_unlock(lock)

    def put(self, int64_t record, const uint8_t[::1] packed not None):
        """Take over what `packed` returned; False for bytes that it cannot have returned."""
        cdef entry_points* points
        cdef uint8_t* copy
        cdef size_t size = packed.shape[0]
        cdef bint sound
        self._check(record)
        if size == 0:
            return False
        points = <entry_points*>malloc(sizeof(entry_points))
        copy = <uint8_t*>malloc(size)
        if points == NULL or copy == NULL:
            free(points)
            free(copy)
            raise MemoryError("no memory for entry points")
        sound = entry_unpack(&packed[0], size, points)
        free(points)
        if not sound:
            free(copy)
            return False
        memcpy(copy, &packed[0], size)
        entry_store_put(self.store, record, copy, size)
        return True
