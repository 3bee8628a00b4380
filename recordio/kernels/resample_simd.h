/* Rows resampled with vector instructions: the same bytes as resample_rows.h, sooner.  Once in the words of
 * vectors.h for 128 bits, and with AVX2 and AVX-512 where more at a time pay.
 *
 * Pixels of 3 and 4 channels are handled one 128-bit lane per pixel: a shuffle pairs the channels of
 * two neighbouring pixels, a multiply-add makes the weighted sums.  Each pixel's weights therefore
 * stand four times side by side in the "lane" tables.  Loads and stores may run over the end of a
 * row by less than RESAMPLE_SLACK.
 */
#ifndef RECORDIO_RESAMPLE_SIMD_H
#define RECORDIO_RESAMPLE_SIMD_H

#include "resample_rows.h"
#include "vectors.h"

/* Weights of count pixels, each pair of taps repeated for four channels. */
static void resample_lane_weights(const int16_t* weight, int count, int taps, int16_t* lanes) {
    for (int i = 0; i < count * taps; i += 2, lanes += 8) {
        uint32_t pair;
        memcpy(&pair, weight + i, sizeof pair);
        for (int k = 0; k < 4; k++)
            memcpy(lanes + 2 * k, &pair, sizeof pair);
    }
}

#if SIMD_VECTORS

/* Byte shuffles: (first pixel, second pixel) of every channel as pairs of 16-bit values. */
#define RESAMPLE_PAIRS_3 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1
#define RESAMPLE_PAIRS_4 0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1
/* Closes the gap that a missing fourth channel leaves in two pixels of 16-bit values. */
#define RESAMPLE_CLOSE_3 0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1

SIMD_128 static inline simd_v resample_pairs(int channels) {
    return channels == 3 ? simd_bytes(RESAMPLE_PAIRS_3) : simd_bytes(RESAMPLE_PAIRS_4);
}

/* ---- bilinear across: index has a multiple of four entries ---- */

SIMD_128 static void resample_across_bilinear_128(const uint8_t* row, const int32_t* index,
                                                  const int16_t* lanes, int count, int channels,
                                                  int16_t* out) {
    const simd_v pairs = resample_pairs(channels), close = simd_bytes(RESAMPLE_CLOSE_3);
    for (int i = 0; i < count; i += 2, lanes += 16, out += 2 * channels) {
        const simd_v a = simd_shuffle(simd_load(row + index[i]), pairs);
        const simd_v b = simd_shuffle(simd_load(row + index[i + 1]), pairs);
        const simd_v low = simd_shift_right(simd_pair_products_16(a, simd_load(lanes)), 4);
        const simd_v high = simd_shift_right(simd_pair_products_16(b, simd_load(lanes + 8)), 4);
        const simd_v both = simd_narrow(low, high);
        simd_store(out, channels == 3 ? simd_shuffle(both, close) : both);
    }
}

/* ---- grey: one vector holds the taps of several pixels ---- */

SIMD_128 static inline simd_v resample_load_grey(const uint8_t* row, const int32_t* index, int taps) {
    int16_t two[4];
    int32_t four[2];
    if (taps == 8) return simd_widen_8(simd_load_8_bytes(row + index[0]));
    if (taps == 4) {
        for (int k = 0; k < 2; k++)
            memcpy(&four[k], row + index[k], 4);
        return simd_widen_8((simd_v){four[0], four[1], 0, 0});
    }
    for (int k = 0; k < 4; k++)
        memcpy(&two[k], row + index[k], 2);
    return simd_widen_8((simd_v)(simd_h){two[0], two[1], two[2], two[3], 0, 0, 0, 0});
}

SIMD_128 static void resample_across_bilinear_grey(const uint8_t* row, const int32_t* index,
                                                   const int16_t* weight, int count, int16_t* out) {
    for (int i = 0; i < count; i += 4) {
        const simd_v sum =
            simd_pair_products_16(resample_load_grey(row, index + i, 2), simd_load(weight + 2 * i));
        const simd_v cut = simd_shift_right(sum, 4);
        simd_store_8_bytes(out + i, simd_narrow(cut, cut));
    }
}

