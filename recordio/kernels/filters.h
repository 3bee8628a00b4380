/* Pillow's filters: which source pixels make a target pixel, and rows resampled by them, to Pillow's bytes.
 *
 * A filter grows with the factor by which an image shrinks.  Weights have 22 bits, each axis rounds its sums
 * to 8 bits, and colours are multiplied by their alpha before.  Every weight is kept as an upper and a lower
 * half of 16 bits (weight = upper * 2048 + lower), so that 16-bit products sum it up exactly: for each pair of
 * taps there are the two upper halves, then the two lower ones.  For AVX-512 it is kept as three signed bytes
 * instead, from the highest, and for each two pairs there are four highest bytes, four middle and four lowest.
 *
 * The plain forms define the results.  All read and write up to FILTER_SLACK bytes beyond a row (what is
 * read there gets weight 0).
 */
#ifndef RECORDIO_FILTERS_H
#define RECORDIO_FILTERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pixel.h"
#include "simd.h"
#include "vectors.h"

enum {
    FILTER_NEAREST = 16, /* beyond the numbers of `inter_method` */
    FILTER_BOX = 17,
    FILTER_BILINEAR = 18,
    FILTER_HAMMING = 19,
    FILTER_BICUBIC = 20,
    FILTER_LANCZOS = 21
};

/* FILTER_GROUP target pixels are made at once with AVX-512, and FILTER_ROWS rows with AVX2. */
enum { FILTER_BITS = 22, FILTER_HALF_BITS = 11, FILTER_SLACK = 64, FILTER_GROUP = 4, FILTER_ROWS = 32 };

/* One axis in pixels of the image that is resized, as single precision numbers: Pillow's box. */
typedef struct {
    float low, high;
    int size;         /* pixels that there are */
    int target;       /* pixels after the resize */
    int begin, count; /* those of them that are wanted */
} filter_axis;

/* ---- weights ---- */

/* sin(pi x) for |x| <= 3, by its power series: C libraries differ in the last bit. */
static double filter_sine(double x) {
    const double pi = 3.14159265358979323846;
    const int whole = (int)(x < 0 ? x - 0.5 : x + 0.5);
    const double turn = (x - whole) * pi, square = turn * turn;
    /* One by k (k + 1), from k = 22 down: the terms beyond are below the last bit. */
    static const double shares[] = {1 / 506.0, 1 / 420.0, 1 / 342.0, 1 / 272.0, 1 / 210.0, 1 / 156.0,
                                    1 / 110.0, 1 / 72.0,  1 / 42.0,  1 / 20.0,  1 / 6.0};
    double series = 0;
    for (size_t k = 0; k < sizeof shares / sizeof *shares; k++)
        series = (1 - series) * square * shares[k];
    return (whole & 1 ? -turn : turn) * (1 - series);
}

static double filter_sinc(double x) {
    return x == 0 ? 1.0 : filter_sine(x) / (x * 3.14159265358979323846);
}

static double filter_value(int method, double x) {
    const double distance = x < 0 ? -x : x;
    switch (method) {
    case FILTER_BOX:
        return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case FILTER_BILINEAR:
        return distance < 1 ? 1 - distance : 0.0;
    case FILTER_HAMMING:
        if (distance == 0) return 1.0;
        return distance < 1 ? filter_sinc(distance) * (0.54f + 0.46f * filter_sine(distance + 0.5)) : 0.0;
    case FILTER_BICUBIC:
        if (distance < 1) return ((-0.5 + 2.0) * distance - (-0.5 + 3.0)) * distance * distance + 1;
        return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * -0.5 : 0.0;
    default:
        return -3 <= x && x < 3 ? filter_sinc(x) * filter_sinc(x / 3) : 0.0;
    }
}

/* How far a filter reaches, in target pixels of an image that shrinks. */
static double filter_reach(int method) {
    return method == FILTER_BOX ? 0.5 : method == FILTER_BICUBIC ? 2.0 : method == FILTER_LANCZOS ? 3.0 : 1.0;
}

static double filter_scale(const filter_axis* axis) {
    return (double)(axis->high - axis->low) / axis->target;
}

/* The source pixels of one target pixel: how many, and the first one. */
static int filter_span(const filter_axis* axis, int method, int t, int* first) {
    const double scale = filter_scale(axis);
    const double support = filter_reach(method) * (scale < 1 ? 1.0 : scale);
    const double centre = axis->low + (t + 0.5) * scale;
    int from = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
    if (from < 0) from = 0;
    if (end > axis->size) end = axis->size;
    if (from > axis->size - 1) from = axis->size - 1; /* a box that reaches beyond the image by rounding */
    *first = from;
    return end > from ? end - from : 1;
}

