/* The scans of a progressive JPEG image: rows, restart markers, and giving a scan back undone. */
#include "decoder.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "progressive.h"
#include "bands.h"

#include <stdlib.h>
#include <string.h>

/* Beyond this a sum of DC differences might leave the range of 32 bits within a row of MCUs. */
#define LARGEST_DC (1 << 29)
/* So many differences cannot add up to what does not fit into 32 bits, which the library refuses. */
#define FEW_BLOCKS 65536
/* Most bits of a coefficient of a first scan, those below its last one included. */
#define MOST_BITS 14

typedef int band_decoder(band_scan* scan, const void* table, JBLOCK* blocks, uint64_t* nonzero,
                         JDIMENSION count);

struct jpeg_progressive {
    entropy_head head; /* first: the library finds us by its address */
    enum jpeg_entropy_state state;
    struct jpeg_entropy_decoder* library_decoder;
    band_decoder *decode, *refine;

    /* the image */
    int num_arrays;
    jvirt_barray_ptr arrays[MAX_COMPONENTS];
    uint64_t* nonzero[MAX_COMPONENTS]; /* of every block; NULL as long as it is not needed */
    JDIMENSION rows_wanted;            /* rows of MCUs of all components; 0: everything is wanted */
    int passed_over;                   /* whether something was, as it was not wanted */

    /* the scan */
    int pending; /* it has not been decoded */
    band_scan scan;
    const uint8_t* data_end;
    JDIMENSION until_restart, restart_interval; /* in MCUs; 0: there are no restart markers */
    uint64_t restarts_left;                     /* how many markers are still to come */
    int next_restart;
    int last_dc[MAX_COMPS_IN_SCAN];
    huffman_table* dc[MAX_COMPS_IN_SCAN];

    /* Tables are built again only for codes that differ from those before. */
    huffman_table dc_tables[NUM_HUFF_TBLS];
    huffman_table ac_table;
    refining_table refining;
};

/* ---- runs of blocks ---- */

static int decode_plain(band_scan* scan, const void* table, JBLOCK* blocks, uint64_t* nonzero,
                        JDIMENSION count) {
    return decode_bands(scan, table, blocks, nonzero, count);
}

static int refine_plain(band_scan* scan, const void* table, JBLOCK* blocks, uint64_t* nonzero,
                        JDIMENSION count) {
    return refine_bands(scan, table, blocks, nonzero, count, 0);
}

#ifdef BANDS_BMI2
BANDS_BMI2 static int decode_bmi2(band_scan* scan, const void* table, JBLOCK* blocks, uint64_t* nonzero,
                                  JDIMENSION count) {
    return decode_bands(scan, table, blocks, nonzero, count);
}

BANDS_BMI2 static int refine_bmi2(band_scan* scan, const void* table, JBLOCK* blocks, uint64_t* nonzero,
                                  JDIMENSION count) {
    return refine_bands(scan, table, blocks, nonzero, count, 1);
}
#endif

/* ---- rows ---- */

static JBLOCKARRAY access_rows(j_decompress_ptr library, const jpeg_progressive* progressive, int component,
                               JDIMENSION row, JDIMENSION count) {
    return library->mem->access_virt_barray((j_common_ptr)library, progressive->arrays[component], row, count,
                                            TRUE);
}

/* Be ready for the next MCU, behind the restart marker that may have to come first. */
static int begin_mcu(jpeg_progressive* progressive) {
    const uint8_t* marker;
    if (progressive->restart_interval == 0 || progressive->until_restart > 0) return 1;
    marker = next_marker(&progressive->scan.reader, progressive->data_end);
    if (marker == NULL || marker[1] != JPEG_RST0 + progressive->next_restart) return 0;
    begin_bits(&progressive->scan.reader, marker + 2, progressive->data_end);
    progressive->next_restart = (progressive->next_restart + 1) & 7;
    progressive->restarts_left--;
    progressive->until_restart = progressive->restart_interval;
    progressive->scan.ended = 0;
    memset(progressive->last_dc, 0, sizeof progressive->last_dc);
    return 1;
}

