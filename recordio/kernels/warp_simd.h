/* One row of a warp with vector instructions: the same bytes as warp_rows.h, sooner.  Once in the words of
 * vectors.h for 128 bits, and with AVX2, for twice as many.
 *
 * Pixels of 3 and 4 channels take one 128-bit lane each: a shuffle brings the taps of a channel side
 * by side, multiply-adds make the weighted sums.  The lanes of a 256-bit register hold pixels k and
 * k + 4, so that packing leaves eight pixels in order.
 */
#ifndef RECORDIO_WARP_SIMD_H
#define RECORDIO_WARP_SIMD_H

#include "vectors.h"
#include "warp_rows.h"

enum { WARP_OVERREACH = 2 };

#if SIMD_VECTORS

/* Byte shuffle of the upper pair of pixels (bytes 0-7) and the lower pair (8-15): per channel upper left,
   upper right, lower left, lower right. */
#define WARP_SQUARE_3 0, 3, 8, 11, 1, 4, 9, 12, 2, 5, 10, 13, -1, -1, -1, -1
#define WARP_SQUARE_4 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15
/* Four pixels in a row: per channel pixels 0 and 1, then 2 and 3. */
#define WARP_QUAD_3 0, 3, 1, 4, 2, 5, -1, -1, 6, 9, 7, 10, 8, 11, -1, -1
#define WARP_QUAD_4 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15
/* Four pixels of four channels without the fourth. */
#define WARP_CLOSE_3 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1
#define WARP_CLOSE_4 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15

/* Where the first tap of position (0, 0) would be; kernels add offsets in 32 bits, which may wrap as
   long as their sum does not. */
SIMD_INLINE int32_t warp_offset_base(const warp_source* source, int taps) {
    const int before = taps / 2 - 1;
    return (int32_t)(uint32_t)(-(int64_t)(source->y + before) * source->stride -
                               (int64_t)(source->x + before) * source->channels);
}

SIMD_128 static inline simd_v warp_load_square(const uint8_t* s, ptrdiff_t stride) {
    return simd_join(simd_load_8_bytes(s), simd_load_8_bytes(s + stride));
}

SIMD_INLINE int32_t warp_load_grey_square(const uint8_t* s, ptrdiff_t stride) {
    uint16_t upper, lower;
    memcpy(&upper, s, 2);
    memcpy(&lower, s + stride, 2);
    return (int32_t)(upper | (uint32_t)lower << 16);
}

/* ---- bilinear, four pixels a turn ---- */

/* (32 - fx, fx) twice, as bytes. */
SIMD_128 static inline simd_v warp_across(simd_v px) {
    return simd_set(0x00200020) + simd_multiply(px & simd_set(31), simd_set(0x00ff00ff));
}

/* (32 - fy, fy), as 16-bit values. */
SIMD_128 static inline simd_v warp_down(simd_v py) {
    return simd_set(32) + simd_multiply(py & simd_set(31), simd_set(0xffff));
}

SIMD_128 static inline simd_v warp_mix(simd_v pixels, simd_v across, simd_v down) {
    const simd_v sums = simd_pair_products_16(simd_pair_products_8(pixels, across), down);
    return simd_shift_right(sums + simd_set(1 << (WARP_LINEAR_BITS - 1)), WARP_LINEAR_BITS);
}