/* What the wanted target pixels are made of: the first source pixel, the end of them, and the most that one
   target pixel takes. */
static int filter_extent(const filter_axis* axis, int method, int* first, int* end) {
    int most = 0;
    *first = axis->size;
    *end = 0;
    for (int i = 0; i < axis->count; i++) {
        int from;
        const int taps = filter_span(axis, method, axis->begin + i, &from);
        if (from < *first) *first = from;
        if (from + taps > *end) *end = from + taps;
        if (taps > most) most = taps;
    }
    return most;
}

/* Pairs of taps, in steps: grey rows take four pairs at once, and AVX-512 two. */
static int filter_pairs(int most, int level, int is_grey) {
    const int step = level >= SIMD_LEVEL_AVX512 ? 2 : is_grey ? 4 : 1;
    return ((most + 1) / 2 + step - 1) / step * step;
}

/* Weights of two pairs of taps, as filter_table has made them, to signed bytes. */
static void filter_bytes(int16_t* weight) {
    int8_t bytes[16] = {0};
    for (int tap = 0; tap < 4; tap++) {
        const int16_t* pair = weight + tap / 2 * 4;
        int32_t whole = pair[tap % 2] * (1 << FILTER_HALF_BITS) + pair[2 + tap % 2];
        for (int digit = 2; digit >= 0; digit--) {
            const int32_t low = ((whole + 128) & 255) - 128;
            bytes[4 * digit + tap] = (int8_t)low;
            whole = (whole - low) / 256;
        }
    }
    memcpy(weight, bytes, sizeof bytes);
}

/* The weights of one target pixel, whole numbers of FILTER_BITS: how many, and the first source pixel. */
static int filter_weights(const filter_axis* axis, int method, int t, double* values, int* first) {
    const double scale = filter_scale(axis), finer = 1.0 / (scale < 1 ? 1.0 : scale);
    const double centre = axis->low + (t + 0.5) * scale;
    const int taps = filter_span(axis, method, t, first);
    double sum = 0;
    for (int k = 0; k < taps; k++) {
        values[k] = filter_value(method, (k + *first - centre + 0.5) * finer);
        sum += values[k];
    }
    for (int k = 0; k < taps; k++) {
        const double share = (sum != 0 ? values[k] / sum : values[k]) * (1 << FILTER_BITS);
        values[k] = (int32_t)(share < 0 ? share - 0.5 : share + 0.5);
    }
    return taps;
}

/* Tables: target pixel begin + i is made of the 2 * pairs source pixels from index[i] on, which counts from
   source pixel `first`.  They lie before `end`, unless there are too few.  `values` has room for all taps. */
static void filter_table(const filter_axis* axis, int method, int level, int pairs, int first, int end,
                         int32_t* index, int16_t* weight, double* values) {
    const int last = end - first > 2 * pairs ? end - first - 2 * pairs : 0;
    memset(weight, 0, (size_t)axis->count * (size_t)pairs * 4 * sizeof(int16_t));
    for (int i = 0; i < axis->count; i++, weight += 4 * (ptrdiff_t)pairs) {
        int from;
        const int taps = filter_weights(axis, method, axis->begin + i, values, &from);
        index[i] = from - first < last ? from - first : last;
        for (int k = 0; k < taps; k++) {
            const int32_t whole = (int32_t)values[k];
            const int32_t lower = whole & ((1 << FILTER_HALF_BITS) - 1);
            const int tap = k + from - first - index[i];
            weight[tap / 2 * 4 + tap % 2] = (int16_t)((whole - lower) / (1 << FILTER_HALF_BITS));
            weight[tap / 2 * 4 + 2 + tap % 2] = (int16_t)lower;
        }
        for (int p = 0; p < pairs && level >= SIMD_LEVEL_AVX512; p += 2)
            filter_bytes(weight + 4 * (ptrdiff_t)p);
    }
}

/* Nearest: Pillow adds the step up from pixel to pixel. */
static void filter_nearest(const filter_axis* axis, int32_t* index) {
    const double scale = filter_scale(axis);
    double position = axis->low + scale * 0.5;
    for (int t = 0; t < axis->begin + axis->count; t++, position += scale) {
        const int pixel = position < 0 ? 0 : (int)position;
        if (t >= axis->begin) index[t - axis->begin] = pixel < axis->size ? pixel : axis->size - 1;
    }
}

