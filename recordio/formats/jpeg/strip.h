/* Where rows are decoded to: a strip of memory that stays in the cache, or the caller's own rows. */
#ifndef ITERATORS_JPEG_STRIP_H
#define ITERATORS_JPEG_STRIP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Rows handed out at a time: at least one row of coded blocks, few enough to stay in the cache. */
#define STRIP_ROWS 16

/* Into rows that are aligned to its vectors libjpeg-turbo (x86-64) writes past the cache, which makes
 * the decoding of small images half as slow again and leaves cold rows to the caller.  So all rows
 * start this far behind a multiple of 64 bytes. */
#define STRIP_MISALIGNMENT 8
#define STRIP_VECTOR       16 /* the smallest of these vectors */

typedef struct {
    uint8_t* memory;
    size_t size;
    ptrdiff_t stride, into_stride;
    uint8_t* rows[STRIP_ROWS];
    uint8_t* into; /* where the caller has the next row; NULL: it takes them from the strip */
} jpeg_strip;

/* Have room for rows of so many pixels; 0 if there is no memory. */
static inline int strip_reserve(jpeg_strip* strip, int width, int channels) {
    const size_t stride = ((size_t)width * (size_t)channels + 63) / 64 * 64;
    const size_t size = stride * STRIP_ROWS + 128; /* to align, and to be read behind the last pixel */
    uint8_t* first;
    int row;
    if (size > strip->size) {
        free(strip->memory);
        strip->size = 0;
        strip->memory = calloc(size, 1);
        if (strip->memory == NULL) return 0;
        strip->size = size;
    }
    first = strip->memory + (64 - (uintptr_t)strip->memory % 64) % 64 + STRIP_MISALIGNMENT;
    for (row = 0; row < STRIP_ROWS; row++)
        strip->rows[row] = first + stride * (size_t)row;
    strip->stride = (ptrdiff_t)stride;
    return 1;
}

/* Where to decode row `i` of the next: the strip, if the caller has none or an aligned one. */
static inline uint8_t* strip_aim(const jpeg_strip* strip, int i) {
    uint8_t* row = strip->into == NULL ? NULL : strip->into + i * strip->into_stride;
    return (uintptr_t)row % STRIP_VECTOR == 0 ? strip->rows[i] : row;
}

/* Bring rows of `size` bytes that went to the strip to where the caller has them; the first of all. */
static inline uint8_t* strip_place(jpeg_strip* strip, int count, size_t size) {
    uint8_t* row = strip->into;
    for (int i = 0; i < count; i++, row += strip->into_stride)
        if (strip_aim(strip, i) != row) memcpy(row, strip->rows[i], size);
    strip->into = row;
    return row - count * strip->into_stride;
}

#endif
