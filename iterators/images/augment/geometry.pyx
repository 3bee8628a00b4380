"""Geometry of one sample: the resizes, warps and crops of one image.

The result is a short list of steps, each from pixels to pixels with a crop before it and a window
after it; executing them is the renderer's work.  Sizes and roundings are those of MXNet's
default augmenter, with its steps in its order: resize, affine warp, pad, one kind of crop.  In the
place of that warp there may be torchvision's, and with Pillow's resampling all are those of
torchvision's transforms.  The random numbers are neither's: they depend on the augmentation key,
the epoch and the record alone.
"""

from libc.math cimport exp, floorf, log, rint, round as c_round, sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from iterators.core.order.image_shapes cimport patch_size
from iterators.images.augment.draw cimport (
    DRAW_AREA, DRAW_CROP, DRAW_METHOD, DRAW_MIRROR, DRAW_STRETCH, DRAW_WARP, ImageKey, draw,
    draw_between, draw_integer, draw_key, philox_block, philox_unit,
)
from iterators.images.augment.program cimport StepChange, StepState, step_map
from recordio.kernels.operations cimport AFFINE_LARGEST_SIDE
from recordio.kernels.transform cimport transform_map
from recordio.kernels.warp cimport WARP_LARGEST_SIDE, affine_forward, warp_invert

from .geometry_options import CROP_POSITIONS, PADDING_MODES
from .recipe import FILTERS, FIRST_FILTER, RESIZE_TO

assert PADDING_MODES.index("symmetric") == PADDING_SYMMETRIC
assert CROP_POSITIONS.index("center_floor") == POSITION_CENTER_FLOOR
assert RESIZE_TO == {"cover": RESIZE_COVER, "contain": RESIZE_CONTAIN}
assert FIRST_FILTER + FILTERS.index("bilinear") == BILINEAR
assert FIRST_FILTER + FILTERS.index("bicubic") == BICUBIC
assert FIRST_FILTER + len(FILTERS) == RANDOM_FILTER

cdef enum:
    RANDOM_METHOD = 10      # one of MXNet's for every image
    BILINEAR = 18           # numbers of `filters.h`
    BICUBIC = 20
    RANDOM_FILTER = 22      # one of these two for every image
    AREA_TRIES = 10
    NO_AREA = -1            # beside the values of GeometryStatus
    MAX_SIDE = 1 << 26      # keeps every product below in 64 bits
    MAX_ANGLES = 64

# Where the crop lies, in the order of `CROP_POSITIONS`.
cdef enum Position:
    POSITION_NONE = -1      # where the other keywords say
    POSITION_CENTER = 0
    POSITION_TOP_LEFT = 1
    POSITION_TOP_RIGHT = 2
    POSITION_BOTTOM_LEFT = 3
    POSITION_BOTTOM_RIGHT = 4
    POSITION_CENTER_FLOOR = 5   # half pixels cut off, where torchvision rounds


# The part of a recipe that is needed to draw one image, and the size of the image at work.
cdef struct GeometryRecipe:
    int width
    int height
    int patch               # side of the patches that the image is cut into, or 0
    int length              # patches at most
    FirstResize resize
    bint torchvision        # crops and pads as its transforms do
    bint pad_if_needed
    bint rand_crop
    int crop_x_start
    int crop_y_start
    int min_crop_size
    int max_crop_size
    bint random_resized_crop
    double min_area
    double max_area
    double min_ratio
    double max_ratio
    bint crops_first        # a small image is cropped to the target's proportions, then grown
    bint log_ratio          # the aspect ratio of a random area is uniform in its logarithm
    bint allowed            # where no random area fits, as much as a ratio of the range lets
    bint warps
    int max_rotate_angle
    int rotate
    int num_angles
    int angles[MAX_ANGLES]
    double max_shear
    double min_scale
    double max_scale
    double min_size
    double max_size
    int pad
    Padding padding
    Position position
    bint mirror
    bint rand_mirror
    double mirror_chance
    double flip_chance


