# build: small
"""One encoded image into an array: decoded, cut, turned, resized and laid out, without the GIL.

The rows come from the first source of `CODECS` that takes the image; the last one is that of
`general`, which decodes the whole image by a library for Python.  Every thread keeps the decoders
that it made.  Arguments are taken as `decode` has checked them.
"""

from threading import local

import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_SIMPLE, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, getenv, malloc
from libc.string cimport memcpy, memset

from recordio.counter cimport seconds_add
from recordio.formats.row_source cimport (
    SOURCE_FAILED, SOURCE_OPEN, SOURCE_OTHER, ImageInfo, Pixels, Rectangle, RowDecoder, Rows,
    RowSource, open_first, read_pixels,
)
from recordio.formats.status cimport RENDER_IMAGE, RENDER_MEMORY, Outcome, outcome_fail
cimport recordio.kernels.resample as resample
from recordio.kernels.orient cimport orient_exchanges_sides, orient_image, orient_rectangle
from recordio.kernels.pixel cimport PIXEL_SLACK
from recordio.sync cimport sync_now

from recordio.errors import ImageDecodeError, RecordIOError
from recordio.formats import general
from recordio.formats.image_header import read_header
from recordio.formats.table import FORMATS

__all__ = ["CODECS", "GeneralRows", "SpecialRows", "decode_pixels"]

# Of the source of everything else.
cdef struct GeneralState:
    Pixels pixels           # first: what gives the rows takes the state for this
    void* owner


cdef class GeneralRows(RowDecoder):
    """A decoder of any image; see `RowDecoder`."""

    cdef GeneralState state
    cdef int channels
    cdef dict settings          # limits, and whether images are turned upright
    cdef object decode
    cdef object decoded         # alive while its pixels are read
    cdef readonly object error  # of the last image, whose outcome has no room for all of it

    def __cinit__(self, int channels, **settings):
        self.channels, self.settings, self.decode = channels, settings, general.decode_other
        self.state.owner = <void*>self
        self.state.pixels.pixel_size = channels
        read_pixels(&self.source, &self.state.pixels)
        self.source.open, self.source.finish = open_any, finish_any

    def forget(self):
        """Let the error go, whoever has raised it."""
        self.error = None


cdef class SpecialRows(GeneralRows):
    """A decoder of the images that somebody wants in a special way; it leaves all others."""

    def __cinit__(self, int channels, **settings):
        self.decode = general.decode_special


cdef int open_any(RowSource* source, const uint8_t* data, size_t size, ImageInfo* info,
                  Outcome* outcome) noexcept with gil:
    cdef GeneralState* state = <GeneralState*>source.state
    cdef GeneralRows decoder = <GeneralRows>state.owner
    cdef const uint8_t[:, ::1] view
    cdef double begin = sync_now()
    try:
        # A copy: the span may be a worker's scratch memory, and Python code can keep it.
        copy = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
        decoder.error = None
        pixels = decoder.decode(copy, decoder.channels, **decoder.settings)
        if pixels is None:
            return SOURCE_OTHER
        if pixels.dtype not in (np.uint8, np.uint16):
            pixels = general.as_type(pixels, np.dtype("float32"))
        if not decoder.settings.get("deep"):
            info.cut = (read_header(copy).bits or 8) > 8
        height, width, _ = pixels.shape
        view = decoder.decoded = pixels.reshape(height, -1).view(np.uint8)
        info.pixel_size = decoder.channels * pixels.itemsize
    except MemoryError as error:
        decoder.error = error.with_traceback(None)
        outcome_fail(outcome, RENDER_MEMORY, b"")
        return SOURCE_FAILED
    except Exception as error:
        decoder.error = error.with_traceback(None)
        reason = error.reason if isinstance(error, RecordIOError) else repr(error)
        outcome_fail(outcome, RENDER_IMAGE, reason.encode("utf-8", "replace"))
        return SOURCE_FAILED
    finally:
        seconds_add(&source.seconds, sync_now() - begin)
    state.pixels.first, state.pixels.stride = &view[0, 0], view.shape[1]
    state.pixels.pixel_size = info.pixel_size
    info.width, info.height = width, height
    info.in_memory = True
    return SOURCE_OPEN


cdef bint finish_any(RowSource* source) noexcept with gil:
    (<GeneralRows>(<GeneralState*>source.state).owner).decoded = None
    return True


#: The first one that takes an image has it; the last one takes everything.
CODECS = (*dict.fromkeys(row.rows for row in FORMATS if row.rows is not None), GeneralRows)


cdef enum:
    MAX_SOURCES = 8
    MAX_ENGINES = 8         # of a thread: one for each form and limits that it uses


