/* How jpeg_entropy.h is done: bits, blocks, restart markers, and giving back.
 *
 * Nothing of the library's own state is touched before the scan is given back: neither its source nor
 * its entropy decoder nor what it knows of markers.  That is why the library can then start the scan
 * as if nothing had happened, and why no knowledge of that state is needed.
 */
#include "jpeg_decoder.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "jpeg_entropy.h"
#include "jpeg_huffman.h"
#include "simd.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

/* Tables are kept from image to image: those of one pack mostly are the same.  Three components use
 * at most six. */
#define TABLES 8
/* What serves to pass over blocks is added to a table when it is used again, or at once if a scan has
 * this many blocks: it takes as long as passing over some hundred of them without. */
#define MANY_BLOCKS 1024
/* More than any version of libjpeg-turbo has. */
#define OTHER_FUNCTIONS 30

/* What an entropy decoder of the library begins with, and what ours begins with. */
typedef struct {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
    void (*others[OTHER_FUNCTIONS])(j_decompress_ptr); /* or variables, which zero suits */
} entropy_head;

/* The scan, most significant bit first. */
typedef struct {
    uint64_t buffer; /* the next bits, left-aligned; zeros where the data has ended */
    int bits; /* how many of them are data; negative if more were used than there are */
    const uint8_t *at;  /* the byte behind them */
    const uint8_t *end; /* where the data or, once it has been met, the marker is */
} bit_reader;

typedef struct {
    huffman_table *dc, *ac;
    int component;
    int needs_dc, needs_ac; /* whether the library will look at the coefficients */
} block_plan;

struct jpeg_entropy {
    entropy_head head; /* first: the library finds us by its address */
    enum jpeg_entropy_state state;
    struct jpeg_entropy_decoder *library_decoder;
    bit_reader reader;
    const uint8_t *data_end;
    unsigned last_dc[MAX_COMPS_IN_SCAN];
    JBLOCK unread; /* where coefficients go that nobody will look at */
    int num_blocks;
    block_plan blocks[D_MAX_BLOCKS_IN_MCU];
    unsigned restart_interval, until_restart; /* in MCUs; 0: there are no restart markers */
    int next_restart;                         /* number of the next marker, 0 to 7 */
    uint64_t num_mcus, done; /* done: how many the library has asked for, of which ... */
    uint64_t postponed;      /* ... these, the last ones, have not been read */
    int may_jump;            /* whether to postpone what nobody will look at */
    JDIMENSION column, num_columns, first_column, last_column;
    uint64_t images;
    uint64_t last_used[TABLES];
    huffman_table tables[TABLES];
};

