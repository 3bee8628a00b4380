/* Images moved by an affine map within their own size, as Pillow's Image.transform(AFFINE) does.
 *
 * A pixel (x, y) of the result is what lies at matrix * (x + 0.5, y + 0.5, 1) of the image.  Which pixels
 * lie inside and which are filled is decided as there, to the bit; nearest gives the same bytes, and
 * bilinear and bicubic the same within one level, because positions are whole numbers of 2^-32 and
 * weights of 2^-11 or float32 here.  (`warp.h` is OpenCV's arithmetic, for MXNet's warp.)
 */
#ifndef ITERATORS_AFFINE_H
#define ITERATORS_AFFINE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pixel.h"
#include "simd.h"
#include "vectors.h"

enum { AFFINE_NEAREST = 0, AFFINE_BILINEAR = 1, AFFINE_BICUBIC = 2 };
enum { AFFINE_LARGEST_SIDE = 32767 };

typedef struct {
    double matrix[6];
    int method;
    uint8_t fill[4];
} affine_map;

typedef struct {
    const uint8_t* pixels; /* with PIXEL_SLACK bytes that can be read behind them */
    int width;
    int height;
    int channels;
} affine_image;

/* ---- which columns of a row lie inside ---- */

/* A coordinate of column x of a row, in Pillow's order of operations. */
SIMD_INLINE double affine_at(double slope, double across, double offset, int x) {
    return slope * (x + 0.5) + across + offset;
}

/* Shrinks [*first, *last) to the columns whose coordinate lies in [0, limit). */
static SIMD_UNUSED void affine_inside(double slope, double across, double offset, int limit, int* first,
                                      int* last) {
    int begin = *first, end = *last;
    if (slope == 0) {
        const double coordinate = affine_at(slope, across, offset, begin);
        if (!(coordinate >= 0 && coordinate < limit)) *last = begin;
        return;
    }
    /* A guess by division, mended by looking. */
    const double zero = (0 - across - offset) / slope, high = (limit - across - offset) / slope;
    const double low_x = (zero < high ? zero : high) - 0.5, high_x = (zero < high ? high : zero) + 0.5;
    begin = low_x <= begin ? begin : low_x >= end ? end : (int)low_x;
    end = high_x >= end ? end : high_x <= begin ? begin : (int)high_x;
#define AFFINE_IS_INSIDE(x)                                                                                  \
    (affine_at(slope, across, offset, x) >= 0 && affine_at(slope, across, offset, x) < limit)
    while (begin > *first && AFFINE_IS_INSIDE(begin - 1))
        begin--;
    while (begin < *last && begin < end && !AFFINE_IS_INSIDE(begin))
        begin++;
    if (end < begin) end = begin;
    while (end < *last && AFFINE_IS_INSIDE(end))
        end++;
    while (end > begin && !AFFINE_IS_INSIDE(end - 1))
        end--;
#undef AFFINE_IS_INSIDE
    *first = begin;
    *last = end;
}

SIMD_INLINE void affine_fill(const uint8_t* fill, int count, int channels, uint8_t* out) {
    if (channels == 1) {
        memset(out, fill[0], count);
        return;
    }
    for (int i = 0; i < count; i++)
        for (int c = 0; c < channels; c++)
            out[i * channels + c] = fill[c];
}

SIMD_INLINE int affine_clamp(int64_t value, int high) {
    return value < 0 ? 0 : value > high ? high : (int)value;
}

/* ---- nearest ---- */

/* Whole numbers of 2^-16: Pillow's. */
static inline int64_t affine_fixed(double value, double rounding) {
    return (int64_t)floor(value * 65536.0 + rounding);
}

/* Shrinks [*first, *last) to the columns at which 0 <= start + x * step < limit. */
static SIMD_UNUSED void affine_inside_fixed(int64_t start, int64_t step, int64_t limit, int* first,
                                            int* last) {
    if (step == 0) {
        if (start < 0 || start >= limit) *last = *first;
        return;
    }
    int64_t begin, end; /* of x: ceil(-start / step) and so on, without negative quotients */
    if (step > 0) {
        begin = start >= 0 ? 0 : (-start + step - 1) / step;
        end = start >= limit ? 0 : (limit - start + step - 1) / step;
    } else {
        begin = start < limit ? 0 : (start - limit) / -step + 1;
        end = start < 0 ? 0 : start / -step + 1;
    }
    if (begin > *first) *first = begin < *last ? (int)begin : *last;
    if (end < *last) *last = end > *first ? (int)end : *first;
}

/* What is wanted of the result. */
typedef struct {
    int left;
    int top;
    int width;
    int height;
} affine_window;

