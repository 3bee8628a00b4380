# build: small
"""Decode the JPEG images of a block on a device: nvJPEG's batched decoder, without the GIL.

A `BatchDecoder` has several decoders of the library, each with a stream of its own.  They take
turns, in calls as wide as the device has cores for JPEG; a rectangle or a scale of each image is
decoded where there are such cores, and whole images elsewhere.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

import os

__all__ = [
    "DRIVER", "SYMBOLS", "BatchDecoder", "BlockLayout", "DeviceDecodeError", "HeaderTest",
    "lay_out",
]

#: Functions of the library, without its prefix -> whether nothing works without it.
SYMBOLS = {nvjpeg_symbols[i].name.decode(): bool(nvjpeg_symbols[i].needed)
           for i in range(NVJPEG_SYMBOLS)}
#: Functions of the driver.
DRIVER = ("cuStreamSynchronize", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2")
#: Names of the statuses of nvJPEG.
STATUSES = (
    "SUCCESS", "NOT_INITIALIZED", "INVALID_PARAMETER", "BAD_JPEG", "JPEG_NOT_SUPPORTED",
    "ALLOCATOR_FAILURE", "EXECUTION_FAILED", "ARCH_MISMATCH", "INTERNAL_ERROR",
    "IMPLEMENTATION_NOT_SUPPORTED", "INCOMPLETE_BITSTREAM")
#: What can be done about some of them.
REMEDIES = {
    "NOT_INITIALIZED": "the driver is older than the library: install that of its CUDA version",
    "ALLOCATOR_FAILURE": "the device has no memory left: make batch_size smaller",
    "ARCH_MISMATCH": 'this device has no decoder for JPEG: use decode_on="host"',
}


class DeviceDecodeError(RuntimeError):
    """A function of nvJPEG or of the driver failed, for a reason that is not in an image."""

    def __init__(self, function, status):
        name = f"status {status}"
        if function.startswith("nvjpeg") and 0 <= status < len(STATUSES):
            name = STATUSES[status]
        super().__init__(
            f"{function} failed: {name}; "
            + REMEDIES.get(name, 'decode_on="host" does without the device'))
        self.function, self.status = function, status


class BlockLayout:
    """Where the parts of a block lie, in bytes, and how many images there are of each kind.

    `tail` is a slice of the block, for the device; `rows` begin so many bytes behind its start;
    `pixels` are needed on the device; `most` are pixels of the largest result of every step.
    """

    def __init__(self, tail, rows, pixels, most, jpegs, made):
        self.tail, self.rows, self.pixels, self.most = tail, rows, pixels, most
        self.jpegs, self.made = jpegs, made


def lay_out(uint8_t[::1] block not None, int channels, bint crops):
    """Say where everything in a block will lie on the device; once for each block."""
    cdef block_layout layout
    with nogil:
        block_lay_out(<device_block*>&block[0], channels, crops, &layout)
    most = [layout.most[i] for i in range(KERNEL_STEPS) if layout.most[i]]
    return BlockLayout(slice(layout.tail, layout.tail + layout.tail_size), layout.rows,
                       layout.pixels, most, layout.jpegs, layout.made)


# A garbage collector must leave what is closed.
@cython.no_gc_clear
cdef class BatchDecoder:
    """Decoders of nvJPEG, one for each of some CUDA streams, given by their addresses.

    `functions` are addresses by the names in `SYMBOLS`, and `driver` those of `DRIVER`; `context`
    is that of the device, and current.  A call has `images_per_call` images, by default as many as
    the device decodes at once.
    """

    def __init__(self, functions, driver, size_t context, streams, *, int channels=3,
                 int images_per_call=0):
        cdef void* addresses[16]
        cdef int i, status, count = len(streams)
        cdef size_t[3] own = [driver[name] for name in DRIVER]
        missing = [name for name, needed in SYMBOLS.items() if needed and not functions.get(name)]
        if missing:
            raise ImportError(
                f"the library has no nvjpeg{missing[0]}: install nvidia-nvjpeg, 12 or newer")
        if not 0 < count <= 16:
            raise ValueError(f"{count} streams: from 1 to 16 are possible")
        self.owner, self.tests = os.getpid(), []
        for i, name in enumerate(SYMBOLS):
            nvjpeg_set(&self.decoder.functions, i, functions.get(name) or 0)
        memcpy(&self.decoder.functions.synchronize, &own[0], sizeof(own[0]))
        memcpy(&self.decoder.functions.push, &own[1], sizeof(own[1]))
        memcpy(&self.decoder.functions.pop, &own[2], sizeof(own[2]))
        self.decoder.context = <void*>context
        for i in range(count):
            addresses[i] = <void*><size_t>streams[i]
        with nogil:
            status = nvjpeg_open(&self.decoder, channels, images_per_call, count, addresses)
        self._check(status)

    def __dealloc__(self):
        self.close()

    def close(self):
        """Give all memory of the library back; nobody may be using it.  Idempotent."""
        if self.decoder.handle == NULL or self.owner != os.getpid():
            return
        for stream, params in self.tests:
            nvjpeg_close_test(&self.decoder, <void*><size_t>stream, <void*><size_t>params)
        self.tests = []
        with nogil:
            nvjpeg_close(&self.decoder)

    @property
    def hardware(self):
        """True if the device has engines for JPEG, which decode rectangles."""
        return self.decoder.hardware

    @property
    def scales(self):
        """True if images can be decoded at a half, a quarter and an eighth."""
        return self.decoder.scales

    @property
    def smooth(self):
        """True if chroma is interpolated, as it is from version 12.1 of the library on."""
        return self.decoder.smooth

    @property
    def images_per_call(self):
        """Images of one call of the library."""
        return self.decoder.width

    def decode(self, uint8_t[::1] block not None, size_t pixels):
        """Start to decode the images of a block, which is laid out, to `pixels` on the device.

        Return the slots of images that the library refuses.  The streams are busy with the rest.
        """
        cdef device_block* table = <device_block*>&block[0]
        cdef int status
        cdef int64_t i
        if self.decoder.handle == NULL:
            raise ValueError("the decoder is closed")
        with nogil:
            status = nvjpeg_decode(&self.decoder, table, <uint8_t*>pixels)
        self._check(status)
        return [i for i in range(table.slots) if block_rows(table)[i].kind == ROW_REFUSED]

    def _check(self, int status):
        if status < 0:
            raise MemoryError("no memory for the decoders of images")
        if status:
            raise DeviceDecodeError(self.decoder.failed.decode(), status)


cdef class HeaderTest:
    """Looks at headers of images, in one thread, for a decoder that is closed after it."""

    def __cinit__(self, BatchDecoder of not None):
        cdef const char* failed
        cdef int status
        self.of = of
        status = nvjpeg_open_test(&of.decoder, &self.stream, &self.params, &failed)
        of.tests.append((<size_t>self.stream, <size_t>self.params))
        if status:
            raise DeviceDecodeError(failed.decode(), status)

    cdef bint supports(self, const uint8_t* data, size_t size,
                       const device_row* row) noexcept nogil:
        return nvjpeg_supports(&self.of.decoder, self.stream, self.params, data, size, row)
