/* A separable resampler fed row by row: uint8 pixels in, uint8 pixels out, 1, 3 or 4 channels.
 *
 * It produces what OpenCV's 8-bit resize gives (to the bit, except that cubic is always computed in
 * integers) or, with the methods of filters.h, what Pillow's gives (to the bit), for any window of the
 * target, from rows of the whole image, of a crop, or of an image decoded at a half, a quarter or an
 * eighth.  It never reads outside the crop, never allocates while rows arrive, never touches Python, and
 * gives the same bytes on every machine.
 *
 * Use: resampler_begin, then push the rows of the rectangle that resampler_source names, top down.
 */
#ifndef RECORDIO_RESAMPLE_H
#define RECORDIO_RESAMPLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "filters.h"
#include "premultiply.h"
#include "resample_avx512.h"
#include "resample_rows.h"
#include "resample_simd.h"
#include "resample_tables.h"
#include "simd.h"

/* Row kernels take this many target pixels at a time. */
enum { RESAMPLE_GROUP = 4 };

enum { RESAMPLE_OK = 0, RESAMPLE_NO_MEMORY = -1, RESAMPLE_BAD_ARGUMENT = -2 };

typedef enum {
    RESAMPLE_COPY,  /* nothing to resample: rows are copied */
    RESAMPLE_PICK,  /* nearest */
    RESAMPLE_BLEND, /* two taps, int16 rows */
    RESAMPLE_SUM,   /* four or eight taps, int32 rows */
    RESAMPLE_BOXES, /* area, whole factors */
    RESAMPLE_CELLS, /* area, any factor */
    RESAMPLE_FILTER /* Pillow's filters */
} resample_plan;

/* RESAMPLE_FILTER: the axes, and what the wanted target pixels need of them. */
typedef struct {
    filter_axis x, y;
    int across, down, down_first; /* the passes that there are, and their order */
    int x_first, x_end, x_most, x_pairs;
    int y_first, y_end, y_most, y_pairs;
    int multiplies;  /* colours by alpha */
    int block, room; /* rows that go across at once, and that are kept */
    size_t stride;   /* of the rows that are kept */
    size_t wide;     /* of those that go across at once */
} resample_passes;

typedef struct resampler {
    int level; /* instruction set, see simd.h */
    int channels;
    int taps;
    resample_plan plan;
    int columns, lines;      /* target pixels wanted on each axis */
    int x, y, width, height; /* the source rectangle, in the decoded image */
    int pushed, done;        /* source rows taken, target rows written */
    int factor_x, factor_y;  /* RESAMPLE_BOXES */
    int cell;                /* RESAMPLE_CELLS: next entry of the row list */
    uint8_t* out;
    ptrdiff_t out_stride;

    /* Tables and rows, all inside `memory`. */
    int32_t *x_from, *x_index, *y_from, *y_index;
    int16_t *x_weight, *y_weight, *x_lanes;
    int groups; /* of the tables for AVX-512; 0: they are not used */
    resample_window* x_windows;
    uint8_t* x_indices;
    int16_t* x_pairs;
    float *x_share, *y_share;
    uint8_t* source;                /* the pushed row with slack behind it */
    void* rows[RESAMPLE_MOST_TAPS]; /* row r of the rectangle, resampled across, is rows[r % taps] */
    int32_t* sums;
    float *row_share, *sum_share;
    resample_passes passes; /* RESAMPLE_FILTER, and the rest */
    double* values;
    const uint8_t** taken;         /* rows that make one target row */
    uint8_t *kept, *line, *across; /* rows of the rectangle in turns; a row after the second pass */
    uint8_t *waiting, *turned;     /* rows that go across at once, and the same by columns */

    unsigned char* memory;
    size_t capacity;
} resampler;

static SIMD_UNUSED resampler* resampler_new(void) {
    resampler* r = (resampler*)calloc(1, sizeof *r);
    if (r != NULL) r->level = simd_level(SIMD_LEVEL_AVX512);
    return r;
}

static SIMD_UNUSED void resampler_free(resampler* r) {
    if (r == NULL) return;
    free(r->memory);
    free(r);
}

/* Use at most this instruction set; the result does not change. */
static SIMD_UNUSED void resampler_limit(resampler* r, int level) {
    r->level = simd_level(level);
}