SIMD_128 static void resample_across_taps_grey(const uint8_t* row, const int32_t* index,
                                               const int16_t* weight, int count, int taps, int32_t* out) {
    const int step = 8 / taps; /* pixels in one vector */
    for (int i = 0; i < count; i += 4) {
        simd_v sums[4];
        for (int k = 0; k < 4; k += step)
            sums[k] = simd_pair_products_16(resample_load_grey(row, index + i + k, taps),
                                            simd_load(weight + (i + k) * taps));
        if (taps == 8)
            sums[0] = simd_pair_sums(simd_pair_sums(sums[0], sums[1]), simd_pair_sums(sums[2], sums[3]));
        else
            sums[0] = simd_pair_sums(sums[0], sums[2]);
        simd_store(out + i, sums[0]);
    }
}

/* ---- bilinear down ---- */

SIMD_128 static inline simd_v resample_blend(const int16_t* a, const int16_t* b, simd_v wa, simd_v wb) {
    const simd_v sum =
        simd_add_16(simd_multiply_high_16(simd_load(a), wa), simd_multiply_high_16(simd_load(b), wb));
    return simd_shift_right_16(simd_add_16(sum, simd_set_16(2)), 2);
}

SIMD_128 static void resample_down_bilinear_128(const int16_t* a, const int16_t* b, const int16_t* weight,
                                                int n, uint8_t* out) {
    const simd_v wa = simd_set_16(weight[0]), wb = simd_set_16(weight[1]);
    int i = 0;
    for (; i <= n - 16; i += 16)
        simd_store(out + i, simd_narrow_16_to_bytes(resample_blend(a + i, b + i, wa, wb),
                                                    resample_blend(a + i + 8, b + i + 8, wa, wb)));
    resample_down_bilinear(a + i, b + i, weight, n - i, out + i);
}

/* ---- cubic and Lanczos ---- */

/* One pixel at a time, a pair of taps per vector. */
SIMD_128 static void resample_across_taps_128(const uint8_t* row, const int32_t* index, const int16_t* lanes,
                                              int count, int channels, int taps, int32_t* out) {
    const simd_v pairs = resample_pairs(channels);
    for (int i = 0; i < count; i++, lanes += 4 * taps, out += channels) {
        const uint8_t* s = row + index[i];
        simd_v sum = simd_set(0);
        for (int k = 0; k < taps; k += 2)
            sum += simd_pair_products_16(simd_shuffle(simd_load(s + k * channels), pairs),
                                         simd_load(lanes + 4 * k));
        simd_store(out, sum);
    }
}

/* ---- area ---- */

/* Byte shuffles: the channels of pixels 0 and 1, then of pixels 2 and 3, as pairs of bytes. */
#define RESAMPLE_HALVES_1 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define RESAMPLE_HALVES_3 0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, -1, -1, -1, -1
#define RESAMPLE_HALVES_4 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15

SIMD_128 static inline simd_v resample_halve_one(const uint8_t* a, const uint8_t* b, simd_v halves) {
    const simd_v ones = simd_set(0x01010101);
    const simd_v sum = simd_add_16(simd_pair_products_8(simd_shuffle(simd_load(a), halves), ones),
                                   simd_pair_products_8(simd_shuffle(simd_load(b), halves), ones));
    return simd_shift_right_16(simd_add_16(sum, simd_set_16(2)), 2);
}

/* Eight (grey) or two target pixels from each load, two loads a turn; the last ones are left to the
   plain loop because loads and stores may run over their end. */
SIMD_128 static void resample_halve_128(const uint8_t* a, const uint8_t* b, int count, int channels,
                                        uint8_t* out) {
    const int step = channels == 1 ? 8 : 2, used = 2 * step * channels;
    const simd_v halves = channels == 1   ? simd_bytes(RESAMPLE_HALVES_1)
                          : channels == 3 ? simd_bytes(RESAMPLE_HALVES_3)
                                          : simd_bytes(RESAMPLE_HALVES_4);
    const simd_v close = channels == 3 ? simd_bytes(RESAMPLE_CLOSE_3) : simd_bytes(RESAMPLE_HALVES_1);
    int i = 0;
    for (; i + 2 * step + 2 <= count; i += 2 * step, a += 2 * used, b += 2 * used, out += used) {
        const simd_v low = resample_halve_one(a, b, halves);
        const simd_v high = resample_halve_one(a + used, b + used, halves);
        simd_store(out, simd_shuffle(simd_narrow_16_to_bytes(low, high), close));
    }
    resample_halve(a, b, count - i, channels, out);
}

