/* One row of a warp with the vector instructions of x86: the same bytes as warp_rows.h, sooner.
 *
 * Pixels of 3 and 4 channels take one 128-bit lane each: a shuffle brings the taps of a channel side
 * by side, multiply-adds make the weighted sums.  The lanes of a 256-bit register hold pixels k and
 * k + 4, so that packing leaves eight pixels in order.
 */
#ifndef RECORDIO_WARP_SIMD_H
#define RECORDIO_WARP_SIMD_H

#include "warp_rows.h"

enum { WARP_OVERREACH = 2 };

#if SIMD_X86

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

SIMD_SSE41 static inline __m128i warp_load_square(const uint8_t* s, ptrdiff_t stride) {
    const __m128i upper = _mm_loadl_epi64((const __m128i*)s);
    return _mm_unpacklo_epi64(upper, _mm_loadl_epi64((const __m128i*)(s + stride)));
}

SIMD_INLINE int32_t warp_load_grey_square(const uint8_t* s, ptrdiff_t stride) {
    uint16_t upper, lower;
    memcpy(&upper, s, 2);
    memcpy(&lower, s + stride, 2);
    return (int32_t)(upper | (uint32_t)lower << 16);
}

/* ---- bilinear, four pixels a turn ---- */

/* (32 - fx, fx) twice, as bytes. */
SIMD_SSE41 static inline __m128i warp_across_sse41(__m128i px) {
    const __m128i fx = _mm_and_si128(px, _mm_set1_epi32(31));
    return _mm_add_epi32(_mm_set1_epi32(0x00200020), _mm_mullo_epi32(fx, _mm_set1_epi32(0x00ff00ff)));
}

/* (32 - fy, fy), as 16-bit values. */
SIMD_SSE41 static inline __m128i warp_down_sse41(__m128i py) {
    const __m128i fy = _mm_and_si128(py, _mm_set1_epi32(31));
    return _mm_add_epi32(_mm_set1_epi32(32), _mm_mullo_epi32(fy, _mm_set1_epi32(0xffff)));
}

SIMD_SSE41 static inline __m128i warp_mix_sse41(__m128i pixels, __m128i across, __m128i down) {
    const __m128i sums = _mm_madd_epi16(_mm_maddubs_epi16(pixels, across), down);
    return _mm_srli_epi32(_mm_add_epi32(sums, _mm_set1_epi32(1 << (WARP_LINEAR_BITS - 1))), WARP_LINEAR_BITS);
}

/* Returns how many pixels were written; `room` pixels may be overwritten. */
SIMD_SSE41 SIMD_INLINE int warp_bilinear_sse41_n(const warp_source* source, const int32_t* px,
                                                 const int32_t* py, int count, int room, int channels,
                                                 uint8_t* out) {
    const __m128i stride = _mm_set1_epi32((int)source->stride), bytes = _mm_set1_epi32(channels);
    const __m128i base = _mm_set1_epi32(warp_offset_base(source, 2));
    const __m128i square = channels == 3 ? _mm_setr_epi8(WARP_SQUARE_3) : _mm_setr_epi8(WARP_SQUARE_4);
    const __m128i close = channels == 3 ? _mm_setr_epi8(WARP_CLOSE_3) : _mm_setr_epi8(WARP_CLOSE_4);
    int i = 0;
    for (; i + 4 <= count && i + 6 <= room; i += 4, out += 4 * channels) {
        const __m128i x = _mm_loadu_si128((const __m128i*)(px + i)),
                      y = _mm_loadu_si128((const __m128i*)(py + i));
        const __m128i across = warp_across_sse41(x), down = warp_down_sse41(y);
        int32_t at[4];
        _mm_storeu_si128((__m128i*)at,
                         _mm_add_epi32(base, _mm_add_epi32(_mm_mullo_epi32(_mm_srai_epi32(y, 5), stride),
                                                           _mm_mullo_epi32(_mm_srai_epi32(x, 5), bytes))));
        if (channels == 1) {
            const __m128i pixels =
                _mm_setr_epi32(warp_load_grey_square(source->pixels + at[0], source->stride),
                               warp_load_grey_square(source->pixels + at[1], source->stride),
                               warp_load_grey_square(source->pixels + at[2], source->stride),
                               warp_load_grey_square(source->pixels + at[3], source->stride));
            __m128i mixed = warp_mix_sse41(pixels, across, down);
            mixed = _mm_packs_epi32(mixed, mixed);
            const int four = _mm_cvtsi128_si32(_mm_packus_epi16(mixed, mixed));
            memcpy(out, &four, 4);
            continue;
        }
#define WARP_ONE(k)                                                                                          \
    warp_mix_sse41(_mm_shuffle_epi8(warp_load_square(source->pixels + at[k], source->stride), square),       \
                   _mm_shuffle_epi32(across, (k) * 0x55), _mm_shuffle_epi32(down, (k) * 0x55))
        const __m128i low = _mm_packs_epi32(WARP_ONE(0), WARP_ONE(1));
        const __m128i high = _mm_packs_epi32(WARP_ONE(2), WARP_ONE(3));
#undef WARP_ONE
        _mm_storeu_si128((__m128i*)out, _mm_shuffle_epi8(_mm_packus_epi16(low, high), close));
    }
    return i;
}

