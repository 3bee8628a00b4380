/* The one kernel of `decode_on="device"`: a table of images becomes a batch.
 *
 * Each row of the table has the steps from decoded pixels to a slot: windows of resized images, by the tables
 * of weights that the processor made with the image stage's own functions (step_tables.h).  All sums are of
 * integers, so the grey levels are the stage's; normalising is three operations of float32, which must not be
 * fused.  A step before the last one leaves grey levels for the next launch, the last one writes the slot.
 *
 * nvrtc compiles this file for a device, with every function on the device, and the C compiler for tests.
 */
#ifndef ITERATORS_RESAMPLE_KERNEL_H
#define ITERATORS_RESAMPLE_KERNEL_H

#include "recordio/kernels/half.h"

enum { KERNEL_STEPS = 3, KERNEL_WEIGHT_BITS = 11, KERNEL_FILTER_BITS = 22, KERNEL_BLOCK = 256 };

typedef enum {
    KERNEL_COPY,       /* the pixel itself */
    KERNEL_HALVE,      /* the mean of four */
    KERNEL_BLEND,      /* OpenCV's bilinear, and its rounding */
    KERNEL_SUM,        /* OpenCV's other kernels */
    KERNEL_FILTER,     /* Pillow's: across, rounded, then down */
    KERNEL_FILTER_DOWN /* down first */
} kernel_mode;

typedef enum { KERNEL_FLOAT32, KERNEL_UINT8, KERNEL_FLOAT16, KERNEL_BFLOAT16 } kernel_type;

/* From a window of packed pixels to the next one.  The numbers at `tables`: the first source column of every
 * target column, their weights, then the same of the rows; columns and rows beyond the window are its last. */
typedef struct {
    int64_t source; /* bytes in front of the window, in the tail of the block or in the decoded pixels */
    int64_t target; /* of the result, in the decoded pixels; not of the last step */
    int64_t tables; /* in the tail */
    int32_t in_tail, mode;
    int32_t stride;         /* bytes of a row of the source */
    int32_t columns, lines; /* of the window */
    int32_t width, height;  /* of the result */
    int32_t taps_x, taps_y;
    int32_t unused;
} kernel_step;

typedef enum {
    ROW_EMPTY,   /* nothing is written to the slot */
    ROW_PIXELS,  /* the processor has made the image */
    ROW_JPEG,    /* the device decodes it */
    ROW_REFUSED, /* the device was to, and would not */
    ROW_NO_ROOM  /* the block was too small */
} row_kind;

/* One image.  The kernel needs only the steps and what follows them. */
typedef struct {
    kernel_step steps[KERNEL_STEPS];
    int32_t count; /* of the steps */
    int32_t mirror, flip;
    int32_t slot;
    int32_t kind;
    int32_t denominator;                       /* 1, 2, 4 or 8 */
    int32_t frame_width, frame_height;         /* as stored */
    int32_t x, y, window_width, window_height; /* what is needed of the image at 1/denominator */
    int64_t content, size;                     /* the encoded image, in the block */
    int64_t pixels;                            /* where it is decoded to, in the decoded pixels */
    int64_t to_block;                          /* bytes from the beginning of the block to this row */
} device_row;

/* What is the same for all slots; strides count elements. */
typedef struct {
    int64_t slot, row, pixel, channel;
    int32_t channels, width, height, type;
    float mean[4], factor[4];
} kernel_batch;

static inline int kernel_within(int at, int count) {
    return at < 0 ? 0 : at < count ? at : count - 1;
}

