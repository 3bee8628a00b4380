/* How jpeg_scan.h is done: MCUs, blocks, symbols, bits. */
#include "scan_writer.h"
#include "../../kernels/simd.h"

#ifdef HAVE_LIBJPEG_TURBO

#include <stddef.h>

#define END_OF_BLOCK 0x00
#define SIXTEEN_ZEROS 0xF0

/* Where the coefficients stand in the order in which they are coded. */
static const uint8_t places[JPEG_BLOCK] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- bits ---- */

typedef struct {
    uint64_t buffer; /* its lowest bits are still to be written */
    int bits;        /* how many; less than 32 between two calls */
    uint8_t *at;
} bit_writer;

static inline void write_byte(bit_writer *writer, unsigned byte)
{
    *writer->at++ = (uint8_t)byte;
    if (byte == 0xFF)
        *writer->at++ = 0; /* or it would begin a marker */
}

/* `count` bits, at most 27. */
SIMD_INLINE void write_bits(bit_writer *writer, unsigned bits, int count)
{
    writer->buffer = writer->buffer << count | bits;
    writer->bits += count;
    if (writer->bits >= 32) {
        const uint32_t word = (uint32_t)(writer->buffer >> (writer->bits - 32));
        int shift;
        writer->bits -= 32;
        for (shift = 24; shift >= 0; shift -= 8)
            write_byte(writer, word >> shift & 0xFF);
    }
}

/* Fill up the last byte with ones. */
static void end_bits(bit_writer *writer)
{
    const int spare = (8 - writer->bits % 8) % 8;
    write_bits(writer, (1u << spare) - 1, spare);
    while (writer->bits > 0) {
        writer->bits -= 8;
        write_byte(writer, (unsigned)(writer->buffer >> writer->bits & 0xFF));
    }
}

/* ---- blocks ---- */

enum task { COUNT, COUNT_DC, WRITE };

typedef struct {
    jpeg_scan *scan;
    bit_writer writer;
    int last_dc[JPEG_MAX_COMPONENTS];
    int too_large;
} walk;

/* Number of bits of the absolute value. */
SIMD_INLINE int size_of(int value)
{
    unsigned magnitude = (unsigned)(value < 0 ? -value : value);
#if defined(__GNUC__) || defined(__clang__)
    return magnitude == 0 ? 0 : 32 - __builtin_clz(magnitude);
#else
    int size = 0;
    for (; magnitude != 0; magnitude >>= 1)
        size++;
    return size;
#endif
}

/* A symbol, and then `size` bits that tell the value. */
SIMD_INLINE void write_symbol(bit_writer *writer, const jpeg_code *code, int symbol, int value,
                              int size)
{
    const unsigned bits = (unsigned)(value < 0 ? value - 1 : value) & ((1u << size) - 1);
    write_bits(writer, (unsigned)code->code[symbol] << size | bits, code->size[symbol] + size);
}

SIMD_INLINE void do_dc(walk *state, enum task task, int component, int table, int dc)
{
    jpeg_scan *scan = state->scan;
    const int difference = dc - state->last_dc[component], size = size_of(difference);
    state->last_dc[component] = dc;
    if (task == WRITE)
        write_symbol(&state->writer, &scan->dc_codes[table], size, difference, size);
    else if (size >= JPEG_DC_SYMBOLS)
        state->too_large = 1;
    else
        scan->dc_counts[table][size]++;
}

SIMD_INLINE void do_ac(walk *state, enum task task, int table, int symbol, int value, int size)
{
    if (task == WRITE)
        write_symbol(&state->writer, &state->scan->ac_codes[table], symbol, value, size);
    else
        state->scan->ac_counts[table][symbol]++;
}

/* `block` NULL: one that only fills up an MCU. */
SIMD_INLINE void do_block(walk *state, enum task task, int component, int table,
                          const int16_t *block)
{
    int k, zeros = 0;
    do_dc(state, task, component, table, block ? block[0] : state->last_dc[component]);
    if (task == COUNT_DC)
        return;
    for (k = 1; block != NULL && k < JPEG_BLOCK; k++) {
        const int value = block[places[k]];
        int size;
        if (value == 0) {
            zeros++;
            continue;
        }
        for (; zeros >= 16; zeros -= 16)
            do_ac(state, task, table, SIXTEEN_ZEROS, 0, 0);
        size = size_of(value);
        if (task == COUNT && size > 10) {
            state->too_large = 1;
            return;
        }
        do_ac(state, task, table, zeros << 4 | size, value, size);
        zeros = 0;
    }
    if (block == NULL || zeros > 0)
        do_ac(state, task, table, END_OF_BLOCK, 0, 0);
}

/* ---- MCUs ---- */

/* Blocks of a component in an MCU.  Alone it is one, whatever the sampling. */
static int mcu_columns(const jpeg_frame *frame, int component)
{
    return frame->components == 1 ? 1 : frame->component[component].columns;
}

static int mcu_rows(const jpeg_frame *frame, int component)
{
    return frame->components == 1 ? 1 : frame->component[component].rows;
}

typedef const int16_t *block_rows[JPEG_MAX_COMPONENTS][JPEG_MAX_SAMPLING];

SIMD_INLINE void do_mcu(walk *state, enum task task, block_rows rows, int column)
{
    const jpeg_frame *frame = state->scan->frame;
    int component, x, y;
    for (component = 0; component < frame->components; component++) {
        const int columns = mcu_columns(frame, component);
        const int table = jpeg_is_chroma(frame->colours, component);
        for (y = 0; y < mcu_rows(frame, component); y++)
            for (x = column * columns; x < (column + 1) * columns; x++) {
                const int16_t *row = rows[component][y];
                const int inside = row != NULL && x < frame->component[component].width;
                do_block(state, task, component, table,
                         inside ? row + (ptrdiff_t)x * JPEG_BLOCK : NULL);
            }
    }
}

