/* The colours of one row changed: a plain form that defines the result, vectors, and AVX-512 for what costs most.
 *
 * `colour_*_at` takes the best form up to a level; all give the same bytes.
 */
#ifndef RECORDIO_COLOUR_ROWS_H
#define RECORDIO_COLOUR_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pixel.h"
#include "simd.h"
#include "vectors.h"

/* Greys that an int32 holds the sum of, and more than fits any register. */
enum { COLOUR_CHUNK = 1024 };

enum { COLOUR_RED = 1868, COLOUR_GREEN = 9617, COLOUR_BLUE = 4899 }; /* of 2^14 */
#define COLOUR_GREY 1.1920929e-7f /* less colour than this is none: the last bit of 1 in float32 */

/* ---- brightness and contrast: any number of channels ---- */

static void colour_scale_plain(uint8_t* row, int n, float factor, float offset) {
    for (int i = 0; i < n; i++)
        row[i] = pixel_from_float((float)row[i] * factor + offset);
}

/* ---- grey: 0.114 R + 0.587 G + 0.299 B with 14-bit weights ---- */

SIMD_INLINE int colour_grey(int red, int green, int blue) {
    return (red * COLOUR_RED + green * COLOUR_GREEN + blue * COLOUR_BLUE + (1 << 13)) >> 14;
}

SIMD_INLINE int64_t colour_grey_sum_plain(const uint8_t* row, int width) {
    int64_t sum = 0;
    for (int x = 0; x < width; x += COLOUR_CHUNK, row += 3 * COLOUR_CHUNK) {
        const int n = width - x < COLOUR_CHUNK ? width - x : COLOUR_CHUNK;
        int32_t chunk = 0;
        for (int i = 0; i < n; i++)
            chunk += colour_grey(row[3 * i], row[3 * i + 1], row[3 * i + 2]);
        sum += chunk;
    }
    return sum;
}

static void colour_saturation_plain(uint8_t* row, int width, float factor) {
    const float rest = 1.f - factor;
    for (int i = 0; i < width; i++, row += 3) {
        const float grey = (float)colour_grey(row[0], row[1], row[2]) * rest;
        for (int c = 0; c < 3; c++)
            row[c] = pixel_from_float((float)row[c] * factor + grey);
    }
}

/* ---- hue, lightness, saturation ---- */

SIMD_INLINE int colour_clamp(int value, int high) {
    return value < 0 ? 0 : value > high ? high : value;
}

/* One pixel, 0 .. 255. */
static void colour_hls_pixel(uint8_t* pixel, int dh, int dl, int ds) {
    const float unit = 1.f / 255.f;
    /* to hue 0 .. 180, lightness and saturation 0 .. 255, whole numbers */
    const float r = (float)pixel[0] * unit, g = (float)pixel[1] * unit, b = (float)pixel[2] * unit;
    float high = r > g ? r : g, low = r < g ? r : g;
    high = high > b ? high : b;
    low = low < b ? low : b;
    const float sum = high + low, difference = high - low;
    float h = 0.f, s = 0.f, l = sum * 0.5f;
    if (difference > COLOUR_GREY) {
        const float sixth = 60.f / difference;
        s = difference / (l < 0.5f ? sum : 2.f - sum);
        h = high == r ? (g - b) * sixth : high == g ? (b - r) * sixth + 120.f : (r - g) * sixth + 240.f;
        if (h < 0.f) h += 360.f;
    }
    const int whole_h = colour_clamp((int)pixel_round(h * 0.5f) + dh, 180);
    const int whole_l = colour_clamp((int)pixel_round(l * 255.f) + dl, 255);
    const int whole_s = colour_clamp((int)pixel_round(s * 255.f) + ds, 255);
    /* and back: a hue is one of six sectors and a part of it */
    l = (float)whole_l * unit;
    s = (float)whole_s * unit;
    const float most = l <= 0.5f ? l * (1.f + s) : l + s - l * s;
    const float least = 2.f * l - most;
    float turn = (float)whole_h * (6.f / 180.f);
    if (turn >= 6.f) turn -= 6.f;
    const int sector = (int)turn;
    const float part = turn - (float)sector;
    const float falling = least + (most - least) * (1.f - part), rising = least + (most - least) * part;
    float to[3];
    switch (sector) {
    case 0:
        to[0] = most, to[1] = rising, to[2] = least;
        break;
    case 1:
        to[0] = falling, to[1] = most, to[2] = least;
        break;
    case 2:
        to[0] = least, to[1] = most, to[2] = rising;
        break;
    case 3:
        to[0] = least, to[1] = falling, to[2] = most;
        break;
    case 4:
        to[0] = rising, to[1] = least, to[2] = most;
        break;
    default:
        to[0] = most, to[1] = least, to[2] = falling;
        break;
    }
    for (int c = 0; c < 3; c++)
        pixel[c] = pixel_from_float(to[c] * 255.f);
}

