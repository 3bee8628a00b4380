/* Row kernels of the resampler: one source row across, several rows down to one target row.
 *
 * They read and write whole rows, know no geometry and keep no state; `index` counts bytes.  This is
 * the definition of the results; resample_simd.h repeats them faster.  `across` reads up to
 * RESAMPLE_SLACK bytes beyond the last source pixel (any values, they get weight 0) and writes up to
 * RESAMPLE_SLACK bytes beyond the last target value; `down` writes exactly n values.
 */
#ifndef RECORDIO_RESAMPLE_ROWS_H
#define RECORDIO_RESAMPLE_ROWS_H

#include <stdint.h>
#include <string.h>

#include "pixel.h"
#include "resample_tables.h"
#include "simd.h"

enum { RESAMPLE_SLACK = 64 };

/* ---- nearest ---- */

static void resample_pick(const uint8_t* row, const int32_t* index, int count, int channels, uint8_t* out) {
    if (channels == 1)
        for (int i = 0; i < count; i++)
            out[i] = row[index[i]];
    else if (channels == 3)
        for (int i = 0; i < count; i++)
            memcpy(out + 3 * (ptrdiff_t)i, row + index[i], 3);
    else
        for (int i = 0; i < count; i++)
            memcpy(out + 4 * (ptrdiff_t)i, row + index[i], 4);
}

/* ---- bilinear: rows of int16, the sum of 11-bit products without its four lowest bits ---- */

SIMD_INLINE void resample_across_bilinear_n(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                            int count, int channels, int16_t* out) {
    for (int i = 0; i < count; i++, weight += 2, out += channels) {
        const uint8_t* s = row + index[i];
        for (int c = 0; c < channels; c++)
            out[c] = (int16_t)((s[c] * weight[0] + s[c + channels] * weight[1]) >> 4);
    }
}

static void resample_across_bilinear(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                     int count, int channels, int16_t* out) {
    if (channels == 3)
        resample_across_bilinear_n(row, index, weight, count, 3, out);
    else if (channels == 1)
        resample_across_bilinear_n(row, index, weight, count, 1, out);
    else
        resample_across_bilinear_n(row, index, weight, count, 4, out);
}

/* The two products are cut to 16 bits one by one, as a multiply-high instruction does. */
SIMD_INLINE void resample_down_bilinear(const int16_t* a, const int16_t* b, const int16_t* weight, int n,
                                        uint8_t* out) {
    const int wa = weight[0], wb = weight[1];
    for (int i = 0; i < n; i++)
        out[i] = (uint8_t)((((wa * a[i]) >> 16) + ((wb * b[i]) >> 16) + 2) >> 2);
}

/* ---- cubic and Lanczos: rows of int32, the whole sum of products ---- */

SIMD_INLINE void resample_across_taps_n(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                        int count, int channels, int taps, int32_t* out) {
    for (int i = 0; i < count; i++, weight += taps, out += channels) {
        const uint8_t* s = row + index[i];
        for (int c = 0; c < channels; c++) {
            int sum = 0;
            for (int k = 0; k < taps; k++)
                sum += s[c + k * channels] * weight[k];
            out[c] = sum;
        }
    }
}

SIMD_INLINE void resample_across_taps(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                      int count, int channels, int taps, int32_t* out) {
    if (taps == 4) {
        if (channels == 3)
            resample_across_taps_n(row, index, weight, count, 3, 4, out);
        else if (channels == 1)
            resample_across_taps_n(row, index, weight, count, 1, 4, out);
        else
            resample_across_taps_n(row, index, weight, count, 4, 4, out);
    } else {
        if (channels == 3)
            resample_across_taps_n(row, index, weight, count, 3, 8, out);
        else if (channels == 1)
            resample_across_taps_n(row, index, weight, count, 1, 8, out);
        else
            resample_across_taps_n(row, index, weight, count, 4, 8, out);
    }
}

/* Sums of 22-bit weights over 8-bit pixels stay below 2^31 for both kernels. */
SIMD_INLINE void resample_down_taps(const int32_t* const* rows, const int16_t* weight, int taps, int n,
                                    uint8_t* out) {
    const int half = 1 << (2 * RESAMPLE_WEIGHT_BITS - 1);
    if (taps == 4) {
        const int32_t *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
        const int w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];
        for (int i = 0; i < n; i++)
            out[i] = pixel_saturate((r0[i] * w0 + r1[i] * w1 + r2[i] * w2 + r3[i] * w3 + half) >>
                                    (2 * RESAMPLE_WEIGHT_BITS));
    } else {
        const int32_t *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
        const int32_t *r4 = rows[4], *r5 = rows[5], *r6 = rows[6], *r7 = rows[7];
        const int w0 = weight[0], w1 = weight[1], w2 = weight[2], w3 = weight[3];
        const int w4 = weight[4], w5 = weight[5], w6 = weight[6], w7 = weight[7];
        for (int i = 0; i < n; i++) {
            const int upper = r0[i] * w0 + r1[i] * w1 + r2[i] * w2 + r3[i] * w3;
            const int lower = r4[i] * w4 + r5[i] * w5 + r6[i] * w6 + r7[i] * w7;
            out[i] = pixel_saturate((upper + lower + half) >> (2 * RESAMPLE_WEIGHT_BITS));
        }
    }
}

/* ---- area ---- */

/* Both factors 2: halves round up. */
static void resample_halve(const uint8_t* a, const uint8_t* b, int count, int channels, uint8_t* out) {
    for (int i = 0; i < count; i++, a += 2 * channels, b += 2 * channels, out += channels)
        for (int c = 0; c < channels; c++)
            out[c] = (uint8_t)((a[c] + a[c + channels] + b[c] + b[c + channels] + 2) >> 2);
}

/* Other whole factors: the sums of the columns first, then of boxes of them; halves round to even. */
SIMD_INLINE void resample_add_row(const uint8_t* row, int n, int32_t* sums) {
    for (int i = 0; i < n; i++)
        sums[i] += row[i];
}

static void resample_finish_boxes(const int32_t* sums, int count, int channels, int factor_x, int factor_y,
                                  uint8_t* out) {
    const float share = 1.f / (float)(factor_x * factor_y);
    for (int i = 0; i < count; i++, sums += (ptrdiff_t)factor_x * channels, out += channels)
        for (int c = 0; c < channels; c++) {
            int sum = 0;
            for (int k = 0; k < factor_x; k++)
                sum += sums[c + (ptrdiff_t)k * channels];
            out[c] = pixel_saturate((int)pixel_round((float)sum * share));
        }
}

/* Any factor: weighted sums in float32, pixel after pixel in the order of the list. */
SIMD_INLINE void resample_across_cells(const uint8_t* row, const int32_t* from, const int32_t* index,
                                       const float* weight, int count, int channels, float* out) {
    for (int i = 0; i < count; i++, out += channels) {
        for (int c = 0; c < channels; c++) {
            float sum = 0;
            for (int k = from[i]; k < from[i + 1]; k++)
                sum += (float)row[index[k] + c] * weight[k];
            out[c] = sum;
        }
    }
}

SIMD_INLINE void resample_add_scaled(const float* row, float weight, int n, float* sums) {
    for (int i = 0; i < n; i++)
        sums[i] += weight * row[i];
}

SIMD_INLINE void resample_finish_cells(const float* sums, int n, uint8_t* out) {
    for (int i = 0; i < n; i++)
        out[i] = pixel_saturate((int)pixel_round(sums[i]));
}

#endif
