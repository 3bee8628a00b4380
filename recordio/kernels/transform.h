/* Images moved by an affine or a perspective map, to the byte as Pillow's Image.transform does.
 *
 * A pixel (x, y) of the result is what lies at matrix * (x + 0.5, y + 0.5, 1) of the image, in float64 and
 * in Pillow's order of operations.  The result may have another size, and a window of it can be had alone.
 * Alpha is a channel like the others.  (`affine.h` is faster, and within one level for images of one size.)
 */
#ifndef ITERATORS_TRANSFORM_H
#define ITERATORS_TRANSFORM_H

#include "affine.h"

typedef struct {
    double matrix[8];
    int perspective; /* whether the last two numbers count */
    int method;      /* AFFINE_... */
    int width;       /* of the whole result */
    int height;
    uint8_t fill[4];
} transform_map;

/* ---- pixels between pixels ---- */

SIMD_INLINE double transform_linear(double a, double b, double at) {
    return a + (b - a) * at;
}

SIMD_INLINE double transform_cubic(const double v[4], double at) {
    const double first = -v[0] + v[2], second = 2 * (v[0] - v[1]) + v[2] - v[3];
    const double third = -v[0] + v[1] - v[2] + v[3];
    return v[1] + at * (first + at * (second + at * third));
}

/* Offsets of `count` neighbours along one side, from the one before `at` on, and the fraction between. */
SIMD_INLINE double transform_neighbours(double at, int before, int count, int side, ptrdiff_t step,
                                        ptrdiff_t* offsets) {
    const double whole = floor(at - 0.5);
    for (int i = 0; i < count; i++)
        offsets[i] = affine_clamp((int64_t)whole - before + i, side - 1) * step;
    return at - 0.5 - whole;
}

SIMD_INLINE void transform_pixel_plain(const affine_image* image, double x, double y, int method,
                                       int channels, uint8_t* out) {
    const int before = method == AFFINE_BICUBIC, count = before ? 4 : 2;
    ptrdiff_t columns[4], rows[4];
    const double right = transform_neighbours(x, before, count, image->width, channels, columns);
    const double down =
        transform_neighbours(y, before, count, image->height, (ptrdiff_t)image->width * channels, rows);
    for (int c = 0; c < channels; c++) {
        double value, lines[4], from[4];
        for (int j = 0; j < count; j++) {
            for (int i = 0; i < count; i++)
                from[i] = image->pixels[rows[j] + columns[i] + c];
            lines[j] = before ? transform_cubic(from, right) : transform_linear(from[0], from[1], right);
        }
        value = before ? transform_cubic(lines, down) : transform_linear(lines[0], lines[1], down);
        out[c] = (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : (int)value);
    }
}

#if SIMD_X86
/* The channels of a pixel; of three, the fourth is the next byte, and nothing comes of it. */
SIMD_AVX2 static inline __m256d transform_load(const uint8_t* pixel) {
    int32_t bytes;
    memcpy(&bytes, pixel, 4);
    return _mm256_cvtepi32_pd(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(bytes)));
}

SIMD_AVX2 static inline __m256d transform_linear_avx2(__m256d a, __m256d b, __m256d at) {
    return _mm256_add_pd(a, _mm256_mul_pd(_mm256_sub_pd(b, a), at));
}

SIMD_AVX2 static inline __m256d transform_cubic_avx2(const __m256d v[4], __m256d at) {
    const __m256d first = _mm256_sub_pd(v[2], v[0]), step = _mm256_sub_pd(v[0], v[1]);
    const __m256d second = _mm256_sub_pd(_mm256_add_pd(_mm256_add_pd(step, step), v[2]), v[3]);
    const __m256d third = _mm256_add_pd(_mm256_sub_pd(_mm256_sub_pd(v[1], v[0]), v[2]), v[3]);
    __m256d value = _mm256_add_pd(second, _mm256_mul_pd(at, third));
    value = _mm256_add_pd(first, _mm256_mul_pd(at, value));
    return _mm256_add_pd(v[1], _mm256_mul_pd(at, value));
}

