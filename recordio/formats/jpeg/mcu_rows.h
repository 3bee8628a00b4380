/* Rows of MCUs in the place of the library's: blocks are transformed while the next ones are read.
 *
 * The library reads an MCU, transforms its blocks, and reads the next one.  Reading is a chain of look-ups that wait for
 * each other, and each end of a block is a guess of the processor that is often wrong, so most of what the processor
 * could do meanwhile is left undone.  Here the transform of two MCUs is cut into as many pieces as two MCUs have blocks,
 * and each piece is done before one block of the next two MCUs is read, which does not wait for it.
 *
 * Blocks are transformed in pairs, side by side in the image: of one MCU, or of both.  At the first bit that makes no
 * sense the row is left to the library from its start, and so are all later ones and, always, the last.
 *
 * The library has no interface for this.  What is supposed about its inside is that what controls coefficients begins
 * with four functions, of which the last gives a row; `jpeg_decoder_check` tries it.
 */
#ifndef ITERATORS_JPEG_MCU_ROWS_H
#define ITERATORS_JPEG_MCU_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

#include "entropy.h"

/* Two blocks, the left one before the right one, and where their pixels go. */
typedef struct {
    JCOEF* blocks;
    const UINT16* factors;
    JSAMPARRAY out;
    JDIMENSION column; /* of the next pixels; those from `end` on do not exist */
    JDIMENSION first, step, end;
    int component, row; /* the row of blocks in the MCU */
} block_pair;

/* Two MCUs are read while the two before them are transformed. */
typedef struct {
    int (*of_library)(j_decompress_ptr, JSAMPIMAGE); /* NULL: ours is not in its place */
    int (*read)(jpeg_entropy*, JDIMENSION);
    block_pair pairs[2][D_MAX_BLOCKS_IN_MCU];
    JBLOCKROW mcus[2][2][D_MAX_BLOCKS_IN_MCU];
    uint8_t memory[4 * D_MAX_BLOCKS_IN_MCU * sizeof(JBLOCK) + 63]; /* zeros, except within a row */
} mcu_rows;

/* Put ours in the place of the library's, if this is an image for it: with colours, at full size.
 * `level`: of the instructions, AVX2 or AVX-512. */
void mcu_rows_install(jpeg_entropy* entropy, j_decompress_ptr library, int level);

/* Put the library's back. */
void mcu_rows_remove(mcu_rows* rows, j_decompress_ptr library);

#endif
