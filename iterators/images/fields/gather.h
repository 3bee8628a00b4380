/* Values picked from rows and written as a batch has them: one byte or two of an image to any type of numbers.
 *
 * It never allocates, and gives the same bytes on every machine.
 */
#ifndef ITERATORS_GATHER_H
#define ITERATORS_GATHER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/simd.h"

/* Types of the values of a field, in the order of `VALUE_TYPES`. */
enum { VALUE_UINT8, VALUE_UINT16, VALUE_INT32, VALUE_INT64, VALUE_FLOAT32 };

/* An image of values in memory, or a rectangle of it that begins at (x, y). */
typedef struct {
    const uint8_t* first;
    ptrdiff_t stride;
    int bytes; /* of a value: 1 or 2 */
    int x, y, width, height;
} value_image;

/* `count` numbers of a type into `out`: that of `from`, at i where `inside`, else `fill`. */
#define WRITE(to_type, inside, from)                                                                         \
    do {                                                                                                     \
        to_type* to = (to_type*)out;                                                                         \
        for (i = 0; i < count; i++)                                                                          \
            to[i] = (inside) ? (to_type)(from) : (to_type)fill;                                              \
    } while (0)
#define WRITE_TYPES(inside, from)                                                                            \
    switch (type) {                                                                                          \
    case VALUE_UINT8:                                                                                        \
        WRITE(uint8_t, inside, from);                                                                        \
        break;                                                                                               \
    case VALUE_UINT16:                                                                                       \
        WRITE(uint16_t, inside, from);                                                                       \
        break;                                                                                               \
    case VALUE_INT32:                                                                                        \
        WRITE(int32_t, inside, from);                                                                        \
        break;                                                                                               \
    case VALUE_INT64:                                                                                        \
        WRITE(int64_t, inside, from);                                                                        \
        break;                                                                                               \
    default:                                                                                                 \
        WRITE(float, inside, from);                                                                          \
    }

static SIMD_UNUSED size_t value_size(int type) {
    return type == VALUE_UINT8 ? 1 : type == VALUE_UINT16 ? 2 : type == VALUE_INT64 ? 8 : 4;
}

/* A row of `fill`. */
static SIMD_UNUSED void fill_row(int count, int64_t fill, int type, void* out) {
    int i;
    WRITE_TYPES(0, 0)
}

/* `count` values of one row of the image, by their columns; -1 for `fill`. */
static SIMD_UNUSED void gather_row(const value_image* image, int y, const int32_t* columns, int count,
                                   int64_t fill, int type, void* out) {
    const uint8_t* bytes = image->first + (y - image->y) * image->stride;
    const uint16_t* words = (const uint16_t*)(const void*)bytes;
    const int x = image->x;
    int i;
    if (image->bytes == 1) {
        WRITE_TYPES(columns[i] >= 0, bytes[columns[i] - x])
    } else {
        WRITE_TYPES(columns[i] >= 0, words[columns[i] - x])
    }
}

SIMD_INLINE int value_at(const value_image* image, int x, int y) {
    const uint8_t* at =
        image->first + (y - image->y) * image->stride + (ptrdiff_t)(x - image->x) * image->bytes;
    uint16_t value;
    if (image->bytes == 1) return *at;
    memcpy(&value, at, 2);
    return value;
}

/* Values of pixels of any position; xs -1 for `fill`. */
static SIMD_UNUSED void gather_pixels(const value_image* image, const int32_t* xs, const int32_t* ys,
                                      int count, int64_t fill, int type, void* out) {
    int i;
    WRITE_TYPES(xs[i] >= 0, value_at(image, xs[i], ys[i]))
}

SIMD_INLINE int value_clamp(double at, int side) {
    return at < 0 ? 0 : at > side - 1 ? side - 1 : (int)at;
}

/* The value at a position of the whole image: those of four pixels, weighted by nearness and rounded. */
SIMD_INLINE int value_between(const value_image* image, double across, double along) {
    const double left = floor(across - 0.5), top = floor(along - 0.5);
    const double right = across - 0.5 - left, down = along - 0.5 - top;
    const int x = value_clamp(left, image->width), x2 = value_clamp(left + 1, image->width);
    const int y = value_clamp(top, image->height), y2 = value_clamp(top + 1, image->height);
    const double upper = value_at(image, x, y) * (1 - right) + value_at(image, x2, y) * right;
    const double lower = value_at(image, x, y2) * (1 - right) + value_at(image, x2, y2) * right;
    return (int)(upper * (1 - down) + lower * down + 0.5);
}

/* Values between pixels; xs not a number for `fill`. */
static SIMD_UNUSED void blend_pixels(const value_image* image, const double* xs, const double* ys, int count,
                                     int64_t fill, int type, void* out) {
    int i;
    WRITE_TYPES(xs[i] == xs[i], value_between(image, xs[i], ys[i]))
}

/* Exchange values: each by the one at its place in `partners`, if it has one there. */
#define EXCHANGE(of_type)                                                                                    \
    do {                                                                                                     \
        of_type* at = (of_type*)row;                                                                         \
        for (i = 0; i < count; i++)                                                                          \
            if (at[i] >= 0 && at[i] < num_partners) at[i] = (of_type)partners[(int32_t)at[i]];               \
    } while (0)
static SIMD_UNUSED void exchange_values(const int32_t* partners, int32_t num_partners, int count, int type,
                                        void* row) {
    int i;
    switch (type) {
    case VALUE_UINT8:
        EXCHANGE(uint8_t);
        break;
    case VALUE_UINT16:
        EXCHANGE(uint16_t);
        break;
    case VALUE_INT32:
        EXCHANGE(int32_t);
        break;
    case VALUE_INT64:
        EXCHANGE(int64_t);
        break;
    default:
        EXCHANGE(float);
    }
}

/* Whether a value of two bytes in the rectangle needs both. */
static SIMD_UNUSED int value_beyond(const value_image* image) {
    uint16_t all = 0;
    int x, y;
    for (y = 0; image->bytes == 2 && y < image->height; y++) {
        const uint16_t* row = (const uint16_t*)(const void*)(image->first + y * image->stride);
        for (x = 0; x < image->width; x++)
            all |= row[x];
    }
    return all > 255;
}

#endif