SIMD_AVX2 static inline void transform_pixel_avx2(const affine_image* image, double x, double y, int method,
                                                  int channels, uint8_t* out) {
    const int before = method == AFFINE_BICUBIC, count = before ? 4 : 2;
    ptrdiff_t columns[4], rows[4];
    const __m256d right =
        _mm256_set1_pd(transform_neighbours(x, before, count, image->width, channels, columns));
    const __m256d down = _mm256_set1_pd(
        transform_neighbours(y, before, count, image->height, (ptrdiff_t)image->width * channels, rows));
    __m256d value, lines[4], from[4];
    for (int j = 0; j < count; j++) {
        for (int i = 0; i < count; i++)
            from[i] = transform_load(image->pixels + rows[j] + columns[i]);
        lines[j] =
            before ? transform_cubic_avx2(from, right) : transform_linear_avx2(from[0], from[1], right);
    }
    value = before ? transform_cubic_avx2(lines, down) : transform_linear_avx2(lines[0], lines[1], down);
    value = _mm256_min_pd(_mm256_max_pd(value, _mm256_setzero_pd()), _mm256_set1_pd(255.0));
    const __m128i pixel =
        _mm_shuffle_epi8(_mm256_cvttpd_epi32(value),
                         _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const int32_t bytes = _mm_cvtsi128_si32(pixel);
    memcpy(out, &bytes, channels);
}
#endif

/* ---- windows ---- */

SIMD_INLINE void transform_generic(int vectors, const transform_map* map, const affine_image* image,
                                   const affine_window* window, int method, int channels, uint8_t* out) {
    const double* m = map->matrix;
    for (int y = window->top; y < window->top + window->height; y++)
        for (int x = window->left; x < window->left + window->width; x++, out += channels) {
            const double xin = x + 0.5, yin = y + 0.5;
            double across = m[0] * xin + m[1] * yin + m[2], down = m[3] * xin + m[4] * yin + m[5];
            if (map->perspective) {
                const double depth = m[6] * xin + m[7] * yin + 1;
                across /= depth;
                down /= depth;
            }
            if (!(across >= 0 && across < image->width && down >= 0 && down < image->height))
                memcpy(out, map->fill, channels);
            else if (method == AFFINE_NEAREST)
                memcpy(out, image->pixels + ((ptrdiff_t)down * image->width + (ptrdiff_t)across) * channels,
                       channels);
#if SIMD_X86
            else if (vectors)
                transform_pixel_avx2(image, across, down, method, channels, out);
#endif
            else
                transform_pixel_plain(image, across, down, method, channels, out);
        }
    (void)vectors;
}

/* Nearest, by positions to which the step of a column or row is added: where Pillow does that. */
SIMD_INLINE void transform_added(const transform_map* map, const affine_image* image,
                                 const affine_window* window, int channels, uint8_t* out) {
    const double* m = map->matrix;
    double x_start = m[2] + m[1] * 0.5 + m[0] * 0.5, y_start = m[5] + m[4] * 0.5 + m[3] * 0.5;
    for (int y = 0; y < window->top + window->height; y++, x_start += m[1], y_start += m[4]) {
        double across = x_start, down = y_start;
        if (y < window->top) continue;
        for (int x = 0; x < window->left + window->width; x++, across += m[0], down += m[3]) {
            if (x < window->left) continue;
            if (across >= 0 && across < image->width && down >= 0 && down < image->height)
                memcpy(out, image->pixels + ((ptrdiff_t)down * image->width + (ptrdiff_t)across) * channels,
                       channels);
            else
                memcpy(out, map->fill, channels);
            out += channels;
        }
    }
}

/* Whether Pillow counts the columns and rows of a nearest map in whole numbers of 2^-16. */
static SIMD_UNUSED int transform_is_fixed(const transform_map* map) {
    const double* m = map->matrix;
    if (m[1] == 0 && m[3] == 0) return 0;
    for (int corner = 0; corner < 4; corner++) {
        const int x = corner & 1 ? map->width : 0, y = corner & 2 ? map->height : 0;
        if (!(fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 && fabs(x * m[3] + y * m[4] + m[5]) < 32768.0))
            return 0;
    }
    return 1;
}

SIMD_INLINE void transform_methods(int vectors, const transform_map* map, const affine_image* image,
                                   const affine_window* window, int channels, uint8_t* out) {
    if (map->method == AFFINE_BILINEAR)
        transform_generic(vectors, map, image, window, AFFINE_BILINEAR, channels, out);
    else if (map->method == AFFINE_BICUBIC)
        transform_generic(vectors, map, image, window, AFFINE_BICUBIC, channels, out);
    else if (map->perspective)
        transform_generic(0, map, image, window, AFFINE_NEAREST, channels, out);
    else if (!transform_is_fixed(map))
        transform_added(map, image, window, channels, out);
    else {
        affine_map fixed;
        memcpy(fixed.matrix, map->matrix, sizeof(fixed.matrix));
        memcpy(fixed.fill, map->fill, sizeof(fixed.fill));
        affine_nearest(&fixed, image, window, channels, out);
    }
}

#if SIMD_X86
SIMD_AVX2 static SIMD_UNUSED void transform_avx2(const transform_map* map, const affine_image* image,
                                                 const affine_window* window, uint8_t* out) {
    if (image->channels == 3)
        transform_methods(1, map, image, window, 3, out);
    else
        transform_methods(1, map, image, window, 4, out);
}
#endif

static SIMD_UNUSED void transform_plain(const transform_map* map, const affine_image* image,
                                        const affine_window* window, uint8_t* out) {
    if (image->channels == 1)
        transform_methods(0, map, image, window, 1, out);
    else if (image->channels == 3)
        transform_methods(0, map, image, window, 3, out);
    else
        transform_methods(0, map, image, window, 4, out);
}

/* A window of the result, packed; `out` does not overlap the image. */
static SIMD_UNUSED void transform_window(int level, const transform_map* map, const affine_image* image,
                                         int left, int top, int width, int height, uint8_t* out) {
    const affine_window window = {left, top, width, height};
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2 && image->channels > 1) {
        transform_avx2(map, image, &window, out);
        return;
    }
#endif
    (void)level;
    transform_plain(map, image, &window, out);
}

