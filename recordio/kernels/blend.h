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
SIMD_INLINE void blend_lumas_plain(const uint8_t* pixels, int count, int channels, uint8_t* lumas) {
    for (int i = 0; i < count; i++, pixels += channels)
        lumas[i] = (uint8_t)blend_luma(pixels[0], pixels[1], pixels[2]);
}

/* Every luma once for each channel; alpha, the last of four, is that of the pixels. */
SIMD_INLINE void blend_greys_plain(const uint8_t* pixels, const uint8_t* lumas, int count, int channels,
                                   uint8_t* greys) {
    for (int i = 0; i < count; i++, pixels += channels, greys += channels) {
        greys[0] = greys[1] = greys[2] = lumas[i];
        if (channels == 4) greys[3] = pixels[3];
    }
}

/* Every value moves away from that of an image of another kind, or towards it. */
SIMD_INLINE void blend_values(const uint8_t* from, uint8_t* values, int count, float factor) {
    for (int i = 0; i < count; i++)
        values[i] = blend_value(from[i], values[i], factor);
}

/* Pillow's SMOOTH, which weighs a pixel five times its neighbours: what blend_sharpness starts from.
   Sums of 13 values, rounded; there is no half. */
SIMD_INLINE void blend_smooth_rest(const uint8_t* here, int size, int channels, const uint16_t* columns,
                                   int first, uint8_t* out) {
    for (int i = first; i < size - channels; i++) {
        const int sum = columns[i - channels] + columns[i] + columns[i + channels] + 4 * here[i];
        out[i] = (uint8_t)((uint32_t)(2 * sum + 13) * 40330u >> 20); /* / 26 */
    }
}

SIMD_INLINE void blend_smooth_row(const uint8_t* above, const uint8_t* here, const uint8_t* below, int size,
                                  int channels, uint16_t* columns, uint8_t* out) {
    for (int i = 0; i < size; i++)
        columns[i] = (uint16_t)(above[i] + here[i] + below[i]);
    blend_smooth_rest(here, size, channels, columns, channels, out);
}

/* Bytes that blend_sharpness needs besides the image. */
static SIMD_UNUSED size_t blend_sharpness_room(int width, int channels) {
    return 5 * (size_t)width * channels;
}

/* ---- for each instruction set ---- */

static SIMD_UNUSED int64_t blend_sum_plain(const uint8_t* values, int count) {
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

static SIMD_UNUSED void blend_values_plain(const uint8_t* from, uint8_t* values, int count, float factor) {
    blend_values(from, values, count, factor);
}

#if SIMD_X86
/* Eight values, 32 bits each. */
SIMD_AVX2 static inline __m256i blend_eight(__m128i from, __m128i to, __m256 factor) {
    const __m256i first = _mm256_cvtepu8_epi32(from);
    const __m256i step = _mm256_sub_epi32(_mm256_cvtepu8_epi32(to), first);
    __m256 value = _mm256_mul_ps(factor, _mm256_cvtepi32_ps(step));
    value = _mm256_add_ps(_mm256_cvtepi32_ps(first), value);
    value = _mm256_min_ps(_mm256_max_ps(value, _mm256_setzero_ps()), _mm256_set1_ps(255.f));
    return _mm256_cvttps_epi32(value);
}

SIMD_AVX2 static SIMD_UNUSED void blend_values_avx2(const uint8_t* from, uint8_t* values, int count,
                                                    float factor) {
    const __m256 factors = _mm256_set1_ps(factor);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int i = 0;
    for (; i + 32 <= count; i += 32) {
        __m256i parts[4];
        for (int j = 0; j < 4; j++)
            parts[j] = blend_eight(_mm_loadl_epi64((const __m128i*)(from + i + 8 * j)),
                                   _mm_loadl_epi64((const __m128i*)(values + i + 8 * j)), factors);
        const __m256i low = _mm256_packus_epi32(parts[0], parts[1]);
        const __m256i high = _mm256_packus_epi32(parts[2], parts[3]);
        _mm256_storeu_si256((__m256i*)(values + i),
                            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
    blend_values(from + i, values + i, count - i, factor);
}

SIMD_AVX512 static SIMD_UNUSED void blend_values_avx512(const uint8_t* from, uint8_t* values, int count,
                                                        float factor) {
    const __m512 factors = _mm512_set1_ps(factor);
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512i first = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(from + i)));
        const __m512i to = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(values + i)));
        __m512 value = _mm512_mul_ps(factors, _mm512_cvtepi32_ps(_mm512_sub_epi32(to, first)));
        value = _mm512_add_ps(_mm512_cvtepi32_ps(first), value);
        value = _mm512_min_ps(_mm512_max_ps(value, _mm512_setzero_ps()), _mm512_set1_ps(255.f));
        _mm_storeu_si128((__m128i*)(values + i), _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(value)));
    }
    blend_values(from + i, values + i, count - i, factor);
}

