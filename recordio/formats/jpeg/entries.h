/* Entry points: where MCUs of a sequential JPEG image begin in its scan, noted when it was decoded before.
 *
 * A point is the position of the next bit and the DC coefficients from which the next ones differ: with
 * them a decoder can begin there, as it can behind a restart marker.  Points lie on a grid of rows and columns
 * of MCUs that follows from the size of the image and of its scan, so that only their number is kept.  Columns
 * are denser on the left, where random crops begin.
 *
 * An `entry_store` has the points of all records of a pack, packed into as few bits as they need, and a mark
 * by which an image is recognised: points of anything else are as good as none.  Its functions may be called
 * by several threads at once.
 */
#ifndef ITERATORS_JPEG_ENTRIES_H
#define ITERATORS_JPEG_ENTRIES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recordio/sync.h"

enum {
    ENTRY_MOST = 2048, /* points of an image */
    ENTRY_COLUMNS = 8, /* of the grid, at most */
    ENTRY_COMPONENTS = 3,
    ENTRY_SHARE = 250, /* an image of this many bytes may have one byte of points, as a rule */
    ENTRY_BITS = 36,   /* of a point, as a rule */
    ENTRY_LOCKS = 16,
    ENTRY_HEAD = 4 + 2 + 1 + 1 + ENTRY_COMPONENTS, /* bytes: mark, count, thinning, bits of each number */
    ENTRY_THINNEST = 8
};

typedef struct {
    uint32_t at; /* bits from the start of the scan, as they lie in the file */
    int16_t dc[ENTRY_COMPONENTS];
} entry_point;

/* Where points are: in every `row_step`-th row of MCUs, at these columns, the first of which is 0. */
typedef struct {
    int mcus_per_row, mcu_rows, row_step, per_row, total;
    int columns[ENTRY_COLUMNS];
} entry_grid;

/* The points of an image that are known: from the first on, without a gap. */
typedef struct {
    uint32_t mark;
    int count;
    int thin; /* how often every second row of the grid was left out, because its points took too much */
    entry_point points[ENTRY_MOST];
} entry_points;

/* ---- the grid ---- */

/* At most as many points as the size of the image allows: one byte for `share` of its own. */
static inline void entry_plan(entry_grid* grid, int mcus_per_row, int mcu_rows, size_t image_bytes,
                              int share) {
    /* Of 1000: columns at 0.6 * (j / count) ^ 1.5 of the width. */
    static const uint16_t positions[ENTRY_COLUMNS][ENTRY_COLUMNS] = {
        {0},
        {0, 212},
        {0, 115, 327},
        {0, 75, 212, 390},
        {0, 54, 152, 279, 429},
        {0, 41, 115, 212, 327, 456},
        {0, 32, 92, 168, 259, 362, 476},
        {0, 27, 75, 138, 212, 296, 390, 491},
    };
    const uint64_t allowed = (uint64_t)image_bytes / (uint64_t)share;
    const uint64_t packed = allowed > ENTRY_HEAD ? (allowed - ENTRY_HEAD) * 8 / ENTRY_BITS : 0;
    const int most = packed < ENTRY_MOST ? (int)packed : ENTRY_MOST;
    int i, per_row = most / mcu_rows;
    grid->mcus_per_row = mcus_per_row;
    grid->mcu_rows = mcu_rows;
    grid->row_step = per_row < 1 && most > 0 ? (mcu_rows + most - 1) / most : 1;
    per_row = per_row < 1 ? 1 : per_row > ENTRY_COLUMNS ? ENTRY_COLUMNS : per_row;
    grid->columns[0] = 0;
    for (i = 1; i < per_row; i++) {
        grid->columns[i] = (int)((int64_t)mcus_per_row * positions[per_row - 1][i] / 1000);
        if (grid->columns[i] > grid->columns[i - 1]) continue;
        per_row--; /* too narrow for so many */
        i = 0;
    }
    grid->per_row = per_row;
    grid->total = most > 0 ? (mcu_rows + grid->row_step - 1) / grid->row_step * per_row : 0;
}

/* The grid of points that were thinned. */
static inline void entry_thin_grid(entry_grid* grid, int thin) {
    if (thin == 0) return;
    grid->row_step <<= thin;
    grid->total = (grid->mcu_rows + grid->row_step - 1) / grid->row_step * grid->per_row;
}

/* Leave out every second row. */
static inline void entry_thin(entry_points* points, const entry_grid* grid) {
    int i, kept = 0;
    for (i = 0; i < points->count; i++)
        if (i / grid->per_row % 2 == 0) points->points[kept++] = points->points[i];
    points->count = kept;
    points->thin++;
}

