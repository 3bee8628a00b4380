"""Rectangles erased from finished images: drawn per image, written over their slot in a batch.

Area, ratio and position are drawn as torchvision and timm draw them, whose rules are the same.  The
values are those after normalisation; integer pixels have none, and get what it would make of them.
"""

from libc.math cimport exp, log, rint, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from statistics import NormalDist

from iterators.images.augment.draw cimport (
    DRAW_ERASING, DRAW_RECTANGLE, ImageKey, draw as draw_block, draw_between, draw_integer,
    philox_block, philox_unit,
)
from recordio.kernels.normalise cimport (
    normalise_is_float, normalise_recipe, normalise_row, normalise_store_float,
)

cdef extern from "recordio/kernels/noise.h" nogil:
    enum:
        NOISE_STEPS
        NOISE_AT_ONCE
    void noise_block(const float* quantiles, uint64_t key, uint32_t number, float* out)

from .policy_options import ERASING_VALUES, MOST_RECTANGLES

assert MOST_RECTANGLES == MAX_RECTANGLES

cdef enum:
    TRIES = 10              # of a rectangle

# Means and deviations of ImageNet in grey levels, for integer pixels: R, G, B, alpha; grey.
IMAGENET = ((123.675, 116.28, 103.53, 255.0), (58.395, 57.12, 57.375, 0.0))
IMAGENET_GREY = ((114.495,), (57.63,))

cdef float[NOISE_STEPS + 1] quantiles


cdef void fill_quantiles():
    """Fill in those of the normal distribution, cut off beyond 4.2; the variance stays 1."""
    cdef int i
    normal = NormalDist()
    found = [normal.inv_cdf(<double>i / NOISE_STEPS) for i in range(1, NOISE_STEPS)]
    found = [-4.2, *found, 4.2]
    # Between two quantiles all values are equally likely.
    variance = sum(
        (low * low + low * high + high * high) / 3 for low, high in zip(found, found[1:]))
    scale = sqrt(NOISE_STEPS / variance)
    for i in range(NOISE_STEPS + 1):
        quantiles[i] = found[i] * scale


fill_quantiles()