SIMD_AVX2 static SIMD_UNUSED void blend_smooth_row_avx2(const uint8_t* above, const uint8_t* here,
                                                        const uint8_t* below, int size, int channels,
                                                        uint16_t* columns, uint8_t* out) {
    int i = 0;
    for (; i + 16 <= size; i += 16) {
        __m256i sum = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(above + i)));
        sum = _mm256_add_epi16(sum, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(here + i))));
        sum = _mm256_add_epi16(sum, _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(below + i))));
        _mm256_storeu_si256((__m256i*)(columns + i), sum);
    }
    for (; i < size; i++)
        columns[i] = (uint16_t)(above[i] + here[i] + below[i]);
    for (i = channels; i + 16 <= size - channels; i += 16) {
        const __m256i centre = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)(here + i)));
        __m256i sum = _mm256_slli_epi16(centre, 2);
        for (int d = -1; d <= 1; d++)
            sum = _mm256_add_epi16(sum, _mm256_loadu_si256((const __m256i*)(columns + i + d * channels)));
        sum = _mm256_add_epi16(_mm256_add_epi16(sum, sum), _mm256_set1_epi16(13));
        sum = _mm256_srli_epi16(_mm256_mulhi_epu16(sum, _mm256_set1_epi16((short)40330)), 4);
        const __m128i packed =
            _mm_packus_epi16(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        _mm_storeu_si128((__m128i*)(out + i), packed);
    }
    blend_smooth_rest(here, size, channels, columns, i, out);
}

/* Four lumas, 32 bits each, of the first four pixels of sixteen bytes: green is weighed in two halves, so
   that every weight fits 16 bits. */
SIMD_AVX2 static inline __m128i blend_four_lumas(__m128i pixels, __m128i red_green, __m128i green_blue) {
    const __m128i first = _mm_set1_epi32(19595 | 19235 << 16), second = _mm_set1_epi32(19235 | 7471 << 16);
    const __m128i sum = _mm_add_epi32(_mm_madd_epi16(_mm_shuffle_epi8(pixels, red_green), first),
                                      _mm_madd_epi16(_mm_shuffle_epi8(pixels, green_blue), second));
    return _mm_srli_epi32(_mm_add_epi32(sum, _mm_set1_epi32(0x8000)), 16);
}

/* Lumas of RGB pixels and, where asked for, three times each; all but the last few, whose number is
   returned.  Reads and writes no more than there is. */
SIMD_AVX2 static SIMD_UNUSED int blend_rgb_avx2(const uint8_t* pixels, int count, uint8_t* lumas,
                                                uint8_t* greys) {
    const __m128i red_green = _mm_setr_epi8(0, -1, 1, -1, 3, -1, 4, -1, 6, -1, 7, -1, 9, -1, 10, -1);
    const __m128i green_blue = _mm_setr_epi8(1, -1, 2, -1, 4, -1, 5, -1, 7, -1, 8, -1, 10, -1, 11, -1);
    const __m128i low = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i thrice = _mm_setr_epi8(0, 0, 0, 4, 4, 4, 8, 8, 8, 12, 12, 12, -1, -1, -1, -1);
    int i = 0;
    for (; i + 6 <= count; i += 4) { /* sixteen bytes are five pixels and a part */
        const __m128i values = _mm_loadu_si128((const __m128i*)(pixels + 3 * i));
        const __m128i four = blend_four_lumas(values, red_green, green_blue);
        const int32_t packed = _mm_cvtsi128_si32(_mm_shuffle_epi8(four, low));
        memcpy(lumas + i, &packed, 4);
        if (greys != NULL) _mm_storeu_si128((__m128i*)(greys + 3 * i), _mm_shuffle_epi8(four, thrice));
    }
    return i;
}

