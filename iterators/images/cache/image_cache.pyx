"""Images by record number, in memory or in a file: put there once, read without the GIL ever after.

A cache knows numbers, sizes and pixels.  It decodes nothing, and knows neither recipes nor earlier
changes of an image.  Nothing is ever thrown out to make room: an epoch visits every record once, so
that a fixed set of images serves as well as any other, and a set that changes gains one image and
loses another.

Images lie one after the other, each with a head that describes it.  A table has one word for every
record: 0, or offset and length of its slot.  A thread takes a slot under a lock, writes the image
without one, and stores the word when the image is complete.  A reader follows the word and needs no
lock.

`MemoryImageCache` is here; `file_image_cache` has the cache that outlives its process.
"""

import mmap
import sys

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from recordio.counter cimport counter_load, counter_store
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.sync cimport sync_lock, sync_mutex_destroy, sync_mutex_init, sync_unlock

import numpy as np

cdef extern from "iterators/images/cache/image_cache.h" nogil:
    void cache_copy(void* copy, const void* words, size_t count)

cdef enum:
    LENGTH_BITS = 24
    # A word that no image has: the smallest takes more than one unit.
    REFUSED = 1

#: A word is the offset of an image and, in its lowest bits, the length, both in units of bytes.
WORD_LENGTH_BITS, WORD_UNIT = LENGTH_BITS, UNIT
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
        self.data, self.words, self.known = NULL, NULL, NULL
        self.given = &self.own_given
        self.own_given = 0

    def __dealloc__(self):
        sync_mutex_destroy(&self.mutex)

    @property
    def used(self):
        """Return the bytes that images take, with their heads."""
        return cache_load(self.given)

    @property
    def images(self):
        """Return the number of images that are there."""
        table = np.asarray(<uint64_t[:max(self.count, 1)]>self.words)[:self.count]
        return int(np.count_nonzero(table > REFUSED))

    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil:
        cdef uint64_t word
        cdef Head head
        if cache_load(self.known + number) == REFUSED:
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
                and cache_load(self.known + number) != REFUSED)

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
                and <int64_t>cache_load(self.given) <= self.capacity - size)

    cdef void refuse(self, int64_t number) noexcept nogil:
        if cache_load(self.known + number) == 0:    # else another thread was luckier with it
            cache_store(self.known + number, REFUSED)

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
        if self.known != self.words:    # else nobody will ever look at it
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
        used = <int64_t>cache_load(self.given)
        if cache_load(self.words + number) == expected and used <= self.capacity - size:
            cache_store(self.given, <uint64_t>(used + size))
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
        self.words = self.known = &table[0]
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
