/* One row normalised with vector instructions: planar and interleaved, the same bytes as the plain loop.
 *
 * In the words of vectors.h, LANES pixels at a time.  Planar: the channels are spread over the lanes with
 * byte shuffles, computed, turned round when mirrored, and stored each to its plane.  Interleaved: values
 * are computed in the order they have, from a copy of the pixels with its order reversed when mirrored.
 */
#ifndef RECORDIO_NORMALISE_SIMD_H
#define RECORDIO_NORMALISE_SIMD_H

#include <string.h>

#include "normalise_rows.h"
#include "vectors.h"

#if SIMD_X86
#include <cpuid.h>

/* The float16 instructions are a feature of their own, which some compilers cannot ask for by name.
   The answer is kept: in a virtual machine the question costs microseconds. */
static int normalise_has_float16(void) {
    static int kept_answer = -1;
    int answer = __atomic_load_n(&kept_answer, __ATOMIC_RELAXED);
    if (answer < 0) {
        unsigned a, b, c, d;
        answer = __get_cpuid(1, &a, &b, &c, &d) && (c & (1u << 29)) != 0;
        __atomic_store_n(&kept_answer, answer, __ATOMIC_RELAXED);
    }
    return answer;
}
#elif SIMD_NEON
static int normalise_has_float16(void) {
    return 1;
}
#endif

#if SIMD_VECTORS

/* Channel c of four pixels as bytes 0, 4, 8, 12. */
SIMD_128 static inline simd_v normalise_spread(int channels, int c) {
    const int8_t b0 = (int8_t)c, b1 = (int8_t)(c + channels);
    const int8_t b2 = (int8_t)(c + 2 * channels), b3 = (int8_t)(c + 3 * channels);
    return simd_bytes(b0, -1, -1, -1, b1, -1, -1, -1, b2, -1, -1, -1, b3, -1, -1, -1);
}

SIMD_LANES static inline lanes_f normalise_apply(lanes_v pixels, lanes_f mean, lanes_f factor,
                                                 lanes_f offset) {
    return (lanes_to_float(pixels) - mean) * factor + offset;
}

/* As normalise_brain, in the upper halves.  AVX-512 has an instruction for this, which is not used: it
   makes zeros of subnormal numbers.  numbers: a constant, true if every value is a number. */
SIMD_LANES SIMD_INLINE lanes_v normalise_brains(lanes_f value, int numbers) {
    lanes_v bits = (lanes_v)value;
    if (!numbers) {
        const lanes_v quiet = (bits & lanes_set(INT32_MIN)) | lanes_set(0x7fc00000);
        bits = (lanes_v)lanes_choose((lanes_v)(value == value), value, (lanes_f)quiet);
    }
    return bits + lanes_set(0x7fff) + ((bits >> 16) & lanes_set(1));
}

/* Whether (pixel - mean) * factor + offset is a number for every pixel, infinity being one. */
static int normalise_makes_numbers(const normalise_recipe* recipe) {
    for (int c = 0; c < recipe->channels; c++)
        if (recipe->mean[c] - recipe->mean[c] != 0 || recipe->factor[c] - recipe->factor[c] != 0 ||
            recipe->offset[c] - recipe->offset[c] != 0)
            return 0;
    return 1;
}

/* LANES values from element `at` on; type and numbers are constants of each caller. */
SIMD_HALF SIMD_INLINE void normalise_put(int type, int numbers, void* slot, ptrdiff_t at, lanes_f value) {
    if (type == NORMALISE_FLOAT32) lanes_store((float*)slot + at, value);
    if (type == NORMALISE_FLOAT16) lanes_store_half((uint16_t*)slot + at, value);
    if (type == NORMALISE_BFLOAT16) lanes_store_upper((uint16_t*)slot + at, normalise_brains(value, numbers));
}

/* Some pixels near the end of a row, copied to where more bytes than theirs may be read.  The last
   of a row may overlap those before them, which are then written again, to the same values. */
static inline const uint8_t* normalise_tail(const uint8_t* pixels, int size, uint8_t* tail) {
    memcpy(tail, pixels, (size_t)size);
    return tail;
}

