/* The chunks of a PNG file: what they say about the image, and where the compressed data lie.
 *
 * A chunk that the pixels do not need may be damaged, of a wrong size or missing, the last one too: it is passed
 * over.  Animations are passed over as well: what counts is the image that every decoder of PNG shows.  Files
 * whose pixels depend on something odd are left to the general decoder, except those that end too early or have
 * a wrong checksum where it counts, which no decoder takes.  Never reads beyond the data, never allocates.
 */
#ifndef ITERATORS_PNG_CHUNKS_H
#define ITERATORS_PNG_CHUNKS_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "checksums.h"
#include "recordio/formats/jpeg_segments.h"

enum png_status {
    PNG_OK = 0,
    PNG_OTHER,     /* no PNG, or one for the general decoder */
    PNG_DAMAGED,   /* a checksum is wrong, there are too few data for the pixels, or it is Apple's own form */
    PNG_TRUNCATED, /* the file ends before its last chunk does */
    PNG_TOO_LARGE, /* more pixels than the limit */
    PNG_NO_MEMORY,
    PNG_BAD_ARGUMENT /* a rectangle outside the image, or functions called in the wrong order */
};

/* In the place of `deep`: one value for each pixel, of 8 or 16 bits, as it is stored. */
enum { PNG_VALUES = 2 };

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_RGBA = 6 };

enum {
    PNG_LARGEST_SIDE = 1000000, /* libpng's limit */
    PNG_MOST_INFLATION = 1032   /* bytes that one compressed byte can become */
};

typedef struct {
    int width, height;
    int depth;  /* bits of a sample: 1, 2, 4, 8, 16 */
    int colour; /* PNG_GREY... */
    int interlaced;
    int palette_size;
    uint8_t palette[256][3]; /* black behind its end, as in libpng */
    int num_alphas;
    uint8_t alphas[256]; /* of the first entries of the palette */
    int has_key;
    uint16_t key[3]; /* the colour that is transparent; of grey all three are alike */
    int orientation; /* EXIF 1 to 8, 0 if the file says none */
    int animated;
    const uint8_t* first; /* chunk of compressed data */
    int count;            /* of such chunks, one behind the other */
    size_t compressed;    /* bytes in them, as far as they are there */
    int is_cut;           /* the file ends before its last chunk does */
    char message[160];
} png_outline;

static inline int png_is(const uint8_t* type, const char* name) {
    return memcmp(type, name, 4) == 0;
}

static inline int png_samples(int colour) {
    return colour == PNG_RGB ? 3 : colour == PNG_RGBA ? 4 : colour == PNG_GREY_ALPHA ? 2 : 1;
}

/* Bytes of `width` pixels. */
static inline size_t png_row_bytes(const png_outline* image, int width) {
    return ((size_t)width * (size_t)(png_samples(image->colour) * image->depth) + 7) / 8;
}

/* Where the passes of an interlaced image begin and how far apart their pixels are. */
static const uint8_t png_adam7[7][4] = {
    {0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2},
};

/* Columns or rows of a pass. */
static inline int png_pass_size(int size, int start, int step) {
    return size > start ? (size - start + step - 1) / step : 0;
}

/* Bytes of all rows, each with the byte that names its filter in front. */
static inline uint64_t png_filtered_bytes(const png_outline* image) {
    uint64_t bytes = 0;
    int pass;
    if (!image->interlaced) return (png_row_bytes(image, image->width) + 1) * (uint64_t)image->height;
    for (pass = 0; pass < 7; pass++) {
        const uint8_t* grid = png_adam7[pass];
        const int width = png_pass_size(image->width, grid[0], grid[2]);
        const int height = png_pass_size(image->height, grid[1], grid[3]);
        if (width) bytes += (png_row_bytes(image, width) + 1) * (uint64_t)height;
    }
    return bytes;
}

/* Say that data are missing. */
static inline int png_is_truncated(size_t size, png_outline* image) {
    snprintf(
        image->message, sizeof image->message,
        "the PNG image is truncated (%llu bytes, and not all of its pixels are there); pack it again from "
        "its source",
        (unsigned long long)size);
    return PNG_TRUNCATED;
}

static inline int png_read_header(const uint8_t* at, png_outline* image) {
    static const uint8_t depths[7] = {31, 0, 24, 15, 24, 0, 24}; /* sums of those that are allowed */
    const uint32_t width = png_number(at), height = png_number(at + 4);
    if (width < 1 || height < 1 || width > INT_MAX || height > INT_MAX) return PNG_OTHER;
    image->width = (int)width;
    image->height = (int)height;
    image->depth = at[8];
    image->colour = at[9];
    if (width > PNG_LARGEST_SIDE || height > PNG_LARGEST_SIDE) return PNG_OTHER;
    if (image->colour > 6 || (image->depth & (image->depth - 1)) || !(depths[image->colour] & image->depth))
        return PNG_OTHER;
    if (at[10] || at[11] || at[12] > 1) return PNG_OTHER;
    image->interlaced = at[12];
    return PNG_OK;
}

static inline int png_read_palette(const uint8_t* at, size_t size, png_outline* image) {
    if (image->colour != PNG_PALETTE) return PNG_OK; /* a suggestion */
    if (image->palette_size || size % 3 || size < 3 || size / 3 > (size_t)1 << image->depth) return PNG_OTHER;
    image->palette_size = (int)(size / 3);
    memcpy(image->palette, at, size);
    return PNG_OK;
}