/* Four neighbouring sums at once; a fourth that belongs to the next pixel is overwritten by it. */
SIMD_128 static void resample_finish_boxes_128(const int32_t* sums, int count, int channels, int factor_x,
                                               int factor_y, uint8_t* out) {
    const simd_f share = simd_set_float(1.f / (float)(factor_x * factor_y));
    const simd_f magic = simd_set_float(PIXEL_MAGIC);
    int i = 0;
    for (; i < count - 1; i++, out += channels, sums += (ptrdiff_t)factor_x * channels) {
        simd_v sum = simd_load(sums);
        for (int k = 1; k < factor_x; k++)
            sum += simd_load(sums + (ptrdiff_t)k * channels);
        sum = simd_from_float((simd_to_float(sum) * share + magic) - magic);
        sum = simd_narrow(sum, sum);
        simd_store_4_bytes(out, simd_narrow_16_to_bytes(sum, sum));
    }
    resample_finish_boxes(sums, count - i, channels, factor_x, factor_y, out);
}

SIMD_128 static void resample_across_cells_128(const uint8_t* row, const int32_t* from, const int32_t* index,
                                               const float* weight, int count, int channels, float* out) {
    for (int i = 0; i < count; i++, out += channels) {
        simd_f sum = simd_set_float(0.f);
        for (int k = from[i]; k < from[i + 1]; k++) {
            int32_t pixel;
            memcpy(&pixel, row + index[k], 4);
            sum += simd_to_float(simd_widen_8_to_32((simd_v){pixel, 0, 0, 0})) * simd_set_float(weight[k]);
        }
        memcpy(out, &sum, sizeof sum);
    }
}
#endif

#if SIMD_X86

/* ---- AVX2: twice as many pixels, or taps ---- */

SIMD_AVX2 static inline __m256i resample_load_two(const uint8_t* low, const uint8_t* high) {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)low)),
                                   _mm_loadu_si128((const __m128i*)high), 1);
}

SIMD_AVX2 static inline __m256i resample_load_wide(const void* p) {
    return _mm256_loadu_si256((const __m256i*)p);
}

SIMD_AVX2 SIMD_INLINE void resample_across_bilinear_avx2_n(const uint8_t* row, const int32_t* index,
                                                           const int16_t* lanes, int count, int channels,
                                                           int16_t* out) {
    const __m256i pairs = channels == 3 ? _mm256_setr_epi8(RESAMPLE_PAIRS_3, RESAMPLE_PAIRS_3)
                                        : _mm256_setr_epi8(RESAMPLE_PAIRS_4, RESAMPLE_PAIRS_4);
    const __m256i close = _mm256_setr_epi8(RESAMPLE_CLOSE_3, RESAMPLE_CLOSE_3);
    for (int i = 0; i < count; i += 4, lanes += 32, out += 4 * channels) {
        __m256i a = _mm256_shuffle_epi8(resample_load_two(row + index[i], row + index[i + 1]), pairs);
        __m256i b = _mm256_shuffle_epi8(resample_load_two(row + index[i + 2], row + index[i + 3]), pairs);
        a = _mm256_srai_epi32(_mm256_madd_epi16(a, resample_load_wide(lanes)), 4);
        b = _mm256_srai_epi32(_mm256_madd_epi16(b, resample_load_wide(lanes + 16)), 4);
        a = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8); /* pixels 0 1 2 3 */
        if (channels == 3) a = _mm256_shuffle_epi8(a, close);
        _mm_storeu_si128((__m128i*)out, _mm256_castsi256_si128(a));
        _mm_storeu_si128((__m128i*)(out + 2 * channels), _mm256_extracti128_si256(a, 1));
    }
}

SIMD_AVX2 static void resample_across_bilinear_avx2(const uint8_t* row, const int32_t* index,
                                                    const int16_t* lanes, int count, int channels,
                                                    int16_t* out) {
    if (channels == 3)
        resample_across_bilinear_avx2_n(row, index, lanes, count, 3, out);
    else
        resample_across_bilinear_avx2_n(row, index, lanes, count, 4, out);
}