/* Whether Pillow (13 and later) resizes the height first: it then has less to do. */
static int filter_down_first(const filter_axis* x, const filter_axis* y) {
    return y->target < y->size && (int64_t)y->size - y->target > 2 * ((int64_t)x->size - x->target);
}

/* ---- rows, plainly ---- */

SIMD_INLINE int32_t filter_product(int first, int second, const int16_t* weight) {
    const int upper = first * weight[0] + second * weight[1];
    const int lower = first * weight[2] + second * weight[3];
    return upper * (1 << FILTER_HALF_BITS) + lower;
}

SIMD_INLINE uint8_t filter_round(uint32_t sum) {
    return pixel_saturate((int32_t)(sum + (1u << (FILTER_BITS - 1))) >> FILTER_BITS);
}

/* index counts bytes. */
static void filter_across(const uint8_t* row, const int32_t* index, const int16_t* weight, int pairs,
                          int count, int channels, uint8_t* out) {
    for (int i = 0; i < count; i++, weight += 4 * (ptrdiff_t)pairs, out += channels) {
        for (int c = 0; c < channels; c++) {
            const uint8_t* s = row + index[i] + c;
            uint32_t sum = 0;
            for (int p = 0; p < pairs; p++, s += 2 * channels)
                sum += (uint32_t)filter_product(s[0], s[channels], weight + 4 * (ptrdiff_t)p);
            out[c] = filter_round(sum);
        }
    }
}

static void filter_down(const uint8_t* const* rows, const int16_t* weight, int pairs, int n, uint8_t* out) {
    for (int i = 0; i < n; i++) {
        uint32_t sum = 0;
        for (int p = 0; p < pairs; p++)
            sum += (uint32_t)filter_product(rows[2 * p][i], rows[2 * p + 1][i], weight + 4 * (ptrdiff_t)p);
        out[i] = filter_round(sum);
    }
}

/* ---- rows with vectors ---- */

#if SIMD_VECTORS

/* Byte shuffles: two neighbouring taps as 16-bit values, each twice: for upper and for lower halves. */
#define FILTER_FIRST_1  0, -1, 1, -1, 0, -1, 1, -1, 2, -1, 3, -1, 2, -1, 3, -1
#define FILTER_SECOND_1 4, -1, 5, -1, 4, -1, 5, -1, 6, -1, 7, -1, 6, -1, 7, -1
#define FILTER_FIRST_3  0, -1, 3, -1, 0, -1, 3, -1, 1, -1, 4, -1, 1, -1, 4, -1
#define FILTER_SECOND_3 2, -1, 5, -1, 2, -1, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1
#define FILTER_FIRST_4  0, -1, 4, -1, 0, -1, 4, -1, 1, -1, 5, -1, 1, -1, 5, -1
#define FILTER_SECOND_4 2, -1, 6, -1, 2, -1, 6, -1, 3, -1, 7, -1, 3, -1, 7, -1
/* Two rows: eight bytes of each, value by value side by side. */
#define FILTER_ROWS_FIRST  0, -1, 8, -1, 1, -1, 9, -1, 2, -1, 10, -1, 3, -1, 11, -1
#define FILTER_ROWS_SECOND 4, -1, 12, -1, 5, -1, 13, -1, 6, -1, 14, -1, 7, -1, 15, -1

/* Upper and lower sums, in turns, to whole ones: two of each vector. */
SIMD_128 static inline simd_v filter_join(simd_v a, simd_v b) {
    const simd_v shifts = (simd_v){1 << FILTER_HALF_BITS, 1, 1 << FILTER_HALF_BITS, 1};
    return simd_pair_sums(simd_multiply(a, shifts), simd_multiply(b, shifts));
}

SIMD_128 static inline simd_v filter_finish(simd_v sum) {
    return simd_shift_right(sum + simd_set(1 << (FILTER_BITS - 1)), FILTER_BITS);
}

SIMD_128 static void filter_across_128(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                       int pairs, int count, int channels, uint8_t* out) {
    const simd_v first = channels == 3 ? simd_bytes(FILTER_FIRST_3) : simd_bytes(FILTER_FIRST_4);
    const simd_v second = channels == 3 ? simd_bytes(FILTER_SECOND_3) : simd_bytes(FILTER_SECOND_4);
    for (int i = 0; i < count; i++, out += channels) {
        const uint8_t* s = row + index[i];
        simd_v low = simd_set(0), high = simd_set(0);
        for (int p = 0; p < pairs; p++, s += 2 * channels, weight += 4) {
            const simd_v pixels = simd_load_8_bytes(s), four = simd_load_8_bytes(weight);
            const simd_v weights = simd_join(four, four);
            low += simd_pair_products_16(simd_shuffle(pixels, first), weights);
            high += simd_pair_products_16(simd_shuffle(pixels, second), weights);
        }
        const simd_v words = filter_finish(filter_join(low, high));
        const simd_v narrow = simd_narrow(words, words);
        simd_store_4_bytes(out, simd_narrow_16_to_bytes(narrow, narrow));
    }
}

