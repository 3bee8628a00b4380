"""The base of all changes of pixels, so that a renderer can run any number of them.

A change draws its own random numbers and keeps them until they are applied; it is called without
the GIL.  `changes` lists them all.
"""

from libc.string cimport memset


cdef class PixelChange:
    """Base class of the owner of a change: made of a recipe."""

    def __cinit__(self, *args, **keywords):
        memset(&self.change, 0, sizeof(Change))
