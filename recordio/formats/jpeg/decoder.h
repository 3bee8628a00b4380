/* Decode a rectangle of a JPEG image at 1/1, 1/2, 1/4 or 1/8 of its size with libjpeg-turbo.
 *
 * One `jpeg_decoder` decodes one image at a time and is meant to be used for thousands of them: what
 * it allocates it keeps.  It belongs to one thread at a time; different decoders share nothing.
 * Nothing here prints, exits, jumps out of a call, or touches Python.
 *
 * The pixels handed out are exactly those that a decode of the whole image at the same scale has
 * there (accurate integer DCT, smooth chroma upsampling: what OpenCV and Pillow use); of CMYK they are Pillow's.
 *
 *     open -> start -> rows, rows, ... -> finish, then open the next image
 */
#ifndef ITERATORS_JPEG_DECODER_H
#define ITERATORS_JPEG_DECODER_H

#include <stddef.h>
#include <stdint.h>

#include "recordio/formats/jpeg_limits.h"

#include "entries.h"

enum jpeg_status {
    JPEG_OK = 0,
    JPEG_NOT_JPEG,       /* the data does not start like a JPEG file */
    JPEG_CORRUPT,        /* the header or the coded data make no sense */
    JPEG_TRUNCATED,      /* the data ends before the last row that was asked for */
    JPEG_TOO_LARGE,      /* more pixels than the limit */
    JPEG_TOO_MANY_SCANS, /* more scans, or more pixels in all of them, than the limit */
    JPEG_NO_MEMORY,
    JPEG_UNSUPPORTED,  /* start was called although info.supported is 0 */
    JPEG_BAD_ARGUMENT, /* rectangle outside the image, bad channels or denominator, wrong order */
    JPEG_UNAVAILABLE   /* built without libjpeg-turbo */
};

/* What a pixel is made of; the absolute value is the number of bytes. */
enum jpeg_channels { JPEG_GREY = 1, JPEG_RGB = 3, JPEG_BGR = -3 };

typedef struct jpeg_decoder jpeg_decoder;

typedef struct {
    int width, height; /* as stored: before the orientation is applied */
    int components;
    int orientation; /* EXIF 1 to 8; 1 if absent or invalid */
    int progressive;
    int supported; /* 0: 12-bit, lossless, arithmetic coding...: another decoder must do it */
} jpeg_info;

/* Who reads the entropy-coded data: the library, or entropy.h where it can. */
enum jpeg_entropy_choice {
    JPEG_ENTROPY_OF_LIBRARY,
    JPEG_ENTROPY_OF_OURS,
    JPEG_ENTROPY_PORTABLE,    /* as ours, with instructions alone that every processor has */
    JPEG_ENTROPY_AVX2,        /* as ours, without AVX-512 */
    JPEG_ENTROPY_ON_PROBATION /* as ours, and calls that it does not expect are errors */
};

/* 1 if this was built with libjpeg-turbo; otherwise open returns JPEG_UNAVAILABLE. */
int jpeg_decoder_available(void);

/* "libjpeg-turbo 2.1.5", or "none". */
const char* jpeg_decoder_library(void);

/* NULL if there is no memory. */
jpeg_decoder* jpeg_decoder_new(void);
void jpeg_decoder_free(jpeg_decoder* decoder); /* NULL is allowed */

/* Choose the entropy decoder for the next image and all later ones; at first it is the library's.
 * Neither pixels nor errors depend on it, nor do warnings, except of damage in what need not be read.
 * JPEG_OK or JPEG_NO_MEMORY. */
int jpeg_decoder_choose(jpeg_decoder* decoder, enum jpeg_entropy_choice choice);

/* 1 if ours read the current image up to here, 2 if it began and the library went on, otherwise 0. */
int jpeg_decoder_chosen(const jpeg_decoder* decoder);

/* Whether ours works with this library: decodes built-in images, sound and damaged, with both. */
int jpeg_decoder_check(void);

/* Read the header, and count the scans if there are several.  `data` must stay as it is until finish.
 * `limits` NULL: the defaults.  With JPEG_TOO_LARGE and JPEG_TOO_MANY_SCANS, `info` is filled in as
 * well; images that are not supported are refused like others. */
int jpeg_decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size, const jpeg_limits* limits,
                      jpeg_info* info);

/* Use what the store knows of the entropy-coded data of a record, which this image is, and keep there what
 * is found out.  Between open and start; it holds until finish. */
void jpeg_decoder_entries(jpeg_decoder* decoder, entry_store* store, int64_t record);

/* Rows of the rectangle that is asked for next may be written here, `stride` bytes apart, with nothing behind their
 * last pixel: then no copy is needed.  NULL: nowhere, and so it is at first.  It holds for one start. */
void jpeg_decoder_into(jpeg_decoder* decoder, uint8_t* into, ptrdiff_t stride);

/* Ask for a rectangle in the coordinates of the scaled image, whose size is
 * ceil(width / denominator) x ceil(height / denominator).  `channels`: JPEG_GREY, _RGB or _BGR. */
int jpeg_decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y, int width,
                       int height);

/* The next rows of the rectangle: `*row` is the first pixel asked for of the first of `*count` rows
 * that lie `*stride` bytes apart, channels interleaved; valid until the next call, unless it is the caller's own memory.  `*count` 0: all
 * rows were delivered.  32 bytes behind the last pixel may be read (not used). */
int jpeg_decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count);

/* Drop the rest of the image.  May be called at any time, any number of times. */
void jpeg_decoder_finish(jpeg_decoder* decoder);

/* Why the last call failed; valid until the next open. */
const char* jpeg_decoder_message(const jpeg_decoder* decoder);

/* Damage in the current image that was decoded over, as every user of libjpeg does. */
int jpeg_decoder_warnings(const jpeg_decoder* decoder);

#endif
