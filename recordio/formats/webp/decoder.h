/* Decode a rectangle of a still WebP image with libwebp.
 *
 * One `webp_decoder` decodes one image at a time and is meant to be used for thousands of them: the memory of
 * its pixels it keeps, unless that is very much.  It belongs to one thread at a time; different decoders
 * share nothing.  Nothing here prints, or touches Python.
 *
 *     open -> start -> rows, rows -> finish, then open the next image
 *
 * The pixels are those of libwebp's own decode of the whole image.  What lies below the rectangle is not
 * decoded, so that damage there stays unseen; a file whose chunks are longer than the file is refused
 * whatever the rectangle is.
 */
#ifndef ITERATORS_WEBP_DECODER_H
#define ITERATORS_WEBP_DECODER_H

#include <stddef.h>
#include <stdint.h>

enum webp_status {
    WEBP_OK = 0,
    WEBP_OTHER,   /* no WebP file, an animation, or four channels of an image that has three */
    WEBP_REFUSED, /* damaged, truncated or too large: the message says which */
    WEBP_NO_MEMORY,
    WEBP_BAD_ARGUMENT /* rectangle outside the image, or calls in the wrong order */
};

typedef struct webp_decoder webp_decoder;

typedef struct {
    int width, height; /* as stored: before the orientation is applied */
    int orientation;   /* EXIF 1 to 8; 1 if absent or invalid */
} webp_info;

/* 1 if this was built with libwebp; otherwise open returns WEBP_OTHER. */
int webp_decoder_available(void);

/* "libwebp 1.6.0" of a static library, "libwebp" of one that is found at run time, or "none". */
const char* webp_decoder_library(void);

/* Of the library that is there: major << 16 | minor << 8 | revision. */
int webp_decoder_version(void);

/* NULL if there is no memory. */
webp_decoder* webp_decoder_new(void);
void webp_decoder_free(webp_decoder* decoder); /* NULL is allowed */

/* Read the header, for pixels of 1 (grey), 3 (RGB) or 4 (RGBA, not premultiplied) channels.  `data` must
 * stay as it is until finish. */
int webp_decoder_open(webp_decoder* decoder, const uint8_t* data, size_t size, int channels,
                      int64_t max_pixels, webp_info* info);

/* Decode a rectangle. */
int webp_decoder_start(webp_decoder* decoder, int x, int y, int width, int height);

/* The rows of the rectangle: `*row` is the first pixel asked for of the first of `*count` rows that lie
 * `*stride` bytes apart, channels interleaved; valid until finish.  `*count` 0: all were delivered.
 * PIXEL_SLACK bytes after the last pixel may be read (not used). */
int webp_decoder_rows(webp_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count);

/* Drop the image.  May be called at any time, any number of times. */
void webp_decoder_finish(webp_decoder* decoder);

/* Why the last call failed; valid until the next open. */
const char* webp_decoder_message(const webp_decoder* decoder);

#endif
