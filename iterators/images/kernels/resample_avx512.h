/* Bilinear rows of RGB for AVX-512 with byte permutations: sixteen target pixels at a time.
 *
 * The source pixels of a group lie within 128 bytes, if the image shrinks to no less than about 0.4 of
 * its size; one permutation puts the two neighbours of every channel side by side.  Which bytes those
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
    RESAMPLE_WIDE_VALUES = 48, /* 16-bit values of a group */
    RESAMPLE_WIDE_PAIRS = 96,  /* source bytes, and weights, of a group */
    RESAMPLE_WIDE_WINDOW = 128 /* the bytes that a permutation chooses from */
};

typedef struct {
    int32_t base; /* first byte of the source row that the group needs */
    int32_t size; /* bytes from there on that there are and may be needed */
} resample_window;

static int resample_wide_groups(int count) {
    return (count + RESAMPLE_WIDE - 1) / RESAMPLE_WIDE;
}

/* Tables for `count` target pixels of three channels, whose left neighbours begin at byte index[i] of a
 * row of `row_size` bytes.  `places` holds a byte of the window, then a byte that is not used, for each
 * of RESAMPLE_WIDE_PAIRS in every group.  Returns the number of groups, 0 if one does not fit its window. */
static int resample_wide_tables(const int32_t* index, const int16_t* weight, int count, int row_size,
                                resample_window* windows, uint8_t* places, int16_t* weights) {
    const int groups = resample_wide_groups(count);
    memset(places, 0, (size_t)groups * 2 * RESAMPLE_WIDE_PAIRS);
    for (int g = 0; g < groups; g++) {
        const int32_t base = index[g * RESAMPLE_WIDE];
        int32_t end = base;
        for (int k = 0; k < RESAMPLE_WIDE; k++) {
            const int i = g * RESAMPLE_WIDE + k, last = i < count ? i : count - 1;
            const int32_t place = index[last] - base;
            if (place < 0 || place > RESAMPLE_WIDE_WINDOW - 6) return 0;
            if (index[last] + 6 > end) end = index[last] + 6;
            for (int c = 0; c < 3; c++, places += 4, weights += 2) {
                places[0] = (uint8_t)(place + c);
                places[2] = (uint8_t)(place + c + 3);
                weights[0] = i < count ? weight[2 * i] : 0;
                weights[1] = i < count ? weight[2 * i + 1] : 0;
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

/* Writes whole groups. */
SIMD_AVX512 static void resample_across_bilinear_avx512(const uint8_t* row, const resample_window* windows,
                                                        const uint8_t* places, const int16_t* weights,
                                                        int groups, int16_t* out) {
    const __mmask64 used = 0x5555555555555555; /* the upper bytes of the 16-bit values become 0 */
    for (int g = 0; g < groups; g++) {
        const uint8_t* first = row + windows[g].base;
        const int size = windows[g].size;
        const __m512i low = _mm512_maskz_loadu_epi8(resample_first_bytes(size), first);
        const __m512i high = _mm512_maskz_loadu_epi8(resample_first_bytes(size - 64), first + 64);
        for (int k = 0; k < 3; k++, places += 64, weights += 32, out += 16) {
            const __m512i pairs = _mm512_maskz_permutex2var_epi8(used, low, _mm512_loadu_si512(places), high);
            const __m512i sums = _mm512_madd_epi16(pairs, _mm512_loadu_si512(weights));
            _mm256_storeu_si256((__m256i*)out, _mm512_cvtsepi32_epi16(_mm512_srai_epi32(sums, 4)));
        }
    }
}

#endif
#endif
