"""Images by record number in a file, which processes share and later ones use again.

The table and the images are those of `image_cache`; here they are read through a mapping and
written by calls, because a store to a mapping ends the process where the disk is full.

The file may have been written by a process that was killed, on a machine that lost its power, or
over a broken disk.  So an image that this process did not write itself is used only after its
checksum, which covers the record number and the size, was found right; otherwise it is as if it
were not there, and is put there again.

It may also be written over while it is open.  Whatever its bytes become, nothing is read or written
outside of it, and an image whose offset or size changed is checked again.  Pixels that change after
they were checked are seen as they are.

This module never decides whether a file may be used at all; `cache_file` does.
"""

import logging
import os

from libc.stdint cimport int64_t, uint8_t, uint64_t

from recordio.counter cimport counter_load, counter_raise, counter_store
from recordio.sync cimport sync_lock, sync_unlock

import numpy as np

from recordio.bytes.mapping cimport guard_of, map_lost

from iterators.images.cache.image_cache cimport (
    CACHE_FOUND, CACHE_REFUSED, HEAD_SIZE, UNIT, CachedImage, Head, ImageCache, cache_checksum,
    cache_load, cache_store, word_end,
)

cdef extern from "iterators/images/cache/image_cache.h" nogil:
    int cache_file_write(int file, const void* bytes, size_t size, int64_t offset)
    int cache_file_read(int file, void* bytes, size_t size, int64_t offset)
    int cache_file_lock(int file, int tries)
    void cache_file_unlock(int file)
    void cache_file_close(int file)

from . import image_cache
from .cache_file import open_cache_file

cdef enum:
    LOCK_TRIES = 100
    OVERWRITTEN = -1        # beside error numbers: somebody else wrote what cannot be
    SHRANK = -2

logger = logging.getLogger("iterators")


cdef uint64_t fingerprint(uint64_t word, const Head* head) noexcept nogil:
    """Return that of the offset and the head of an image; neither 0 nor 1, which are taken."""
    return cache_checksum(word, <const uint8_t*>head, sizeof(Head)) | 2


