"""Images of an array in memory, handed out with their labels: the pixels as they are."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy

from recordio.header import IRHeader

from .source cimport Encoded, FETCH_OK, Scratch, Source


cdef class ImageArrays(Source):
    """Images of one size, each made when it is asked for: pixels behind a PNM header.

    The array is contiguous, with at least one image; an image has one label.

    Examples
    --------
    >>> import numpy as np
    >>> grey = np.full((2, 3, 4), 65, np.uint8)
    >>> arrays = ImageArrays(grey, np.array([5, 6], np.float32))
    >>> header, image = arrays.image(1)
    >>> header.label, header.id, image
    (6.0, 1, b'P5\\n4 3\\n255\\nAAAAAAAAAAAA')
    """

    cdef object arrays              # keep what the pointers below point to
    cdef const uint8_t* pixels
    cdef const float* labels
    cdef const char* head           # of PNM
    cdef size_t head_bytes
    cdef size_t image_bytes

    def __cinit__(self, images, labels):
        cdef const float[::1] label_table = labels
        cdef const uint8_t[::1] flat = memoryview(images).cast("B")
        if len(images) != len(labels):
            raise ValueError(f"there are {len(images)} images and {len(labels)} labels")
        kind = "P6" if images.ndim == 4 else "P5"
        head = f"{kind}\n{images.shape[2]} {images.shape[1]}\n255\n".encode()
        self.arrays = images, labels, head
        self.head, self.head_bytes = PyBytes_AS_STRING(head), len(head)
        self.count, self.image_bytes = len(images), images[:1].nbytes
        self.pixels, self.labels = NULL, NULL
        if self.count:
            self.pixels, self.labels = &flat[0], &label_table[0]

    cdef int fetch(self, int64_t number, Scratch* scratch, Encoded* image) noexcept nogil:
        cdef uint8_t* larger
        image.size = self.head_bytes + self.image_bytes
        if scratch.capacity < image.size:
            larger = <uint8_t*>realloc(scratch.bytes, image.size)
            if larger == NULL:
                return -1           # no memory
            scratch.bytes, scratch.capacity = larger, image.size
        memcpy(scratch.bytes, self.head, self.head_bytes)
        memcpy(scratch.bytes + self.head_bytes, self.pixels + number * self.image_bytes,
               self.image_bytes)
        image.data, image.has_header = scratch.bytes, False
        image.id, image.flag, image.labels = <uint64_t>number, 0, self.labels + number
        return FETCH_OK

    def image(self, number):
        """The header and the content of one image; see `Source.image`."""
        content = self.read(number)
        return IRHeader(0, float(self.arrays[1][number]), number, 0), content
