"""Labels and geometry of one detection image: the sources of its pixels and boxes.

A raw label is ``[A, B, A - 2 more header values, objects of B values]``; an object begins with id,
xmin, ymin, xmax, ymax in fractions of the image.  Its arithmetic is in float32, as in MXNet.

The steps are those of MXNet's detection augmenter with its formulas: resize, mirror, border, crop
by samplers, resize to the canvas.  The result is a list of steps as in `geometry`, and the objects
in fractions of the finished image.  The random numbers are not MXNet's: they depend on the
augmentation key, the epoch and the record alone.

The mirror is carried out last, when rows are written, and all positions are computed for that.
Pixels that are resampled may therefore differ from MXNet's by the rounding of the mirrored
positions, and with the nearest neighbour by which of two neighbours is taken; boxes do not differ.

The shears, shifts and rotations of a policy move the four corners of a box as they move the pixels.
Parts outside the image are cut off after every operation, as they are lost to the next one, and the
new box is the one around the rest.
"""

from libc.math cimport isfinite, sqrtf
from libc.stdint cimport int64_t, uint32_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove, memset

from iterators.images.augment.draw cimport (
    DRAW_PAD, DRAW_SAMPLERS, DRAW_STEP_CHANCES, DRAW_TRIAL, draw, draw_integer, philox_block,
    philox_unit,
)
from iterators.images.augment.geometry cimport (
    GEOMETRY_OK, GEOMETRY_TOO_LARGE, METHOD_CROP, STEP_PAD, STEP_RESAMPLE, Step, add_step,
    choose_method, keep_rectangle, load_resize, resize_first,
)
from recordio.frames.frame cimport FRAME_HEAD, FRAME_OK, Frame, frame_read, frame_scan
from recordio.frames.reader cimport RecordReader
from recordio.header cimport HEADER_SIZE
from recordio.kernels.operations cimport operation, operation_is_geometric, operation_matrix

from typing import NamedTuple

import numpy as np

from .det_recipe import RESIZE_MODES


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
    """Return True if a crop is acceptable."""
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
                     Lengths* lengths) noexcept nogil:
    """Count a label, if it is one."""
    cdef Py_ssize_t header
    cdef Objects objects
    cdef int status = LABEL_OK
    if count > lengths.longest and (count <= limit or lengths.too_long < 0):
        status = check_label(label, count, &header, &objects)
        if status == LABEL_OK and count <= limit:
            lengths.longest = count
        elif status == LABEL_OK:
            lengths.too_long, lengths.values = position, count
    return status


cdef bint note_record(const uint8_t* base, int64_t size, int64_t offset, int64_t position,
                      int64_t limit, Lengths* lengths) noexcept nogil:
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
        note_length(base + offset + FRAME_HEAD + HEADER_SIZE, flag, position, limit, lengths)
        return True
    joined = <uint8_t*>malloc(4 * <size_t>flag)
    if joined == NULL:
        return False
    frame_read(base, &frame, HEADER_SIZE, 4 * <int64_t>flag, joined)
    note_length(joined, flag, position, limit, lengths)
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
    cdef Lengths lengths = Lengths(0, -1, 0)
    cdef int64_t i, size = reader.size
    cdef bint enough = True
    reader.check_open()
    view = reader.view          # keeps the mapping
    cdef const uint8_t* base = reader.base
    with nogil:
        for i in range(offsets.shape[0]):
            enough = enough and note_record(base, size, offsets[i], i, limit, &lengths)
    del view
    if not enough:
        raise MemoryError("no memory for the label of a record")
    return Longest(lengths.longest, lengths.too_long, lengths.values)


def longest_listed(const int64_t[::1] starts not None, const float[::1] values not None,
                   int64_t limit):
    """Find the longest label of a list: label i is ``values[starts[i]:starts[i + 1]]``.

    Positions count in `starts`; a label has at most `limit` values.
    """
    cdef Lengths lengths = Lengths(0, -1, 0)
    cdef int64_t i
    for i in range(starts.shape[0] - 1):
        if starts[i] < starts[i + 1]:
            note_length(&values[starts[i]], starts[i + 1] - starts[i], i, limit, &lengths)
    return Longest(lengths.longest, lengths.too_long, lengths.values)


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


# ---- geometry ----

cdef enum:
    TRIAL_BITS = 20         # trials of a sampler have numbers of so many bits