SIMD_INLINE void affine_nearest(const affine_map* map, const affine_image* image, const affine_window* window,
                                int channels, uint8_t* out) {
    const double* m = map->matrix;
    const int width = window->width, stride = width * channels;
    const ptrdiff_t size = (ptrdiff_t)image->width * channels;
    const int shifts = m[0] == 1 && m[3] == 0; /* rows move as they are */
    /* Pillow does not round where nothing is rotated or sheared. */
    const double rounding = m[1] == 0 && m[3] == 0 ? 0 : 0.5;
    const int64_t across = affine_fixed(m[0], rounding), down = affine_fixed(m[3], rounding);
    int64_t x_start = affine_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5, rounding);
    int64_t y_start = affine_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5, rounding);
    x_start += window->left * across + window->top * affine_fixed(m[1], rounding);
    y_start += window->left * down + window->top * affine_fixed(m[4], rounding);
    for (int y = 0; y < window->height; y++, out += stride) {
        int first = 0, last = width;
        affine_inside_fixed(x_start, across, (int64_t)image->width << 16, &first, &last);
        affine_inside_fixed(y_start, down, (int64_t)image->height << 16, &first, &last);
        affine_fill(map->fill, first, channels, out);
        affine_fill(map->fill, width - last, channels, out + last * channels);
        if (shifts && last > first) {
            memcpy(out + first * channels,
                   image->pixels + (y_start >> 16) * size + (first + (x_start >> 16)) * channels,
                   (size_t)(last - first) * channels);
        } else {
            int64_t xx = x_start + first * across, yy = y_start + first * down;
            int x = first;
            /* Four bytes at a time; what is too much is the next pixel's, which is written next. */
            for (; x < last - 1; x++, xx += across, yy += down)
                memcpy(out + x * channels, image->pixels + (yy >> 16) * size + (xx >> 16) * channels,
                       channels == 1 ? 1 : 4);
            if (x < last)
                memcpy(out + x * channels, image->pixels + (yy >> 16) * size + (xx >> 16) * channels,
                       channels);
        }
        x_start += affine_fixed(m[1], rounding);
        y_start += affine_fixed(m[4], rounding);
    }
}

/* ---- bilinear and bicubic ---- */

/* Position of a pixel of the result between pixels of the image, in whole numbers of 2^-32. */
typedef struct {
    int64_t x;
    int64_t y;
} affine_point;

SIMD_INLINE void affine_bilinear_pixel(const affine_image* image, affine_point point, int channels,
                                       uint8_t* out) {
    const int64_t x = point.x >> 32, y = point.y >> 32;
    const int right = (int)(point.x >> 21) & 2047, low = (int)(point.y >> 21) & 2047;
    const int left = 2048 - right, high = 2048 - low;
    const int x0 = affine_clamp(x, image->width - 1), x1 = affine_clamp(x + 1, image->width - 1);
    const ptrdiff_t size = (ptrdiff_t)image->width * channels;
    const uint8_t* row0 = image->pixels + affine_clamp(y, image->height - 1) * size;
    const uint8_t* row1 = image->pixels + affine_clamp(y + 1, image->height - 1) * size;
    for (int c = 0; c < channels; c++) {
        const int above = row0[x0 * channels + c] * left + row0[x1 * channels + c] * right;
        const int below = row1[x0 * channels + c] * left + row1[x1 * channels + c] * right;
        out[c] = (uint8_t)(((int64_t)above * high + (int64_t)below * low) >> 22);
    }
}

#define AFFINE_UNIT 2.3283064365386963e-10f /* 2^-32 */

/* The weights of four neighbours, with the parameter -1. */
SIMD_INLINE void affine_cubic(float at, float weights[4]) {
    const float square = at * at, cube = square * at;
    weights[0] = 2 * square - at - cube;
    weights[1] = 1 - 2 * square + cube;
    weights[2] = at + square - cube;
    weights[3] = cube - square;
}

SIMD_INLINE void affine_bicubic_pixel(const affine_image* image, affine_point point, int channels,
                                      uint8_t* out) {
    const int64_t x = point.x >> 32, y = point.y >> 32;
    const ptrdiff_t size = (ptrdiff_t)image->width * channels;
    float across[4], down[4], sums[4] = {0};
    affine_cubic((float)(uint32_t)point.x * AFFINE_UNIT, across);
    affine_cubic((float)(uint32_t)point.y * AFFINE_UNIT, down);
    for (int j = 0; j < 4; j++) {
        const uint8_t* row = image->pixels + affine_clamp(y + j - 1, image->height - 1) * size;
        const uint8_t* from[4];
        for (int i = 0; i < 4; i++)
            from[i] = row + affine_clamp(x + i - 1, image->width - 1) * channels;
        for (int c = 0; c < channels; c++) {
            /* In pairs, which are added as vectors add them. */
            const float even = (float)from[0][c] * across[0] + (float)from[2][c] * across[2];
            const float odd = (float)from[1][c] * across[1] + (float)from[3][c] * across[3];
            sums[c] += (even + odd) * down[j];
        }
    }
    for (int c = 0; c < channels; c++) {
        const float value = sums[c] > 0.f ? sums[c] : 0.f;
        out[c] = (uint8_t)(int)(value < 255.f ? value : 255.f);
    }
}