/* The MCU at which a point is. */
static inline uint64_t entry_mcu(const entry_grid* grid, int number) {
    const uint64_t row = (uint64_t)(number / grid->per_row) * (uint64_t)grid->row_step;
    return row * (uint64_t)grid->mcus_per_row + (uint64_t)grid->columns[number % grid->per_row];
}

/* The last point that is not behind an MCU. */
static inline int entry_before(const entry_grid* grid, uint64_t mcu) {
    const int row = (int)(mcu / (uint64_t)grid->mcus_per_row);
    const int column = (int)(mcu % (uint64_t)grid->mcus_per_row);
    int i = grid->per_row - 1;
    if (row % grid->row_step == 0)
        while (grid->columns[i] > column)
            i--;
    return row / grid->row_step * grid->per_row + i;
}

/* By what the image is recognised: bytes at both ends of its scan, and sizes. */
static inline uint32_t entry_mark(const entry_grid* grid, const uint8_t* scan, size_t size) {
    const size_t ends = size < 32 ? size : 32;
    uint32_t mark = 2166136261u;
    uint64_t numbers[3];
    size_t i;
    numbers[0] = size;
    numbers[1] = (uint64_t)grid->mcus_per_row << 32 | (uint32_t)grid->total;
    numbers[2] = (uint64_t)grid->per_row << 32 | (uint32_t)grid->row_step;
    for (i = 0; i < ends; i++)
        mark = (mark ^ scan[i]) * 16777619u;
    for (i = size - ends; i < size; i++)
        mark = (mark ^ scan[i]) * 16777619u;
    for (i = 0; i < 24; i++)
        mark = (mark ^ (uint8_t)(numbers[i >> 3] >> (i & 7) * 8)) * 16777619u;
    return mark;
}

/* ---- packed points: mark, count, thinning, the bits of each kind of number, and the numbers ---- */

static inline int entry_width(uint32_t number) {
    int bits = 0;
    for (; number > 0; number >>= 1)
        bits++;
    return bits;
}

/* Differences to the point before; signs in the lowest bit. */
static inline uint32_t entry_difference(const entry_point* point, const entry_point* before, int kind) {
    int32_t change;
    if (kind == 0) return point->at - before->at;
    change = point->dc[kind - 1] - before->dc[kind - 1];
    return (uint32_t)change << 1 ^ (uint32_t)(change >> 31);
}

/* Pack into new memory; its size, or 0 without memory. */
static inline size_t entry_pack(const entry_points* points, uint8_t** packed) {
    static const entry_point zero = {0, {0, 0, 0}};
    uint32_t most[1 + ENTRY_COMPONENTS] = {0};
    int bits[1 + ENTRY_COMPONENTS], all = 0, i, kind;
    uint64_t at = 0;
    size_t size;
    uint8_t* to;
    for (i = 0; i < points->count; i++)
        for (kind = 0; kind <= ENTRY_COMPONENTS; kind++)
            most[kind] |= entry_difference(&points->points[i], i ? &points->points[i - 1] : &zero, kind);
    for (kind = 0; kind <= ENTRY_COMPONENTS; kind++)
        all += bits[kind] = entry_width(most[kind]);
    size = ENTRY_HEAD + ((size_t)all * (size_t)points->count + 7) / 8;
    *packed = to = calloc(1, size);
    if (to == NULL) return 0;
    for (i = 0; i < 4; i++)
        to[i] = (uint8_t)(points->mark >> 8 * i);
    to[4] = (uint8_t)points->count;
    to[5] = (uint8_t)(points->count >> 8);
    to[6] = (uint8_t)points->thin;
    for (kind = 0; kind <= ENTRY_COMPONENTS; kind++)
        to[7 + kind] = (uint8_t)bits[kind];
    to += ENTRY_HEAD;
    for (i = 0; i < points->count; i++)
        for (kind = 0; kind <= ENTRY_COMPONENTS; kind++) {
            const uint32_t value =
                entry_difference(&points->points[i], i ? &points->points[i - 1] : &zero, kind);
            int bit;
            for (bit = 0; bit < bits[kind];) {
                to[at >> 3] |= (uint8_t)(value >> bit << (at & 7));
                const int step = 8 - (int)(at & 7) < bits[kind] - bit ? 8 - (int)(at & 7) : bits[kind] - bit;
                bit += step;
                at += (uint64_t)step;
            }
        }
    return size;
}

