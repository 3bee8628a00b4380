/* One row of a warp: where its pixels come from, what is mixed there, and what is seen outside the image.
 *
 * This is the definition of the results; warp_simd.h repeats the parts inside the image faster.
 * Positions are whole numbers of 1/32 pixel.  Bilinear weights are products of two such fractions;
 * cubic and Lanczos weights come from a table of 32 x 32 positions, as in OpenCV's remap.
 */
#ifndef RECORDIO_WARP_ROWS_H
#define RECORDIO_WARP_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pixel.h"
#include "resample_tables.h"
#include "simd.h"

enum {
    WARP_FRACTIONS = 32,        /* positions of a target pixel between two source pixels */
    WARP_CHUNK = 256,           /* target pixels whose positions are kept at a time */
    WARP_LINEAR_BITS = 10,      /* bilinear weights sum to 2^10 */
    WARP_TABLE_BITS = 15,       /* the weights of a table to 2^15 */
    WARP_LARGEST_SIDE = 1 << 20 /* pixels of a source or target side whose positions fit */
};

typedef struct {
    const uint8_t* pixels; /* first pixel of a rectangle of the source image */
    ptrdiff_t stride;      /* bytes from row to row of it */
    int x, y;              /* where the rectangle lies in the image */
    int width, height;     /* it has to hold what warp_bounds asks for; beyond it is fill */
    int image_width, image_height;
    int channels;            /* 1, 3 or 4 */
    double inverse[6];       /* target (x, y) -> source: m0 * x + m1 * y + m2, m3 * x + m4 * y + m5 */
    int method;              /* RESAMPLE_*; area means bilinear */
    const int16_t* weights;  /* what warp_fill_weights makes for cubic and Lanczos; else not read */
    uint8_t fill[4];         /* outside the image */
    const int32_t* steps[2]; /* set by warp_prepare; NULL works too, but rows then take longer */
    int steps_begin;         /* target column of their first entry */
} warp_source;

static int warp_taps(int method) {
    return method == RESAMPLE_NEAREST ? 1 : resample_taps(method);
}

/* ---- weights ---- */

/* Numbers of a table: for every position (y, then x) taps rows of taps weights. */
static SIMD_UNUSED size_t warp_weights_size(int method) {
    const int taps = warp_taps(method);
    return (size_t)WARP_FRACTIONS * WARP_FRACTIONS * taps * taps;
}

/* Rounding leaves sums that differ a little from 2^15: the largest or smallest of four weights (those
   beyond the middle, where OpenCV looks) takes the difference. */
static void warp_correct_sum(int16_t* w, int taps) {
    const int middle = taps / 2 * (taps + 1);
    int sum = 0, largest = middle, smallest = middle;
    for (int k = 0; k < taps * taps; k++)
        sum += w[k];
    for (int row = 0; row < 2; row++)
        for (int k = middle + row * taps; k < middle + row * taps + 2; k++) {
            if (w[k] < w[smallest])
                smallest = k;
            else if (w[k] > w[largest])
                largest = k;
        }
    const int surplus = sum - (1 << WARP_TABLE_BITS);
    if (surplus < 0) w[largest] = (int16_t)(w[largest] - surplus);
    if (surplus > 0) w[smallest] = (int16_t)(w[smallest] - surplus);
}

/* Fills warp_weights_size(method) numbers; method is cubic or Lanczos. */
static SIMD_UNUSED void warp_fill_weights(int method, int16_t* weights) {
    const int taps = warp_taps(method);
    float one[WARP_FRACTIONS][RESAMPLE_MOST_TAPS];
    for (int i = 0; i < WARP_FRACTIONS; i++) {
        const float fraction = (float)i / WARP_FRACTIONS;
        if (method == RESAMPLE_CUBIC)
            resample_cubic_weights(fraction, one[i]);
        else
            resample_lanczos_weights(fraction, one[i]);
    }
    for (int i = 0; i < WARP_FRACTIONS * WARP_FRACTIONS; i++, weights += taps * taps) {
        const float *down = one[i / WARP_FRACTIONS], *across = one[i % WARP_FRACTIONS];
        for (int k = 0; k < taps * taps; k++) {
            const float product = down[k / taps] * across[k % taps] * (1 << WARP_TABLE_BITS);
            weights[k] = (int16_t)resample_clamp((int)pixel_round(product), INT16_MIN, INT16_MAX);
        }
        warp_correct_sum(weights, taps);
    }
}