enum { NORMALISE_LINE = 16 }; /* floats in a cache line */

/* Whether a row of float32 is written past the caches.  A batch is larger than they are, so reading its
   lines before writing them is wasted; but only whole lines can be written like that. */
static int normalise_whole_lines(const normalise_recipe* recipe, int width, const void* slot,
                                 ptrdiff_t pixel_stride, ptrdiff_t channel_stride) {
    const int planar = pixel_stride == 1 && channel_stride % NORMALISE_LINE == 0;
    const int interleaved = channel_stride == 1 && pixel_stride == recipe->channels;
    return recipe->dtype == NORMALISE_FLOAT32 && recipe->mean_image == NULL && (planar || interleaved) &&
           width % NORMALISE_LINE == 0 && ((size_t)slot & 63) == 0;
}

/* type, channels, mirror, imaged and streams are constants of each caller. */
SIMD_HALF SIMD_INLINE int normalise_planar(const normalise_recipe* recipe, const uint8_t* row, int width,
                                           int y, void* slot, ptrdiff_t channel_stride, int type,
                                           int channels, int mirror, int imaged, int streams) {
    /* A line past the caches is written in one go: half-written ones wait for room that the others need. */
    enum { MOST = NORMALISE_LINE / LANES };
    const int vectors = streams ? MOST : 1, turn = vectors * LANES;
    const int needed = (turn - 4) * channels + 16; /* bytes read at once, more than those pixels */
    lanes_v spread[4];
    lanes_f mean[4], factor[4], offset[4];
    const float* means[4];
    for (int c = 0; c < channels; c++) {
        spread[c] = lanes_twice(normalise_spread(channels, c));
        mean[c] = lanes_set_float(recipe->mean[c]);
        factor[c] = lanes_set_float(recipe->factor[c]);
        offset[c] = lanes_set_float(recipe->offset[c]);
        means[c] = imaged ? normalise_means(recipe, c, y) : NULL;
    }
    uint8_t tail[NORMALISE_LINE * 4 + 16];
    int x = 0;
    for (; x < width; x += turn) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        if ((width - x) * channels < needed) {
            if (width < turn) break;
            x = x < width - turn ? x : width - turn;
            p = normalise_tail(row + (ptrdiff_t)x * channels, turn * channels, tail);
        }
        lanes_v pixels[MOST];
        for (int k = 0; k < vectors; k++)
            pixels[k] = lanes_load_pixels(p + k * LANES * channels, channels);
        for (int c = 0; c < channels; c++) {
            if (imaged) mean[c] = lanes_load(means[c] + x);
            for (int k = 0; k < vectors; k++) {
                lanes_f value =
                    normalise_apply(lanes_shuffle(pixels[k], spread[c]), mean[c], factor[c], offset[c]);
                if (mirror) value = lanes_reverse(value);
                const ptrdiff_t at =
                    c * channel_stride + (mirror ? width - x - (k + 1) * LANES : x + k * LANES);
                if (streams)
                    lanes_stream((float*)slot + at, value);
                else
                    normalise_put(type, !imaged, slot, at, value);
            }
        }
    }
    return x;
}

/* A copy of pixels from right to left. */
SIMD_INLINE const uint8_t* normalise_reversed(const uint8_t* pixels, int count, int channels,
                                              uint8_t* turned) {
    for (int k = 0; k < count; k++)
        for (int c = 0; c < channels; c++)
            turned[k * channels + c] = pixels[(count - 1 - k) * channels + c];
    return turned;
}

