from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t

from recordio.formats.status cimport Outcome


cdef struct Rectangle:
    int x
    int y
    int width
    int height


# What is known of an image before a row of it is asked for.
cdef struct ImageInfo:
    int width               # upright
    int height
    int orientation         # EXIF, 1 to 8: how the rows, which come as stored, have to be turned
    bint scales             # it can be had at 1/2, 1/4 and 1/8 of its size as well
    bint in_memory          # every rectangle comes at once, and stays where it is until `finish`
    bint raw                # the data are the pixels: nothing is gained by keeping them elsewhere
    # Bytes of one pixel: a byte for each channel, or from sources of deep pixels two (uint16) or
    # four (float32).  From sources of values it is found out as well.
    int pixel_size
    bint cut                # the file stores more bits than the pixels have


# The next rows of a rectangle.
cdef struct Rows:
    const uint8_t* first
    ptrdiff_t stride
    int count
    bint cold               # in memory that may have to be fetched


cdef enum OpenStatus:
    SOURCE_OPEN = 0
    SOURCE_OTHER            # no image for this source: ask the next one
    SOURCE_FAILED           # the outcome says why


# Where the rows of one image after the other come from: 1, 3 or 4 bytes a pixel, as its maker was
# told.  One image at a time, one thread at a time: open, start, next, next, ..., finish.
cdef struct RowSource:
    void* state             # of the functions below
    double seconds          # spent on decoding so far; others read it
    # Of the image that is opened next: where its codec keeps what it finds out about images, in a
    # form of its own, and the number of the image there; NULL: nothing is kept.
    void* kept
    int64_t record
    # Where its user has the rows of the rectangle that is started next: a codec may write them
    # there, and `next` then gives what lies there already.  NULL: nowhere.
    uint8_t* into
    ptrdiff_t into_stride
    # Look at an image, whose bytes stay as they are until `finish`: an OpenStatus.
    int (*open)(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                Outcome* outcome) noexcept nogil
    # Ask for a rectangle of the stored image at 1/denominator of its size, once for each `open`, or
    # any number of times if it is in memory; not 0 after a failure, as below.
    int (*start)(RowSource* source, int denominator, const Rectangle* area,
                 Outcome* outcome) noexcept nogil
    # At least one row more of the rectangle, valid until the next call.
    int (*next)(RowSource* source, Rows* rows, Outcome* outcome) noexcept nogil
    # Done with it, also after a failure of `start` or `next`.  Whether the image was sound, as far
    # as anybody can tell.
    bint (*finish)(RowSource* source) noexcept nogil


# Open an image by the first source that takes it; NULL if none can, and the outcome says why.
cdef RowSource* open_first(RowSource** sources, int count, const uint8_t* data, size_t size,
                           ImageInfo* info, Outcome* outcome) noexcept nogil


# Owner of a source and its state; the base of what `table` lists.
cdef class RowDecoder:
    cdef RowSource source


# Pixels of an image in memory, or of a rectangle of one that begins at (x, y).
cdef struct Pixels:
    const uint8_t* first
    ptrdiff_t stride
    int x
    int y
    int width
    int height
    int pixel_size
    Rows asked              # what `next` gives


# Make a source of pixels in memory, which are open already.
cdef void read_pixels(RowSource* source, Pixels* pixels) noexcept nogil
