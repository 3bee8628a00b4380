/* One row of pixels of more than 8 bits into its slot in a batch, in any layout: uint16 or float32.
 *
 *   floats    (x - mean) * factor + offset, three float32 operations, never fused
 *   uint16    x, if it is a whole number from 0 to 65535
 *
 * mirror writes the pixels from right to left; a mean image is read at the position before that.
 */
#ifndef RECORDIO_NORMALISE_DEEP_H
#define RECORDIO_NORMALISE_DEEP_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "normalise_rows.h"
#include "simd.h"

/* sample and type are constants of each caller. */
SIMD_INLINE int normalise_deep_as(const normalise_recipe* recipe, const uint8_t* row, int sample, int width,
                                  int y, int mirror, void* slot, ptrdiff_t pixel_stride,
                                  ptrdiff_t channel_stride, int type) {
    const int channels = recipe->channels;
    int lost = 0;
    for (int c = 0; c < channels; c++) {
        const float* means = normalise_means(recipe, c, y);
        for (int x = 0; x < width; x++) {
            const ptrdiff_t at = (mirror ? width - 1 - x : x) * pixel_stride + c * channel_stride;
            const uint8_t* pixel = row + ((ptrdiff_t)x * channels + c) * sample;
            uint16_t whole = 0;
            float value;
            if (sample == 2) {
                memcpy(&whole, pixel, 2);
                value = (float)whole;
            } else {
                memcpy(&value, pixel, 4);
            }
            if (type != NORMALISE_UINT16) {
                const float mean = means != NULL ? means[x] : recipe->mean[c];
                normalise_store_float(type, slot, at, (value - mean) * recipe->factor[c] + recipe->offset[c]);
                continue;
            }
            if (sample == 4) {
                whole = value >= 0.f && value <= 65535.f ? (uint16_t)value : 0;
                lost |= (float)whole != value;
            }
            ((uint16_t*)slot)[at] = whole;
        }
    }
    return lost;
}

/* Writes the pixels of one row of `sample` bytes for each channel: 2 for uint16 or 4 for float32.  Not 0 if a
 * value cannot be stored.  The type of the batch is uint16 or one of the floats; the rest is as for
 * normalise_row. */
static SIMD_UNUSED int normalise_deep_row(const normalise_recipe* recipe, const uint8_t* row, int sample,
                                          int width, int y, int mirror, void* slot_row,
                                          ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
#define NORMALISE_DEEP(sample, type)                                                                         \
    normalise_deep_as(recipe, row, sample, width, y, mirror, slot_row, pixel_stride, channel_stride, type)
    if (recipe->dtype == NORMALISE_UINT16)
        return sample == 2 ? NORMALISE_DEEP(2, NORMALISE_UINT16) : NORMALISE_DEEP(4, NORMALISE_UINT16);
    if (recipe->dtype == NORMALISE_FLOAT32)
        return sample == 2 ? NORMALISE_DEEP(2, NORMALISE_FLOAT32) : NORMALISE_DEEP(4, NORMALISE_FLOAT32);
    return NORMALISE_DEEP(sample, recipe->dtype);
#undef NORMALISE_DEEP
}

#endif