/* Largest of 1, 2, 4, 8 at which the decoded crop is still at least as large as the target. */
static SIMD_UNUSED int resample_denominator(int method, int source_w, int target_w, int source_h,
                                            int target_h) {
    int d = 1;
    if (method == RESAMPLE_NEAREST || method >= FILTER_NEAREST) return 1;
    while (d < 8 && (int64_t)target_w * d * 2 <= source_w && (int64_t)target_h * d * 2 <= source_h)
        d *= 2;
    return d;
}

/* The same by the rule of Pillow's draft: the decoded crop is at least `gap` times as large. */
static SIMD_UNUSED int resample_draft(double gap, int source_w, int target_w, int source_h, int target_h) {
    int d = 1;
    while (d < 8 && target_w * gap * d * 2 <= source_w && target_h * gap * d * 2 <= source_h)
        d *= 2;
    return d;
}

static int resample_axis_valid(const resample_axis* a) {
    const int d = a->denominator;
    return a->source > 0 && a->target > 0 && a->begin >= 0 && a->count > 0 &&
           a->begin <= a->target - a->count && a->origin >= 0 && a->source < (1 << 28) &&
           a->target < (1 << 28) && a->origin < (1 << 28) && a->low >= 0 && a->high >= a->low &&
           a->high <= (float)a->source && (a->high > a->low || a->high == 0) &&
           (d == 1 || ((d == 2 || d == 4 || d == 8) && a->source <= a->stored - a->origin));
}

/* Takes n items of the given size from the block, or only counts them when there is no block yet. */
static void* resample_take(unsigned char* memory, size_t* used, size_t n, size_t size) {
    const size_t at = *used;
    *used += (n * size + 63) & ~(size_t)63;
    return memory == NULL ? NULL : (void*)(memory + at);
}

static int resampler_is_wide(const resampler* r) {
    return (r->plan == RESAMPLE_BLEND || r->plan == RESAMPLE_SUM) && r->channels == 3 &&
           r->level >= SIMD_LEVEL_AVX512;
}

static size_t resampler_lay_out(resampler* r, unsigned char* memory, const resample_geometry* gx,
                                const resample_geometry* gy, int widest) {
    const size_t columns = (size_t)r->columns, lines = (size_t)r->lines, taps = (size_t)r->taps;
    const size_t values = columns * (size_t)r->channels + RESAMPLE_SLACK;
    size_t used = 0;
    r->source =
        (uint8_t*)resample_take(memory, &used, (size_t)widest * (size_t)r->channels + RESAMPLE_SLACK, 1);
    switch (r->plan) {
    case RESAMPLE_COPY:
    case RESAMPLE_PICK:
        r->x_index = (int32_t*)resample_take(memory, &used, columns, sizeof(int32_t));
        r->y_index = (int32_t*)resample_take(memory, &used, lines, sizeof(int32_t));
        break;
    case RESAMPLE_BLEND:
    case RESAMPLE_SUM:
        r->x_index = (int32_t*)resample_take(memory, &used, columns + RESAMPLE_GROUP, sizeof(int32_t));
        r->x_weight =
            (int16_t*)resample_take(memory, &used, (columns + RESAMPLE_GROUP) * taps, sizeof(int16_t));
        r->x_lanes =
            (int16_t*)resample_take(memory, &used, 4 * (columns + RESAMPLE_GROUP) * taps, sizeof(int16_t));
        r->y_index = (int32_t*)resample_take(memory, &used, lines * taps, sizeof(int32_t));
        r->y_weight = (int16_t*)resample_take(memory, &used, lines * taps, sizeof(int16_t));
        if (resampler_is_wide(r)) {
            const size_t groups = (size_t)resample_wide_groups(r->columns);
            const size_t products = (size_t)resample_wide_products(r->taps);
            r->x_windows = (resample_window*)resample_take(memory, &used, groups, sizeof(resample_window));
            r->x_indices = (uint8_t*)resample_take(memory, &used, groups, 2 * products);
            r->x_pairs = (int16_t*)resample_take(memory, &used, groups, products * sizeof(int16_t));
        }
        for (size_t k = 0; k < taps; k++)
            r->rows[k] = resample_take(memory, &used, values, r->plan == RESAMPLE_BLEND ? 2 : 4);
        break;
    case RESAMPLE_BOXES:
        r->sums = (int32_t*)resample_take(memory, &used, values * (size_t)r->factor_x, sizeof(int32_t));
        break;
    case RESAMPLE_FILTER: {
        const resample_passes* p = &r->passes;
        const size_t x_pairs = (size_t)p->x_pairs, y_pairs = (size_t)p->y_pairs;
        const size_t groups = columns + FILTER_GROUP - 1; /* the last group goes on */
        r->x_index = (int32_t*)resample_take(memory, &used, groups, sizeof(int32_t));
        r->x_weight = (int16_t*)resample_take(memory, &used, groups * x_pairs, 4 * sizeof(int16_t));
        r->y_index = (int32_t*)resample_take(memory, &used, lines, sizeof(int32_t));
        r->y_weight = (int16_t*)resample_take(memory, &used, lines * y_pairs, 4 * sizeof(int16_t));
        r->values = (double*)resample_take(
            memory, &used, (size_t)(p->x_most > p->y_most ? p->x_most : p->y_most), sizeof(double));
        r->taken = (const uint8_t**)resample_take(memory, &used, 2 * y_pairs, sizeof(uint8_t*));
        r->kept = (uint8_t*)resample_take(memory, &used, (size_t)p->room, p->stride);
        if (p->block > 1) {
            r->waiting = (uint8_t*)resample_take(memory, &used, (size_t)p->block, p->wide);
            r->turned = (uint8_t*)resample_take(memory, &used, (size_t)p->block, p->wide);
        }
        r->line = (uint8_t*)resample_take(memory, &used, 1, p->stride);
        r->across = (uint8_t*)resample_take(memory, &used, values + FILTER_SLACK, 1);
        break;
    }
    case RESAMPLE_CELLS: {
        const size_t most_x = (size_t)resample_cells_most(gx), most_y = (size_t)resample_cells_most(gy);
        r->x_from = (int32_t*)resample_take(memory, &used, columns + 1, sizeof(int32_t));
        r->x_index = (int32_t*)resample_take(memory, &used, most_x, sizeof(int32_t));
        r->x_share = (float*)resample_take(memory, &used, most_x, sizeof(float));
        r->y_from = (int32_t*)resample_take(memory, &used, lines + 1, sizeof(int32_t));
        r->y_index = (int32_t*)resample_take(memory, &used, most_y, sizeof(int32_t));
        r->y_share = (float*)resample_take(memory, &used, most_y, sizeof(float));
        r->row_share = (float*)resample_take(memory, &used, values, sizeof(float));
        r->sum_share = (float*)resample_take(memory, &used, values, sizeof(float));
        break;
    }
    }
    return used;
}

