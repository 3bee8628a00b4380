/* Operations that replace every value by another one: tables of 256 bytes, and their application.
 *
 * The tables are those of Pillow's ImageOps and ImageEnhance for uint8.  A picture of 4 channels keeps
 * its last one, alpha.  Nothing here depends on where a pixel is.
 */
#ifndef ITERATORS_POINT_TABLES_H
#define ITERATORS_POINT_TABLES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

/* One table for all colours, or one for each. */
typedef struct {
    int shared; /* whether tables[0] serves all colours */
    uint8_t tables[3][256];
} point_tables;

/* ---- what the tables contain ---- */

/* Image.blend of a constant and the value: cut off, not rounded. */
static SIMD_UNUSED void point_blend(point_tables* point, int constant, float factor) {
    point->shared = 1;
    for (int i = 0; i < 256; i++) {
        const float value = (float)constant + factor * (float)(i - constant);
        point->tables[0][i] = value <= 0.f ? 0 : value >= 255.f ? 255 : (uint8_t)(int)value;
    }
}

static SIMD_UNUSED void point_posterize(point_tables* point, int bits) {
    point->shared = 1;
    for (int i = 0; i < 256; i++)
        point->tables[0][i] = (uint8_t)(i & ~((1 << (8 - bits)) - 1));
}

static SIMD_UNUSED void point_solarize(point_tables* point, double threshold) {
    point->shared = 1;
    for (int i = 0; i < 256; i++)
        point->tables[0][i] = (uint8_t)(i < threshold ? i : 255 - i);
}