/* Returns how many pixels were written; `room` pixels may be overwritten. */
SIMD_128 SIMD_INLINE int warp_bilinear_128_n(const warp_source* source, const int32_t* px, const int32_t* py,
                                             int count, int room, int channels, uint8_t* out) {
    const simd_v stride = simd_set((int32_t)source->stride), bytes = simd_set(channels);
    const simd_v base = simd_set(warp_offset_base(source, 2));
    const simd_v square = channels == 3 ? simd_bytes(WARP_SQUARE_3) : simd_bytes(WARP_SQUARE_4);
    const simd_v close = channels == 3 ? simd_bytes(WARP_CLOSE_3) : simd_bytes(WARP_CLOSE_4);
    int i = 0;
    for (; i + 4 <= count && i + 6 <= room; i += 4, out += 4 * channels) {
        const simd_v x = simd_load(px + i), y = simd_load(py + i);
        const simd_v across = warp_across(x), down = warp_down(y);
        int32_t at[4];
        simd_store(at, base + (simd_multiply(simd_shift_right(y, 5), stride) +
                               simd_multiply(simd_shift_right(x, 5), bytes)));
        if (channels == 1) {
            const simd_v pixels = {warp_load_grey_square(source->pixels + at[0], source->stride),
                                   warp_load_grey_square(source->pixels + at[1], source->stride),
                                   warp_load_grey_square(source->pixels + at[2], source->stride),
                                   warp_load_grey_square(source->pixels + at[3], source->stride)};
            simd_v mixed = warp_mix(pixels, across, down);
            mixed = simd_narrow(mixed, mixed);
            simd_store_4_bytes(out, simd_narrow_16_to_bytes(mixed, mixed));
            continue;
        }
#define WARP_ONE(k)                                                                                          \
    warp_mix(simd_shuffle(warp_load_square(source->pixels + at[k], source->stride), square),                 \
             simd_repeat(across, k), simd_repeat(down, k))
        const simd_v low = simd_narrow(WARP_ONE(0), WARP_ONE(1));
        const simd_v high = simd_narrow(WARP_ONE(2), WARP_ONE(3));
#undef WARP_ONE
        simd_store(out, simd_shuffle(simd_narrow_16_to_bytes(low, high), close));
    }
    return i;
}

SIMD_128 static int warp_bilinear_128(const warp_source* source, const int32_t* px, const int32_t* py,
                                      int count, int room, uint8_t* out) {
    if (source->channels == 3) return warp_bilinear_128_n(source, px, py, count, room, 3, out);
    if (source->channels == 4) return warp_bilinear_128_n(source, px, py, count, room, 4, out);
    return warp_bilinear_128_n(source, px, py, count, room, 1, out);
}

/* ---- cubic and Lanczos, four pixels a turn ---- */

/* Sums of one pixel, per channel; grey: four parts of its sum. */
SIMD_128 SIMD_INLINE simd_v warp_taps_pixel_128(const uint8_t* s, ptrdiff_t stride, const int16_t* weights,
                                                int taps, int channels) {
    const simd_v quad = channels == 3 ? simd_bytes(WARP_QUAD_3) : simd_bytes(WARP_QUAD_4);
    simd_v sum = simd_set(0);
    for (int k = 0; k < taps * taps / 4; k += 2, weights += 8) { /* eight weights: two rows, or one */
        const simd_v w = simd_load(weights);
        if (channels == 1 && taps == 4) {
            int32_t rows[2];
            for (int j = 0; j < 2; j++)
                memcpy(rows + j, s + (k + j) * stride, 4);
            sum += simd_pair_products_16(simd_widen_8((simd_v){rows[0], rows[1], 0, 0}), w);
        } else if (channels == 1) {
            sum += simd_pair_products_16(simd_widen_8(simd_load_8_bytes(s + k / 2 * stride)), w);
        } else {
#define WARP_QUAD(j)                                                                                         \
    simd_shuffle(simd_load(s + (k + (j)) * 4 / taps * stride + (k + (j)) * 4 % taps * channels), quad)
            const simd_v first = WARP_QUAD(0), second = WARP_QUAD(1);
#undef WARP_QUAD
            sum += simd_pair_products_16(simd_widen_8(first), simd_repeat(w, 0));
            sum += simd_pair_products_16(simd_widen_8_upper(first), simd_repeat(w, 1));
            sum += simd_pair_products_16(simd_widen_8(second), simd_repeat(w, 2));
            sum += simd_pair_products_16(simd_widen_8_upper(second), simd_repeat(w, 3));
        }
    }
    return sum;
}