static int resample_is_whole(const resample_axis* a) {
    return a->high == 0 || (a->low == 0 && a->high == (float)a->source);
}

/* An axis in the words of Pillow. */
static filter_axis resample_filter_axis(const resample_axis* a, const resample_geometry* g) {
    const double d = a->denominator, end = a->high > 0 ? g->shift + a->high / d : g->end;
    const filter_axis axis = {
        (float)(g->shift + a->low / d), (float)end, g->extent, a->target, g->begin, g->count};
    return axis;
}

static int resample_has_pass(const filter_axis* a) {
    return a->target != a->size || a->low != 0 || a->high != (float)a->size;
}

/* What Pillow's filters need; of an axis that stays as it is, the wanted pixels. */
static void resampler_find_passes(resampler* r, int method, const resample_axis* x, const resample_axis* y,
                                  const resample_geometry* gx, const resample_geometry* gy) {
    resample_passes* p = &r->passes;
    const int nearest = method == FILTER_NEAREST;
    size_t widest;
    p->x = resample_filter_axis(x, gx);
    p->y = resample_filter_axis(y, gy);
    if (nearest) return;
    p->across = resample_has_pass(&p->x);
    p->down = resample_has_pass(&p->y);
    p->down_first = p->across && p->down && filter_down_first(&p->x, &p->y);
    p->x_first = x->begin, p->x_end = x->begin + x->count, p->x_most = 1;
    p->y_first = y->begin, p->y_end = y->begin + y->count, p->y_most = 1;
    if (p->across) p->x_most = filter_extent(&p->x, method, &p->x_first, &p->x_end);
    if (p->down) p->y_most = filter_extent(&p->y, method, &p->y_first, &p->y_end);
    p->x_pairs = filter_pairs(p->x_most, r->level, r->channels == 1);
    p->y_pairs = filter_pairs(p->y_most, r->level, 0);
    p->multiplies = r->channels == 4;
    widest = (size_t)(p->down_first || !p->across ? p->x_end - p->x_first : x->count);
    p->stride = (widest * (size_t)r->channels + FILTER_SLACK + 63) & ~(size_t)63;
    p->block = p->across && !p->down_first ? filter_rows(r->level) : 1;
    p->room = 2 * p->y_pairs + p->block - 1;
    p->wide = ((size_t)(p->x_end - p->x_first) * (size_t)r->channels + FILTER_SLACK + 63) & ~(size_t)63;
}

