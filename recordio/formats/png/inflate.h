/* Compressed data and checksums of PNG files, by libdeflate; without it there is neither.
 *
 * The size of what comes out is known beforehand, so that one call does it all.
 */
#ifndef ITERATORS_PNG_INFLATE_H
#define ITERATORS_PNG_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef HAVE_LIBDEFLATE

#include <libdeflate.h>

enum { PNG_CAN_INFLATE = 1 };
#define PNG_INFLATE_LIBRARY "libdeflate " LIBDEFLATE_VERSION_STRING

typedef struct libdeflate_decompressor png_inflater;

static inline png_inflater* png_inflater_new(void) {
    return libdeflate_alloc_decompressor();
}

static inline void png_inflater_free(png_inflater* inflater) {
    if (inflater) libdeflate_free_decompressor(inflater);
}

/* Whether the data are one zlib stream of exactly `out_size` bytes, with the right checksum. */
static inline int png_inflate(png_inflater* inflater, const uint8_t* data, size_t size, uint8_t* out,
                              size_t out_size) {
    size_t used = 0;
    return libdeflate_zlib_decompress_ex(inflater, data, size, out, out_size, &used, NULL) ==
               LIBDEFLATE_SUCCESS &&
           used == size;
}

static inline uint32_t png_crc32(const uint8_t* data, size_t size) {
    return libdeflate_crc32(0, data, size);
}

#else

enum { PNG_CAN_INFLATE = 0 };
#define PNG_INFLATE_LIBRARY "none"

typedef struct {
    char nothing;
} png_inflater;

static inline png_inflater* png_inflater_new(void) {
    static png_inflater none;
    return &none;
}

static inline void png_inflater_free(png_inflater* inflater) {
    (void)inflater;
}

static inline int png_inflate(png_inflater* inflater, const uint8_t* data, size_t size, uint8_t* out,
                              size_t out_size) {
    (void)inflater, (void)data, (void)size, (void)out, (void)out_size;
    return 0;
}

static inline uint32_t png_crc32(const uint8_t* data, size_t size) {
    (void)data, (void)size;
    return 0;
}

#endif
#endif
