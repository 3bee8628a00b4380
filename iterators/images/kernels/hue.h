/* The hue of pixels turned as torchvision does with Pillow: to mode HSV, a shift that wraps round, back. */
#ifndef ITERATORS_HUE_H
#define ITERATORS_HUE_H

#include <stddef.h>
#include <stdint.h>

#include "simd.h"

SIMD_INLINE uint8_t hue_byte(float value) {
    const int whole = (int)value;
    return (uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole);
}

/* One RGB pixel; `shift` of 256 parts of a circle, 0 .. 255. */
SIMD_INLINE void hue_turn_pixel(uint8_t* pixel, int shift) {
    const int r = pixel[0], g = pixel[1], b = pixel[2];
    int high = r > g ? r : g, low = r < g ? r : g;
    high = high > b ? high : b;
    low = low < b ? low : b;
    if (high == low) return; /* grey has no hue */
    const float spread = (float)(high - low);
    const float rc = (float)(high - r) / spread, gc = (float)(high - g) / spread;
    const float bc = (float)(high - b) / spread;
    const float sixths = r == high ? bc - gc : g == high ? (float)(2.0 + rc - bc) : (float)(4.0 + gc - rc);
    double turned = sixths / 6.0 + 1.0;
    turned -= turned >= 1.0 ? 1.0 : 0.0;
    const uint8_t hue = (uint8_t)(hue_byte((float)turned * 255.0f) + shift);
    const uint8_t saturation = hue_byte(spread / (float)high * 255.0f);
    if (saturation == 0) {
        pixel[0] = pixel[1] = pixel[2] = (uint8_t)high;
        return;
    }
    const float place = (float)((float)hue * 6.0 / 255.0);
    const int sector = (int)place;
    const float part = place - (float)sector, pure = (float)(saturation / 255.0);
    const float value = (float)high;
    const uint8_t p = (uint8_t)(int)(value * (1.0 - pure) + 0.5);
    const uint8_t q = (uint8_t)(int)(value * (1.0 - pure * part) + 0.5);
    const uint8_t t = (uint8_t)(int)(value * (1.0 - pure * (1.0 - part)) + 0.5);
    const uint8_t v = (uint8_t)high;
    const uint8_t found[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    for (int c = 0; c < 3; c++)
        pixel[c] = found[sector % 6][c];
}

/* `count` pixels of 3 or 4 channels. */
static SIMD_UNUSED void hue_turn(uint8_t* pixels, ptrdiff_t count, int channels, int shift) {
    for (ptrdiff_t i = 0; i < count; i++)
        hue_turn_pixel(pixels + i * channels, shift);
}

#endif