/* Grey: four pairs at once. */
SIMD_128 static void filter_across_grey_128(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                            int pairs, int count, uint8_t* out) {
    const simd_v first = simd_bytes(FILTER_FIRST_1), second = simd_bytes(FILTER_SECOND_1);
    for (int i = 0; i < count; i++) {
        const uint8_t* s = row + index[i];
        simd_v sum = simd_set(0);
        for (int p = 0; p < pairs; p += 4, s += 8, weight += 16) {
            const simd_v pixels = simd_load_8_bytes(s);
            sum += simd_pair_products_16(simd_shuffle(pixels, first), simd_load(weight));
            sum += simd_pair_products_16(simd_shuffle(pixels, second), simd_load(weight + 8));
        }
        sum = filter_join(sum, sum);
        out[i] = filter_round((uint32_t)sum[0] + (uint32_t)sum[1]);
    }
}

SIMD_128 static void filter_down_128(const uint8_t* const* rows, const int16_t* weight, int pairs, int n,
                                     uint8_t* out) {
    const simd_v first = simd_bytes(FILTER_ROWS_FIRST), second = simd_bytes(FILTER_ROWS_SECOND);
    for (int i = 0; i < n; i += 8) {
        simd_v upper[2] = {simd_set(0), simd_set(0)}, lower[2] = {simd_set(0), simd_set(0)};
        for (int p = 0; p < pairs; p++) {
            const simd_v both =
                simd_join(simd_load_8_bytes(rows[2 * p] + i), simd_load_8_bytes(rows[2 * p + 1] + i));
            const simd_v low = simd_shuffle(both, first), high = simd_shuffle(both, second);
            const simd_v weights = simd_load_8_bytes(weight + 4 * (ptrdiff_t)p);
            const simd_v wu = simd_repeat(weights, 0), wl = simd_repeat(weights, 1);
            upper[0] += simd_pair_products_16(low, wu);
            lower[0] += simd_pair_products_16(low, wl);
            upper[1] += simd_pair_products_16(high, wu);
            lower[1] += simd_pair_products_16(high, wl);
        }
        const simd_v shift = simd_set(1 << FILTER_HALF_BITS);
        const simd_v words = simd_narrow(filter_finish(simd_multiply(upper[0], shift) + lower[0]),
                                         filter_finish(simd_multiply(upper[1], shift) + lower[1]));
        simd_store_8_bytes(out + i, simd_narrow_16_to_bytes(words, words));
    }
}
#endif

#if SIMD_X86

SIMD_AVX2 static inline __m256i filter_load_8_bytes(const void* from) {
    int64_t eight;
    memcpy(&eight, from, sizeof eight);
    return _mm256_set1_epi64x(eight);
}

/* One target pixel: sums of upper and lower halves in turns, two channels in each half of the vector. */
SIMD_AVX2 SIMD_INLINE __m256i filter_pixel_avx2(const uint8_t* s, const int16_t* weight, int pairs,
                                                int channels, __m256i lanes) {
    __m256i sum = _mm256_setzero_si256();
    for (int p = 0; p < pairs; p++, s += 2 * channels, weight += 4)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_shuffle_epi8(filter_load_8_bytes(s), lanes),
                                                      filter_load_8_bytes(weight)));
    return _mm256_sllv_epi32(sum, _mm256_setr_epi32(FILTER_HALF_BITS, 0, FILTER_HALF_BITS, 0,
                                                    FILTER_HALF_BITS, 0, FILTER_HALF_BITS, 0));
}

/* The rounded bytes of two pixels, those of the second from byte 4 on. */
SIMD_AVX2 static inline int64_t filter_two_avx2(__m256i a, __m256i b) {
    const __m256i half = _mm256_set1_epi32(1 << (FILTER_BITS - 1));
    const __m256i words = _mm256_srai_epi32(_mm256_add_epi32(_mm256_hadd_epi32(a, b), half), FILTER_BITS);
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    const __m128i in_order = _mm_packs_epi32(_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high));
    int64_t bytes;
    _mm_storel_epi64((__m128i*)&bytes, _mm_packus_epi16(in_order, in_order));
    return bytes;
}