SIMD_AVX2 static inline __m256i resample_blend_avx2(const int16_t* a, const int16_t* b, __m256i wa,
                                                    __m256i wb) {
    const __m256i sum = _mm256_add_epi16(_mm256_mulhi_epi16(resample_load_wide(a), wa),
                                         _mm256_mulhi_epi16(resample_load_wide(b), wb));
    return _mm256_srai_epi16(_mm256_add_epi16(sum, _mm256_set1_epi16(2)), 2);
}

SIMD_AVX2 static void resample_down_bilinear_avx2(const int16_t* a, const int16_t* b, const int16_t* weight,
                                                  int n, uint8_t* out) {
    const __m256i wa = _mm256_set1_epi16(weight[0]), wb = _mm256_set1_epi16(weight[1]);
    int i = 0;
    for (; i <= n - 32; i += 32) {
        const __m256i low = resample_blend_avx2(a + i, b + i, wa, wb);
        const __m256i high = resample_blend_avx2(a + i + 16, b + i + 16, wa, wb);
        _mm256_storeu_si256((__m256i*)(out + i),
                            _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8));
    }
    resample_down_bilinear(a + i, b + i, weight, n - i, out + i);
}

/* One pixel at a time, two pairs of taps per register. */
SIMD_AVX2 SIMD_INLINE void resample_across_taps_avx2_n(const uint8_t* row, const int32_t* index,
                                                       const int16_t* lanes, int count, int channels,
                                                       int taps, int32_t* out) {
    const __m256i pairs = channels == 3 ? _mm256_setr_epi8(RESAMPLE_PAIRS_3, RESAMPLE_PAIRS_3)
                                        : _mm256_setr_epi8(RESAMPLE_PAIRS_4, RESAMPLE_PAIRS_4);
    for (int i = 0; i < count; i++, lanes += 4 * taps, out += channels) {
        const uint8_t* s = row + index[i];
        __m256i sum = _mm256_setzero_si256();
        for (int k = 0; k < taps; k += 4) {
            const __m256i two = resample_load_two(s + k * channels, s + (k + 2) * channels);
            sum = _mm256_add_epi32(
                sum, _mm256_madd_epi16(_mm256_shuffle_epi8(two, pairs), resample_load_wide(lanes + 4 * k)));
        }
        _mm_storeu_si128((__m128i*)out,
                         _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)));
    }
}

SIMD_AVX2 static void resample_across_taps_avx2(const uint8_t* row, const int32_t* index,
                                                const int16_t* lanes, int count, int channels, int taps,
                                                int32_t* out) {
    if (taps == 4 && channels == 3)
        resample_across_taps_avx2_n(row, index, lanes, count, 3, 4, out);
    else if (taps == 4)
        resample_across_taps_avx2_n(row, index, lanes, count, 4, 4, out);
    else if (channels == 3)
        resample_across_taps_avx2_n(row, index, lanes, count, 3, 8, out);
    else
        resample_across_taps_avx2_n(row, index, lanes, count, 4, 8, out);
}

/* The compiler vectorises the plain loops once it may use the wider registers. */
SIMD_AVX2 static void resample_down_taps_avx2(const int32_t* const* rows, const int16_t* weight, int taps,
                                              int n, uint8_t* out) {
    resample_down_taps(rows, weight, taps, n, out);
}

/* Eight rows are no faster with even wider registers. */
SIMD_AVX512 static void resample_down_four_avx512(const int32_t* const* rows, const int16_t* weight, int n,
                                                  uint8_t* out) {
    resample_down_taps(rows, weight, 4, n, out);
}

SIMD_AVX2 static void resample_add_row_avx2(const uint8_t* row, int n, int32_t* sums) {
    resample_add_row(row, n, sums);
}

SIMD_AVX2 static void resample_add_scaled_avx2(const float* row, float weight, int n, float* sums) {
    resample_add_scaled(row, weight, n, sums);
}

SIMD_AVX2 static void resample_finish_cells_avx2(const float* sums, int n, uint8_t* out) {
    resample_finish_cells(sums, n, out);
}

#endif

#define RESAMPLE_CALL(condition, call)                                                                       \
    if (condition) {                                                                                         \
        call;                                                                                                \
        return;                                                                                              \
    }