/* Where the coefficient before position `k` of the order in which they are coded belongs. */
static const uint8_t places[DCTSIZE2 + 1] = {
    0,
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- bits ---- */

static inline uint64_t load_big_endian(const uint8_t *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
#if (defined(__GNUC__) || defined(__clang__)) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap64(word);
#else
    word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | data[i];
    return word;
#endif
}

/* Byte by byte up to the marker.  Of 0xFF 0x00, which stands for 0xFF, the second byte is left out. */
static bit_reader refill_carefully(bit_reader reader)
{
    while (reader.bits <= 56 && reader.at < reader.end) {
        const uint8_t byte = *reader.at;
        if (byte == 0xFF) {
            if (reader.end - reader.at < 2 || reader.at[1] != 0) {
                reader.end = reader.at;
                break;
            }
            reader.at++;
        }
        reader.at++;
        reader.buffer |= (uint64_t)byte << (56 - reader.bits);
        reader.bits += 8;
    }
    return reader;
}

/* At least 56 bits, unless there are no more. */
SIMD_INLINE bit_reader refill(bit_reader reader)
{
    if (reader.end - reader.at >= 8) {
        const uint64_t word = load_big_endian(reader.at);
        /* Whether a byte is 0xFF: its complement alone borrows from the bit above it. */
        if (((~word - UINT64_C(0x0101010101010101)) & word & UINT64_C(0x8080808080808080)) == 0) {
            reader.buffer |= word >> reader.bits;
            reader.at += (63 - reader.bits) >> 3;
            reader.bits |= 56;
            return reader;
        }
    }
    return refill_carefully(reader);
}

SIMD_INLINE uint32_t peek(const bit_reader *reader, int count)
{
    return (uint32_t)(reader->buffer >> (64 - count));
}

SIMD_INLINE void drop(bit_reader *reader, int count)
{
    reader->buffer <<= count;
    reader->bits -= count;
}

/* ---- blocks ---- */

/* A symbol whose code or value is longer than what an entry holds; -1 if there is no such code.  At
 * least 31 bits must be in the buffer, which the longest code and value take. */
SIMD_INLINE int rare_symbol(bit_reader *reader, const huffman_table *table,
                            const huffman_entry *entry, int *value)
{
    int length = entry->first_drop, symbol = entry->value, size;
    if (length == 0) {
        symbol = huffman_search(table, peek(reader, HUFFMAN_LONGEST), &length);
        if (symbol < 0)
            return -1;
    }
    drop(reader, length);
    size = symbol & 15;
    *value = huffman_extend((int)(reader->buffer >> 1 >> (63 - size)), size);
    drop(reader, size);
    return symbol;
}

/* The difference of the DC coefficient to its predecessor; 0 for a code that does not exist. */
SIMD_INLINE int decode_dc(bit_reader *reader, const huffman_table *table, unsigned *difference)
{
    const huffman_entry *entry = &table->entries[peek(reader, HUFFMAN_BITS)];
    int value = entry->value;
    if (entry->step == HUFFMAN_RARE) {
        if (rare_symbol(reader, table, entry, &value) < 0)
            return 0;
    } else
        drop(reader, entry->drop);
    *difference = (unsigned)value;
    return 1;
}

/* One AC symbol at position `k`, whatever it is.  The new position, DCTSIZE2 at the end of the block,
 * or 0 if it makes no sense.  `block` may be NULL. */
SIMD_INLINE int decode_ac_symbol(bit_reader *reader, const huffman_table *table, int k,
                                 JCOEF *block)
{
    const huffman_entry *entry = &table->entries[peek(reader, HUFFMAN_BITS)];
    int step = entry->first_step ? entry->first_step : HUFFMAN_END, value = entry->value;
    if (entry->step == HUFFMAN_RARE) {
        const int symbol = rare_symbol(reader, table, entry, &value);
        if (symbol < 0)
            return 0;
        step = huffman_step(symbol);
    } else
        drop(reader, entry->first_drop);
    if (step == HUFFMAN_END)
        return DCTSIZE2;
    k += step;
    if (k > DCTSIZE2)
        return 0;
    if (block != NULL)
        block[places[k]] = (JCOEF)value;
    return k;
}

/* The AC coefficients of a block into zeroed memory; 0 if they make no sense. */
SIMD_INLINE int decode_ac(bit_reader *reader, const huffman_table *table, JCOEF *block)
{
    int k = 1, i;
    for (;;) {
        const huffman_entry *entry;
        int next;
        *reader = refill(*reader);
        for (i = 0; i < 3; i++) { /* the first two leave the third more than 31 bits */
            entry = &table->entries[peek(reader, HUFFMAN_BITS)];
            next = k + entry->step;
            if (next >= DCTSIZE2)
                break;
            drop(reader, entry->drop);
            block[places[k + entry->first_step]] = entry->value;
            block[places[next]] = entry->second_value;
            k = next;
        }
        if (i == 3)
            continue;
        if (entry->step != HUFFMAN_RARE && entry->step >= HUFFMAN_END &&
            k + entry->first_step < DCTSIZE2) {
            /* The end alone writes the zero that is there, which costs less than finding out. */
            const int written = entry->step == HUFFMAN_END ? k + 1 : k + entry->first_step;
            drop(reader, entry->drop);
            block[places[written]] = entry->value;
            return 1;
        }
        /* The block may be full before the second symbol, which then belongs to the next. */
        k = decode_ac_symbol(reader, table, k, block);
        if (k == 0 || k == DCTSIZE2)
            return k;
    }
}

/* Pass over the AC coefficients of a block; 0 if they make no sense. */
SIMD_INLINE int skip_ac(bit_reader *reader, const huffman_table *table)
{
    int k = 1, i;
    for (;;) {
        int skip, step;
        *reader = refill(*reader);
        for (i = 0; i < 2; i++) { /* the first takes up to 25 bits, and leaves the second 31 */
            skip = table->skips[peek(reader, HUFFMAN_BITS)];
            step = skip >> 8;
            if (k + step >= DCTSIZE2)
                break;
            drop(reader, skip & 0xFF);
            k += step;
        }
        if (i == 2)
            continue;
        if (step != HUFFMAN_RARE && step >= HUFFMAN_END && k + step - HUFFMAN_END < DCTSIZE2) {
            drop(reader, skip & 0xFF);
            return 1;
        }
        /* The block may be full before the last of these symbols: one at a time. */
        k = decode_ac_symbol(reader, table, k, NULL);
        if (k == 0 || k == DCTSIZE2)
            return k;
    }
}

/* ---- MCUs ---- */

/* Go on at `segment`, which begins behind a restart marker. */
static void begin_segment(jpeg_entropy *entropy, const uint8_t *segment)
{
    entropy->until_restart = entropy->restart_interval;
    memset(entropy->last_dc, 0, sizeof entropy->last_dc);
    entropy->reader.buffer = 0;
    entropy->reader.bits = 0;
    entropy->reader.at = segment;
    entropy->reader.end = entropy->data_end;
}

/* The marker must be right behind the last bits; whatever else libjpeg makes do with, it shall. */
static int pass_restart_marker(jpeg_entropy *entropy)
{
    const bit_reader reader = refill_carefully(entropy->reader);
    if (reader.bits < 0 || reader.bits >= 8 || entropy->data_end - reader.at < 2 ||
        reader.at[0] != 0xFF || reader.at[1] != JPEG_RST0 + entropy->next_restart)
        return 0;
    entropy->next_restart = (entropy->next_restart + 1) & 7;
    begin_segment(entropy, reader.at + 2);
    return 1;
}

/* Look for the next `count` restart markers and go on behind the last of them; 0, and nothing has
 * changed, if anything else comes before it than these, one after the other. */
static int find_restart_markers(jpeg_entropy *entropy, uint64_t count)
{
    const uint8_t *at = entropy->reader.at, *const end = entropy->data_end;
    int number = entropy->next_restart;
    while (count > 0) {
        at = memchr(at, 0xFF, (size_t)(end - at));
        if (at == NULL || end - at < 2)
            return 0;
        if (at[1] == JPEG_RST0 + number) {
            number = (number + 1) & 7;
            count--;
        } else if (at[1] != 0)
            return 0;
        at += 2;
    }
    entropy->next_restart = number;
    begin_segment(entropy, at);
    return 1;
}

/* The next MCU; 0 if there is something wrong with it.  Without `stored` it is passed over. */
SIMD_INLINE int next_mcu(jpeg_entropy *entropy, JBLOCKROW *mcu, int stored)
{
    unsigned last_dc[MAX_COMPS_IN_SCAN];
    bit_reader reader;
    int i, sound = 1;

    if (entropy->restart_interval != 0) {
        if (entropy->until_restart == 0 && !pass_restart_marker(entropy))
            return 0;
        entropy->until_restart--;
    }
    reader = entropy->reader;
    memcpy(last_dc, entropy->last_dc, sizeof last_dc);
    for (i = 0; i < entropy->num_blocks; i++) {
        const block_plan *plan = &entropy->blocks[i];
        unsigned difference;
        reader = refill(reader);
        if (!decode_dc(&reader, plan->dc, &difference))
            return 0;
        last_dc[plan->component] += difference;
        if (stored && plan->needs_dc)
            (*mcu[i])[0] = (JCOEF)last_dc[plan->component];
        if (stored && plan->needs_ac)
            sound = decode_ac(&reader, plan->ac, *mcu[i]);
        else if (plan->ac->has_skips)
            sound = skip_ac(&reader, plan->ac);
        else
            sound = decode_ac(&reader, plan->ac, entropy->unread);
        if (!sound)
            return 0;
    }
    if (reader.bits < 0) /* the data has ended */
        return 0;
    entropy->reader = reader;
    memcpy(entropy->last_dc, last_dc, sizeof last_dc);
    return 1;
}

/* Get to the MCU that the library asks for, past those that nobody looks at: by the markers into its
 * segment, and from there MCU by MCU.  0 if there is something wrong on the way. */
static int catch_up(jpeg_entropy *entropy)
{
    uint64_t left = entropy->postponed;
    entropy->postponed = 0;
    if (left > 0 && entropy->until_restart == 0 && !pass_restart_marker(entropy))
        return 0;
    if (left >= entropy->until_restart) {
        const uint64_t beyond = left - entropy->until_restart;
        if (find_restart_markers(entropy, 1 + beyond / entropy->restart_interval))
            left = beyond % entropy->restart_interval;
        else
            entropy->may_jump = 0;
    }
    for (; left > 0; left--)
        if (!next_mcu(entropy, NULL, 0))
            return 0;
    return 1;
}

/* Let the library decode this MCU and all that follow. */
static boolean give_back(j_decompress_ptr library, jpeg_entropy *entropy, JBLOCKROW *mcu)
{
    struct jpeg_entropy_decoder *decoder = entropy->library_decoder;
    const entropy_head *head = (const entropy_head *)(void *)decoder;
    uint64_t i;
    int block;
    entropy->state = JPEG_ENTROPY_GIVEN_BACK;
    library->entropy = decoder;
    head->start_pass(library);
    for (i = 0; i < entropy->done; i++)
        if (!head->decode_mcu(library, NULL))
            return FALSE;
    for (block = 0; mcu != NULL && block < entropy->num_blocks; block++)
        memset(mcu[block], 0, sizeof(JBLOCK));
    return head->decode_mcu(library, mcu);
}

static boolean decode_mcu(j_decompress_ptr library, JBLOCKROW *mcu)
{
    jpeg_entropy *entropy = (jpeg_entropy *)(void *)library->entropy;
    const int stored = mcu != NULL && entropy->column >= entropy->first_column &&
                       entropy->column <= entropy->last_column;
    if (!stored && entropy->may_jump)
        entropy->postponed++;
    else if (entropy->postponed > 0 && !catch_up(entropy))
        return give_back(library, entropy, mcu);
    else if (!(stored ? next_mcu(entropy, mcu, 1) : next_mcu(entropy, NULL, 0)))
        return give_back(library, entropy, mcu);
    entropy->done++;
    if (++entropy->column == entropy->num_columns)
        entropy->column = 0;
    return TRUE;
}

/* ---- the scan ---- */

/* The table for these codes, kept or built; NULL if there is none. */
static huffman_table *find_table(jpeg_entropy *entropy, JHUFF_TBL *const *codes, int number,
                                 int is_dc)
{
    const JHUFF_TBL *wanted;
    int i, oldest = 0, lasting = 1;
    if (number < 0 || number >= NUM_HUFF_TBLS || codes[number] == NULL)
        return NULL;
    wanted = codes[number];
    for (i = 0; i < TABLES; i++) {
        if (huffman_matches(&entropy->tables[i], wanted->bits, wanted->huffval, is_dc))
            break;
        if (entropy->last_used[i] < entropy->last_used[oldest])
            oldest = i;
    }
    if (i == TABLES) {
        i = oldest;
        if (!huffman_build(&entropy->tables[i], wanted->bits, wanted->huffval, is_dc))
            return NULL;
        lasting = (uint64_t)entropy->num_blocks * entropy->num_mcus >= MANY_BLOCKS;
    }
    if (lasting && !is_dc && !entropy->tables[i].has_skips)
        huffman_build_skips(&entropy->tables[i]);
    entropy->last_used[i] = entropy->images;
    return &entropy->tables[i];
}

/* Prepare for the scan; 0 if it is not one for us. */
static int plan_scan(jpeg_entropy *entropy, j_decompress_ptr library)
{
    int i;
    if (library->Ss != 0 || library->Se != DCTSIZE2 - 1 || library->Ah != 0 || library->Al != 0 ||
        library->comps_in_scan != library->num_components || library->unread_marker != 0 ||
        library->blocks_in_MCU < 1 || library->blocks_in_MCU > D_MAX_BLOCKS_IN_MCU)
        return 0;
    entropy->images++;
    entropy->num_blocks = library->blocks_in_MCU;
    entropy->num_mcus = (uint64_t)library->MCUs_per_row * library->MCU_rows_in_scan;
    for (i = 0; i < entropy->num_blocks; i++) {
        const int number = library->MCU_membership[i];
        const jpeg_component_info *component = library->cur_comp_info[number];
        block_plan *plan = &entropy->blocks[i];
        if (i > 0 && number == plan[-1].component) {
            *plan = plan[-1];
            continue;
        }
        plan->component = number;
        plan->dc = find_table(entropy, library->dc_huff_tbl_ptrs, component->dc_tbl_no, 1);
        plan->ac = find_table(entropy, library->ac_huff_tbl_ptrs, component->ac_tbl_no, 0);
        if (plan->dc == NULL || plan->ac == NULL)
            return 0;
        plan->needs_dc = component->component_needed;
        plan->needs_ac = component->component_needed && BLOCK_SIZE(component) > 1;
    }
    entropy->reader.buffer = 0;
    entropy->reader.bits = 0;
    entropy->reader.at = library->src->next_input_byte;
    entropy->reader.end = entropy->data_end = entropy->reader.at + library->src->bytes_in_buffer;
    memset(entropy->last_dc, 0, sizeof entropy->last_dc);
    entropy->restart_interval = entropy->until_restart = library->restart_interval;
    entropy->next_restart = 0;
    entropy->done = entropy->postponed = 0;
    entropy->may_jump =
        entropy->restart_interval != 0 && entropy->restart_interval < entropy->num_mcus;
    entropy->column = 0;
    entropy->num_columns = library->MCUs_per_row;
    jpeg_entropy_columns(entropy, 0, library->MCUs_per_row - 1);
    return 1;
}

static void start_pass(j_decompress_ptr library)
{
    jpeg_entropy *entropy = (jpeg_entropy *)(void *)library->entropy;
    if (plan_scan(entropy, library)) {
        entropy->state = JPEG_ENTROPY_OWN;
        return;
    }
    library->entropy = entropy->library_decoder;
    ((const entropy_head *)(void *)library->entropy)->start_pass(library);
}

static void unexpected(j_decompress_ptr library)
{
    ERREXIT(library, JERR_NOTIMPL);
}

jpeg_entropy *jpeg_entropy_new(void)
{
    jpeg_entropy *entropy = calloc(1, sizeof *entropy);
    int i;
    if (entropy == NULL)
        return NULL;
    entropy->head.start_pass = start_pass;
    entropy->head.decode_mcu = decode_mcu;
    for (i = 0; i < TABLES; i++)
        entropy->tables[i].is_dc = -1; /* matches nothing */
    return entropy;
}

void jpeg_entropy_free(jpeg_entropy *entropy)
{
    free(entropy);
}

void jpeg_entropy_probe(jpeg_entropy *entropy)
{
    int i;
    for (i = 0; i < OTHER_FUNCTIONS; i++)
        entropy->head.others[i] = unexpected;
}

void jpeg_entropy_install(jpeg_entropy *entropy, j_decompress_ptr library)
{
    if (library->arith_code || library->progressive_mode || library->buffered_image ||
        library->data_precision != 8 || jpeg_has_multiple_scans(library))
        return;
    entropy->library_decoder = library->entropy;
    library->entropy = (struct jpeg_entropy_decoder *)(void *)&entropy->head;
}

void jpeg_entropy_columns(jpeg_entropy *entropy, JDIMENSION first, JDIMENSION last)
{
    entropy->first_column = first;
    entropy->last_column = last;
}

void jpeg_entropy_reset(jpeg_entropy *entropy)
{
    entropy->state = JPEG_ENTROPY_LIBRARY;
}

enum jpeg_entropy_state jpeg_entropy_in_use(const jpeg_entropy *entropy)
{
    return entropy->state;
}

#endif /* HAVE_LIBJPEG_TURBO */