/* What is transparent; like libpng it passes over a chunk that does not fit the image. */
static inline void png_read_transparency(const uint8_t* at, size_t size, png_outline* image) {
    size_t i;
    if (image->num_alphas || image->has_key || (image->colour & 4)) return;
    if (image->colour == PNG_PALETTE) {
        if (size > (size_t)image->palette_size) return;
        memcpy(image->alphas, at, size);
        image->num_alphas = (int)size;
        return;
    }
    if (size != (image->colour == PNG_RGB ? 6u : 2u)) return;
    for (i = 0; i < size / 2; i++)
        image->key[i] = (uint16_t)(at[2 * i] << 8 | at[2 * i + 1]);
    if (image->colour == PNG_GREY) image->key[1] = image->key[2] = image->key[0];
    image->has_key = 1;
}

/* Whether the checksum of a chunk must be right: pixels are made of its content. */
static inline int png_counts(const uint8_t* type, const png_outline* image) {
    return png_is(type, "IHDR") || png_is(type, "IDAT") ||
           (png_is(type, "PLTE") && image->colour == PNG_PALETTE) ||
           (!(type[0] & 32) && !png_is(type, "PLTE") && !png_is(type, "IEND"));
}

/* The next chunk of compressed data, `length` bytes of which are there. */
static inline int png_read_data(const uint8_t* chunk, size_t length, int ended, png_outline* image) {
    if (ended || (image->colour == PNG_PALETTE && !image->palette_size)) return PNG_OTHER;
    if (!image->count) image->first = chunk;
    image->count++;
    image->compressed += length;
    return PNG_OK;
}

/* A chunk other than that of compressed data. */
static inline int png_read_chunk(const uint8_t* type, const uint8_t* content, size_t length, int ended,
                                 int is_first, png_outline* image) {
    if (png_is(type, "PLTE")) return ended ? PNG_OK : png_read_palette(content, length, image);
    if (png_is(type, "tRNS") && !ended) png_read_transparency(content, length, image);
    if (png_is(type, "eXIf") && !image->orientation)
        image->orientation = read_exif_orientation(content, length);
    if (png_is(type, "acTL")) image->animated = 1;
    return type[0] & 32 || is_first ? PNG_OK : PNG_OTHER;
}

/* Read all chunks.  *image is filled in up to the first one that is not as it has to be; its message is
 * set with PNG_DAMAGED, PNG_TRUNCATED and PNG_TOO_LARGE.  `outline`: facts alone are wanted, and compressed data
 * are passed over. */
static inline int png_read_chunks(const uint8_t* data, size_t size, int64_t max_pixels, int outline,
                                  png_outline* image) {
    size_t at = 8;
    int status, ended = 0; /* the compressed data are over */
    memset(image, 0, sizeof *image);
    if (size >= 16 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0 && png_is(data + 12, "CgBI")) {
        snprintf(
            image->message, sizeof image->message,
            "the PNG image has Apple's own form for iPhones (chunk CgBI), which is no PNG: convert it back, "
            "with pngcrush -revert-iphone-optimizations");
        return PNG_DAMAGED;
    }
    if (size < 33 || memcmp(data, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", 16) != 0) return PNG_OTHER;
    if ((status = png_read_header(data + 16, image)) != PNG_OK) return status;
    if ((int64_t)image->width * image->height > max_pixels) {
        snprintf(
            image->message, sizeof image->message,
            "the image is too large (%d x %d pixels are more than the limit of %lld); raise max_pixels to "
            "allow it",
            image->width, image->height, (long long)max_pixels);
        return PNG_TOO_LARGE;
    }
    for (;;) {
        const uint8_t *chunk = data + at, *type = chunk + 4, *content = chunk + 8;
        size_t length;
        int i, is_data;
        if (size - at < 8) break;
        length = png_number(chunk);
        for (i = 0; i < 4; i++)
            if ((type[i] | 32) < 'a' || (type[i] | 32) > 'z' || (i == 2 && type[i] & 32)) return PNG_OTHER;
        is_data = png_is(type, "IDAT");
        if (size - at < 12 || length > size - at - 12) {
            if (is_data &&
                png_read_data(chunk, size - at - 8 < length ? size - at - 8 : length, ended, image))
                return PNG_OTHER;
            break;
        }
        if (!(outline && is_data) && png_crc32(type, length + 4) != png_number(content + length)) {
            if (png_counts(type, image)) {
                snprintf(
                    image->message, sizeof image->message,
                    "the PNG image is damaged (the checksum of its chunk %.4s at byte %llu is wrong); pack "
                    "it again from its source",
                    (const char*)type, (unsigned long long)at);
                return PNG_DAMAGED;
            }
        } else if (is_data) {
            if ((status = png_read_data(chunk, length, ended, image)) != PNG_OK) return status;
        } else if (!png_is(type, "IEND")) {
            ended = image->count > 0;
            status = png_read_chunk(type, content, length, ended, at == 8, image);
            if (status != PNG_OK) return status;
        }
        if (png_is(type, "IEND")) {
            if (!outline && !image->count) return PNG_OTHER;
            return PNG_OK;
        }
        at += length + 12;
    }
    image->is_cut = 1;
    if (outline || image->count) return PNG_OK;
    return png_is_truncated(size, image);
}

#endif
