"""Where the pixels of one sample come from: the crops and resizes of one image, drawn and computed.

The result is a short list of layers, each a resampling with a crop before it and a window after it;
executing them is the stage's work.  Sizes and roundings are those of MXNet's default augmenter
(steps in its order: resize, then one kind of crop); the random numbers are not, they depend on the
augmentation key, the epoch and the record alone.
"""

from libc.math cimport floorf, round as c_round, sqrt
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "../core/philox.h" nogil:
    ctypedef struct philox_block:
        uint32_t word[4]
    philox_block philox4x32(uint64_t key, uint32_t, uint32_t, uint32_t, uint32_t)
    double philox_unit(uint32_t word)
    uint32_t philox_below(uint32_t word, uint32_t n)

# Every purpose has random numbers of its own, so that switching one step on or off leaves the draws
# of all others as they were.
cdef enum Purpose:
    DRAW_MIRROR = 0
    DRAW_CROP = 1
    DRAW_AREA = 16          # one block for every try: 16 ... 25

cdef enum:
    AREA_TRIES = 10
    MAX_SIDE = 1 << 26      # keeps every product below in 64 bits


cdef inline philox_block draw(uint64_t key, uint32_t epoch, int64_t record,
                              uint32_t purpose) noexcept nogil:
    return philox4x32(key, purpose, epoch, <uint32_t>record, <uint32_t>(<uint64_t>record >> 32))


cdef inline int choose_method(int method, int width, int height, int new_width,
                              int new_height) noexcept nogil:
    if method != 9:
        return method
    if new_width > width and new_height > height:
        return 2
    if new_width < width and new_height < height:
        return 3
    return 1


cdef void add_layer(Geometry* geometry, int method, int width, int height, int target_width,
                    int target_height) noexcept nogil:
    """Append a resize of the whole current image, all of whose result is wanted."""
    cdef Layer* layer = &geometry.layers[geometry.count]
    geometry.count += 1
    layer.method = method
    layer.x = layer.y = layer.left = layer.top = 0
    layer.width, layer.height = width, height
    layer.target_width = layer.out_width = target_width
    layer.target_height = layer.out_height = target_height


cdef void crop(Geometry* geometry, int x, int y, int width, int height) noexcept nogil:
    """Keep a rectangle of the current image: the window of its last layer shrinks."""
    cdef Layer* layer = &geometry.layers[geometry.count - 1]
    layer.left += x
    layer.top += y
    layer.out_width, layer.out_height = width, height


cdef int resize_short_side(const GeometryRecipe* recipe, Geometry* geometry, int* width,
                           int* height) noexcept nogil:
    cdef int64_t new_width = recipe.resize, new_height = recipe.resize
    if height[0] > width[0]:
        new_height = <int64_t>recipe.resize * height[0] // width[0]
    else:
        new_width = <int64_t>recipe.resize * width[0] // height[0]
    if new_width >= MAX_SIDE or new_height >= MAX_SIDE:
        return GEOMETRY_TOO_LARGE
    cdef int method = choose_method(recipe.inter_method, width[0], height[0], <int>new_width,
                                    <int>new_height)
    add_layer(geometry, method, width[0], height[0], <int>new_width, <int>new_height)
    width[0], height[0] = <int>new_width, <int>new_height
    return GEOMETRY_OK


cdef bint crop_area(const GeometryRecipe* recipe, uint64_t key, uint32_t epoch, int64_t record,
                    int width, int height, Geometry* geometry) noexcept nogil:
    """Random area and aspect ratio; False when no try fits, as may happen to very long images."""
    cdef double area, ratio
    cdef int crop_width, crop_height, i
    cdef philox_block block, place
    if (recipe.min_area == 1 and recipe.max_area == 1
            and recipe.min_ratio == 1 and recipe.max_ratio == 1):
        return False
    for i in range(AREA_TRIES):
        block = draw(key, epoch, record, DRAW_AREA + i)
        area = recipe.min_area + philox_unit(block.word[0]) * (recipe.max_area - recipe.min_area)
        ratio = recipe.min_ratio + philox_unit(block.word[1]) * (recipe.max_ratio - recipe.min_ratio)
        area *= <double>width * height
        crop_height = <int>c_round(sqrt(area / ratio))
        crop_width = <int>c_round(sqrt(area * ratio))
        if block.word[2] >= <uint32_t>1 << 31:
            crop_width, crop_height = crop_height, crop_width
        if 1 <= crop_width <= width and 1 <= crop_height <= height:
            place = draw(key, epoch, record, DRAW_CROP)
            crop_then_resize(
                geometry, recipe, width, height,
                <int>philox_below(place.word[0], width - crop_width + 1),
                <int>philox_below(place.word[1], height - crop_height + 1), crop_width, crop_height)
            return True
    return False


cdef void crop_then_resize(Geometry* geometry, const GeometryRecipe* recipe, int width, int height,
                           int x, int y, int crop_width, int crop_height) noexcept nogil:
    """A rectangle of the current image, resized to the target."""
    cdef int method = choose_method(recipe.inter_method, crop_width, crop_height, recipe.width,
                                    recipe.height)
    cdef Layer* layer
    if geometry.count:
        crop(geometry, x, y, crop_width, crop_height)
        x = y = 0
    add_layer(geometry, method, crop_width, crop_height, recipe.width, recipe.height)
    layer = &geometry.layers[geometry.count - 1]
    layer.x, layer.y = x, y