static void colour_hls_plain(uint8_t* row, int width, int dh, int dl, int ds) {
    for (int i = 0; i < width; i++)
        colour_hls_pixel(row + 3 * (ptrdiff_t)i, dh, dl, ds);
}

/* ---- PCA lighting ---- */

static void colour_lighting_plain(uint8_t* row, int width, const float* delta) {
    for (int i = 0; i < width; i++, row += 3)
        for (int c = 0; c < 3; c++) {
            float value = (float)row[c] + delta[c];
            value = value > 0.f ? value : 0.f;
            value = value < 255.f ? value : 255.f;
            row[c] = (uint8_t)(int)value;
        }
}

/* ---- AVX2 and NEON: LANES pixels at a time, channels apart ---- */

#if SIMD_VECTORS

enum { COLOUR_GROUP = LANES, COLOUR_GROUP_READS = 3 * (LANES - 4) + 16 };

/* Channel c of a group of pixels; reads COLOUR_GROUP_READS bytes. */
SIMD_LANES static inline void colour_load(const uint8_t* p, lanes_v channels[3]) {
    const lanes_v pixels = lanes_load_pixels(p, 3);
    lanes_v spread = lanes_twice(simd_bytes(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1));
    for (int c = 0; c < 3; c++) {
        channels[c] = lanes_shuffle(pixels, spread);
        spread += lanes_set(1); /* the lowest bytes, which do not overflow */
    }
}

/* Writes three bytes a pixel; every value is 0 .. 255. */
SIMD_LANES static inline void colour_store(uint8_t* p, const lanes_v channels[3]) {
    lanes_store_three(p, channels[0] | (channels[1] << 8 | channels[2] << 16));
}

SIMD_LANES static inline lanes_f colour_limit(lanes_f value) {
    return lanes_least(lanes_most(value, lanes_set_float(0.f)), lanes_set_float(255.f));
}

SIMD_LANES static inline lanes_v colour_from_float(lanes_f value) {
    return lanes_from_float(lanes_round(colour_limit(value)));
}

SIMD_LANES static void colour_scale_lanes(uint8_t* row, int n, float factor, float offset) {
    const lanes_f f = lanes_set_float(factor), o = lanes_set_float(offset);
    int i = 0;
    for (; i <= n - LANES; i += LANES)
        lanes_store_bytes(row + i, colour_from_float(lanes_to_float(lanes_load_bytes(row + i)) * f + o));
    colour_scale_plain(row + i, n - i, factor, offset);
}

SIMD_LANES static inline void colour_saturation_group(uint8_t* p, float factor) {
    const lanes_f f = lanes_set_float(factor), rest = lanes_set_float(1.f - factor);
    lanes_v x[3];
    colour_load(p, x);
    const lanes_v grey = x[0] * lanes_set(COLOUR_RED) + x[1] * lanes_set(COLOUR_GREEN) +
                         x[2] * lanes_set(COLOUR_BLUE) + lanes_set(1 << 13);
    const lanes_f share = lanes_to_float(grey >> 14) * rest;
    for (int c = 0; c < 3; c++)
        x[c] = colour_from_float(lanes_to_float(x[c]) * f + share);
    colour_store(p, x);
}

