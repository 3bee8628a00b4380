/* One row normalised with the vector instructions of x86: planar and interleaved, the same bytes as the plain loop.
 *
 * Eight pixels at a time.  Planar: the channels are spread over the lanes with byte shuffles, computed,
 * turned round when mirrored, and stored each to its plane.  Interleaved: values are computed in the
 * order they have, from a copy of the eight pixels with its order reversed when mirrored.
 */
#ifndef RECORDIO_NORMALISE_SIMD_H
#define RECORDIO_NORMALISE_SIMD_H

#include <string.h>

#include "normalise_rows.h"

#if SIMD_X86
#include <cpuid.h>

/* The float16 instructions are a feature of their own, which some compilers cannot ask for by name.
   The answer is kept: in a virtual machine the question costs microseconds. */
static int normalise_has_float16(void) {
    static int known = -1;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer < 0) {
        unsigned a, b, c, d;
        answer = __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29)) != 0;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer;
}

/* Channel c of eight pixels as bytes 0, 4, 8, 12 of each lane; the lanes begin at p and p + 4 pixels. */
SIMD_AVX2 static inline __m256i normalise_spread(int channels, int c) {
    const int b0 = c, b1 = c + channels, b2 = c + 2 * channels, b3 = c + 3 * channels;
    const __m128i lane =
        _mm_setr_epi8((char)b0, -1, -1, -1, (char)b1, -1, -1, -1, (char)b2, -1, -1, -1, (char)b3, -1, -1, -1);
    return _mm256_broadcastsi128_si256(lane);
}

SIMD_AVX2 static inline __m256 normalise_apply(__m256i pixels, __m256 mean, __m256 factor, __m256 offset) {
    return _mm256_add_ps(_mm256_mul_ps(_mm256_sub_ps(_mm256_cvtepi32_ps(pixels), mean), factor), offset);
}

SIMD_F16C static inline void normalise_put_half(void* slot, ptrdiff_t at, __m256 value) {
    _mm_storeu_si128((__m128i*)((uint16_t*)slot + at), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

/* Eight pixels near the end of a row, copied to where more bytes than theirs may be read.  The last
   eight of a row may overlap those before them, which are then written again, to the same values. */
static inline const uint8_t* normalise_tail(const uint8_t* pixels, int channels, uint8_t* tail) {
    memcpy(tail, pixels, (size_t)channels * 8);
    return tail;
}

/* Whether a row of float32 planes is written past the caches.  A batch is larger than they are, so
   reading its lines before writing them is wasted; but only whole lines can be written like that. */
static int normalise_whole_lines(const normalise_recipe* recipe, int width, const void* slot,
                                 ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
    return recipe->dtype == NORMALISE_FLOAT32 && pixel_stride == 1 && width % 16 == 0 &&
           channel_stride % 16 == 0 && ((size_t)slot & 63) == 0;
}

/* half, channels, mirror and imaged are constants of each caller. */
SIMD_F16C SIMD_INLINE int normalise_planar(const normalise_recipe* recipe, const uint8_t* row, int width,
                                           int y, void* slot, ptrdiff_t channel_stride, int half,
                                           int channels, int mirror, int imaged) {
    const __m256i reverse = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const int needed = 4 * channels + 16; /* bytes read at once, more than eight pixels */
    __m256i spread[4];
    __m256 mean[4], factor[4], offset[4];
    const float* means[4];
    for (int c = 0; c < channels; c++) {
        spread[c] = normalise_spread(channels, c);
        mean[c] = _mm256_set1_ps(recipe->mean[c]);
        factor[c] = _mm256_set1_ps(recipe->factor[c]);
        offset[c] = _mm256_set1_ps(recipe->offset[c]);
        means[c] = imaged ? normalise_means(recipe, c, y) : NULL;
    }
    uint8_t tail[8 * 4 + 16];
    const int streams = !half && normalise_whole_lines(recipe, width, slot, 1, channel_stride);
    int x = 0;
    for (; x < width; x += 8) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        if ((width - x) * channels < needed) {
            if (width < 8) break;
            x = x < width - 8 ? x : width - 8;
            p = normalise_tail(row + (ptrdiff_t)x * channels, channels, tail);
        }
        const __m256i pixels =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                    _mm_loadu_si128((const __m128i*)(p + 4 * channels)), 1);
        const ptrdiff_t at = mirror ? width - 8 - x : x;
        for (int c = 0; c < channels; c++) {
            if (imaged) mean[c] = _mm256_loadu_ps(means[c] + x);
            __m256 value =
                normalise_apply(_mm256_shuffle_epi8(pixels, spread[c]), mean[c], factor[c], offset[c]);
            if (mirror) value = _mm256_permutevar8x32_ps(value, reverse);
            if (half)
                normalise_put_half(slot, at + c * channel_stride, value);
            else if (streams)
                _mm256_stream_ps((float*)slot + at + c * channel_stride, value);
            else
                _mm256_storeu_ps((float*)slot + at + c * channel_stride, value);
        }
    }
    return x;
}