/* Four pixels of such sums; writes four bytes more than they have with three channels. */
SIMD_128 static inline void warp_store_sums(const simd_v sums[4], int channels, uint8_t* out) {
    const simd_v half = simd_set(1 << (WARP_TABLE_BITS - 1));
    const simd_v close = channels == 3 ? simd_bytes(WARP_CLOSE_3) : simd_bytes(WARP_CLOSE_4);
    if (channels == 1) {
        simd_v four = simd_pair_sums(simd_pair_sums(sums[0], sums[1]), simd_pair_sums(sums[2], sums[3]));
        four = simd_shift_right(four + half, WARP_TABLE_BITS);
        four = simd_narrow(four, four);
        simd_store_4_bytes(out, simd_narrow_16_to_bytes(four, four));
    } else {
        simd_v pixels[4];
        for (int k = 0; k < 4; k++)
            pixels[k] = simd_shift_right(sums[k] + half, WARP_TABLE_BITS);
        const simd_v four =
            simd_narrow_16_to_bytes(simd_narrow(pixels[0], pixels[1]), simd_narrow(pixels[2], pixels[3]));
        simd_store(out, simd_shuffle(four, close));
    }
}

/* The loop over a row; `pixel` is warp_taps_pixel_128 or warp_taps_pixel_avx2. */
#define WARP_TAPS_ROW(pixel, taps, channels)                                                                 \
    int i = 0;                                                                                               \
    for (; i + 4 <= count && i + 6 <= room; i += 4, out += 4 * (channels)) {                                 \
        simd_v sums[4];                                                                                      \
        for (int k = 0; k < 4; k++)                                                                          \
            sums[k] =                                                                                        \
                pixel(warp_first_pixel(source, px[i + k], py[i + k], taps, channels), source->stride,        \
                      source->weights + (ptrdiff_t)warp_table_entry(px[i + k], py[i + k]) * (taps) * (taps), \
                      taps, channels);                                                                       \
        warp_store_sums(sums, channels, out);                                                                \
    }                                                                                                        \
    return i

SIMD_128 SIMD_INLINE int warp_taps_128_n(const warp_source* source, const int32_t* px, const int32_t* py,
                                         int count, int room, int taps, int channels, uint8_t* out) {
    WARP_TAPS_ROW(warp_taps_pixel_128, taps, channels);
}

#define WARP_BY_TAPS(row)                                                                                    \
    const int cubic = source->method == RESAMPLE_CUBIC, channels = source->channels;                         \
    if (cubic && channels == 3) return row(source, px, py, count, room, 4, 3, out);                          \
    if (cubic && channels == 4) return row(source, px, py, count, room, 4, 4, out);                          \
    if (cubic) return row(source, px, py, count, room, 4, 1, out);                                           \
    if (channels == 3) return row(source, px, py, count, room, 8, 3, out);                                   \
    if (channels == 4) return row(source, px, py, count, room, 8, 4, out);                                   \
    return row(source, px, py, count, room, 8, 1, out)

SIMD_128 static int warp_taps_128(const warp_source* source, const int32_t* px, const int32_t* py, int count,
                                  int room, uint8_t* out) {
    WARP_BY_TAPS(warp_taps_128_n);
}
#endif

#if SIMD_X86

/* ---- bilinear, eight pixels a turn ---- */

SIMD_AVX2 static inline __m256i warp_join(simd_v low, simd_v high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)low), (__m128i)high, 1);
}

SIMD_AVX2 static inline __m256i warp_offsets_avx2(__m256i x, __m256i y, __m256i stride, __m256i bytes,
                                                  __m256i base) {
    return _mm256_add_epi32(base, _mm256_add_epi32(_mm256_mullo_epi32(_mm256_srai_epi32(y, 5), stride),
                                                   _mm256_mullo_epi32(_mm256_srai_epi32(x, 5), bytes)));
}

SIMD_AVX2 static inline __m256i warp_mix_avx2(__m256i pixels, __m256i across, __m256i down) {
    const __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(pixels, across), down);
    return _mm256_srli_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (WARP_LINEAR_BITS - 1))),
                             WARP_LINEAR_BITS);
}