SIMD_SSE41 static int warp_bilinear_sse41(const warp_source* source, const int32_t* px, const int32_t* py,
                                          int count, int room, uint8_t* out) {
    if (source->channels == 3) return warp_bilinear_sse41_n(source, px, py, count, room, 3, out);
    if (source->channels == 4) return warp_bilinear_sse41_n(source, px, py, count, room, 4, out);
    return warp_bilinear_sse41_n(source, px, py, count, room, 1, out);
}

/* ---- bilinear, eight pixels a turn ---- */

SIMD_AVX2 static inline __m256i warp_join(__m128i low, __m128i high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
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

/* ---- cubic and Lanczos, four pixels a turn ---- */

/* Sums of one pixel, per channel; grey: four parts of its sum. */
SIMD_AVX2 SIMD_INLINE __m128i warp_taps_pixel(const uint8_t* s, ptrdiff_t stride, const int16_t* weights,
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
            const __m256i p = _mm256_cvtepu8_epi16(warp_load_square(s + k / 2 * stride, stride));
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
    return _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

SIMD_AVX2 SIMD_INLINE int warp_taps_avx2_n(const warp_source* source, const int32_t* px, const int32_t* py,
                                           int count, int room, int taps, int channels, uint8_t* out) {
    const __m128i half = _mm_set1_epi32(1 << (WARP_TABLE_BITS - 1));
    const __m128i close = channels == 3 ? _mm_setr_epi8(WARP_CLOSE_3) : _mm_setr_epi8(WARP_CLOSE_4);
    int i = 0;
    for (; i + 4 <= count && i + 6 <= room; i += 4, out += 4 * channels) {
        __m128i sums[4];
        for (int k = 0; k < 4; k++)
            sums[k] = warp_taps_pixel(
                warp_first_pixel(source, px[i + k], py[i + k], taps, channels), source->stride,
                source->weights + (ptrdiff_t)warp_table_entry(px[i + k], py[i + k]) * taps * taps, taps,
                channels);
        if (channels == 1) {
            __m128i four = _mm_hadd_epi32(_mm_hadd_epi32(sums[0], sums[1]), _mm_hadd_epi32(sums[2], sums[3]));
            four = _mm_srai_epi32(_mm_add_epi32(four, half), WARP_TABLE_BITS);
            four = _mm_packs_epi32(four, four);
            const int bytes = _mm_cvtsi128_si32(_mm_packus_epi16(four, four));
            memcpy(out, &bytes, 4);
        } else {
            for (int k = 0; k < 4; k++)
                sums[k] = _mm_srai_epi32(_mm_add_epi32(sums[k], half), WARP_TABLE_BITS);
            const __m128i four =
                _mm_packus_epi16(_mm_packs_epi32(sums[0], sums[1]), _mm_packs_epi32(sums[2], sums[3]));
            _mm_storeu_si128((__m128i*)out, _mm_shuffle_epi8(four, close));
        }
    }
    return i;
}

SIMD_AVX2 static int warp_taps_avx2(const warp_source* source, const int32_t* px, const int32_t* py,
                                    int count, int room, uint8_t* out) {
    const int cubic = source->method == RESAMPLE_CUBIC, channels = source->channels;
    if (cubic && channels == 3) return warp_taps_avx2_n(source, px, py, count, room, 4, 3, out);
    if (cubic && channels == 4) return warp_taps_avx2_n(source, px, py, count, room, 4, 4, out);
    if (cubic) return warp_taps_avx2_n(source, px, py, count, room, 4, 1, out);
    if (channels == 3) return warp_taps_avx2_n(source, px, py, count, room, 8, 3, out);
    if (channels == 4) return warp_taps_avx2_n(source, px, py, count, room, 8, 4, out);
    return warp_taps_avx2_n(source, px, py, count, room, 8, 1, out);
}

/* Returns how many of the first pixels were written, 0 if there is no fast loop for this source. */
static int warp_inside_simd(int level, const warp_source* source, const int32_t* px, const int32_t* py,
                            int count, int room, uint8_t* out) {
    const int taps = warp_taps(source->method);
    /* The bilinear loops compute offsets in 32 bits. */
    const int small = source->stride >= 0 && source->stride <= INT32_MAX / (source->height + 1);
    if (taps == 2 && level >= SIMD_LEVEL_AVX2 && small)
        return warp_bilinear_avx2(source, px, py, count, room, out);
    if (taps == 2 && level >= SIMD_LEVEL_SSE41 && small)
        return warp_bilinear_sse41(source, px, py, count, room, out);
    if (taps > 2 && level >= SIMD_LEVEL_AVX2) return warp_taps_avx2(source, px, py, count, room, out);
    return 0;
}
#endif

/* The best loop up to a level.  Its stores may run over the end of the pixels by a few bytes, but never
   beyond `room` pixels. */
static void warp_inside_at(int level, const warp_source* source, const int32_t* px, const int32_t* py,
                           int count, int room, uint8_t* out) {
    int done = 0;
#if SIMD_X86
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
