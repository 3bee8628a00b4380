from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

from recordio.sync cimport sync_mutex


cdef extern from "iterators/images/cache/image_cache.h" nogil:
    uint64_t cache_load(const uint64_t* word)
    void cache_store(uint64_t* word, uint64_t value)
    uint64_t cache_checksum(uint64_t seed, const uint8_t* bytes, size_t size)

cdef enum:
    UNIT = 64               # images begin at multiples of this
    HEAD_SIZE = 64          # from there to the first pixel


# Head of an image, before its pixels.
cdef struct Head:
    uint64_t checksum       # of the rest of the head, and of the pixels
    int64_t number
    int32_t width
    int32_t height
    int32_t source_width
    int32_t source_height


cdef enum CacheStatus:
    CACHE_FOUND = 0
    CACHE_ABSENT
    CACHE_REFUSED           # absent, and this process will not put it there


# An image in the cache: packed pixels, and the size of the image that they were made from.
cdef struct CachedImage:
    const uint8_t* pixels
    int width
    int height
    int source_width
    int source_height


# Images by record number; any thread may call any of these functions at any time.
cdef class ImageCache:
    cdef readonly int64_t count         # records
    cdef readonly int channels          # bytes of a pixel
    cdef readonly int64_t capacity      # bytes that images may take
    cdef uint8_t* data                  # the images
    cdef int64_t size                   # bytes that can be read there
    cdef uint64_t* words                # one for every record: where its image is, or 0
    cdef uint64_t* fingerprints         # one for every record: REFUSED, or what `is_known` compares
    cdef uint64_t* used_bytes           # bytes of it that are taken
    cdef uint64_t seed                  # of the checksums
    cdef uint64_t own_used_bytes
    cdef int64_t stopped                # error number of the write that failed
    cdef object owners                  # keep what the pointers point to
    cdef sync_mutex mutex

    # The image of a record; its pixels stay where they are as long as this object lives, and there
    # are as many as its sizes say.
    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil
    # True if bytes of an image from `find` or `put` were lost, so that others may have been read:
    # ask after reading.  NULL stands for the whole cache.
    cdef bint is_lost(self, const CachedImage* image) noexcept nogil
    # True if there is one, as far as it is known without reading it.
    cdef bint holds(self, int64_t number) noexcept nogil
    # True if an image of that size still finds a slot; if not, none of its size ever will.
    cdef bint has_room(self, int64_t width, int64_t height) noexcept nogil
    # Keep a copy of what `find` said is absent; if that worked, `image.pixels` are those of the
    # copy.  Whoever puts an image there must put the same.
    cdef bint put(self, int64_t number, CachedImage* image) noexcept nogil
    # Do not look for this record again.
    cdef void refuse(self, int64_t number) noexcept nogil

    cdef bint lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil
    cdef bint contains(self, uint64_t word) noexcept nogil
    cdef bint read_head(self, int64_t number, uint64_t word, Head* head) noexcept nogil
    cdef bint is_whole(self, int64_t number, uint64_t word, const Head* head) noexcept nogil
    cdef bint is_known(self, int64_t number, uint64_t word, const Head* head) noexcept nogil
    cdef void remember(self, int64_t number, uint64_t word, const Head* head) noexcept nogil
    cdef int64_t reserve(self, int64_t number, uint64_t expected, int64_t size) noexcept nogil
    cdef int write_data(self, int64_t offset, const void* head, const uint8_t* pixels,
                        size_t size) noexcept nogil
    cdef bint publish(self, int64_t number, uint64_t expected, uint64_t word) noexcept nogil
    cdef void stop(self, int error) noexcept nogil