cdef class _Engine:
    """Sources of one form of pixels, and a resampler; for one thread at a time."""

    cdef list decoders
    cdef RowSource* sources[MAX_SOURCES]
    cdef int num_sources
    cdef resample.resampler* resampler

    def __cinit__(self, int channels, bint upright, dict limits, dict wishes):
        cdef RowDecoder decoder
        self.resampler = NULL
        if len(CODECS) >= MAX_SOURCES:
            raise ValueError(f"{len(CODECS)} codecs: fewer than {MAX_SOURCES} are possible")
        self.decoders = [codec(channels, upright=upright, **limits) for codec in CODECS]
        if wishes:
            self.decoders.insert(0, SpecialRows(channels, upright=upright, **wishes, **limits))
        for decoder in self.decoders:
            self.sources[self.num_sources] = &decoder.source
            self.num_sources += 1

    def __dealloc__(self):
        resample.resampler_free(self.resampler)

    cdef int begin_resampler(self) except -1:
        if self.resampler == NULL:
            self.resampler = resample.resampler_new()
            if self.resampler == NULL:
                raise MemoryError("no memory for a resampler")
        return 0

    def raise_outcome(self, int status, message):
        """Raise the error of the last image."""
        for decoder in self.decoders:
            error = getattr(decoder, "error", None)
            if error is not None:
                decoder.forget()
                raise error
        if status == RENDER_MEMORY:
            raise MemoryError(message or "no memory to decode an image")
        raise ImageDecodeError(message)


# Where the pixels go: interleaved, or a plane for each channel.
cdef struct Target:
    uint8_t* first
    ptrdiff_t stride        # from row to row
    ptrdiff_t plane         # from channel to channel; 0: they are interleaved


# An image on its way, in pixels of the upright image.
cdef struct Job:
    Rectangle region        # in full size
    Rectangle scaled        # the same at 1/denominator; the result where `resizes` is 0
    int denominator         # at which rows are decoded
    bint resizes
    resample.resample_axis across, down
    int channels
    int width, height       # of the result


_thread = local()


def decode_pixels(data, int channels, bint upright, dict limits, region, int scale, size,
                  bint planar, bint strict, out, background=None):
    """Decode an image to 8 bits: a region of it, at 1/scale or at a size, into `out` if given."""
    cdef Py_buffer content, memory
    cdef _Engine engine
    cdef RowSource* source
    cdef ImageInfo info
    cdef Outcome outcome
    cdef Job job
    cdef Target target
    cdef bint sound
    engines = _thread.__dict__
    wishes = general.wishes(background, strict)
    key = (channels, upright, tuple(limits.values()), tuple(wishes.items()),
           getenv(b"ITERATORS_JPEG") != NULL)
    # Taken out while it is in use: a finalizer in this thread may come here as well.
    engine = engines.pop(key, None)
    if engine is None:
        engine = _Engine(channels, upright, limits, wishes)
    outcome.status = outcome.message[0] = 0
    PyObject_GetBuffer(data, &content, PyBUF_SIMPLE)
    try:
        if content.len == 0:
            raise ImageDecodeError("not an image: there are no bytes")
        with nogil:
            source = open_first(engine.sources, engine.num_sources, <const uint8_t*>content.buf,
                                <size_t>content.len, &info, &outcome)
        if source == NULL:
            engine.raise_outcome(outcome.status, outcome.message.decode("utf-8", "replace"))
        try:
            job.channels = channels
            _plan(&job, &info, region, scale, size)
            if job.resizes:
                engine.begin_resampler()
            shape = (channels, job.height, job.width) if planar else (
                job.height, job.width, channels)
            result = np.empty(shape, np.uint8) if out is None else out
            PyObject_GetBuffer(result, &memory, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)
            try:
                _aim(&target, &memory, shape, planar)
                with nogil:
                    _run(engine, source, &info, &job, &target, &outcome)
            finally:
                PyBuffer_Release(&memory)
        finally:
            with nogil:
                sound = source.finish(source)
        if outcome.status:
            engine.raise_outcome(outcome.status, outcome.message.decode("utf-8", "replace"))
        if strict and not sound:
            raise ImageDecodeError(
                "the data of the JPEG image is damaged: the decoder gives pixels with warnings, "
                "which strict=True refuses")
        return result
    finally:
        PyBuffer_Release(&content)
        if len(engines) >= MAX_ENGINES:
            engines.clear()
        engines[key] = engine