/* The AC coefficients of a row of blocks. */
static int read_band_row(jpeg_progressive* progressive, j_decompress_ptr library, JDIMENSION row) {
    const int component = library->cur_comp_info[0]->component_index;
    const JDIMENSION num_columns = library->MCUs_per_row;
    JBLOCK* blocks = access_rows(library, progressive, component, row, 1)[0];
    uint64_t* nonzero = progressive->nonzero[component];
    JDIMENSION left = num_columns, count;
    if (nonzero != NULL) nonzero += (size_t)row * num_columns;
    for (; left > 0; left -= count) {
        if (!begin_mcu(progressive)) return 0;
        count = left;
        if (progressive->restart_interval != 0) {
            if (count > progressive->until_restart) count = progressive->until_restart;
            progressive->until_restart -= count;
        }
        if (!(library->Ah == 0
                  ? progressive->decode(&progressive->scan, &progressive->ac_table, blocks, nonzero, count)
                  : progressive->refine(&progressive->scan, &progressive->refining, blocks, nonzero, count)))
            return 0;
        blocks += count;
        if (nonzero != NULL) nonzero += count;
    }
    return 1;
}

/* The DC coefficients of an MCU, one from each of `blocks`; 0 if they make no sense. */
static inline int read_dc(jpeg_progressive* progressive, j_decompress_ptr library, JBLOCK* const* blocks) {
    bit_reader reader = progressive->scan.reader;
    int i;
    for (i = 0; i < library->blocks_in_MCU; i++) {
        const int member = library->MCU_membership[i];
        JCOEF* block = *blocks[i];
        reader = refill(reader);
        if (library->Ah == 0) {
            unsigned difference;
            if (!decode_dc(&reader, progressive->dc[member], &difference)) return 0;
            progressive->last_dc[member] += (int)difference;
            block[0] = (JCOEF)((unsigned)progressive->last_dc[member] * (unsigned)progressive->scan.scale);
        } else {
            if (peek(&reader, 1)) block[0] = (JCOEF)(block[0] | progressive->scan.scale);
            drop(&reader, 1);
        }
    }
    progressive->scan.reader = reader;
    return reader.bits >= 0;
}

/* The DC coefficients of a row of MCUs. */
static int read_dc_row(jpeg_progressive* progressive, j_decompress_ptr library, JDIMENSION row) {
    JBLOCK* blocks[D_MAX_BLOCKS_IN_MCU];
    int advance[D_MAX_BLOCKS_IN_MCU];
    JDIMENSION column;
    int i, x, y, num_blocks = 0;
    for (i = 0; i < library->comps_in_scan; i++) {
        const jpeg_component_info* component = library->cur_comp_info[i];
        JBLOCKARRAY rows =
            access_rows(library, progressive, component->component_index,
                        row * (JDIMENSION)component->MCU_height, (JDIMENSION)component->MCU_height);
        if (abs(progressive->last_dc[i]) > LARGEST_DC) return 0;
        for (y = 0; y < component->MCU_height; y++)
            for (x = 0; x < component->MCU_width; x++, num_blocks++) {
                blocks[num_blocks] = rows[y] + x;
                advance[num_blocks] = component->MCU_width;
            }
    }
    for (column = 0; column < library->MCUs_per_row; column++) {
        if (!begin_mcu(progressive)) return 0;
        progressive->until_restart--; /* means nothing if there are no restart markers */
        if (!read_dc(progressive, library, blocks)) return 0;
        for (i = 0; i < num_blocks; i++)
            blocks[i] += advance[i];
    }
    return 1;
}

/* ---- the scan ---- */

/* The first rows of the scan that can have an influence on a pixel: often none of a component that is not
 * looked at, or of AC coefficients where one pixel is made of a block. */
