/* Gaussian blur as Pillow makes it: three box filters of a fractional width along each axis.
 *
 * After Gwosdek et al. (2011), "Theoretical foundations of Gaussian convolution by extended box
 * filtering".  Pixels beyond the edges equal those at the edges.  Whole numbers of 2^-24, so that the
 * bytes are Pillow's, whatever the order of the sums.
 */
#ifndef ITERATORS_BOX_BLUR_H
#define ITERATORS_BOX_BLUR_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

enum {
    BOX_BLUR_PASSES = 3,
    BOX_BLUR_RUN = 512,
    BOX_BLUR_SMALL = 8, /* the largest radius for which box_blur_small sums all pixels of each box */
    BOX_BLUR_LARGEST = 1000
};

/* A box of 2 * radius + 1 pixels of equal weight, and one on either side of less. */
typedef struct {
    int radius;
    uint32_t weight; /* of 2^24 */
    uint32_t edge_weight;
} box_blur;

/* The box of which three passes have this standard deviation in pixels, 0 to BOX_BLUR_LARGEST. */
static SIMD_UNUSED box_blur box_blur_of(float deviation) {
    const float variance = deviation * deviation / BOX_BLUR_PASSES;
    const float length = (float)sqrt(12.0 * variance + 1.0);
    const float whole = (float)floor((length - 1.0) / 2.0);
    float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
    part /= 6 * (variance - (whole + 1) * (whole + 1));
    const float radius = whole + part;
    box_blur box;
    box.radius = (int)radius;
    box.weight = (uint32_t)((float)(1 << 24) / (radius * 2 + 1));
    box.edge_weight = ((1 << 24) - (box.radius * 2 + 1) * box.weight) / 2;
    return box;
}

SIMD_INLINE int box_blur_index(int index, int count) {
    return index < 0 ? 0 : index >= count ? count - 1 : index;
}

/* From sums of the box and of its two edges to a value.  All weights together are at most 2^24, and so
   what is shifted is at most 255 * 2^24 + 2^23 and fits 32 bits. */
SIMD_INLINE uint8_t box_blur_value(const box_blur* box, uint32_t sum, uint32_t edges) {
    return (uint8_t)((sum * box->weight + edges * box->edge_weight + (1u << 23)) >> 24);
}

/* ---- any radius, in plain C: running sums ---- */

SIMD_INLINE void box_blur_weigh(const box_blur* box, const uint32_t* sums, const uint8_t* before,
                                const uint8_t* after, int count, uint8_t* out) {
    for (int i = 0; i < count; i++)
        out[i] = box_blur_value(box, sums[i], (uint32_t)before[i] + after[i]);
}

/* One pass from row to row: `from` becomes `to`, which do not overlap. */
SIMD_INLINE void box_blur_columns(const box_blur* box, const uint8_t* from, int size, int height,
                                  uint8_t* to) {
    uint32_t sums[BOX_BLUR_RUN];
    for (int x = 0; x < size; x += BOX_BLUR_RUN) {
        const int run = size - x < BOX_BLUR_RUN ? size - x : BOX_BLUR_RUN;
        const uint8_t* column = from + x;
        memset(sums, 0, sizeof(sums));
        for (int d = -box->radius; d <= box->radius; d++) {
            const uint8_t* row = column + (ptrdiff_t)box_blur_index(d, height) * size;
            for (int i = 0; i < run; i++)
                sums[i] += row[i];
        }
        for (int y = 0; y < height; y++) {
            const uint8_t* before = column + (ptrdiff_t)box_blur_index(y - box->radius - 1, height) * size;
            const uint8_t* after = column + (ptrdiff_t)box_blur_index(y + box->radius + 1, height) * size;
            const uint8_t* first = column + (ptrdiff_t)box_blur_index(y - box->radius, height) * size;
            box_blur_weigh(box, sums, before, after, run, to + (ptrdiff_t)y * size + x);
            for (int i = 0; i < run; i++)
                sums[i] += (uint32_t)after[i] - first[i];
        }
    }
}