cdef int _plan(Job* job, const ImageInfo* info, region, int scale, size) except -1:
    """Find what is decoded and what the result measures."""
    cdef int width = info.width, height = info.height
    cdef Rectangle* cut = &job.region
    cut.x = cut.y = 0
    cut.width, cut.height = width, height
    if region is not None:
        x, y, w, h = region
        if x < 0 or y < 0 or w < 1 or h < 1 or x + w > width or y + h > height:
            raise ValueError(
                f"the region {tuple(region)} lies outside the image of {width} x {height} pixels: "
                "it is (x, y, width, height)")
        cut.x, cut.y, cut.width, cut.height = x, y, w, h
    job.denominator = 1
    job.resizes = False
    if size is not None:
        job.width, job.height = size
        job.resizes = job.width != cut.width or job.height != cut.height
        if job.resizes and info.scales and (
                info.orientation == 1 or (width % 8 == 0 and height % 8 == 0)):
            # The scaled grids of a stored and an upright image agree where no pixel is left over.
            job.denominator = resample.resample_denominator(
                resample.RESAMPLE_AREA, cut.width, job.width, cut.height, job.height)
        _axis(&job.across, cut.x, cut.width, job.width, job.denominator)
        _axis(&job.down, cut.y, cut.height, job.height, job.denominator)
    elif scale > 1 and not info.scales:
        job.resizes = True
        _window(&job.across, cut.x, cut.width, width, scale)
        _window(&job.down, cut.y, cut.height, height, scale)
        job.width, job.height = job.across.count, job.down.count
        cut.x = cut.y = 0
        cut.width, cut.height = width, height
    else:
        job.denominator = scale
    job.scaled.x, job.scaled.y = cut.x // job.denominator, cut.y // job.denominator
    job.scaled.width = _above(cut.x + cut.width, job.denominator) - job.scaled.x
    job.scaled.height = _above(cut.y + cut.height, job.denominator) - job.scaled.y
    if size is None and not job.resizes:
        job.width, job.height = job.scaled.width, job.scaled.height
    return 0


cdef int _above(int length, int denominator) noexcept nogil:
    return (length + denominator - 1) // denominator


cdef void _axis(resample.resample_axis* axis, int origin, int source, int target,
                int denominator) noexcept nogil:
    """All of a region, to a size."""
    axis.source, axis.target = source, target
    axis.begin, axis.count = 0, target
    axis.origin, axis.denominator, axis.stored = origin, denominator, origin + source
    axis.low = axis.high = 0


cdef void _window(resample.resample_axis* axis, int begin, int length, int source,
                  int scale) noexcept nogil:
    """A part of an image that becomes smaller as a whole."""
    _axis(axis, 0, source, _above(source, scale), 1)
    axis.begin = begin // scale
    axis.count = _above(begin + length, scale) - axis.begin


cdef int _aim(Target* target, const Py_buffer* memory, tuple shape, bint planar) except -1:
    """Check that the memory is as it has to be, and note where its rows are."""
    cdef int i
    if memory.format == NULL or memory.format[0] != b"B" or memory.itemsize != 1:
        raise ValueError("out must be an array of uint8")
    own_shape = tuple([memory.shape[i] for i in range(memory.ndim)])
    if own_shape != shape:
        raise ValueError(f"out has the shape {own_shape}, and the image has {shape}")
    cdef Py_ssize_t height = shape[1 if planar else 0], width = shape[2 if planar else 1]
    cdef Py_ssize_t channels = shape[0 if planar else 2]
    cdef Py_ssize_t stride = memory.strides[1 if planar else 0], plane = memory.strides[0]
    cdef Py_ssize_t row = width if planar else width * channels
    cdef bint packed = True
    if planar:
        packed = width == 1 or memory.strides[2] == 1
        if channels > 1:
            packed = packed and plane >= (height - 1) * stride + row
    else:
        packed = ((channels == 1 or memory.strides[2] == 1)
                  and (width == 1 or memory.strides[1] == channels))
    if not packed or (height > 1 and stride < row):
        raise ValueError("the pixels of a row of out must follow each other, and rows not overlap")
    target.first, target.stride = <uint8_t*>memory.buf, stride
    target.plane = (plane if channels > 1 else 0) if planar else 0
    return 0


