"""What all changes of pixels have in common, so that a renderer can run any number of them.

A change draws its own random numbers and keeps them until they are applied; it is called without
the GIL.  `changes` says which there are.
"""

from libc.string cimport memset


cdef class PixelChange:
    """Base class of what owns a change: made of a recipe."""

    def __cinit__(self, *args, **keywords):
        memset(&self.change, 0, sizeof(Change))
