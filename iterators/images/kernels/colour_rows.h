/* The colours of one row changed: a plain form that defines the result, AVX2, and AVX-512 for what costs most.
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

/* ---- AVX2: eight pixels at a time, channels apart ---- */

#if SIMD_X86

enum { COLOUR_GROUP = 8, COLOUR_GROUP_READS = 28 };

/* Channel c of eight pixels; reads COLOUR_GROUP_READS bytes. */
SIMD_AVX2 static inline void colour_load(const uint8_t* p, __m256i channels[3]) {
    const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                                   _mm_loadu_si128((const __m128i*)(p + 12)), 1);
    const __m128i first = _mm_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1);
    __m256i spread = _mm256_broadcastsi128_si256(first);
    for (int c = 0; c < 3; c++) {
        channels[c] = _mm256_shuffle_epi8(pixels, spread);
        spread = _mm256_add_epi8(spread, _mm256_set1_epi32(1));
    }
}

/* Writes 24 bytes; every value is 0 .. 255. */
SIMD_AVX2 static inline void colour_store(uint8_t* p, const __m256i channels[3]) {
    const __m128i close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m256i pixels = _mm256_or_si256(
        channels[0], _mm256_or_si256(_mm256_slli_epi32(channels[1], 8), _mm256_slli_epi32(channels[2], 16)));
    pixels = _mm256_shuffle_epi8(pixels, _mm256_broadcastsi128_si256(close));
    pixels = _mm256_permutevar8x32_epi32(pixels, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
    _mm_storeu_si128((__m128i*)p, _mm256_castsi256_si128(pixels));
    _mm_storel_epi64((__m128i*)(p + 16), _mm256_extracti128_si256(pixels, 1));
}

SIMD_AVX2 static inline __m256 colour_round(__m256 value) {
    return _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

SIMD_AVX2 static inline __m256 colour_limit(__m256 value) {
    return _mm256_min_ps(_mm256_max_ps(value, _mm256_setzero_ps()), _mm256_set1_ps(255.f));
}

SIMD_AVX2 static inline __m256i colour_from_float(__m256 value) {
    return _mm256_cvttps_epi32(colour_round(colour_limit(value)));
}

SIMD_AVX2 static void colour_scale_avx2(uint8_t* row, int n, float factor, float offset) {
    const __m256 f = _mm256_set1_ps(factor), o = _mm256_set1_ps(offset);
    int i = 0;
    for (; i <= n - 8; i += 8) {
        const __m256 value =
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(row + i))));
        const __m256i whole = colour_from_float(_mm256_add_ps(_mm256_mul_ps(value, f), o));
        const __m128i words =
            _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        _mm_storel_epi64((__m128i*)(row + i), _mm_packus_epi16(words, words));
    }
    colour_scale_plain(row + i, n - i, factor, offset);
}

SIMD_AVX2 static int64_t colour_grey_sum_avx2(const uint8_t* row, int width) {
    return colour_grey_sum_plain(row, width);
}

SIMD_AVX2 static inline void colour_saturation_group(uint8_t* p, float factor) {
    const __m256 f = _mm256_set1_ps(factor), rest = _mm256_set1_ps(1.f - factor);
    __m256i x[3];
    colour_load(p, x);
    __m256i grey = _mm256_add_epi32(_mm256_mullo_epi32(x[0], _mm256_set1_epi32(COLOUR_RED)),
                                    _mm256_mullo_epi32(x[1], _mm256_set1_epi32(COLOUR_GREEN)));
    grey = _mm256_add_epi32(grey, _mm256_mullo_epi32(x[2], _mm256_set1_epi32(COLOUR_BLUE)));
    grey = _mm256_srai_epi32(_mm256_add_epi32(grey, _mm256_set1_epi32(1 << 13)), 14);
    const __m256 share = _mm256_mul_ps(_mm256_cvtepi32_ps(grey), rest);
    for (int c = 0; c < 3; c++)
        x[c] = colour_from_float(_mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(x[c]), f), share));
    colour_store(p, x);
}

