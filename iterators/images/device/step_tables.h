/* The tables that the device's kernel resamples by, made with the functions of the image stage's resampler. */
#ifndef ITERATORS_STEP_TABLES_H
#define ITERATORS_STEP_TABLES_H

#include <stdint.h>
#include <stdlib.h>

#include "recordio/kernels/resample.h"
#include "resample_kernel.h"

/* A resize before its tables are written. */
typedef struct {
    int method;
    resample_axis horizontal, vertical;
    resample_geometry gx, gy;
    resampler plan; /* without memory: what `resampler_begin` chooses */
} planned_step;

/* Choose the mode and the sizes of a step; returns how many numbers its tables have, or -1 if the kernel has
 * nothing for it.  The axes are filled in. */
static int64_t plan_step(planned_step* p, int channels, kernel_step* s) {
    resampler* r = &p->plan;
    if (!resample_axis_valid(&p->horizontal) || !resample_axis_valid(&p->vertical)) return -1;
    memset(r, 0, sizeof *r);
    p->gx = resample_geometry_of(&p->horizontal);
    p->gy = resample_geometry_of(&p->vertical);
    r->channels = channels;
    r->plan = resampler_choose(r, p->method, &p->horizontal, &p->vertical, &p->gx, &p->gy);
    s->width = p->horizontal.count;
    s->height = p->vertical.count;
    s->taps_x = s->taps_y = resample_taps(p->method);
    if (r->plan == RESAMPLE_COPY) {
        s->mode = KERNEL_COPY;
        return 0;
    }
    if (r->plan == RESAMPLE_BOXES && r->factor_x == 2 && r->factor_y == 2 && p->method == RESAMPLE_BILINEAR) {
        s->mode = KERNEL_HALVE;
        return 0;
    }
    if (r->plan == RESAMPLE_FILTER) {
        resampler_find_passes(r, p->method, &p->horizontal, &p->vertical, &p->gx, &p->gy);
        s->mode = r->passes.down_first ? KERNEL_FILTER_DOWN : KERNEL_FILTER;
        s->taps_x = r->passes.x_most;
        s->taps_y = r->passes.y_most;
    } else if (p->method == RESAMPLE_BILINEAR || r->plan == RESAMPLE_SUM) {
        s->mode = r->plan == RESAMPLE_SUM ? KERNEL_SUM : KERNEL_BLEND;
    } else {
        return -1;
    }
    return (int64_t)s->width * (1 + s->taps_x) + (int64_t)s->height * (1 + s->taps_y);
}

/* Positions and weights of OpenCV's kernels.  Weights beyond an edge are added to its column's, but rows are
 * taken again there, as their products are rounded one by one. */
static void write_taps(const resample_geometry* g, int method, int is_column, int taps, int32_t* first,
                       int32_t* weights) {
    int16_t own[RESAMPLE_MOST_TAPS];
    for (int i = 0; i < g->count; i++) {
        resample_geometry one = *g;
        one.begin += i;
        one.count = 1;
        if (is_column)
            resample_columns(&one, method, 0, &first[i], own);
        else
            first[i] = resample_weights(g, method, 0, one.begin, own);
        for (int k = 0; k < taps; k++)
            weights[i * taps + k] = own[k];
    }
}

/* The same of Pillow's filters, on an axis that has a pass; 0, or -1 without memory. */
static int write_filter(const filter_axis* axis, int method, int has_pass, int taps, int32_t* first,
                        int32_t* weights) {
    double* values = (double*)malloc((size_t)taps * sizeof *values);
    if (values == NULL) return -1;
    for (int i = 0; i < axis->count; i++) {
        int used = 1;
        first[i] = axis->begin + i;
        values[0] = 1 << FILTER_BITS;
        if (has_pass) used = filter_weights(axis, method, axis->begin + i, values, &first[i]);
        for (int k = 0; k < taps; k++)
            weights[i * taps + k] = k < used ? (int32_t)values[k] : 0;
    }
    free(values);
    return 0;
}

/* Count positions from the first pixel that is needed; returns it, and how many are. */
static int rebase_axis(int32_t* first, int count, int taps, int extent, int32_t* needed) {
    int low = extent - 1, high = 0;
    for (int i = 0; i < count; i++) {
        const int from = resample_clamp(first[i], 0, extent - 1);
        const int to = resample_clamp(first[i] + taps - 1, 0, extent - 1);
        low = from < low ? from : low;
        high = to > high ? to : high;
    }
    for (int i = 0; i < count; i++)
        first[i] -= low;
    *needed = high - low + 1;
    return low;
}

/* Write the tables of a planned step, and find the window of the source that it reads, which begins at (x, y);
 * 0, or -1 without memory. */
static int write_step(const planned_step* p, kernel_step* s, int32_t* tables, int* x, int* y) {
    const resample_passes* passes = &p->plan.passes;
    const int factor = s->mode == KERNEL_HALVE ? 2 : 1;
    int32_t *across = tables + s->width, *lines = across + (int64_t)s->width * s->taps_x;
    int32_t* down = lines + s->height;
    *x = p->gx.first + p->horizontal.begin * factor;
    *y = p->gy.first + p->vertical.begin * factor;
    s->columns = s->width * factor;
    s->lines = s->height * factor;
    if (s->mode == KERNEL_COPY || s->mode == KERNEL_HALVE) return 0;
    if (s->mode == KERNEL_BLEND || s->mode == KERNEL_SUM) {
        write_taps(&p->gx, p->method, 1, s->taps_x, tables, across);
        write_taps(&p->gy, p->method, 0, s->taps_y, lines, down);
    } else if (write_filter(&passes->x, p->method, passes->across, s->taps_x, tables, across) ||
               write_filter(&passes->y, p->method, passes->down, s->taps_y, lines, down)) {
        return -1;
    }
    *x = p->gx.first + rebase_axis(tables, s->width, s->taps_x, p->gx.extent, &s->columns);
    *y = p->gy.first + rebase_axis(lines, s->height, s->taps_y, p->gy.extent, &s->lines);
    return 0;
}

#endif
