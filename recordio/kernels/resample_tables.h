/* Weight tables of the resampler: which source pixels make a target pixel, and how much each counts.
 *
 * A table describes one axis.  It knows nothing about channels, rows or pixels; it never allocates.
 * Positions and weights follow OpenCV's 8-bit resize: 11-bit weights rounded half to even, positions
 * in float32 computed from doubles.
 */
#ifndef RECORDIO_RESAMPLE_TABLES_H
#define RECORDIO_RESAMPLE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "pixel.h"
#include "simd.h"

enum {
    RESAMPLE_NEAREST = 0,
    RESAMPLE_BILINEAR = 1,
    RESAMPLE_CUBIC = 2,
    RESAMPLE_AREA = 3,
    RESAMPLE_LANCZOS4 = 4
};

enum { RESAMPLE_MOST_TAPS = 8, RESAMPLE_WEIGHT_BITS = 11 };

typedef struct {
    int source;      /* pixels along this axis of the image being resized, at full resolution */
    int target;      /* pixels after the resize */
    int begin;       /* first target pixel that is wanted */
    int count;       /* how many target pixels are wanted */
    int origin;      /* where the image being resized begins in the stored image, full resolution */
    int denominator; /* 1, 2, 4, 8: the pixels pushed come from an image decoded at 1/denominator */
    int stored;      /* full-resolution size of the stored image; read when denominator > 1 */
    float low, high; /* Pillow's box for its filters, from the origin on; 0, 0 for the whole */
} resample_axis;

/* An axis expressed in decoded pixels, counted from the first one that the crop touches. */
typedef struct {
    int first;            /* that pixel, in the decoded image */
    int extent;           /* decoded pixels that the crop touches */
    int begin, count;     /* wanted target pixels */
    double scale;         /* decoded pixels per target pixel */
    double inverse_scale; /* target pixels per decoded pixel */
    double shift;         /* where the crop really begins inside decoded pixel `first`: [0, 1) */
    double end;           /* where the crop really ends, <= extent */
} resample_geometry;

static SIMD_UNUSED resample_geometry resample_geometry_of(const resample_axis* axis) {
    const int64_t d = axis->denominator;
    const int64_t end = (int64_t)axis->origin + axis->source;
    resample_geometry g;
    /* The two divisions are OpenCV's: the reciprocal of the rounded inverse decides whether a factor
       counts as an integer.  d is a power of two, so scaling by it is exact. */
    const double inverse = (double)axis->target / axis->source;
    int64_t last = (end + d - 1) / d;
    if (d > 1 && last > (axis->stored + d - 1) / d) last = (axis->stored + d - 1) / d;
    g.first = (int)(axis->origin / d);
    g.extent = (int)(last - g.first);
    g.begin = axis->begin;
    g.count = axis->count;
    g.scale = 1.0 / inverse / (double)d;
    g.inverse_scale = inverse * (double)d;
    g.shift = (double)(axis->origin % d) / (double)d;
    g.end = (double)end / (double)d - g.first;
    return g;
}

SIMD_INLINE int resample_floor(double value) {
    const int truncated = (int)value;
    return truncated - (truncated > value);
}

SIMD_INLINE int resample_ceil(double value) {
    const int truncated = (int)value;
    return truncated + (truncated < value);
}

SIMD_INLINE int resample_clamp(int value, int low, int high) {
    return value < low ? low : value > high ? high : value;
}

static int resample_taps(int method) {
    return method == RESAMPLE_CUBIC ? 4 : method == RESAMPLE_LANCZOS4 ? 8 : 2;
}