static JDIMENSION wanted_rows(const jpeg_progressive* progressive, j_decompress_ptr library) {
    const uint64_t num_mcus = (uint64_t)library->MCUs_per_row * library->MCU_rows_in_scan;
    JDIMENSION rows = progressive->rows_wanted;
    int i, is_needed = 0;
    if (rows == 0 ||
        (library->Ss == 0 && library->Ah == 0 && num_mcus * (unsigned)library->blocks_in_MCU > FEW_BLOCKS))
        return library->MCU_rows_in_scan;
    for (i = 0; i < library->comps_in_scan; i++) {
        const jpeg_component_info* component = library->cur_comp_info[i];
        is_needed |= component->component_needed && (library->Ss == 0 || BLOCK_SIZE(component) > 1);
    }
    if (!is_needed) return 0;
    if (library->comps_in_scan == 1) rows *= (JDIMENSION)library->cur_comp_info[0]->v_samp_factor;
    return rows < library->MCU_rows_in_scan ? rows : library->MCU_rows_in_scan;
}

/* The marker at the end of the scan, found without reading what lies before it; NULL if it is not clear
 * that the library would stop there. */
static const uint8_t* find_end(const jpeg_progressive* progressive) {
    const uint8_t* at = find_restart_markers(progressive->scan.reader.at, progressive->data_end,
                                             progressive->next_restart, progressive->restarts_left);
    return at == NULL ? NULL : find_marker(at, progressive->data_end);
}

/* Read the scan, or pass over what is not wanted of it.  The marker at its end; NULL if something makes no
 * sense, and what has changed is in the first `rows` rows. */
static const uint8_t* read_scan(jpeg_progressive* progressive, j_decompress_ptr library, JDIMENSION* rows) {
    const JDIMENSION num_rows = wanted_rows(progressive, library);
    JDIMENSION row;
    for (row = 0; row < library->MCU_rows_in_scan; row++) {
        const uint8_t* end = row == num_rows ? find_end(progressive) : NULL;
        if (end != NULL) {
            progressive->passed_over = 1;
            return end;
        }
        *rows = row + 1;
        if (!(library->Ss == 0 ? read_dc_row(progressive, library, row)
                               : read_band_row(progressive, library, row)))
            return NULL;
    }
    return next_marker(&progressive->scan.reader, progressive->data_end);
}

/* Make the coefficients of a row what they were before the scan. */
static void undo_row(JBLOCK* blocks, JDIMENSION count, int first, int last, int refined, int scale) {
    JDIMENSION i;
    int k;
    for (i = 0; i < count; i++)
        for (k = first; k <= last; k++) {
            JCOEF* coefficient = &blocks[i][zigzag[k + 1]];
            if (!refined)
                *coefficient = 0;
            else if (k == 0 || *coefficient >= 0) /* of DC coefficients bits are set, whatever the sign */
                *coefficient = (JCOEF)(*coefficient & ~scale);
            else
                *coefficient = (JCOEF) - (-*coefficient & ~scale);
        }
}

static void undo_rows(jpeg_progressive* progressive, j_decompress_ptr library, JDIMENSION count) {
    JDIMENSION row;
    int i, y;
    for (row = 0; row < count; row++)
        for (i = 0; i < library->comps_in_scan; i++) {
            const jpeg_component_info* component = library->cur_comp_info[i];
            const JDIMENSION height = (JDIMENSION)component->MCU_height;
            JBLOCKARRAY rows =
                access_rows(library, progressive, component->component_index, row * height, height);
            for (y = 0; y < component->MCU_height; y++)
                undo_row(rows[y], library->MCUs_per_row * (JDIMENSION)component->MCU_width, library->Ss,
                         library->Se, library->Ah != 0, progressive->scan.scale);
        }
}

