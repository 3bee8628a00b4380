from libc.stdint cimport int64_t, uint32_t, uint64_t, uint8_t

from iterators.images.augment.det_geometry cimport CropLimits, Objects
from iterators.images.augment.draw cimport ImageKey
from iterators.images.image_steps cimport StepRunner
from iterators.images.plan cimport LabelReader
from iterators.images.render cimport Renderer, Slot
from iterators.images.sources.source cimport Encoded, Scratch, Source
from recordio.formats.status cimport Outcome


cdef enum:
    PREFIX = 4              # values before the label: channels, rows, columns, length


# Vectors of objects: their number may differ from record to record.
cdef class ObjectLabels(LabelReader):
    cdef Py_ssize_t raw_width
    cdef int channels
    cdef float pad_value
    cdef const int64_t* starts      # of the labels in the list
    cdef Objects objects            # of the image at work, in its row
    cdef Py_ssize_t header          # values before them
    cdef float* row                 # NULL without

    cdef int have_none(self, float* row) noexcept nogil
    cdef int refuse(self, const void* label, Py_ssize_t count, Outcome* outcome) noexcept nogil
    # Complete the row, for an image of that size.
    cdef void finish(self, int width, int height) noexcept nogil


cdef enum:
    MOSAIC_IMAGES = 4


# What is put together: the record at work, three others, and the point where their corners touch.
cdef struct Partners:
    int64_t records[MOSAIC_IMAGES]
    ImageKey image
    double x                # in images of the size of the target
    double y


# Puts the records of one pack together; belongs to one thread at a time but for `find_partners`.
cdef class Mosaic:
    cdef Renderer renderer
    cdef ObjectLabels labels
    cdef StepRunner tiles
    cdef CropLimits emission
    cdef int inter_method
    cdef double chance
    cdef double low
    cdef double high
    cdef int64_t first      # record of the pack
    cdef int64_t count      # of its records
    cdef int width          # of the canvas
    cdef int height
    cdef int x              # where the corners of the images touch
    cdef int y
    cdef uint8_t* canvas    # with room for that of the largest target
    cdef float* row         # of labels that are added to those of the first image
    cdef int64_t made       # so far; others read it
    # Of the image at work: the first record, and the objects so far, in its row.
    cdef uint64_t record_id
    cdef Py_ssize_t header
    cdef Objects objects

    # Whether an image is one of four this time, and of which; any thread may ask.
    cdef bint find_partners(self, int64_t number, uint32_t epoch, int64_t occurrence,
                            Partners* partners) noexcept nogil
    # Fill a slot.  After a failure `failed` is the number of the record that it is of.
    cdef void render(self, Source source, const Partners* partners, const Slot* slot, int* fetched,
                     Outcome* outcome, Scratch* scratch, int64_t* failed) noexcept nogil
    cdef int add(self, const Encoded* record, const Partners* partners, int number,
                 const Slot* slot, Outcome* outcome) noexcept nogil
    # The tile of an open image, and its objects as those of the canvas.
    cdef int add_tile(self, const uint8_t* data, size_t size, const Partners* partners, int number,
                      Outcome* outcome) noexcept nogil