/* Choose the plan that applies; also the whole factors. */
static resample_plan resampler_choose(resampler* r, int method, const resample_axis* x,
                                      const resample_axis* y, const resample_geometry* gx,
                                      const resample_geometry* gy) {
    const double epsilon = 2.220446049250313e-16;
    if (x->source == x->target && y->source == y->target && x->denominator == 1 && y->denominator == 1 &&
        resample_is_whole(x) && resample_is_whole(y))
        return RESAMPLE_COPY;
    if (method == RESAMPLE_NEAREST || method == FILTER_NEAREST) return RESAMPLE_PICK;
    if (method > FILTER_NEAREST) return RESAMPLE_FILTER;
    if (method == RESAMPLE_CUBIC || method == RESAMPLE_LANCZOS4) return RESAMPLE_SUM;
    r->factor_x = resample_floor(gx->scale + 0.5);
    r->factor_y = resample_floor(gy->scale + 0.5);
    const double off_x = gx->scale - r->factor_x, off_y = gy->scale - r->factor_y;
    const int whole = gx->shift == 0 && gy->shift == 0 && off_x < epsilon && off_x > -epsilon &&
                      off_y < epsilon && off_y > -epsilon;
    if (method == RESAMPLE_BILINEAR)
        return whole && r->factor_x == 2 && r->factor_y == 2 ? RESAMPLE_BOXES : RESAMPLE_BLEND;
    if (gx->scale < 1 || gy->scale < 1) return RESAMPLE_BLEND;
    return whole && (int64_t)r->factor_x * r->factor_y <= (1 << 23) ? RESAMPLE_BOXES : RESAMPLE_CELLS;
}

/* Makes the indices count from the smallest one, in units of step; returns it and how many pixels the
   rest spans. */
static int resample_rebase(int32_t* index, int n, int step, int reach, int extent, int* length) {
    int low = index[0], high = index[0];
    for (int i = 1; i < n; i++) {
        if (index[i] < low) low = index[i];
        if (index[i] > high) high = index[i];
    }
    for (int i = 0; i < n; i++)
        index[i] = (index[i] - low) * step;
    *length = (high + reach < extent ? high + reach : extent) - low;
    return low;
}