# A border that makes an image larger by less than this is left out, as in MXNet.
cdef float LEAST_PAD_SCALE = 1.05


# Positions in pixels: where the image lies on its bordered area, and what is cut out of that.  From
# the left as the image is stored, so that mirroring what is cut out gives the wanted image.
cdef struct Positions:
    int64_t left
    int64_t top
    int64_t padded_width
    int64_t padded_height
    int64_t x
    int64_t y
    int64_t width
    int64_t height


cdef inline float unit(unsigned int word) noexcept nogil:
    return <float>philox_unit(word)


cdef void draw_pad(const DetGeometryRecipe* recipe, const ImageKey* image, bint mirror, int width,
                   int height, Objects* objects, Positions* at) noexcept nogil:
    """Draw a border of random size on all sides."""
    cdef philox_block block = draw(image, DRAW_PAD)
    cdef float scale = unit(block.word[0]) * (recipe.max_pad_scale - 1) + 1, x, y
    cdef Box view
    cdef int64_t left, right
    if scale < LEAST_PAD_SCALE:
        return
    x = unit(block.word[1]) * (scale - 1)
    y = unit(block.word[2]) * (scale - 1)
    left, right = <int64_t>(x * width), <int64_t>((scale - x - 1) * width)
    at.left = right if mirror else left
    at.top = <int64_t>(y * height)
    at.padded_width = width + left + right
    at.padded_height = height + at.top + <int64_t>((scale - y - 1) * height)
    view.x, view.y, view.width, view.height = -x, -y, scale, scale
    project_objects(objects, &view)


cdef void draw_crop_box(const CropSampler* sampler, const philox_block* block, float ratio,
                        Box* box) noexcept nogil:
    """Draw one trial; `ratio` is width / height of the image."""
    cdef float scale = (unit(block.word[0]) * (sampler.max_scale - sampler.min_scale)
                        + sampler.min_scale + <float>1e-12)
    cdef float low = max(sampler.min_ratio / ratio, scale * scale)
    cdef float high = min(sampler.max_ratio / ratio, 1 / (scale * scale))
    cdef float stretch = sqrtf(unit(block.word[1]) * (high - low) + low)
    box.width = min(<float>1, scale * stretch)
    box.height = min(<float>1, scale / stretch) if stretch > 0 else <float>1
    box.x = unit(block.word[2]) * (1 - box.width)
    box.y = unit(block.word[3]) * (1 - box.height)


cdef bint try_sampler(const CropSampler* sampler, int number, const ImageKey* image, bint mirror,
                      Objects* objects, Positions* at) noexcept nogil:
    """Make the trials of one sampler; True after a success, which has changed the objects."""
    cdef int trial
    cdef philox_block block
    cdef Box box
    cdef int64_t x, y, width, height
    cdef int64_t full_width = at.padded_width, full_height = at.padded_height
    for trial in range(sampler.trials):
        block = draw(image, DRAW_TRIAL + (<unsigned int>number << TRIAL_BITS) + trial)
        draw_crop_box(sampler, &block, <float>full_width / full_height, &box)
        x, y = <int64_t>(box.x * full_width), <int64_t>(box.y * full_height)
        width = min(<int64_t>(box.width * full_width), full_width - x)
        height = min(<int64_t>(box.height * full_height), full_height - y)
        if width < 1 or height < 1 or not crop_accepted(objects, &box, &sampler.limits):
            continue
        crop_objects(objects, &box, &sampler.limits)
        at.x = full_width - x - width if mirror else x
        at.y, at.width, at.height = y, width, height
        return True
    return False