SIMD_AVX2 SIMD_INLINE int warp_bilinear_avx2_n(const warp_source* source, const int32_t* px,
                                               const int32_t* py, int count, int room, int channels,
                                               uint8_t* out) {
    const uint8_t* pixels = source->pixels;
    const ptrdiff_t step = source->stride;
    const __m256i stride = _mm256_set1_epi32((int)step), bytes = _mm256_set1_epi32(channels);
    const __m256i base = _mm256_set1_epi32(warp_offset_base(source, 2)), fraction = _mm256_set1_epi32(31);
    const __m256i square = channels == 3 ? _mm256_setr_epi8(WARP_SQUARE_3, WARP_SQUARE_3)
                                         : _mm256_setr_epi8(WARP_SQUARE_4, WARP_SQUARE_4);
    const __m256i close = channels == 3 ? _mm256_setr_epi8(WARP_CLOSE_3, WARP_CLOSE_3)
                                        : _mm256_setr_epi8(WARP_CLOSE_4, WARP_CLOSE_4);
    int i = 0;
    for (; i + 8 <= count && i + 10 <= room; i += 8, out += 8 * channels) {
        const __m256i x = _mm256_loadu_si256((const __m256i*)(px + i));
        const __m256i y = _mm256_loadu_si256((const __m256i*)(py + i));
        const __m256i across = _mm256_add_epi32(
            _mm256_set1_epi32(0x00200020),
            _mm256_mullo_epi32(_mm256_and_si256(x, fraction), _mm256_set1_epi32(0x00ff00ff)));
        const __m256i down =
            _mm256_add_epi32(_mm256_set1_epi32(32),
                             _mm256_mullo_epi32(_mm256_and_si256(y, fraction), _mm256_set1_epi32(0xffff)));
        int32_t at[8];
        _mm256_storeu_si256((__m256i*)at, warp_offsets_avx2(x, y, stride, bytes, base));
        if (channels == 1) {
            int32_t squares[8];
            for (int k = 0; k < 8; k++)
                squares[k] = warp_load_grey_square(pixels + at[k], step);
            __m256i mixed = warp_mix_avx2(_mm256_loadu_si256((const __m256i*)squares), across, down);
            mixed = _mm256_packs_epi32(mixed, mixed);
            mixed = _mm256_packus_epi16(mixed, mixed);
            const int low = _mm_cvtsi128_si32(_mm256_castsi256_si128(mixed));
            const int high = _mm_cvtsi128_si32(_mm256_extracti128_si256(mixed, 1));
            memcpy(out, &low, 4);
            memcpy(out + 4, &high, 4);
            continue;
        }
#define WARP_TWO(k)                                                                                          \
    warp_mix_avx2(_mm256_shuffle_epi8(warp_join(warp_load_square(pixels + at[k], step),                      \
                                                warp_load_square(pixels + at[(k) + 4], step)),               \
                                      square),                                                               \
                  _mm256_shuffle_epi32(across, (k) * 0x55), _mm256_shuffle_epi32(down, (k) * 0x55))
        const __m256i low = _mm256_packs_epi32(WARP_TWO(0), WARP_TWO(1));
        const __m256i high = _mm256_packs_epi32(WARP_TWO(2), WARP_TWO(3));
#undef WARP_TWO
        const __m256i mixed = _mm256_shuffle_epi8(_mm256_packus_epi16(low, high), close);
        _mm_storeu_si128((__m128i*)out, _mm256_castsi256_si128(mixed));
        _mm_storeu_si128((__m128i*)(out + 4 * channels), _mm256_extracti128_si256(mixed, 1));
    }
    return i;
}

SIMD_AVX2 static int warp_bilinear_avx2(const warp_source* source, const int32_t* px, const int32_t* py,
                                        int count, int room, uint8_t* out) {
    if (source->channels == 3) return warp_bilinear_avx2_n(source, px, py, count, room, 3, out);
    if (source->channels == 4) return warp_bilinear_avx2_n(source, px, py, count, room, 4, out);
    return warp_bilinear_avx2_n(source, px, py, count, room, 1, out);
}

/* ---- cubic and Lanczos with AVX2 ---- */