SIMD_AVX2 SIMD_INLINE void filter_across_avx2_n(const uint8_t* row, const int32_t* index,
                                                const int16_t* weight, int pairs, int count, int channels,
                                                uint8_t* out) {
    const __m256i lanes = channels == 3   ? _mm256_setr_epi8(FILTER_FIRST_3, FILTER_SECOND_3)
                          : channels == 4 ? _mm256_setr_epi8(FILTER_FIRST_4, FILTER_SECOND_4)
                                          : _mm256_setr_epi8(FILTER_FIRST_1, FILTER_SECOND_1);
    int i = 0;
    for (; i <= count - 2; i += 2, weight += 8 * (ptrdiff_t)pairs, out += 2 * channels) {
        const __m256i a = filter_pixel_avx2(row + index[i], weight, pairs, channels, lanes);
        const __m256i b =
            filter_pixel_avx2(row + index[i + 1], weight + 4 * (ptrdiff_t)pairs, pairs, channels, lanes);
        const int64_t bytes = filter_two_avx2(a, b);
        const int32_t last = (int32_t)(bytes >> 32);
        memcpy(out, &bytes, 4);
        memcpy(out + channels, &last, 4);
    }
    if (i < count) {
        const __m256i a = filter_pixel_avx2(row + index[i], weight, pairs, channels, lanes);
        const int64_t bytes = filter_two_avx2(a, a);
        memcpy(out, &bytes, 4);
    }
}

SIMD_AVX2 static void filter_across_avx2(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                         int pairs, int count, int channels, uint8_t* out) {
    if (channels == 3)
        filter_across_avx2_n(row, index, weight, pairs, count, 3, out);
    else
        filter_across_avx2_n(row, index, weight, pairs, count, 4, out);
}

/* Four pairs of grey at once. */
SIMD_AVX2 static void filter_across_grey_avx2(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                              int pairs, int count, uint8_t* out) {
    const __m256i lanes = _mm256_setr_epi8(FILTER_FIRST_1, FILTER_SECOND_1);
    for (int i = 0; i < count; i++) {
        const uint8_t* s = row + index[i];
        __m256i sums = _mm256_setzero_si256();
        for (int p = 0; p < pairs; p += 4, s += 8, weight += 16)
            sums =
                _mm256_add_epi32(sums, _mm256_madd_epi16(_mm256_shuffle_epi8(filter_load_8_bytes(s), lanes),
                                                         _mm256_loadu_si256((const __m256i*)weight)));
        __m128i two = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        two = _mm_add_epi32(two, _mm_unpackhi_epi64(two, two));
        uint32_t halves[2];
        _mm_storel_epi64((__m128i*)halves, two);
        out[i] = filter_round((halves[0] << FILTER_HALF_BITS) + halves[1]);
    }
}

/* Upper and lower sums of 32 values, eight in each vector. */
typedef struct {
    __m256i upper[4], lower[4];
} filter_sums;

SIMD_AVX2 SIMD_INLINE void filter_begin_avx2(filter_sums* sums) {
    for (int part = 0; part < 4; part++) {
        sums->upper[part] = _mm256_setzero_si256();
        sums->lower[part] = _mm256_set1_epi32(1 << (FILTER_BITS - 1));
    }
}

/* Adds 32 bytes of each of two taps by their weights. */
SIMD_AVX2 SIMD_INLINE void filter_add_avx2(filter_sums* sums, const uint8_t* first, const uint8_t* second,
                                           const int16_t* weight) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i a = _mm256_loadu_si256((const __m256i*)first);
    const __m256i b = _mm256_loadu_si256((const __m256i*)second);
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    const __m256i values[4] = {_mm256_unpacklo_epi8(low, zero), _mm256_unpackhi_epi8(low, zero),
                               _mm256_unpacklo_epi8(high, zero), _mm256_unpackhi_epi8(high, zero)};
    int32_t upper, lower;
    memcpy(&upper, weight, 4);
    memcpy(&lower, weight + 2, 4);
    for (int part = 0; part < 4; part++) {
        const __m256i more = _mm256_madd_epi16(values[part], _mm256_set1_epi32(upper));
        sums->upper[part] = _mm256_add_epi32(sums->upper[part], more);
        sums->lower[part] =
            _mm256_add_epi32(sums->lower[part], _mm256_madd_epi16(values[part], _mm256_set1_epi32(lower)));
    }
}

