/* Samples of PNG rows become pixels: to the same bytes as libpng's when OpenCV asks for them.
 *
 * Pixels have 8 bits, where of 16 the upper 8 count; or the 16 that are stored, in the byte order of the machine;
 * or they are values, one of each pixel, as they are stored: numbers of colours of a palette, and grey that is not
 * stretched to 8 bits.  Grey of colours is libpng's sum of weights in 1/32768, rounded down; that of 16-bit colours
 * is rounded to 16 bits, of which again the upper 8 count.  Chunks that say what the values mean, such as gAMA,
 * change nothing.
 */
#ifndef ITERATORS_PNG_SAMPLES_H
#define ITERATORS_PNG_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "chunks.h"
#include "recordio/kernels/simd.h"

/* How rows become pixels of a number of channels: from images of one sample of at most 8 bits by a table,
 * from others by what `samples_to_pixels` does. */
typedef struct {
    int channels;
    int pixel; /* bytes */
    int deep;  /* 16 bits */
    int by_table;
    int as_stored; /* nothing has to be done */
    uint8_t table[256][4];
} png_conversion;

SIMD_INLINE uint32_t png_grey_sum(uint32_t red, uint32_t green, uint32_t blue) {
    return 9797 * red + 19234 * green + 3737 * blue;
}

SIMD_INLINE uint8_t png_grey_of(uint32_t red, uint32_t green, uint32_t blue, int bytes) {
    const uint32_t sum = png_grey_sum(red, green, blue);
    return (uint8_t)(bytes == 2 ? (sum + 16384) >> 23 : sum >> 15);
}

/* Values as they are stored: false for pixels of several. */
static inline int png_convert_values(const png_outline* image, png_conversion* to) {
    int i;
    if (png_samples(image->colour) != 1) return 0;
    to->channels = 1;
    to->deep = image->depth == 16;
    to->pixel = to->deep ? 2 : 1;
    to->by_table = image->depth <= 8; /* for interlaced images, though nothing has to be done */
    to->as_stored = image->depth == 8;
    for (i = 0; to->by_table && i < 256; i++)
        to->table[i][0] = (uint8_t)i;
    return 1;
}

/* False if such pixels are not there to be had, or not from here. */
static inline int png_convert_prepare(const png_outline* image, int channels, int deep, png_conversion* to) {
    const int transparent = (image->colour & 4) || image->num_alphas || image->has_key;
    const int steps = image->depth < 8 ? (1 << image->depth) - 1 : 255;
    int i;
    if (deep == PNG_VALUES) return png_convert_values(image, to);
    if (channels == 4 && !transparent) return 0;
    to->channels = channels;
    to->deep = deep && image->depth == 16;
    to->pixel = to->deep ? 2 * channels : channels;
    to->by_table = png_samples(image->colour) == 1 && image->depth <= 8;
    to->as_stored =
        image->depth == 8 && image->colour != PNG_PALETTE && png_samples(image->colour) == channels;
    for (i = 0; to->by_table && i < 256; i++) {
        uint8_t* pixel = to->table[i];
        if (image->colour == PNG_GREY)
            memset(pixel, i * (255 / steps), 3);
        else
            memcpy(pixel, image->palette[i], 3);
        if (channels == 1) pixel[0] = png_grey_of(pixel[0], pixel[1], pixel[2], 1);
        pixel[3] = i < image->num_alphas ? image->alphas[i]
                   : image->colour == PNG_GREY && image->has_key && i == image->key[0] % (steps + 1) ? 0
                                                                                                     : 255;
    }
    return 1;
}

SIMD_INLINE uint32_t png_sample(const uint8_t* from, int bytes) {
    return bytes == 2 ? (uint32_t)from[0] << 8 | from[1] : from[0];
}

/* Pixels of `samples` samples of `bytes` bytes each. */
SIMD_INLINE void samples_to_pixels(const uint8_t* from, int samples, int bytes, int width, int channels,
                                   const png_outline* image, uint8_t* out) {
    const uint32_t mask = bytes == 2 ? 0xFFFF : 0xFF;
    const int pixel = samples * bytes, colour = samples >= 3;
    int x;
    for (x = 0; x < width; x++, from += pixel, out += channels) {
        const uint8_t *green = colour ? from + bytes : from, *blue = colour ? from + 2 * bytes : from;
        if (channels == 1) {
            out[0] = colour ? png_grey_of(png_sample(from, bytes), png_sample(green, bytes),
                                          png_sample(blue, bytes), bytes)
                            : from[0];
            continue;
        }
        out[0] = from[0];
        out[1] = green[0];
        out[2] = blue[0];
        if (channels == 4 && samples % 2 == 0)
            out[3] = from[pixel - bytes];
        else if (channels == 4)
            out[3] = png_sample(from, bytes) == (image->key[0] & mask) &&
                             png_sample(green, bytes) == (image->key[1] & mask) &&
                             png_sample(blue, bytes) == (image->key[2] & mask)
                         ? 0
                         : 255;
    }
}