/* The mark and the points; 0 if these bytes are not what entry_pack makes. */
static inline int entry_unpack(const uint8_t* packed, size_t size, entry_points* points) {
    entry_point last = {0, {0, 0, 0}};
    int all = 0, i, kind;
    uint64_t at = 0;
    const uint8_t* from = packed + ENTRY_HEAD;
    points->count = points->thin = 0;
    if (size < ENTRY_HEAD || packed[6] > ENTRY_THINNEST) return 0;
    points->mark = (uint32_t)packed[0] | (uint32_t)packed[1] << 8 | (uint32_t)packed[2] << 16 |
                   (uint32_t)packed[3] << 24;
    i = packed[4] | packed[5] << 8;
    for (kind = 0; kind <= ENTRY_COMPONENTS; kind++) {
        if (packed[7 + kind] > (kind ? 17 : 32)) return 0;
        all += packed[7 + kind];
    }
    if (i > ENTRY_MOST || size != ENTRY_HEAD + ((size_t)all * (size_t)i + 7) / 8) return 0;
    points->count = i;
    points->thin = packed[6];
    for (i = 0; i < points->count; i++) {
        for (kind = 0; kind <= ENTRY_COMPONENTS; kind++) {
            const int bits = packed[7 + kind];
            uint32_t value = 0;
            int bit;
            for (bit = 0; bit < bits;) {
                const int step = 8 - (int)(at & 7) < bits - bit ? 8 - (int)(at & 7) : bits - bit;
                value |= ((uint32_t)from[at >> 3] >> (at & 7) & ((1u << step) - 1)) << bit;
                bit += step;
                at += (uint64_t)step;
            }
            if (kind == 0)
                last.at += value;
            else
                last.dc[kind - 1] = (int16_t)(last.dc[kind - 1] + (int32_t)(value >> 1 ^ (0u - (value & 1))));
        }
        points->points[i] = last;
    }
    return 1;
}

/* ---- the store ---- */

typedef struct {
    uint8_t* packed;
    uint32_t size;
} entry_record;

typedef struct {
    int64_t count;
    int share; /* bytes of an image that may have one byte of points */
    entry_record* records;
    sync_mutex locks[ENTRY_LOCKS]; /* of records, by their lowest bits */
} entry_store;

/* NULL if there is no memory. */
static inline entry_store* entry_store_new(int64_t count, int share) {
    entry_store* store = calloc(1, sizeof *store);
    int i;
    if (store == NULL) return NULL;
    store->count = count;
    store->share = share;
    store->records = calloc((size_t)(count > 0 ? count : 1), sizeof *store->records);
    if (store->records == NULL) {
        free(store);
        return NULL;
    }
    for (i = 0; i < ENTRY_LOCKS; i++)
        sync_mutex_init(&store->locks[i]);
    return store;
}

static inline void entry_store_free(entry_store* store) {
    int64_t i;
    if (store == NULL) return;
    for (i = 0; i < store->count; i++)
        free(store->records[i].packed);
    for (i = 0; i < ENTRY_LOCKS; i++)
        sync_mutex_destroy(&store->locks[i]);
    free(store->records);
    free(store);
}

/* The points of a record; 0, and no points, if there are none. */
static inline int entry_store_load(entry_store* store, int64_t record, entry_points* points) {
    sync_mutex* lock;
    int status = 0;
    points->count = points->thin = 0;
    if (record < 0 || record >= store->count) return 0;
    lock = &store->locks[record % ENTRY_LOCKS];
    sync_lock(lock);
    if (store->records[record].packed != NULL)
        status = entry_unpack(store->records[record].packed, store->records[record].size, points);
    sync_unlock(lock);
    return status;
}

/* Keep packed bytes, which belong to the store from now on. */
static inline void entry_store_put(entry_store* store, int64_t record, uint8_t* packed, size_t size) {
    sync_mutex* lock = &store->locks[record % ENTRY_LOCKS];
    uint8_t* old;
    sync_lock(lock);
    old = store->records[record].packed;
    store->records[record].packed = packed;
    store->records[record].size = (uint32_t)size;
    sync_unlock(lock);
    free(old);
}

/* Keep the points of a record in the place of those before, fewer if they take too much for the bytes of
 * its image; without memory nothing changes. */
static inline void entry_store_keep(entry_store* store, int64_t record, entry_points* points,
                                    const entry_grid* grid, size_t image_bytes) {
    uint8_t* packed;
    size_t size;
    if (record < 0 || record >= store->count) return;
    while ((size = entry_pack(points, &packed)) > image_bytes / (size_t)store->share &&
           points->thin < ENTRY_THINNEST) {
        free(packed);
        entry_thin(points, grid);
    }
    if (size > 0) entry_store_put(store, record, packed, size);
}

#endif