/* ---- maps ---- */

/* A turn about the centre, counter-clockwise: Pillow's Image.rotate.  `expand` makes the result as large
   as the whole turned image.  Where Pillow exchanges rows and columns, which leaves colours under alpha
   as they are, the method becomes nearest. */
static SIMD_UNUSED void transform_rotation(double degrees, int width, int height, int expand,
                                           transform_map* map) {
    double* m = map->matrix;
    const double angle = affine_modulo(degrees);
    const int quarter = angle == 90 || angle == 270;
    affine_rotation(degrees, width, height, m);
    map->perspective = 0, map->width = width, map->height = height;
    if (angle == 0 || angle == 180 || (quarter && (expand || width == height))) map->method = AFFINE_NEAREST;
    if (expand && quarter) { /* its size is not rounded up */
        map->width = height, map->height = width;
        m[2] = m[1] < 0 ? width : 0, m[5] = m[3] < 0 ? height : 0;
    } else if (expand && m[1] != 0) {
        double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
        for (int corner = 0; corner < 4; corner++) {
            const double x = corner & 1 ? width : 0, y = corner & 2 ? height : 0;
            for (int side = 0; side < 2; side++) {
                const double at = m[3 * side] * x + m[3 * side + 1] * y + m[3 * side + 2];
                low[side] = fmin(low[side], at), high[side] = fmax(high[side], at);
            }
        }
        map->width = (int)(ceil(high[0]) - floor(low[0]));
        map->height = (int)(ceil(high[1]) - floor(low[1]));
        const double x = -(map->width - width) / 2.0, y = -(map->height - height) / 2.0;
        m[2] = m[0] * x + m[1] * y + m[2];
        m[5] = m[3] * x + m[4] * y + m[5];
    }
}

/* A turn, a scale, shears and a move of the image about its centre: torchvision's affine.  Angles in
   degrees, clockwise as the image is seen; moves in pixels. */
static SIMD_UNUSED void transform_affine(double degrees, double translate_x, double translate_y, double scale,
                                         double shear_x, double shear_y, int width, int height,
                                         transform_map* map) {
    const double turn = affine_radians(degrees), sx = affine_radians(shear_x), sy = affine_radians(shear_y);
    const double x = width * 0.5, y = height * 0.5;
    const double a = cos(turn - sy) / cos(sy), c = sin(turn - sy) / cos(sy);
    const double b = -cos(turn - sy) * tan(sx) / cos(sy) - sin(turn);
    const double d = -sin(turn - sy) * tan(sx) / cos(sy) + cos(turn);
    double* m = map->matrix;
    m[0] = d / scale, m[1] = -b / scale, m[3] = -c / scale, m[4] = a / scale;
    m[2] = m[0] * (-x - translate_x) + m[1] * (-y - translate_y);
    m[5] = m[3] * (-x - translate_x) + m[4] * (-y - translate_y);
    m[2] += x;
    m[5] += y;
    map->perspective = 0, map->width = width, map->height = height;
}

/* The map under which the corners of the image, clockwise from the top left one, lie at `ends`: that of
   torchvision's perspective, in float32.  -1 if there is none. */
static SIMD_UNUSED int transform_perspective(const int ends[4][2], int width, int height,
                                             transform_map* map) {
    const int starts[4][2] = {{0, 0}, {width - 1, 0}, {width - 1, height - 1}, {0, height - 1}};
    double rows[8][9];
    for (int i = 0; i < 8; i++) {
        const int side = i & 1;
        const double x = ends[i / 2][0], y = ends[i / 2][1], at = starts[i / 2][side];
        const double row[9] = {side ? 0 : x, side ? 0 : y, side ? 0 : 1,
                               side ? x : 0, side ? y : 0, side ? 1 : 0,
                               -at * x,      -at * y,      at};
        memcpy(rows[i], row, sizeof(row));
    }
    for (int i = 0; i < 8; i++) { /* Gauss and Jordan's elimination, by the largest of each column */
        int best = i;
        double row[9];
        for (int j = i + 1; j < 8; j++)
            if (fabs(rows[j][i]) > fabs(rows[best][i])) best = j;
        if (fabs(rows[best][i]) < 1e-9) return -1;
        memcpy(row, rows[best], sizeof(row));
        memcpy(rows[best], rows[i], sizeof(row));
        for (int k = 0; k < 9; k++)
            rows[i][k] = row[k] / row[i];
        for (int j = 0; j < 8; j++) {
            const double factor = rows[j][i];
            for (int k = i; k < 9 && j != i; k++)
                rows[j][k] -= factor * rows[i][k];
        }
    }
    for (int i = 0; i < 8; i++)
        map->matrix[i] = (float)rows[i][8];
    map->perspective = 1, map->width = width, map->height = height;
    return 0;
}

#endif
