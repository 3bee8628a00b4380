"""Labels of detection images: their checks, and boxes after mirroring, borders and crops.

A raw label is ``[A, B, A - 2 more header values, objects of B values]``; an object begins with id,
xmin, ymin, xmax, ymax in fractions of the image.  Arithmetic is in float32, as in MXNet.  Nothing
here draws random numbers or touches pixels.
"""

from typing import NamedTuple

from libc.math cimport isfinite
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

import numpy as np

from recordio.frames.frame cimport FRAME_HEAD, FRAME_OK, Frame, frame_read, frame_scan
from recordio.frames.reader cimport RecordReader
from recordio.header cimport HEADER_SIZE

cdef enum:
    LEAST_HEADER = 2
    LEAST_OBJECT = 5
    MOST_OBJECT = 1 << 20   # values that a label may state for an object; none has as many
    XMIN = 1                # positions in an object
    YMIN = 2
    XMAX = 3
    YMAX = 4

# As in `recordio.boxes`: boxes may leave the image a little.
cdef float LOWEST = -1
cdef float HIGHEST = 2


# Statistics of labels: the most values within a limit, and the first label beyond it.
cdef struct Lengths:
    int64_t longest
    int64_t too_long        # its position; -1 if there is none
    int64_t values          # its length


cdef inline float* object_at(const Objects* objects, Py_ssize_t i) noexcept nogil:
    return objects.values + i * objects.width


cdef inline float value_at(const void* label, Py_ssize_t position) noexcept nogil:
    """Return one value of a label that need not be aligned."""
    cdef float value
    memcpy(&value, <const uint8_t*>label + 4 * position, 4)
    return value


cdef int check_object(const void* values) noexcept nogil:
    cdef int corner, status = LABEL_OK
    cdef float value
    if not isfinite(value_at(values, 0)):
        return LABEL_CLASS
    for corner in range(XMIN, YMAX + 1):
        value = value_at(values, corner)
        if not isfinite(value):
            return LABEL_NOT_FINITE
        if not LOWEST <= value <= HIGHEST:
            status = LABEL_PIXELS
    return status