/* One pass along a row of `width` pixels, in place; `room` holds the row and `radius + 1` pixels on
   either side. */
SIMD_INLINE void box_blur_row(const box_blur* box, uint8_t* row, int width, int channels, uint8_t* room) {
    const int margin = box->radius + 1, size = width * channels;
    uint32_t sums[BOX_BLUR_RUN];
    uint8_t* middle = room + margin * channels;
    for (int i = 0; i < margin; i++) {
        memcpy(room + i * channels, row, channels);
        memcpy(middle + size + i * channels, row + size - channels, channels);
    }
    memcpy(middle, row, size);
    for (int x = 0; x < size; x += BOX_BLUR_RUN) {
        const int run = size - x < BOX_BLUR_RUN ? size - x : BOX_BLUR_RUN;
        const uint8_t* window = middle + x;
        if (box->radius <= 8) {
            for (int i = 0; i < run; i++)
                sums[i] = window[i];
            for (int d = 1; d <= box->radius; d++)
                for (int i = 0; i < run; i++)
                    sums[i] += (uint32_t)window[i - d * channels] + window[i + d * channels];
        } else {
            for (int i = 0; i < run; i++) {
                if (i < channels) {
                    sums[i] = 0;
                    for (int d = -box->radius; d <= box->radius; d++)
                        sums[i] += window[i + d * channels];
                } else {
                    sums[i] = sums[i - channels] + window[i + box->radius * channels] -
                              window[i - (box->radius + 1) * channels];
                }
            }
        }
        box_blur_weigh(box, sums, window - margin * channels, window + margin * channels, run, row + x);
    }
}

SIMD_INLINE void box_blur_any(const box_blur* box, uint8_t* pixels, int width, int height, int channels,
                              uint8_t* room) {
    const int size = width * channels;
    for (int y = 0; y < height; y++)
        for (int pass = 0; pass < BOX_BLUR_PASSES; pass++)
            box_blur_row(box, pixels + (ptrdiff_t)y * size, width, channels, room);
    box_blur_columns(box, pixels, size, height, room);
    box_blur_columns(box, room, size, height, pixels);
    box_blur_columns(box, pixels, size, height, room);
    memcpy(pixels, room, (size_t)size * height);
}

static SIMD_UNUSED void box_blur_plain(const box_blur* box, uint8_t* pixels, int width, int height,
                                       int channels, uint8_t* room) {
    box_blur_any(box, pixels, width, height, channels, room);
}

/* Bytes that box_blur_image needs besides the image: another one, and two rows with their margins. */
static SIMD_UNUSED size_t box_blur_room(int width, int height, int channels, int radius) {
    return ((size_t)width * height + 2 * ((size_t)width + 2 * radius + 2)) * channels;
}

#if SIMD_X86

/* ---- small boxes in vectors: three passes of a row while it is in the cache, then from row to row ---- */

/* Writes `count` values: taps[k] has the pixels that lie k - radius - 1 away.  `out` overlaps none of
   them. */
typedef void (*box_blur_kernel)(const box_blur* box, const uint8_t* const* taps, ptrdiff_t count,
                                uint8_t* out);

#define BOX_BLUR_TAPS   SIMD_SSE41 static SIMD_UNUSED void box_blur_taps_sse41
#define BOX_BLUR_BITS   128
#define BOX_BLUR_(word) _mm_##word
#include "box_blur_taps.h"
#define BOX_BLUR_TAPS   SIMD_AVX2 static SIMD_UNUSED void box_blur_taps_avx2
#define BOX_BLUR_BITS   256
#define BOX_BLUR_(word) _mm256_##word
#include "box_blur_taps.h"
#define BOX_BLUR_TAPS   SIMD_AVX512 static SIMD_UNUSED void box_blur_taps_avx512
#define BOX_BLUR_BITS   512
#define BOX_BLUR_(word) _mm512_##word
#include "box_blur_taps.h"

