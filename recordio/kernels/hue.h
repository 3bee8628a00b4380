/* The hue of pixels turned as torchvision does with Pillow: to mode HSV, a shift that wraps round, back.
 *
 * Without branches, over runs of pixels whose channels lie apart, so that a compiler makes vectors of it;
 * every instruction set gives the same bytes.
 */
#ifndef ITERATORS_HUE_H
#define ITERATORS_HUE_H

#include <stddef.h>
#include <stdint.h>

#include "simd.h"

enum { HUE_RUN = 256 }; /* pixels at a time */

/* Hue, saturation and value of Pillow, 0 .. 255; the saturation of grey is 0, and its hue any. */
SIMD_INLINE void hue_from_rgb(const int32_t* red, const int32_t* green, const int32_t* blue, int count,
                              int32_t* hue, int32_t* saturation, int32_t* value) {
    for (int i = 0; i < count; i++) {
        const int r = red[i], g = green[i], b = blue[i];
        int high = r > g ? r : g, low = r < g ? r : g;
        high = high > b ? high : b;
        low = low < b ? low : b;
        /* Masks: which channel is the highest one, the first of equal ones. */
        const int at_red = -(r == high), at_green = ~at_red & -(g == high), at_blue = ~(at_red | at_green);
        const float spread = (float)(high - low + (high == low)), most = (float)(high + (high == 0));
        const int first = (b & at_red) | (r & at_green) | (g & at_blue);
        const int second = (g & at_red) | (b & at_green) | (r & at_blue);
        /* Pillow adds (high - first) / spread and takes off (high - second) / spread in float64.  One of
           the two is 1, and so one sum in float32 is the same.  That the sum with 1 changes no hue was
           seen by trying all of them. */
        const int up = -(second == low);
        const int start = ((2 & at_green) | (4 & at_blue)) + 1 - (2 & up);
        const int more = ((high - first) & up) | ((second - high) & ~up);
        const float sixth = ((float)start + (float)more / spread) / 6.0f;
        const float part = sixth + (float)(sixth < 0.0f);
        hue[i] = (int)(part * 255.0f);
        saturation[i] = (int)((float)(high - low) / most * 255.0f);
        value[i] = high;
    }
}

/* And back. */
SIMD_INLINE void hue_to_rgb(const int32_t* hue, const int32_t* saturation, const int32_t* value, int count,
                            int32_t* red, int32_t* green, int32_t* blue) {
    for (int i = 0; i < count; i++) {
        /* Pillow divides, in float64; for all hues, saturations and values the result is the same. */
        const int whole = (hue[i] * 1544) >> 16, v = value[i]; /* / 42.5 */
        const float part = (float)(2 * hue[i] - 85 * whole) * (1 / 85.0f);
        const float pure = (float)saturation[i] * (1 / 255.0f);
        const int p = (int)((float)v * (1.0f - pure) + 0.5f);
        const int q = (int)((float)v * (1.0f - pure * part) + 0.5f);
        const int t = (int)((float)v * (1.0f - pure * (1.0f - part)) + 0.5f);
        /* Masks of the sectors, of which the seventh is the first again. */
        const int s0 = -((whole == 0) | (whole == 6)), s1 = -(whole == 1), s2 = -(whole == 2);
        const int s3 = -(whole == 3), s4 = -(whole == 4), s5 = -(whole == 5);
        red[i] = (v & (s0 | s5)) | (q & s1) | (p & (s2 | s3)) | (t & s4);
        green[i] = (t & s0) | (v & (s1 | s2)) | (q & s3) | (p & (s4 | s5));
        blue[i] = (p & (s0 | s1)) | (t & s2) | (v & (s3 | s4)) | (q & s5);
    }
}

#if SIMD_X86
/* Channels of RGB pixels apart, all but the last few, whose number is returned; sixteen bytes are five
   pixels and a part. */