/* What the library calls for every MCU. */
static boolean decode_mcu(j_decompress_ptr library, JBLOCKROW* mcu) {
    jpeg_progressive* progressive = (jpeg_progressive*)(void*)library->entropy;
    const uint8_t* end;
    JDIMENSION rows = 0;
    if (!progressive->pending) return TRUE;
    progressive->pending = 0;
    end = read_scan(progressive, library, &rows);
    if (end != NULL) {
        library->src->next_input_byte = end;
        library->src->bytes_in_buffer = (size_t)(progressive->data_end - end);
        return TRUE;
    }
    undo_rows(progressive, library, rows);
    progressive->state = JPEG_ENTROPY_GIVEN_BACK;
    library->entropy = progressive->library_decoder;
    return ((const entropy_head*)(void*)library->entropy)->decode_mcu(library, mcu);
}

/* Whether nothing is known yet of the coefficients of the scan or, in a refinement, all but this bit and
 * those below it. */
static int is_in_order(j_decompress_ptr library) {
    const int expected = library->Ah == 0 ? -1 : library->Ah;
    int i, k;
    for (i = 0; i < library->comps_in_scan; i++)
        for (k = library->Ss; k <= library->Se && k < DCTSIZE2; k++)
            if (library->coef_bits[library->cur_comp_info[i]->component_index][k] != expected) return 0;
    return 1;
}

static int find_dc_tables(jpeg_progressive* progressive, j_decompress_ptr library) {
    int i;
    for (i = 0; i < library->comps_in_scan; i++) {
        const int number = library->cur_comp_info[i]->dc_tbl_no;
        huffman_table* table = &progressive->dc_tables[number];
        const JHUFF_TBL* codes = library->dc_huff_tbl_ptrs[number];
        if (codes == NULL || (!huffman_matches(table, codes->bits, codes->huffval, 1) &&
                              !huffman_build(table, codes->bits, codes->huffval, 1)))
            return 0;
        progressive->dc[i] = table;
    }
    return 1;
}

static int find_ac_table(jpeg_progressive* progressive, j_decompress_ptr library) {
    const JHUFF_TBL* codes = library->ac_huff_tbl_ptrs[library->cur_comp_info[0]->ac_tbl_no];
    huffman_codes* table = library->Ah == 0 ? &progressive->ac_table.codes : &progressive->refining.codes;
    int i;
    if (codes == NULL) return 0;
    if (table->count == 0 || !huffman_equals(table, codes->bits, codes->huffval)) {
        table->count = 0;
        if (!(library->Ah == 0 ? huffman_build(&progressive->ac_table, codes->bits, codes->huffval, 0)
                               : refining_build(&progressive->refining, codes->bits, codes->huffval)))
            return 0;
    }
    for (i = 0; library->Ah == 0 && i < table->count; i++)
        if ((table->symbols[i] & 15) + library->Al > MOST_BITS) return 0;
    return 1;
}

/* Prepare for the scan, which the library has found acceptable; 0 if it is not one for us. */
static int plan_scan(jpeg_progressive* progressive, j_decompress_ptr library) {
    band_scan* scan = &progressive->scan;
    if (library->unread_marker != 0 || library->blocks_in_MCU > D_MAX_BLOCKS_IN_MCU ||
        progressive->num_arrays != library->num_components)
        return 0;
    if (library->Ss == 0 ? library->Ah == 0 && !find_dc_tables(progressive, library)
                         : !find_ac_table(progressive, library))
        return 0;
    scan->first = library->Ss;
    scan->last = library->Se;
    scan->scale = 1 << library->Al;
    scan->ended = 0;
    scan->keep = library->Al > 0; /* otherwise it will not be refined */
    if (library->Ss > 0 && (scan->keep || library->Ah > 0)) {
        const jpeg_component_info* component = library->cur_comp_info[0];
        uint64_t** nonzero = &progressive->nonzero[component->component_index];
        const size_t size =
            (size_t)component->width_in_blocks * component->height_in_blocks * sizeof **nonzero;
        if (*nonzero == NULL) {
            *nonzero = library->mem->alloc_large((j_common_ptr)library, JPOOL_IMAGE, size);
            memset(*nonzero, 0, size);
        }
    }
    progressive->data_end = library->src->next_input_byte + library->src->bytes_in_buffer;
    begin_bits(&scan->reader, library->src->next_input_byte, progressive->data_end);
    memset(progressive->last_dc, 0, sizeof progressive->last_dc);
    progressive->restart_interval = progressive->until_restart = library->restart_interval;
    progressive->restarts_left =
        library->restart_interval == 0
            ? 0
            : ((uint64_t)library->MCUs_per_row * library->MCU_rows_in_scan - 1) / library->restart_interval;
    progressive->next_restart = 0;
    return 1;
}

