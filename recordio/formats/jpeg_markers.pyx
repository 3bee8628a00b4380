"""Markers of JPEG files: size, EXIF orientation, segments, and the limits on scans.

Only markers are read, and nothing is decoded.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from recordio.errors import ImageDecodeError

__all__ = [
    "DEFAULT_LIMITS",
    "DEFAULT_MAX_PIXELS",
    "check_limits",
    "exif_orientation",
    "is_jpeg_whole",
    "jpeg_facts",
    "jpeg_sizes",
    "segments",
]

cdef extern from "recordio/formats/jpeg_segments.h" nogil:
    ctypedef struct jpeg_segment:
        int marker
        const uint8_t* data
        size_t size
        bint whole
        bint gap

    ctypedef struct jpeg_outline:
        int frame
        int width
        int height
        int components
        int bits
        int orientation

    jpeg_segment next_segment(const uint8_t* data, size_t size, size_t* at) noexcept
    int read_jpeg_outline(const uint8_t* data, size_t size, jpeg_outline* outline) noexcept
    int read_exif_orientation(const uint8_t* data, size_t size) noexcept

cdef extern from "recordio/formats/jpeg_limits.h" nogil:
    enum:
        JPEG_MAX_PIXELS
    const char* jpeg_limit_names[JPEG_NUM_LIMITS]
    const jpeg_limits jpeg_default_limits

    cdef enum jpeg_work:
        JPEG_WORK_OK

    jpeg_work count_scans(const uint8_t* data, size_t size, const jpeg_limits* limits, int width,
                          int height) noexcept
    void explain_work(jpeg_work work, const jpeg_limits* limits, int width, int height,
                      char* message, size_t size) noexcept
    void explain_pixels(const jpeg_limits* limits, int width, int height, char* message,
                        size_t size) noexcept


cdef enum:
    MESSAGE_SIZE = 256
    FIRST_TURNED = 5        # orientations from here on exchange width and height


DEFAULT_LIMITS = {
    jpeg_limit_names[i].decode(): jpeg_default_limits.most[i] for i in range(JPEG_NUM_LIMITS)
}
#: More pixels are refused where nothing else is asked for, whatever the format.
DEFAULT_MAX_PIXELS = DEFAULT_LIMITS["max_pixels"]


cdef int load_limits(jpeg_limits* target, dict limits) except -1:
    for name in limits:
        if name not in DEFAULT_LIMITS:
            raise TypeError(f"{name!r} is no limit: {', '.join(DEFAULT_LIMITS)}")
    for i, (name, default) in enumerate(DEFAULT_LIMITS.items()):
        target.most[i] = limits.get(name, default)
    return 0


def check_limits(data, **limits):
    """Refuse a JPEG image that takes too long to decode, and let other formats through."""
    cdef const uint8_t[::1] view = _jpeg_of(data)
    cdef jpeg_limits most
    cdef jpeg_outline outline
    cdef jpeg_work work
    cdef char message[MESSAGE_SIZE]
    load_limits(&most, limits)
    if view is None:
        return
    with nogil:
        read_jpeg_outline(&view[0], view.shape[0], &outline)
    if <int64_t>outline.width * outline.height > most.most[JPEG_MAX_PIXELS]:
        explain_pixels(&most, outline.width, outline.height, message, MESSAGE_SIZE)
        raise ImageDecodeError("the JPEG image is too large: " + message.decode("ascii"))
    with nogil:
        work = count_scans(&view[0], view.shape[0], &most, outline.width, outline.height)
    if work != JPEG_WORK_OK:
        explain_work(work, &most, outline.width, outline.height, message, MESSAGE_SIZE)
        raise ImageDecodeError("the JPEG image is suspicious: " + message.decode("ascii"))


def jpeg_facts(data):
    """Return width, height, orientation, bits, channels, and if progressive; None without a frame.

    The first frame header counts.
    """
    cdef const uint8_t[::1] view = _jpeg_of(data)
    cdef jpeg_outline outline
    if view is None:
        return None
    with nogil:
        read_jpeg_outline(&view[0], view.shape[0], &outline)
    if outline.frame == 0:
        return None
    return (outline.width, outline.height, outline.orientation or 1, outline.bits,
            outline.components, outline.frame & 3 == 2)


def jpeg_sizes(const uint8_t[:, ::1] heads not None, const int64_t[::1] begins not None,
               const int64_t[::1] ends not None, uint32_t[:, ::1] sizes not None):
    """Read width and height, upright, of the JPEG images that begin in some rows of bytes.

    The image of row i lies in bytes ``begins[i]`` to ``ends[i]``, of which the row may have the
    first ones only.  Returns True for the rows whose sizes are known now; of others too little is
    there, or they hold no JPEG image.
    """
    cdef Py_ssize_t row, begin, end, count = heads.shape[0]
    cdef jpeg_outline outline
    cdef const uint8_t* data
    if not count == begins.shape[0] == ends.shape[0] == sizes.shape[0] or sizes.shape[1] != 2:
        raise ValueError("a row needs a begin, an end, and room for two numbers")
    flags = np.zeros(count, np.uint8)
    cdef uint8_t[::1] done = flags
    with nogil:
        for row in range(count):
            begin, end = begins[row], min(ends[row], heads.shape[1])
            if begin < 0 or end - begin < 3:
                continue
            data = &heads[row, begin]
            if not (data[0] == 0xFF and data[1] == 0xD8 and data[2] == 0xFF):
                continue
            if not read_jpeg_outline(data, end - begin, &outline) or outline.frame == 0:
                continue
            if outline.width == 0 or outline.height == 0:
                continue
            if outline.orientation >= FIRST_TURNED:
                outline.width, outline.height = outline.height, outline.width
            sizes[row, 0], sizes[row, 1] = outline.width, outline.height
            done[row] = 1
    return flags.view(bool)


def exif_orientation(data):
    r"""Return the orientation in EXIF data or a TIFF file: 1 to 8, or 0 if it says none.

    >>> entry = b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"
    >>> exif_orientation(b"Exif\0\0II*\0\x08\0\0\0\x01\0" + entry)
    6
    """
    cdef const uint8_t[::1] view = _bytes_of(data)
    return 0 if view is None else read_exif_orientation(&view[0], view.shape[0])


def is_jpeg_whole(data):
    """Return True for a common file with its last marker; False: only a decoder can tell."""
    cdef const uint8_t[::1] view = _jpeg_of(data)
    cdef jpeg_segment segment
    cdef size_t at = 2
    cdef bint has_frame = False, has_scan = False
    if view is None:
        return False
    with nogil:
        while True:
            segment = next_segment(&view[0], view.shape[0], &at)
            if segment.marker == 0 or segment.marker == 0xD9:
                break
            if not segment.whole or (segment.gap and not has_scan):
                segment.marker = 0
                break
            has_frame = has_frame or 0xC0 <= segment.marker <= 0xC2
            has_scan = has_scan or segment.marker == 0xDA
    return segment.marker == 0xD9 and has_frame and has_scan


def segments(data):
    """Yield the segments of a JPEG file: marker, where the payload begins and ends, and if any gap.

    A gap is what lies in front of a segment and belongs to none, such as the data of a scan.  The
    last marker is that of the end, if there is one.
    """
    cdef const uint8_t[::1] view = _jpeg_of(data)
    cdef jpeg_segment segment
    cdef size_t at = 2
    cdef Py_ssize_t begin
    while view is not None:
        segment = next_segment(&view[0], view.shape[0], &at)
        if segment.marker == 0:
            return
        begin = segment.data - &view[0] + 4
        yield segment.marker, begin, <Py_ssize_t>at, segment.gap
        if segment.marker == 0xD9:
            return


cdef const uint8_t[::1] _bytes_of(data):
    """The bytes of any contiguous buffer; None if there are none."""
    view = memoryview(data)
    return view.cast("B") if view.nbytes else None


cdef const uint8_t[::1] _jpeg_of(data):
    """The bytes of a JPEG file; None for anything else."""
    cdef const uint8_t[::1] view = _bytes_of(data)
    if view is None or view.shape[0] < 3:
        return None
    return view if view[0] == 0xFF and view[1] == 0xD8 and view[2] == 0xFF else None
