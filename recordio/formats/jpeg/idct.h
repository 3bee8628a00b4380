/* The inverse transform of two blocks at a time, in the place of the library's of one.
 *
 * The library's transform of 8 x 8 coefficients is a chain of operations that wait for each other, so that a
 * processor with vectors of 256 bits has half of its time left.  Here the second block goes the same way beside
 * the first, in the other half of the vectors: operation by operation what the library's SSE2 and AVX2 code does,
 * overflow of damaged coefficients included.  Two blocks that lie one behind the other are transformed when the
 * first is asked for, and nothing is left to do for the second.
 *
 * The library has no interface for this.  What is supposed about its inside is that what chooses inverse
 * transforms begins with a function and the transforms of the components; `jpeg_decoder_check` tries it.
 */
#ifndef ITERATORS_JPEG_IDCT_H
#define ITERATORS_JPEG_IDCT_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

typedef void (*jpeg_transform)(j_decompress_ptr, jpeg_component_info*, JCOEFPTR, JSAMPARRAY, JDIMENSION);

typedef struct {
    jpeg_transform transforms[MAX_COMPONENTS]; /* the library's */
    JDIMENSION ends[MAX_COMPONENTS];           /* columns of the output that there are */
    JDIMENSION
    group[MAX_COMPONENTS]; /* blocks that lie one behind the other before those of another component */
    JCOEFPTR done;         /* the block that was transformed with the one before it */
} jpeg_idct;

/* Transform pairs of blocks from now on, of an image that is started and not yet read.  The library crops to
 * columns from `first` on, 0 if to none.  The processor has AVX2. */
void jpeg_idct_install(jpeg_idct* idct, j_decompress_ptr library, JDIMENSION first);

#endif