SIMD_AVX2 SIMD_INLINE simd_v warp_taps_pixel_avx2(const uint8_t* s, ptrdiff_t stride, const int16_t* weights,
                                                  int taps, int channels) {
    const __m128i quad = channels == 3 ? _mm_setr_epi8(WARP_QUAD_3) : _mm_setr_epi8(WARP_QUAD_4);
    __m256i sum = _mm256_setzero_si256();
    for (int k = 0; k < taps * taps / 4; k += 4, weights += 16) { /* sixteen weights: rows or half rows */
        const __m256i w = _mm256_loadu_si256((const __m256i*)weights);
        if (channels == 1 && taps == 4) {
            int32_t rows[4];
            for (int j = 0; j < 4; j++)
                memcpy(rows + j, s + j * stride, 4);
            const __m256i p = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)rows));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, w));
        } else if (channels == 1) {
            const __m256i p = _mm256_cvtepu8_epi16((__m128i)warp_load_square(s + k / 2 * stride, stride));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, w));
        } else {
            for (int j = 0; j < 4; j++) {
                const int row = (k + j) * 4 / taps, column = (k + j) * 4 % taps;
                const __m128i p = _mm_loadu_si128((const __m128i*)(s + row * stride + column * channels));
                const __m256i pair =
                    _mm256_setr_epi32(2 * j, 2 * j, 2 * j, 2 * j, 2 * j + 1, 2 * j + 1, 2 * j + 1, 2 * j + 1);
                sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(_mm_shuffle_epi8(p, quad)),
                                                              _mm256_permutevar8x32_epi32(w, pair)));
            }
        }
    }
    return (simd_v)_mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

SIMD_AVX2 SIMD_INLINE int warp_taps_avx2_n(const warp_source* source, const int32_t* px, const int32_t* py,
                                           int count, int room, int taps, int channels, uint8_t* out) {
    WARP_TAPS_ROW(warp_taps_pixel_avx2, taps, channels);
}

SIMD_AVX2 static int warp_taps_avx2(const warp_source* source, const int32_t* px, const int32_t* py,
                                    int count, int room, uint8_t* out) {
    WARP_BY_TAPS(warp_taps_avx2_n);
}
#endif

#undef WARP_TAPS_ROW
#undef WARP_BY_TAPS

#if SIMD_VECTORS
/* Returns how many of the first pixels were written, 0 if there is no fast loop for this source. */
static int warp_inside_simd(int level, const warp_source* source, const int32_t* px, const int32_t* py,
                            int count, int room, uint8_t* out) {
    const int taps = warp_taps(source->method);
    /* The bilinear loops compute offsets in 32 bits. */
    const int small = source->stride >= 0 && source->stride <= INT32_MAX / (source->height + 1);
    if (level < SIMD_LEVEL_SSE41 || taps == 1 || (taps == 2 && !small)) return 0;
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX2)
        return taps == 2 ? warp_bilinear_avx2(source, px, py, count, room, out)
                         : warp_taps_avx2(source, px, py, count, room, out);
#endif
    return taps == 2 ? warp_bilinear_128(source, px, py, count, room, out)
                     : warp_taps_128(source, px, py, count, room, out);
}
#endif

/* The best loop up to a level.  Its stores may run over the end of the pixels by a few bytes, but never
   beyond `room` pixels. */
static void warp_inside_at(int level, const warp_source* source, const int32_t* px, const int32_t* py,
                           int count, int room, uint8_t* out) {
    int done = 0;
#if SIMD_VECTORS
    enum { TURN = 8, MOST = 2 * TURN };
    done = warp_inside_simd(level, source, px, py, count, room, out);
    /* A whole turn more, into memory of its own, costs less than the last pixels one by one. */
    const int rest = count - done;
    if (rest > 0 && rest < MOST) {
        int32_t x[MOST], y[MOST];
        uint8_t pixels[(MOST + 2) * 4];
        for (int i = 0; i < MOST; i++) {
            x[i] = px[done + (i < rest ? i : rest - 1)];
            y[i] = py[done + (i < rest ? i : rest - 1)];
        }
        if (warp_inside_simd(level, source, x, y, (rest + TURN - 1) & -TURN, MOST + 2, pixels) >= rest) {
            memcpy(out + (ptrdiff_t)done * source->channels, pixels, (size_t)rest * source->channels);
            return;
        }
    }
#endif
    (void)level, (void)room;
    warp_inside(source, px + done, py + done, count - done, out + (ptrdiff_t)done * source->channels);
}

#endif