/* ---- positions ---- */

/* Rounds half to even below 2^51; larger values, which are beyond every image, to some neighbour. */
#define WARP_MAGIC 6755399441055744.0 /* 1.5 * 2^52: above it float64 has no fractions */
SIMD_INLINE double warp_round(double value) {
    return (value + WARP_MAGIC) - WARP_MAGIC;
}

/* OpenCV rounds the part that the column contributes and the part that the row contributes to
   1/1024 pixel each, and cuts their sum to 1/32.  It adds in 32 bits, which may overflow for matrices
   that shrink an image to almost nothing; float64 does not, and positions that are far outside stay
   there.  (Not a number becomes far outside.) */
SIMD_INLINE double warp_part(double coordinate) {
    return warp_round(coordinate * 1024);
}

SIMD_INLINE int32_t warp_position(double sum) {
    const double most = 2147483520.0;
    sum = sum > -most ? sum : -most;
    sum = sum < most ? sum : most;
    return (int32_t)sum >> 5;
}

SIMD_INLINE int warp_adds_safely(double part) {
    return part > -1073741824.0 && part < 1073741824.0;
}

/* What a row contributes to the position along an axis (row 0 or 3 of the matrix), in 1/1024 pixel. */
SIMD_INLINE double warp_row_part(const warp_source* source, int axis, int y) {
    const double* m = source->inverse + 3 * axis;
    return warp_part(m[1] * y + m[2]) + (source->method == RESAMPLE_NEAREST ? 512 : 16);
}

SIMD_INLINE void warp_locate_axis(double step, double row_part, int x0, int count, int32_t* positions) {
    for (int i = 0; i < count; i++)
        positions[i] = warp_position(row_part + warp_part(step * (x0 + i)));
}

/* The parts of the columns [x0, x0 + count) are the same in all rows; steps has room for 2 * count.
   Parts that might overflow when they are added in 32 bits are left to warp_locate_axis. */
static SIMD_UNUSED void warp_prepare(warp_source* source, int x0, int count, int32_t* steps) {
    source->steps_begin = x0;
    for (int axis = 0; axis < 2; axis++, steps += count) {
        const double step = source->inverse[3 * axis];
        const double first = warp_part(step * x0), last = warp_part(step * (x0 + count - 1));
        source->steps[axis] = warp_adds_safely(first) && warp_adds_safely(last) ? steps : NULL;
        if (source->steps[axis] != NULL)
            for (int i = 0; i < count; i++)
                steps[i] = (int32_t)warp_part(step * (x0 + i));
    }
}

static void warp_locate(const warp_source* source, int axis, int x0, int count, int y, int32_t* positions) {
    const double row_part = warp_row_part(source, axis, y);
    if (source->steps[axis] != NULL && warp_adds_safely(row_part)) {
        const int32_t *steps = source->steps[axis] + (x0 - source->steps_begin), part = (int32_t)row_part;
        for (int i = 0; i < count; i++)
            positions[i] = (part + steps[i]) >> 5;
    } else {
        warp_locate_axis(source->inverse[3 * axis], row_part, x0, count, positions);
    }
}

/* Column and row, counted in the rectangle, of the first of the taps. */
SIMD_INLINE int warp_first(int32_t position, int origin, int taps) {
    return (position >> 5) - (taps > 1 ? taps / 2 - 1 : 0) - origin;
}

SIMD_INLINE int warp_table_entry(int32_t px, int32_t py) {
    return (py & (WARP_FRACTIONS - 1)) * WARP_FRACTIONS + (px & (WARP_FRACTIONS - 1));
}

SIMD_INLINE uint8_t warp_finish(int sum, int bits) {
    return (uint8_t)resample_clamp((sum + (1 << (bits - 1))) >> bits, 0, 255);
}

/* ---- at and beyond the edges: every tap is looked at ---- */

