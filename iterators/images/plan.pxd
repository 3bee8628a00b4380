from libc.stdint cimport uint8_t, uint64_t

from iterators.images.augment.geometry cimport Target
from recordio.kernels.normalise cimport normalise_recipe


# Everything that is the same for all samples of a provider; read by all renderers.
cdef class RenderPlan:
    cdef uint8_t fill[4]
    cdef bint scaled_decode
    cdef double reducing_gap        # of Pillow's draft; 0 for none
    cdef normalise_recipe normalise
    cdef uint64_t key
    cdef int channels
    cdef int width                  # of an image, if nothing else is said of it
    cdef int height
    cdef int most_width             # of all images; a writer has room for a row of it
    cdef int most_height
    cdef readonly Py_ssize_t label_width
    cdef Py_ssize_t item_size
    cdef readonly int patch         # side of the patches that images are cut into; 0 for none
    cdef char axes[4]               # the layout, "NCHW" for example
    cdef size_t largest             # bytes of an image on the way, at most
    cdef readonly tuple cuts        # what cuts images to 8 bits; nothing does if empty
    cdef readonly object recipe
    cdef readonly object dtype
    cdef readonly str layout
    cdef readonly object mean_image
    cdef readonly object labels
    cdef readonly object change
    cdef readonly dict limits
    cdef readonly tuple views       # plans of what else is made of an image, decoded once

    # Describe the targets in an array of so many samples of one size, the first of which is at
    # `data`; the bytes from one to the next.
    cdef Py_ssize_t aim(self, Py_ssize_t samples, int height, int width, char* data,
                        Target* target) noexcept nogil