SIMD_LANES static inline void colour_lighting_group(uint8_t* p, const float* delta) {
    lanes_v x[3];
    colour_load(p, x);
    for (int c = 0; c < 3; c++)
        x[c] = lanes_from_float(colour_limit(lanes_to_float(x[c]) + lanes_set_float(delta[c])));
    colour_store(p, x);
}

SIMD_LANES static inline lanes_f colour_shift(lanes_f value, int by, int high) {
    return lanes_to_float(lanes_clamp(lanes_from_float(lanes_round(value)) + lanes_set(by), high));
}

SIMD_LANES static inline void colour_hls_group(uint8_t* p, int dh, int dl, int ds) {
    const lanes_f unit = lanes_set_float(1.f / 255.f), one = lanes_set_float(1.f);
    const lanes_f half = lanes_set_float(0.5f), two = lanes_set_float(2.f), six = lanes_set_float(6.f);
    const lanes_f full = lanes_set_float(255.f), zero = lanes_set_float(0.f);
    lanes_v x[3];
    colour_load(p, x);
    const lanes_f r = lanes_to_float(x[0]) * unit, g = lanes_to_float(x[1]) * unit;
    const lanes_f b = lanes_to_float(x[2]) * unit;
    const lanes_f high = lanes_most(lanes_most(r, g), b), low = lanes_least(lanes_least(r, g), b);
    const lanes_f sum = high + low, difference = high - low;
    const lanes_v coloured = difference > lanes_set_float(COLOUR_GREY);
    lanes_f l = sum * half;
    /* without colour the divisors become 1 and the quotients are dropped */
    const lanes_f below = lanes_choose(l < half, sum, two - sum);
    lanes_f s = difference / lanes_choose(coloured, below, one);
    const lanes_f sixth = lanes_set_float(60.f) / lanes_choose(coloured, difference, one);
    const lanes_f from_red = (g - b) * sixth;
    const lanes_f from_green = (b - r) * sixth + lanes_set_float(120.f);
    const lanes_f from_blue = (r - g) * sixth + lanes_set_float(240.f);
    lanes_f h = lanes_choose(high == g, from_green, from_blue);
    h = lanes_choose(high == r, from_red, h);
    h += lanes_keep(h < zero, lanes_set_float(360.f));
    h = colour_shift(lanes_keep(coloured, h) * half, dh, 180);
    l = colour_shift(l * full, dl, 255) * unit;
    s = colour_shift(lanes_keep(coloured, s) * full, ds, 255) * unit;

    const lanes_f most = lanes_choose(l <= half, l * (one + s), (l + s) - l * s);
    const lanes_f least = two * l - most;
    lanes_f turn = h * lanes_set_float(6.f / 180.f);
    turn -= lanes_keep(turn >= six, six);
    const lanes_v sector = lanes_from_float(turn);
    const lanes_f part = turn - lanes_to_float(sector), span = most - least;
    const lanes_f falling = least + span * (one - part), rising = least + span * part;
    /* the sector looks each channel's choice up: 0 least, 1 most, 2 falling, 3 rising */
    static const int32_t choices[3][8] = {
        {1, 2, 0, 0, 3, 1, 0, 0}, {3, 1, 1, 2, 0, 0, 0, 0}, {0, 0, 3, 1, 1, 2, 0, 0}};
    for (int c = 0; c < 3; c++) {
        const lanes_v choice = lanes_look_up(choices[c], sector);
        const lanes_v odd = choice << 31, upper = choice << 30;
        x[c] = colour_from_float(
            lanes_choose(upper, lanes_choose(odd, rising, falling), lanes_choose(odd, most, least)) * full);
    }
    colour_store(p, x);
}