cdef class FileImageCache(ImageCache):
    """Images in a file, which other processes use at the same time and later ones again.

    The file is made if it does not exist, one of another capacity grows, or is not filled any
    further, and one that is something else or was made with other `settings`, on which the images
    depend, is a CacheFileError.  It is for processes of one machine on a local disk.  When a write
    fails because the disk is full, this process stops writing and logs a warning; the images in the
    file remain in use.  When bytes of the file are lost, because it was truncated or the disk
    failed, this process logs a warning and goes on as if there were no cache.
    """

    def __cinit__(self, *args, **keywords):
        self.file = -1
        self.base, self.guard = NULL, NULL

    def __init__(self, path, int64_t count, int channels, int64_t capacity, settings):
        cdef const uint8_t[::1] view
        cdef uint64_t[::1] known
        capacity = min(max(capacity, 0), image_cache.LARGEST_CAPACITY)
        self.path = path
        opened = open_cache_file(path, count, channels, capacity, settings)
        self.file = opened.file
        view, known = opened.mapping, np.zeros(max(count, 1), np.uint64)
        self.owners = opened.mapping, view, known
        self.count, self.channels, self.capacity = count, channels, capacity
        self.used_offset, self.table_offset = opened.used_offset, opened.table_offset
        self.data_offset, self.seed = opened.data_offset, opened.seed
        self.settled = opened.used
        self.size = view.shape[0] - self.data_offset
        self.capacity = min(capacity, self.size)
        self.base, self.guard = &view[0], guard_of(opened.mapping)
        # The mapping is for reading; words are changed by writing to the file.
        self.data = <uint8_t*>&view[0] + self.data_offset
        self.words = <uint64_t*>(<uint8_t*>&view[0] + self.table_offset)
        self.given = <uint64_t*>(<uint8_t*>&view[0] + self.used_offset)
        self.known = &known[0]

    def __dealloc__(self):
        if self.file >= 0:
            cache_file_close(self.file)

    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef int status
        if counter_load(&self.stopped) == SHRANK:
            return CACHE_REFUSED
        status = ImageCache.find(self, number, image)
        return CACHE_REFUSED if self.is_lost(image if status == CACHE_FOUND else NULL) else status

    cdef bint is_lost(self, const CachedImage* image) noexcept nogil:
        cdef int64_t begin = 0, end = self.data_offset + self.size
        if image != NULL:
            if not self.base <= image.pixels < self.base + end:
                return False        # not from here
            begin = image.pixels - self.base
            end = begin + <int64_t>image.width * image.height * self.channels
            begin -= HEAD_SIZE
        if not map_lost(self.guard, begin, end):
            return False
        self.stop(SHRANK)
        return True

    cdef bint lock(self) noexcept nogil:
        sync_lock(&self.mutex)
        if counter_load(&self.stopped) == 0 and cache_file_lock(self.file, LOCK_TRIES) == 0:
            return True
        sync_unlock(&self.mutex)
        return False

    cdef void unlock(self) noexcept nogil:
        cache_file_unlock(self.file)
        sync_unlock(&self.mutex)

    cdef bint is_known(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        return cache_load(self.known + number) == fingerprint(word, head)

    cdef void remember(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        cache_store(self.known + number, fingerprint(word, head))
        counter_raise(&self.settled, word_end(word))

    cdef int64_t reserve(self, int64_t number, uint64_t expected, int64_t size) noexcept nogil:
        cdef int64_t offset = -1
        cdef uint64_t[2] found
        cdef int error
        if not self.lock():
            return -1
        error = self.read_words(number, found)
        if not error and found[1] == expected and <int64_t>found[0] <= self.capacity - size:
            offset = <int64_t>found[0]
            found[0] += <uint64_t>size
            error = cache_file_write(self.file, &found[0], 8, self.used_offset)
            counter_raise(&self.settled, <int64_t>found[0])
        self.unlock()
        if error:
            self.stop(error)
            return -1
        return offset

    cdef int read_words(self, int64_t number, uint64_t* found) noexcept nogil:
        """Read bytes in use, and the word of a record, as they are in the file."""
        cdef int error = cache_file_read(self.file, found, 8, self.used_offset)
        if error:
            return error
        if found[0] % UNIT or <int64_t>found[0] < counter_load(&self.settled):
            return OVERWRITTEN
        return cache_file_read(self.file, found + 1, 8, self.table_offset + 8 * number)

    cdef int write_data(self, int64_t offset, const void* head, const uint8_t* pixels,
                        size_t size) noexcept nogil:
        cdef int error = cache_file_write(self.file, pixels, size,
                                          self.data_offset + offset + HEAD_SIZE)
        if error:
            return error
        return cache_file_write(self.file, head, sizeof(Head), self.data_offset + offset)

    cdef bint publish(self, int64_t number, uint64_t expected, uint64_t word) noexcept nogil:
        cdef uint64_t[2] found
        cdef int error
        cdef bint first
        if not self.lock():
            return False
        error = self.read_words(number, found)
        first = not error and found[1] == expected
        if first:
            error = cache_file_write(self.file, &word, 8, self.table_offset + 8 * number)
        self.unlock()
        if error:
            self.stop(error)
        return first and not error

    cdef void stop(self, int error) noexcept nogil:
        cdef bint first
        sync_lock(&self.mutex)
        first = counter_load(&self.stopped) == 0
        counter_store(&self.stopped, error)
        sync_unlock(&self.mutex)
        if first:
            with gil:
                self._tell(error)

    def _tell(self, error):
        if error == SHRANK:
            logger.warning("%s: the cache is no longer used, because the file became shorter or "
                           "the disk failed", self.path)
            return
        reason = ("the file was written over by something else" if error == OVERWRITTEN
                  else f"writing failed: {os.strerror(error)}")
        logger.warning("%s: no more images are cached, because %s", self.path, reason)