SIMD_AVX2 static inline int hue_apart(const uint8_t* pixels, int count, int32_t* red, int32_t* green,
                                      int32_t* blue) {
    const __m128i reds = _mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1);
    const __m128i greens = _mm_setr_epi8(1, -1, -1, -1, 4, -1, -1, -1, 7, -1, -1, -1, 10, -1, -1, -1);
    const __m128i blues = _mm_setr_epi8(2, -1, -1, -1, 5, -1, -1, -1, 8, -1, -1, -1, 11, -1, -1, -1);
    int i = 0;
    for (; i + 6 <= count; i += 4) {
        const __m128i values = _mm_loadu_si128((const __m128i*)(pixels + 3 * i));
        _mm_storeu_si128((__m128i*)(red + i), _mm_shuffle_epi8(values, reds));
        _mm_storeu_si128((__m128i*)(green + i), _mm_shuffle_epi8(values, greens));
        _mm_storeu_si128((__m128i*)(blue + i), _mm_shuffle_epi8(values, blues));
    }
    return i;
}

/* And together again; what is written beyond four pixels is written once more. */
SIMD_AVX2 static inline int hue_together(const int32_t* red, const int32_t* green, const int32_t* blue,
                                         int count, uint8_t* pixels) {
    const __m128i packed = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    int i = 0;
    for (; i + 6 <= count; i += 4) {
        __m128i values = _mm_loadu_si128((const __m128i*)(red + i));
        values = _mm_or_si128(values, _mm_slli_epi32(_mm_loadu_si128((const __m128i*)(green + i)), 8));
        values = _mm_or_si128(values, _mm_slli_epi32(_mm_loadu_si128((const __m128i*)(blue + i)), 16));
        _mm_storeu_si128((__m128i*)(pixels + 3 * i), _mm_shuffle_epi8(values, packed));
    }
    return i;
}
#endif

SIMD_INLINE void hue_turn_any(int level, uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    int32_t red[HUE_RUN], green[HUE_RUN], blue[HUE_RUN], hue[HUE_RUN], saturation[HUE_RUN], value[HUE_RUN];
    for (ptrdiff_t first = 0; first < count; first += HUE_RUN) {
        const int run = count - first < HUE_RUN ? (int)(count - first) : HUE_RUN;
        uint8_t* from = pixels + first * channels;
        int i = 0;
#if SIMD_X86
        if (level >= SIMD_LEVEL_AVX2 && channels == 3) i = hue_apart(from, run, red, green, blue);
#endif
        for (; i < run; i++) {
            red[i] = from[i * channels];
            green[i] = from[i * channels + 1];
            blue[i] = from[i * channels + 2];
        }
        hue_from_rgb(red, green, blue, run, hue, saturation, value);
        for (i = 0; i < run; i++)
            hue[i] = (hue[i] + shift) & 255;
        hue_to_rgb(hue, saturation, value, run, red, green, blue);
        i = 0;
#if SIMD_X86
        if (level >= SIMD_LEVEL_AVX2 && channels == 3) i = hue_together(red, green, blue, run, from);
#endif
        for (; i < run; i++) {
            from[i * channels] = (uint8_t)red[i];
            from[i * channels + 1] = (uint8_t)green[i];
            from[i * channels + 2] = (uint8_t)blue[i];
        }
    }
    (void)level;
}

static SIMD_UNUSED void hue_turn_plain(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    hue_turn_any(SIMD_LEVEL_PLAIN, pixels, count, channels, shift);
}

#if SIMD_X86
SIMD_AVX2 static SIMD_UNUSED void hue_turn_avx2(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    hue_turn_any(SIMD_LEVEL_AVX2, pixels, count, channels, shift);
}

SIMD_AVX512 static SIMD_UNUSED void hue_turn_avx512(uint8_t* pixels, ptrdiff_t count, int channels,
                                                    int shift) {
    hue_turn_any(SIMD_LEVEL_AVX512, pixels, count, channels, shift);
}
#endif

/* `count` pixels of 3 or 4 channels; `shift` of 256 parts of a circle, 0 .. 255. */
static SIMD_UNUSED void hue_turn(int level, uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512) {
        hue_turn_avx512(pixels, count, channels, shift);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        hue_turn_avx2(pixels, count, channels, shift);
        return;
    }
#endif
    (void)level;
    hue_turn_plain(pixels, count, channels, shift);
}

#endif
