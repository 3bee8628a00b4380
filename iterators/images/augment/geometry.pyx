"""Where the pixels of one sample come from: the resizes, warps and crops of one image.

The result is a short list of layers, each one step from pixels to pixels with a crop before it and
a window after it; executing them is the renderer's work.  Sizes and roundings are those of MXNet's
default augmenter, with its steps in its order: resize, affine warp, pad, one kind of crop.  The
random numbers are not MXNet's: they depend on the augmentation key, the epoch and the record alone.
"""

from libc.math cimport exp, floorf, log, round as c_round, sqrt
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_AREA, DRAW_CROP, DRAW_METHOD, DRAW_MIRROR, DRAW_STRETCH, DRAW_WARP, ImageKey, draw,
    draw_between, draw_integer, draw_key, philox_block,
)
from iterators.images.kernels.warp cimport WARP_LARGEST_SIDE, affine_forward, warp_invert

cdef enum:
    AREA_TRIES = 10
    MAX_SIDE = 1 << 26      # keeps every product below in 64 bits


cdef int choose_method(int inter_method, const ImageKey* image, int step, int width, int height,
                       int new_width, int new_height) noexcept nogil:
    if inter_method == 10:
        return draw_integer(draw(image, DRAW_METHOD).word[step], 0, 4)
    if inter_method != 9:
        return inter_method
    if new_width > width and new_height > height:
        return 2
    if new_width < width and new_height < height:
        return 3
    return 1


cdef Layer* add_layer(Geometry* geometry, LayerKind kind, int method, int* width, int* height,
                      int64_t target_width, int64_t target_height) noexcept nogil:
    """Append a step that reads the whole current image and all of whose result is wanted.

    The current size becomes that of the result; NULL if that is impossible.
    """
    cdef Layer* layer = &geometry.layers[geometry.count]
    if not (1 <= target_width < MAX_SIDE and 1 <= target_height < MAX_SIDE):
        return NULL
    geometry.count += 1
    layer.kind, layer.method = kind, method
    layer.x = layer.y = layer.left = layer.top = layer.border_x = layer.border_y = 0
    memset(layer.inverse, 0, sizeof(layer.inverse))
    layer.width, layer.height = width[0], height[0]
    layer.target_width = layer.out_width = <int>target_width
    layer.target_height = layer.out_height = <int>target_height
    width[0], height[0] = <int>target_width, <int>target_height
    return layer


cdef void keep_rectangle(Geometry* geometry, int x, int y, int width, int height) noexcept nogil:
    """Crop the current image: the window of its last layer shrinks."""
    cdef Layer* layer = &geometry.layers[geometry.count - 1]
    layer.left += x
    layer.top += y
    layer.out_width, layer.out_height = width, height


cdef int resize_short_side(int resize, int inter_method, const ImageKey* image, int* width,
                           int* height, Geometry* geometry) noexcept nogil:
    cdef int64_t new_width = resize, new_height = resize
    if height[0] > width[0]:
        new_height = new_height * height[0] // width[0]
    else:
        new_width = new_width * width[0] // height[0]
    if new_width >= MAX_SIDE or new_height >= MAX_SIDE:
        return GEOMETRY_TOO_LARGE
    cdef int method = choose_method(inter_method, image, METHOD_RESIZE, width[0], height[0],
                                    <int>new_width, <int>new_height)
    add_layer(geometry, LAYER_RESAMPLE, method, width, height, new_width, new_height)
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
    cdef Layer* layer
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
    method = choose_method(recipe.inter_method, image, METHOD_WARP, old_width, old_height,
                           <int>new_width, <int>new_height)
    affine_forward(forward, angle, shear, scale, ratio, old_width, old_height, <float>new_width,
                   <float>new_height)
    layer = add_layer(geometry, LAYER_WARP, method, width, height, <int64_t>new_width,
                      <int64_t>new_height)
    warp_invert(forward, layer.inverse)
    return GEOMETRY_OK


cdef bint crop_area(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                    Geometry* geometry) noexcept nogil:
    """Random area and aspect ratio; False when no try fits, as may happen to very long images."""
    cdef double area, ratio
    cdef int crop_width, crop_height, i
    cdef philox_block block, place
    if (recipe.min_area == 1 and recipe.max_area == 1
            and recipe.min_ratio == 1 and recipe.max_ratio == 1):
        return False
    for i in range(AREA_TRIES):
        block = draw(image, DRAW_AREA + i)
        area = draw_between(block.word[0], recipe.min_area, recipe.max_area)
        if recipe.log_ratio:
            ratio = exp(draw_between(block.word[1], log(recipe.min_ratio), log(recipe.max_ratio)))
        else:
            ratio = draw_between(block.word[1], recipe.min_ratio, recipe.max_ratio)
        area *= <double>width * height
        crop_height = <int>c_round(sqrt(area / ratio))
        crop_width = <int>c_round(sqrt(area * ratio))
        if not recipe.log_ratio and block.word[2] >= <uint32_t>1 << 31:
            crop_width, crop_height = crop_height, crop_width
        if 1 <= crop_width <= width and 1 <= crop_height <= height:
            place = draw(image, DRAW_CROP)
            crop_and_resize(recipe, image, draw_integer(place.word[0], 0, width - crop_width),
                            draw_integer(place.word[1], 0, height - crop_height), crop_width,
                            crop_height, geometry)
            return True
    return False


