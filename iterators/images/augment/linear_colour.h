/* Colour as one affine map of RGB: out = matrix * (r, g, b) + offset, in float32, never fused.
 *
 * Brightness, contrast, saturation, hue, noise, greying and normalisation are affine maps each, so any
 * sequence of them is one, and nothing is rounded or cut off in between.  What a map is made of is
 * decided elsewhere; this applies it to rows of pixels and tells the mean that a contrast needs.
 */
#ifndef ITERATORS_LINEAR_COLOUR_H
#define ITERATORS_LINEAR_COLOUR_H

#include <stddef.h>
#include <stdint.h>

#include "recordio/kernels/normalise_rows.h"

typedef struct {
    float matrix[3][3]; /* rows: red, green, blue of the result */
    float offset[3];
} linear_colour;

/* Adds the values of each channel of `count` RGB pixels to `sums`. */
static SIMD_UNUSED void linear_colour_sums(const uint8_t* pixels, ptrdiff_t count, int64_t sums[3]) {
    /* Runs short enough for 32-bit sums, which the compiler can keep in vectors. */
    while (count > 0) {
        const int run = count < 1 << 16 ? (int)count : 1 << 16;
        uint32_t red = 0, green = 0, blue = 0;
        for (int i = 0; i < run; i++) {
            red += pixels[3 * i];
            green += pixels[3 * i + 1];
            blue += pixels[3 * i + 2];
        }
        sums[0] += red;
        sums[1] += green;
        sums[2] += blue;
        pixels += 3 * (ptrdiff_t)run;
        count -= run;
    }
}

/* Writes one row of `width` RGB pixels to its slot in a batch; strides are in elements. */
static SIMD_UNUSED void linear_colour_row(const linear_colour* colour, int dtype, const uint8_t* row,
                                          int width, int mirror, void* slot_row, ptrdiff_t pixel_stride,
                                          ptrdiff_t channel_stride) {
    for (int c = 0; c < 3; c++) {
        const float red = colour->matrix[c][0], green = colour->matrix[c][1], blue = colour->matrix[c][2];
        const float offset = colour->offset[c];
        const ptrdiff_t step = mirror ? -pixel_stride : pixel_stride;
        ptrdiff_t at = c * channel_stride + (mirror ? (width - 1) * pixel_stride : 0);
        for (int x = 0; x < width; x++, at += step) {
            const float value = red * row[3 * x] + green * row[3 * x + 1] + blue * row[3 * x + 2] + offset;
            normalise_store_float(dtype, slot_row, at, value);
        }
    }
}

#endif