/* Adds to what is below 128; saturates. */
static SIMD_UNUSED void point_solarize_add(point_tables* point, int more) {
    point->shared = 1;
    for (int i = 0; i < 256; i++) {
        const int value = i < 128 ? i + more : i;
        point->tables[0][i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* The lowest and highest value of each colour. */
static SIMD_UNUSED void point_range(const uint8_t* pixels, ptrdiff_t count, int channels, uint8_t low[3],
                                    uint8_t high[3]) {
    enum { RUN = 96 }; /* bytes: whole pixels of 1, 3 and 4 channels */
    uint8_t least[RUN], most[RUN];
    const ptrdiff_t size = count * channels, whole = size - size % RUN;
    memset(least, 255, RUN);
    memset(most, 0, RUN);
    for (ptrdiff_t i = 0; i < whole; i += RUN)
        for (int j = 0; j < RUN; j++) {
            const uint8_t value = pixels[i + j];
            least[j] = value < least[j] ? value : least[j];
            most[j] = value > most[j] ? value : most[j];
        }
    for (ptrdiff_t i = whole; i < size; i++) {
        const uint8_t value = pixels[i];
        least[i - whole] = value < least[i - whole] ? value : least[i - whole];
        most[i - whole] = value > most[i - whole] ? value : most[i - whole];
    }
    memset(low, 255, 3);
    memset(high, 0, 3);
    for (int j = 0; j < RUN; j++) {
        const int c = j % channels;
        if (c == 3) continue;
        low[c] = least[j] < low[c] ? least[j] : low[c];
        high[c] = most[j] > high[c] ? most[j] : high[c];
    }
}

/* Every colour is stretched to the whole range. */
static SIMD_UNUSED void point_autocontrast(point_tables* point, const uint8_t* pixels, ptrdiff_t count,
                                           int channels) {
    uint8_t low[3], high[3];
    point_range(pixels, count, channels, low, high);
    point->shared = channels == 1;
    for (int c = 0; c < (channels == 1 ? 1 : 3); c++) {
        const double scale = high[c] > low[c] ? 255.0 / (high[c] - low[c]) : 1.0;
        const double offset = high[c] > low[c] ? -low[c] * scale : 0.0;
        for (int i = 0; i < 256; i++) {
            const double value = i * scale + offset;
            point->tables[c][i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : (int)value);
        }
    }
}

/* Count every value in every colour. */
static SIMD_UNUSED void point_histogram(const uint8_t* pixels, ptrdiff_t count, int channels,
                                        uint32_t histogram[3][256]) {
    /* Neighbours are often equal: two sets of counters, so that none waits for the one before. */
    uint32_t sets[2][3][256];
    const int colours = channels == 1 ? 1 : 3;
    memset(sets, 0, sizeof(sets));
    for (ptrdiff_t i = 0; i < count; i++, pixels += channels)
        for (int c = 0; c < colours; c++)
            sets[i & 1][c][pixels[c]]++;
    for (int c = 0; c < colours; c++)
        for (int i = 0; i < 256; i++)
            histogram[c][i] = sets[0][c][i] + sets[1][c][i];
}

/* Every colour gets an even histogram. */
static SIMD_UNUSED void point_equalize(point_tables* point, const uint8_t* pixels, ptrdiff_t count,
                                       int channels) {
    uint32_t histogram[3][256];
    point_histogram(pixels, count, channels, histogram);
    point->shared = channels == 1;
    for (int c = 0; c < (channels == 1 ? 1 : 3); c++) {
        int last = 255;
        while (last > 0 && histogram[c][last] == 0)
            last--;
        const int64_t step = (count - (int64_t)histogram[c][last]) / 255;
        int64_t sum = step / 2;
        for (int i = 0; i < 256; i++) {
            const int64_t value = step ? sum / step : i;
            point->tables[c][i] = (uint8_t)(value > 255 ? 255 : value);
            sum += histogram[c][i];
        }
    }
}

/* ---- their application ---- */

static SIMD_UNUSED void point_apply_plain(const point_tables* point, uint8_t* pixels, ptrdiff_t count,
                                          int channels) {
    if (channels == 1) {
        for (ptrdiff_t i = 0; i < count; i++)
            pixels[i] = point->tables[0][pixels[i]];
        return;
    }
    const uint8_t* red = point->tables[0];
    const uint8_t* green = point->shared ? red : point->tables[1];
    const uint8_t* blue = point->shared ? red : point->tables[2];
    for (ptrdiff_t i = 0; i < count; i++, pixels += channels) {
        pixels[0] = red[pixels[0]];
        pixels[1] = green[pixels[1]];
        pixels[2] = blue[pixels[2]];
    }
}

#if SIMD_X86
/* 64 values looked up in a table that lies in four registers. */
SIMD_AVX512 static inline __m512i point_lookup(const __m512i table[4], __m512i values) {
    const __m512i lower = _mm512_permutex2var_epi8(table[0], values, table[1]);
    const __m512i upper = _mm512_permutex2var_epi8(table[2], values, table[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(values), lower, upper);
}

SIMD_AVX512 static void point_apply_avx512(const point_tables* point, uint8_t* pixels, ptrdiff_t count,
                                           int channels) {
    const int colours = channels == 1 || (point->shared && channels == 3) ? 1 : 3;
    const ptrdiff_t size = count * channels;
    __m512i tables[3][4];
    __mmask64 masks[3][3] = {{0}}; /* of a colour in three vectors after each other */
    for (int c = 0; c < colours; c++) {
        const uint8_t* table = point->tables[point->shared ? 0 : c];
        for (int i = 0; i < 4; i++)
            tables[c][i] = _mm512_loadu_si512(table + 64 * i);
        for (int i = 0; i < 192; i++)
            if (colours == 1 || i % channels == c) masks[c][i / 64] |= (__mmask64)1 << i % 64;
    }
    int turn = 0;
    for (ptrdiff_t i = 0; i < size; i += 64) {
        const __mmask64 all = size - i >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << (size - i)) - 1;
        const __m512i values = _mm512_maskz_loadu_epi8(all, pixels + i);
        __m512i result = values;
        for (int c = 0; c < colours; c++)
            result = _mm512_mask_mov_epi8(result, masks[c][turn], point_lookup(tables[c], values));
        _mm512_mask_storeu_epi8(pixels + i, all, result);
        turn = channels == 3 && turn < 2 ? turn + 1 : 0;
    }
}
#endif

static SIMD_UNUSED void point_apply(int level, const point_tables* point, uint8_t* pixels, ptrdiff_t count,
                                    int channels) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512) {
        point_apply_avx512(point, pixels, count, channels);
        return;
    }
#endif
    (void)level;
    point_apply_plain(point, pixels, count, channels);
}

#endif