SIMD_AVX2 static SIMD_UNUSED int64_t blend_sum_avx2(const uint8_t* values, int count) {
    __m256i sums = _mm256_setzero_si256();
    int i = 0;
    for (; i + 32 <= count; i += 32)
        sums = _mm256_add_epi64(
            sums, _mm256_sad_epu8(_mm256_loadu_si256((const __m256i*)(values + i)), _mm256_setzero_si256()));
    int64_t parts[4];
    _mm256_storeu_si256((__m256i*)parts, sums);
    return parts[0] + parts[1] + parts[2] + parts[3] + blend_sum_plain(values + i, count - i);
}
#endif

/* Lumas of a run of pixels, and greys if they are wanted. */
static SIMD_UNUSED void blend_run(int level, const uint8_t* pixels, int count, int channels, uint8_t* lumas,
                                  uint8_t* greys) {
    int done = 0;
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2 && channels == 3) done = blend_rgb_avx2(pixels, count, lumas, greys);
#endif
    (void)level;
    pixels += done * channels;
    blend_lumas_plain(pixels, count - done, channels, lumas + done);
    if (greys != NULL)
        blend_greys_plain(pixels, lumas + done, count - done, channels, greys + done * channels);
}

/* Sum of the lumas of all pixels, of 1, 3 or 4 channels. */
static SIMD_UNUSED int64_t blend_luma_sum(int level, const uint8_t* pixels, ptrdiff_t count, int channels) {
    uint8_t lumas[BLEND_RUN];
    int64_t sum = 0;
    for (ptrdiff_t i = 0; i < count; i += BLEND_RUN) {
        const int run = count - i < BLEND_RUN ? (int)(count - i) : BLEND_RUN;
        const uint8_t* values = pixels + i;
        if (channels != 1) {
            blend_run(level, pixels + i * channels, run, channels, lumas, NULL);
            values = lumas;
        }
#if SIMD_X86
        sum += level >= SIMD_LEVEL_AVX2 ? blend_sum_avx2(values, run) : blend_sum_plain(values, run);
#else
        sum += blend_sum_plain(values, run);
#endif
    }
    return sum;
}

static SIMD_UNUSED void blend_values_at(int level, const uint8_t* from, uint8_t* values, int count,
                                        float factor) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512) {
        blend_values_avx512(from, values, count, factor);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        blend_values_avx2(from, values, count, factor);
        return;
    }
#endif
    (void)level;
    blend_values_plain(from, values, count, factor);
}

/* Every pixel moves away from its luma, or towards it; a factor of 0 makes an image grey. */
static SIMD_UNUSED void blend_colour(int level, uint8_t* pixels, ptrdiff_t count, int channels,
                                     float factor) {
    uint8_t lumas[BLEND_RUN], greys[4 * BLEND_RUN + 16];
    if (channels == 1) return;
    for (ptrdiff_t i = 0; i < count; i += BLEND_RUN) {
        const int run = count - i < BLEND_RUN ? (int)(count - i) : BLEND_RUN;
        uint8_t* values = pixels + i * channels;
        blend_run(level, values, run, channels, lumas, greys);
        if (factor == 0.f)
            memcpy(values, greys, (size_t)run * channels);
        else
            blend_values_at(level, greys, values, run * channels, factor);
    }
}

/* Every pixel moves away from the mean of its neighbourhood, or towards it; those at the edge of the
   image stay.  `room` is for blend_sharpness_room bytes. */
static SIMD_UNUSED void blend_sharpness(int level, uint8_t* pixels, int width, int height, int channels,
                                        float factor, uint8_t* room) {
    const int size = width * channels;
    uint16_t* columns = (uint16_t*)room;
    uint8_t* smooth = room + 2 * (size_t)size;
    uint8_t* above = smooth + size; /* as they were before */
    uint8_t* here = above + size;
    if (width < 3 || height < 3) return;
    memcpy(above, pixels, size);
    for (int y = 1; y < height - 1; y++) {
        uint8_t* row = pixels + (ptrdiff_t)y * size;
        memcpy(here, row, size);
#if SIMD_X86
        if (level >= SIMD_LEVEL_AVX2)
            blend_smooth_row_avx2(above, here, row + size, size, channels, columns, smooth);
        else
#endif
            blend_smooth_row(above, here, row + size, size, channels, columns, smooth);
        blend_values_at(level, smooth + channels, row + channels, size - 2 * channels, factor);
        if (channels == 4)
            for (int x = 1; x < width - 1; x++)
                row[4 * x + 3] = here[4 * x + 3];
        uint8_t* free_row = above;
        above = here;
        here = free_row;
    }
}

#endif
