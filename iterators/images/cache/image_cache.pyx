# build: small
"""Images by record number, in memory or in a file: stored once, then read without the GIL.

A cache knows numbers, sizes and pixels.  It decodes nothing, and knows neither recipes nor earlier
changes of an image.  Nothing is ever thrown out to make room: an epoch visits every record once, so
that a fixed set of images serves as well as any other, and a set that changes gains one image and
loses another.

Images lie one after the other, each with a head that describes it.  A table has one word for every
record: 0, or offset and length of its slot.  A thread takes a slot under a lock, writes the image
without one, and stores the word when the image is complete.  A reader follows the word and needs no
lock.

`FileImageCache` is shared by processes and outlives them: its table and images are read through a
mapping and written by calls, because a store to a mapping ends the process where the disk is full.
The file may have been written by a process that was killed, on a machine that lost its power, or
over a broken disk.  So an image that this process did not write itself is used only after its
checksum, which covers the record number and the size, was found right; otherwise it is as if it
were not there, and is put there again.

The file may also be written over while it is open.  Whatever its bytes become, nothing is read or
written outside of it, and an image whose offset or size changed is checked again.  Pixels that
change after they were checked are seen as they are.  `cache_file` decides whether a file may be
used at all.
"""

from libc.string cimport memcpy

from recordio.bytes.mapping cimport guard_of, map_guard, map_lost
from recordio.counter cimport counter_load, counter_raise, counter_store
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.sync cimport sync_lock, sync_mutex_destroy, sync_mutex_init, sync_unlock

import logging
import mmap
import os
import sys

import numpy as np

from .cache_file import WORD_LENGTH_BITS, WORD_UNIT, open_cache_file


cdef extern from "iterators/images/cache/image_cache.h" nogil:
    void cache_copy(void* copy, const void* words, size_t count)
    int cache_file_write(int file, const void* bytes, size_t size, int64_t offset)
    int cache_file_read(int file, void* bytes, size_t size, int64_t offset)
    int cache_file_lock(int file, int tries)
    void cache_file_unlock(int file)
    void cache_file_close(int file)

cdef enum:
    LENGTH_BITS = 24
    # A word that no image has: the smallest takes more than one unit.
    REFUSED = 1

assert (WORD_LENGTH_BITS, WORD_UNIT) == (LENGTH_BITS, UNIT)
cdef int64_t LARGEST_SLOT = (<int64_t>1 << LENGTH_BITS) * UNIT
#: Largest number of bytes that a cache can have.
LARGEST_CAPACITY = ((<int64_t>1) << (64 - LENGTH_BITS)) * UNIT - UNIT


cdef int64_t slot_size(int64_t width, int64_t height, int channels) noexcept nogil:
    """Return the bytes that an image takes with all that belongs to it."""
    return (HEAD_SIZE + width * height * channels + PIXEL_SLACK + UNIT - 1) // UNIT * UNIT


