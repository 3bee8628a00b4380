from libc.stdint cimport uint8_t

from iterators.images.augment.draw cimport ImageKey
from recordio.kernels.normalise cimport normalise_recipe
from recordio.kernels.transform cimport transform_map

# Takes one map by which the pixels of a finished image moved.
ctypedef void (*take_map)(void* path, const transform_map* how) noexcept nogil


# One kind of change of the pixels of an image, between its last step and its normalisation.
cdef struct Change:
    void* state             # of the functions below
    bint finished           # made to the finished image, wherever the geometry has the others made
    # Say how large that image will be, before `draw`; NULL where nothing drawn depends on it.
    void (*expect)(void* state, int width, int height) noexcept nogil
    # Draw what happens to an image: whether any pixel changes.  What acts on normalised values
    # changes the normalisation instead.
    bint (*draw)(void* state, const ImageKey* image, normalise_recipe* normalise) noexcept nogil
    # Change packed pixels as was drawn: 0, or -1 if there was no memory.
    int (*apply)(void* state, uint8_t* pixels, int channels, int width, int height) noexcept nogil
    # Tell how the pixels of an image of that size move, one map after the other, for fields; NULL
    # where all stay.
    void (*follow)(void* state, int width, int height, take_map take, void* path) noexcept nogil
    bint mixes              # several copies of the image that may have moved differently


# Owner of a change and its state; the base of what `changes` lists.
cdef class PixelChange:
    cdef Change change