cdef int crop_square(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                     Geometry* geometry) noexcept nogil:
    """A square with a side from a range."""
    cdef philox_block place = draw(image, DRAW_CROP)
    cdef int side, x, y
    if width < recipe.max_crop_size or height < recipe.max_crop_size:
        return GEOMETRY_CROP_SIZE
    side = draw_integer(place.word[2], recipe.min_crop_size, recipe.max_crop_size)
    x, y = (width - side) // 2, (height - side) // 2
    if recipe.rand_crop:
        x = draw_integer(place.word[0], 0, width - side)
        y = draw_integer(place.word[1], 0, height - side)
    crop_and_resize(recipe, image, x, y, side, side, geometry)
    return GEOMETRY_OK


cdef void crop_and_resize(const GeometryRecipe* recipe, const ImageKey* image, int x, int y,
                          int width, int height, Geometry* geometry) noexcept nogil:
    """A rectangle of the current image, resized to the target."""
    cdef int method = choose_method(recipe.inter_method, image, METHOD_CROP, width, height,
                                    recipe.width, recipe.height)
    cdef Layer* layer
    if geometry.count:
        keep_rectangle(geometry, x, y, width, height)
        x = y = 0
    layer = add_layer(geometry, LAYER_RESAMPLE, method, &width, &height, recipe.width,
                      recipe.height)
    layer.x, layer.y = x, y


cdef int crop_fitting(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                      Geometry* geometry) noexcept nogil:
    """The largest crop of up to the target's size and in its proportions, resized to the target.

    The rule of MXNet's `mx.image`: an image that is too small loses its edges before it grows.
    """
    cdef double crop_width = recipe.width, crop_height = recipe.height
    cdef int x, y
    cdef philox_block place
    if height < crop_height:
        crop_width, crop_height = crop_width * height / crop_height, height
    if width < crop_width:
        crop_width, crop_height = width, crop_height * width / crop_width
    if crop_width < 1 or crop_height < 1:
        return GEOMETRY_TOO_LARGE
    x, y = width - <int>crop_width, height - <int>crop_height
    if recipe.rand_crop:
        place = draw(image, DRAW_CROP)
        x = draw_integer(place.word[0], 0, x)
        y = draw_integer(place.word[1], 0, y)
    else:
        x //= 2
        y //= 2
    crop_and_resize(recipe, image, x, y, <int>crop_width, <int>crop_height, geometry)
    return GEOMETRY_OK


cdef int crop_plain(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                    Geometry* geometry) noexcept nogil:
    """Grow an image that is too small, then crop the target at the centre or at random."""
    # MXNet resolves the method once, against the size before either resize.
    cdef int method = choose_method(recipe.inter_method, image, METHOD_CROP, width, height,
                                    recipe.width, recipe.height)
    cdef int x, y
    cdef philox_block place
    if height < recipe.height:
        if add_layer(geometry, LAYER_RESAMPLE, method, &width, &height,
                     <int64_t>floorf(<float>recipe.height / height * width), recipe.height) == NULL:
            return GEOMETRY_TOO_LARGE
    if width < recipe.width:
        if add_layer(geometry, LAYER_RESAMPLE, method, &width, &height, recipe.width,
                     <int64_t>floorf(<float>recipe.width / width * height)) == NULL:
            return GEOMETRY_TOO_LARGE
    if geometry.count == 0:
        add_layer(geometry, LAYER_RESAMPLE, method, &width, &height, width, height)
    x, y = width - recipe.width, height - recipe.height
    if recipe.rand_crop:
        place = draw(image, DRAW_CROP)
        x = draw_integer(place.word[0], 0, x)
        y = draw_integer(place.word[1], 0, y)
    else:
        x //= 2
        y //= 2
    if recipe.crop_x_start != -1 and width != recipe.width:
        x = recipe.crop_x_start
    if recipe.crop_y_start != -1 and height != recipe.height:
        y = recipe.crop_y_start
    if x > width - recipe.width or y > height - recipe.height:
        return GEOMETRY_CROP_OUTSIDE
    keep_rectangle(geometry, x, y, recipe.width, recipe.height)
    return GEOMETRY_OK


