"""Colours changed in float: every step an affine map of RGB, all of them together one.

The steps of MXNet's `mx.image.CreateAugmenter` in its order: brightness, contrast and saturation in
random order, hue, noise along the principal colours of ImageNet, greying, and then normalisation.
Nothing is rounded or cut off in between.  Here they are drawn and composed; the renderer applies
the result once.
"""

from libc.math cimport cos, sin
from libc.string cimport memset

from iterators.images.augment.draw cimport (
    DRAW_JITTER, DRAW_TURN, ImageKey, draw, draw_between, draw_integer, philox_block, philox_unit,
)
from iterators.images.augment.jitter cimport draw_principal_noise

cdef enum:
    BRIGHTNESS = 0
    CONTRAST = 1
    SATURATION = 2

cdef double PI = 3.141592653589793
cdef double[3] LUMA = [0.299, 0.587, 0.114]
# Grey of a picture that keeps nothing else: the luma of high definition television.
cdef double[3] GREY = [0.21, 0.72, 0.07]
# RGB to the axes of NTSC television, about the first of which hue turns, and back: MXNet's digits.
cdef double[3][3] FROM_RGB = [
    [0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]]
cdef double[3][3] TO_RGB = [[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]]


# x -> matrix * x + offset
cdef struct Affine:
    double matrix[3][3]
    double offset[3]


cdef void scale(Affine* map, double factor) noexcept nogil:
    cdef int i, j
    for i in range(3):
        map.offset[i] *= factor
        for j in range(3):
            map.matrix[i][j] *= factor


cdef void multiply(Affine* map, const double[3][3] left) noexcept nogil:
    """Apply a linear map after the others."""
    cdef Affine before = map[0]
    cdef int i, j
    for i in range(3):
        map.offset[i] = (left[i][0] * before.offset[0] + left[i][1] * before.offset[1]
                         + left[i][2] * before.offset[2])
        for j in range(3):
            map.matrix[i][j] = (left[i][0] * before.matrix[0][j] + left[i][1] * before.matrix[1][j]
                                + left[i][2] * before.matrix[2][j])


cdef double mean_grey(const Affine* map, const double* average) noexcept nogil:
    """Return the mean grey of the image so far: grey is linear, so that of the mean pixel."""
    cdef double grey = 0
    cdef int i
    for i in range(3):
        grey += LUMA[i] * (map.matrix[i][0] * average[0] + map.matrix[i][1] * average[1]
                           + map.matrix[i][2] * average[2] + map.offset[i])
    return grey


cdef void turn_hue(Affine* map, double angle) noexcept nogil:
    cdef double[3][3] turn = [[1, 0, 0], [0, cos(angle), -sin(angle)], [0, sin(angle), cos(angle)]]
    multiply(map, FROM_RGB)
    multiply(map, turn)
    multiply(map, TO_RGB)


cdef void mix_grey(Affine* map, const double* weights, double factor) noexcept nogil:
    """Append ``x * factor + (1 - factor) * grey(x)``."""
    cdef double[3][3] mix
    cdef int i, j
    for i in range(3):
        for j in range(3):
            mix[i][j] = (1 - factor) * weights[j] + (factor if i == j else 0)
    multiply(map, mix)


cdef void compose(const ColourSteps* steps, const double* average, const float* mean,
                  const float* factor, linear_colour* colour) noexcept nogil:
    cdef Affine map
    cdef double grey
    cdef int step, i, j
    memset(&map, 0, sizeof(map))
    for i in range(3):
        map.matrix[i][i] = 1
    for i in range(3):
        step = steps.order[i]
        if step == SATURATION:
            mix_grey(&map, LUMA, steps.factor[step])
        elif step == BRIGHTNESS:
            scale(&map, steps.factor[step])
        else:
            grey = mean_grey(&map, average) * (1 - steps.factor[step])
            scale(&map, steps.factor[step])
            for j in range(3):
                map.offset[j] += grey
    if steps.hue:
        turn_hue(&map, steps.hue)
    for i in range(3):
        map.offset[i] += steps.noise[i]
    if steps.grey:
        mix_grey(&map, GREY, 0)
    for i in range(3):
        colour.offset[i] = <float>((map.offset[i] - mean[i]) * factor[i])
        for j in range(3):
            colour.matrix[i][j] = <float>(map.matrix[i][j] * factor[i])


cdef void load_colours(ColourRecipe* target, recipe):
    """Copy the validated parameters of an `augmenter.Augmenter`."""
    target.change[BRIGHTNESS], target.change[CONTRAST] = recipe.brightness, recipe.contrast
    target.change[SATURATION] = recipe.saturation
    target.hue, target.noise, target.grey = recipe.hue, recipe.pca_noise, recipe.rand_gray


cdef void draw_colours(const ColourRecipe* recipe, const ImageKey* image,
                       ColourSteps* steps) noexcept nogil:
    """Draw everything for one image."""
    cdef philox_block block = draw(image, DRAW_JITTER), turn = draw(image, DRAW_TURN)
    cdef int order = draw_integer(block.word[3], 0, 5), first = order // 2, i
    cdef int second = (first + 1 + order % 2) % 3
    for i in range(3):
        steps.factor[i] = 1 + draw_between(block.word[i], -recipe.change[i], recipe.change[i])
        steps.noise[i] = 0
    steps.order[0], steps.order[1], steps.order[2] = first, second, 3 - first - second
    steps.hue = draw_between(turn.word[0], -recipe.hue, recipe.hue) * PI
    steps.grey = philox_unit(turn.word[1]) < recipe.grey
    if recipe.noise > 0:
        draw_principal_noise(image, recipe.noise, steps.noise)
