/* Values of a tile: made of levels without a table, and memory that is written once and read much later, past
 * the caches, if it lies in whole vectors. */
#ifndef ITERATORS_TILE_STORE_H
#define ITERATORS_TILE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/simd.h"

/* A value is (level / divisor - mean) / deviation, each step rounded; a channel has a mean and a deviation. */
typedef struct {
    float divisor, mean[3], deviation[3];
} tile_scale;

#if SIMD_X86
#define TILE_FMA __attribute__((target("avx2,fma")))

/* x / y by its reciprocal: the remainder corrects the quotient, nearly always to the rounded one. */
TILE_FMA static inline __m256 tile_quotient(__m256 x, __m256 y, __m256 reciprocal) {
    const __m256 quotient = _mm256_mul_ps(x, reciprocal);
    return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, y, x), reciprocal, quotient);
}

/* Values of `count` pixels, 8 or more; the last ones may be made twice. */
TILE_FMA static void tile_values_fma(const uint8_t* line, int count, const tile_scale* scale, float* red,
                                     float* green, float* blue) {
    float* const planes[3] = {red, green, blue};
    const __m256 divisor = _mm256_set1_ps(scale->divisor), share = _mm256_set1_ps(1 / scale->divisor);
    for (int begin = 0; begin < count; begin += 8) {
        const int x = begin <= count - 8 ? begin : count - 8;
        const uint8_t* from = line + 3 * (ptrdiff_t)x; /* the second half of the vector begins 8 bytes on */
        const __m256i pixels = _mm256_loadu2_m128i((const __m128i*)(from + 8), (const __m128i*)from);
        for (int c = 0; c < 3; c++) {
            const __m256i bytes = _mm256_setr_epi32((int)0xffffff00 | c, (int)0xffffff00 | (c + 3),
                                                    (int)0xffffff00 | (c + 6), (int)0xffffff00 | (c + 9),
                                                    (int)0xffffff00 | (c + 4), (int)0xffffff00 | (c + 7),
                                                    (int)0xffffff00 | (c + 10), (int)0xffffff00 | (c + 13));
            const __m256 level = _mm256_cvtepi32_ps(_mm256_shuffle_epi8(pixels, bytes));
            const __m256 part =
                _mm256_sub_ps(tile_quotient(level, divisor, share), _mm256_set1_ps(scale->mean[c]));
            const __m256 deviation = _mm256_set1_ps(scale->deviation[c]);
            _mm256_storeu_ps(planes[c] + x,
                             tile_quotient(part, deviation, _mm256_set1_ps(1 / scale->deviation[c])));
        }
    }
}

#undef TILE_FMA
#endif

/* Writes values of `count` pixels, of which there are 8 or more, where `tile_scale_fits`. */
static SIMD_UNUSED void tile_values(const uint8_t* line, int count, const tile_scale* scale, float* red,
                                    float* green, float* blue) {
#if SIMD_X86
    tile_values_fma(line, count, scale, red, green, blue);
#endif
}

/* Whether `tile_values` gives what the tables of 3 x 256 values have, to the bit. */
static SIMD_UNUSED int tile_scale_fits(const tile_scale* scale, const void* tables) {
#if SIMD_X86
    uint8_t levels[256 * 3];
    float values[3][256];
    if (simd_level(SIMD_LEVEL_AVX2) < SIMD_LEVEL_AVX2 || !__builtin_cpu_supports("fma")) return 0;
    for (int i = 0; i < 256 * 3; i++)
        levels[i] = (uint8_t)(i / 3);
    tile_values(levels, 256, scale, values[0], values[1], values[2]);
    return memcmp(values, tables, sizeof values) == 0;
#else
    (void)scale, (void)tables;
    return 0;
#endif
}

/* Copies memory as memcpy does. */
static SIMD_UNUSED void tile_store(void* to, const void* from, size_t size) {
#if SIMD_X86 && defined(__SSE2__)
    if (((uintptr_t)to | size) % sizeof(__m128i) == 0) {
        __m128i* line = (__m128i*)to;
        const __m128i* source = (const __m128i*)from;
        for (size_t i = 0; i < size / sizeof(__m128i); i++)
            _mm_stream_si128(line + i, _mm_loadu_si128(source + i));
        return;
    }
#endif
    memcpy(to, from, size);
}

/* Other threads see what was written before. */
static SIMD_UNUSED void tile_store_done(void) {
#if SIMD_X86 && defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