/* The rows of blocks of a row of MCUs; NULL for those below the image. */
static int find_rows(jpeg_scan *scan, int mcu_row, block_rows rows)
{
    int component, y;
    for (component = 0; component < scan->frame->components; component++) {
        const int height = mcu_rows(scan->frame, component), first = mcu_row * height;
        int count = scan->frame->component[component].height - first;
        count = count > height ? height : count;
        for (y = 0; y < height; y++)
            rows[component][y] = NULL;
        if (count > 0 && !jpeg_coefficients_rows(scan->coefficients, component, first, count,
                                                 rows[component]))
            return 0;
    }
    return 1;
}

SIMD_INLINE int do_scan(walk *state, enum task task)
{
    jpeg_scan *scan = state->scan;
    int until_restart = scan->restart, marker = 0, row, column, i;
    for (row = 0; row < scan->mcu_rows; row++) {
        block_rows rows;
        if (!find_rows(scan, row, rows))
            return JPEG_SCAN_FAILED;
        for (column = 0; column < scan->mcus_per_row; column++) {
            if (scan->restart > 0 && until_restart-- == 0) {
                until_restart = scan->restart - 1;
                for (i = 0; i < JPEG_MAX_COMPONENTS; i++)
                    state->last_dc[i] = 0;
                if (task == WRITE) {
                    end_bits(&state->writer);
                    *state->writer.at++ = 0xFF;
                    *state->writer.at++ = (uint8_t)(0xD0 + marker);
                    marker = (marker + 1) & 7;
                }
            }
            do_mcu(state, task, rows, column);
        }
    }
    if (task == WRITE)
        end_bits(&state->writer);
    return state->too_large ? JPEG_SCAN_IMPOSSIBLE : JPEG_SCAN_OK;
}

/* ---- for others ---- */

static int ceil_div(int value, int by)
{
    return (value + by - 1) / by;
}

int jpeg_scan_begin(jpeg_scan *scan, jpeg_coefficients *coefficients)
{
    const jpeg_frame *frame = jpeg_coefficients_frame(coefficients);
    int most_columns = 1, most_rows = 1, blocks = 0, i;
    walk state;
    memset(scan, 0, sizeof *scan);
    memset(&state, 0, sizeof state);
    state.scan = scan;
    scan->coefficients = coefficients;
    scan->frame = frame;
    scan->classes = 1;
    for (i = 0; i < frame->components; i++) {
        const jpeg_component *component = &frame->component[i];
        most_columns = component->columns > most_columns ? component->columns : most_columns;
        most_rows = component->rows > most_rows ? component->rows : most_rows;
        blocks += component->columns * component->rows;
        if (jpeg_is_chroma(frame->colours, i))
            scan->classes = 2;
    }
    if (frame->components == 1) {
        scan->mcus_per_row = frame->component[0].width;
        scan->mcu_rows = frame->component[0].height;
    } else {
        scan->mcus_per_row = ceil_div(frame->width, 8 * most_columns);
        scan->mcu_rows = ceil_div(frame->height, 8 * most_rows);
        if (blocks > JPEG_MAX_MCU_BLOCKS)
            return JPEG_SCAN_IMPOSSIBLE;
    }
    return do_scan(&state, COUNT);
}

int jpeg_scan_restart(jpeg_scan *scan, int restart)
{
    walk state;
    memset(&state, 0, sizeof state);
    memset(scan->dc_counts, 0, sizeof scan->dc_counts);
    state.scan = scan;
    scan->restart = restart;
    return do_scan(&state, COUNT_DC);
}

void jpeg_scan_codes(jpeg_scan *scan, int standard)
{
    int i;
    for (i = 0; i < scan->classes; i++) {
        if (standard) {
            jpeg_use_standard_code(&scan->dc_codes[i], i, 1);
            jpeg_use_standard_code(&scan->ac_codes[i], i, 0);
        } else {
            jpeg_use_optimal_code(&scan->dc_codes[i], scan->dc_counts[i]);
            jpeg_use_optimal_code(&scan->ac_codes[i], scan->ac_counts[i]);
        }
    }
}

int64_t jpeg_scan_markers(const jpeg_scan *scan)
{
    const int64_t mcus = (int64_t)scan->mcus_per_row * scan->mcu_rows;
    return scan->restart > 0 ? (mcus - 1) / scan->restart : 0;
}

int64_t jpeg_scan_bits(const jpeg_scan *scan)
{
    int64_t bits = 0;
    int i, symbol;
    for (i = 0; i < scan->classes; i++)
        for (symbol = 0; symbol < 256; symbol++) {
            bits += scan->dc_counts[i][symbol] * (scan->dc_codes[i].size[symbol] + symbol);
            bits += scan->ac_counts[i][symbol] * (scan->ac_codes[i].size[symbol] + (symbol & 15));
        }
    return bits;
}

int64_t jpeg_scan_room(const jpeg_scan *scan)
{
    /* Every byte may need another one behind it, and the last byte before a marker filling. */
    return jpeg_scan_bits(scan) / 8 * 2 + (jpeg_scan_markers(scan) + 1) * 4 + 8;
}

int jpeg_scan_write(jpeg_scan *scan, uint8_t **end)
{
    walk state;
    int status;
    memset(&state, 0, sizeof state);
    state.scan = scan;
    state.writer.at = *end;
    status = do_scan(&state, WRITE);
    *end = state.writer.at;
    return status;
}

#endif /* HAVE_LIBJPEG_TURBO */
