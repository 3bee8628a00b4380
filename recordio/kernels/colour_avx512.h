/* Hue, lightness and saturation of sixteen pixels at a time, with AVX-512.
 *
 * The same operations in the same order as there, so that the bytes are the same; masks stand for
 * blends.  Memory is read and written without masks, which AMD Zen 4 takes 50 cycles for.
 */
#ifndef RECORDIO_COLOUR_AVX512_H
#define RECORDIO_COLOUR_AVX512_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

#if SIMD_X86

enum { COLOUR_WIDE_GROUP = 16 };

/* Halves to even, whatever the rounding mode of the thread. */
#define COLOUR_WIDE_ROUND(value)                                                                             \
    _mm512_cvt_roundps_epi32(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

/* Four pixels, 12 bytes, for each lane of 16. */
SIMD_AVX512 static inline __m512i colour_lanes(void) {
    return _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 0, 6, 7, 8, 0, 9, 10, 11, 0);
}

/* Nearest whole number, plus `by`, from 0 to `high`. */
SIMD_AVX512 static inline __m512 colour_wide_shift(__m512 value, __m512i by, __m512i high) {
    const __m512i whole = _mm512_add_epi32(COLOUR_WIDE_ROUND(value), by);
    return _mm512_cvtepi32_ps(_mm512_min_epi32(_mm512_max_epi32(whole, _mm512_setzero_si512()), high));
}