/* Keys' cubic convolution with a = -0.75. */
static void resample_cubic_weights(float x, float* w) {
    const float a = -0.75f;
    w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    w[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
    w[3] = 1.f - w[0] - w[1] - w[2];
}

/* Sine and cosine on [0, pi/4] by their power series: C libraries differ in the last bit. */
static void resample_sine_cosine(double t, double* sine, double* cosine) {
    const double square = t * t;
    double s = 0, c = 0;
    for (int k = 18; k >= 2; k -= 2) {
        c = (1 - c) * square / ((double)k * (k - 1));
        s = (1 - s) * square / ((double)k * (k + 1));
    }
    *sine = t * (1 - s);
    *cosine = 1 - c;
}

/* sinc(p) * sinc(p / 4) at the eight distances p = x + 3 - k, normalised to sum 1.  sin(pi p) is the
   same for all taps except for the sign, so only sin(pi p / 4) has to be turned from tap to tap. */
static void resample_lanczos_weights(float x, float* w) {
    static const double turn[8][2] = {{1, 0},  {-0.70710678118654752, -0.70710678118654752},
                                      {0, 1},  {0.70710678118654752, -0.70710678118654752},
                                      {-1, 0}, {0.70710678118654752, 0.70710678118654752},
                                      {0, -1}, {-0.70710678118654752, 0.70710678118654752}};
    const double quarter = 0.78539816339744831; /* pi / 4 */
    double sine, cosine;
    float sum = 0;
    const float whole = x + 3; /* OpenCV rounds this sum to float32 */
    resample_sine_cosine(((double)whole - 3) * quarter, &sine, &cosine);
    const double sine3 = -0.70710678118654752 * (cosine - sine);   /* sin(-(x + 3) pi / 4) */
    const double cosine3 = -0.70710678118654752 * (cosine + sine); /* cos(-(x + 3) pi / 4) */
    for (int k = 0; k < 8; k++) {
        const float p = whole - k;
        if (p < 1e-6f && p > -1e-6f) {
            w[k] = 1e30f; /* drowns the others: the weight becomes 1 */
        } else {
            const double y = p * quarter;
            w[k] = (float)((turn[k][0] * sine3 + turn[k][1] * cosine3) / (y * y));
        }
        sum += w[k];
    }
    sum = 1.f / sum;
    for (int k = 0; k < 8; k++)
        w[k] *= sum;
}

/* Target pixel t is the sum of taps pixels beginning at the one returned (which may lie outside
   [0, extent)), with 11-bit weights.  spread: bilinear as area uses it when an axis grows, where a
   source pixel keeps its value over the whole of its cell and only the cell's end is blended. */
static int resample_weights(const resample_geometry* g, int method, int spread, int t, int16_t* w) {
    const int taps = resample_taps(method);
    float x, weights[RESAMPLE_MOST_TAPS];
    int position;
    if (!spread) {
        x = (float)((t + 0.5) * g->scale + g->shift - 0.5);
        position = resample_floor(x);
        x -= (float)position;
    } else {
        position = resample_floor(t * g->scale + g->shift);
        x = (float)((t + 1) - (position + 1 - g->shift) * g->inverse_scale);
        x = x <= 0 ? 0.f : x - (float)resample_floor(x);
    }
    if (method == RESAMPLE_CUBIC)
        resample_cubic_weights(x, weights);
    else if (method == RESAMPLE_LANCZOS4)
        resample_lanczos_weights(x, weights);
    else
        weights[0] = 1.f - x, weights[1] = x;
    for (int k = 0; k < taps; k++)
        w[k] = (int16_t)pixel_round(weights[k] * (1 << RESAMPLE_WEIGHT_BITS));
    return position - taps / 2 + 1;
}

/* Columns.  Taps beyond an edge count for the edge pixel: their weights are added to its weight, so
   that index[i] .. index[i] + taps - 1 lie inside (when extent < taps, surplus weights are 0). */
static SIMD_UNUSED void resample_columns(const resample_geometry* g, int method, int spread, int32_t* index,
                                         int16_t* weight) {
    const int taps = resample_taps(method), last = g->extent - 1;
    const int last_index = last - taps + 1 > 0 ? last - taps + 1 : 0;
    for (int i = 0; i < g->count; i++, weight += taps) {
        const int position = resample_weights(g, method, spread, g->begin + i, weight);
        const int start = resample_clamp(position, 0, last_index);
        index[i] = start;
        if (position < 0 || position + taps - 1 > last) {
            int16_t inside[RESAMPLE_MOST_TAPS] = {0};
            if (taps == 2) /* both taps on one pixel: OpenCV gives it the full weight */
                inside[resample_clamp(position, 0, last) - start] = 1 << RESAMPLE_WEIGHT_BITS;
            else
                for (int k = 0; k < taps; k++)
                    inside[resample_clamp(position + k, 0, last) - start] += weight[k];
            for (int k = 0; k < taps; k++)
                weight[k] = inside[k];
        }
    }
}

/* Rows.  Every tap keeps its own row number, because bilinear rounds each product by itself. */
static SIMD_UNUSED void resample_lines(const resample_geometry* g, int method, int spread, int32_t* index,
                                       int16_t* weight) {
    const int taps = resample_taps(method);
    for (int i = 0; i < g->count; i++, weight += taps, index += taps) {
        const int position = resample_weights(g, method, spread, g->begin + i, weight);
        for (int k = 0; k < taps; k++)
            index[k] = resample_clamp(position + k, 0, g->extent - 1);
    }
}

/* Nearest: the pixel that holds the target pixel's left edge.  denominator is the axis's own. */
static SIMD_UNUSED void resample_nearest(const resample_axis* axis, int32_t* index) {
    const double scale = 1.0 / ((double)axis->target / axis->source);
    const int first = axis->origin / axis->denominator;
    for (int i = 0; i < axis->count; i++) {
        int position = resample_floor((axis->begin + i) * scale);
        if (position > axis->source - 1) position = axis->source - 1;
        index[i] = (axis->origin + position) / axis->denominator - first;
    }
}

/* Area: target pixel begin + i is the sum of the pixels from[i] .. from[i + 1] - 1 of the lists. */
static SIMD_UNUSED int resample_cells(const resample_geometry* g, int32_t* from, int32_t* index,
                                      float* weight) {
    int n = 0;
    for (int i = 0; i < g->count; i++) {
        const double left = (g->begin + i) * g->scale + g->shift, right = left + g->scale;
        const double size = g->scale < g->end - left ? g->scale : g->end - left;
        int end = resample_floor(right), start = resample_ceil(left);
        if (end > g->extent - 1) end = g->extent - 1;
        if (start > end) start = end;
        from[i] = n;
        if (start - left > 1e-3) {
            index[n] = start - 1;
            weight[n++] = (float)((start - left) / size);
        }
        for (int k = start; k < end; k++) {
            index[n] = k;
            weight[n++] = (float)(1.0 / size);
        }
        if (right - end > 1e-3) {
            double part = right - end < 1. ? right - end : 1.;
            if (part > size) part = size;
            index[n] = end;
            weight[n++] = (float)(part / size);
        }
    }
    from[g->count] = n;
    return n;
}

/* Room that resample_cells needs in its lists. */
static SIMD_UNUSED int64_t resample_cells_most(const resample_geometry* g) {
    return (int64_t)g->count * ((int64_t)g->scale + 3);
}

#endif
