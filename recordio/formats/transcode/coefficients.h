/* The quantised coefficients of a sound JPEG file, as libjpeg-turbo reads them and writes them again.
 *
 * Sound means: read to its end without a single warning, with all coefficients in full.  Everything
 * else is refused, for what is read here is written again, unless the reader is lenient.  No pixel is made, and nothing here prints,
 * exits, jumps out of a call, or touches Python.  One object reads one file, once,
 * and writes it once at most.
 */
#ifndef ITERATORS_JPEG_COEFFICIENTS_H
#define ITERATORS_JPEG_COEFFICIENTS_H

#include "../jpeg/decoder.h" /* for jpeg_status and jpeg_limits */

#define JPEG_MAX_COMPONENTS 4
#define JPEG_BLOCK          64

typedef struct {
    int id;                            /* as the file names it */
    int columns, rows;                 /* sampling factors: blocks in an MCU of all components */
    int width, height;                 /* in blocks, without those that only fill up an MCU */
    uint16_t quantisation[JPEG_BLOCK]; /* in rows, not in zigzag order */
} jpeg_component;

typedef struct {
    int width, height; /* in pixels */
    int components;
    int mcus_per_row, mcu_rows; /* of a scan of all components */
    int colours;                /* that components stand for, as the library numbers them */
    int sequential;             /* one scan of Huffman codes that is not progressive */
    jpeg_component component[JPEG_MAX_COMPONENTS];
} jpeg_frame;

typedef struct jpeg_coefficients jpeg_coefficients;

/* NULL if there is no memory. */
jpeg_coefficients* jpeg_coefficients_new(void);
void jpeg_coefficients_free(jpeg_coefficients* coefficients); /* NULL is allowed */

/* Before reading: accept files with all their coefficients that lack only the end marker, have filling
 * in front of it, or of which the library warns for a reason that changes no pixel. */
void jpeg_coefficients_be_lenient(jpeg_coefficients* coefficients);

/* Read a file.  A jpeg_status; `data` is not needed any more then.  Needs 2 bytes for each
 * coefficient. */
int jpeg_coefficients_read(jpeg_coefficients* coefficients, const uint8_t* data, size_t size,
                           const jpeg_limits* limits);

/* What was read. */
const jpeg_frame* jpeg_coefficients_frame(const jpeg_coefficients* coefficients);

/* The first blocks of `count` rows from row `first` on, at most as many as the component has rows in
 * an MCU; each block is 64 numbers in rows.  Valid until the next call for the same component.  0 if
 * that failed. */
int jpeg_coefficients_rows(jpeg_coefficients* coefficients, int component, int first, int count,
                           const int16_t** rows);

/* About how many bytes one scan of them takes with the shortest codes and without restart markers.
 * Negative if no baseline scan can hold them. */
int64_t jpeg_coefficients_scan_bytes(jpeg_coefficients* coefficients);

/* Whether the file is sequential and has the codes that the standard suggests (ITU-T T.81, annex K.3). */
int jpeg_coefficients_standard_codes(jpeg_coefficients* coefficients);

typedef struct {
    uint8_t* data; /* to be freed, after failures as well */
    size_t size;
} jpeg_bytes;

/* Write them as one sequential scan with a restart marker after every `restart` MCUs; 0: none.  Of the
 * file that this makes, all before the Huffman codes is to be thrown away.  `bytes->size` is the size
 * that is tried first.  A jpeg_status. */
int jpeg_coefficients_write(jpeg_coefficients* coefficients, int restart, int standard, jpeg_bytes* bytes);

/* Why reading or writing failed. */
const char* jpeg_coefficients_message(const jpeg_coefficients* coefficients);

#endif