static void resampler_build(resampler* r, int method, const resample_axis* x, const resample_axis* y,
                            const resample_geometry* gx, const resample_geometry* gy) {
    const int spread = method == RESAMPLE_AREA;
    int n;
    r->x = gx->first;
    r->y = gy->first;
    switch (r->plan) {
    case RESAMPLE_COPY:
        r->x += x->begin, r->width = x->count;
        r->y += y->begin, r->height = y->count;
        break;
    case RESAMPLE_PICK:
        if (method == FILTER_NEAREST) {
            filter_nearest(&r->passes.x, r->x_index);
            filter_nearest(&r->passes.y, r->y_index);
        } else {
            resample_nearest(x, r->x_index);
            resample_nearest(y, r->y_index);
        }
        r->x += resample_rebase(r->x_index, r->columns, r->channels, 1, gx->extent, &r->width);
        r->y += resample_rebase(r->y_index, r->lines, 1, 1, gy->extent, &r->height);
        break;
    case RESAMPLE_BLEND:
    case RESAMPLE_SUM:
        resample_columns(gx, method, spread, r->x_index, r->x_weight);
        resample_lines(gy, method, spread, r->y_index, r->y_weight);
        r->x += resample_rebase(r->x_index, r->columns, r->channels, r->taps, gx->extent, &r->width);
        r->y += resample_rebase(r->y_index, r->lines * r->taps, 1, 1, gy->extent, &r->height);
        if (resampler_is_wide(r))
            r->groups = resample_wide_tables(r->x_index, r->x_weight, r->columns, r->taps,
                                             r->width * r->channels, r->x_windows, r->x_indices, r->x_pairs);
        if (r->level > SIMD_LEVEL_PLAIN && r->groups == 0) { /* the last group repeats a pixel */
            n = r->columns;
            for (int i = n; i < n + RESAMPLE_GROUP; i++)
                r->x_index[i] = r->x_index[n - 1];
            memset(r->x_weight + (ptrdiff_t)n * r->taps, 0,
                   (size_t)(RESAMPLE_GROUP * r->taps) * sizeof(int16_t));
            if (r->channels > 1) resample_lane_weights(r->x_weight, n + RESAMPLE_GROUP, r->taps, r->x_lanes);
        }
        break;
    case RESAMPLE_BOXES:
        r->x += x->begin * r->factor_x, r->width = x->count * r->factor_x;
        r->y += y->begin * r->factor_y, r->height = y->count * r->factor_y;
        break;
    case RESAMPLE_FILTER: {
        const resample_passes* p = &r->passes;
        r->x += p->x_first, r->width = p->x_end - p->x_first;
        r->y += p->y_first, r->height = p->y_end - p->y_first;
        if (p->across)
            filter_table(&p->x, method, r->level, p->x_pairs, p->x_first, p->x_end, r->x_index, r->x_weight,
                         r->values);
        for (int i = 0; p->across && i < r->columns; i++)
            r->x_index[i] *= r->channels;
        for (int i = r->columns; i < r->columns + FILTER_GROUP - 1; i++)
            r->x_index[i] = 0;
        if (p->down)
            filter_table(&p->y, method, r->level, p->y_pairs, p->y_first, p->y_end, r->y_index, r->y_weight,
                         r->values);
        break;
    }
    case RESAMPLE_CELLS:
        n = resample_cells(gx, r->x_from, r->x_index, r->x_share);
        r->x += resample_rebase(r->x_index, n, r->channels, 1, gx->extent, &r->width);
        n = resample_cells(gy, r->y_from, r->y_index, r->y_share);
        r->y += resample_rebase(r->y_index, n, 1, 1, gy->extent, &r->height);
        break;
    }
}

static SIMD_UNUSED int resampler_begin(resampler* r, int method, const resample_axis* x,
                                       const resample_axis* y, int channels, uint8_t* out,
                                       ptrdiff_t out_stride) {
    if (r == NULL || out == NULL || method < RESAMPLE_NEAREST || method > FILTER_LANCZOS ||
        (method > RESAMPLE_LANCZOS4 && method < FILTER_NEAREST) ||
        (channels != 1 && channels != 3 && channels != 4) || !resample_axis_valid(x) ||
        !resample_axis_valid(y))
        return RESAMPLE_BAD_ARGUMENT;
    const resample_geometry gx = resample_geometry_of(x), gy = resample_geometry_of(y);
    r->channels = channels;
    r->taps = resample_taps(method);
    r->columns = x->count;
    r->lines = y->count;
    r->plan = resampler_choose(r, method, x, y, &gx, &gy);
    if (method >= FILTER_NEAREST) resampler_find_passes(r, method, x, y, &gx, &gy);
    const size_t needed = resampler_lay_out(r, NULL, &gx, &gy, gx.extent);
    if (needed > r->capacity) {
        const size_t capacity = needed + needed / 2;
        free(r->memory);
        r->capacity = 0;
        r->memory = (unsigned char*)malloc(capacity);
        if (r->memory == NULL) return RESAMPLE_NO_MEMORY;
        r->capacity = capacity;
    }
    resampler_lay_out(r, r->memory, &gx, &gy, gx.extent);
    r->groups = 0;
    resampler_build(r, method, x, y, &gx, &gy);
    r->out = out;
    r->out_stride = out_stride;
    r->pushed = 0;
    r->done = 0;
    r->cell = 0;
    if (r->plan == RESAMPLE_BOXES) memset(r->sums, 0, (size_t)r->width * (size_t)channels * sizeof(int32_t));
    memset(r->source + (size_t)r->width * (size_t)channels, 0, RESAMPLE_SLACK);
    return RESAMPLE_OK;
}

/* The rectangle of decoded pixels that must be pushed, in the coordinates of the decoded image. */
static SIMD_UNUSED void resampler_source(const resampler* r, int* x, int* y, int* width, int* height) {
    *x = r->x;
    *y = r->y;
    *width = r->width;
    *height = r->height;
}

static uint8_t* resampler_out(const resampler* r) {
    return r->out + r->done * r->out_stride;
}