cdef int choose_method(int inter_method, const ImageKey* image, int step, int width, int height,
                       int new_width, int new_height) noexcept nogil:
    if inter_method == RANDOM_METHOD:
        return draw_integer(draw(image, DRAW_METHOD).word[step], 0, 4)
    if inter_method == RANDOM_FILTER:
        if draw_integer(draw(image, DRAW_METHOD).word[step], 0, 1):
            return BICUBIC
        return BILINEAR
    if inter_method != 9:
        return inter_method
    if new_width > width and new_height > height:
        return 2
    if new_width < width and new_height < height:
        return 3
    return 1


cdef Step* add_step(Geometry* geometry, StepKind kind, int method, int* width, int* height,
                    int64_t target_width, int64_t target_height) noexcept nogil:
    """Append a step that reads the whole current image and all of whose result is wanted.

    The current size becomes that of the result; NULL if that is impossible.
    """
    cdef Step* step
    if (geometry.count == MAX_STEPS
            or not (1 <= target_width < MAX_SIDE and 1 <= target_height < MAX_SIDE)):
        return NULL
    step = &geometry.steps[geometry.count]
    geometry.count += 1
    step.kind, step.method = kind, method
    step.x = step.y = step.left = step.top = step.border_x = step.border_y = 0
    memset(step.inverse, 0, sizeof(step.inverse))
    step.width, step.height = width[0], height[0]
    step.target_width = step.out_width = <int>target_width
    step.target_height = step.out_height = <int>target_height
    width[0], height[0] = <int>target_width, <int>target_height
    return step


cdef void keep_rectangle(Geometry* geometry, int x, int y, int width, int height) noexcept nogil:
    """Crop the current image: the window of its last step shrinks."""
    cdef Step* step = &geometry.steps[geometry.count - 1]
    step.left += x
    step.top += y
    step.out_width, step.out_height = width, height


cdef FirstResize load_resize(recipe):
    cdef FirstResize resize
    resize.new_width, resize.new_height = recipe.first_resize
    resize.most = max(recipe.max_side, 0)
    resize.inter_method = recipe.method
    return resize


cdef (int64_t, int64_t) limit_sides(int64_t width, int64_t height, int64_t most) noexcept nogil:
    """Return the size whose long side is `most`; the short one is cut to a whole number."""
    if height > width:
        return most * width // height, most
    return most, most * height // width


cdef int resize_first(const FirstResize* resize, const ImageKey* image, int* width, int* height,
                      Geometry* geometry, int wanted_width, int wanted_height) noexcept nogil:
    cdef int64_t new_width = resize.new_width, new_height = resize.new_height
    cdef bint by_width
    if new_width == RESIZE_OFF:
        if resize.most == 0 or max(width[0], height[0]) <= resize.most:
            return GEOMETRY_OK
        new_width, new_height = limit_sides(width[0], height[0], resize.most)
    elif new_width == RESIZE_COVER or new_width == RESIZE_CONTAIN:
        # The side whose length is the target's, and the other one rounded, halves up.
        by_width = <int64_t>wanted_width * height[0] >= <int64_t>wanted_height * width[0]
        by_width = by_width == (new_width == RESIZE_COVER)
        new_width, new_height = wanted_width, wanted_height
        if by_width:
            new_height = (2 * new_width * height[0] + width[0]) // (2 * <int64_t>width[0])
        else:
            new_width = (2 * new_height * width[0] + height[0]) // (2 * <int64_t>height[0])
        new_width, new_height = max(new_width, 1), max(new_height, 1)
        if new_width == width[0] and new_height == height[0]:
            return GEOMETRY_OK
    elif new_height == 0:
        new_height = new_width
        if height[0] > width[0]:
            new_height = new_height * height[0] // width[0]
        else:
            new_width = new_width * width[0] // height[0]
        if resize.most and resize.new_width >= resize.most:
            new_width, new_height = limit_sides(width[0], height[0], resize.most)
        elif resize.most and max(new_width, new_height) > resize.most:
            new_width, new_height = limit_sides(new_width, new_height, resize.most)
    if new_width >= MAX_SIDE or new_height >= MAX_SIDE:
        return GEOMETRY_TOO_LARGE
    cdef int method = choose_method(resize.inter_method, image, METHOD_RESIZE, width[0], height[0],
                                    <int>new_width, <int>new_height)
    if add_step(geometry, STEP_RESAMPLE, method, width, height, new_width, new_height) == NULL:
        return GEOMETRY_TOO_LARGE
    return GEOMETRY_OK


