/* The chunks of a PNG file: what they say about the pixels, and where the compressed data lie.
 *
 * libpng is lenient: it warns and goes on where a chunk is odd but not needed, and what it then shows
 * depends on its version.  Here only files are taken in which nothing is odd; all others are left to the
 * general decoder, except those that end too early or have a wrong checksum where it counts, which no
 * decoder takes.  Never reads beyond the data, never allocates.
 */
#ifndef ITERATORS_PNG_CHUNKS_H
#define ITERATORS_PNG_CHUNKS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "checksums.h"

enum png_status {
    PNG_OK = 0,
    PNG_OTHER,     /* no PNG, or one for the general decoder */
    PNG_DAMAGED,   /* a checksum is wrong, or there are too few data for the pixels */
    PNG_TRUNCATED, /* the file ends before its last chunk does */
    PNG_TOO_LARGE, /* more pixels than the limit */
    PNG_NO_MEMORY,
    PNG_BAD_ARGUMENT /* a rectangle outside the image, or functions called in the wrong order */
};

/* In the place of `deep`: one value for each pixel, of 8 or 16 bits, as it is stored. */
enum { PNG_VALUES = 2 };

enum { PNG_GREY = 0, PNG_RGB = 2, PNG_PALETTE = 3, PNG_GREY_ALPHA = 4, PNG_RGBA = 6 };

enum {
    PNG_LARGEST_SIDE = 1000000, /* libpng's limits, at which it leaves images and chunks alone */
    PNG_LARGEST_CHUNK = 8000000,
    PNG_MOST_INFLATION = 1032 /* bytes that one compressed byte can become */
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
    uint16_t key[3];      /* the colour that is transparent: one sample of grey, three of RGB */
    int colour_space;     /* a chunk says what the values mean: libpng heeds it in making grey */
    const uint8_t* first; /* chunk of compressed data */
    int count;            /* of such chunks, one behind the other */
    size_t compressed;    /* bytes in them */
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

static inline int png_read_header(const uint8_t* at, png_outline* image) {
    static const uint8_t depths[7] = {31, 0, 24, 15, 24, 0, 24}; /* sums of those that are allowed */
    const uint32_t width = png_number(at), height = png_number(at + 4);
    if (width < 1 || height < 1 || width > PNG_LARGEST_SIDE || height > PNG_LARGEST_SIDE) return PNG_OTHER;
    image->width = (int)width;
    image->height = (int)height;
    image->depth = at[8];
    image->colour = at[9];
    if (image->colour > 6 || (image->depth & (image->depth - 1)) || !(depths[image->colour] & image->depth))
        return PNG_OTHER;
    if (at[10] || at[11] || at[12] > 1) return PNG_OTHER;
    image->interlaced = at[12];
    return PNG_OK;
}

/* Whether EXIF data are sound and leave the image as it is stored. */
static inline int png_exif_is_upright(const uint8_t* data, size_t size) {
    static const uint8_t sizes[13] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8};
    const int big = size >= 8 && data[0] == 'M';
#define EXIF16(p) ((uint32_t)(big ? (p)[0] << 8 | (p)[1] : (p)[1] << 8 | (p)[0]))
#define EXIF32(p) (big ? EXIF16(p) << 16 | EXIF16((p) + 2) : EXIF16((p) + 2) << 16 | EXIF16(p))
    uint32_t i, count, offset;
    if (size < 14 || (memcmp(data, "II\x2a\0", 4) != 0 && memcmp(data, "MM\0\x2a", 4) != 0)) return 0;
    offset = EXIF32(data + 4);
    if (offset < 8 || offset > size - 2) return 0;
    count = EXIF16(data + offset);
    if (count > (size - offset - 2) / 12) return 0;
    for (i = 0; i < count; i++) {
        const uint8_t* entry = data + offset + 2 + 12 * i;
        const uint32_t type = EXIF16(entry + 2), items = EXIF32(entry + 4);
        uint64_t bytes;
        if (type < 1 || type > 12) return 0;
        bytes = (uint64_t)items * sizes[type];
        if (bytes > 4 && bytes + EXIF32(entry + 8) > size) return 0;
        if (EXIF16(entry) == 0x0112 && (type != 3 || items != 1 || EXIF16(entry + 8) != 1)) return 0;
    }
#undef EXIF16
#undef EXIF32
    return 1;
}

