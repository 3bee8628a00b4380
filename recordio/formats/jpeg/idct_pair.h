/* The inverse transform of two blocks that lie one behind the other, in two pieces; with AVX2.
 *
 * Operation by operation what the library's SSE2 and AVX2 code does with one block, overflow of damaged coefficients
 * included: one block in each half of the vectors.
 */
#ifndef ITERATORS_JPEG_IDCT_PAIR_H
#define ITERATORS_JPEG_IDCT_PAIR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "recordio/kernels/simd.h"

#if SIMD_X86

/* Sines and cosines as the library has them, in 1/8192, in pairs for _mm256_madd_epi16. */
#define PAIR(even, odd) _mm256_set1_epi32((int)((unsigned)(odd) << 16 | ((unsigned)(even) & 0xFFFF)))

/* Sums of products of two rows, four columns of each block in each half. */
typedef struct {
    __m256i low, high;
} idct_sums;

#define IDCT_INLINE static inline __attribute__((always_inline, target("avx2")))

IDCT_INLINE idct_sums idct_products(__m256i x, __m256i y, __m256i factors) {
    const idct_sums sums = {_mm256_madd_epi16(_mm256_unpacklo_epi16(x, y), factors),
                            _mm256_madd_epi16(_mm256_unpackhi_epi16(x, y), factors)};
    return sums;
}

IDCT_INLINE idct_sums idct_add(idct_sums x, idct_sums y) {
    const idct_sums sums = {_mm256_add_epi32(x.low, y.low), _mm256_add_epi32(x.high, y.high)};
    return sums;
}

IDCT_INLINE idct_sums idct_subtract(idct_sums x, idct_sums y) {
    const idct_sums sums = {_mm256_sub_epi32(x.low, y.low), _mm256_sub_epi32(x.high, y.high)};
    return sums;
}

/* A row as products with one. */
IDCT_INLINE idct_sums idct_scaled(__m256i x) {
    const __m256i zero = _mm256_setzero_si256();
    const idct_sums sums = {_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, x), 3),
                            _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, x), 3)};
    return sums;
}

IDCT_INLINE __m256i idct_packed(idct_sums x, int shift) {
    return _mm256_packs_epi32(_mm256_srai_epi32(x.low, shift), _mm256_srai_epi32(x.high, shift));
}

/* The transform along one axis; the result in 1 / 2^shift, rounded. */
IDCT_INLINE void idct_axis(__m256i* row, int shift) {
    const __m256i half = _mm256_set1_epi32(1 << (shift - 1));
    const idct_sums rounding = {half, half};
    const __m256i z3 = _mm256_add_epi16(row[7], row[3]), z4 = _mm256_add_epi16(row[5], row[1]);
    const idct_sums sum = idct_add(idct_scaled(_mm256_add_epi16(row[0], row[4])), rounding);
    const idct_sums difference = idct_add(idct_scaled(_mm256_sub_epi16(row[0], row[4])), rounding);
    const idct_sums even2 = idct_products(row[2], row[6], PAIR(4433, -10704));
    const idct_sums even3 = idct_products(row[2], row[6], PAIR(10703, 4433));
    const idct_sums odd3 = idct_products(z3, z4, PAIR(-6436, 9633));
    const idct_sums odd4 = idct_products(z3, z4, PAIR(9633, 6437));
    const idct_sums at0 = idct_add(idct_products(row[7], row[1], PAIR(-4927, -7373)), odd3);
    const idct_sums at1 = idct_add(idct_products(row[5], row[3], PAIR(-4176, -20995)), odd4);
    const idct_sums at2 = idct_add(idct_products(row[5], row[3], PAIR(-20995, 4177)), odd3);
    const idct_sums at3 = idct_add(idct_products(row[7], row[1], PAIR(-7373, 4926)), odd4);
    const idct_sums part0 = idct_add(sum, even3), part3 = idct_subtract(sum, even3);
    const idct_sums part1 = idct_add(difference, even2), part2 = idct_subtract(difference, even2);
    row[0] = idct_packed(idct_add(part0, at3), shift);
    row[7] = idct_packed(idct_subtract(part0, at3), shift);
    row[1] = idct_packed(idct_add(part1, at2), shift);
    row[6] = idct_packed(idct_subtract(part1, at2), shift);
    row[2] = idct_packed(idct_add(part2, at1), shift);
    row[5] = idct_packed(idct_subtract(part2, at1), shift);
    row[3] = idct_packed(idct_add(part3, at0), shift);
    row[4] = idct_packed(idct_subtract(part3, at0), shift);
}