SIMD_AVX2 static inline void colour_lighting_group(uint8_t* p, const float* delta) {
    __m256i x[3];
    colour_load(p, x);
    for (int c = 0; c < 3; c++)
        x[c] = _mm256_cvttps_epi32(
            colour_limit(_mm256_add_ps(_mm256_cvtepi32_ps(x[c]), _mm256_set1_ps(delta[c]))));
    colour_store(p, x);
}

SIMD_AVX2 static inline __m256 colour_choose(__m256 no, __m256 yes, __m256i where) {
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(where));
}

SIMD_AVX2 static inline __m256 colour_shift(__m256 value, int by, int high) {
    const __m256i whole = _mm256_add_epi32(_mm256_cvttps_epi32(colour_round(value)), _mm256_set1_epi32(by));
    return _mm256_cvtepi32_ps(
        _mm256_min_epi32(_mm256_max_epi32(whole, _mm256_setzero_si256()), _mm256_set1_epi32(high)));
}

SIMD_AVX2 static inline void colour_hls_group(uint8_t* p, int dh, int dl, int ds) {
    const __m256 unit = _mm256_set1_ps(1.f / 255.f), one = _mm256_set1_ps(1.f), half = _mm256_set1_ps(0.5f);
    const __m256 full = _mm256_set1_ps(255.f), zero = _mm256_setzero_ps();
    __m256i x[3];
    colour_load(p, x);
    const __m256 r = _mm256_mul_ps(_mm256_cvtepi32_ps(x[0]), unit);
    const __m256 g = _mm256_mul_ps(_mm256_cvtepi32_ps(x[1]), unit);
    const __m256 b = _mm256_mul_ps(_mm256_cvtepi32_ps(x[2]), unit);
    const __m256 high = _mm256_max_ps(_mm256_max_ps(r, g), b), low = _mm256_min_ps(_mm256_min_ps(r, g), b);
    const __m256 sum = _mm256_add_ps(high, low), difference = _mm256_sub_ps(high, low);
    const __m256 coloured = _mm256_cmp_ps(difference, _mm256_set1_ps(COLOUR_GREY), _CMP_GT_OQ);
    __m256 l = _mm256_mul_ps(sum, half);
    /* without colour the divisors become 1 and the quotients are dropped */
    const __m256 below =
        _mm256_blendv_ps(_mm256_sub_ps(_mm256_set1_ps(2.f), sum), sum, _mm256_cmp_ps(l, half, _CMP_LT_OQ));
    __m256 s = _mm256_div_ps(difference, _mm256_blendv_ps(one, below, coloured));
    const __m256 sixth = _mm256_div_ps(_mm256_set1_ps(60.f), _mm256_blendv_ps(one, difference, coloured));
    const __m256 from_red = _mm256_mul_ps(_mm256_sub_ps(g, b), sixth);
    const __m256 from_green = _mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(b, r), sixth), _mm256_set1_ps(120.f));
    const __m256 from_blue = _mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(r, g), sixth), _mm256_set1_ps(240.f));
    __m256 h = _mm256_blendv_ps(from_blue, from_green, _mm256_cmp_ps(high, g, _CMP_EQ_OQ));
    h = _mm256_blendv_ps(h, from_red, _mm256_cmp_ps(high, r, _CMP_EQ_OQ));
    h = _mm256_add_ps(h, _mm256_and_ps(_mm256_set1_ps(360.f), _mm256_cmp_ps(h, zero, _CMP_LT_OQ)));
    h = colour_shift(_mm256_mul_ps(_mm256_and_ps(h, coloured), half), dh, 180);
    l = _mm256_mul_ps(colour_shift(_mm256_mul_ps(l, full), dl, 255), unit);
    s = _mm256_mul_ps(colour_shift(_mm256_mul_ps(_mm256_and_ps(s, coloured), full), ds, 255), unit);

    const __m256 bright = _mm256_sub_ps(_mm256_add_ps(l, s), _mm256_mul_ps(l, s));
    const __m256 most =
        _mm256_blendv_ps(bright, _mm256_mul_ps(l, _mm256_add_ps(one, s)), _mm256_cmp_ps(l, half, _CMP_LE_OQ));
    const __m256 least = _mm256_sub_ps(_mm256_mul_ps(_mm256_set1_ps(2.f), l), most);
    const __m256 six = _mm256_set1_ps(6.f);
    __m256 turn = _mm256_mul_ps(h, _mm256_set1_ps(6.f / 180.f));
    turn = _mm256_sub_ps(turn, _mm256_and_ps(six, _mm256_cmp_ps(turn, six, _CMP_GE_OQ)));
    const __m256i sector = _mm256_cvttps_epi32(turn);
    const __m256 part = _mm256_sub_ps(turn, _mm256_cvtepi32_ps(sector)), span = _mm256_sub_ps(most, least);
    const __m256 falling = _mm256_add_ps(least, _mm256_mul_ps(span, _mm256_sub_ps(one, part)));
    const __m256 rising = _mm256_add_ps(least, _mm256_mul_ps(span, part));
    /* the sector looks each channel's choice up: 0 least, 1 most, 2 falling, 3 rising */
    const __m256i choices[3] = {_mm256_setr_epi32(1, 2, 0, 0, 3, 1, 0, 0),
                                _mm256_setr_epi32(3, 1, 1, 2, 0, 0, 0, 0),
                                _mm256_setr_epi32(0, 0, 3, 1, 1, 2, 0, 0)};
    for (int c = 0; c < 3; c++) {
        const __m256i choice = _mm256_permutevar8x32_epi32(choices[c], sector);
        const __m256i odd = _mm256_slli_epi32(choice, 31), upper = _mm256_slli_epi32(choice, 30);
        const __m256 value =
            colour_choose(colour_choose(least, most, odd), colour_choose(falling, rising, odd), upper);
        x[c] = colour_from_float(_mm256_mul_ps(value, full));
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

SIMD_AVX2 static void colour_saturation_avx2(uint8_t* row, int width, float factor) {
    COLOUR_GROUPS(colour_saturation_group, factor);
}

SIMD_AVX2 static void colour_lighting_avx2(uint8_t* row, int width, const float* delta) {
    COLOUR_GROUPS(colour_lighting_group, delta);
}

SIMD_AVX2 static void colour_hls_avx2(uint8_t* row, int width, int dh, int dl, int ds) {
    COLOUR_GROUPS(colour_hls_group, dh, dl, ds);
}

#undef COLOUR_GROUPS

#include "colour_avx512.h"

#define COLOUR_TRY(call)                                                                                     \
    if (level >= SIMD_LEVEL_AVX2) return call
#define COLOUR_TRY_WIDE(call)                                                                                \
    if (level >= SIMD_LEVEL_AVX512) return call
#else
#define COLOUR_TRY(call)      (void)level
#define COLOUR_TRY_WIDE(call) (void)level
#endif

static void colour_scale_at(int level, uint8_t* row, int n, float factor, float offset) {
    COLOUR_TRY(colour_scale_avx2(row, n, factor, offset));
    colour_scale_plain(row, n, factor, offset);
}

static int64_t colour_grey_sum_at(int level, const uint8_t* row, int width) {
    COLOUR_TRY(colour_grey_sum_avx2(row, width));
    return colour_grey_sum_plain(row, width);
}

static void colour_saturation_at(int level, uint8_t* row, int width, float factor) {
    COLOUR_TRY(colour_saturation_avx2(row, width, factor));
    colour_saturation_plain(row, width, factor);
}

static void colour_hls_at(int level, uint8_t* row, int width, int dh, int dl, int ds) {
    COLOUR_TRY_WIDE(colour_hls_avx512(row, width, dh, dl, ds));
    COLOUR_TRY(colour_hls_avx2(row, width, dh, dl, ds));
    colour_hls_plain(row, width, dh, dl, ds);
}

static void colour_lighting_at(int level, uint8_t* row, int width, const float* delta) {
    COLOUR_TRY(colour_lighting_avx2(row, width, delta));
    colour_lighting_plain(row, width, delta);
}

#undef COLOUR_TRY
#undef COLOUR_TRY_WIDE

#endif
