/* Colour changes on rows of uint8 RGB, in place: what MXNet's jitter, HLS and PCA steps do.
 *
 * Every step rounds and saturates to uint8, halves to even.  Grey is computed as MXNet does, with the
 * weights of red and blue exchanged.  Nothing here draws random numbers or converts other colour
 * orders, and every machine gives the same bytes.
 */
#ifndef RECORDIO_COLOUR_H
#define RECORDIO_COLOUR_H

#include <stdint.h>

#include "colour_rows.h"
#include "simd.h"

/* n values become x * factor. */
static SIMD_UNUSED void colour_brightness(uint8_t* row, int n, float factor) {
    colour_scale_at(simd_level(SIMD_LEVEL_AVX2), row, n, factor, 0.f);
}

/* Sum of the grey values of a row; the mean over all rows goes into colour_contrast_offset. */
static SIMD_UNUSED int64_t colour_grey_sum(const uint8_t* row, int width) {
    return colour_grey_sum_at(simd_level(SIMD_LEVEL_AVX2), row, width);
}

/* The amount that contrast adds to every value of an image of `pixels` pixels with this sum of greys. */
static SIMD_UNUSED float colour_contrast_offset(float factor, int64_t grey_sum, int64_t pixels) {
    return (float)((double)(1.f - factor) * ((double)grey_sum * (1.0 / (double)pixels)));
}

/* n values become x * factor + offset. */
static SIMD_UNUSED void colour_contrast(uint8_t* row, int n, float factor, float offset) {
    colour_scale_at(simd_level(SIMD_LEVEL_AVX2), row, n, factor, offset);
}

/* Pixels become x * factor + grey * (1 - factor). */
static SIMD_UNUSED void colour_saturation(uint8_t* row, int width, float factor) {
    colour_saturation_at(simd_level(SIMD_LEVEL_AVX2), row, width, factor);
}

/* Adds to hue (0 .. 180), lightness and saturation (0 .. 255) and clamps; hue does not wrap round.
   The shifts must lie within -1000 .. 1000. */
static SIMD_UNUSED void colour_hls(uint8_t* row, int width, int dh, int dl, int ds) {
    colour_hls_at(simd_level(SIMD_LEVEL_AVX512), row, width, dh, dl, ds);
}

/* Adds one number to every channel and cuts the fraction off. */
static SIMD_UNUSED void colour_lighting(uint8_t* row, int width, const float delta[3]) {
    colour_lighting_at(simd_level(SIMD_LEVEL_AVX2), row, width, delta);
}

#endif
