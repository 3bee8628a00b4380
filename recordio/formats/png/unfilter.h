/* Undo the filters of PNG rows, in place: a plain form that defines the result, and vectors of the
 * compiler, which give the same bytes sooner.
 *
 * A filter predicts a byte from that of the pixel to the left (a), above (b) and above left (c), and the
 * file holds the difference.  Each pixel waits for the one to its left.  Vectors therefore hold one pixel,
 * each of its bytes in 16 bits; and of two rows that wait long, the second follows the first one pixel
 * behind, so that both are under way at once.  Up to eight bytes beyond a row are read.
 */
#ifndef ITERATORS_PNG_UNFILTER_H
#define ITERATORS_PNG_UNFILTER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/simd.h"

enum { FILTER_NONE = 0, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH, FILTERS };

/* Which of the three is nearest to a + b - c, the first of those that are equally near. */
SIMD_INLINE int png_paeth(int a, int b, int c) {
    const int threshold = 3 * c - b - a;
    const int low = a < b ? a : b, high = a < b ? b : a;
    const int other = high > threshold ? c : low;
    return threshold > low ? other : high;
}

SIMD_INLINE void unfilter_up(uint8_t* __restrict row, const uint8_t* __restrict above, size_t size) {
    size_t i;
    for (i = 0; i < size; i++)
        row[i] = (uint8_t)(row[i] + above[i]);
}

SIMD_INLINE void unfilter_plain(int filter, uint8_t* row, const uint8_t* above, size_t size, size_t pixel) {
    uint8_t a[8] = {0}, c[8] = {0};
    size_t i, k;
    for (i = 0; i < size; i += pixel)
        for (k = 0; k < pixel; k++) {
            const int b = above[i + k];
            const int guess = filter == FILTER_SUB       ? a[k]
                              : filter == FILTER_AVERAGE ? (a[k] + b) >> 1
                                                         : png_paeth(a[k], b, c[k]);
            row[i + k] = a[k] = (uint8_t)(row[i + k] + guess);
            c[k] = (uint8_t)b;
        }
}

#if defined(__GNUC__) || defined(__clang__)
#define PNG_VECTORS 1

typedef uint8_t png_u8x16 __attribute__((vector_size(16)));
typedef int16_t png_i16x8 __attribute__((vector_size(16)));

typedef struct {
    png_i16x8 a, c;
} png_left;

SIMD_INLINE png_i16x8 png_choose(png_i16x8 mask, png_i16x8 yes, png_i16x8 no) {
    return (mask & yes) | (~mask & no);
}

/* What compilers do not find by themselves, where the instructions are there on every machine. */
#if defined(__SSE2__)
#include <emmintrin.h>

SIMD_INLINE png_i16x8 png_min(png_i16x8 x, png_i16x8 y) {
    return (png_i16x8)_mm_min_epi16((__m128i)x, (__m128i)y);
}

SIMD_INLINE png_i16x8 png_max(png_i16x8 x, png_i16x8 y) {
    return (png_i16x8)_mm_max_epi16((__m128i)x, (__m128i)y);
}

SIMD_INLINE png_i16x8 png_load(const uint8_t* from) {
    return (png_i16x8)_mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i*)from), _mm_setzero_si128());
}

SIMD_INLINE void png_store(uint8_t* to, png_i16x8 pixel, size_t size) {
    uint8_t bytes[8];
    _mm_storel_epi64((__m128i*)bytes, _mm_packus_epi16((__m128i)pixel, (__m128i)pixel));
    memcpy(to, bytes, size);
}
#else
typedef uint8_t png_u8x8 __attribute__((vector_size(8)));

SIMD_INLINE png_i16x8 png_min(png_i16x8 x, png_i16x8 y) {
    return png_choose(x < y, x, y);
}

SIMD_INLINE png_i16x8 png_max(png_i16x8 x, png_i16x8 y) {
    return png_choose(x < y, y, x);
}

SIMD_INLINE png_i16x8 png_load(const uint8_t* from) {
    png_u8x8 bytes;
    memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, png_i16x8);
}

SIMD_INLINE void png_store(uint8_t* to, png_i16x8 pixel, size_t size) {
    const png_u8x8 bytes = __builtin_convertvector(pixel, png_u8x8);
    memcpy(to, &bytes, size);
}
#endif

