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

/* Hue, saturation and value of Pillow, 0 .. 255; hue and saturation of grey are 0. */
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
        const float plus = (float)(high - ((b & at_red) | (r & at_green) | (g & at_blue))) / spread;
        const float minus = (float)(high - ((g & at_red) | (b & at_green) | (r & at_blue))) / spread;
        const float sixths = (float)((double)((2 & at_green) | (4 & at_blue)) + (double)plus - (double)minus);
        const double turned = (double)sixths / 6.0 + 1.0;
        const float part = (float)(turned - (double)(int)turned);
        hue[i] = (int)(part * 255.0f);
        saturation[i] = (int)((float)(high - low) / most * 255.0f);
        value[i] = high;
    }
}

/* And back. */
SIMD_INLINE void hue_to_rgb(const int32_t* hue, const int32_t* saturation, const int32_t* value, int count,
                            int32_t* red, int32_t* green, int32_t* blue) {
    for (int i = 0; i < count; i++) {
        const float place = (float)((double)hue[i] * 6.0 / 255.0);
        const int whole = (int)place, v = value[i];
        const float part = place - (float)whole, pure = (float)((double)saturation[i] / 255.0);
        const int p = (int)((double)v * (1.0 - (double)pure) + 0.5);
        const int q = (int)((double)v * (1.0 - (double)(pure * part)) + 0.5);
        const int t = (int)((double)v * (1.0 - (double)pure * (1.0 - (double)part)) + 0.5);
        /* Masks of the sectors, of which the seventh is the first again. */
        const int s0 = -((whole == 0) | (whole == 6)), s1 = -(whole == 1), s2 = -(whole == 2);
        const int s3 = -(whole == 3), s4 = -(whole == 4), s5 = -(whole == 5);
        red[i] = (v & (s0 | s5)) | (q & s1) | (p & (s2 | s3)) | (t & s4);
        green[i] = (t & s0) | (v & (s1 | s2)) | (q & s3) | (p & (s4 | s5));
        blue[i] = (p & (s0 | s1)) | (t & s2) | (v & (s3 | s4)) | (q & s5);
    }
}

SIMD_INLINE void hue_turn_any(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    int32_t red[HUE_RUN], green[HUE_RUN], blue[HUE_RUN], hue[HUE_RUN], saturation[HUE_RUN], value[HUE_RUN];
    for (ptrdiff_t first = 0; first < count; first += HUE_RUN) {
        const int run = count - first < HUE_RUN ? (int)(count - first) : HUE_RUN;
        uint8_t* from = pixels + first * channels;
        for (int i = 0; i < run; i++) {
            red[i] = from[i * channels];
            green[i] = from[i * channels + 1];
            blue[i] = from[i * channels + 2];
        }
        hue_from_rgb(red, green, blue, run, hue, saturation, value);
        for (int i = 0; i < run; i++)
            hue[i] = (hue[i] + shift) & 255;
        hue_to_rgb(hue, saturation, value, run, red, green, blue);
        for (int i = 0; i < run; i++) {
            from[i * channels] = (uint8_t)red[i];
            from[i * channels + 1] = (uint8_t)green[i];
            from[i * channels + 2] = (uint8_t)blue[i];
        }
    }
}

static SIMD_UNUSED void hue_turn_plain(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    hue_turn_any(pixels, count, channels, shift);
}

#if SIMD_X86
SIMD_AVX2 static SIMD_UNUSED void hue_turn_avx2(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    hue_turn_any(pixels, count, channels, shift);
}

SIMD_AVX512 static SIMD_UNUSED void hue_turn_avx512(uint8_t* pixels, ptrdiff_t count, int channels,
                                                    int shift) {
    hue_turn_any(pixels, count, channels, shift);
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
