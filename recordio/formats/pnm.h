/* Binary PNM images of 8 bits: the header, and what grey and colour become of each other.
 *
 * P5 is grey, P6 is RGB; the pixels follow the header as they are.  The parser is stricter than the
 * format: a header that decoders read differently, deeper samples or another largest value are left to
 * the general decoder.  Never reads behind the data, never allocates.
 */
#ifndef ITERATORS_PNM_H
#define ITERATORS_PNM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    PNM_OK = 0,
    PNM_OTHER = 1, /* not such an image, or one for the general decoder */
    PNM_TOO_LARGE = 2,
    PNM_TRUNCATED = 3
};

typedef struct {
    int64_t width, height;
    int channels;    /* 1 or 3 */
    size_t start;    /* offset of the first pixel */
    uint64_t needed; /* bytes of pixels */
    uint64_t rest;   /* bytes behind the header */
} pnm_header;

static int pnm_is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space, of which there must be some, and comments, each on to the end of its line. */
static int pnm_skip(const uint8_t* data, size_t size, size_t* at) {
    const size_t begin = *at;
    while (*at < size) {
        if (pnm_is_space(data[*at])) {
            ++*at;
        } else if (data[*at] == '#' && *at > begin) {
            while (*at < size && data[*at] != '\n' && data[*at] != '\r')
                ++*at;
        } else {
            break;
        }
    }
    return *at > begin;
}

/* A number of at most ten digits, which white space must follow. */
static int pnm_number(const uint8_t* data, size_t size, size_t* at, int64_t* number) {
    const size_t begin = *at;
    *number = 0;
    while (*at < size && *at - begin < 10 && data[*at] >= '0' && data[*at] <= '9')
        *number = 10 * *number + (data[(*at)++] - '0');
    return *at > begin && *at < size && pnm_is_space(data[*at]);
}

/* Whether these bytes are such an image, whole and of at most `max_pixels`; *header is filled in but
 * for PNM_OTHER. */
static inline int pnm_parse(const uint8_t* data, size_t size, int64_t max_pixels, pnm_header* header) {
    size_t at = 2;
    int64_t largest;
    if (size < 3 || data[0] != 'P' || (data[1] != '5' && data[1] != '6')) return PNM_OTHER;
    header->channels = data[1] == '5' ? 1 : 3;
    if (!pnm_skip(data, size, &at) || !pnm_number(data, size, &at, &header->width) ||
        !pnm_skip(data, size, &at) || !pnm_number(data, size, &at, &header->height) ||
        !pnm_skip(data, size, &at) || !pnm_number(data, size, &at, &largest))
        return PNM_OTHER;
    if (largest != 255 || header->width < 1 || header->height < 1) return PNM_OTHER;
    header->start = at + 1; /* exactly one white space; more belong to the pixels */
    if (header->width > INT32_MAX || header->height > INT32_MAX ||
        header->width > max_pixels / header->height)
        return PNM_TOO_LARGE;
    header->needed = (uint64_t)header->width * (uint64_t)header->height * (uint64_t)header->channels;
    header->rest = size - header->start;
    return header->rest < header->needed ? PNM_TRUNCATED : PNM_OK;
}

/* What is wrong with an image that pnm_parse refuses. */
static inline void pnm_explain(int status, const pnm_header* header, int64_t max_pixels, char* message,
                               size_t size) {
    const long long width = (long long)header->width, height = (long long)header->height;
    if (status == PNM_TRUNCATED)
        snprintf(message, size,
                 "the PNM image is truncated (%lld x %lld %s pixels are %llu bytes, %llu are there); "
                 "pack it again from its source",
                 width, height, header->channels == 1 ? "grey" : "RGB", (unsigned long long)header->needed,
                 (unsigned long long)header->rest);
    else
        snprintf(message, size,
                 "the PNM image is too large (%lld x %lld pixels are more than the limit of %lld); "
                 "raise max_pixels to allow it",
                 width, height, (long long)max_pixels);
}

/* A row of grey or RGB pixels as RGB or grey ones: OpenCV's bytes for the same file. */
static inline void pnm_convert_row(const uint8_t* row, int width, int channels, uint8_t* out) {
    int x;
    if (channels == 1)
        for (x = 0; x < width; x++)
            out[3 * x] = out[3 * x + 1] = out[3 * x + 2] = row[x];
    else
        for (x = 0; x < width; x++)
            out[x] =
                (uint8_t)((4899 * row[3 * x] + 9617 * row[3 * x + 1] + 1868 * row[3 * x + 2] + 8192) >> 14);
}

#endif