cdef int warp(const GeometryRecipe* recipe, const ImageKey* image, int* width, int* height,
              Geometry* geometry) noexcept nogil:
    """Rotate, scale, stretch and shear about the centre, on a canvas of limited size."""
    cdef philox_block turn = draw(image, DRAW_WARP), stretch = draw(image, DRAW_STRETCH)
    cdef float shear = <float>draw_between(turn.word[0], -recipe.max_shear, recipe.max_shear)
    cdef int angle = draw_integer(turn.word[1], -recipe.max_rotate_angle, recipe.max_rotate_angle)
    cdef float[6] forward
    cdef float scale = 1, ratio = 1
    cdef int old_width = width[0], old_height = height[0], method
    cdef double new_width, new_height
    cdef Step* step
    if recipe.rotate > 0:
        angle = recipe.rotate
    if recipe.num_angles:
        angle = recipe.angles[draw_integer(turn.word[2], 0, recipe.num_angles - 1)]
    if not recipe.random_resized_crop:
        scale = <float>draw_between(stretch.word[0], recipe.min_scale, recipe.max_scale)
        ratio = <float>draw_between(stretch.word[1], recipe.min_ratio, recipe.max_ratio)
    new_width = min(max(<double>(scale * old_width), recipe.min_size), recipe.max_size)
    new_height = min(max(<double>(scale * old_height), recipe.min_size), recipe.max_size)
    if not (1 <= new_width <= WARP_LARGEST_SIDE and 1 <= new_height <= WARP_LARGEST_SIDE
            and old_width <= WARP_LARGEST_SIDE and old_height <= WARP_LARGEST_SIDE):
        return GEOMETRY_TOO_LARGE
    method = choose_method(recipe.resize.inter_method, image, METHOD_WARP, old_width, old_height,
                           <int>new_width, <int>new_height)
    affine_forward(forward, angle, shear, scale, ratio, old_width, old_height, <float>new_width,
                   <float>new_height)
    step = add_step(geometry, STEP_WARP, method, width, height, <int64_t>new_width,
                    <int64_t>new_height)
    if step == NULL:
        return GEOMETRY_TOO_LARGE
    warp_invert(forward, step.inverse)
    return GEOMETRY_OK


cdef int move(StepChange moves, const ImageKey* image, int* width, int* height,
              Geometry* geometry) noexcept nogil:
    """Turn, move and tilt as torchvision does; the size stays."""
    cdef StepState* state = moves.draw_for(image, width[0], height[0])
    cdef transform_map transform
    cdef Step* step
    cdef int i
    for i in range(state.num_drawn):
        if not step_map(&state.drawn[i], width[0], height[0], &transform):
            continue
        if width[0] > AFFINE_LARGEST_SIDE or height[0] > AFFINE_LARGEST_SIDE:
            return GEOMETRY_TOO_LARGE
        step = add_step(geometry, STEP_PERSPECTIVE if transform.perspective else STEP_AFFINE,
                        transform.method, width, height, width[0], height[0])
        if step == NULL:
            return GEOMETRY_TOO_LARGE
        memcpy(step.inverse, transform.matrix, sizeof(step.inverse))
    return GEOMETRY_OK


cdef void draw_mirrors(const GeometryRecipe* recipe, const ImageKey* image,
                       Geometry* geometry) noexcept nogil:
    cdef philox_block words = draw(image, DRAW_MIRROR)
    geometry.mirror = recipe.mirror or (
        recipe.rand_mirror and philox_unit(words.word[0]) >= 1 - recipe.mirror_chance)
    geometry.flip = philox_unit(words.word[1]) >= 1 - recipe.flip_chance


