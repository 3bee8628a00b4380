"""Random turns, affine maps and perspectives, drawn as torchvision draws them.

The result is a map of positions for the kernel of Pillow's `Image.transform`.  Ranges and roundings
are torchvision's, whose numbers are float32; the random numbers are those of `draw`.
"""

from libc.math cimport fmod, rint
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_CORNERS, DRAW_LEAN, DRAW_ROTATION, ImageKey, draw, draw_between, draw_integer, draw_key,
    philox_block, philox_unit,
)
from recordio.kernels.transform cimport (
    transform_affine, transform_map, transform_perspective, transform_rotation,
)

from recordio.kernels.operations import METHODS


cdef inline double between(unsigned int word, const double* ends) noexcept nogil:
    """Draw evenly from a range, in float32."""
    return <float>draw_between(word, ends[0], ends[1])


cdef void draw_affine(const WarpRecipe* recipe, const ImageKey* image, int width, int height,
                      DrawnWarp* drawn) noexcept nogil:
    cdef philox_block words = draw(image, DRAW_ROTATION), more = draw(image, DRAW_LEAN)
    cdef double most_x = recipe.translate[0] * width, most_y = recipe.translate[1] * height
    drawn.angle = between(words.word[1], recipe.degrees)
    drawn.shift[0] = <int>rint(<float>draw_between(words.word[2], -most_x, most_x))
    drawn.shift[1] = <int>rint(<float>draw_between(words.word[3], -most_y, most_y))
    drawn.scale = between(more.word[0], recipe.scale)
    drawn.shear[0] = between(more.word[1], recipe.shear)
    drawn.shear[1] = between(more.word[2], recipe.shear + 2)


cdef void draw_corners(const WarpRecipe* recipe, const ImageKey* image, int width, int height,
                       DrawnWarp* drawn) noexcept nogil:
    """Move every corner inwards, by up to a share of half of each side."""
    cdef philox_block words
    cdef int most_x = <int>(recipe.distortion * (width // 2))
    cdef int most_y = <int>(recipe.distortion * (height // 2))
    cdef int i, x, y
    for i in range(4):
        if i % 2 == 0:
            words = draw(image, DRAW_CORNERS + i // 2)
        x = draw_integer(words.word[i % 2 * 2], 0, most_x)
        y = draw_integer(words.word[i % 2 * 2 + 1], 0, most_y)
        drawn.corners[i][0] = width - 1 - x if i == 1 or i == 2 else x
        drawn.corners[i][1] = height - 1 - y if i >= 2 else y


cdef bint draw_warp(const WarpRecipe* recipe, WarpKind kind, const ImageKey* image, int width,
                    int height, DrawnWarp* drawn, transform_map* found) noexcept nogil:
    if not recipe.has[<int>kind]:
        return False
    found.method = recipe.method
    if kind == WARP_ROTATION:
        drawn.angle = between(draw(image, DRAW_ROTATION).word[0], recipe.rotation)
        transform_rotation(drawn.angle, width, height, False, found)
        return fmod(drawn.angle, 360) != 0
    if kind == WARP_AFFINE:
        draw_affine(recipe, image, width, height, drawn)
        transform_affine(drawn.angle, drawn.shift[0], drawn.shift[1], drawn.scale, drawn.shear[0],
                         drawn.shear[1], width, height, found)
        return True
    if philox_unit(draw(image, DRAW_LEAN).word[3]) >= recipe.chance:
        return False
    draw_corners(recipe, image, width, height, drawn)
    # Corners may lie so that no perspective has them.
    return transform_perspective(drawn.corners, width, height, found) == 0


cdef void load_warps(WarpRecipe* target, recipe):
    """Copy the validated parameters of a `GeometryOptions`."""
    cdef int i
    memset(target, 0, sizeof(WarpRecipe))
    target.method = METHODS.index(recipe.warp_interpolation)
    if recipe.rotation is not None:
        target.has[<int>WARP_ROTATION] = True
        target.rotation[0], target.rotation[1] = recipe.rotation
    if recipe.affine is not None:
        parts = recipe.affine
        target.has[<int>WARP_AFFINE] = True
        target.degrees[0], target.degrees[1] = parts["degrees"]
        target.translate[0], target.translate[1] = parts["translate"] or (0, 0)
        target.scale[0], target.scale[1] = parts["scale"] or (1, 1)
        for i, limit in enumerate(parts["shear"] or (0, 0, 0, 0)):
            target.shear[i] = limit
    target.has[<int>WARP_PERSPECTIVE] = recipe.perspective > 0
    target.distortion, target.chance = recipe.perspective, recipe.perspective_p


def drawn_warps(recipe, key, epoch, record, int width, int height, occurrence=0):
    """Return what is drawn for one image, for tests and for looking at a recipe.

    A dict of "rotation", "affine" and "perspective": the numbers that torchvision's functions take,
    of those that the image gets.
    """
    cdef WarpRecipe loaded
    cdef DrawnWarp drawn
    cdef transform_map found
    cdef ImageKey image
    load_warps(&loaded, recipe)
    image.key, image.epoch, image.record = draw_key(key, occurrence), epoch, record
    told = {}
    if draw_warp(&loaded, WARP_ROTATION, &image, width, height, &drawn, &found):
        told["rotation"] = drawn.angle
    if draw_warp(&loaded, WARP_AFFINE, &image, width, height, &drawn, &found):
        told["affine"] = drawn.angle, tuple(drawn.shift), drawn.scale, tuple(drawn.shear)
    if draw_warp(&loaded, WARP_PERSPECTIVE, &image, width, height, &drawn, &found):
        told["perspective"] = [(drawn.corners[i][0], drawn.corners[i][1]) for i in range(4)]
    return told
