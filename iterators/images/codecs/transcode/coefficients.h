/* The quantised coefficients of a sound JPEG file, as libjpeg-turbo reads them.
 *
 * Sound means: read to its end without a single warning, with all coefficients in full.  Everything
 * else is refused, for what is read here is written again.  No pixel is made, and nothing here prints,
 * exits, jumps out of a call, or touches Python.  One object reads one file, once.
 */
#ifndef ITERATORS_JPEG_COEFFICIENTS_H
#define ITERATORS_JPEG_COEFFICIENTS_H

#include "../jpeg/decoder.h" /* for jpeg_status and jpeg_limits */

#define JPEG_MAX_COMPONENTS 4
#define JPEG_MAX_SAMPLING 4
#define JPEG_BLOCK 64

typedef struct {
    int id;                             /* as the file names it */
    int columns, rows;                  /* sampling factors: blocks in an MCU of all components */
    int width, height;                  /* in blocks, without those that only fill up an MCU */
    uint16_t quantisation[JPEG_BLOCK];  /* in rows, not in zigzag order */
} jpeg_component;

/* The colours that component numbers stand for. */
enum jpeg_colours { JPEG_COLOURS_OTHER, JPEG_COLOURS_YCC, JPEG_COLOURS_YCCK };

typedef struct {
    int width, height; /* in pixels */
    int components;
    int colours;
    int sequential;      /* one scan of Huffman codes that is not progressive */
    int standard_tables; /* sequential, with the usual Huffman tables */
    jpeg_component component[JPEG_MAX_COMPONENTS];
} jpeg_frame;

typedef struct jpeg_coefficients jpeg_coefficients;

/* NULL if there is no memory. */
jpeg_coefficients *jpeg_coefficients_new(void);
void jpeg_coefficients_free(jpeg_coefficients *coefficients); /* NULL is allowed */

/* Read a file.  A jpeg_status; `data` is not needed any more then.  Needs 2 bytes for each
 * coefficient. */
int jpeg_coefficients_read(jpeg_coefficients *coefficients, const uint8_t *data, size_t size,
                           const jpeg_limits *limits);

/* What was read. */
const jpeg_frame *jpeg_coefficients_frame(const jpeg_coefficients *coefficients);

/* The first blocks of `count` rows from row `first` on, at most as many as the component has rows in
 * an MCU; each block is 64 numbers in rows.  Valid until the next call for the same component.  0 if
 * that failed. */
int jpeg_coefficients_rows(jpeg_coefficients *coefficients, int component, int first, int count,
                           const int16_t **rows);

/* Why reading failed. */
const char *jpeg_coefficients_message(const jpeg_coefficients *coefficients);

#endif