cdef int _run(_Engine engine, RowSource* source, const ImageInfo* info, const Job* job,
              const Target* target, Outcome* outcome) noexcept nogil:
    """Bring the image from the opened source to the target; not 0 after a failure."""
    cdef Target packed
    cdef Pixels pixels
    cdef RowSource memory
    cdef uint8_t* turned = NULL
    cdef uint8_t* resized = NULL
    cdef int channels = job.channels
    if info.orientation != 1:
        if job.resizes or target.plane:
            turned = _memory(job.scaled.width, job.scaled.height, channels, outcome)
            if turned == NULL:
                return outcome.status
            packed.first, packed.stride = turned, <ptrdiff_t>job.scaled.width * channels
        else:
            packed = target[0]
        if _turn(source, info, job, &packed, outcome) or turned == NULL:
            free(turned)
            return outcome.status
        memset(&memory, 0, sizeof(RowSource))
        pixels.first, pixels.stride, pixels.pixel_size = packed.first, packed.stride, channels
        pixels.x, pixels.y = job.scaled.x, job.scaled.y
        pixels.width, pixels.height = job.scaled.width, job.scaled.height
        read_pixels(&memory, &pixels)
        source = &memory
    if not job.resizes:
        _copy(source, job.denominator, &job.scaled, channels, target, outcome)
    elif target.plane:
        resized = _memory(job.width, job.height, channels, outcome)
        if resized != NULL:
            packed.first, packed.stride = resized, <ptrdiff_t>job.width * channels
            if _resize(engine, source, job, &packed, outcome) == 0:
                _place(resized, packed.stride, job.height, job.width, channels, target, 0)
    else:
        _resize(engine, source, job, target, outcome)
    free(turned)
    free(resized)
    return outcome.status


cdef uint8_t* _memory(int width, int height, int channels, Outcome* outcome) noexcept nogil:
    """Take memory for pixels; NULL after a failure."""
    cdef void* pixels = malloc(<size_t>width * <size_t>height * <size_t>channels + PIXEL_SLACK)
    if pixels == NULL:
        outcome_fail(outcome, RENDER_MEMORY, b"no memory for the pixels of an image")
    return <uint8_t*>pixels


cdef int _turn(RowSource* source, const ImageInfo* info, const Job* job, const Target* target,
               Outcome* outcome) noexcept nogil:
    """Decode what the rectangle is made of as it is stored, and turn it upright."""
    cdef Rectangle stored = job.scaled
    cdef Target packed
    cdef int width = _above(info.width, job.denominator)
    cdef int height = _above(info.height, job.denominator)
    if orient_exchanges_sides(info.orientation):
        width, height = height, width
    orient_rectangle(width, height, info.orientation, &stored.x, &stored.y, &stored.width,
                     &stored.height)
    packed.first = _memory(stored.width, stored.height, job.channels, outcome)
    if packed.first == NULL:
        return outcome.status
    packed.stride, packed.plane = <ptrdiff_t>stored.width * job.channels, 0
    if _copy(source, job.denominator, &stored, job.channels, &packed, outcome) == 0:
        orient_image(packed.first, packed.stride, stored.width, stored.height, job.channels,
                     info.orientation, target.first, target.stride)
    free(packed.first)
    return outcome.status


cdef int _copy(RowSource* source, int denominator, const Rectangle* area, int channels,
               const Target* target, Outcome* outcome) noexcept nogil:
    """Copy the rows of a rectangle to the target."""
    cdef Rows rows
    cdef int y = 0
    cdef bint failed
    source.into = target.first if target.plane == 0 else NULL
    source.into_stride = target.stride
    failed = source.start(source, denominator, area, outcome) != 0
    source.into = NULL
    if failed:
        return outcome.status
    while y < area.height:
        if source.next(source, &rows, outcome):
            return outcome.status
        _place(rows.first, rows.stride, rows.count, area.width, channels, target, y)
        y += rows.count
    return 0


cdef int _resize(_Engine engine, RowSource* source, const Job* job, const Target* target,
                 Outcome* outcome) noexcept nogil:
    """Push the rows through the resampler, which writes to a target that is interleaved."""
    cdef Rectangle area
    cdef Rows rows
    cdef int y = 0, i
    if resample.resampler_begin(engine.resampler, resample.RESAMPLE_AREA, &job.across, &job.down,
                                job.channels, target.first, target.stride):
        return outcome_fail(outcome, RENDER_MEMORY, b"no memory to resize an image")
    resample.resampler_source(engine.resampler, &area.x, &area.y, &area.width,
                              &area.height)
    if source.start(source, job.denominator, &area, outcome):
        return outcome.status
    while y < area.height:
        if source.next(source, &rows, outcome):
            return outcome.status
        for i in range(rows.count):
            resample.resampler_push(engine.resampler, rows.first + i * rows.stride)
        y += rows.count
    return 0


cdef void _place(const uint8_t* first, ptrdiff_t stride, int count, int width, int channels,
                 const Target* target, int y) noexcept nogil:
    """Write rows where they belong: row `y` of the target, and those below it."""
    cdef int row, channel, x
    cdef const uint8_t* pixel
    cdef uint8_t* to
    for row in range(count):
        to = target.first + (y + row) * target.stride
        if target.plane == 0:
            if to != first + row * stride:
                memcpy(to, first + row * stride, <size_t>width * channels)
            continue
        for channel in range(channels):
            pixel = first + row * stride + channel
            for x in range(width):
                to[x] = pixel[x * channels]
            to += target.plane
