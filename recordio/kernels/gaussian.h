/* Gaussian blurs with a kernel of a given size, as torchvision's gaussian_blur does on uint8 images.
 *
 * Weights, sums and products in float32, the image mirrored at its edges, halves rounded to even.  The two
 * directions follow one another here, where torchvision has one sum over both, so that a value next to a half
 * may come out one level apart.  Alpha is blurred like the others.  (`box_blur.h` is Pillow's blur.)
 */
#ifndef ITERATORS_GAUSSIAN_H
#define ITERATORS_GAUSSIAN_H

#include <math.h>

#include "pixel.h"

enum { GAUSSIAN_LARGEST = 255, GAUSSIAN_RUN = 16 }; /* the kernel's side; values at a time */

typedef struct {
    int radius;
    float weights[GAUSSIAN_LARGEST];
} gaussian_taps;

static SIMD_UNUSED gaussian_taps gaussian_of(int side, double deviation) {
    gaussian_taps taps;
    double sum = 0;
    taps.radius = side / 2;
    for (int i = 0; i < side; i++)
        sum += exp(-0.5 * pow((i - taps.radius) / deviation, 2));
    for (int i = 0; i < side; i++)
        taps.weights[i] = (float)(exp(-0.5 * pow((i - taps.radius) / deviation, 2)) / sum);
    return taps;
}

/* Values of a row of sums, and of one with both of its margins: whole runs. */
SIMD_INLINE size_t gaussian_row(int width, int channels) {
    return ((size_t)width * channels + GAUSSIAN_RUN - 1) / GAUSSIAN_RUN * GAUSSIAN_RUN;
}

/* Bytes that a blur needs besides the image. */
static SIMD_UNUSED size_t gaussian_room(int width, int height, int channels, int side) {
    return sizeof(float) * (gaussian_row(width, channels) * (height + 1) + (size_t)side * channels);
}

/* Position of a row or column beyond the edges, mirrored about the outermost as often as it takes. */
static inline int gaussian_mirrored(int at, int side) {
    const int period = 2 * (side - 1);
    if (period == 0) return 0;
    at = at < 0 ? -at % period : at % period;
    return at < side ? at : period - at;
}

#if defined(__GNUC__) || defined(__clang__)
typedef float gaussian_half __attribute__((vector_size(2 * GAUSSIAN_RUN), aligned(4)));
#endif

/* A run of weighted sums of values at `at` behind each of the pointers. */
SIMD_INLINE void gaussian_sums(const gaussian_taps* taps, const float* const* taps_at, int at, float* out) {
#if defined(__GNUC__) || defined(__clang__)
    gaussian_half sums[2] = {{0}};
    for (int k = 0; k <= 2 * taps->radius; k++) {
        const gaussian_half* values = (const gaussian_half*)(taps_at[k] + at);
        sums[0] += taps->weights[k] * values[0];
        sums[1] += taps->weights[k] * values[1];
    }
    memcpy(out, sums, sizeof(sums));
#else
    float sums[GAUSSIAN_RUN] = {0};
    for (int k = 0; k <= 2 * taps->radius; k++)
        for (int j = 0; j < GAUSSIAN_RUN; j++)
            sums[j] += taps->weights[k] * taps_at[k][at + j];
    memcpy(out, sums, sizeof(sums));
#endif
}

SIMD_INLINE void gaussian_across(const gaussian_taps* taps, const uint8_t* pixels, int width, int channels,
                                 float* line, float* out) {
    const int size = width * channels, margin = taps->radius;
    const float* taps_at[GAUSSIAN_LARGEST];
    for (int k = 0; k <= 2 * margin; k++)
        taps_at[k] = line + k * channels;
    for (int i = 0; i < size; i++)
        line[margin * channels + i] = pixels[i];
    for (int x = 1; x <= margin; x++)
        for (int c = 0; c < channels; c++) {
            line[(margin - x) * channels + c] = pixels[gaussian_mirrored(-x, width) * channels + c];
            line[(margin + width - 1 + x) * channels + c] =
                pixels[gaussian_mirrored(width - 1 + x, width) * channels + c];
        }
    for (int i = 0; i < size; i += GAUSSIAN_RUN)
        gaussian_sums(taps, taps_at, i, out + i);
}

SIMD_INLINE void gaussian_down(const gaussian_taps* taps, const float* rows, size_t row, int y, int height,
                               int size, uint8_t* out) {
    const float* taps_at[GAUSSIAN_LARGEST];
    for (int k = 0; k <= 2 * taps->radius; k++)
        taps_at[k] = rows + gaussian_mirrored(y + k - taps->radius, height) * row;
    for (int i = 0; i < size; i += GAUSSIAN_RUN) {
        float sums[GAUSSIAN_RUN];
        uint8_t bytes[GAUSSIAN_RUN];
        gaussian_sums(taps, taps_at, i, sums);
        for (int j = 0; j < GAUSSIAN_RUN; j++)
            bytes[j] = pixel_from_float(sums[j]);
        memcpy(out + i, bytes, size - i < GAUSSIAN_RUN ? size - i : GAUSSIAN_RUN);
    }
}

SIMD_INLINE void gaussian_image(const gaussian_taps taps[2], uint8_t* pixels, int width, int height,
                                int channels, uint8_t* room) {
    const int size = width * channels;
    const size_t row = gaussian_row(width, channels);
    float *rows = (float*)room, *line = rows + row * height;
    for (int y = 0; y < height; y++)
        gaussian_across(&taps[0], pixels + (ptrdiff_t)y * size, width, channels, line, rows + y * row);
    for (int y = 0; y < height; y++)
        gaussian_down(&taps[1], rows, row, y, height, size, pixels + (ptrdiff_t)y * size);
}

static SIMD_UNUSED void gaussian_plain(const gaussian_taps taps[2], uint8_t* pixels, int width, int height,
                                       int channels, uint8_t* room) {
    gaussian_image(taps, pixels, width, height, channels, room);
}

#if SIMD_X86
SIMD_AVX2 static SIMD_UNUSED void gaussian_avx2(const gaussian_taps taps[2], uint8_t* pixels, int width,
                                                int height, int channels, uint8_t* room) {
    gaussian_image(taps, pixels, width, height, channels, room);
}

SIMD_AVX512 static SIMD_UNUSED void gaussian_avx512(const gaussian_taps taps[2], uint8_t* pixels, int width,
                                                    int height, int channels, uint8_t* room) {
    gaussian_image(taps, pixels, width, height, channels, room);
}
#endif

/* Blurs an image in place, across by the first kernel and down by the second; `room` has gaussian_room
   bytes for the wider of them. */
static SIMD_UNUSED void gaussian_blur(int level, const gaussian_taps taps[2], uint8_t* pixels, int width,
                                      int height, int channels, uint8_t* room) {
#if SIMD_X86
    if (level >= SIMD_LEVEL_AVX512) {
        gaussian_avx512(taps, pixels, width, height, channels, room);
        return;
    }
    if (level >= SIMD_LEVEL_AVX2) {
        gaussian_avx2(taps, pixels, width, height, channels, room);
        return;
    }
#endif
    (void)level;
    gaussian_plain(taps, pixels, width, height, channels, room);
}

#endif
