from iterators.images.augment.geometry cimport Target


# Makes the arrays of batches, and says where in them every slot lies.
cdef class BatchMemory:
    cdef readonly list plans        # of an image, or of each of its views
    cdef readonly Py_ssize_t num_views
    cdef readonly Py_ssize_t num_arrays     # of images in a batch, views or parts of patches
    cdef list pools                 # of memory for each of them

    # The arrays of a batch, all of them zero if there are fewer records than slots, and the targets
    # of its slots; `length` is the number of patches of a slot.
    cdef object make(self, Py_ssize_t slots, sizes, Py_ssize_t records, Py_ssize_t length,
                     Target* targets)
    # The targets of a slot of a batch; it gets the size, if one is given.
    cdef int find(self, data, Py_ssize_t slot, size, Target* targets) except -1
    # Patches of all slots, their positions, and which of them there are.
    cdef object make_patches(self, Py_ssize_t slots, Py_ssize_t records, Py_ssize_t length,
                             Target* targets)
    cdef int aim_patches(self, made, Py_ssize_t first, Py_ssize_t count, Target* targets) except -1
    # An array for every slot, one behind the other.
    cdef object make_separate(self, Py_ssize_t slots, sizes, bint clear, Target* targets)
