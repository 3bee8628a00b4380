/* A faster entropy decoder for libjpeg-turbo: sequential Huffman coding, all components in one scan; and,
 * in progressive.h, progressive Huffman coding.
 *
 * The sequential one decodes sound data only.  At the first bit that it would not vouch for (a code that
 * does not exist, data that ends, a marker out of place) it gives the scan back to the library's own
 * decoder, which reads it again from its start up to the same byte and goes on from there.  So whatever is
 * wrong with an image has the outcome that it has with the library alone, and the pixels of sound
 * ones are the same anyway.
 *
 * Segments between restart markers in which nobody will look at anything are not read at all: above,
 * beside and, in the last row, behind the rectangle.  Their markers are counted, and must be there in
 * order with no other between them up to the segment that is wanted; otherwise everything is read.
 * So it is, too, if no marker ends the scan: only then can the library run out of data, which is the
 * only damage within a scan that it is not to decode over.  What is refused is therefore the same, and
 * the only thing that can differ from the library alone are its warnings of damage inside of what was
 * passed over.  The pixels are the same: the library, too, begins again at a marker whose number it
 * expects.
 *
 * Entry points (entries.h) are used alike where there are no restart markers: all MCUs before a point were
 * sound when it was noted, and what lies between the last point before the rectangle and the rectangle is read.
 *
 * The library has no interface for this.  What is supposed about its inside is that an entropy
 * decoder begins with the functions `start_pass` and `decode_mcu`; jpeg_decoder_check tries it.
 */
#ifndef ITERATORS_JPEG_ENTROPY_H
#define ITERATORS_JPEG_ENTROPY_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include "entries.h"

/* Width in pixels of a block after the scaled inverse DCT: 8, 4, 2 or 1. */
#if JPEG_LIB_VERSION >= 70
#define BLOCK_SIZE(component)        ((component)->DCT_h_scaled_size)
#define SMALLEST_BLOCK_SIZE(library) ((library)->min_DCT_h_scaled_size)
#else
#define BLOCK_SIZE(component)        ((component)->DCT_scaled_size)
#define SMALLEST_BLOCK_SIZE(library) ((library)->min_DCT_scaled_size)
#endif

typedef struct jpeg_entropy jpeg_entropy;

/* Who decodes, or decoded, the entropy-coded data of the image. */
enum jpeg_entropy_state { JPEG_ENTROPY_LIBRARY, JPEG_ENTROPY_OWN, JPEG_ENTROPY_GIVEN_BACK };

/* More than any version of libjpeg-turbo has. */
#define OTHER_FUNCTIONS 30

/* What an entropy decoder of the library begins with, and what ours begin with. */
typedef struct {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*);
    size_t insufficient_data;                          /* of which newer versions look at the start */
    void (*others[OTHER_FUNCTIONS])(j_decompress_ptr); /* or variables, which zero suits */
} entropy_head;

/* From now on report an error if any other function is called. */
void entropy_probe(entropy_head* head);

/* NULL if there is no memory. */
jpeg_entropy* jpeg_entropy_new(void);
void jpeg_entropy_free(jpeg_entropy* entropy); /* NULL is allowed */

/* Choose the fastest kernels of this processor or, if `portable`, those of every one.  It is to be called
 * before the first image. */
void jpeg_entropy_kernels(jpeg_entropy* entropy, int portable);

/* Put ours in the place of the library's, if this is an image for it.  To be called within
 * jpeg_start_decompress when the library has set up its entropy decoder but not begun the scan: that
 * is when it realizes its virtual arrays. */
void jpeg_entropy_install(jpeg_entropy* entropy, j_decompress_ptr library);

/* The library has asked for the coefficients of a component, and this is where they will be. */
void jpeg_entropy_array(jpeg_entropy* entropy, jvirt_barray_ptr array);

/* Of the columns of MCUs only these will be looked at.  All of them after install. */
void jpeg_entropy_columns(jpeg_entropy* entropy, JDIMENSION first, JDIMENSION last);

/* Read and transform whole rows of MCUs from now on (mcu_rows.h), of a sequential image that is started.  The columns that
 * will be looked at are known. */
void jpeg_entropy_whole_rows(jpeg_entropy* entropy, j_decompress_ptr library, int level);

/* Of the rows of MCUs of a progressive image only the first `count` will be looked at, and of these what
 * the library needs for the size and the colours that have been chosen.  0: read everything. */
void jpeg_entropy_rows(jpeg_entropy* entropy, JDIMENSION count);

/* Whether scans of a progressive image, or parts of them, were not read for that reason. */
int jpeg_entropy_passed_over(const jpeg_entropy* entropy);

/* Use the entry points of a record for this image, and keep those that are found; NULL: neither.  To be
 * called before start. */
void jpeg_entropy_entries(jpeg_entropy* entropy, entry_store* store, int64_t record);

/* Done with the image: keep what was found. */
void jpeg_entropy_finish(jpeg_entropy* entropy);

/* The next image will be the library's again. */
void jpeg_entropy_reset(jpeg_entropy* entropy);

enum jpeg_entropy_state jpeg_entropy_in_use(const jpeg_entropy* entropy);

/* From now on report an error if the library calls any other function of an entropy decoder. */
void jpeg_entropy_probe(jpeg_entropy* entropy);

#endif
