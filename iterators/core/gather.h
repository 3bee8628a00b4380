/* Rows of a table, picked by number, to the rows of another one: the inner loops of `gather.pyx`. */
#ifndef ITERATORS_GATHER_H
#define ITERATORS_GATHER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define GATHER_PREFETCH(address) __builtin_prefetch(address, 0, 3)
#else
#define GATHER_PREFETCH(address) ((void)(address))
#endif

enum {
    GATHER_LINE = 64,       /* bytes of a cache line */
    GATHER_AHEAD = 2048,    /* bytes to ask for before they are needed */
    GATHER_WHOLE = 16       /* rows of up to so many lines are asked for completely */
};

/* Ask for the row that comes about GATHER_AHEAD bytes later: the processor cannot guess it. */
static inline void gather_ask(const uint8_t *source, ptrdiff_t stride, size_t row_bytes,
                              const int64_t *rows, ptrdiff_t i, ptrdiff_t count) {
    ptrdiff_t ahead = row_bytes < GATHER_AHEAD ? GATHER_AHEAD / (ptrdiff_t)(row_bytes + 1) + 1 : 1;
    const uint8_t *row;
    size_t at, end;
    if (i + ahead >= count)
        return;
    row = source + rows[i + ahead] * stride;
    end = row_bytes < GATHER_WHOLE * GATHER_LINE ? row_bytes : GATHER_WHOLE * GATHER_LINE;
    for (at = 0; at < end; at += GATHER_LINE)
        GATHER_PREFETCH(row + at);
}

/* Neighbouring rows that are wanted one after the other are copied at once. */
static void gather_copy(const uint8_t *source, ptrdiff_t stride, size_t row_bytes,
                        const int64_t *rows, ptrdiff_t count, uint8_t *target) {
    ptrdiff_t i = 0, run;
    while (i < count) {
        run = 1;
        if (stride == (ptrdiff_t)row_bytes)
            while (i + run < count && rows[i + run] == rows[i] + run)
                run++;
        gather_ask(source, stride, row_bytes, rows, i + run - 1, count);
        memcpy(target, source + rows[i] * stride, (size_t)run * row_bytes);
        target += (size_t)run * row_bytes;
        i += run;
    }
}

static void gather_scale(const uint8_t *source, ptrdiff_t stride, size_t columns,
                         const int64_t *rows, ptrdiff_t count, float factor, float *target) {
    ptrdiff_t i;
    size_t j;
    for (i = 0; i < count; i++) {
        const uint8_t *row = source + rows[i] * stride;
        gather_ask(source, stride, columns, rows, i, count);
        for (j = 0; j < columns; j++)
            target[j] = (float)row[j] * factor;
        target += columns;
    }
}

#endif