cdef void move_crop(const GeometryRecipe* recipe, const Geometry* geometry, int room_x, int room_y,
                    int* x, int* y) noexcept nogil:
    """Move a crop at the centre to the corner that the mirrored and flipped image has there.

    `room_x` and `room_y` are the pixels that the image has more than the crop.
    """
    cdef Position position = recipe.position
    if position == POSITION_NONE:
        return
    if position != POSITION_CENTER and position != POSITION_CENTER_FLOOR:
        x[0] = room_x if position in (POSITION_TOP_RIGHT, POSITION_BOTTOM_RIGHT) else 0
        y[0] = room_y if position in (POSITION_BOTTOM_LEFT, POSITION_BOTTOM_RIGHT) else 0
    if geometry.mirror:
        x[0] = room_x - x[0]
    if geometry.flip:
        y[0] = room_y - y[0]


cdef int find_center(const GeometryRecipe* recipe, int room) noexcept nogil:
    """Find the position of a crop at the centre; `room` pixels are left over."""
    if recipe.torchvision and recipe.position != POSITION_CENTER_FLOOR:
        return <int>rint(room / 2.0)    # halves to even
    return room // 2


cdef int crop_area(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                   Geometry* geometry) noexcept nogil:
    """Random area and aspect ratio; NO_AREA when no try fits, as may happen to very long images."""
    cdef double area, ratio
    cdef int crop_width, crop_height, i
    cdef bint exchanged
    cdef philox_block block, position
    if (not recipe.allowed and recipe.min_area == 1 and recipe.max_area == 1
            and recipe.min_ratio == 1 and recipe.max_ratio == 1):
        return NO_AREA
    for i in range(AREA_TRIES):
        block = draw(image, DRAW_AREA + i)
        area = draw_between(block.word[0], recipe.min_area, recipe.max_area)
        if recipe.log_ratio:
            ratio = exp(draw_between(block.word[1], log(recipe.min_ratio), log(recipe.max_ratio)))
        else:
            ratio = draw_between(block.word[1], recipe.min_ratio, recipe.max_ratio)
        area *= <double>width * height
        exchanged = not recipe.log_ratio and block.word[2] >= <uint32_t>1 << 31
        if recipe.patch:
            # As timm draws it: how many times the ratio of the image itself.
            ratio = (1 / ratio if exchanged else ratio) * own_ratio(recipe, width, height)
        crop_height = <int>c_round(sqrt(area / ratio))
        crop_width = <int>c_round(sqrt(area * ratio))
        if exchanged and not recipe.patch:
            crop_width, crop_height = crop_height, crop_width
        if 1 <= crop_width <= width and 1 <= crop_height <= height:
            position = draw(image, DRAW_CROP)
            return crop_and_resize(
                recipe, image, draw_integer(position.word[0], 0, width - crop_width),
                draw_integer(position.word[1], 0, height - crop_height), crop_width, crop_height,
                geometry)
    if recipe.allowed or recipe.patch:
        return crop_allowed(recipe, image, width, height, geometry)
    return NO_AREA


cdef double own_ratio(const GeometryRecipe* recipe, int width, int height) noexcept nogil:
    """Return what the range of aspect ratios is relative to."""
    return <double>width / height if recipe.patch else 1


cdef int crop_allowed(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                      Geometry* geometry) noexcept nogil:
    """Crop as much as an allowed ratio lets, at the centre: torchvision's rule if no try fits."""
    cdef double ratio = <double>width / height, own = own_ratio(recipe, width, height)
    cdef int crop_width = width, crop_height = height
    if ratio < recipe.min_ratio * own:
        crop_height = <int>rint(width / (recipe.min_ratio * own))
    elif ratio > recipe.max_ratio * own:
        crop_width = <int>rint(height * (recipe.max_ratio * own))
    if crop_width < 1 or crop_height < 1:
        return GEOMETRY_TOO_LARGE
    return crop_and_resize(recipe, image, (width - crop_width) // 2, (height - crop_height) // 2,
                           crop_width, crop_height, geometry)