SIMD_HALF SIMD_INLINE int normalise_interleaved(const normalise_recipe* recipe, const uint8_t* row, int width,
                                                void* slot, int type, int channels, int mirror, int streams) {
    const int turn = streams ? NORMALISE_LINE : LANES; /* pixels; as many lines as they have channels */
    float mean[NORMALISE_LINE * 4], factor[NORMALISE_LINE * 4], offset[NORMALISE_LINE * 4];
    uint8_t turned[NORMALISE_LINE * 4];
    for (int i = 0; i < turn * channels; i++) {
        mean[i] = recipe->mean[i % channels];
        factor[i] = recipe->factor[i % channels];
        offset[i] = recipe->offset[i % channels];
    }
    int x = 0;
    for (; x + turn <= width; x += turn) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        const ptrdiff_t at = (ptrdiff_t)(mirror ? width - turn - x : x) * channels;
        if (mirror) p = normalise_reversed(p, turn, channels, turned);
        for (int k = 0; k < turn * channels; k += LANES) {
            const lanes_f value = normalise_apply(lanes_load_bytes(p + k), lanes_load(mean + k),
                                                  lanes_load(factor + k), lanes_load(offset + k));
            if (streams)
                lanes_stream((float*)slot + at + k, value);
            else
                normalise_put(type, 1, slot, at + k, value);
        }
    }
    return x;
}

