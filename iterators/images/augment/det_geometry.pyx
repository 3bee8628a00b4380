"""Geometry of one detection image: the sources of its pixels and boxes.

The steps are those of MXNet's detection augmenter with its formulas: resize, mirror, border, crop
by samplers, resize to the canvas.  The result is a list of steps as in `geometry`, and the objects
in fractions of the finished image.  The random numbers are not MXNet's: they depend on the
augmentation key, the epoch and the record alone.

The mirror is carried out last, when rows are written, and all positions are computed for that.
Pixels that are resampled may therefore differ from MXNet's by the rounding of the mirrored
positions, and with the nearest neighbour by which of two neighbours is taken; boxes do not differ.
"""

from libc.math cimport sqrtf
from libc.stdint cimport int64_t
from libc.string cimport memset

from iterators.images.augment.det_labels cimport (
    Box, CropLimits, Objects, crop_accepted, crop_objects, mirror_objects, project_objects,
)
from iterators.images.augment.draw cimport (
    DRAW_PAD, DRAW_SAMPLERS, DRAW_STEP_CHANCES, DRAW_TRIAL, ImageKey, draw, draw_integer,
    philox_block, philox_unit,
)
from iterators.images.augment.geometry cimport (
    GEOMETRY_OK, GEOMETRY_TOO_LARGE, STEP_PAD, STEP_RESAMPLE, METHOD_CROP, Geometry, Step,
    add_step, choose_method, keep_rectangle, load_resize, resize_first,
)

from .det_recipe import RESIZE_MODES

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