static inline uint8_t kernel_saturate(int value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline int kernel_round(uint32_t sum) {
    return kernel_saturate((int32_t)(sum + (1u << (KERNEL_FILTER_BITS - 1))) >> KERNEL_FILTER_BITS);
}

/* Some neighbours of a row or a column, `step` bytes apart, by their weights. */
static inline int32_t kernel_sum(const uint8_t* line, int step, int first, int count, const int32_t* weights,
                                 int taps) {
    uint32_t sum = 0;
    for (int k = 0; k < taps; k++)
        sum += (uint32_t)line[(int64_t)kernel_within(first + k, count) * step] * (uint32_t)weights[k];
    return (int32_t)sum;
}

/* One value of the result of a step. */
static inline uint8_t kernel_value(const kernel_step* s, const uint8_t* source, const int32_t* tables,
                                   int channels, int x, int y, int c) {
    const int stride = s->stride;
    source += c;
    if (s->mode == KERNEL_COPY) return source[(int64_t)y * stride + x * channels];
    if (s->mode == KERNEL_HALVE) {
        const uint8_t *a = source + (int64_t)(2 * y) * stride + 2 * x * channels, *b = a + stride;
        return (uint8_t)((a[0] + a[channels] + b[0] + b[channels] + 2) >> 2);
    }
    const int32_t *columns = tables, *across = columns + s->width + x * s->taps_x;
    const int32_t *lines = tables + s->width * (1 + s->taps_x), *down = lines + s->height + y * s->taps_y;
    const int column = columns[x], line = lines[y];
    uint32_t sum = 0;
    if (s->mode == KERNEL_FILTER_DOWN) {
        for (int k = 0; k < s->taps_x; k++) {
            const uint8_t* from = source + kernel_within(column + k, s->columns) * channels;
            const int32_t value = kernel_sum(from, stride, line, s->lines, down, s->taps_y);
            sum += (uint32_t)kernel_round((uint32_t)value) * (uint32_t)across[k];
        }
        return (uint8_t)kernel_round(sum);
    }
    for (int k = 0; k < s->taps_y; k++) {
        const uint8_t* from = source + (int64_t)kernel_within(line + k, s->lines) * stride;
        const int32_t value = kernel_sum(from, channels, column, s->columns, across, s->taps_x);
        if (s->mode == KERNEL_BLEND)
            sum += (uint32_t)((down[k] * (value >> 4)) >> 16);
        else if (s->mode == KERNEL_SUM)
            sum += (uint32_t)value * (uint32_t)down[k];
        else
            sum += (uint32_t)kernel_round((uint32_t)value) * (uint32_t)down[k];
    }
    if (s->mode == KERNEL_BLEND) return (uint8_t)((sum + 2) >> 2);
    if (s->mode == KERNEL_FILTER) return (uint8_t)kernel_round(sum);
    return kernel_saturate((int32_t)(sum + (1u << (2 * KERNEL_WEIGHT_BITS - 1))) >> (2 * KERNEL_WEIGHT_BITS));
}

static inline void kernel_store(const kernel_batch* batch, int c, uint8_t pixel, void* out, int64_t at) {
    const float value = ((float)pixel - batch->mean[c]) * batch->factor[c];
    if (batch->type == KERNEL_UINT8)
        ((uint8_t*)out)[at] = pixel;
    else if (batch->type == KERNEL_FLOAT32)
        ((float*)out)[at] = value;
    else
        ((uint16_t*)out)[at] = batch->type == KERNEL_FLOAT16 ? normalise_half(value) : normalise_brain(value);
}

/* Pixel number `at` of the result of step number `pass` of one image. */
static inline void kernel_pixel(const device_row* row, const uint8_t* tail, uint8_t* pixels, void* out,
                                const kernel_batch* batch, int pass, int at) {
    if (pass >= row->count) return;
    const kernel_step* s = &row->steps[pass];
    if (at >= s->width * s->height) return;
    const int x = at % s->width, y = at / s->width, channels = batch->channels;
    const uint8_t* source = (s->in_tail ? tail : pixels) + s->source;
    const int32_t* tables = (const int32_t*)(tail + s->tables);
    for (int c = 0; c < channels; c++) {
        const uint8_t value = kernel_value(s, source, tables, channels, x, y, c);
        if (pass + 1 < row->count)
            pixels[s->target + (int64_t)at * channels + c] = value;
        else
            kernel_store(batch, c, value, out,
                         row->slot * batch->slot + c * batch->channel +
                             (row->flip ? s->height - 1 - y : y) * batch->row +
                             (row->mirror ? s->width - 1 - x : x) * batch->pixel);
    }
}

#ifdef __CUDACC_RTC__
extern "C" __global__ void resample_kernel(const device_row* rows, const uint8_t* tail, uint8_t* pixels,
                                           void* out, kernel_batch batch, int pass) {
    kernel_pixel(&rows[blockIdx.y], tail, pixels, out, &batch, pass, blockIdx.x * KERNEL_BLOCK + threadIdx.x);
}
#endif

#endif