/* A chunk that need not be understood: PNG_OTHER if a decoder may heed it in some way of its own. */
static inline int png_read_ancillary(const uint8_t* type, const uint8_t* at, size_t size,
                                     png_outline* image) {
    static const char profile[] = "Raw profile type "; /* EXIF data as text */
    if (size > PNG_LARGEST_CHUNK || png_is(type, "acTL") || png_is(type, "fcTL") || png_is(type, "fdAT"))
        return PNG_OTHER;
    if (png_is(type, "bKGD") && size != 1 && size != 2 && size != 6) return PNG_OTHER;
    if (png_is(type, "eXIf") && !png_exif_is_upright(at, size)) return PNG_OTHER;
    if (png_is(type, "tEXt") || png_is(type, "zTXt") || png_is(type, "iTXt"))
        if (size >= sizeof profile && memcmp(at, profile, sizeof profile - 1) == 0) return PNG_OTHER;
    if (png_is(type, "gAMA") || png_is(type, "sRGB") || png_is(type, "iCCP") || png_is(type, "cICP"))
        image->colour_space = 1;
    return PNG_OK;
}

static inline int png_read_palette(const uint8_t* at, size_t size, png_outline* image) {
    const size_t most = image->colour == PNG_PALETTE ? (size_t)1 << image->depth : 256;
    if (image->palette_size || !(image->colour & 2) || image->num_alphas || image->has_key) return PNG_OTHER;
    if (size % 3 || size < 3 || size / 3 > most) return PNG_OTHER;
    image->palette_size = (int)(size / 3);
    memcpy(image->palette, at, size);
    return PNG_OK;
}

static inline int png_read_transparency(const uint8_t* at, size_t size, png_outline* image) {
    size_t i;
    if (image->num_alphas || image->has_key || (image->colour & 4)) return PNG_OTHER;
    if (image->colour == PNG_PALETTE) {
        if (size < 1 || size > (size_t)image->palette_size) return PNG_OTHER;
        memcpy(image->alphas, at, size);
        image->num_alphas = (int)size;
        return PNG_OK;
    }
    if (size != (image->colour == PNG_RGB ? 6u : 2u)) return PNG_OTHER;
    for (i = 0; i < size / 2; i++)
        image->key[i] = (uint16_t)(at[2 * i] << 8 | at[2 * i + 1]);
    image->has_key = 1;
    return PNG_OK;
}

/* Read all chunks.  *image is filled in up to the first one that is not as it has to be; its message is
 * set with PNG_DAMAGED, PNG_TRUNCATED and PNG_TOO_LARGE. */
static inline int png_read_chunks(const uint8_t* data, size_t size, int64_t max_pixels, png_outline* image) {
    size_t at = 8;
    int status, ended = 0; /* the compressed data are over */
    memset(image, 0, sizeof *image);
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
        int i, ancillary;
        if (size - at < 12 || (length = png_number(chunk)) > size - at - 12) {
            snprintf(image->message, sizeof image->message,
                     "the PNG image is truncated (%llu bytes, and no chunk IEND at the end); pack it again "
                     "from its source",
                     (unsigned long long)size);
            return PNG_TRUNCATED;
        }
        for (i = 0; i < 4; i++)
            if ((type[i] | 32) < 'a' || (type[i] | 32) > 'z' || (i == 2 && type[i] & 32)) return PNG_OTHER;
        ancillary = type[0] & 32;
        if (png_crc32(type, length + 4) != png_number(content + length)) {
            if (!png_is(type, "IHDR") && !png_is(type, "IDAT")) return PNG_OTHER;
            snprintf(
                image->message, sizeof image->message,
                "the PNG image is damaged (the checksum of its chunk %.4s at byte %llu is wrong); pack it "
                "again from its source",
                (const char*)type, (unsigned long long)at);
            return PNG_DAMAGED;
        }
        if (png_is(type, "IDAT")) {
            if (ended || (image->colour == PNG_PALETTE && !image->palette_size)) return PNG_OTHER;
            if (length > PNG_LARGEST_CHUNK && length > png_filtered_bytes(image)) return PNG_OTHER;
            if (!image->count) image->first = chunk;
            image->count++;
            image->compressed += length;
        } else {
            ended = image->count > 0;
            if (png_is(type, "IEND")) return length || !ended ? PNG_OTHER : PNG_OK;
            if (png_is(type, "PLTE"))
                status = ended ? PNG_OTHER : png_read_palette(content, length, image);
            else if (png_is(type, "tRNS"))
                status = ended ? PNG_OTHER : png_read_transparency(content, length, image);
            else if (ancillary)
                status = png_read_ancillary(type, content, length, image);
            else if (at > 8)
                status = PNG_OTHER;
            if (status != PNG_OK) return status;
        }
        at += length + 12;
    }
}

#endif
