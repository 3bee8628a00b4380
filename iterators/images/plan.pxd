from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint64_t

from iterators.images.augment.geometry cimport GeometryRecipe
from iterators.images.augment.jitter cimport JitterRecipe
from iterators.images.codecs.jpeg.jpeg cimport jpeg_limits
from iterators.images.kernels.normalise cimport normalise_recipe


# Everything that is the same for all samples of a provider; read by all renderers.
cdef class RenderPlan:
    cdef GeometryRecipe geometry
    cdef JitterRecipe jitter
    cdef uint8_t fill[4]
    cdef bint scaled_decode
    cdef normalise_recipe normalise
    cdef jpeg_limits limits
    cdef uint64_t key
    cdef int channels
    cdef int width
    cdef int height
    cdef readonly Py_ssize_t label_width
    cdef Py_ssize_t item_size
    # Distance of neighbours in elements.
    cdef ptrdiff_t sample_stride
    cdef ptrdiff_t channel_stride
    cdef ptrdiff_t row_stride
    cdef ptrdiff_t pixel_stride
    cdef readonly object recipe
    cdef readonly object dtype
    cdef readonly str layout
    cdef readonly object mean_image
    # Labels that replace those of the records: ids ascending, and a row of label_width for each.
    cdef object label_arrays
    cdef const uint64_t* label_ids
    cdef const float* label_table
    cdef Py_ssize_t num_listed
