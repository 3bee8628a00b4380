/* Operations that mix every pixel with its grey or with its neighbours, as Pillow's ImageEnhance does.
 *
 * Image.blend in float32, cut off and not rounded.  Written as loops that a compiler makes vectors of;
 * every instruction set gives the same bytes.  Alpha, the last of 4 channels, stays as it is.
 */
#ifndef ITERATORS_BLEND_H
#define ITERATORS_BLEND_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

enum { BLEND_RUN = 512 }; /* pixels at a time, so that what lies in between stays near */

/* ITU-R 601-2 luma with weights of 2^16, rounded: Pillow's mode L. */
SIMD_INLINE int blend_luma(int red, int green, int blue) {
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
}

/* ``from`` at a factor of 0, ``to`` at 1, and beyond. */
SIMD_INLINE uint8_t blend_value(int from, int to, float factor) {
    float value = (float)from + factor * (float)(to - from);
    value = value > 0.f ? value : 0.f;
    value = value < 255.f ? value : 255.f;
    return (uint8_t)(int)value;
}

/* Lumas of up to BLEND_RUN pixels of 3 or 4 channels. */
SIMD_INLINE void blend_lumas(const uint8_t* pixels, int count, int channels, uint8_t* lumas) {
    if (channels == 3)
        for (int i = 0; i < count; i++)
            lumas[i] = (uint8_t)blend_luma(pixels[3 * i], pixels[3 * i + 1], pixels[3 * i + 2]);
    else
        for (int i = 0; i < count; i++)
            lumas[i] = (uint8_t)blend_luma(pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]);
}

/* Sum of the lumas of all pixels, of 1, 3 or 4 channels. */
SIMD_INLINE int64_t blend_luma_sum_any(const uint8_t* pixels, ptrdiff_t count, int channels) {
    uint8_t lumas[BLEND_RUN];
    int64_t sum = 0;
    for (ptrdiff_t i = 0; i < count; i += BLEND_RUN) {
        const int run = count - i < BLEND_RUN ? (int)(count - i) : BLEND_RUN;
        const uint8_t* values = pixels + i;
        int32_t part = 0;
        if (channels != 1) {
            blend_lumas(pixels + i * channels, run, channels, lumas);
            values = lumas;
        }
        for (int j = 0; j < run; j++)
            part += values[j];
        sum += part;
    }
    return sum;
}

/* Every pixel moves away from its luma, or towards it; a factor of 0 makes an image grey. */
SIMD_INLINE void blend_colour_any(uint8_t* pixels, ptrdiff_t count, int channels, float factor) {
    uint8_t lumas[BLEND_RUN], greys[4 * BLEND_RUN];
    for (ptrdiff_t i = 0; i < count; i += BLEND_RUN) {
        const int run = count - i < BLEND_RUN ? (int)(count - i) : BLEND_RUN;
        uint8_t* values = pixels + i * channels;
        blend_lumas(values, run, channels, lumas);
        if (channels == 3) {
            for (int j = 0; j < run; j++)
                greys[3 * j] = greys[3 * j + 1] = greys[3 * j + 2] = lumas[j];
        } else {
            for (int j = 0; j < run; j++) {
                greys[4 * j] = greys[4 * j + 1] = greys[4 * j + 2] = lumas[j];
                greys[4 * j + 3] = values[4 * j + 3];
            }
        }
        for (int j = 0; j < run * channels; j++)
            values[j] = blend_value(greys[j], values[j], factor);
    }
}

/* Pillow's SMOOTH, which weighs a pixel five times its neighbours: what blend_sharpness starts from.
   Sums of 13 values, rounded; there is no half. */
SIMD_INLINE void blend_sharpness_row(const uint8_t* above, const uint8_t* here, const uint8_t* below,
                                     int size, int channels, float factor, uint8_t* out) {
    for (int i = channels; i < size - channels; i++) {
        const int sum = above[i - channels] + above[i] + above[i + channels] + here[i - channels] +
                        5 * here[i] + here[i + channels] + below[i - channels] + below[i] +
                        below[i + channels];
        const int smooth = (int)((uint32_t)(2 * sum + 13) * 40330u >> 20); /* / 26 */
        out[i] = blend_value(smooth, here[i], factor);
    }
}

/* Every pixel moves away from the mean of its neighbourhood, or towards it; those at the edge of the
   image stay.  `copy` has room for the image. */
SIMD_INLINE void blend_sharpness_any(uint8_t* pixels, int width, int height, int channels, float factor,
                                     uint8_t* copy) {
    const int size = width * channels;
    if (width < 3 || height < 3) return;
    memcpy(copy, pixels, (size_t)size * height);
    for (int y = 1; y < height - 1; y++) {
        const uint8_t* here = copy + (ptrdiff_t)y * size;
        uint8_t* out = pixels + (ptrdiff_t)y * size;
        blend_sharpness_row(here - size, here, here + size, size, channels, factor, out);
        if (channels == 4)
            for (int x = 1; x < width - 1; x++)
                out[4 * x + 3] = here[4 * x + 3];
    }
}

/* ---- for each instruction set ---- */

static SIMD_UNUSED int64_t blend_luma_sum_plain(const uint8_t* pixels, ptrdiff_t count, int channels) {
    return blend_luma_sum_any(pixels, count, channels);
}

static SIMD_UNUSED void blend_colour_plain(uint8_t* pixels, ptrdiff_t count, int channels, float factor) {
    blend_colour_any(pixels, count, channels, factor);
}

static SIMD_UNUSED void blend_sharpness_plain(uint8_t* pixels, int width, int height, int channels,
                                              float factor, uint8_t* copy) {
    blend_sharpness_any(pixels, width, height, channels, factor, copy);
}

#if SIMD_X86
SIMD_AVX2 static SIMD_UNUSED int64_t blend_luma_sum_avx2(const uint8_t* pixels, ptrdiff_t count,
                                                         int channels) {
    return blend_luma_sum_any(pixels, count, channels);
}

SIMD_AVX2 static SIMD_UNUSED void blend_colour_avx2(uint8_t* pixels, ptrdiff_t count, int channels,
                                                    float factor) {
    blend_colour_any(pixels, count, channels, factor);
}

SIMD_AVX2 static SIMD_UNUSED void blend_sharpness_avx2(uint8_t* pixels, int width, int height, int channels,
                                                       float factor, uint8_t* copy) {
    blend_sharpness_any(pixels, width, height, channels, factor, copy);
}
#endif

static SIMD_UNUSED int64_t blend_luma_sum(int level, const uint8_t* pixels, ptrdiff_t count, int channels) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2) return blend_luma_sum_avx2(pixels, count, channels);
#endif
    (void)level;
    return blend_luma_sum_plain(pixels, count, channels);
}

static SIMD_UNUSED void blend_colour(int level, uint8_t* pixels, ptrdiff_t count, int channels,
                                     float factor) {
    if (channels == 1) return;
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2) {
        blend_colour_avx2(pixels, count, channels, factor);
        return;
    }
#endif
    (void)level;
    blend_colour_plain(pixels, count, channels, factor);
}

static SIMD_UNUSED void blend_sharpness(int level, uint8_t* pixels, int width, int height, int channels,
                                        float factor, uint8_t* copy) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2) {
        blend_sharpness_avx2(pixels, width, height, channels, factor, copy);
        return;
    }
#endif
    (void)level;
    blend_sharpness_plain(pixels, width, height, channels, factor, copy);
}

#endif