/* Changes 48 bytes. */
SIMD_AVX512 static inline void colour_hls_wide(uint8_t* p, int dh, int dl, int ds) {
    const __m512 unit = _mm512_set1_ps(1.f / 255.f), one = _mm512_set1_ps(1.f), half = _mm512_set1_ps(0.5f);
    const __m512 full = _mm512_set1_ps(255.f), zero = _mm512_setzero_ps(), six = _mm512_set1_ps(6.f);
    const __m512i apart =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
    const __m512i close =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m512i step = _mm512_set1_epi32(1), most_colour = _mm512_set1_epi32(255);
    const __m512i together = _mm512_inserti32x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i*)p)),
                                                _mm_loadu_si128((const __m128i*)(p + 32)), 2);
    const __m512i pixels = _mm512_permutexvar_epi32(colour_lanes(), together);
    const __m512i green_bytes = _mm512_add_epi8(apart, step);
    const __m512 r = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_shuffle_epi8(pixels, apart)), unit);
    const __m512 g = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_shuffle_epi8(pixels, green_bytes)), unit);
    const __m512 b = _mm512_mul_ps(
        _mm512_cvtepi32_ps(_mm512_shuffle_epi8(pixels, _mm512_add_epi8(green_bytes, step))), unit);

    const __m512 high = _mm512_max_ps(_mm512_max_ps(r, g), b), low = _mm512_min_ps(_mm512_min_ps(r, g), b);
    const __m512 sum = _mm512_add_ps(high, low), difference = _mm512_sub_ps(high, low);
    const __mmask16 coloured = _mm512_cmp_ps_mask(difference, _mm512_set1_ps(COLOUR_GREY), _CMP_GT_OQ);
    __m512 l = _mm512_mul_ps(sum, half);
    const __m512 below = _mm512_mask_mov_ps(_mm512_sub_ps(_mm512_set1_ps(2.f), sum),
                                            _mm512_cmp_ps_mask(l, half, _CMP_LT_OQ), sum);
    __m512 s = _mm512_maskz_div_ps(coloured, difference, below);
    const __m512 sixth = _mm512_maskz_div_ps(coloured, _mm512_set1_ps(60.f), difference);
    const __mmask16 green = _mm512_cmp_ps_mask(high, g, _CMP_EQ_OQ),
                    red = _mm512_cmp_ps_mask(high, r, _CMP_EQ_OQ);
    /* the channel that is largest chooses whose difference counts, and from where */
    __m512 slope = _mm512_mask_mov_ps(_mm512_sub_ps(r, g), green, _mm512_sub_ps(b, r));
    slope = _mm512_mask_mov_ps(slope, red, _mm512_sub_ps(g, b));
    __m512 h = _mm512_mul_ps(slope, sixth);
    h = _mm512_mask_add_ps(h, (__mmask16)~red, h,
                           _mm512_mask_mov_ps(_mm512_set1_ps(240.f), green, _mm512_set1_ps(120.f)));
    h = _mm512_mask_add_ps(h, _mm512_cmp_ps_mask(h, zero, _CMP_LT_OQ), h, _mm512_set1_ps(360.f));
    h = colour_wide_shift(_mm512_maskz_mul_ps(coloured, h, half), _mm512_set1_epi32(dh),
                          _mm512_set1_epi32(180));
    l = _mm512_mul_ps(colour_wide_shift(_mm512_mul_ps(l, full), _mm512_set1_epi32(dl), most_colour), unit);
    s = _mm512_mul_ps(colour_wide_shift(_mm512_mul_ps(s, full), _mm512_set1_epi32(ds), most_colour), unit);

    const __m512 bright = _mm512_sub_ps(_mm512_add_ps(l, s), _mm512_mul_ps(l, s));
    const __m512 most =
        _mm512_mask_mul_ps(bright, _mm512_cmp_ps_mask(l, half, _CMP_LE_OQ), l, _mm512_add_ps(one, s));
    const __m512 least = _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(2.f), l), most);
    __m512 turn = _mm512_mul_ps(h, _mm512_set1_ps(6.f / 180.f));
    turn = _mm512_mask_sub_ps(turn, _mm512_cmp_ps_mask(turn, six, _CMP_GE_OQ), turn, six);
    const __m512i sector = _mm512_cvttps_epi32(turn);
    const __m512 part = _mm512_sub_ps(turn, _mm512_cvtepi32_ps(sector)), span = _mm512_sub_ps(most, least);
    /* the sector looks each channel's choice up: 0 least, 1 most, 2 what falls or rises between them */
    const __mmask16 falls = _mm512_test_epi32_mask(sector, step);
    const __m512 between =
        _mm512_add_ps(least, _mm512_mul_ps(span, _mm512_mask_sub_ps(part, falls, one, part)));
    const __m512i channels[3] = {_mm512_setr_epi32(1, 2, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                                 _mm512_setr_epi32(2, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
                                 _mm512_setr_epi32(0, 0, 2, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)};
    __m512i packed = _mm512_setzero_si512();
    for (int c = 2; c >= 0; c--) {
        const __m512i choice = _mm512_permutexvar_epi32(sector, channels[c]);
        __m512 value = _mm512_mask_mov_ps(least, _mm512_test_epi32_mask(choice, step), most);
        value = _mm512_mask_mov_ps(value, _mm512_cmpeq_epi32_mask(choice, _mm512_set1_epi32(2)), between);
        value = _mm512_min_ps(_mm512_max_ps(_mm512_mul_ps(value, full), zero), full);
        packed = _mm512_or_si512(_mm512_slli_epi32(packed, 8), COLOUR_WIDE_ROUND(value));
    }
    packed = _mm512_maskz_compress_epi32(0x7777, _mm512_shuffle_epi8(packed, close));
    _mm256_storeu_si256((__m256i*)p, _mm512_castsi512_si256(packed));
    _mm_storeu_si128((__m128i*)(p + 32), _mm512_extracti32x4_epi32(packed, 2));
}

SIMD_AVX512 static void colour_hls_avx512(uint8_t* row, int width, int dh, int dl, int ds) {
    uint8_t last[3 * COLOUR_WIDE_GROUP] = {0};
    size_t rest;
    for (; width >= COLOUR_WIDE_GROUP; width -= COLOUR_WIDE_GROUP, row += 3 * COLOUR_WIDE_GROUP)
        colour_hls_wide(row, dh, dl, ds);
    rest = 3 * (size_t)width;
    if (rest == 0) return;
    memcpy(last, row, rest);
    colour_hls_wide(last, dh, dl, ds);
    memcpy(row, last, rest);
}

#undef COLOUR_WIDE_ROUND

#endif
#endif
