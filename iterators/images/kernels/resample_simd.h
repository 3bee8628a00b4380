/* Rows resampled with the vector instructions of x86: the same bytes as resample_rows.h, sooner.
 *
 * Pixels of 3 and 4 channels are handled one 128-bit lane per pixel: a shuffle pairs the channels of
 * two neighbouring pixels, a multiply-add makes the weighted sums.  Each pixel's weights therefore
 * stand four times side by side in the "lane" tables.  Loads and stores may run over the end of a
 * row by less than RESAMPLE_SLACK.
 */
#ifndef RECORDIO_RESAMPLE_SIMD_H
#define RECORDIO_RESAMPLE_SIMD_H

#include "resample_rows.h"

/* Weights of count pixels, each pair of taps repeated for four channels. */
static void resample_lane_weights(const int16_t* weight, int count, int taps, int16_t* lanes) {
    for (int i = 0; i < count * taps; i += 2, lanes += 8) {
        uint32_t pair;
        memcpy(&pair, weight + i, sizeof pair);
        for (int k = 0; k < 4; k++)
            memcpy(lanes + 2 * k, &pair, sizeof pair);
    }
}

#if SIMD_X86

/* Byte shuffles: (first pixel, second pixel) of every channel as pairs of 16-bit values. */
#define RESAMPLE_PAIRS_3 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1
#define RESAMPLE_PAIRS_4 0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1
/* Closes the gap that a missing fourth channel leaves in two pixels of 16-bit values. */
#define RESAMPLE_CLOSE_3 0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1

SIMD_SSE41 static inline __m128i resample_load(const void* p) {
    return _mm_loadu_si128((const __m128i*)p);
}

SIMD_SSE41 static inline __m128i resample_pairs(int channels) {
    return channels == 3 ? _mm_setr_epi8(RESAMPLE_PAIRS_3) : _mm_setr_epi8(RESAMPLE_PAIRS_4);
}

/* ---- bilinear across: index has a multiple of four entries ---- */

SIMD_SSE41 static void resample_across_bilinear_sse41(const uint8_t* row, const int32_t* index,
                                                      const int16_t* lanes, int count, int channels,
                                                      int16_t* out) {
    const __m128i pairs = resample_pairs(channels), close = _mm_setr_epi8(RESAMPLE_CLOSE_3);
    for (int i = 0; i < count; i += 2, lanes += 16, out += 2 * channels) {
        __m128i a = _mm_shuffle_epi8(resample_load(row + index[i]), pairs);
        __m128i b = _mm_shuffle_epi8(resample_load(row + index[i + 1]), pairs);
        a = _mm_srai_epi32(_mm_madd_epi16(a, resample_load(lanes)), 4);
        b = _mm_srai_epi32(_mm_madd_epi16(b, resample_load(lanes + 8)), 4);
        a = _mm_packs_epi32(a, b);
        if (channels == 3) a = _mm_shuffle_epi8(a, close);
        _mm_storeu_si128((__m128i*)out, a);
    }
}

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

/* ---- grey: one lane holds the taps of several pixels ---- */

SIMD_SSE41 static inline __m128i resample_load_grey(const uint8_t* row, const int32_t* index, int taps) {
    uint16_t two[4];
    uint32_t four[2];
    if (taps == 8) return _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i*)(row + index[0])));
    if (taps == 4) {
        for (int k = 0; k < 2; k++)
            memcpy(&four[k], row + index[k], 4);
        return _mm_cvtepu8_epi16(_mm_set_epi32(0, 0, (int)four[1], (int)four[0]));
    }
    for (int k = 0; k < 4; k++)
        memcpy(&two[k], row + index[k], 2);
    return _mm_cvtepu8_epi16(
        _mm_set_epi16(0, 0, 0, 0, (short)two[3], (short)two[2], (short)two[1], (short)two[0]));
}

SIMD_SSE41 static void resample_across_bilinear_grey_sse41(const uint8_t* row, const int32_t* index,
                                                           const int16_t* weight, int count, int16_t* out) {
    for (int i = 0; i < count; i += 4) {
        const __m128i sum =
            _mm_madd_epi16(resample_load_grey(row, index + i, 2), resample_load(weight + 2 * i));
        const __m128i cut = _mm_srai_epi32(sum, 4);
        _mm_storel_epi64((__m128i*)(out + i), _mm_packs_epi32(cut, cut));
    }
}

SIMD_SSE41 static void resample_across_taps_grey_sse41(const uint8_t* row, const int32_t* index,
                                                       const int16_t* weight, int count, int taps,
                                                       int32_t* out) {
    const int step = 8 / taps; /* pixels in one register */
    for (int i = 0; i < count; i += 4) {
        __m128i sums[4];
        for (int k = 0; k < 4; k += step)
            sums[k] = _mm_madd_epi16(resample_load_grey(row, index + i + k, taps),
                                     resample_load(weight + (i + k) * taps));
        if (taps == 8)
            sums[0] = _mm_hadd_epi32(_mm_hadd_epi32(sums[0], sums[1]), _mm_hadd_epi32(sums[2], sums[3]));
        else
            sums[0] = _mm_hadd_epi32(sums[0], sums[2]);
        _mm_storeu_si128((__m128i*)(out + i), sums[0]);
    }
}