SIMD_F16C SIMD_INLINE int normalise_interleaved(const normalise_recipe* recipe, const uint8_t* row, int width,
                                                void* slot, int half, int channels, int mirror) {
    float mean[32], factor[32], offset[32];
    uint8_t turned[32];
    for (int i = 0; i < 8 * channels; i++) {
        mean[i] = recipe->mean[i % channels];
        factor[i] = recipe->factor[i % channels];
        offset[i] = recipe->offset[i % channels];
    }
    int x = 0;
    for (; x + 8 <= width; x += 8) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        const ptrdiff_t at = (ptrdiff_t)(mirror ? width - 8 - x : x) * channels;
        if (mirror) {
            for (int k = 0; k < 8; k++)
                for (int c = 0; c < channels; c++)
                    turned[k * channels + c] = p[(7 - k) * channels + c];
            p = turned;
        }
        for (int k = 0; k < 8 * channels; k += 8) {
            const __m256i pixels = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(p + k)));
            const __m256 value = normalise_apply(pixels, _mm256_loadu_ps(mean + k),
                                                 _mm256_loadu_ps(factor + k), _mm256_loadu_ps(offset + k));
            if (half)
                normalise_put_half(slot, at + k, value);
            else
                _mm256_storeu_ps((float*)slot + at + k, value);
        }
    }
    return x;
}

/* Bytes to planes; int8 subtracts a whole number and saturates. */
SIMD_AVX2 SIMD_INLINE int normalise_planar_bytes(const normalise_recipe* recipe, const uint8_t* row,
                                                 int width, void* slot, ptrdiff_t channel_stride,
                                                 int is_signed, int channels, int mirror) {
    const __m128i gather = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i reverse = _mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1);
    const int needed = 4 * channels + 16;
    __m128i mean[4], spread[4];
    for (int c = 0; c < channels; c++) {
        mean[c] = _mm_set1_epi16((short)normalise_rounded_mean(recipe->mean[c]));
        spread[c] = _mm256_castsi256_si128(normalise_spread(channels, c));
        spread[c] = _mm_shuffle_epi8(spread[c], gather); /* the four bytes of a lane side by side */
    }
    uint8_t tail[8 * 4 + 16];
    int x = 0;
    for (; x < width; x += 8) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        if ((width - x) * channels < needed) {
            if (width < 8) break;
            x = x < width - 8 ? x : width - 8;
            p = normalise_tail(row + (ptrdiff_t)x * channels, channels, tail);
        }
        const __m128i low = _mm_loadu_si128((const __m128i*)p);
        const __m128i high = _mm_loadu_si128((const __m128i*)(p + 4 * channels));
        const ptrdiff_t at = mirror ? width - 8 - x : x;
        for (int c = 0; c < channels; c++) {
            __m128i value =
                _mm_unpacklo_epi32(_mm_shuffle_epi8(low, spread[c]), _mm_shuffle_epi8(high, spread[c]));
            if (mirror) value = _mm_shuffle_epi8(value, reverse);
            if (is_signed) {
                value = _mm_sub_epi16(_mm_cvtepu8_epi16(value), mean[c]);
                value = _mm_packs_epi16(value, value);
            }
            _mm_storel_epi64((__m128i*)((uint8_t*)slot + at + c * channel_stride), value);
        }
    }
    return x;
}

/* Pixels of 3 or 4 bytes from right to left, as many as fit 16 bytes at a time; returns how many of the
   first are done.  Stores go down, so that the odd byte below each is overwritten by what follows. */
SIMD_SSE41 static int normalise_turn_bytes(const uint8_t* row, int width, int channels, uint8_t* slot) {
    const __m128i three = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    const __m128i four = _mm_setr_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const __m128i order = channels == 3 ? three : four;
    const int step = 16 / channels;
    uint8_t* end = slot + (ptrdiff_t)width * channels;
    int x = 0;
    for (; x + step < width; x += step, end -= step * channels)
        _mm_storeu_si128(
            (__m128i*)(end - 16),
            _mm_shuffle_epi8(_mm_loadu_si128((const __m128i*)(row + (ptrdiff_t)x * channels)), order));
    return x;
}

