/* The MCUs of a sequential scan, one after the other: their blocks, restart markers and entry points.
 *
 * What makes no sense is said, and nothing is made of it.  The library is not called from here.
 */
#ifndef ITERATORS_JPEG_MCUS_H
#define ITERATORS_JPEG_MCUS_H

#include "blocks.h"
#include "mcu_rows.h"
#include "progressive.h"

/* Tables are kept from image to image: those of one pack mostly are the same.  Three components use
 * at most six. */
#define TABLES 8
typedef struct {
    huffman_table *dc, *ac;
    int component;
    int needs_dc, needs_ac; /* whether the library will look at the coefficients */
} block_plan;

/* What may be done beside reading: see next_mcu. */
typedef struct mcu_work mcu_work;

struct jpeg_entropy {
    entropy_head head; /* first: the library finds us by its address */
    enum jpeg_entropy_state state;
    struct jpeg_entropy_decoder* library_decoder;
    bit_reader reader;
    const uint8_t* data_end;
    unsigned last_dc[MAX_COMPS_IN_SCAN];
    JBLOCK unread; /* where coefficients go that nobody will look at */
    int num_blocks;
    block_plan blocks[D_MAX_BLOCKS_IN_MCU];
    unsigned restart_interval, until_restart; /* in MCUs; 0: there are no restart markers */
    int next_restart;                         /* number of the next marker, 0 to 7 */
    uint64_t num_mcus, done;                  /* done: how many the library has asked for, of which ... */
    uint64_t postponed;                       /* ... these, the last ones, have not been read */
    uint64_t position;                        /* number of the MCU at which the reader is */
    int may_skip;                             /* tables have what serves to pass over blocks */
    uint64_t note_at;                         /* number of the MCU whose entry point is to be noted next */
    const uint8_t* scan;
    entry_store* store; /* NULL: entry points are neither used nor noted */
    int64_t record;
    int loaded; /* entry points that were known */
    entry_grid grid;
    entry_points entries;
    int may_jump; /* whether to postpone what nobody will look at */
    JDIMENSION column, num_columns, first_column, last_column;
    uint64_t images;
    uint64_t last_used[TABLES];
    huffman_table tables[TABLES];
    jpeg_progressive* progressive;
    mcu_rows rows;
};

/* ---- MCUs ---- */

/* Go on at `segment`, which begins behind a restart marker. */
static inline void begin_segment(jpeg_entropy* entropy, const uint8_t* segment) {
    entropy->until_restart = entropy->restart_interval;
    memset(entropy->last_dc, 0, sizeof entropy->last_dc);
    begin_bits(&entropy->reader, segment, entropy->data_end);
}

/* The marker must be right behind the last bits; whatever else libjpeg makes do with, it shall. */
static inline int pass_restart_marker(jpeg_entropy* entropy) {
    const uint8_t* marker = next_marker(&entropy->reader, entropy->data_end);
    if (marker == NULL || marker[1] != JPEG_RST0 + entropy->next_restart) return 0;
    entropy->next_restart = (entropy->next_restart + 1) & 7;
    begin_segment(entropy, marker + 2);
    return 1;
}

/* Go on behind the last of the next `count` restart markers; 0, and nothing has changed, if they are
 * not there. */
static inline int pass_restart_markers(jpeg_entropy* entropy, uint64_t count) {
    const uint8_t* at =
        find_restart_markers(entropy->reader.at, entropy->data_end, entropy->next_restart, count);
    if (at == NULL) return 0;
    entropy->next_restart = (int)(((uint64_t)entropy->next_restart + count) & 7);
    begin_segment(entropy, at);
    return 1;
}

/* The number of the MCU at the next entry point that is not known; one that does not exist if all are. */
static inline uint64_t next_entry(const jpeg_entropy* entropy) {
    return entropy->entries.count < entropy->grid.total ? entry_mcu(&entropy->grid, entropy->entries.count)
                                                        : UINT64_MAX;
}