/* The next pixel of a row: what the file says of it, and the pixel above. */
SIMD_INLINE png_i16x8 unfilter_pixel(int filter, png_left* left, png_i16x8 x, png_i16x8 b) {
    png_i16x8 guess = left->a;
    if (filter == FILTER_AVERAGE) guess = (left->a + b) >> 1;
    if (filter == FILTER_PAETH) {
        const png_i16x8 threshold = (left->c + left->c + left->c - b) - left->a;
        const png_i16x8 low = png_min(left->a, b), high = png_max(left->a, b);
        const png_i16x8 other = png_choose(high > threshold, left->c, low);
        guess = png_choose(threshold > low, other, high);
        left->c = b;
    }
    left->a = (png_i16x8)((png_u8x16)x + (png_u8x16)guess); /* the upper halves stay empty */
    return left->a;
}

SIMD_INLINE void unfilter_vectors(int filter, uint8_t* row, const uint8_t* above, size_t size, size_t pixel) {
    png_left left = {{0}, {0}};
    size_t i;
    for (i = 0; i < size; i += pixel)
        png_store(row + i, unfilter_pixel(filter, &left, png_load(row + i), png_load(above + i)), pixel);
}

SIMD_INLINE void unfilter_two(int filter, int next_filter, uint8_t* row, uint8_t* next, const uint8_t* above,
                              size_t size, size_t pixel) {
    png_left left = {{0}, {0}}, next_left = {{0}, {0}};
    png_i16x8 behind = unfilter_pixel(filter, &left, png_load(row), png_load(above));
    size_t i;
    png_store(row, behind, pixel);
    for (i = pixel; i < size; i += pixel) {
        const png_i16x8 x = png_load(next + i - pixel);
        const png_i16x8 now = unfilter_pixel(filter, &left, png_load(row + i), png_load(above + i));
        png_store(row + i, now, pixel);
        png_store(next + i - pixel, unfilter_pixel(next_filter, &next_left, x, behind), pixel);
        behind = now;
    }
    png_store(next + i - pixel, unfilter_pixel(next_filter, &next_left, png_load(next + i - pixel), behind),
              pixel);
}
#else
#define PNG_VECTORS 0
#endif

#if SIMD_X86
/* FILTER_SUB by sums over a vector: to each pixel the one to its left is added, then the one 2, 4, 8 to its
 * left, and at last the one in front of the vector.  Of bytes behind the last vector nothing is done. */
SIMD_INLINE SIMD_SSE41 size_t unfilter_sums(uint8_t* row, size_t size, size_t pixel) {
    static const uint8_t slide[48] = {
        128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, /* zeros */
        0,   1,   2,   3,   4,   5,   6,   7,   8,   9,   10,  11,  12,  13,  14,  15,
        128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128,
    };
    const size_t whole = 16 / pixel * pixel; /* bytes of whole pixels */
    const __m128i second = _mm_loadu_si128((const __m128i*)(slide + 16 + whole - 8));
    __m128i before = _mm_setzero_si128(), last;
    uint8_t order[16];
    size_t i, k;
    for (k = 0; k < 16; k++)
        order[k] = (uint8_t)(whole - pixel + k % pixel);
    last = _mm_loadu_si128((const __m128i*)order);
    for (i = 0; i + 16 <= size; i += whole) {
        __m128i x = _mm_loadu_si128((const __m128i*)(row + i));
        for (k = pixel; k < whole; k *= 2)
            x = _mm_add_epi8(x, _mm_shuffle_epi8(x, _mm_loadu_si128((const __m128i*)(slide + 16 - k))));
        x = _mm_add_epi8(x, before);
        before = _mm_shuffle_epi8(x, last);
        _mm_storel_epi64((__m128i*)(row + i), x);
        _mm_storel_epi64((__m128i*)(row + i + whole - 8), _mm_shuffle_epi8(x, second));
    }
    return i;
}

SIMD_SSE41 static SIMD_UNUSED void unfilter_sub(uint8_t* row, size_t size, size_t pixel) {
    size_t i = pixel == 1   ? unfilter_sums(row, size, 1)
               : pixel == 2 ? unfilter_sums(row, size, 2)
               : pixel == 3 ? unfilter_sums(row, size, 3)
               : pixel == 4 ? unfilter_sums(row, size, 4)
               : pixel == 6 ? unfilter_sums(row, size, 6)
                            : unfilter_sums(row, size, 8);
    for (i = i ? i : pixel; i < size; i++)
        row[i] = (uint8_t)(row[i] + row[i - pixel]);
}
#endif