cdef int crop_square(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                     Geometry* geometry) noexcept nogil:
    """Crop a square with a side from a range."""
    cdef philox_block position = draw(image, DRAW_CROP)
    cdef int side = draw_integer(position.word[2], recipe.min_crop_size, recipe.max_crop_size)
    cdef int x, y, status
    if recipe.torchvision:
        status = pad_small(recipe, side, side, &width, &height, geometry)
        if status:
            return GEOMETRY_CROP_SIZE if status == GEOMETRY_CROP_LARGE else status
    elif width < recipe.max_crop_size or height < recipe.max_crop_size:
        return GEOMETRY_CROP_SIZE
    x, y = find_center(recipe, width - side), find_center(recipe, height - side)
    if recipe.rand_crop:
        x = draw_integer(position.word[0], 0, width - side)
        y = draw_integer(position.word[1], 0, height - side)
    move_crop(recipe, geometry, width - side, height - side, &x, &y)
    return crop_and_resize(recipe, image, x, y, side, side, geometry)


cdef int crop_and_resize(const GeometryRecipe* recipe, const ImageKey* image, int x, int y,
                         int width, int height, Geometry* geometry) noexcept nogil:
    """Crop a rectangle of the current image, resized to the target."""
    cdef int out_width = recipe.width, out_height = recipe.height, method
    cdef Step* step
    if recipe.patch:
        patch_size(height, width, recipe.patch, recipe.length, &out_height, &out_width)
    method = choose_method(recipe.resize.inter_method, image, METHOD_CROP, width, height,
                           out_width, out_height)
    if geometry.count:
        keep_rectangle(geometry, x, y, width, height)
        x = y = 0
    step = add_step(geometry, STEP_RESAMPLE, method, &width, &height, out_width, out_height)
    if step == NULL:
        return GEOMETRY_TOO_LARGE
    step.x, step.y = x, y
    return GEOMETRY_OK


cdef int crop_fitting(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                      Geometry* geometry) noexcept nogil:
    """Crop as much as the target has, in its proportions, and resize it to the target.

    The rule of MXNet's `mx.image`: an image that is too small loses its edges before it grows.
    """
    cdef double crop_width = recipe.width, crop_height = recipe.height
    cdef int x, y
    cdef philox_block position
    if height < crop_height:
        crop_width, crop_height = crop_width * height / crop_height, height
    if width < crop_width:
        crop_width, crop_height = width, crop_height * width / crop_width
    if crop_width < 1 or crop_height < 1:
        return GEOMETRY_TOO_LARGE
    x, y = width - <int>crop_width, height - <int>crop_height
    if recipe.rand_crop:
        position = draw(image, DRAW_CROP)
        x = draw_integer(position.word[0], 0, x)
        y = draw_integer(position.word[1], 0, y)
    else:
        x //= 2
        y //= 2
    move_crop(recipe, geometry, width - <int>crop_width, height - <int>crop_height, &x, &y)
    return crop_and_resize(recipe, image, x, y, <int>crop_width, <int>crop_height, geometry)


cdef int grow_small(const GeometryRecipe* recipe, const ImageKey* image, int* width, int* height,
                    Geometry* geometry) noexcept nogil:
    """Make an image that is smaller than the target larger, as MXNet does."""
    # MXNet resolves the method once, against the size before either resize.
    cdef int method = choose_method(recipe.resize.inter_method, image, METHOD_CROP, width[0],
                                    height[0], recipe.width, recipe.height)
    if height[0] < recipe.height:
        if add_step(geometry, STEP_RESAMPLE, method, width, height,
                    <int64_t>floorf(<float>recipe.height / height[0] * width[0]),
                    recipe.height) == NULL:
            return GEOMETRY_TOO_LARGE
    if width[0] < recipe.width:
        if add_step(geometry, STEP_RESAMPLE, method, width, height, recipe.width,
                    <int64_t>floorf(<float>recipe.width / width[0] * height[0])) == NULL:
            return GEOMETRY_TOO_LARGE
    return GEOMETRY_OK