SIMD_AVX2 SIMD_INLINE void filter_end_avx2(const filter_sums* sums, uint8_t* out) {
    __m256i words[4];
    for (int part = 0; part < 4; part++)
        words[part] = _mm256_srai_epi32(
            _mm256_add_epi32(_mm256_slli_epi32(sums->upper[part], FILTER_HALF_BITS), sums->lower[part]),
            FILTER_BITS);
    _mm256_storeu_si256((__m256i*)out, _mm256_packus_epi16(_mm256_packs_epi32(words[0], words[1]),
                                                           _mm256_packs_epi32(words[2], words[3])));
}

SIMD_AVX2 static void filter_down_avx2(const uint8_t* const* rows, const int16_t* weight, int pairs, int n,
                                       uint8_t* out) {
    for (int i = 0; i < n; i += 32) {
        filter_sums sums;
        filter_begin_avx2(&sums);
        for (int p = 0; p < pairs; p++)
            filter_add_avx2(&sums, rows[2 * p] + i, rows[2 * p + 1] + i, weight + 4 * (ptrdiff_t)p);
        filter_end_avx2(&sums, out + i);
    }
}

/* Sixteen bytes of sixteen rows to their columns, in each half of the vectors. */
SIMD_AVX2 SIMD_INLINE void filter_turn_avx2(__m256i* rows) {
    for (int bit = 0; bit < 4; bit++) {
        __m256i turned[16];
        for (int i = 0; i < 8; i++) {
            turned[2 * i] = _mm256_unpacklo_epi8(rows[i], rows[i + 8]);
            turned[2 * i + 1] = _mm256_unpackhi_epi8(rows[i], rows[i + 8]);
        }
        memcpy(rows, turned, sizeof turned);
    }
}

/* FILTER_ROWS rows across at once, by columns, so that all values of a vector have the same weights.  `columns`
   has room for as many bytes of every byte that is read of a row. */
SIMD_AVX2 SIMD_INLINE void filter_across_rows_avx2_n(const uint8_t* rows, size_t stride, const int32_t* index,
                                                     const int16_t* weight, int pairs, int count,
                                                     int channels, uint8_t* columns, uint8_t* const* out) {
    const ptrdiff_t next = (ptrdiff_t)channels * FILTER_ROWS;
    uint8_t made[16 * 4 * FILTER_ROWS];
    int turned = 0;
    __m256i block[16];
    for (int i = 0; i < count; i += 16) {
        for (int k = i; k < i + 16 && k < count; k++, weight += 4 * (ptrdiff_t)pairs) {
            for (; turned < index[k] + 2 * pairs * channels; turned += 16) {
                for (size_t y = 0; y < 16; y++)
                    block[y] = _mm256_loadu2_m128i((const __m128i*)(rows + (y + 16) * stride + turned),
                                                   (const __m128i*)(rows + y * stride + turned));
                filter_turn_avx2(block);
                for (int x = 0; x < 16; x++)
                    _mm256_storeu_si256((__m256i*)(columns + (ptrdiff_t)(turned + x) * FILTER_ROWS),
                                        block[x]);
            }
            for (int c = 0; c < channels; c++) {
                const uint8_t* from = columns + (ptrdiff_t)(index[k] + c) * FILTER_ROWS;
                filter_sums sums;
                filter_begin_avx2(&sums);
                for (int p = 0; p < pairs; p++, from += 2 * next)
                    filter_add_avx2(&sums, from, from + next, weight + 4 * (ptrdiff_t)p);
                filter_end_avx2(&sums, made + ((k - i) * channels + c) * FILTER_ROWS);
            }
        }
        for (int part = 0; part < channels; part++) {
            for (int x = 0; x < 16; x++)
                block[x] = _mm256_loadu_si256((const __m256i*)(made + (16 * part + x) * FILTER_ROWS));
            filter_turn_avx2(block);
            for (int y = 0; y < 16; y++)
                _mm256_storeu2_m128i((__m128i*)(out[y + 16] + (ptrdiff_t)i * channels + 16 * part),
                                     (__m128i*)(out[y] + (ptrdiff_t)i * channels + 16 * part), block[y]);
        }
    }
}

SIMD_AVX2 static void filter_across_rows_avx2(const uint8_t* rows, size_t stride, const int32_t* index,
                                              const int16_t* weight, int pairs, int count, int channels,
                                              uint8_t* columns, uint8_t* const* out) {
    if (channels == 3)
        filter_across_rows_avx2_n(rows, stride, index, weight, pairs, count, 3, columns, out);
    else if (channels == 1)
        filter_across_rows_avx2_n(rows, stride, index, weight, pairs, count, 1, columns, out);
    else
        filter_across_rows_avx2_n(rows, stride, index, weight, pairs, count, 4, columns, out);
}