/* Note where the reader is. */
static inline void note_entry(jpeg_entropy* entropy) {
    const uint8_t* at = entropy->reader.at;
    entry_point* point = &entropy->entries.points[entropy->entries.count];
    uint64_t position;
    int bytes, i;
    for (bytes = (entropy->reader.bits + 7) >> 3; bytes > 0; bytes--) {
        at--;
        if (at > entropy->scan && at[0] == 0 && at[-1] == 0xFF) at--;
    }
    position = (uint64_t)(at - entropy->scan) * 8 + (uint64_t)(-entropy->reader.bits & 7);
    entropy->note_at = UINT64_MAX;
    if (position > UINT32_MAX) return;
    point->at = (uint32_t)position;
    for (i = 0; i < ENTRY_COMPONENTS; i++)
        point->dc[i] = (int16_t)entropy->last_dc[i];
    entropy->entries.count++;
    entropy->note_at = next_entry(entropy);
}

/* Of the next `count` MCUs pass over those before the last known entry point; how many those are. */
static inline uint64_t pass_to_entry(jpeg_entropy* entropy, uint64_t count) {
    const uint64_t position = entropy->position;
    const entry_point* point;
    uint64_t reached;
    int number, i;
    if (entropy->entries.count == 0) return 0;
    number = entry_before(&entropy->grid, position + count);
    if (number >= entropy->entries.count) number = entropy->entries.count - 1;
    reached = entry_mcu(&entropy->grid, number);
    if (reached <= position) return 0;
    point = &entropy->entries.points[number];
    if (point->at >> 3 >= (uint64_t)(entropy->data_end - entropy->scan)) return 0;
    begin_bits(&entropy->reader, entropy->scan + (point->at >> 3), entropy->data_end);
    entropy->reader = refill_carefully(entropy->reader);
    drop(&entropy->reader, (int)(point->at & 7));
    for (i = 0; i < ENTRY_COMPONENTS; i++)
        entropy->last_dc[i] = (unsigned)(int)point->dc[i];
    entropy->position = reached;
    return reached - position;
}

/* Where a loop over blocks is, which for its time knows better than `entropy` does. */
typedef struct {
    bit_reader reader;
    unsigned last_dc[MAX_COMPS_IN_SCAN];
} scan_place;

static inline void load_place(scan_place* place, const jpeg_entropy* entropy) {
    place->reader = entropy->reader;
    memcpy(place->last_dc, entropy->last_dc, sizeof place->last_dc);
}

static inline void store_place(const scan_place* place, jpeg_entropy* entropy) {
    entropy->reader = place->reader;
    memcpy(entropy->last_dc, place->last_dc, sizeof entropy->last_dc);
}

/* How many MCUs come before the next restart marker or the next entry point that is to be noted. */
SIMD_INLINE uint64_t until_boundary(const jpeg_entropy* entropy) {
    return entropy->restart_interval != 0 ? entropy->until_restart : entropy->note_at - entropy->position;
}

/* Pass that marker, or note that point; 0 if something is wrong. */
static inline int pass_boundary(jpeg_entropy* entropy) {
    if (entropy->restart_interval != 0) return pass_restart_marker(entropy);
    note_entry(entropy);
    return 1;
}

/* So many MCUs were read, none of them behind a boundary. */
SIMD_INLINE void move_on(jpeg_entropy* entropy, JDIMENSION count) {
    entropy->position += count;
    if (entropy->restart_interval != 0) entropy->until_restart -= count;
}

/* The blocks of the next MCU, behind no boundary; 0 if there is something wrong with them, other than that the data has
 * ended.  Without `stored` they are passed over.  `piece`, if not NULL, does a piece of the work `beside` for each block,
 * as the processor has time for it while look-ups wait for each other; all blocks are needed then. */
