from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int32_t, int64_t, uint8_t

from recordio.formats.row_source cimport ImageInfo, Rectangle, RowDecoder, RowSource
from recordio.formats.status cimport Outcome


cdef extern from "iterators/images/fields/gather.h" nogil:
    ctypedef struct value_image:
        const uint8_t* first
        ptrdiff_t stride
        int bytes
        int x
        int y
        int width
        int height

    size_t value_size(int type)
    void gather_row(const value_image* image, int y, const int32_t* columns, int count,
                    int64_t fill, int type, void* out)
    void fill_row(int count, int64_t fill, int type, void* out)
    void gather_pixels(const value_image* image, const int32_t* xs, const int32_t* ys, int count,
                       int64_t fill, int type, void* out)
    void blend_pixels(const value_image* image, const double* xs, const double* ys, int count,
                      int64_t fill, int type, void* out)
    void exchange_values(const int32_t* partners, int32_t num_partners, int count, int type,
                         void* row)
    bint value_beyond(const value_image* image)


# Reads images of one value for each pixel, as they are stored; serves one thread.
cdef class ValueReader:
    cdef RowDecoder png
    cdef dict limits
    cdef int64_t max_pixels
    cdef int value_bytes        # of the PNG image that is open
    cdef bint exact             # no JPEG, which changes values
    cdef RowSource* source      # of the PNG image that is open; NULL if `whole` is open
    cdef value_image whole
    cdef object decoded         # owns it
    cdef uint8_t* memory
    cdef size_t capacity

    cdef void keep(self, int width, int height, ImageInfo* info) noexcept nogil
    cdef int open_by_pillow(self, const uint8_t* data, size_t size, ImageInfo* info,
                            Outcome* outcome) noexcept with gil
    # Open an image: its size, upright.  To be finished after a success.
    cdef int open(self, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept nogil
    # A rectangle of it, once.
    cdef int read(self, const Rectangle* region, value_image* image,
                  Outcome* outcome) noexcept nogil
    cdef void finish(self) noexcept nogil
