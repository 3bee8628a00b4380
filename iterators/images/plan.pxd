from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint64_t

from recordio.kernels.normalise cimport normalise_recipe


# Everything that is the same for all samples of a provider; read by all renderers.
cdef class RenderPlan:
    cdef uint8_t fill[4]
    cdef bint scaled_decode
    cdef double reducing_gap        # of Pillow's draft; 0 for none
    cdef normalise_recipe normalise
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
    cdef size_t largest             # bytes of an image on the way, at most
    cdef readonly object recipe
    cdef readonly object dtype
    cdef readonly str layout
    cdef readonly object mean_image
    cdef readonly object labels
    cdef readonly object change
    cdef readonly dict limits
    cdef readonly tuple views       # plans of what else is made of an image, decoded once