/* One pass along a row with room for radius + 1 pixels on either side, which this fills. */
static SIMD_UNUSED void box_blur_small_row(box_blur_kernel kernel, const box_blur* box, uint8_t* row,
                                           int size, int channels, uint8_t* out) {
    const uint8_t* taps[2 * BOX_BLUR_SMALL + 3];
    const int margin = (box->radius + 1) * channels;
    for (int i = 0; i < margin; i++) {
        row[-1 - i] = row[channels - 1 - i];
        row[size + i] = row[size + i - channels];
    }
    for (int k = 0; k <= 2 * box->radius + 2; k++)
        taps[k] = row - margin + k * channels;
    kernel(box, taps, size, out);
}

/* One pass from row to row: `from` becomes `to`, which do not overlap.  Rows away from the edges are
   one run, since their taps are all equally far from them. */
static SIMD_UNUSED void box_blur_small_columns(box_blur_kernel kernel, const box_blur* box,
                                               const uint8_t* from, int size, int height, uint8_t* to) {
    const uint8_t* taps[2 * BOX_BLUR_SMALL + 3];
    const int reach = box->radius + 1, inside = height - 2 * reach;
    for (int y = 0, rows; y < height; y += rows) {
        rows = y == reach && inside > 0 ? inside : 1;
        for (int k = 0; k <= 2 * reach; k++)
            taps[k] = from + (ptrdiff_t)box_blur_index(y + k - reach, height) * size;
        kernel(box, taps, (ptrdiff_t)rows * size, to + (ptrdiff_t)y * size);
    }
}

static SIMD_UNUSED void box_blur_small(box_blur_kernel kernel, const box_blur* box, uint8_t* pixels,
                                       int width, int height, int channels, uint8_t* room) {
    const int size = width * channels, margin = (box->radius + 1) * channels;
    uint8_t* first = room + (ptrdiff_t)size * height + margin;
    uint8_t* second = first + size + 2 * margin;
    for (int y = 0; y < height; y++) {
        memcpy(first, pixels + (ptrdiff_t)y * size, size);
        box_blur_small_row(kernel, box, first, size, channels, second);
        box_blur_small_row(kernel, box, second, size, channels, first);
        box_blur_small_row(kernel, box, first, size, channels, room + (ptrdiff_t)y * size);
    }
    box_blur_small_columns(kernel, box, room, size, height, pixels);
    box_blur_small_columns(kernel, box, pixels, size, height, room);
    box_blur_small_columns(kernel, box, room, size, height, pixels);
}

SIMD_AVX2 static SIMD_UNUSED void box_blur_avx2(const box_blur* box, uint8_t* pixels, int width, int height,
                                                int channels, uint8_t* room) {
    box_blur_any(box, pixels, width, height, channels, room);
}

SIMD_AVX512 static SIMD_UNUSED void box_blur_avx512(const box_blur* box, uint8_t* pixels, int width,
                                                    int height, int channels, uint8_t* room) {
    box_blur_any(box, pixels, width, height, channels, room);
}
#endif

/* Blurs an image in place; `room` has box_blur_room bytes. */
static SIMD_UNUSED void box_blur_image(int level, const box_blur* box, uint8_t* pixels, int width, int height,
                                       int channels, uint8_t* room) {
    if (box->radius == 0 && box->edge_weight == 0) return;
#if SIMD_X86
    if (level >= SIMD_LEVEL_SSE41 && box->radius <= BOX_BLUR_SMALL) {
        const box_blur_kernel kernel = level >= SIMD_LEVEL_AVX512 ? box_blur_taps_avx512
                                       : level >= SIMD_LEVEL_AVX2 ? box_blur_taps_avx2
                                                                  : box_blur_taps_sse41;
        box_blur_small(kernel, box, pixels, width, height, channels, room);
        return;
    }
    if (level >= SIMD_LEVEL_AVX512) {
        box_blur_avx512(box, pixels, width, height, channels, room);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        box_blur_avx2(box, pixels, width, height, channels, room);
        return;
    }
#endif
    (void)level;
    box_blur_plain(box, pixels, width, height, channels, room);
}

#endif