/* ---- bilinear down ---- */

SIMD_SSE41 static void resample_down_bilinear_sse41(const int16_t* a, const int16_t* b, const int16_t* weight,
                                                    int n, uint8_t* out) {
    const __m128i wa = _mm_set1_epi16(weight[0]), wb = _mm_set1_epi16(weight[1]), two = _mm_set1_epi16(2);
    int i = 0;
    for (; i <= n - 16; i += 16) {
        __m128i low = _mm_add_epi16(_mm_mulhi_epi16(resample_load(a + i), wa),
                                    _mm_mulhi_epi16(resample_load(b + i), wb));
        __m128i high = _mm_add_epi16(_mm_mulhi_epi16(resample_load(a + i + 8), wa),
                                     _mm_mulhi_epi16(resample_load(b + i + 8), wb));
        low = _mm_srai_epi16(_mm_add_epi16(low, two), 2);
        high = _mm_srai_epi16(_mm_add_epi16(high, two), 2);
        _mm_storeu_si128((__m128i*)(out + i), _mm_packus_epi16(low, high));
    }
    resample_down_bilinear(a + i, b + i, weight, n - i, out + i);
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

/* ---- cubic and Lanczos ---- */

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

/* ---- area ---- */

SIMD_AVX2 static void resample_add_row_avx2(const uint8_t* row, int n, int32_t* sums) {
    resample_add_row(row, n, sums);
}

/* Byte shuffles: the channels of pixels 0 and 1, then of pixels 2 and 3, as pairs of bytes. */
#define RESAMPLE_HALVES_1 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define RESAMPLE_HALVES_3 0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, -1, -1, -1, -1
#define RESAMPLE_HALVES_4 0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15

SIMD_SSE41 static inline __m128i resample_halve_sse41_one(const uint8_t* a, const uint8_t* b,
                                                          __m128i halves) {
    const __m128i ones = _mm_set1_epi8(1);
    const __m128i sum = _mm_add_epi16(_mm_maddubs_epi16(_mm_shuffle_epi8(resample_load(a), halves), ones),
                                      _mm_maddubs_epi16(_mm_shuffle_epi8(resample_load(b), halves), ones));
    return _mm_srli_epi16(_mm_add_epi16(sum, _mm_set1_epi16(2)), 2);
}

/* Eight (grey) or two target pixels from each load, two loads a turn; the last ones are left to the
   plain loop because loads and stores may run over their end. */
SIMD_SSE41 static void resample_halve_sse41(const uint8_t* a, const uint8_t* b, int count, int channels,
                                            uint8_t* out) {
    const int step = channels == 1 ? 8 : 2, used = 2 * step * channels;
    const __m128i halves = channels == 1   ? _mm_setr_epi8(RESAMPLE_HALVES_1)
                           : channels == 3 ? _mm_setr_epi8(RESAMPLE_HALVES_3)
                                           : _mm_setr_epi8(RESAMPLE_HALVES_4);
    const __m128i close = channels == 3
                              ? _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1)
                              : _mm_setr_epi8(RESAMPLE_HALVES_1);
    int i = 0;
    for (; i + 2 * step + 2 <= count; i += 2 * step, a += 2 * used, b += 2 * used, out += used) {
        const __m128i low = resample_halve_sse41_one(a, b, halves);
        const __m128i high = resample_halve_sse41_one(a + used, b + used, halves);
        _mm_storeu_si128((__m128i*)out, _mm_shuffle_epi8(_mm_packus_epi16(low, high), close));
    }
    resample_halve(a, b, count - i, channels, out);
}

/* Four neighbouring sums at once; a fourth that belongs to the next pixel is overwritten by it. */
SIMD_SSE41 static void resample_finish_boxes_sse41(const int32_t* sums, int count, int channels, int factor_x,
                                                   int factor_y, uint8_t* out) {
    const __m128 share = _mm_set1_ps(1.f / (float)(factor_x * factor_y)), magic = _mm_set1_ps(PIXEL_MAGIC);
    int i = 0;
    for (; i < count - 1; i++, out += channels, sums += (ptrdiff_t)factor_x * channels) {
        __m128i sum = resample_load(sums);
        for (int k = 1; k < factor_x; k++)
            sum = _mm_add_epi32(sum, resample_load(sums + (ptrdiff_t)k * channels));
        const __m128 mean = _mm_mul_ps(_mm_cvtepi32_ps(sum), share);
        sum = _mm_cvttps_epi32(_mm_sub_ps(_mm_add_ps(mean, magic), magic));
        sum = _mm_packs_epi32(sum, sum);
        const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
        memcpy(out, &pixel, 4);
    }
    resample_finish_boxes(sums, count - i, channels, factor_x, factor_y, out);
}