SIMD_INLINE int read_blocks(jpeg_entropy* entropy, scan_place* place, JBLOCKROW* mcu, int stored,
                            void (*piece)(mcu_work*), mcu_work* beside) {
    int i, sound = 1;
    for (i = 0; i < entropy->num_blocks; i++) {
        const block_plan* plan = &entropy->blocks[i];
        unsigned difference;
        place->reader = refill(place->reader);
        if (!decode_dc(&place->reader, plan->dc, &difference)) return 0;
        if (piece != NULL) piece(beside);
        place->last_dc[plan->component] += difference;
        if (piece != NULL || (stored && plan->needs_dc))
            (*mcu[i])[0] = (JCOEF)place->last_dc[plan->component];
        if (piece != NULL || (stored && plan->needs_ac))
            sound = decode_ac(&place->reader, plan->ac, *mcu[i]);
        else if (plan->ac->has_skips)
            sound = skip_ac(&place->reader, plan->ac);
        else
            sound = decode_ac(&place->reader, plan->ac, entropy->unread);
        if (!sound) return 0;
    }
    return 1;
}

/* The next MCU; 0 if there is something wrong with it.  Without `stored` it is passed over. */
SIMD_INLINE int next_mcu(jpeg_entropy* entropy, JBLOCKROW* mcu, int stored) {
    scan_place place;
    if (until_boundary(entropy) == 0 && !pass_boundary(entropy)) return 0;
    load_place(&place, entropy);
    if (!read_blocks(entropy, &place, mcu, stored, NULL, NULL) || place.reader.bits < 0) return 0;
    store_place(&place, entropy);
    move_on(entropy, 1);
    return 1;
}

/* Let tables have what serves to pass over blocks. */
static inline void make_skips(jpeg_entropy* entropy) {
    int i;
    entropy->may_skip = 1;
    for (i = 0; i < entropy->num_blocks; i++) {
        huffman_table* table = entropy->blocks[i].ac;
        if (table->lasting && !table->has_skips) huffman_build_skips(table);
    }
}

/* Get to the MCU that the library asks for, past those that nobody looks at: by the markers into its
 * segment or to the entry point before it, and from there MCU by MCU.  0 if there is something wrong on
 * the way. */
SIMD_INLINE int catch_up(jpeg_entropy* entropy) {
    uint64_t left = entropy->postponed;
    entropy->postponed = 0;
    if (entropy->restart_interval == 0)
        left -= pass_to_entry(entropy, left);
    else if (entropy->until_restart == 0 && !pass_restart_marker(entropy))
        return 0;
    else if (left >= entropy->until_restart) {
        const uint64_t beyond = left - entropy->until_restart;
        if (pass_restart_markers(entropy, 1 + beyond / entropy->restart_interval))
            left = beyond % entropy->restart_interval;
        else
            entropy->may_jump = 0;
    }
    for (; left > 0; left--)
        if (!next_mcu(entropy, NULL, 0)) return 0;
    return 1;
}

/* Leave to the library whatever comes behind the MCUs that it has asked for; 0 if it does not get there. */
boolean jpeg_entropy_hand_over(j_decompress_ptr library, jpeg_entropy* entropy);

/* Get to the next MCU if some before it were postponed; 0 if there is something wrong on the way. */
SIMD_INLINE int arrive(jpeg_entropy* entropy) {
    return entropy->postponed == 0 || catch_up(entropy);
}

/* The next MCU is one that nobody will look at; 0 if there is something wrong with it, as far as that is looked for. */
SIMD_INLINE int pass_mcu(jpeg_entropy* entropy) {
    if (!entropy->may_skip) make_skips(entropy);
    if (entropy->may_jump) {
        entropy->postponed++;
        return 1;
    }
    return arrive(entropy) && next_mcu(entropy, NULL, 0);
}

/* The library has got so many more MCUs, all of one row. */
SIMD_INLINE void count_mcus(jpeg_entropy* entropy, JDIMENSION count) {
    entropy->done += count;
    entropy->column += count;
    if (entropy->column == entropy->num_columns) entropy->column = 0;
}

#endif
