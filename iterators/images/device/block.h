/* A block of host memory that becomes a batch on a device: encoded images, and a table of what to do.
 *
 *   device_block | encoded images, growing ->      <- what the device gets, growing | rows of the table
 *
 * Threads take their pieces of both sides without a lock.  What the device gets, the *tail*, is in one piece:
 * tables of weights, images that the processor made, and the rows.
 */
#ifndef ITERATORS_BLOCK_H
#define ITERATORS_BLOCK_H

#include <stdint.h>
#include <string.h>

#include "recordio/counter.h"
#include "resample_kernel.h"

/* Pieces are taken in units, so that one number counts those of both sides. */
enum { BLOCK_UNIT = 64, BLOCK_WINDOW = 256 };

typedef struct {
    int64_t capacity; /* bytes between this and the rows */
    int64_t used;     /* units: of the front in the lower half, of the back in the upper */
    int64_t slots;
    int64_t unused[5];
} device_block;

/* Of a finished table. */
typedef struct {
    int64_t tail, tail_size;      /* what the device gets */
    int64_t rows;                 /* of it, where the rows begin */
    int64_t pixels;               /* bytes of decoded pixels and of results between steps */
    int64_t most[KERNEL_STEPS];   /* pixels of the largest result of every step */
    int32_t jpegs, made, cramped; /* rows of each kind */
} block_layout;

static inline device_row* block_rows(device_block* block) {
    return (device_row*)((uint8_t*)(block + 1) + block->capacity);
}

static inline int64_t block_size(int64_t capacity, int64_t slots) {
    return (int64_t)sizeof(device_block) + capacity + slots * (int64_t)sizeof(device_row);
}

static void block_begin(device_block* block, int64_t capacity, int64_t slots) {
    memset(block, 0, sizeof *block);
    block->capacity = capacity;
    block->slots = slots;
    device_row* rows = block_rows(block);
    memset(rows, 0, (size_t)slots * sizeof *rows);
    for (int64_t i = 0; i < slots; i++) {
        rows[i].slot = (int32_t)i;
        rows[i].to_block = (uint8_t*)&rows[i] - (uint8_t*)block;
    }
}

static inline int64_t block_front(const device_block* block) {
    return (block->used & 0xffffffff) * BLOCK_UNIT;
}

static inline int64_t block_back(const device_block* block) {
    return (block->used >> 32) * BLOCK_UNIT;
}

/* Take bytes of both sides; whether there was room for them.  Places count from the beginning of the block. */
static int block_take(device_block* block, int64_t front, int64_t back, int64_t* front_at, int64_t* back_at) {
    const int64_t here = (front + BLOCK_UNIT - 1) / BLOCK_UNIT, there = (back + BLOCK_UNIT - 1) / BLOCK_UNIT;
    int64_t before = counter_load(&block->used);
    while (!counter_exchange(&block->used, &before, before + (there << 32 | here))) {
    }
    const int64_t fronts = before & 0xffffffff, backs = (before >> 32) + there;
    *front_at = (int64_t)sizeof *block + fronts * BLOCK_UNIT;
    *back_at = (int64_t)sizeof *block + block->capacity - backs * BLOCK_UNIT;
    return (fronts + here + backs) * BLOCK_UNIT <= block->capacity;
}

/* Copy a block, which may be too full, into a larger one. */
static void block_grow(const device_block* old, device_block* grown, int64_t capacity) {
    const int64_t front = block_front(old), back = block_back(old), had = old->capacity;
    const int64_t kept = back < had ? back : had, more = capacity - had;
    block_begin(grown, capacity, old->slots);
    grown->used = old->used;
    memcpy(grown + 1, old + 1, (size_t)(front < had ? front : had));
    memcpy((uint8_t*)(grown + 1) + capacity - kept, (const uint8_t*)(old + 1) + had - kept, (size_t)kept);
    device_row* rows = block_rows(grown);
    memcpy(rows, block_rows((device_block*)old), (size_t)old->slots * sizeof *rows);
    for (int64_t i = 0; i < old->slots; i++) {
        rows[i].to_block += more;
        for (int k = 0; k < rows[i].count; k++) {
            rows[i].steps[k].tables += more;
            rows[i].steps[k].source += rows[i].steps[k].in_tail ? more : 0;
        }
    }
}

static int64_t block_piece(int64_t* used, int64_t size) {
    const int64_t at = *used;
    *used += (size + BLOCK_WINDOW - 1) / BLOCK_WINDOW * BLOCK_WINDOW;
    return at;
}

/* The image, or the part of it, that the device decodes for a row: whole, unless it can leave out the rest. */
static void row_window(const device_row* row, int crops, int* x, int* y, int* width, int* height) {
    *x = *y = 0;
    *width = (row->frame_width + row->denominator - 1) / row->denominator;
    *height = (row->frame_height + row->denominator - 1) / row->denominator;
    if (crops && row->denominator == 1)
        *x = row->x, *y = row->y, *width = row->window_width, *height = row->window_height;
}

/* Say where everything lies on the device; once for a block. */
static void block_lay_out(device_block* block, int channels, int crops, block_layout* layout) {
    device_row* rows = block_rows(block);
    memset(layout, 0, sizeof *layout);
    layout->tail = (int64_t)sizeof *block + block->capacity - block_back(block);
    layout->tail_size = block_size(block->capacity, block->slots) - layout->tail;
    layout->rows = block_back(block);
    for (int64_t i = 0; i < block->slots; i++) {
        device_row* row = &rows[i];
        layout->jpegs += row->kind == ROW_JPEG;
        layout->made += row->kind == ROW_PIXELS;
        layout->cramped += row->kind == ROW_NO_ROOM;
        for (int k = 0; k < row->count; k++) {
            kernel_step* s = &row->steps[k];
            const int64_t pixels = (int64_t)s->width * s->height;
            if (pixels > layout->most[k]) layout->most[k] = pixels;
            s->tables -= layout->tail;
            if (s->in_tail) {
                s->source -= layout->tail;
            } else if (k > 0) {
                s->source += row->steps[k - 1].target;
            } else {
                int x, y, width, height;
                row_window(row, crops, &x, &y, &width, &height);
                s->stride = width * channels;
                row->pixels = block_piece(&layout->pixels, (int64_t)s->stride * height);
                s->source = row->pixels + (int64_t)(row->y - y) * s->stride + (row->x - x) * channels;
            }
            if (k + 1 < row->count) s->target = block_piece(&layout->pixels, pixels * channels);
        }
    }
}

#endif