SIMD_SSE41 static void resample_across_cells_sse41(const uint8_t* row, const int32_t* from,
                                                   const int32_t* index, const float* weight, int count,
                                                   int channels, float* out) {
    for (int i = 0; i < count; i++, out += channels) {
        __m128 sum = _mm_setzero_ps();
        for (int k = from[i]; k < from[i + 1]; k++) {
            int pixel;
            memcpy(&pixel, row + index[k], 4);
            const __m128 value = _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(pixel)));
            sum = _mm_add_ps(sum, _mm_mul_ps(value, _mm_set1_ps(weight[k])));
        }
        _mm_storeu_ps(out, sum);
    }
}

SIMD_AVX2 static void resample_add_scaled_avx2(const float* row, float weight, int n, float* sums) {
    resample_add_scaled(row, weight, n, sums);
}

SIMD_AVX2 static void resample_finish_cells_avx2(const float* sums, int n, uint8_t* out) {
    resample_finish_cells(sums, n, out);
}

#define RESAMPLE_TRY(condition, call)                                                                        \
    if (condition) {                                                                                         \
        call;                                                                                                \
        return;                                                                                              \
    }
#else
#define RESAMPLE_TRY(condition, call)
#endif

/* ---- the best kernel up to a level ---- */

static void resample_across_bilinear_at(int level, const uint8_t* row, const int32_t* index,
                                        const int16_t* weight, const int16_t* lanes, int count, int channels,
                                        int16_t* out) {
    (void)level, (void)lanes;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2 && channels > 1,
                 resample_across_bilinear_avx2(row, index, lanes, count, channels, out))
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41 && channels > 1,
                 resample_across_bilinear_sse41(row, index, lanes, count, channels, out))
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41,
                 resample_across_bilinear_grey_sse41(row, index, weight, count, out))
    resample_across_bilinear(row, index, weight, count, channels, out);
}

static void resample_down_bilinear_at(int level, const int16_t* a, const int16_t* b, const int16_t* weight,
                                      int n, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2, resample_down_bilinear_avx2(a, b, weight, n, out))
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41, resample_down_bilinear_sse41(a, b, weight, n, out))
    resample_down_bilinear(a, b, weight, n, out);
}

static void resample_across_taps_at(int level, const uint8_t* row, const int32_t* index,
                                    const int16_t* weight, const int16_t* lanes, int count, int channels,
                                    int taps, int32_t* out) {
    (void)level, (void)lanes;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2 && channels > 1,
                 resample_across_taps_avx2(row, index, lanes, count, channels, taps, out))
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41 && channels == 1,
                 resample_across_taps_grey_sse41(row, index, weight, count, taps, out))
    resample_across_taps(row, index, weight, count, channels, taps, out);
}

static void resample_down_taps_at(int level, const int32_t* const* rows, const int16_t* weight, int taps,
                                  int n, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2, resample_down_taps_avx2(rows, weight, taps, n, out))
    resample_down_taps(rows, weight, taps, n, out);
}

static void resample_add_row_at(int level, const uint8_t* row, int n, int32_t* sums) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2, resample_add_row_avx2(row, n, sums))
    resample_add_row(row, n, sums);
}

static void resample_halve_at(int level, const uint8_t* a, const uint8_t* b, int count, int channels,
                              uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41, resample_halve_sse41(a, b, count, channels, out))
    resample_halve(a, b, count, channels, out);
}

static void resample_finish_boxes_at(int level, const int32_t* sums, int count, int channels, int factor_x,
                                     int factor_y, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41 && channels > 1,
                 resample_finish_boxes_sse41(sums, count, channels, factor_x, factor_y, out))
    resample_finish_boxes(sums, count, channels, factor_x, factor_y, out);
}

static void resample_across_cells_at(int level, const uint8_t* row, const int32_t* from, const int32_t* index,
                                     const float* weight, int count, int channels, float* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_SSE41 && channels > 1,
                 resample_across_cells_sse41(row, from, index, weight, count, channels, out))
    resample_across_cells(row, from, index, weight, count, channels, out);
}

static void resample_add_scaled_at(int level, const float* row, float weight, int n, float* sums) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2, resample_add_scaled_avx2(row, weight, n, sums))
    resample_add_scaled(row, weight, n, sums);
}

static void resample_finish_cells_at(int level, const float* sums, int n, uint8_t* out) {
    (void)level;
    RESAMPLE_TRY(level >= SIMD_LEVEL_AVX2, resample_finish_cells_avx2(sums, n, out))
    resample_finish_cells(sums, n, out);
}

#undef RESAMPLE_TRY

#endif