static void resampler_push_pick(resampler* r, const uint8_t* row, int at) {
    while (r->done < r->lines && r->y_index[r->done] == at) {
        resample_pick(row, r->x_index, r->columns, r->channels, resampler_out(r));
        r->done++;
    }
}

/* Into rows[at % taps].  The source row is copied first so that kernels may read over its end, unless they
   do not. */
static void resampler_across(resampler* r, const uint8_t* row, int at) {
    void* out = r->rows[at % r->taps];
#if SIMD_X86
    if (r->groups > 0) {
        resample_across_avx512(row, r->x_windows, r->x_indices, r->x_pairs, r->groups, r->taps, out);
        return;
    }
#endif
    memcpy(r->source, row, (size_t)r->width * (size_t)r->channels);
    if (r->plan == RESAMPLE_BLEND)
        resample_across_bilinear_at(r->level, r->source, r->x_index, r->x_weight, r->x_lanes, r->columns,
                                    r->channels, (int16_t*)out);
    else
        resample_across_taps_at(r->level, r->source, r->x_index, r->x_weight, r->x_lanes, r->columns,
                                r->channels, r->taps, (int32_t*)out);
}

static void resampler_push_blend(resampler* r, const uint8_t* row, int at) {
    if (at < r->y_index[(ptrdiff_t)r->done * 2]) return; /* between the rows of two target rows */
    resampler_across(r, row, at);
    while (r->done < r->lines) {
        const int32_t* index = r->y_index + (ptrdiff_t)r->done * 2;
        if (index[1] > at) break;
        resample_down_bilinear_at(r->level, (const int16_t*)r->rows[index[0] % 2],
                                  (const int16_t*)r->rows[index[1] % 2], r->y_weight + (ptrdiff_t)r->done * 2,
                                  r->columns * r->channels, resampler_out(r));
        r->done++;
    }
}

static void resampler_push_sum(resampler* r, const uint8_t* row, int at) {
    const int taps = r->taps;
    if (at < r->y_index[(ptrdiff_t)r->done * taps]) return;
    resampler_across(r, row, at);
    while (r->done < r->lines) {
        const int32_t* index = r->y_index + (ptrdiff_t)r->done * taps;
        const int32_t* rows[RESAMPLE_MOST_TAPS];
        if (index[taps - 1] > at) break;
        for (int k = 0; k < taps; k++)
            rows[k] = (const int32_t*)r->rows[index[k] % taps];
        resample_down_taps_at(r->level, rows, r->y_weight + (ptrdiff_t)r->done * taps, taps,
                              r->columns * r->channels, resampler_out(r));
        r->done++;
    }
}

static void resampler_push_boxes(resampler* r, const uint8_t* row, int at) {
    const int n = r->width * r->channels;
    if (r->factor_x == 2 && r->factor_y == 2) {
        if (at % 2 == 0) {
            memcpy(r->source, row, (size_t)n);
        } else {
            resample_halve_at(r->level, r->source, row, r->columns, r->channels, resampler_out(r));
            r->done++;
        }
        return;
    }
    resample_add_row_at(r->level, row, n, r->sums);
    if ((at + 1) % r->factor_y == 0) {
        resample_finish_boxes_at(r->level, r->sums, r->columns, r->channels, r->factor_x, r->factor_y,
                                 resampler_out(r));
        memset(r->sums, 0, (size_t)n * sizeof(int32_t));
        r->done++;
    }
}

static void resampler_push_cells(resampler* r, const uint8_t* row, int at) {
    const int n = r->columns * r->channels;
    if (r->y_index[r->cell] != at) return;
    memcpy(r->source, row, (size_t)r->width * (size_t)r->channels);
    resample_across_cells_at(r->level, r->source, r->x_from, r->x_index, r->x_share, r->columns, r->channels,
                             r->row_share);
    while (r->done < r->lines && r->y_index[r->cell] == at) { /* the end of one cell, the start of the next */
        if (r->cell == r->y_from[r->done]) memset(r->sum_share, 0, (size_t)n * sizeof(float));
        resample_add_scaled_at(r->level, r->row_share, r->y_share[r->cell], n, r->sum_share);
        if (++r->cell == r->y_from[r->done + 1]) {
            resample_finish_cells_at(r->level, r->sum_share, n, resampler_out(r));
            r->done++;
        }
    }
}