#if SIMD_VECTORS
#define RESAMPLE_TRY(condition, call) RESAMPLE_CALL(level >= SIMD_LEVEL_SSE41 && (condition), call)
#else
#define RESAMPLE_TRY(condition, call)
#endif
#if SIMD_X86
#define RESAMPLE_TRY_AVX2(condition, call) RESAMPLE_CALL(level >= SIMD_LEVEL_AVX2 && (condition), call)
#else
#define RESAMPLE_TRY_AVX2(condition, call)
#endif

/* ---- the best kernel up to a level ---- */

static void resample_across_bilinear_at(int level, const uint8_t* row, const int32_t* index,
                                        const int16_t* weight, const int16_t* lanes, int count, int channels,
                                        int16_t* out) {
    (void)level, (void)lanes;
    RESAMPLE_TRY_AVX2(channels > 1, resample_across_bilinear_avx2(row, index, lanes, count, channels, out))
    RESAMPLE_TRY(channels > 1, resample_across_bilinear_128(row, index, lanes, count, channels, out))
    RESAMPLE_TRY(1, resample_across_bilinear_grey(row, index, weight, count, out))
    resample_across_bilinear(row, index, weight, count, channels, out);
}

static void resample_down_bilinear_at(int level, const int16_t* a, const int16_t* b, const int16_t* weight,
                                      int n, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY_AVX2(1, resample_down_bilinear_avx2(a, b, weight, n, out))
    RESAMPLE_TRY(1, resample_down_bilinear_128(a, b, weight, n, out))
    resample_down_bilinear(a, b, weight, n, out);
}

static void resample_across_taps_at(int level, const uint8_t* row, const int32_t* index,
                                    const int16_t* weight, const int16_t* lanes, int count, int channels,
                                    int taps, int32_t* out) {
    (void)level, (void)lanes;
    RESAMPLE_TRY_AVX2(channels > 1, resample_across_taps_avx2(row, index, lanes, count, channels, taps, out))
    RESAMPLE_TRY(channels > 1, resample_across_taps_128(row, index, lanes, count, channels, taps, out))
    RESAMPLE_TRY(1, resample_across_taps_grey(row, index, weight, count, taps, out))
    resample_across_taps(row, index, weight, count, channels, taps, out);
}

static void resample_down_taps_at(int level, const int32_t* const* rows, const int16_t* weight, int taps,
                                  int n, uint8_t* out) {
    (void)level;
#if SIMD_X86
    RESAMPLE_CALL(level >= SIMD_LEVEL_AVX512 && taps == 4, resample_down_four_avx512(rows, weight, n, out))
#endif
    RESAMPLE_TRY_AVX2(1, resample_down_taps_avx2(rows, weight, taps, n, out))
    resample_down_taps(rows, weight, taps, n, out);
}

static void resample_add_row_at(int level, const uint8_t* row, int n, int32_t* sums) {
    (void)level;
    RESAMPLE_TRY_AVX2(1, resample_add_row_avx2(row, n, sums))
    resample_add_row(row, n, sums);
}

static void resample_halve_at(int level, const uint8_t* a, const uint8_t* b, int count, int channels,
                              uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(1, resample_halve_128(a, b, count, channels, out))
    resample_halve(a, b, count, channels, out);
}

static void resample_finish_boxes_at(int level, const int32_t* sums, int count, int channels, int factor_x,
                                     int factor_y, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(channels > 1, resample_finish_boxes_128(sums, count, channels, factor_x, factor_y, out))
    resample_finish_boxes(sums, count, channels, factor_x, factor_y, out);
}

static void resample_across_cells_at(int level, const uint8_t* row, const int32_t* from, const int32_t* index,
                                     const float* weight, int count, int channels, float* out) {
    (void)level;
    RESAMPLE_TRY(channels > 1, resample_across_cells_128(row, from, index, weight, count, channels, out))
    resample_across_cells(row, from, index, weight, count, channels, out);
}

static void resample_add_scaled_at(int level, const float* row, float weight, int n, float* sums) {
    (void)level;
    RESAMPLE_TRY_AVX2(1, resample_add_scaled_avx2(row, weight, n, sums))
    resample_add_scaled(row, weight, n, sums);
}

static void resample_finish_cells_at(int level, const float* sums, int n, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY_AVX2(1, resample_finish_cells_avx2(sums, n, out))
    resample_finish_cells(sums, n, out);
}

#undef RESAMPLE_CALL
#undef RESAMPLE_TRY
#undef RESAMPLE_TRY_AVX2

#endif