/* Bytes to planes, eight pixels at a time; int8 subtracts a whole number and saturates. */
SIMD_LANES SIMD_INLINE int normalise_planar_bytes(const normalise_recipe* recipe, const uint8_t* row,
                                                  int width, void* slot, ptrdiff_t channel_stride,
                                                  int is_signed, int channels, int mirror) {
    enum { TURN = 8 };
    const simd_v gather = simd_bytes(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const simd_v reverse = simd_bytes(7, 6, 5, 4, 3, 2, 1, 0, -1, -1, -1, -1, -1, -1, -1, -1);
    const int needed = 4 * channels + 16;
    simd_v mean[4], spread[4];
    for (int c = 0; c < channels; c++) {
        mean[c] = simd_set_16((int16_t)normalise_rounded_mean(recipe->mean[c]));
        spread[c] = simd_shuffle(normalise_spread(channels, c), gather); /* the four bytes side by side */
    }
    uint8_t tail[TURN * 4 + 16];
    int x = 0;
    for (; x < width; x += TURN) {
        const uint8_t* p = row + (ptrdiff_t)x * channels;
        if ((width - x) * channels < needed) {
            if (width < TURN) break;
            x = x < width - TURN ? x : width - TURN;
            p = normalise_tail(row + (ptrdiff_t)x * channels, TURN * channels, tail);
        }
        const simd_v low = simd_load(p), high = simd_load(p + 4 * channels);
        const ptrdiff_t at = mirror ? width - TURN - x : x;
        for (int c = 0; c < channels; c++) {
            simd_v value = simd_mingle(simd_shuffle(low, spread[c]), simd_shuffle(high, spread[c]));
            if (mirror) value = simd_shuffle(value, reverse);
            if (is_signed) {
                value = simd_subtract_16(simd_widen_8(value), mean[c]);
                value = simd_narrow_16(value, value);
            }
            simd_store_8_bytes((uint8_t*)slot + at + c * channel_stride, value);
        }
    }
    return x;
}

/* Pixels of 3 or 4 bytes from right to left, as many as fit 16 bytes at a time; returns how many of the
   first are done.  Stores go down, so that the odd byte below each is overwritten by what follows. */
SIMD_128 static int normalise_turn_bytes(const uint8_t* row, int width, int channels, uint8_t* slot) {
    const simd_v three = simd_bytes(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
    const simd_v four = simd_bytes(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
    const simd_v order = channels == 3 ? three : four;
    const int step = 16 / channels;
    uint8_t* end = slot + (ptrdiff_t)width * channels;
    int x = 0;
    for (; x + step < width; x += step, end -= step * channels)
        simd_store(end - 16, simd_shuffle(simd_load(row + (ptrdiff_t)x * channels), order));
    return x;
}

#define NORMALISE_BY_CHANNELS(call, mirror)                                                                  \
    (recipe->channels == 3   ? (mirror ? call(3, 1) : call(3, 0))                                            \
     : recipe->channels == 1 ? (mirror ? call(1, 1) : call(1, 0))                                            \
                             : (mirror ? call(4, 1) : call(4, 0)))

SIMD_HALF SIMD_INLINE int normalise_fast_float(const normalise_recipe* recipe, const uint8_t* row, int width,
                                               int y, int mirror, void* slot, ptrdiff_t pixel_stride,
                                               ptrdiff_t channel_stride, int type) {
    const int streams =
        type == NORMALISE_FLOAT32 && normalise_whole_lines(recipe, width, slot, pixel_stride, channel_stride);
#define NORMALISE_PLANAR(channels, mirror)                                                                   \
    normalise_planar(recipe, row, width, y, slot, channel_stride, type, channels, mirror, 0, 0)
#define NORMALISE_LINES(channels, mirror)                                                                    \
    normalise_planar(recipe, row, width, y, slot, channel_stride, type, channels, mirror, 0, 1)
#define NORMALISE_IMAGED(channels, mirror)                                                                   \
    normalise_planar(recipe, row, width, y, slot, channel_stride, type, channels, mirror, 1, 0)
#define NORMALISE_INTERLEAVED(channels, mirror)                                                              \
    normalise_interleaved(recipe, row, width, slot, type, channels, mirror, 0)
#define NORMALISE_INTERLEAVED_LINES(channels, mirror)                                                        \
    normalise_interleaved(recipe, row, width, slot, type, channels, mirror, 1)
    if (pixel_stride == 1) {
        if (recipe->mean_image != NULL) return NORMALISE_BY_CHANNELS(NORMALISE_IMAGED, mirror);
        if (streams) return NORMALISE_BY_CHANNELS(NORMALISE_LINES, mirror);
        return NORMALISE_BY_CHANNELS(NORMALISE_PLANAR, mirror);
    }
    if (channel_stride == 1 && pixel_stride == recipe->channels && recipe->mean_image == NULL) {
        if (streams) return NORMALISE_BY_CHANNELS(NORMALISE_INTERLEAVED_LINES, mirror);
        return NORMALISE_BY_CHANNELS(NORMALISE_INTERLEAVED, mirror);
    }
    return 0;
#undef NORMALISE_PLANAR
#undef NORMALISE_LINES
#undef NORMALISE_IMAGED
#undef NORMALISE_INTERLEAVED
#undef NORMALISE_INTERLEAVED_LINES
}

/* A type that is not listed here is left to the plain loop. */
SIMD_HALF static int normalise_fast_floats(const normalise_recipe* recipe, const uint8_t* row, int width,
                                           int y, int mirror, void* slot, ptrdiff_t pixel_stride,
                                           ptrdiff_t channel_stride) {
#define NORMALISE_AS(type)                                                                                   \
    return normalise_fast_float(recipe, row, width, y, mirror, slot, pixel_stride, channel_stride, type)
    switch (recipe->dtype) {
    case NORMALISE_FLOAT32:
        NORMALISE_AS(NORMALISE_FLOAT32);
    case NORMALISE_FLOAT16:
        NORMALISE_AS(NORMALISE_FLOAT16);
    case NORMALISE_BFLOAT16:
        if (recipe->mean_image == NULL && !normalise_makes_numbers(recipe)) return 0;
        NORMALISE_AS(NORMALISE_BFLOAT16);
    default:
        return 0;
    }
#undef NORMALISE_AS
}

SIMD_LANES static int normalise_fast_bytes(const normalise_recipe* recipe, const uint8_t* row, int width,
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
#if SIMD_VECTORS
    if (level >= SIMD_LEVEL_SSE41 && recipe->dtype == NORMALISE_UINT8 && mirror && channel_stride == 1 &&
        pixel_stride == recipe->channels && recipe->channels > 1)
        return normalise_turn_bytes(row, width, recipe->channels, (uint8_t*)slot);
    if (level >= SIMD_LEVEL_AVX2) {
        if (normalise_is_float(recipe->dtype))
            return normalise_has_float16() ? normalise_fast_floats(recipe, row, width, y, mirror, slot,
                                                                   pixel_stride, channel_stride)
                                           : 0;
        if (pixel_stride == 1 && (recipe->dtype == NORMALISE_UINT8 ||
                                  (recipe->dtype == NORMALISE_INT8 && recipe->mean_image == NULL)))
            return normalise_fast_bytes(recipe, row, width, mirror, slot, channel_stride);
    }
#endif
    (void)level, (void)y;
    return 0;
}

#endif