/* The sums of products with the highest, the middle and the lowest bytes, to rounded values. */
SIMD_AVX512 static inline __m512i filter_finish_avx512(__m512i high, __m512i middle, __m512i low) {
    const __m512i half = _mm512_set1_epi32(1 << (FILTER_BITS - 1));
    const __m512i upper = _mm512_add_epi32(_mm512_slli_epi32(high, 16), _mm512_slli_epi32(middle, 8));
    return _mm512_srai_epi32(_mm512_add_epi32(_mm512_add_epi32(upper, low), half), FILTER_BITS);
}

SIMD_AVX512 static inline __m512i filter_gather_avx512(const void* a, const void* b, const void* c,
                                                       const void* d) {
    const __m512i one = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)a));
    const __m512i two = _mm512_inserti32x4(one, _mm_loadu_si128((const __m128i*)b), 1);
    const __m512i three = _mm512_inserti32x4(two, _mm_loadu_si128((const __m128i*)c), 2);
    return _mm512_inserti32x4(three, _mm_loadu_si128((const __m128i*)d), 3);
}

/* The bytes of four target pixels, each in four bytes; four taps at once. */
SIMD_AVX512 SIMD_INLINE __m128i filter_four_avx512(const uint8_t* const s[4], const int16_t* weight,
                                                   int pairs, int channels, __m512i lanes) {
    const ptrdiff_t next = (ptrdiff_t)4 * pairs;
    __m512i high = _mm512_setzero_si512(), middle = high, low = high;
    for (int p = 0; p < pairs; p += 2, weight += 8) {
        const ptrdiff_t at = (ptrdiff_t)p * 2 * channels;
        const __m512i pixels =
            _mm512_shuffle_epi8(filter_gather_avx512(s[0] + at, s[1] + at, s[2] + at, s[3] + at), lanes);
        const __m512i bytes =
            pairs == 2 ? _mm512_loadu_si512(weight)
                       : filter_gather_avx512(weight, weight + next, weight + 2 * next, weight + 3 * next);
        high = _mm512_dpbusd_epi32(high, pixels, _mm512_shuffle_epi32(bytes, _MM_PERM_AAAA));
        middle = _mm512_dpbusd_epi32(middle, pixels, _mm512_shuffle_epi32(bytes, _MM_PERM_BBBB));
        low = _mm512_dpbusd_epi32(low, pixels, _mm512_shuffle_epi32(bytes, _MM_PERM_CCCC));
    }
    const __m512i words = filter_finish_avx512(high, middle, low);
    return _mm512_cvtusepi32_epi8(_mm512_max_epi32(words, _mm512_setzero_si512()));
}

/* `index` and `weight` go on for up to FILTER_GROUP - 1 pixels, which are of no account. */
SIMD_AVX512 SIMD_INLINE void filter_across_avx512_n(const uint8_t* row, const int32_t* index,
                                                    const int16_t* weight, int pairs, int count, int channels,
                                                    uint8_t* out) {
    const __m128i three = _mm_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
    const __m128i four = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i lanes = _mm512_broadcast_i32x4(channels == 3 ? three : four);
    const __m128i packed = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    for (int i = 0; i < count; i += FILTER_GROUP, out += FILTER_GROUP * channels) {
        const uint8_t* const s[FILTER_GROUP] = {row + index[i], row + index[i + 1], row + index[i + 2],
                                                row + index[i + 3]};
        const __m128i bytes =
            filter_four_avx512(s, weight + 4 * (ptrdiff_t)pairs * i, pairs, channels, lanes);
        _mm_storeu_si128((__m128i*)out, channels == 3 ? _mm_shuffle_epi8(bytes, packed) : bytes);
    }
}

SIMD_AVX512 static void filter_across_avx512(const uint8_t* row, const int32_t* index, const int16_t* weight,
                                             int pairs, int count, int channels, uint8_t* out) {
    if (channels == 3 && pairs == 2)
        filter_across_avx512_n(row, index, weight, 2, count, 3, out);
    else if (channels == 3)
        filter_across_avx512_n(row, index, weight, pairs, count, 3, out);
    else
        filter_across_avx512_n(row, index, weight, pairs, count, 4, out);
}