cdef class Eraser:
    """Erases rectangles of images as a recipe with `random_erasing` says; serves one writer.

    Images are at most `most_width` pixels wide.
    """

    def __cinit__(self, recipe, int most_width):
        cdef int i
        self.channels = recipe.channels
        self.chance = recipe.random_erasing
        self.area[0], self.area[1] = recipe.erasing_area
        self.counts[0], self.counts[1] = recipe.erasing_count
        for i in range(2):
            self.log_ratio[i] = log(recipe.erasing_ratio[i])
        value = recipe.erasing_value
        self.kind = ERASING_LEVEL
        if isinstance(value, str):
            self.kind = <ErasingKind><int>(1 + ERASING_VALUES.index(value))
        else:
            self.level = value
        means, deviations = IMAGENET_GREY if self.channels == 1 else IMAGENET
        if any(recipe.differs(f"{name}_{colour}") for name in ("mean", "std") for colour in "rgba"):
            means, deviations = recipe.mean, recipe.std
        for i in range(self.channels):
            self.mean[i], self.deviation[i] = means[i], deviations[i]
        self.row = <uint8_t*>malloc(<size_t>most_width * self.channels + 64)
        if self.row == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.row)

    cdef void draw(self, const ImageKey* image, int full_width, int full_height) noexcept nogil:
        cdef philox_block words = draw_block(image, DRAW_ERASING), more
        cdef int count, i, attempt, width, height
        cdef double area, ratio
        cdef Erased* found
        self.count = 0
        if philox_unit(words.word[0]) >= self.chance:
            return
        self.noise = <uint64_t>words.word[2] << 32 | words.word[3]
        count = draw_integer(words.word[1], self.counts[0], self.counts[1])
        for i in range(count):
            for attempt in range(TRIES):
                more = draw_block(image, DRAW_RECTANGLE + i * TRIES + attempt)
                area = draw_between(more.word[0], self.area[0], self.area[1])
                area *= <double>full_width * full_height / count
                ratio = exp(draw_between(more.word[1], self.log_ratio[0], self.log_ratio[1]))
                height, width = <int>rint(sqrt(area * ratio)), <int>rint(sqrt(area / ratio))
                if width < full_width and height < full_height:
                    found = &self.rectangles[self.count]
                    found.width, found.height = width, height
                    found.x = draw_integer(more.word[2], 0, full_width - width)
                    found.y = draw_integer(more.word[3], 0, full_height - height)
                    self.count += 1
                    break

    cdef void erase(self, void* slot, const normalise_recipe* normalise, ptrdiff_t row_stride,
                    ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil:
        cdef bint floats = normalise_is_float(normalise.dtype)
        cdef const Erased* one
        cdef float[NOISE_AT_ONCE] colour
        cdef Noise noise
        cdef ptrdiff_t at
        cdef int i, y
        noise.key, noise.block, noise.used = self.noise, MAX_RECTANGLES, NOISE_AT_ONCE
        for i in range(self.count):
            one = &self.rectangles[i]
            noise_block(quantiles, self.noise, i, colour)
            for y in range(one.y, one.y + one.height):
                at = y * row_stride + one.x * pixel_stride
                if floats:
                    erase_floats(self, normalise, one.width, colour, &noise, slot, at,
                                 pixel_stride, channel_stride)
                else:
                    erase_bytes(self, normalise, one.width, y, colour, &noise, <char*>slot + at,
                                pixel_stride, channel_stride)


# Normal numbers one after the other.
cdef struct Noise:
    uint64_t key
    uint32_t block          # the next one
    int used
    float ready[NOISE_AT_ONCE]


cdef inline float next_noise(Noise* noise) noexcept nogil:
    if noise.used == NOISE_AT_ONCE:
        noise_block(quantiles, noise.key, noise.block, noise.ready)
        noise.block += 1
        noise.used = 0
    noise.used += 1
    return noise.ready[noise.used - 1]


cdef void erase_floats(Eraser eraser, const normalise_recipe* normalise, int width,
                       const float* colour, Noise* noise, void* slot, ptrdiff_t at,
                       ptrdiff_t pixel_stride, ptrdiff_t channel_stride) noexcept nogil:
    """Erase one row of a rectangle of floats."""
    cdef int c, _
    cdef float value
    cdef ptrdiff_t position
    for c in range(eraser.channels):
        value = 0
        if eraser.kind == ERASING_LEVEL:
            value = ((eraser.level - normalise.mean[c]) * normalise.factor[c]
                     + normalise.offset[c])
        elif eraser.kind == ERASING_COLOUR:
            value = colour[c]
        position = at + c * channel_stride
        for _ in range(width):
            if eraser.kind == ERASING_PIXEL:
                value = next_noise(noise)
            normalise_store_float(normalise.dtype, slot, position, value)
            position += pixel_stride


cdef void erase_bytes(Eraser eraser, const normalise_recipe* normalise, int width, int y,
                      const float* colour, Noise* noise, char* row, ptrdiff_t pixel_stride,
                      ptrdiff_t channel_stride) noexcept nogil:
    """Erase one row of a rectangle of uint8 or int8: pixels, written as all others are."""
    cdef int c, x
    cdef float value
    for x in range(width):
        for c in range(eraser.channels):
            value = eraser.mean[c]
            if eraser.kind == ERASING_LEVEL:
                value = eraser.level
            elif eraser.kind == ERASING_COLOUR:
                value += eraser.deviation[c] * colour[c]
            elif eraser.kind == ERASING_PIXEL:
                value += eraser.deviation[c] * next_noise(noise)
            value = min(max(value, <float>0), <float>255)
            eraser.row[x * eraser.channels + c] = <uint8_t>rint(value)
    normalise_row(normalise, eraser.row, width, y, False, row, pixel_stride, channel_stride)