SIMD_INLINE void table_to_pixels(const uint8_t* row, int x, int width, int depth, int channels,
                                 const uint8_t table[256][4], uint8_t* out) {
    const int mask = (1 << depth) - 1;
    const int end = x + width;
    if (depth == 8 && channels >= 3) { /* a fourth byte belongs to the next pixel, or lies behind the row */
        for (; x < end; x++, out += channels)
            memcpy(out, table[row[x]], 4);
        return;
    }
    for (; x < end; x++, out += channels) {
        const size_t bit = (size_t)x * (size_t)depth;
        const uint8_t* pixel = table[row[bit >> 3] >> (8 - depth - (int)(bit & 7)) & mask];
        out[0] = pixel[0];
        if (channels > 1) {
            out[1] = pixel[1];
            out[2] = pixel[2];
        }
        if (channels == 4) out[3] = pixel[3];
    }
}

SIMD_INLINE void png_store16(uint8_t* out, uint32_t value) {
    const uint16_t stored = (uint16_t)value;
    memcpy(out, &stored, 2);
}

/* Pixels of 16 bits, in the byte order of the machine, of `samples` samples each. */
static inline void samples_to_deep_pixels(const uint8_t* __restrict from, int samples, int width,
                                          int channels, const png_outline* image, uint8_t* __restrict out) {
    int x, k;
    if (samples == channels) {
        for (x = 0; x < width * channels; x++)
            png_store16(out + 2 * x, png_sample(from + 2 * x, 2));
        return;
    }
    for (x = 0; x < width; x++, from += 2 * samples, out += 2 * channels) {
        uint32_t colour[3];
        for (k = 0; k < 3; k++)
            colour[k] = png_sample(from + (samples >= 3 ? 2 * k : 0), 2);
        if (channels == 1) {
            png_store16(out, samples >= 3 ? (png_grey_sum(colour[0], colour[1], colour[2]) + 16384) >> 15
                                          : colour[0]);
            continue;
        }
        for (k = 0; k < 3; k++)
            png_store16(out + 2 * k, colour[k]);
        if (channels == 4 && samples % 2 == 0)
            png_store16(out + 6, png_sample(from + 2, 2));
        else if (channels == 4)
            png_store16(out + 6,
                        colour[0] == image->key[0] && colour[1] == image->key[1] && colour[2] == image->key[2]
                            ? 0
                            : 65535);
    }
}

/* Of samples of 16 bits the upper 8. */
static inline void upper_halves(const uint8_t* from, int count, uint8_t* out) {
    int i;
    for (i = 0; i < count; i++)
        out[i] = from[2 * i];
}

#define PNG_KIND(samples, bytes, channels) (100 * (samples) + 10 * (bytes) + (channels))
#define PNG_KIND_CASE(samples, bytes, channels)                                                              \
    case PNG_KIND(samples, bytes, channels):                                                                 \
        samples_to_pixels(from, samples, bytes, width, channels, image, out);                                \
        break
#define PNG_KIND_CASES(samples, bytes)                                                                       \
    PNG_KIND_CASE(samples, bytes, 1);                                                                        \
    PNG_KIND_CASE(samples, bytes, 3);                                                                        \
    PNG_KIND_CASE(samples, bytes, 4)

/* `width` pixels of a row without its filter, from column `x` on. */
static inline void png_convert(const png_outline* image, const png_conversion* to, const uint8_t* row, int x,
                               int width, uint8_t* out) {
    const int samples = png_samples(image->colour), bytes = image->depth >> 3;
    const uint8_t* from = row + (size_t)x * (size_t)(samples * bytes);
    if (to->by_table) {
        if (to->channels == 1)
            table_to_pixels(row, x, width, image->depth, 1, to->table, out);
        else if (to->channels == 3)
            table_to_pixels(row, x, width, image->depth, 3, to->table, out);
        else
            table_to_pixels(row, x, width, image->depth, 4, to->table, out);
        return;
    }
    if (to->deep) {
        samples_to_deep_pixels(from, samples, width, to->channels, image, out);
        return;
    }
    if (bytes == 2 && samples == to->channels) {
        upper_halves(from, width * samples, out);
        return;
    }
    switch (PNG_KIND(samples, bytes, to->channels)) {
        PNG_KIND_CASE(1, 2, 1);
        PNG_KIND_CASE(1, 2, 3);
        PNG_KIND_CASE(1, 2, 4);
        PNG_KIND_CASES(2, 1);
        PNG_KIND_CASES(2, 2);
        PNG_KIND_CASES(3, 1);
        PNG_KIND_CASES(3, 2);
        PNG_KIND_CASES(4, 1);
        PNG_KIND_CASES(4, 2);
    }
}

#endif