cdef int check_label(const void* label, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil:
    cdef Py_ssize_t i
    cdef int status
    cdef float header_width, object_width
    if count < LEAST_HEADER:
        return LABEL_SHORT
    header_width, object_width = value_at(label, 0), value_at(label, 1)
    # Compared as floats first: the conversion of a value out of range is undefined.
    if not (LEAST_HEADER <= header_width <= count):
        return LABEL_HEADER
    if not (LEAST_OBJECT <= object_width <= MOST_OBJECT):
        return LABEL_OBJECT
    header[0] = <Py_ssize_t>header_width
    objects.values = NULL
    objects.width = <int>object_width
    objects.count = (count - header[0]) // objects.width
    if header[0] + objects.count * objects.width != count:
        return LABEL_RAGGED
    for i in range(objects.count):
        status = check_object(<const uint8_t*>label + 4 * (header[0] + i * objects.width))
        if status:
            return status
    return LABEL_OK


cdef void drop_flat_objects(Objects* objects) noexcept nogil:
    cdef Py_ssize_t i, kept = 0
    cdef float* box
    for i in range(objects.count):
        box = object_at(objects, i)
        if box[XMAX] > box[XMIN] and box[YMAX] > box[YMIN]:
            memmove(object_at(objects, kept), box, sizeof(float) * objects.width)
            kept += 1
    objects.count = kept


cdef int parse_label(float* values, Py_ssize_t count, Py_ssize_t* header,
                     Objects* objects) noexcept nogil:
    cdef int status = check_label(values, count, header, objects)
    if status == LABEL_OK:
        objects.values = values + header[0]
        drop_flat_objects(objects)
    return status


cdef void mirror_objects(Objects* objects) noexcept nogil:
    cdef Py_ssize_t i
    cdef float* box
    cdef float left
    for i in range(objects.count):
        box = object_at(objects, i)
        left = box[XMIN]
        box[XMIN] = <float>1 - box[XMAX]
        box[XMAX] = <float>1 - left


cdef void project_objects(Objects* objects, const Box* view) noexcept nogil:
    cdef Py_ssize_t i
    cdef float* box
    for i in range(objects.count):
        box = object_at(objects, i)
        box[XMIN] = max(<float>0, (box[XMIN] - view.x) / view.width)
        box[YMIN] = max(<float>0, (box[YMIN] - view.y) / view.height)
        box[XMAX] = min(<float>1, (box[XMAX] - view.x) / view.width)
        box[YMAX] = min(<float>1, (box[YMAX] - view.y) / view.height)


cdef void place_objects(Objects* objects, const Box* part) noexcept nogil:
    cdef Py_ssize_t i
    cdef float* box
    for i in range(objects.count):
        box = object_at(objects, i)
        box[XMIN], box[XMAX] = part.x + box[XMIN] * part.width, part.x + box[XMAX] * part.width
        box[YMIN], box[YMAX] = part.y + box[YMIN] * part.height, part.y + box[YMAX] * part.height


cdef inline float area_of(const float* box) noexcept nogil:
    return (box[XMAX] - box[XMIN]) * (box[YMAX] - box[YMIN])


cdef inline float common_area(const float* box, const Box* crop) noexcept nogil:
    cdef float width = min(box[XMAX], crop.x + crop.width) - max(box[XMIN], crop.x)
    cdef float height = min(box[YMAX], crop.y + crop.height) - max(box[YMIN], crop.y)
    return width * height if width > 0 and height > 0 else <float>0


cdef bint meets_limits(const float* box, const Box* crop, const CropLimits* limits) noexcept nogil:
    """A limit of 0 to 1 is none."""
    cdef float common = common_area(box, crop), crop_area = crop.width * crop.height, share
    if limits.min_overlap > 0 or limits.max_overlap < 1:
        share = common / (crop_area + area_of(box) - common)
        if not limits.min_overlap <= share <= limits.max_overlap:
            return False
    if limits.min_sample_coverage > 0 or limits.max_sample_coverage < 1:
        if not limits.min_sample_coverage <= common / crop_area <= limits.max_sample_coverage:
            return False
    if limits.min_object_coverage > 0 or limits.max_object_coverage < 1:
        share = common / area_of(box)
        if not limits.min_object_coverage <= share <= limits.max_object_coverage:
            return False
    return True


cdef bint is_kept(const float* box, const Box* crop, const CropLimits* limits) noexcept nogil:
    cdef float x, y
    if limits.by_overlap:
        return common_area(box, crop) > limits.emit_overlap * area_of(box)
    x = (box[XMIN] + box[XMAX]) * <float>0.5
    y = (box[YMIN] + box[YMAX]) * <float>0.5
    return crop.x <= x < crop.x + crop.width and crop.y <= y < crop.y + crop.height


cdef bint crop_accepted(const Objects* objects, const Box* crop,
                        const CropLimits* limits) noexcept nogil:
    cdef bint met = objects.count == 0, kept = objects.count == 0
    cdef Py_ssize_t i
    for i in range(objects.count):
        met = met or meets_limits(object_at(objects, i), crop, limits)
        kept = kept or is_kept(object_at(objects, i), crop, limits)
    return met and kept


cdef void crop_objects(Objects* objects, const Box* crop, const CropLimits* limits) noexcept nogil:
    cdef Py_ssize_t i, kept = 0
    for i in range(objects.count):
        if is_kept(object_at(objects, i), crop, limits):
            memmove(object_at(objects, kept), object_at(objects, i),
                    sizeof(float) * objects.width)
            kept += 1
    objects.count = kept
    project_objects(objects, crop)


cdef const char* label_message(int status) noexcept nogil:
    if status == LABEL_SHORT:
        return b"a detection label has at least 2 values: header width and object width"
    if status == LABEL_HEADER:
        return b"the header width, first value of the label, must be from 2 to the label's length"
    if status == LABEL_OBJECT:
        return b"the object width, the second value of the label, must be from 5 to 2**20"
    if status == LABEL_RAGGED:
        return b"the values behind the header of the label are no whole number of objects"
    if status == LABEL_CLASS:
        return b"an object's class is not a finite number"
    if status == LABEL_NOT_FINITE:
        return b"an object's coordinate is not a finite number"
    return (b"an object's coordinate is below -1 or above 2: boxes are in fractions of the image, "
            b"not in pixels")


cdef int note_length(const void* label, int64_t count, int64_t position, int64_t limit,
                     Lengths* found) noexcept nogil:
    """Count a label, if it is one."""
    cdef Py_ssize_t header
    cdef Objects objects
    cdef int status = LABEL_OK
    if count > found.longest and (count <= limit or found.too_long < 0):
        status = check_label(label, count, &header, &objects)
        if status == LABEL_OK and count <= limit:
            found.longest = count
        elif status == LABEL_OK:
            found.too_long, found.values = position, count
    return status


cdef bint note_record(const uint8_t* base, int64_t size, int64_t offset, int64_t position,
                      int64_t limit, Lengths* found) noexcept nogil:
    """Count the label of a record; False if there is no memory."""
    cdef Frame frame
    cdef uint8_t[4] head
    cdef uint32_t flag
    cdef uint8_t* joined
    if frame_scan(base, size, offset, &frame) != FRAME_OK or frame.length < HEADER_SIZE:
        return True
    frame_read(base, &frame, 0, 4, head)
    memcpy(&flag, head, 4)
    if flag == 0 or 4 * <int64_t>flag > frame.length - HEADER_SIZE:
        return True
    if frame.parts == 1:
        note_length(base + offset + FRAME_HEAD + HEADER_SIZE, flag, position, limit, found)
        return True
    joined = <uint8_t*>malloc(4 * <size_t>flag)
    if joined == NULL:
        return False
    frame_read(base, &frame, HEADER_SIZE, 4 * <int64_t>flag, joined)
    note_length(joined, flag, position, limit, found)
    free(joined)
    return True


class Longest(NamedTuple):
    """Result of `longest` and `longest_listed`."""

    #: Values of the longest label within the limit; 0 if there is none.
    longest: int
    #: Position of the first label beyond the limit; -1 if there is none.
    too_long: int
    #: Number of its values.
    values: int


def longest(RecordReader reader not None, const int64_t[::1] offsets not None, int64_t limit):
    """Find the longest label of the records at these offsets; positions count in `offsets`.

    Labels that are malformed, and records that are damaged or too short for their labels, do not
    count: they are reported when their turn comes.  A label has at most `limit` values.
    """
    cdef Lengths found = Lengths(0, -1, 0)
    cdef int64_t i, size = reader.size
    cdef bint enough = True
    reader.check_open()
    view = reader.view          # keeps the mapping
    cdef const uint8_t* base = reader.base
    with nogil:
        for i in range(offsets.shape[0]):
            enough = enough and note_record(base, size, offsets[i], i, limit, &found)
    del view
    if not enough:
        raise MemoryError("no memory for the label of a record")
    return Longest(found.longest, found.too_long, found.values)


def longest_listed(const int64_t[::1] starts not None, const float[::1] values not None,
                   int64_t limit):
    """Find the longest label of a list: label i is ``values[starts[i]:starts[i + 1]]``.

    Positions count in `starts`; a label has at most `limit` values.
    """
    cdef Lengths found = Lengths(0, -1, 0)
    cdef int64_t i
    for i in range(starts.shape[0] - 1):
        if starts[i] < starts[i + 1]:
            note_length(&values[starts[i]], starts[i + 1] - starts[i], i, limit, &found)
    return Longest(found.longest, found.too_long, found.values)


def without_flat_objects(label):
    """Return a raw label without the objects that have no area."""
    cdef float[::1] values = np.array(label, np.float32).ravel()
    cdef Objects objects
    cdef Py_ssize_t header = 0
    cdef int status = LABEL_SHORT
    if values.shape[0]:
        status = parse_label(&values[0], values.shape[0], &header, &objects)
    if status:
        raise ValueError((<bytes>label_message(status)).decode())
    return np.array(values[:header + objects.count * objects.width])