/* Runs a group kernel along a row; the last pixels pass through a copy that is long enough. */
#define COLOUR_GROUPS(kernel, ...)                                                                           \
    do {                                                                                                     \
        int i = 0;                                                                                           \
        for (; 3 * (width - i) >= COLOUR_GROUP_READS; i += COLOUR_GROUP)                                     \
            kernel(row + 3 * (ptrdiff_t)i, __VA_ARGS__);                                                     \
        while (i < width) {                                                                                  \
            uint8_t copy[32] = {0};                                                                          \
            const int n = width - i < COLOUR_GROUP ? width - i : COLOUR_GROUP;                               \
            memcpy(copy, row + 3 * (ptrdiff_t)i, 3 * (size_t)n);                                             \
            kernel(copy, __VA_ARGS__);                                                                       \
            memcpy(row + 3 * (ptrdiff_t)i, copy, 3 * (size_t)n);                                             \
            i += n;                                                                                          \
        }                                                                                                    \
    } while (0)

SIMD_LANES static void colour_saturation_lanes(uint8_t* row, int width, float factor) {
    COLOUR_GROUPS(colour_saturation_group, factor);
}

SIMD_LANES static void colour_lighting_lanes(uint8_t* row, int width, const float* delta) {
    COLOUR_GROUPS(colour_lighting_group, delta);
}

SIMD_LANES static void colour_hls_lanes(uint8_t* row, int width, int dh, int dl, int ds) {
    COLOUR_GROUPS(colour_hls_group, dh, dl, ds);
}

#undef COLOUR_GROUPS

#define COLOUR_TRY(call)                                                                                     \
    if (level >= SIMD_LEVEL_AVX2) return call
#else
#define COLOUR_TRY(call) (void)level
#endif

/* ---- what only x86 has, or the compiler finds by itself elsewhere ---- */

#if SIMD_X86

SIMD_AVX2 static int64_t colour_grey_sum_avx2(const uint8_t* row, int width) {
    return colour_grey_sum_plain(row, width);
}

#include "colour_avx512.h"

#define COLOUR_TRY_AVX2(call) COLOUR_TRY(call)
#define COLOUR_TRY_AVX512(call)                                                                              \
    if (level >= SIMD_LEVEL_AVX512) return call
#else
#define COLOUR_TRY_AVX2(call)   (void)level
#define COLOUR_TRY_AVX512(call) (void)level
#endif

static void colour_scale_at(int level, uint8_t* row, int n, float factor, float offset) {
    COLOUR_TRY(colour_scale_lanes(row, n, factor, offset));
    colour_scale_plain(row, n, factor, offset);
}

static int64_t colour_grey_sum_at(int level, const uint8_t* row, int width) {
    COLOUR_TRY_AVX2(colour_grey_sum_avx2(row, width));
    return colour_grey_sum_plain(row, width);
}

static void colour_saturation_at(int level, uint8_t* row, int width, float factor) {
    COLOUR_TRY(colour_saturation_lanes(row, width, factor));
    colour_saturation_plain(row, width, factor);
}

static void colour_hls_at(int level, uint8_t* row, int width, int dh, int dl, int ds) {
    COLOUR_TRY_AVX512(colour_hls_avx512(row, width, dh, dl, ds));
    COLOUR_TRY(colour_hls_lanes(row, width, dh, dl, ds));
    colour_hls_plain(row, width, dh, dl, ds);
}

static void colour_lighting_at(int level, uint8_t* row, int width, const float* delta) {
    COLOUR_TRY(colour_lighting_lanes(row, width, delta));
    colour_lighting_plain(row, width, delta);
}

#undef COLOUR_TRY
#undef COLOUR_TRY_AVX2
#undef COLOUR_TRY_AVX512

#endif