/* Rows become columns, in each half. */
IDCT_INLINE void idct_transpose(__m256i* row) {
    __m256i a[8], b[8];
    int i;
    for (i = 0; i < 4; i++) {
        a[2 * i] = _mm256_unpacklo_epi16(row[2 * i], row[2 * i + 1]);
        a[2 * i + 1] = _mm256_unpackhi_epi16(row[2 * i], row[2 * i + 1]);
    }
    for (i = 0; i < 2; i++) {
        b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
        b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
        b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
    }
    for (i = 0; i < 4; i++) {
        row[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
        row[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
    }
}

/* The transform of columns.  Where a block has no coefficient below its first row (`rest` is what it has there), the
 * library multiplies that row by four instead, which makes a difference if it is too large. */
IDCT_INLINE void idct_columns(__m256i* row, __m256i rest) {
    const __m256i first = _mm256_slli_epi16(row[0], 2);
    const unsigned empty = (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi64(rest, _mm256_setzero_si256()));
    const int low = (empty & 0xFFFF) == 0xFFFF, high = empty >> 16 == 0xFFFF;
    int i;
    if (!low || !high) idct_axis(row, 11);
    if (low || high) {
        const __m256i chosen = _mm256_set_m128i(_mm_set1_epi8(high ? -1 : 0), _mm_set1_epi8(low ? -1 : 0));
        for (i = 0; i < 8; i++)
            row[i] = _mm256_blendv_epi8(row[i], first, chosen);
    }
}

/* The first piece: of columns; rows of both blocks. */
IDCT_INLINE void idct_columns_of_pair(const JCOEF* blocks, const UINT16* factors, __m256i* row) {
    __m256i rest = _mm256_setzero_si256();
    int i;
    for (i = 0; i < 8; i++) {
        const __m128i factor = _mm_loadu_si128((const __m128i*)(const void*)(factors + 8 * i));
        const __m128i left = _mm_loadu_si128((const __m128i*)(const void*)(blocks + 8 * i));
        const __m128i right = _mm_loadu_si128((const __m128i*)(const void*)(blocks + DCTSIZE2 + 8 * i));
        const __m256i both = _mm256_set_m128i(right, left);
        row[i] = _mm256_mullo_epi16(both, _mm256_broadcastsi128_si256(factor));
        if (i > 0) rest = _mm256_or_si256(rest, both);
    }
    idct_columns(row, rest);
}

/* Zeros for both blocks; compilers make one slow instruction of memset. */
IDCT_INLINE void idct_clear_pair(JCOEF* blocks) {
    __m256i zero = _mm256_setzero_si256();
    __asm__("" : "+x"(zero));
    for (int i = 0; i < 2 * DCTSIZE2; i += 16)
        _mm256_storeu_si256((__m256i*)(void*)(blocks + i), zero);
}

/* Columns of 16-bit values, of both blocks, become rows of bytes: two of a block in each half.  They are packed first, so
 * that half as many have to change places. */
IDCT_INLINE void idct_bytes(const __m256i* column, __m256i* rows) {
    __m256i packed[4], pairs[4], fours[4];
    int i;
    for (i = 0; i < 4; i++)
        packed[i] = _mm256_packs_epi16(column[i], column[i + 4]);
    for (i = 0; i < 2; i++) {
        pairs[i] = _mm256_unpacklo_epi8(packed[2 * i], packed[2 * i + 1]);     /* of columns 0 to 3 */
        pairs[i + 2] = _mm256_unpackhi_epi8(packed[2 * i], packed[2 * i + 1]); /* of columns 4 to 7 */
    }
    for (i = 0; i < 2; i++) {
        fours[i] = _mm256_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]);     /* rows 0 to 3 */
        fours[i + 2] = _mm256_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]); /* rows 4 to 7 */
    }
    for (i = 0; i < 2; i++) {
        rows[2 * i] = _mm256_unpacklo_epi32(fours[2 * i], fours[2 * i + 1]);
        rows[2 * i + 1] = _mm256_unpackhi_epi32(fours[2 * i], fours[2 * i + 1]);
    }
}

/* The second piece: of rows, to pixels at `column`, of which the first `width` exist: 16 or more, 8, or none. */
IDCT_INLINE void idct_rows_of_pair(__m256i* row, JSAMPARRAY out, JDIMENSION column, int width) {
    const __m256i centre = _mm256_set1_epi8(-128);
    __m256i bytes[4];
    int i;
    idct_transpose(row);
    idct_axis(row, 18);
    idct_bytes(row, bytes);
    for (i = 0; i < 4; i++) {
        const __m256i rows = _mm256_permute4x64_epi64(_mm256_add_epi8(bytes[i], centre), 0xD8);
        const __m128i upper = _mm256_castsi256_si128(rows), lower = _mm256_extracti128_si256(rows, 1);
        if (width >= 2 * DCTSIZE) {
            _mm_storeu_si128((__m128i*)(void*)(out[2 * i] + column), upper);
            _mm_storeu_si128((__m128i*)(void*)(out[2 * i + 1] + column), lower);
        } else if (width > 0) {
            _mm_storel_epi64((__m128i*)(void*)(out[2 * i] + column), upper);
            _mm_storel_epi64((__m128i*)(void*)(out[2 * i + 1] + column), lower);
        }
    }
}

#endif
#endif
