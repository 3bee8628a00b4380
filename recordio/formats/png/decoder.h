/* Decode a rectangle of a PNG image.
 *
 * One `png_decoder` decodes one image at a time and is meant to be used for thousands of them: what it
 * allocates it keeps, unless that is very much.  It belongs to one thread at a time; different decoders
 * share nothing.  Nothing here prints, or touches Python.
 *
 *     open -> start -> rows, rows, ... -> finish, then open the next image
 *
 * All checks are over when `open` returns, and the compressed data are inflated whole.  Filters are
 * undone as rows are asked for: not beyond the rectangle, and above it only back to a row that depends on
 * none before it.
 */
#ifndef ITERATORS_PNG_DECODER_H
#define ITERATORS_PNG_DECODER_H

#include "chunks.h"

typedef struct png_decoder png_decoder;

typedef struct {
    int width, height; /* as stored */
    int orientation;   /* EXIF 1 to 8; 1 if absent or invalid */
    int pixel;         /* bytes of one */
    int cut;           /* of 16 bits these are the upper 8 */
} png_info;

/* To be called once, before anything else. */
void png_decoder_prepare(void);

/* Read all chunks of a file, or with `outline` those in which facts are; see `png_read_chunks`. */
int png_decoder_look(const uint8_t* data, size_t size, int outline, png_outline* image);

/* NULL if there is no memory. */
png_decoder* png_decoder_new(void);
void png_decoder_free(png_decoder* decoder); /* NULL is allowed */

/* Whether filters are undone with vectors, and inflating uses instructions that not every processor has; the
 * pixels are the same.  So it is unless this says otherwise. */
void png_decoder_use_vectors(png_decoder* decoder, int use);

/* Read and check a whole file, for pixels of 1 (grey), 3 (RGB) or 4 (RGBA) channels of 8 bits; `deep`: of 16 bits
 * where they are stored, or PNG_VALUES.  `data` must stay as it is until finish. */
int png_decoder_open(png_decoder* decoder, const uint8_t* data, size_t size, int channels, int deep,
                     int64_t max_pixels, png_info* info);

/* Ask for a rectangle. */
int png_decoder_start(png_decoder* decoder, int x, int y, int width, int height);

/* The next rows of the rectangle: `*row` is the first pixel asked for of the first of `*count` rows that lie
 * `*stride` bytes apart, channels interleaved, samples of 16 bits as this machine has them; valid until the
 * next call.  `*count` 0: all rows were delivered.  PIXEL_SLACK bytes after the last pixel may be read (not
 * used). */
int png_decoder_rows(png_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count);

/* Drop the rest of the image.  May be called at any time, any number of times. */
void png_decoder_finish(png_decoder* decoder);

/* Why the last call failed; valid until the next open. */
const char* png_decoder_message(const png_decoder* decoder);

#endif
