/* Encode pixels in memory as a JPEG image with libjpeg-turbo, to the bytes that OpenCV writes.
 *
 * One `jpeg_encoder` encodes one image at a time and belongs to one thread at a time; what it allocates it
 * keeps.  Nothing here prints, exits, jumps out of a call, or touches Python.
 */
#ifndef RECORDIO_JPEG_ENCODER_H
#define RECORDIO_JPEG_ENCODER_H

#include <stddef.h>
#include <stdint.h>

/* The longest side that libjpeg encodes. */
enum { JPEG_LONGEST_SIDE = 65500 };

enum jpeg_encoder_status { JPEG_ENCODED = 0, JPEG_ENCODER_NO_MEMORY, JPEG_ENCODER_REFUSED };

typedef struct jpeg_encoder jpeg_encoder;

typedef struct {
    int quality;               /* 0 to 100 */
    int across, down;          /* luma samples for a chroma sample: 1, 2 or 4, and 1 or 2 */
    int progressive, optimize; /* Huffman tables of its own; progressive images always have those */
} jpeg_encoder_settings;

/* 1 if this was built with libjpeg-turbo; otherwise every image is refused. */
int jpeg_encoder_available(void);

/* NULL if there is no memory. */
jpeg_encoder* jpeg_encoder_new(void);
void jpeg_encoder_free(jpeg_encoder* encoder); /* NULL is allowed */

/* Encode `height` rows of `width` pixels, `stride` bytes apart.  `channels`: 1 grey, 3 RGB, -3 BGR.  The
 * content is `*size` bytes at `*content`, until the next call. */
int jpeg_encoder_encode(jpeg_encoder* encoder, const uint8_t* pixels, ptrdiff_t stride, int width, int height,
                        int channels, const jpeg_encoder_settings* settings, const uint8_t** content,
                        size_t* size);

/* Why the last call failed. */
const char* jpeg_encoder_message(const jpeg_encoder* encoder);

#endif