/* Grey: the three sums of a target pixel in one vector. */
SIMD_AVX512 static void filter_across_grey_avx512(const uint8_t* row, const int32_t* index,
                                                  const int16_t* weight, int pairs, int count, uint8_t* out) {
    for (int i = 0; i < count; i++) {
        const uint8_t* s = row + index[i];
        __m128i sums = _mm_setzero_si128();
        uint32_t digits[4];
        for (int p = 0; p < pairs; p += 2, s += 4, weight += 8) {
            int32_t taps;
            memcpy(&taps, s, sizeof taps);
            sums = _mm_dpbusd_epi32(sums, _mm_set1_epi32(taps), _mm_loadu_si128((const __m128i*)weight));
        }
        _mm_storeu_si128((__m128i*)digits, sums);
        out[i] = filter_round((digits[0] << 16) + (digits[1] << 8) + digits[2]);
    }
}

/* Sixteen values of four rows, side by side in the first vector, by the bytes of their weights. */
SIMD_AVX512 static inline void filter_add_avx512(__m512i* sums, __m512i values, const int32_t* bytes) {
    for (int digit = 0; digit < 3; digit++)
        sums[digit] = _mm512_dpbusd_epi32(sums[digit], values, _mm512_set1_epi32(bytes[digit]));
}

SIMD_AVX512 static void filter_down_avx512(const uint8_t* const* rows, const int16_t* weight, int pairs,
                                           int n, uint8_t* out) {
    for (int i = 0; i < n; i += 64) {
        __m512i sums[4][3], words[4];
        for (int part = 0; part < 4; part++)
            for (int digit = 0; digit < 3; digit++)
                sums[part][digit] = _mm512_setzero_si512();
        for (int p = 0; p < pairs; p += 2) {
            const uint8_t* const* four = rows + 2 * p;
            const __m512i a = _mm512_loadu_si512(four[0] + i), b = _mm512_loadu_si512(four[1] + i);
            const __m512i c = _mm512_loadu_si512(four[2] + i), d = _mm512_loadu_si512(four[3] + i);
            const __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
            const __m512i ab_high = _mm512_unpackhi_epi8(a, b), cd_high = _mm512_unpackhi_epi8(c, d);
            int32_t bytes[3];
            memcpy(bytes, weight + 4 * (ptrdiff_t)p, sizeof bytes);
            filter_add_avx512(sums[0], _mm512_unpacklo_epi16(ab, cd), bytes);
            filter_add_avx512(sums[1], _mm512_unpackhi_epi16(ab, cd), bytes);
            filter_add_avx512(sums[2], _mm512_unpacklo_epi16(ab_high, cd_high), bytes);
            filter_add_avx512(sums[3], _mm512_unpackhi_epi16(ab_high, cd_high), bytes);
        }
        for (int part = 0; part < 4; part++)
            words[part] = filter_finish_avx512(sums[part][0], sums[part][1], sums[part][2]);
        _mm512_storeu_si512(out + i, _mm512_packus_epi16(_mm512_packs_epi32(words[0], words[1]),
                                                         _mm512_packs_epi32(words[2], words[3])));
    }
}
#endif

/* ---- the best form up to a level ---- */

static void filter_across_at(int level, const uint8_t* row, const int32_t* index, const int16_t* weight,
                             int pairs, int count, int channels, uint8_t* out) {
    (void)level;
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512 && channels > 1) {
        filter_across_avx512(row, index, weight, pairs, count, channels, out);
        return;
    }
    if (level >= SIMD_LEVEL_AVX512) {
        filter_across_grey_avx512(row, index, weight, pairs, count, out);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2 && channels > 1) {
        filter_across_avx2(row, index, weight, pairs, count, channels, out);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        filter_across_grey_avx2(row, index, weight, pairs, count, out);
        return;
    }
#endif
#if SIMD_VECTORS
    if (level >= SIMD_LEVEL_SSE41 && channels > 1) {
        filter_across_128(row, index, weight, pairs, count, channels, out);
        return;
    }
    if (level >= SIMD_LEVEL_SSE41) {
        filter_across_grey_128(row, index, weight, pairs, count, out);
        return;
    }
#endif
    filter_across(row, index, weight, pairs, count, channels, out);
}

/* How many rows at once go across with these weights; 1: filter_across_at. */
static int filter_rows(int level) {
    return SIMD_X86 && level == SIMD_LEVEL_AVX2 ? FILTER_ROWS : 1;
}

static void filter_down_at(int level, const uint8_t* const* rows, const int16_t* weight, int pairs, int n,
                           uint8_t* out) {
    (void)level;
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512) {
        filter_down_avx512(rows, weight, pairs, n, out);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        filter_down_avx2(rows, weight, pairs, n, out);
        return;
    }
#endif
#if SIMD_VECTORS
    if (level >= SIMD_LEVEL_SSE41) {
        filter_down_128(rows, weight, pairs, n, out);
        return;
    }
#endif
    filter_down(rows, weight, pairs, n, out);
}

#endif