static void start_pass(j_decompress_ptr library) {
    jpeg_progressive* progressive = (jpeg_progressive*)(void*)library->entropy;
    const int in_order = is_in_order(library);
    library->entropy = progressive->library_decoder;
    ((const entropy_head*)(void*)library->entropy)->start_pass(library);
    if (in_order && plan_scan(progressive, library)) {
        library->entropy = (struct jpeg_entropy_decoder*)(void*)&progressive->head;
        progressive->state = JPEG_ENTROPY_OWN;
        progressive->pending = 1;
    } else if (progressive->state == JPEG_ENTROPY_OWN)
        progressive->state = JPEG_ENTROPY_GIVEN_BACK;
}

/* ---- life ---- */

jpeg_progressive* jpeg_progressive_new(void) {
    jpeg_progressive* progressive = calloc(1, sizeof *progressive);
    int i;
    if (progressive == NULL) return NULL;
    progressive->head.start_pass = start_pass;
    progressive->head.decode_mcu = decode_mcu;
    for (i = 0; i < NUM_HUFF_TBLS; i++)
        progressive->dc_tables[i].is_dc = -1; /* matches nothing */
    return progressive;
}

void jpeg_progressive_kernels(jpeg_progressive* progressive, int portable) {
    progressive->decode = decode_plain;
    progressive->refine = refine_plain;
#ifdef BANDS_BMI2
    /* The first two generations with these instructions take a microprogram for the one that counts. */
    if (!portable && __builtin_cpu_supports("bmi2") && !__builtin_cpu_is("znver1") &&
        !__builtin_cpu_is("znver2")) {
        progressive->decode = decode_bmi2;
        progressive->refine = refine_bmi2;
    }
#endif
    (void)portable;
}

void jpeg_progressive_free(jpeg_progressive* progressive) {
    free(progressive);
}

void jpeg_progressive_array(jpeg_progressive* progressive, jvirt_barray_ptr array) {
    if (progressive->num_arrays < MAX_COMPONENTS) progressive->arrays[progressive->num_arrays] = array;
    progressive->num_arrays++;
}

void jpeg_progressive_install(jpeg_progressive* progressive, j_decompress_ptr library) {
    progressive->library_decoder = library->entropy;
    library->entropy = (struct jpeg_entropy_decoder*)(void*)&progressive->head;
}

void jpeg_progressive_rows(jpeg_progressive* progressive, JDIMENSION count) {
    progressive->rows_wanted = count;
}

int jpeg_progressive_passed_over(const jpeg_progressive* progressive) {
    return progressive->passed_over;
}

void jpeg_progressive_reset(jpeg_progressive* progressive) {
    progressive->state = JPEG_ENTROPY_LIBRARY;
    progressive->rows_wanted = 0;
    progressive->passed_over = 0;
    progressive->num_arrays = 0;
    memset(progressive->nonzero, 0, sizeof progressive->nonzero);
}

enum jpeg_entropy_state jpeg_progressive_in_use(const jpeg_progressive* progressive) {
    return progressive->state;
}

void jpeg_progressive_probe(jpeg_progressive* progressive) {
    entropy_probe(&progressive->head);
}

#endif /* HAVE_LIBJPEG_TURBO */
