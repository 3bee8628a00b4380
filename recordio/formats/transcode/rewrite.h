/* Write a JPEG file again without touching its coefficients: sequential, with Huffman codes of its own
 * and restart markers, so that a part of the image can be decoded without the rest.
 *
 * All that is not entropy-coded is copied byte by byte: APPn and COM segments, quantisation tables, the
 * frame, and what follows the image.  The result is used only if its coefficients were read back and
 * found equal.  Nothing here prints, exits, jumps out of a call, or touches Python; nothing is kept
 * between two calls, which may run in any threads.
 */
#ifndef ITERATORS_JPEG_REWRITE_H
#define ITERATORS_JPEG_REWRITE_H

#include "coefficients.h"

enum { JPEG_RESTART_AUTO = -1 };

enum jpeg_tables {
    JPEG_TABLES_AUTO,
    JPEG_TABLES_OPTIMAL, /* the shortest for this image */
    JPEG_TABLES_STANDARD /* those that most files have */
};

typedef struct {
    jpeg_limits limits;
    int restart; /* MCUs between two markers, 0: none, JPEG_RESTART_AUTO */
    int tables;
} jpeg_rewrite_options;

typedef struct {
    uint8_t* data; /* NULL: the file should stay as it is; otherwise for jpeg_rewrite_free */
    size_t size;
    char message[256]; /* why it failed */
} jpeg_rewritten;

/* A jpeg_status; with anything but JPEG_OK the file must stay as it is.  JPEG_UNAVAILABLE if this was
 * built without libjpeg-turbo. */
int jpeg_rewrite(const uint8_t* data, size_t size, const jpeg_rewrite_options* options,
                 jpeg_rewritten* result);

void jpeg_rewrite_free(jpeg_rewritten* result);

#endif