static void warp_border(const warp_source* source, const int32_t* px, const int32_t* py, int count,
                        uint8_t* out) {
    const int channels = source->channels, taps = warp_taps(source->method);
    const int bits = taps > 2 ? WARP_TABLE_BITS : WARP_LINEAR_BITS;
    for (int i = 0; i < count; i++, out += channels) {
        const int left = warp_first(px[i], source->x, taps), top = warp_first(py[i], source->y, taps);
        if (left <= -taps || left >= source->width || top <= -taps || top >= source->height) {
            for (int c = 0; c < channels; c++)
                out[c] = source->fill[c];
            continue;
        }
        const int fx = px[i] & (WARP_FRACTIONS - 1), fy = py[i] & (WARP_FRACTIONS - 1);
        const int16_t linear[4] = {(int16_t)((WARP_FRACTIONS - fx) * (WARP_FRACTIONS - fy)),
                                   (int16_t)(fx * (WARP_FRACTIONS - fy)),
                                   (int16_t)((WARP_FRACTIONS - fx) * fy), (int16_t)(fx * fy)};
        const int16_t nearest = 1 << WARP_LINEAR_BITS;
        const int16_t* w = taps == 1 ? &nearest
                           : taps == 2
                               ? linear
                               : source->weights + (ptrdiff_t)warp_table_entry(px[i], py[i]) * taps * taps;
        int sums[4] = {0, 0, 0, 0};
        for (int y = top; y < top + taps; y++)
            for (int x = left; x < left + taps; x++, w++) {
                const int within = x >= 0 && x < source->width && y >= 0 && y < source->height;
                const uint8_t* pixel =
                    within ? source->pixels + y * source->stride + (ptrdiff_t)x * channels : source->fill;
                for (int c = 0; c < channels; c++)
                    sums[c] += pixel[c] * *w;
            }
        for (int c = 0; c < channels; c++)
            out[c] = warp_finish(sums[c], bits);
    }
}

/* ---- inside: all taps lie in the rectangle ---- */

SIMD_INLINE const uint8_t* warp_first_pixel(const warp_source* source, int32_t px, int32_t py, int taps,
                                            int channels) {
    return source->pixels + (ptrdiff_t)warp_first(py, source->y, taps) * source->stride +
           (ptrdiff_t)warp_first(px, source->x, taps) * channels;
}

SIMD_INLINE void warp_inside_n(const warp_source* source, const int32_t* px, const int32_t* py, int count,
                               int taps, int channels, uint8_t* out) {
    const ptrdiff_t stride = source->stride;
    for (int i = 0; i < count; i++, out += channels) {
        const uint8_t* s = warp_first_pixel(source, px[i], py[i], taps, channels);
        if (taps == 1) {
            memcpy(out, s, (size_t)channels);
        } else if (taps == 2) {
            const int fx = px[i] & (WARP_FRACTIONS - 1), fy = py[i] & (WARP_FRACTIONS - 1);
            for (int c = 0; c < channels; c++) {
                const int upper = s[c] * (WARP_FRACTIONS - fx) + s[c + channels] * fx;
                const int lower = s[c + stride] * (WARP_FRACTIONS - fx) + s[c + stride + channels] * fx;
                out[c] = warp_finish(upper * (WARP_FRACTIONS - fy) + lower * fy, WARP_LINEAR_BITS);
            }
        } else {
            const int16_t* weights =
                source->weights + (ptrdiff_t)warp_table_entry(px[i], py[i]) * taps * taps;
            for (int c = 0; c < channels; c++) {
                const int16_t* w = weights;
                int sum = 0;
                for (int y = 0; y < taps; y++, w += taps)
                    for (int x = 0; x < taps; x++)
                        sum += s[c + y * stride + x * channels] * w[x];
                out[c] = warp_finish(sum, WARP_TABLE_BITS);
            }
        }
    }
}

static void warp_inside(const warp_source* source, const int32_t* px, const int32_t* py, int count,
                        uint8_t* out) {
    const int key = warp_taps(source->method) * 8 + source->channels;
#define WARP_CASE(taps, channels)                                                                            \
    case (taps) * 8 + (channels):                                                                            \
        warp_inside_n(source, px, py, count, taps, channels, out);                                           \
        break;
    switch (key) {
        WARP_CASE(1, 1)
        WARP_CASE(1, 3)
        WARP_CASE(1, 4)
        WARP_CASE(2, 1)
        WARP_CASE(2, 3)
        WARP_CASE(2, 4)
        WARP_CASE(4, 1)
        WARP_CASE(4, 3)
        WARP_CASE(4, 4)
        WARP_CASE(8, 1)
        WARP_CASE(8, 3)
        WARP_CASE(8, 4)
    }
#undef WARP_CASE
}

#endif