cdef int crop_plain(const GeometryRecipe* recipe, uint64_t key, uint32_t epoch, int64_t record,
                    int width, int height, Geometry* geometry) noexcept nogil:
    """Grow an image that is too small, then crop the target at the centre or at random."""
    cdef int64_t other
    cdef int method = choose_method(recipe.inter_method, width, height, recipe.width, recipe.height)
    cdef int x, y
    cdef philox_block place
    if height < recipe.height:
        other = <int64_t>floorf(<float>recipe.height / height * width)
        if other >= MAX_SIDE:
            return GEOMETRY_TOO_LARGE
        add_layer(geometry, method, width, height, <int>other, recipe.height)
        width, height = <int>other, recipe.height
    if width < recipe.width:
        other = <int64_t>floorf(<float>recipe.width / width * height)
        if other >= MAX_SIDE:
            return GEOMETRY_TOO_LARGE
        add_layer(geometry, method, width, height, recipe.width, <int>other)
        width, height = recipe.width, <int>other
    if geometry.count == 0:
        add_layer(geometry, 0, width, height, width, height)
    x, y = width - recipe.width, height - recipe.height
    if recipe.rand_crop:
        place = draw(key, epoch, record, DRAW_CROP)
        x = <int>philox_below(place.word[0], x + 1)
        y = <int>philox_below(place.word[1], y + 1)
    else:
        x //= 2
        y //= 2
    if recipe.crop_x_start != -1 and width != recipe.width:
        x = recipe.crop_x_start
    if recipe.crop_y_start != -1 and height != recipe.height:
        y = recipe.crop_y_start
    if x + recipe.width > width or y + recipe.height > height:
        return GEOMETRY_CROP_OUTSIDE
    crop(geometry, x, y, recipe.width, recipe.height)
    return GEOMETRY_OK


cdef int draw_geometry(const GeometryRecipe* recipe, uint64_t key, uint32_t epoch, int64_t record,
                       int width, int height, Geometry* geometry) noexcept nogil:
    """Draw and compute the layers for one image of `width` x `height` pixels."""
    cdef int status
    geometry.count = 0
    geometry.mirror = recipe.mirror or (
        recipe.rand_mirror and draw(key, epoch, record, DRAW_MIRROR).word[0] >> 31)
    if recipe.resize != -1:
        status = resize_short_side(recipe, geometry, &width, &height)
        if status:
            return status
    if recipe.random_resized_crop and crop_area(recipe, key, epoch, record, width, height, geometry):
        return GEOMETRY_OK
    return crop_plain(recipe, key, epoch, record, width, height, geometry)


cdef void load_recipe(GeometryRecipe* target, recipe):
    """Copy the validated parameters of a `recipe.Recipe`."""
    _, target.height, target.width = recipe.data_shape
    target.resize = recipe.resize
    target.rand_crop = recipe.rand_crop
    target.crop_x_start = recipe.crop_x_start
    target.crop_y_start = recipe.crop_y_start
    target.random_resized_crop = recipe.random_resized_crop
    target.min_area = recipe.min_random_area
    target.max_area = recipe.max_random_area
    target.min_ratio, target.max_ratio = recipe.aspect_range
    target.mirror = recipe.mirror
    target.rand_mirror = recipe.rand_mirror
    target.inter_method = recipe.inter_method


def layers(recipe, uint64_t key, uint32_t epoch, int64_t record, int width, int height):
    """The layers drawn for one image, for tests and for looking at what a recipe does.

    Parameters
    ----------
    recipe : Recipe
    key : int
        Augmentation key.
    epoch, record : int
        Which image of which epoch.
    width, height : int
        Size of the decoded image in pixels.

    Returns
    -------
    layers : list of dict
        Crop (`x`, `y`, `width`, `height`), target size and window of every resampling, in order.
    mirror : bool

    Examples
    --------
    >>> from iterators.images.recipe import Recipe
    >>> steps, mirror = layers(Recipe(data_shape=(3, 20, 20), resize=30), 0, 0, 0, 90, 60)
    >>> [(s["target_width"], s["target_height"], s["left"], s["top"]) for s in steps], mirror
    ([(45, 30, 12, 5)], False)
    """
    cdef GeometryRecipe settings
    cdef Geometry geometry
    load_recipe(&settings, recipe)
    cdef int status = draw_geometry(&settings, key, epoch, record, width, height, &geometry)
    if status:
        raise ValueError(geometry_message(status))
    return [geometry.layers[i] for i in range(geometry.count)], bool(geometry.mirror)


def geometry_message(int status):
    """What a status of the drawing means, for error messages."""
    if status == GEOMETRY_CROP_OUTSIDE:
        return "crop_x_start or crop_y_start places the crop outside the image"
    return "the resized image would be too large: its sides are too unequal for these sizes"