cdef void draw_crop(const DetGeometryRecipe* recipe, const ImageKey* image, bint mirror,
                    Objects* objects, Positions* at) noexcept nogil:
    """Try the samplers in random order, until one succeeds."""
    cdef int[MAX_SAMPLERS] order
    cdef int i, other
    cdef philox_block block
    for i in range(recipe.num_samplers):
        order[i] = i
    for i in range(recipe.num_samplers):
        if i % 4 == 0:
            block = draw(image, DRAW_SAMPLERS + i // 4)
        other = draw_integer(block.word[i % 4], i, recipe.num_samplers - 1)
        order[i], order[other] = order[other], order[i]
        if try_sampler(&recipe.samplers[order[i]], order[i], image, mirror, objects, at):
            return


cdef void fit_canvas(const DetGeometryRecipe* recipe, int64_t width, int64_t height, int* new_width,
                     int* new_height) noexcept nogil:
    """Find the size of the finished image; one of the sides may become 0."""
    cdef float ratio = min(<float>recipe.height / height, <float>recipe.width / width)
    new_width[0], new_height[0] = recipe.width, recipe.height
    if recipe.resize_mode == RESIZE_FORCE:
        return
    if recipe.resize_mode == RESIZE_SHRINK and width <= recipe.width and height <= recipe.height:
        new_width[0], new_height[0] = <int>width, <int>height
        return
    new_width[0] = min(<int>(ratio * width), recipe.width)
    new_height[0] = min(<int>(ratio * height), recipe.height)


cdef int add_pad(const Positions* at, int* width, int* height, Geometry* geometry) noexcept nogil:
    """Add the border, and the crop out of it: of the image only what the crop needs is kept."""
    cdef Step* step
    cdef int64_t x = max(at.x - at.left, 0), y = max(at.y - at.top, 0)
    cdef int64_t right = min(at.x + at.width - at.left, <int64_t>width[0])
    cdef int64_t bottom = min(at.y + at.height - at.top, <int64_t>height[0])
    cdef bint visible = x < right and y < bottom
    if geometry.count == 0:
        # A step of its own, so that colours can change before the border is added.
        if add_step(geometry, STEP_RESAMPLE, 0, width, height, width[0], height[0]) == NULL:
            return GEOMETRY_TOO_LARGE
    if not visible:
        x, y, right, bottom = 0, 0, 1, 1
    keep_rectangle(geometry, <int>x, <int>y, <int>(right - x), <int>(bottom - y))
    width[0], height[0] = <int>(right - x), <int>(bottom - y)
    geometry.changed = geometry.count - 1
    step = add_step(geometry, STEP_PAD, 0, width, height, at.width, at.height)
    if step == NULL:
        return GEOMETRY_TOO_LARGE
    step.border_x = <int>(at.left + x - at.x if visible else at.width)
    step.border_y = <int>(at.top + y - at.y if visible else at.height)
    return GEOMETRY_OK


cdef int build_steps(const DetGeometryRecipe* recipe, const ImageKey* image, const Positions* at,
                     int width, int height, Geometry* geometry) noexcept nogil:
    """Turn the positions into the steps that follow the first resize."""
    cdef int new_width, new_height, method
    cdef int x = 0, y = 0
    cdef bint padded = at.padded_width != width or at.padded_height != height
    cdef Step* step
    geometry.changed = -1
    if padded:
        if add_pad(at, &width, &height, geometry):
            return GEOMETRY_TOO_LARGE
    elif geometry.count:
        keep_rectangle(geometry, <int>at.x, <int>at.y, <int>at.width,
                       <int>at.height)
    else:
        x, y = <int>at.x, <int>at.y
    width, height = <int>at.width, <int>at.height
    fit_canvas(recipe, width, height, &new_width, &new_height)
    if geometry.count == 0 or new_width != width or new_height != height:
        method = choose_method(recipe.resize.inter_method, image, METHOD_CROP, width, height,
                               new_width, new_height)
        step = add_step(geometry, STEP_RESAMPLE, method, &width, &height, new_width, new_height)
        if step == NULL:
            return GEOMETRY_TOO_LARGE
        step.x, step.y = x, y
    if not padded:
        geometry.changed = geometry.count - 1
    return GEOMETRY_OK


cdef int draw_det_geometry(const DetGeometryRecipe* recipe, const ImageKey* image, int width,
                           int height, Objects* objects, Geometry* geometry) noexcept nogil:
    cdef philox_block chance = draw(image, DRAW_STEP_CHANCES)
    cdef Positions at
    cdef int status
    geometry.count, geometry.flip = 0, False
    geometry.mirror = philox_unit(chance.word[0]) < recipe.mirror_chance
    status = resize_first(&recipe.resize, image, &width, &height, geometry, recipe.width,
                          recipe.height)
    if status:
        return status
    if geometry.mirror:
        mirror_objects(objects)
    at.left = at.top = at.x = at.y = 0
    at.padded_width, at.padded_height = width, height
    if philox_unit(chance.word[1]) < recipe.pad_chance:
        draw_pad(recipe, image, geometry.mirror, width, height, objects, &at)
    at.width, at.height = at.padded_width, at.padded_height
    if philox_unit(chance.word[2]) < recipe.crop_chance:
        draw_crop(recipe, image, geometry.mirror, objects, &at)
    return build_steps(recipe, image, &at, width, height, geometry)


cdef void load_emission(CropLimits* target, recipe):
    memset(target, 0, sizeof(CropLimits))
    target.by_overlap = recipe.crop_emit_mode == "overlap"
    target.emit_overlap = recipe.emit_overlap_thresh


cdef void load_sampler(CropSampler* target, recipe, int i):
    cdef CropLimits* limits = &target.limits
    load_emission(limits, recipe)
    target.min_scale, target.max_scale = recipe.min_crop_scales[i], recipe.max_crop_scales[i]
    target.min_ratio = recipe.min_crop_aspect_ratios[i]
    target.max_ratio = recipe.max_crop_aspect_ratios[i]
    target.trials = recipe.max_crop_trials[i]
    limits.min_overlap = recipe.min_crop_overlaps[i]
    limits.max_overlap = recipe.max_crop_overlaps[i]
    limits.min_sample_coverage = recipe.min_crop_sample_coverages[i]
    limits.max_sample_coverage = recipe.max_crop_sample_coverages[i]
    limits.min_object_coverage = recipe.min_crop_object_coverages[i]
    limits.max_object_coverage = recipe.max_crop_object_coverages[i]


cdef void load_det_recipe(DetGeometryRecipe* target, recipe):
    """Copy the validated parameters of a `det_recipe.DetRecipe`."""
    cdef int i
    target.resize = load_resize(recipe)
    target.resize_mode = RESIZE_MODES.index(recipe.resize_mode)
    target.mirror_chance = recipe.rand_mirror_prob
    target.max_pad_scale = recipe.max_pad_scale
    target.pad_chance = recipe.rand_pad_prob if recipe.max_pad_scale > 1 else 0
    target.crop_chance = recipe.rand_crop_prob
    target.num_samplers = max(recipe.num_crop_sampler, 0)
    if target.num_samplers > MAX_SAMPLERS:
        raise ValueError(f"{target.num_samplers} samplers: at most {MAX_SAMPLERS} are possible")
    for i in range(target.num_samplers):
        load_sampler(&target.samplers[i], recipe, i)


# ---- boxes under a policy ----

cdef double LABEL_ROUNDING = 2.0 ** -23     # of two edges, as shares of a side


# A box on its way: its shape and its centre, and whether that stayed inside all the time.
cdef struct Moved:
    Shape shape
    double[2] centre
    bint inside


cdef void put(Shape* shape, double x, double y) noexcept nogil:
    if shape.count < MAX_CORNERS:
        shape.corners[shape.count][X], shape.corners[shape.count][Y] = x, y
        shape.count += 1


cdef void cut(Shape* shape, int axis, double limit, double sign) noexcept nogil:
    cdef Shape kept
    cdef double* first
    cdef double* second
    cdef double past_first, past_second, share
    cdef int i
    kept.count = 0
    for i in range(shape.count):
        first, second = shape.corners[i], shape.corners[(i + 1) % shape.count]
        past_first, past_second = sign * (first[axis] - limit), sign * (second[axis] - limit)
        if past_first <= 0:
            put(&kept, first[X], first[Y])
        if (past_first <= 0) != (past_second <= 0):
            share = past_first / (past_first - past_second)
            put(&kept, first[X] + share * (second[X] - first[X]),
                first[Y] + share * (second[Y] - first[Y]))
    shape.count = kept.count
    memcpy(shape.corners, kept.corners, kept.count * sizeof(double[2]))


cdef double area(Shape* shape) noexcept nogil:
    cdef double twice = 0
    cdef double* first
    cdef double* second
    cdef int i
    for i in range(shape.count):
        first, second = shape.corners[i], shape.corners[(i + 1) % shape.count]
        twice += first[X] * second[Y] - second[X] * first[Y]
    return (twice if twice > 0 else -twice) / 2


cdef inline void move_point(double* point, const double* matrix) noexcept nogil:
    """`matrix` leads from the moved pixels back to where they were."""
    cdef double x = point[X] - matrix[2], y = point[Y] - matrix[5]
    cdef double whole = matrix[0] * matrix[4] - matrix[1] * matrix[3]
    point[X] = (matrix[4] * x - matrix[1] * y) / whole
    point[Y] = (matrix[0] * y - matrix[3] * x) / whole


cdef void move(Moved* moved, const operation* done, int width, int height) noexcept nogil:
    cdef double[6] matrix
    cdef int i
    operation_matrix(done, width, height, matrix)
    for i in range(moved.shape.count):
        move_point(moved.shape.corners[i], matrix)
    move_point(moved.centre, matrix)
    moved.inside = (moved.inside and 0 <= moved.centre[X] < width
                    and 0 <= moved.centre[Y] < height)
    cut(&moved.shape, X, 0, -1)
    cut(&moved.shape, X, width, 1)
    cut(&moved.shape, Y, 0, -1)
    cut(&moved.shape, Y, height, 1)


cdef void begin(Moved* moved, const float* box, int width, int height, bint mirror) noexcept nogil:
    cdef double left = box[1], right = box[3]
    if mirror:
        left, right = 1 - right, 1 - left
    moved.shape.count = 0
    put(&moved.shape, left * width, <double>box[2] * height)
    put(&moved.shape, right * width, <double>box[2] * height)
    put(&moved.shape, right * width, <double>box[4] * height)
    put(&moved.shape, left * width, <double>box[4] * height)
    moved.centre[X] = (left + right) / 2 * width
    moved.centre[Y] = (<double>box[2] + box[4]) / 2 * height
    moved.inside = True


cdef bint follow(const float* box, const Drawn* drawn, int first, int last, int width, int height,
                 bint mirror, const CropLimits* limits, float* around) noexcept nogil:
    """Move a box by some of the operations; False for one that is dropped."""
    cdef Moved moved
    cdef double whole, rounding, low, high
    cdef double[2] sides = [width, height]
    cdef int i, axis
    begin(&moved, box, width, height, mirror)
    whole = area(&moved.shape)
    for i in range(first, last):
        if operation_is_geometric(drawn.operations[i].kind):
            move(&moved, &drawn.operations[i], width, height)
    # What is left of a box that was moved out is as much as float32 labels are off by.
    rounding = LABEL_ROUNDING * width * height * ((box[3] - box[1]) + (box[4] - box[2]))
    if moved.shape.count < 3 or area(&moved.shape) <= rounding:
        return False
    if not (area(&moved.shape) > limits.emit_overlap * whole if limits.by_overlap
            else moved.inside):
        return False
    for axis in range(2):
        low = high = moved.shape.corners[0][axis]
        for i in range(moved.shape.count):
            low = min(low, moved.shape.corners[i][axis])
            high = max(high, moved.shape.corners[i][axis])
        low, high = max(low / sides[axis], 0.0), min(high / sides[axis], 1.0)  # cuts are rounded
        if mirror and axis == X:
            low, high = 1 - high, 1 - low
        around[1 + axis], around[3 + axis] = <float>low, <float>high
    return around[3] > around[1] and around[4] > around[2]


cdef bint moves(const Drawn* drawn) noexcept nogil:
    cdef int i
    for i in range(drawn.count):
        if operation_is_geometric(drawn.operations[i].kind):
            return True
    return False


cdef bint move_box(float* box, const Drawn* drawn, int width, int height, bint mirror,
                   const CropLimits* limits) noexcept nogil:
    """Change a box; False if it is to be dropped."""
    cdef float[5] around
    cdef float[5] was
    cdef int part, i
    if drawn.num_parts == 0:
        return follow(box, drawn, 0, drawn.count, width, height, mirror, limits, box)
    # All parts of a mix are seen at once, and the image where it was.
    for i in range(1, 5):
        was[i] = box[i]
    for part in range(drawn.num_parts):
        if follow(was, drawn, drawn.parts[part], drawn.parts[part + 1], width, height, mirror,
                  limits, around):
            box[1], box[2] = min(box[1], around[1]), min(box[2], around[2])
            box[3], box[4] = max(box[3], around[3]), max(box[4], around[4])
    return True


cdef void move_objects(Objects* objects, const Drawn* drawn, int width, int height, bint mirror,
                       const CropLimits* limits) noexcept nogil:
    cdef Py_ssize_t i, kept = 0
    cdef float* box
    if not moves(drawn):
        return
    for i in range(objects.count):
        box = objects.values + i * objects.width
        if move_box(box, drawn, width, height, mirror, limits):
            memmove(objects.values + kept * objects.width, box, sizeof(float) * objects.width)
            kept += 1
    objects.count = kept