/* A row that may be read beyond its end. */
static void resampler_load(const resampler* r, const uint8_t* row, uint8_t* to) {
    if (r->passes.multiplies)
        premultiply(row, r->width, to);
    else
        memcpy(to, row, (size_t)r->width * (size_t)r->channels);
}

static uint8_t* resampler_kept(const resampler* r, int row) {
    return r->kept + (size_t)(row % r->passes.room) * r->passes.stride;
}

/* Writes one target row, made of the rows that are kept. */
static void resampler_filter_row(resampler* r) {
    const resample_passes* p = &r->passes;
    const int n = (p->down_first || !p->across ? r->width : r->columns) * r->channels;
    const uint8_t* line = resampler_kept(r, r->done);
    if (p->down) {
        const int first = r->y_index[r->done];
        for (int k = 0; k < 2 * p->y_pairs; k++)
            r->taken[k] = resampler_kept(r, first + k < r->height ? first + k : r->height - 1);
        filter_down_at(r->level, r->taken, r->y_weight + 4 * (ptrdiff_t)r->done * p->y_pairs, p->y_pairs, n,
                       r->line);
        line = r->line;
    }
    if (p->down_first) {
        filter_across_at(r->level, line, r->x_index, r->x_weight, p->x_pairs, r->columns, r->channels,
                         r->across);
        line = r->across;
    }
    if (p->multiplies)
        unpremultiply(line, r->columns, resampler_out(r));
    else
        memcpy(resampler_out(r), line, (size_t)r->columns * (size_t)r->channels);
}

/* The rows that wait, the last of which is number `at`, into those that are kept. */
static void resampler_filter_block(resampler* r, int at) {
    const resample_passes* p = &r->passes;
    const int count = at % p->block + 1;
    uint8_t* out[FILTER_ROWS];
    for (int k = 0; k < FILTER_ROWS; k++)
        out[k] = k < count ? resampler_kept(r, at - count + 1 + k) : r->line; /* of no account */
#if SIMD_X86
    if (count > FILTER_ROWS / 4) {
        filter_across_rows_avx2(r->waiting, p->wide, r->x_index, r->x_weight, p->x_pairs, r->columns,
                                r->channels, r->turned, out);
        return;
    }
#endif
    for (int k = 0; k < count; k++)
        filter_across_at(r->level, r->waiting + (size_t)k * p->wide, r->x_index, r->x_weight, p->x_pairs,
                         r->columns, r->channels, out[k]);
}

static void resampler_push_filter(resampler* r, const uint8_t* row, int at) {
    const resample_passes* p = &r->passes;
    if (p->block > 1) {
        resampler_load(r, row, r->waiting + (size_t)(at % p->block) * p->wide);
        if (at % p->block < p->block - 1 && at < r->height - 1) return;
        resampler_filter_block(r, at);
    } else if (p->across && !p->down_first) {
        resampler_load(r, row, r->source);
        filter_across_at(r->level, r->source, r->x_index, r->x_weight, p->x_pairs, r->columns, r->channels,
                         resampler_kept(r, at));
    } else {
        resampler_load(r, row, resampler_kept(r, at));
    }
    while (r->done < r->lines) {
        const int end = p->down ? r->y_index[r->done] + 2 * p->y_pairs : r->done + 1;
        if ((end < r->height ? end : r->height) - 1 > at) return;
        resampler_filter_row(r);
        r->done++;
    }
}

/* Takes the next row of the rectangle; returns how many target rows are complete. */
static SIMD_UNUSED int resampler_push(resampler* r, const uint8_t* row) {
    const int at = r->pushed;
    if (r->done == r->lines) return r->done;
    r->pushed++;
    switch (r->plan) {
    case RESAMPLE_COPY:
        memcpy(resampler_out(r), row, (size_t)r->width * (size_t)r->channels);
        r->done++;
        break;
    case RESAMPLE_PICK:
        resampler_push_pick(r, row, at);
        break;
    case RESAMPLE_BLEND:
        resampler_push_blend(r, row, at);
        break;
    case RESAMPLE_SUM:
        resampler_push_sum(r, row, at);
        break;
    case RESAMPLE_BOXES:
        resampler_push_boxes(r, row, at);
        break;
    case RESAMPLE_FILTER:
        resampler_push_filter(r, row, at);
        break;
    case RESAMPLE_CELLS:
        resampler_push_cells(r, row, at);
        break;
    }
    return r->done;
}

#endif