cdef uint64_t word_of(int64_t offset, int64_t size) noexcept nogil:
    return <uint64_t>(offset // UNIT) << LENGTH_BITS | <uint64_t>(size // UNIT)


cdef int64_t word_offset(uint64_t word) noexcept nogil:
    return <int64_t>(word >> LENGTH_BITS) * UNIT


cdef int64_t word_size(uint64_t word) noexcept nogil:
    return <int64_t>(word & ((1 << LENGTH_BITS) - 1)) * UNIT


cdef int64_t word_end(uint64_t word) noexcept nogil:
    """Return the end of the image of a word in the data."""
    return word_offset(word) + word_size(word)


cdef uint64_t head_checksum(uint64_t seed, const Head* head, const uint8_t* pixels,
                            size_t size) noexcept nogil:
    return cache_checksum(
        cache_checksum(seed, <const uint8_t*>&head.number, sizeof(Head) - sizeof(uint64_t)),
        pixels, size)


cdef void describe(const Head* head, const uint8_t* pixels, CachedImage* image) noexcept nogil:
    image.pixels = pixels
    image.width, image.height = head.width, head.height
    image.source_width, image.source_height = head.source_width, head.source_height


cdef class ImageCache:
    """Base class; those derived from it hold the images.

    `count` is a number of records, `channels` bytes of a pixel, `capacity` bytes for images.
    """

    def __cinit__(self, *args, **keywords):
        sync_mutex_init(&self.mutex)
        self.data, self.words, self.fingerprints = NULL, NULL, NULL
        self.used_bytes = &self.own_used_bytes
        self.own_used_bytes = 0

    def __dealloc__(self):
        sync_mutex_destroy(&self.mutex)

    @property
    def used(self):
        """Return the bytes that images take, with their heads."""
        return cache_load(self.used_bytes)

    @property
    def images(self):
        """Return the number of images that are there."""
        table = np.asarray(<uint64_t[:max(self.count, 1)]>self.words)[:self.count]
        return int(np.count_nonzero(table > REFUSED))

    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef uint64_t word
        cdef Head head
        if cache_load(self.fingerprints + number) == REFUSED:
            return CACHE_REFUSED
        word = cache_load(self.words + number)
        if word == 0:
            return CACHE_ABSENT
        if not self.contains(word):
            return CACHE_REFUSED    # in what another process added to the file since it was opened
        if not self.read_head(number, word, &head) or not self.is_whole(number, word, &head):
            return CACHE_ABSENT
        describe(&head, self.data + word_offset(word) + HEAD_SIZE, image)
        return CACHE_FOUND

    cdef bint is_lost(self, const CachedImage* image) noexcept nogil:
        return False

    cdef bint holds(self, int64_t number) noexcept nogil:
        return (cache_load(self.words + number) != 0
                and cache_load(self.fingerprints + number) != REFUSED)

    cdef bint contains(self, uint64_t word) noexcept nogil:
        """Return whether the image of a word can be read."""
        return word_end(word) <= self.size

    cdef bint read_head(self, int64_t number, uint64_t word, Head* head) noexcept nogil:
        """Copy the head of an image; whether it fits the record and the length in the word.

        A file can be written to at any time: nothing of a head is used but a copy that was checked.
        """
        cdef int64_t size = word_size(word)
        if size < HEAD_SIZE + PIXEL_SLACK:
            return False
        cache_copy(head, self.data + word_offset(word), sizeof(Head) // sizeof(uint64_t))
        return (head.number == number and head.width >= 1 and head.height >= 1
                and head.source_width >= 1 and head.source_height >= 1
                and <int64_t>head.width * head.height <= size
                and slot_size(head.width, head.height, self.channels) == size)

    cdef bint is_whole(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        """Return whether an image is as it was written; its pixels are read only the first time."""
        if self.is_known(number, word, head):
            return True
        if head.checksum != head_checksum(
                self.seed, head, self.data + word_offset(word) + HEAD_SIZE,
                <size_t>head.width * head.height * self.channels):
            return False
        self.remember(number, word, head)
        return True

    cdef bint is_known(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        """Return whether this process wrote that image or has checked it."""
        return True     # nobody else can write here

    cdef void remember(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        """Remember that an image is known."""
        pass

    cdef bint has_room(self, int64_t width, int64_t height) noexcept nogil:
        cdef int64_t size = slot_size(width, height, self.channels)
        return (size < LARGEST_SLOT and counter_load(&self.stopped) == 0
                and <int64_t>cache_load(self.used_bytes) <= self.capacity - size)

    cdef void refuse(self, int64_t number) noexcept nogil:
        if cache_load(self.fingerprints + number) == 0:    # else another thread was luckier with it
            cache_store(self.fingerprints + number, REFUSED)

    cdef bint put(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef Head head
        cdef uint64_t expected = cache_load(self.words + number), word
        cdef int64_t size = slot_size(image.width, image.height, self.channels)
        cdef int64_t offset
        cdef size_t length = <size_t>image.width * image.height * self.channels
        if (expected != 0 and self.contains(expected) and self.read_head(number, expected, &head)
                and self.is_whole(number, expected, &head)):
            return False        # a second thread had the same record
        offset = self.reserve(number, expected, size)
        if offset < 0:
            return False
        head.number = number
        head.width, head.height = image.width, image.height
        head.source_width, head.source_height = image.source_width, image.source_height
        head.checksum = 0
        if self.fingerprints != self.words:    # else nobody will ever look at it
            head.checksum = head_checksum(self.seed, &head, image.pixels, length)
        cdef int error = self.write_data(offset, &head, image.pixels, length)
        if error:
            self.stop(error)
            return False
        word = word_of(offset, size)
        if not self.publish(number, expected, word):
            return False
        self.remember(number, word, &head)
        image.pixels = self.data + offset + HEAD_SIZE
        return True

    cdef bint lock(self) noexcept nogil:
        sync_lock(&self.mutex)
        return True

    cdef void unlock(self) noexcept nogil:
        sync_unlock(&self.mutex)

    cdef int64_t reserve(self, int64_t number, uint64_t expected, int64_t size) noexcept nogil:
        """Return the offset of a slot for an image; -1 if there is none or nobody needs it."""
        cdef int64_t offset = -1, used
        if not self.lock():
            return -1
        used = <int64_t>cache_load(self.used_bytes)
        if cache_load(self.words + number) == expected and used <= self.capacity - size:
            cache_store(self.used_bytes, <uint64_t>(used + size))
            offset = used
        self.unlock()
        return offset

    cdef int write_data(self, int64_t offset, const void* head, const uint8_t* pixels,
                        size_t size) noexcept nogil:
        memcpy(self.data + offset, head, sizeof(Head))
        memcpy(self.data + offset + HEAD_SIZE, pixels, size)
        return 0

    cdef bint publish(self, int64_t number, uint64_t expected, uint64_t word) noexcept nogil:
        """Let everybody see an image, unless somebody was faster."""
        cdef bint first
        if not self.lock():
            return False
        first = cache_load(self.words + number) == expected
        if first:
            cache_store(self.words + number, word)
        self.unlock()
        return first

    cdef void stop(self, int error) noexcept nogil:
        counter_store(&self.stopped, error)


cdef class MemoryImageCache(ImageCache):
    """Images in memory of this process; memory that is not used costs nothing."""

    def __init__(self, int64_t count, int channels, int64_t capacity):
        cdef uint64_t[::1] table
        cdef uint8_t[::1] view
        capacity = min(max(capacity, 0), LARGEST_CAPACITY)
        table = words = np.zeros(max(count, 1), np.uint64)
        try:
            view = memory = _anonymous(max(capacity, mmap.PAGESIZE))
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryError(
                f"the system does not give a cache {capacity} bytes of memory ({error}): choose a "
                "smaller cache_size") from None
        self.count, self.channels, self.capacity, self.size = count, channels, capacity, capacity
        self.data = &view[0]
        # Everything in here was written by this process: what is there is also known.
        self.words = self.fingerprints = &table[0]
        self.owners = words, memory, view


def _anonymous(size):
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    # Without a reservation: pages are taken when they are written to.
    no_reserve = 0x4000 if sys.platform == "linux" else 0
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)


def image_bytes(width, height, channels):
    """Return the bytes that an image takes in a cache, with its head."""
    return slot_size(width, height, channels)


# ---- in a file ----

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

    cdef readonly str path
    cdef int file
    cdef const uint8_t* base            # of the mapping
    cdef map_guard* guard
    cdef int64_t used_offset             # where things lie in the file
    cdef int64_t table_offset
    cdef int64_t data_offset
    cdef int64_t settled                # bytes of the data that are in use for certain

    def __cinit__(self, *args, **keywords):
        self.file = -1
        self.base, self.guard = NULL, NULL

    def __init__(self, path, int64_t count, int channels, int64_t capacity, settings):
        cdef const uint8_t[::1] view
        cdef uint64_t[::1] fingerprints
        capacity = min(max(capacity, 0), LARGEST_CAPACITY)
        self.path = path
        opened = open_cache_file(path, count, channels, capacity, settings)
        self.file = opened.file
        view, fingerprints = opened.mapping, np.zeros(max(count, 1), np.uint64)
        self.owners = opened.mapping, view, fingerprints
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
        self.used_bytes = <uint64_t*>(<uint8_t*>&view[0] + self.used_offset)
        self.fingerprints = &fingerprints[0]

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
        return cache_load(self.fingerprints + number) == fingerprint(word, head)

    cdef void remember(self, int64_t number, uint64_t word, const Head* head) noexcept nogil:
        cache_store(self.fingerprints + number, fingerprint(word, head))
        counter_raise(&self.settled, word_end(word))

    cdef int64_t reserve(self, int64_t number, uint64_t expected, int64_t size) noexcept nogil:
        cdef int64_t offset = -1
        cdef uint64_t[2] words
        cdef int error
        if not self.lock():
            return -1
        error = self.read_words(number, words)
        if not error and words[1] == expected and <int64_t>words[0] <= self.capacity - size:
            offset = <int64_t>words[0]
            words[0] += <uint64_t>size
            error = cache_file_write(self.file, &words[0], 8, self.used_offset)
            counter_raise(&self.settled, <int64_t>words[0])
        self.unlock()
        if error:
            self.stop(error)
            return -1
        return offset

    cdef int read_words(self, int64_t number, uint64_t* words) noexcept nogil:
        """Read bytes in use, and the word of a record, as they are in the file."""
        cdef int error = cache_file_read(self.file, words, 8, self.used_offset)
        if error:
            return error
        if words[0] % UNIT or <int64_t>words[0] < counter_load(&self.settled):
            return OVERWRITTEN
        return cache_file_read(self.file, words + 1, 8, self.table_offset + 8 * number)

    cdef int write_data(self, int64_t offset, const void* head, const uint8_t* pixels,
                        size_t size) noexcept nogil:
        cdef int error = cache_file_write(self.file, pixels, size,
                                          self.data_offset + offset + HEAD_SIZE)
        if error:
            return error
        return cache_file_write(self.file, head, sizeof(Head), self.data_offset + offset)

    cdef bint publish(self, int64_t number, uint64_t expected, uint64_t word) noexcept nogil:
        cdef uint64_t[2] words
        cdef int error
        cdef bint first
        if not self.lock():
            return False
        error = self.read_words(number, words)
        first = not error and words[1] == expected
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