SIMD_INLINE void unfilter_long(int vectors, int filter, uint8_t* row, const uint8_t* above, size_t size,
                               size_t pixel) {
#if PNG_VECTORS
#if SIMD_X86
    if (vectors && filter == FILTER_SUB && __builtin_cpu_supports("ssse3")) {
        unfilter_sub(row, size, pixel);
        return;
    }
#endif
    if (vectors) {
        unfilter_vectors(filter, row, above, size, pixel);
        return;
    }
#endif
    (void)vectors;
    unfilter_plain(filter, row, above, size, pixel);
}

/* `filter` is a constant in each of these calls: loops of their own. */
SIMD_INLINE void unfilter_row(int vectors, int filter, uint8_t* row, const uint8_t* above, size_t size,
                              size_t pixel) {
    if (filter == FILTER_SUB) {
        unfilter_long(vectors, FILTER_SUB, row, above, size, pixel);
    } else if (filter == FILTER_UP) {
        unfilter_up(row, above, size);
    } else if (filter == FILTER_AVERAGE) {
        unfilter_long(vectors, FILTER_AVERAGE, row, above, size, pixel);
    } else if (filter == FILTER_PAETH) {
        unfilter_long(vectors, FILTER_PAETH, row, above, size, pixel);
    }
}

SIMD_INLINE void unfilter_rows(int vectors, uint8_t* row, const uint8_t* above, ptrdiff_t stride, int count,
                               size_t size, size_t pixel) {
    while (count > 0) {
        const int filter = row[-1];
#if PNG_VECTORS
        if (vectors && count > 1 && filter >= FILTER_AVERAGE && row[stride - 1] >= FILTER_AVERAGE) {
            uint8_t* next = row + stride;
            const int second = row[stride - 1];
            if (filter == FILTER_AVERAGE && second == FILTER_AVERAGE)
                unfilter_two(FILTER_AVERAGE, FILTER_AVERAGE, row, next, above, size, pixel);
            else if (filter == FILTER_AVERAGE)
                unfilter_two(FILTER_AVERAGE, FILTER_PAETH, row, next, above, size, pixel);
            else if (second == FILTER_AVERAGE)
                unfilter_two(FILTER_PAETH, FILTER_AVERAGE, row, next, above, size, pixel);
            else
                unfilter_two(FILTER_PAETH, FILTER_PAETH, row, next, above, size, pixel);
            above = next;
            row = next + stride;
            count -= 2;
            continue;
        }
#endif
        unfilter_row(vectors, filter, row, above, size, pixel);
        above = row;
        row += stride;
        count--;
    }
}

/* `pixel` is a constant in each of these calls. */
SIMD_INLINE void unfilter_pixels(int vectors, uint8_t* row, const uint8_t* above, ptrdiff_t stride, int count,
                                 size_t size, size_t pixel) {
    switch (pixel) {
    case 1:
        unfilter_rows(vectors, row, above, stride, count, size, 1);
        break;
    case 2:
        unfilter_rows(vectors, row, above, stride, count, size, 2);
        break;
    case 3:
        unfilter_rows(vectors, row, above, stride, count, size, 3);
        break;
    case 4:
        unfilter_rows(vectors, row, above, stride, count, size, 4);
        break;
    case 6:
        unfilter_rows(vectors, row, above, stride, count, size, 6);
        break;
    default:
        unfilter_rows(vectors, row, above, stride, count, size, 8);
    }
}

#if SIMD_X86
/* The same code, of which compilers make fewer instructions. */
SIMD_AVX2 static SIMD_UNUSED void unfilter_avx2(uint8_t* row, const uint8_t* above, ptrdiff_t stride,
                                                int count, size_t size, size_t pixel) {
    unfilter_pixels(1, row, above, stride, count, size, pixel);
}
#endif

/* Undo the filters of the first `size` bytes of rows, whole pixels of `pixel` bytes each (1, 2, 3, 4, 6 or
 * 8).  In front of each row is the number of its filter, which is one of the five; `above` is the row above
 * the first one, or zeros. */
static SIMD_UNUSED void png_unfilter(int vectors, uint8_t* row, const uint8_t* above, ptrdiff_t stride,
                                     int count, size_t size, size_t pixel) {
#if SIMD_X86
    if (vectors && __builtin_cpu_supports("avx2")) {
        unfilter_avx2(row, above, stride, count, size, pixel);
        return;
    }
#endif
    unfilter_pixels(vectors, row, above, stride, count, size, pixel);
}

#endif
