from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint8_t

from iterators.images.augment.draw cimport ImageKey
from iterators.images.augment.geometry cimport FirstResize, Geometry, GeometryDrawer, Target
from iterators.images.cache.image_cache cimport CachedImage, ImageCache
from iterators.images.fields.field cimport FieldRows, PathFinder
from iterators.images.image_steps cimport StepRunner
from iterators.images.plan cimport LabelReader, RenderPlan
from iterators.images.sources.source cimport Encoded, Source
from recordio.formats.jpeg.entry_store cimport EntryStore
from recordio.formats.row_source cimport ImageInfo, RowSource
from recordio.formats.status cimport Outcome


cdef enum:
    MAX_SOURCES = 8
    MAX_VIEWS = 16


# The slot of one sample in a batch.
cdef struct Slot:
    const Target* targets   # of the image, or of each of its views
    float* label
    FieldRows* fields       # of the batch, and the number of the slot there; NULL without fields
    Py_ssize_t number


# A cache, and what the images in it are.
cdef class CachedImages:
    cdef readonly ImageCache cache
    cdef FirstResize resize  # of the images
    cdef int64_t hits       # samples made from cached images
    cdef int64_t misses

    # As that of the cache, but an image of sizes that this recipe does not give is refused.
    cdef int find(self, int64_t number, CachedImage* image) noexcept nogil


# Renders from a cached image, after caching it if need be; serves one renderer.
cdef class CacheReader:
    cdef CachedImages images
    cdef StepRunner runner      # makes what is cached
    cdef Source source
    cdef int64_t first          # number in the source of the first record of the cache
    cdef int64_t looked         # the record that was looked for, until it is rendered; else -1
    cdef int status             # what was found: CacheStatus
    cdef CachedImage cached
    cdef bint lost              # what `look` found was gone when it was rendered

    # Whether the next `render`, if it is for this record, needs no encoded image.
    cdef bint look(self, int64_t number) noexcept nogil
    # Whether it was possible.
    cdef bint render(self, Renderer renderer, const uint8_t* data, size_t size,
                     const ImageKey* image, const Target* target,
                     Outcome* outcome) noexcept nogil
    # Make the image to be cached; False if it is damaged or has no room.
    cdef bint make(self, Renderer renderer, const uint8_t* data, size_t size,
                   const ImageKey* image) noexcept nogil
    cdef bint prepare(self, const ImageInfo* info, const ImageKey* image,
                      Geometry* geometry) noexcept nogil
    cdef int render_found(self, Renderer renderer, const CachedImage* cached, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil


# What is made of an image beside others: drawn, changed and written on its own.
cdef class RenderedView:
    cdef RenderPlan plan
    cdef GeometryDrawer geometry
    cdef StepRunner runner
    cdef PathFinder path_finder     # notes what is drawn, for fields; None without


# Turns records into samples.
cdef class Renderer:
    cdef readonly RenderPlan plan
    cdef bint strict                # refuse those
    cdef LabelReader labels
    cdef GeometryDrawer geometry
    cdef StepRunner runner
    cdef object decoders            # own the sources
    cdef bint borrows               # they are those of another renderer
    cdef RowSource* sources[MAX_SOURCES]
    cdef int num_sources
    cdef RowSource* deep_sources[MAX_SOURCES]   # the same for all bits, if the plan keeps them
    cdef int num_deep
    cdef EntryStore entries         # what is known of the inside of JPEG images; may be None
    cdef CacheReader cache_reader   # tried first; may be None
    cdef PathFinder path_finder     # notes what is drawn, for fields; None without
    cdef list views                 # of an image, if there are several
    cdef int num_views
    cdef PyObject* view_table[MAX_VIEWS]
    cdef StepRunner loader          # of the pixels that they share
    # What was done so far; others read it.
    cdef int64_t images
    cdef int64_t bytes
    cdef int64_t warned             # images that were decoded with warnings
    cdef int64_t cut                # images with more bits than their pixels had
    cdef double total_seconds

    cdef int render(self, const Encoded* record, uint32_t epoch, int64_t number, int64_t draw,
                    const Slot* slot, Outcome* outcome) noexcept nogil
    # The image that is opened next has this number.
    cdef void announce(self, int64_t number) noexcept nogil
    # Labels and id of an image, whose header is parsed if it has one.
    cdef int read_labels(self, Encoded* image, const Slot* slot, Outcome* outcome) noexcept nogil
    cdef list make_slot(self, Target* targets)
    cdef object _rendered(self, list arrays, Outcome* outcome)
    cdef int render_image(self, const uint8_t* data, size_t size, const ImageKey* image,
                          const Target* target, Outcome* outcome) noexcept nogil
    # The same for every view, of an image that is decoded once.
    cdef int render_views(self, const uint8_t* data, size_t size, const ImageKey* image,
                          int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil
    # Both from an open source.
    cdef void run(self, RowSource* source, const ImageInfo* info, const ImageKey* image,
                  const Target* target, Outcome* outcome) noexcept nogil
    cdef void run_views(self, RowSource* source, ImageInfo* info, const ImageKey* image,
                        int64_t draw, const Slot* slot, Outcome* outcome) noexcept nogil
    # The source that has the image open, to be finished; NULL after a failure.
    cdef RowSource* open_image(self, const uint8_t* data, size_t size, ImageInfo* info,
                               Outcome* outcome) noexcept nogil
    # The same for an image that may keep all its bits: `fitted` then follows.
    cdef RowSource* open_deep(self, const uint8_t* data, size_t size, ImageInfo* info,
                              Outcome* outcome) noexcept nogil
    # The source that gives what the steps need, opened again if that is 8 bits; NULL after a
    # failure, with nothing to be finished.
    cdef RowSource* fitted(self, RowSource* source, const uint8_t* data, size_t size,
                           ImageInfo* info, const Geometry* geometry,
                           Outcome* outcome) noexcept nogil
    cdef int finish(self, RowSource* source, Outcome* outcome) noexcept nogil
    cdef int draw(self, const ImageKey* image, int width, int height, const Target* target,
                  Geometry* geometry, Outcome* outcome) noexcept nogil
    cdef double decode_seconds(self) noexcept nogil
    cdef bint shares_form(self, RenderPlan plan)


# Take the header of a record off its data.
cdef int parse_header(Encoded* image, Outcome* outcome) noexcept nogil