cdef int draw_geometry(const GeometryRecipe* recipe, const ImageKey* image, int width, int height,
                       Geometry* geometry) noexcept nogil:
    """Draw and compute the layers for one image of `width` x `height` pixels."""
    cdef int status = GEOMETRY_OK
    cdef Layer* layer
    geometry.count = 0
    geometry.mirror = recipe.mirror or (
        recipe.rand_mirror and draw(image, DRAW_MIRROR).word[0] >> 31)
    if recipe.resize != -1:
        status = resize_short_side(recipe.resize, recipe.inter_method, image, &width, &height,
                                   geometry)
        if status:
            return status
    if recipe.warps:
        status = warp(recipe, image, &width, &height, geometry)
        if status:
            return status
    if recipe.pad:
        layer = add_layer(geometry, LAYER_PAD, 0, &width, &height,
                          <int64_t>width + 2 * recipe.pad, <int64_t>height + 2 * recipe.pad)
        if layer == NULL:
            return GEOMETRY_TOO_LARGE
        layer.border_x = layer.border_y = recipe.pad
    if recipe.max_crop_size != -1:
        status = crop_square(recipe, image, width, height, geometry)
    elif not (recipe.random_resized_crop and crop_area(recipe, image, width, height, geometry)):
        if recipe.crops_first:
            status = crop_fitting(recipe, image, width, height, geometry)
        else:
            status = crop_plain(recipe, image, width, height, geometry)
    geometry.coloured = geometry.count - 1
    return status


cdef void load_recipe(GeometryRecipe* target, recipe):
    """Copy the validated parameters of a `recipe.Recipe`."""
    cdef int i
    _, target.height, target.width = recipe.data_shape
    target.resize = recipe.resize
    target.rand_crop = recipe.rand_crop
    target.crop_x_start, target.crop_y_start = recipe.crop_x_start, recipe.crop_y_start
    target.min_crop_size, target.max_crop_size = recipe.min_crop_size, recipe.max_crop_size
    target.random_resized_crop = recipe.random_resized_crop
    target.min_area, target.max_area = recipe.min_random_area, recipe.max_random_area
    target.min_ratio, target.max_ratio = recipe.aspect_range
    target.crops_first, target.log_ratio = recipe.crops_first, recipe.log_ratio
    target.warps = recipe.warps
    target.max_rotate_angle, target.rotate = recipe.max_rotate_angle, recipe.rotate
    target.num_angles = len(recipe.rotate_list)
    for i in range(target.num_angles):
        target.angles[i] = recipe.rotate_list[i]
    target.max_shear = recipe.max_shear_ratio
    target.min_scale, target.max_scale = recipe.min_random_scale, recipe.max_random_scale
    target.min_size, target.max_size = recipe.min_img_size, recipe.max_img_size
    target.pad = recipe.pad
    target.mirror, target.rand_mirror = recipe.mirror, recipe.rand_mirror
    target.inter_method = recipe.inter_method


def layers(recipe, key, epoch, record, int width, int height, occurrence=0):
    """The layers drawn for one image, for tests and for looking at what a recipe does.

    Parameters
    ----------
    recipe : Recipe
    key : int
        Augmentation key.
    epoch, record, occurrence : int
        Which image of which epoch, and which of its occurrences there.
    width, height : int
        Size of the decoded image in pixels.

    Returns
    -------
    layers : list of dict
        Crop (`x`, `y`, `width`, `height`), target size and window of every step, in order.
    mirror : bool

    Examples
    --------
    >>> from iterators.images.augment.recipe import Recipe
    >>> steps, mirror = layers(Recipe(data_shape=(3, 20, 20), resize=30), 0, 0, 0, 90, 60)
    >>> [(s["target_width"], s["target_height"], s["left"], s["top"]) for s in steps], mirror
    ([(45, 30, 12, 5)], False)
    """
    cdef GeometryRecipe settings
    cdef Geometry geometry
    cdef ImageKey image
    image.key, image.epoch, image.record = draw_key(key, occurrence), epoch, record
    load_recipe(&settings, recipe)
    cdef int status = draw_geometry(&settings, &image, width, height, &geometry)
    if status:
        raise ValueError(geometry_message(status))
    return [geometry.layers[i] for i in range(geometry.count)], bool(geometry.mirror)


def geometry_message(int status):
    """What a status of the drawing means, for error messages."""
    if status == GEOMETRY_CROP_OUTSIDE:
        return "crop_x_start or crop_y_start places the crop outside the image"
    if status == GEOMETRY_CROP_SIZE:
        return "the image is smaller than max_crop_size"
    return "an image between two steps would be too large or empty: its sides are too unequal"
