/* One sequential Huffman-coded scan of all components: counted first, then written.
 *
 * It works on what jpeg_coefficients.h gives, and knows nothing of files or libraries.
 */
#ifndef ITERATORS_JPEG_SCAN_H
#define ITERATORS_JPEG_SCAN_H

#include "codes.h"

/* More blocks than this in an MCU are not allowed. */
#define JPEG_MAX_MCU_BLOCKS 10

/* Bits that follow a symbol: of a difference up to 11, of another coefficient up to 10. */
#define JPEG_DC_SYMBOLS 12

typedef struct {
    jpeg_coefficients *coefficients;
    const jpeg_frame *frame;
    int mcus_per_row, mcu_rows;
    int classes;  /* of tables: 1, or 2 if there are colour differences */
    int restart;  /* MCUs between restart markers, 0: none */
    int64_t dc_counts[2][256], ac_counts[2][256];
    jpeg_code dc_codes[2], ac_codes[2];
} jpeg_scan;

enum jpeg_scan_status {
    JPEG_SCAN_OK,
    JPEG_SCAN_IMPOSSIBLE, /* a coefficient is too large, or an MCU has too many blocks */
    JPEG_SCAN_FAILED      /* the coefficients cannot be had, or there is not enough room */
};

/* Begin with an image: how it is divided, and how often each symbol occurs without restarts. */
int jpeg_scan_begin(jpeg_scan *scan, jpeg_coefficients *coefficients);

/* Let there be a restart marker after every `restart` MCUs; count the symbols that depend on it. */
int jpeg_scan_restart(jpeg_scan *scan, int restart);

/* Choose the codes. */
void jpeg_scan_codes(jpeg_scan *scan, int standard);

/* Number of restart markers, and of bits of the scan with the chosen codes. */
int64_t jpeg_scan_markers(const jpeg_scan *scan);
int64_t jpeg_scan_bits(const jpeg_scan *scan);

/* Write it; `*end` is moved behind the last byte.  Space for jpeg_scan_room() bytes is needed. */
int jpeg_scan_write(jpeg_scan *scan, uint8_t **end);
int64_t jpeg_scan_room(const jpeg_scan *scan);

#endif
