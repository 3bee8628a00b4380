/* One row of interleaved uint8 pixels into its slot in a batch, in any layout and element type.
 *
 *   float32   ((float)x - mean) * factor + offset, three float32 operations, never fused
 *   float16   the float32 value rounded to nearest even
 *   uint8     x, and uint16 as well
 *   int8      x - round(mean), cut to -128 .. 127; halves round away from zero
 *
 * mirror writes the pixels from right to left; a mean image is read at the position before that.
 * It never allocates, never draws random numbers and gives the same bytes on every machine.
 */
#ifndef RECORDIO_NORMALISE_H
#define RECORDIO_NORMALISE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "normalise_rows.h"
#include "normalise_simd.h"
#include "simd.h"

/* As normalise_row, with at most the given instruction set; tests compare the levels. */
static void normalise_row_at(int limit, const normalise_recipe* recipe, const uint8_t* row, int width, int y,
                             int mirror, void* slot_row, ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
    const int channels = recipe->channels;
    const int done = normalise_fast(simd_level(limit), recipe, row, width, y, mirror, slot_row, pixel_stride,
                                    channel_stride);
    for (int c = 0; c < channels && done < width; c++) {
        const float* means = normalise_means(recipe, c, y);
        for (int x = done; x < width; x++) {
            const ptrdiff_t at = (mirror ? width - 1 - x : x) * pixel_stride + c * channel_stride;
            const float mean = means != NULL ? means[x] : recipe->mean[c];
            normalise_store(recipe, c, row[(ptrdiff_t)x * channels + c], mean, slot_row, at);
        }
    }
}

/* Writes the pixels of one row.
 *
 * row          width * channels bytes
 * y            number of the row in the image, for the mean image
 * slot_row     element (channel 0, row y, pixel 0) of the sample
 * strides      in elements of the batch's type
 *
 * A mean image must have at least y + 1 rows of at least width pixels.
 */
static SIMD_UNUSED void normalise_row(const normalise_recipe* recipe, const uint8_t* row, int width, int y,
                                      int mirror, void* slot_row, ptrdiff_t pixel_stride,
                                      ptrdiff_t channel_stride) {
    normalise_row_at(SIMD_LEVEL_AVX2, recipe, row, width, y, mirror, slot_row, pixel_stride, channel_stride);
}

/* Whether normalise_row writes such rows past the caches: asking for their memory ahead would only
 * cost.  After the last row of a sample, normalise_done makes them visible to other threads. */
static SIMD_UNUSED int normalise_streams(const normalise_recipe* recipe, int width, const void* slot_row,
                                         ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
#if SIMD_X86
    return simd_level(SIMD_LEVEL_AVX2) >= SIMD_LEVEL_AVX2 && normalise_has_float16() &&
           normalise_whole_lines(recipe, width, slot_row, pixel_stride, channel_stride);
#else
    (void)recipe, (void)width, (void)slot_row, (void)pixel_stride, (void)channel_stride;
    return 0;
#endif
}

static SIMD_UNUSED void normalise_done(void) {
#if SIMD_X86
    _mm_sfence();
#endif
}

#endif