#include "affine_simd.h"

SIMD_INLINE void affine_smooth(int level, const affine_map* map, const affine_image* image, int channels,
                               uint8_t* out) {
    const double* m = map->matrix;
    const int width = image->width, height = image->height;
    const int64_t across = (int64_t)floor(m[0] * 4294967296.0 + 0.5);
    const int64_t down = (int64_t)floor(m[3] * 4294967296.0 + 0.5);
    for (int y = 0; y < height; y++, out += (ptrdiff_t)width * channels) {
        const double x_part = m[1] * (y + 0.5), y_part = m[4] * (y + 0.5);
        int first = 0, last = width;
        affine_inside(m[0], x_part, m[2], width, &first, &last);
        affine_inside(m[3], y_part, m[5], height, &first, &last);
        affine_fill(map->fill, first, channels, out);
        affine_fill(map->fill, width - last, channels, out + last * channels);
        affine_point point;
        point.x = (int64_t)floor((affine_at(m[0], x_part, m[2], first) - 0.5) * 4294967296.0);
        point.y = (int64_t)floor((affine_at(m[3], y_part, m[5], first) - 0.5) * 4294967296.0);
#if SIMD_X86
        if (level >= SIMD_LEVEL_AVX2 && channels > 1) {
            affine_run_avx2(map->method, image, point, across, down, last - first, out + first * channels);
            continue;
        }
#endif
#if SIMD_VECTORS
        if (level >= SIMD_LEVEL_SSE41 && channels > 1 && map->method == AFFINE_BILINEAR) {
            affine_bilinear_128(image, point, across, down, last - first, out + first * channels);
            continue;
        }
#endif
        (void)level;
        for (int x = first; x < last; x++, point.x += across, point.y += down) {
            if (map->method == AFFINE_BILINEAR)
                affine_bilinear_pixel(image, point, channels, out + x * channels);
            else
                affine_bicubic_pixel(image, point, channels, out + x * channels);
        }
    }
}

/* Moves an image; `out` has its size and does not overlap. */
static SIMD_UNUSED void affine_transform(int level, const affine_map* map, const affine_image* image,
                                         uint8_t* out) {
    const int nearest = map->method == AFFINE_NEAREST;
    const affine_window all = {0, 0, image->width, image->height};
    if (image->channels == 1)
        nearest ? affine_nearest(map, image, &all, 1, out) : affine_smooth(level, map, image, 1, out);
    else if (image->channels == 3)
        nearest ? affine_nearest(map, image, &all, 3, out) : affine_smooth(level, map, image, 3, out);
    else
        nearest ? affine_nearest(map, image, &all, 4, out) : affine_smooth(level, map, image, 4, out);
}

/* Degrees in radians, as Python's math.radians has them. */
SIMD_INLINE double affine_radians(double degrees) {
    return degrees * (3.14159265358979323846 / 180.0);
}

/* Rounded to 15 digits, as Python's round does for numbers of -1 to 1: the product's error counts. */
static SIMD_UNUSED double affine_round(double value) {
    const double product = value * 1e15, error = fma(value, 1e15, -product), whole = floor(product);
    return (product - whole + error < 0.5 ? whole : whole + 1) / 1e15;
}

/* Degrees modulo 360, as Python has it: of a turn less than 0 that is too small, 360 itself. */
static SIMD_UNUSED double affine_modulo(double degrees) {
    const double turned = fmod(degrees, 360.0);
    return turned < 0 ? turned + 360.0 : turned;
}

/* The matrix of a turn about the centre, counter-clockwise, in degrees: Pillow's Image.rotate. */
static SIMD_UNUSED void affine_rotation(double degrees, int width, int height, double matrix[6]) {
    const double angle = -affine_radians(affine_modulo(degrees));
    const double x = width / 2.0, y = height / 2.0;
    const double turn = affine_round(cos(angle)), lean = affine_round(sin(angle));
    matrix[0] = turn, matrix[1] = lean, matrix[2] = turn * -x + lean * -y + x;
    matrix[3] = -lean, matrix[4] = turn, matrix[5] = -lean * -x + turn * -y + y;
}

#endif