cdef int pad_small(const GeometryRecipe* recipe, int crop_width, int crop_height, int* width,
                   int* height, Geometry* geometry) noexcept nogil:
    """Pad an image that is smaller than the crop, as torchvision does.

    Its random crop adds all that is missing to both sides, the one at the centre half of it.
    """
    cdef int x = max(crop_width - width[0], 0), y = max(crop_height - height[0], 0)
    cdef Step* step
    if x == 0 and y == 0:
        return GEOMETRY_OK
    if not recipe.rand_crop or recipe.resize.new_width == RESIZE_CONTAIN:
        step = add_step(geometry, STEP_PAD, 0, width, height, width[0] + x, height[0] + y)
        # A crop that begins half a pixel earlier leaves more in front of the image.
        x = (x + (recipe.position == POSITION_CENTER_FLOOR)) // 2
        y = (y + (recipe.position == POSITION_CENTER_FLOOR)) // 2
    elif recipe.pad_if_needed:
        step = add_step(geometry, STEP_PAD, recipe.padding, width, height,
                        <int64_t>width[0] + 2 * x, <int64_t>height[0] + 2 * y)
    else:
        return GEOMETRY_CROP_LARGE
    if step == NULL:
        return GEOMETRY_TOO_LARGE
    step.border_x, step.border_y = x, y
    return GEOMETRY_OK


cdef int crop_plain(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                    Geometry* geometry) noexcept nogil:
    """Grow or pad an image that is too small, then crop the target at the centre or at random."""
    cdef int x, y, status
    cdef philox_block position
    if recipe.torchvision or recipe.resize.new_width == RESIZE_CONTAIN:
        status = pad_small(recipe, recipe.width, recipe.height, &width, &height, geometry)
    else:
        status = grow_small(recipe, image, &width, &height, geometry)
    if status:
        return status
    if geometry.count == 0 and add_step(geometry, STEP_RESAMPLE, 0, &width, &height, width,
                                        height) == NULL:
        return GEOMETRY_TOO_LARGE
    x, y = width - recipe.width, height - recipe.height
    if recipe.rand_crop:
        position = draw(image, DRAW_CROP)
        x = draw_integer(position.word[0], 0, x)
        y = draw_integer(position.word[1], 0, y)
    else:
        x, y = find_center(recipe, x), find_center(recipe, y)
    move_crop(recipe, geometry, width - recipe.width, height - recipe.height, &x, &y)
    if recipe.crop_x_start != -1 and width != recipe.width:
        x = recipe.crop_x_start
    if recipe.crop_y_start != -1 and height != recipe.height:
        y = recipe.crop_y_start
    if x > width - recipe.width or y > height - recipe.height:
        return GEOMETRY_CROP_OUTSIDE
    keep_rectangle(geometry, x, y, recipe.width, recipe.height)
    return GEOMETRY_OK


cdef void load_recipe(GeometryRecipe* target, recipe):
    """Copy the validated parameters of a `recipe.Recipe`."""
    cdef int i
    target.resize = load_resize(recipe)
    target.torchvision = recipe.resample is not None
    target.pad_if_needed = recipe.pad_if_needed
    target.rand_crop = recipe.rand_crop
    target.crop_x_start, target.crop_y_start = recipe.crop_x_start, recipe.crop_y_start
    target.min_crop_size, target.max_crop_size = recipe.min_crop_size, recipe.max_crop_size
    target.random_resized_crop = recipe.random_resized_crop
    target.min_area, target.max_area = recipe.min_random_area, recipe.max_random_area
    target.min_ratio, target.max_ratio = recipe.aspect_range
    target.crops_first = recipe.crops_first
    target.log_ratio = recipe.log_ratio or recipe.log_aspect_ratio
    target.allowed = target.torchvision or recipe.log_aspect_ratio
    target.warps = recipe.warps
    target.max_rotate_angle, target.rotate = recipe.max_rotate_angle, recipe.rotate
    target.num_angles = len(recipe.rotate_list)
    if target.num_angles > MAX_ANGLES:
        raise ValueError(f"{target.num_angles} angles: at most {MAX_ANGLES} are possible")
    for i in range(target.num_angles):
        target.angles[i] = recipe.rotate_list[i]
    target.max_shear = recipe.max_shear_ratio
    target.min_scale, target.max_scale = recipe.min_random_scale, recipe.max_random_scale
    target.min_size, target.max_size = recipe.min_img_size, recipe.max_img_size
    target.pad, target.padding = recipe.pad, <Padding><int>PADDING_MODES.index(recipe.padding_mode)
    target.position = POSITION_NONE
    if recipe.crop_position is not None:
        target.position = <Position><int>CROP_POSITIONS.index(recipe.crop_position)
    target.mirror, target.rand_mirror = recipe.mirror, recipe.rand_mirror
    target.mirror_chance, target.flip_chance = recipe.mirror_p, recipe.flip_p


