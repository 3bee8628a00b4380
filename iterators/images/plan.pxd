from libc.stdint cimport uint32_t, uint64_t, uint8_t

from iterators.images.augment.geometry cimport Target
from recordio.formats.status cimport Outcome
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
    cdef Py_ssize_t set_target(self, Py_ssize_t samples, int height, int width, char* data,
                               Target* target) noexcept nogil


# The labels of one sample, from its record or from a list by id.
cdef class LabelReader:
    cdef Py_ssize_t width           # values of a row
    cdef object arrays              # keep what the pointers point to
    cdef const uint64_t* ids        # of the list, ascending
    cdef Py_ssize_t num_listed      # -1 without a list
    cdef const float* values
    # What becomes of a class label, by a `LabelChange`.
    cdef bint absent                # there are none: -1 for all
    cdef bint changes
    cdef object table               # keeps what the pointers point to
    cdef Py_ssize_t num_keys        # of a table; -1 without
    cdef const float* keys          # ascending
    cdef const float* becomes
    cdef float classes              # without a table: known labels are below
    cdef float shift

    # Fill a row from the `flag` labels of the record, of float32 at any address; 0: a single one.
    cdef int read(self, const void* labels, uint32_t flag, float* row,
                  Outcome* outcome) noexcept nogil
    # Change the class label at a pointer; what is wrong with an unknown one is in the outcome.
    cdef int change(self, float* label, Outcome* outcome) noexcept nogil
    # Position of the record's id in the list; -1 after a failure.
    cdef Py_ssize_t find_listed(self, Outcome* outcome) noexcept nogil
