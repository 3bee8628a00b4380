/* Rows of RGB resampled across for AVX-512 with byte permutations: sixteen target pixels at a time.
 *
 * The source pixels of a group lie within 128 bytes, if the image shrinks to no less than about 0.4 of
 * its size; one permutation puts two neighbouring taps of every channel side by side.  Which bytes those
 * are is the same for all rows, so that it is worked out once.  Nothing outside the source row is read.
 */
#ifndef RECORDIO_RESAMPLE_AVX512_H
#define RECORDIO_RESAMPLE_AVX512_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

enum {
    RESAMPLE_WIDE = 16,        /* target pixels of a group */
    RESAMPLE_WIDE_VALUES = 48, /* values of a group, in three vectors */
    RESAMPLE_WIDE_WINDOW = 128 /* the bytes that a permutation chooses from */
};

typedef struct {
    int32_t base; /* first byte of the source row that the group needs */
    int32_t size; /* bytes from there on that there are and may be needed */
} resample_window;

static int resample_wide_groups(int count) {
    return (count + RESAMPLE_WIDE - 1) / RESAMPLE_WIDE;
}

/* Source bytes, and weights, of a group. */
static int resample_wide_products(int taps) {
    return RESAMPLE_WIDE_VALUES * taps;
}

/* Tables for `count` target pixels of three channels, whose first of 2, 4 or 8 taps begins at byte index[i]
 * of a row of `row_size` bytes.  For each vector of 16 values, and for each pair of taps: `indices` holds a
 * byte of the window, then a byte that is not used, twice for every value, and `weights` two of its weights.
 * Returns the number of groups, 0 if one does not fit its window. */
static int resample_wide_tables(const int32_t* index, const int16_t* weight, int count, int taps,
                                int row_size, resample_window* windows, uint8_t* indices, int16_t* weights) {
    const int groups = resample_wide_groups(count), products = resample_wide_products(taps);
    memset(indices, 0, (size_t)groups * 2 * (size_t)products);
    for (int g = 0; g < groups; g++, indices += 2 * products, weights += products) {
        const int32_t base = index[g * RESAMPLE_WIDE];
        int32_t end = base;
        for (int v = 0; v < RESAMPLE_WIDE_VALUES; v++) {
            const int i = g * RESAMPLE_WIDE + v / 3, pixel = i < count ? i : count - 1;
            const int32_t start = index[pixel] - base;
            if (start < 0 || start > RESAMPLE_WIDE_WINDOW - 3 * taps) return 0;
            if (index[pixel] + 3 * taps > end) end = index[pixel] + 3 * taps;
            for (int k = 0; k < taps; k++) {
                const int at = v / 16 * 16 * taps + k / 2 * 32 + v % 16 * 2 + k % 2;
                indices[2 * at] = (uint8_t)(start + 3 * k + v % 3);
                weights[at] = i < count ? weight[(ptrdiff_t)i * taps + k] : 0;
            }
        }
        windows[g].base = base;
        windows[g].size = (end < row_size ? end : row_size) - base;
    }
    return groups;
}

#if SIMD_X86

SIMD_AVX512 static inline __mmask64 resample_first_bytes(int n) {
    return n >= 64 ? ~(__mmask64)0 : n <= 0 ? 0 : ((__mmask64)1 << n) - 1;
}

/* Writes whole groups: of two taps the sums without their four lowest bits, else whole ones. */
SIMD_AVX512 SIMD_INLINE void resample_across_avx512_n(const uint8_t* row, const resample_window* windows,
                                                      const uint8_t* indices, const int16_t* weights,
                                                      int groups, int taps, void* out) {
    const __mmask64 used = 0x5555555555555555; /* the upper bytes of the 16-bit values become 0 */
    for (int g = 0; g < groups; g++) {
        const uint8_t* first = row + windows[g].base;
        const int size = windows[g].size;
        const __m512i low = _mm512_maskz_loadu_epi8(resample_first_bytes(size), first);
        const __m512i high = _mm512_maskz_loadu_epi8(resample_first_bytes(size - 64), first + 64);
        for (int v = 0; v < RESAMPLE_WIDE_VALUES; v += 16) {
            __m512i sums = _mm512_setzero_si512();
            for (int k = 0; k < taps; k += 2, indices += 64, weights += 32) {
                const __m512i pairs =
                    _mm512_maskz_permutex2var_epi8(used, low, _mm512_loadu_si512(indices), high);
                sums = _mm512_add_epi32(sums, _mm512_madd_epi16(pairs, _mm512_loadu_si512(weights)));
            }
            const ptrdiff_t at = (ptrdiff_t)g * RESAMPLE_WIDE_VALUES + v;
            if (taps == 2)
                _mm256_storeu_si256((__m256i*)((int16_t*)out + at),
                                    _mm512_cvtsepi32_epi16(_mm512_srai_epi32(sums, 4)));
            else
                _mm512_storeu_si512((int32_t*)out + at, sums);
        }
    }
}

SIMD_AVX512 static void resample_across_avx512(const uint8_t* row, const resample_window* windows,
                                               const uint8_t* indices, const int16_t* weights, int groups,
                                               int taps, void* out) {
    if (taps == 2)
        resample_across_avx512_n(row, windows, indices, weights, groups, 2, out);
    else if (taps == 4)
        resample_across_avx512_n(row, windows, indices, weights, groups, 4, out);
    else
        resample_across_avx512_n(row, windows, indices, weights, groups, 8, out);
}

#endif
#endif