cdef class GeometryDrawer:
    """Base class: draws nothing."""

    cdef int draw_steps(self, const ImageKey* image, int width, int height, const Target* target,
                        Geometry* geometry) noexcept nogil:
        return GEOMETRY_TOO_LARGE


cdef class RecipeGeometry(GeometryDrawer):
    """The geometry of a `Recipe`."""

    cdef GeometryRecipe recipe
    cdef StepChange moves       # torchvision's warps; None without any

    def __init__(self, recipe):
        load_recipe(&self.recipe, recipe)
        steps = recipe.warp_steps()
        self.moves = StepChange(recipe, steps) if steps else None

    cdef int draw_steps(self, const ImageKey* image, int width, int height, const Target* target,
                        Geometry* geometry) noexcept nogil:
        cdef const GeometryRecipe* recipe = &self.recipe
        cdef int status = GEOMETRY_OK
        cdef Step* step
        self.recipe.width, self.recipe.height = target.width, target.height
        self.recipe.patch, self.recipe.length = target.patch, target.length
        if target.patch and not recipe.random_resized_crop:
            patch_size(height, width, target.patch, target.length, &self.recipe.height,
                       &self.recipe.width)
            self.recipe.resize.new_width = recipe.width
            self.recipe.resize.new_height = recipe.height
        geometry.count = 0
        draw_mirrors(recipe, image, geometry)
        status = resize_first(&recipe.resize, image, &width, &height, geometry, recipe.width,
                              recipe.height)
        if status:
            return status
        if recipe.warps:
            status = warp(recipe, image, &width, &height, geometry)
            if status:
                return status
        if self.moves is not None:
            status = move(self.moves, image, &width, &height, geometry)
            if status:
                return status
        if recipe.pad:
            step = add_step(geometry, STEP_PAD, recipe.padding, &width, &height,
                            <int64_t>width + 2 * recipe.pad, <int64_t>height + 2 * recipe.pad)
            if step == NULL:
                return GEOMETRY_TOO_LARGE
            step.border_x = step.border_y = recipe.pad
        status = NO_AREA
        if recipe.max_crop_size != -1:
            status = crop_square(recipe, image, width, height, geometry)
        elif recipe.random_resized_crop:
            status = crop_area(recipe, image, width, height, geometry)
        if status == NO_AREA and recipe.crops_first:
            status = crop_fitting(recipe, image, width, height, geometry)
        elif status == NO_AREA:
            status = crop_plain(recipe, image, width, height, geometry)
        geometry.changed = geometry.count - 1
        return status


def drawn_steps(recipe, key, epoch, record, int width, int height, occurrence=0):
    """Return the steps drawn for one image and the mirror, for tests and for looking at a recipe.

    A step is a dict of crop (`x`, `y`, `width`, `height`), target size and window.
    """
    cdef RecipeGeometry drawer = RecipeGeometry(recipe)
    cdef Geometry geometry
    cdef ImageKey image
    cdef Target target
    _, target.height, target.width = recipe.data_shape
    target.patch = target.length = 0
    image.key, image.epoch, image.record = draw_key(key, occurrence), epoch, record
    cdef int status = drawer.draw_steps(&image, width, height, &target, &geometry)
    if status:
        raise ValueError(geometry_message(status).decode())
    return [geometry.steps[i] for i in range(geometry.count)], bool(geometry.mirror)


cdef const char* geometry_message(int status) noexcept nogil:
    if status == GEOMETRY_CROP_OUTSIDE:
        return b"crop_x_start or crop_y_start places the crop outside the image"
    if status == GEOMETRY_CROP_SIZE:
        return b"the image is smaller than max_crop_size"
    if status == GEOMETRY_CROP_LARGE:
        return (b"the image is smaller than the random crop of data_shape: give "
                b"pad_if_needed=True, or resize it first")
    return b"an image between two steps would be too large or empty: its sides are too unequal"