#define NORMALISE_BY_CHANNELS(call, mirror)                                                                  \
    (recipe->channels == 3   ? (mirror ? call(3, 1) : call(3, 0))                                            \
     : recipe->channels == 1 ? (mirror ? call(1, 1) : call(1, 0))                                            \
                             : (mirror ? call(4, 1) : call(4, 0)))

SIMD_F16C static int normalise_fast_float(const normalise_recipe* recipe, const uint8_t* row, int width,
                                          int y, int mirror, void* slot, ptrdiff_t pixel_stride,
                                          ptrdiff_t channel_stride) {
    const int half = recipe->dtype == NORMALISE_FLOAT16;
#define NORMALISE_SINGLE(channels, mirror)                                                                   \
    normalise_planar(recipe, row, width, y, slot, channel_stride, 0, channels, mirror, 0)
#define NORMALISE_HALF(channels, mirror)                                                                     \
    normalise_planar(recipe, row, width, y, slot, channel_stride, 1, channels, mirror, 0)
#define NORMALISE_IMAGED(channels, mirror)                                                                   \
    normalise_planar(recipe, row, width, y, slot, channel_stride, half, channels, mirror, 1)
#define NORMALISE_INTERLEAVED(channels, mirror)                                                              \
    normalise_interleaved(recipe, row, width, slot, half, channels, mirror)
    if (pixel_stride == 1) {
        if (recipe->mean_image != NULL) return NORMALISE_BY_CHANNELS(NORMALISE_IMAGED, mirror);
        if (half) return NORMALISE_BY_CHANNELS(NORMALISE_HALF, mirror);
        return NORMALISE_BY_CHANNELS(NORMALISE_SINGLE, mirror);
    }
    if (channel_stride == 1 && pixel_stride == recipe->channels && recipe->mean_image == NULL)
        return NORMALISE_BY_CHANNELS(NORMALISE_INTERLEAVED, mirror);
    return 0;
#undef NORMALISE_SINGLE
#undef NORMALISE_HALF
#undef NORMALISE_IMAGED
#undef NORMALISE_INTERLEAVED
}

SIMD_AVX2 static int normalise_fast_bytes(const normalise_recipe* recipe, const uint8_t* row, int width,
                                          int mirror, void* slot, ptrdiff_t channel_stride) {
#define NORMALISE_UNSIGNED(channels, mirror)                                                                 \
    normalise_planar_bytes(recipe, row, width, slot, channel_stride, 0, channels, mirror)
#define NORMALISE_SIGNED(channels, mirror)                                                                   \
    normalise_planar_bytes(recipe, row, width, slot, channel_stride, 1, channels, mirror)
    if (recipe->dtype == NORMALISE_INT8) return NORMALISE_BY_CHANNELS(NORMALISE_SIGNED, mirror);
    return NORMALISE_BY_CHANNELS(NORMALISE_UNSIGNED, mirror);
#undef NORMALISE_UNSIGNED
#undef NORMALISE_SIGNED
}

#undef NORMALISE_BY_CHANNELS
#endif

/* Writes as many of the first pixels as a fast path covers; returns how many. */
static int normalise_fast(int level, const normalise_recipe* recipe, const uint8_t* row, int width, int y,
                          int mirror, void* slot, ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
    if (recipe->dtype == NORMALISE_UINT8 && !mirror && channel_stride == 1 &&
        pixel_stride == recipe->channels) {
        memcpy(slot, row, (size_t)width * (size_t)recipe->channels);
        return width;
    }
#if SIMD_X86
    if (level >= SIMD_LEVEL_SSE41 && recipe->dtype == NORMALISE_UINT8 && mirror && channel_stride == 1 &&
        pixel_stride == recipe->channels && recipe->channels > 1)
        return normalise_turn_bytes(row, width, recipe->channels, (uint8_t*)slot);
    if (level >= SIMD_LEVEL_AVX2) {
        if (recipe->dtype == NORMALISE_FLOAT32 || recipe->dtype == NORMALISE_FLOAT16)
            return normalise_has_float16() ? normalise_fast_float(recipe, row, width, y, mirror, slot,
                                                                  pixel_stride, channel_stride)
                                           : 0;
        if (recipe->dtype <= NORMALISE_INT8 && pixel_stride == 1 &&
            (recipe->dtype == NORMALISE_UINT8 || recipe->mean_image == NULL))
            return normalise_fast_bytes(recipe, row, width, mirror, slot, channel_stride);
    }
#endif
    (void)level, (void)y;
    return 0;
}

#endif
