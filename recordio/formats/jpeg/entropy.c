/* The entropy decoder of sequential images in the place of libjpeg's: MCUs, restart markers, giving back.
 *
 * Nothing of the library's own state is touched before the scan is given back: neither its source nor
 * its entropy decoder nor what it knows of markers.  That is why the library can then start the scan
 * as if nothing had happened, and why no knowledge of that state is needed.
 */
#include "decoder.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "mcus.h"

#include <stdlib.h>
#include <string.h>

#include <jerror.h>

/* What serves to pass over blocks takes as long to make as passing over some hundred of them without.  It is
 * made for a table that is used again or for a scan of so many blocks, and not before one is passed over. */
#define MANY_BLOCKS 1024
/* Entry points that were found are kept if they are at least one in so many of all, or the last ones. */
#define ENTRY_WORTH 8

boolean jpeg_entropy_hand_over(j_decompress_ptr library, jpeg_entropy* entropy) {
    struct jpeg_entropy_decoder* decoder = entropy->library_decoder;
    const entropy_head* head = (const entropy_head*)(void*)decoder;
    uint64_t i;
    entropy->state = JPEG_ENTROPY_GIVEN_BACK;
    mcu_rows_remove(&entropy->rows, library);
    library->entropy = decoder;
    head->start_pass(library);
    for (i = 0; i < entropy->done; i++)
        if (!head->decode_mcu(library, NULL)) return FALSE;
    return TRUE;
}

/* Let the library decode this MCU and all that follow. */
static boolean give_back(j_decompress_ptr library, jpeg_entropy* entropy, JBLOCKROW* mcu) {
    const entropy_head* head = (const entropy_head*)(void*)entropy->library_decoder;
    int block;
    if (!jpeg_entropy_hand_over(library, entropy)) return FALSE;
    for (block = 0; mcu != NULL && block < entropy->num_blocks; block++)
        memset(mcu[block], 0, sizeof(JBLOCK));
    return head->decode_mcu(library, mcu);
}

/* What the library calls for every MCU. */
SIMD_INLINE boolean answer(j_decompress_ptr library, JBLOCKROW* mcu) {
    jpeg_entropy* entropy = (jpeg_entropy*)(void*)library->entropy;
    const int in_columns =
        mcu != NULL && entropy->column >= entropy->first_column && entropy->column <= entropy->last_column;
    if (!(in_columns ? arrive(entropy) && next_mcu(entropy, mcu, 1) : pass_mcu(entropy)))
        return give_back(library, entropy, mcu);
    count_mcus(entropy, 1);
    return TRUE;
}

static boolean decode_mcu(j_decompress_ptr library, JBLOCKROW* mcu) {
    return answer(library, mcu);
}

#if SIMD_X86
/* With shifts that need not go through one register. */
SIMD_BMI2 static boolean decode_mcu_bmi2(j_decompress_ptr library, JBLOCKROW* mcu) {
    return answer(library, mcu);
}
#endif

/* ---- the scan ---- */

/* The table for these codes, kept or built; NULL if there is none. */
static huffman_table* find_table(jpeg_entropy* entropy, JHUFF_TBL* const* codes, int number, int is_dc) {
    const JHUFF_TBL* table;
    int i, oldest = 0, lasting = 1;
    if (number < 0 || number >= NUM_HUFF_TBLS || codes[number] == NULL) return NULL;
    table = codes[number];
    for (i = 0; i < TABLES; i++) {
        if (huffman_matches(&entropy->tables[i], table->bits, table->huffval, is_dc)) break;
        if (entropy->last_used[i] < entropy->last_used[oldest]) oldest = i;
    }
    if (i == TABLES) {
        i = oldest;
        if (!huffman_build(&entropy->tables[i], table->bits, table->huffval, is_dc)) return NULL;
        lasting = (uint64_t)entropy->num_blocks * entropy->num_mcus >= MANY_BLOCKS;
    }
    entropy->tables[i].lasting |= lasting;
    entropy->last_used[i] = entropy->images;
    return &entropy->tables[i];
}

/* Whether a marker that the library does not read beyond lies in the data; as a rule it is at its end. */
static int is_ended(const uint8_t* data, const uint8_t* end) {
    for (; end - data >= 2; end--)
        if (end[-2] == 0xFF && end[-1] >= 0xC0 && end[-1] != 0xFF &&
            (end[-1] < JPEG_RST0 || end[-1] > JPEG_RST0 + 7))
            return 1;
    return 0;
}

/* Look for the entry points of the image; 0 if none will be used. */
static int plan_entries(jpeg_entropy* entropy, j_decompress_ptr library) {
    const size_t size = (size_t)(entropy->data_end - entropy->scan);
    uint32_t mark;
    entropy->note_at = UINT64_MAX;
    entropy->entries.count = entropy->entries.thin = entropy->loaded = 0;
    if (entropy->store == NULL || library->comps_in_scan > ENTRY_COMPONENTS) return 0;
    entry_plan(&entropy->grid, (int)library->MCUs_per_row, (int)library->MCU_rows_in_scan, size,
               entropy->store->share);
    if (entropy->grid.total == 0 || !is_ended(entropy->scan, entropy->data_end)) return 0;
    mark = entry_mark(&entropy->grid, entropy->scan, size);
    if (!entry_store_load(entropy->store, entropy->record, &entropy->entries) ||
        entropy->entries.mark != mark)
        entropy->entries.count = entropy->entries.thin = 0;
    entropy->entries.mark = mark;
    entry_thin_grid(&entropy->grid, entropy->entries.thin);
    if (entropy->entries.count > entropy->grid.total) entropy->entries.count = 0;
    entropy->loaded = entropy->entries.count;
    entropy->note_at = next_entry(entropy);
    return 1;
}

/* Prepare for the scan; 0 if it is not one for us. */
static int plan_scan(jpeg_entropy* entropy, j_decompress_ptr library) {
    int i;
    if (library->Ss != 0 || library->Se != DCTSIZE2 - 1 || library->Ah != 0 || library->Al != 0 ||
        library->comps_in_scan != library->num_components || library->unread_marker != 0 ||
        library->blocks_in_MCU < 1 || library->blocks_in_MCU > D_MAX_BLOCKS_IN_MCU)
        return 0;
    entropy->images++;
    entropy->may_skip = 0;
    entropy->rows.of_library = NULL;
    entropy->num_blocks = library->blocks_in_MCU;
    entropy->num_mcus = (uint64_t)library->MCUs_per_row * library->MCU_rows_in_scan;
    for (i = 0; i < entropy->num_blocks; i++) {
        const int number = library->MCU_membership[i];
        const jpeg_component_info* component = library->cur_comp_info[number];
        block_plan* plan = &entropy->blocks[i];
        if (i > 0 && number == plan[-1].component) {
            *plan = plan[-1];
            continue;
        }
        plan->component = number;
        plan->dc = find_table(entropy, library->dc_huff_tbl_ptrs, component->dc_tbl_no, 1);
        plan->ac = find_table(entropy, library->ac_huff_tbl_ptrs, component->ac_tbl_no, 0);
        if (plan->dc == NULL || plan->ac == NULL) return 0;
        plan->needs_dc = component->component_needed;
        plan->needs_ac = component->component_needed && BLOCK_SIZE(component) > 1;
    }
    entropy->data_end = library->src->next_input_byte + library->src->bytes_in_buffer;
    begin_bits(&entropy->reader, library->src->next_input_byte, entropy->data_end);
    memset(entropy->last_dc, 0, sizeof entropy->last_dc);
    entropy->restart_interval = entropy->until_restart = library->restart_interval;
    entropy->next_restart = 0;
    entropy->done = entropy->postponed = 0;
    entropy->may_jump = entropy->restart_interval != 0 && entropy->restart_interval < entropy->num_mcus &&
                        is_ended(entropy->reader.at, entropy->data_end);
    entropy->scan = entropy->reader.at;
    entropy->position = 0;
    entropy->note_at = UINT64_MAX;
    if (entropy->restart_interval == 0) entropy->may_jump = plan_entries(entropy, library);
    entropy->column = 0;
    entropy->num_columns = library->MCUs_per_row;
    jpeg_entropy_columns(entropy, 0, library->MCUs_per_row - 1);
    for (i = 0; i < entropy->num_blocks; i++)
        if (!entropy->blocks[i].needs_ac && !entropy->may_skip) make_skips(entropy);
    return 1;
}

static void start_pass(j_decompress_ptr library) {
    jpeg_entropy* entropy = (jpeg_entropy*)(void*)library->entropy;
    if (plan_scan(entropy, library)) {
        entropy->state = JPEG_ENTROPY_OWN;
        return;
    }
    library->entropy = entropy->library_decoder;
    ((const entropy_head*)(void*)library->entropy)->start_pass(library);
}

static void unexpected(j_decompress_ptr library) {
    ERREXIT(library, JERR_NOTIMPL);
}

void entropy_probe(entropy_head* head) {
    int i;
    for (i = 0; i < OTHER_FUNCTIONS; i++)
        head->others[i] = unexpected;
}

jpeg_entropy* jpeg_entropy_new(void) {
    jpeg_entropy* entropy = calloc(1, sizeof *entropy);
    int i;
    if (entropy == NULL) return NULL;
    entropy->progressive = jpeg_progressive_new();
    if (entropy->progressive == NULL) {
        free(entropy);
        return NULL;
    }
    entropy->head.start_pass = start_pass;
    for (i = 0; i < TABLES; i++)
        entropy->tables[i].is_dc = -1; /* matches nothing */
    return entropy;
}

void jpeg_entropy_kernels(jpeg_entropy* entropy, int portable) {
    entropy->head.decode_mcu = decode_mcu;
#if SIMD_X86
    if (!portable && __builtin_cpu_supports("bmi2")) entropy->head.decode_mcu = decode_mcu_bmi2;
#endif
    jpeg_progressive_kernels(entropy->progressive, portable);
}

void jpeg_entropy_free(jpeg_entropy* entropy) {
    if (entropy == NULL) return;
    jpeg_progressive_free(entropy->progressive);
    free(entropy);
}

void jpeg_entropy_probe(jpeg_entropy* entropy) {
    entropy_probe(&entropy->head);
    jpeg_progressive_probe(entropy->progressive);
}

void jpeg_entropy_install(jpeg_entropy* entropy, j_decompress_ptr library) {
    if (library->arith_code || library->buffered_image || library->data_precision != 8) return;
    if (library->progressive_mode)
        jpeg_progressive_install(entropy->progressive, library);
    else if (!jpeg_has_multiple_scans(library)) {
        entropy->library_decoder = library->entropy;
        library->entropy = (struct jpeg_entropy_decoder*)(void*)&entropy->head;
    }
}

void jpeg_entropy_array(jpeg_entropy* entropy, jvirt_barray_ptr array) {
    jpeg_progressive_array(entropy->progressive, array);
}

void jpeg_entropy_columns(jpeg_entropy* entropy, JDIMENSION first, JDIMENSION last) {
    entropy->first_column = first;
    entropy->last_column = last;
}

void jpeg_entropy_whole_rows(jpeg_entropy* entropy, j_decompress_ptr library, int level) {
    if (entropy->state == JPEG_ENTROPY_OWN) mcu_rows_install(entropy, library, level);
}

void jpeg_entropy_rows(jpeg_entropy* entropy, JDIMENSION count) {
    jpeg_progressive_rows(entropy->progressive, count);
}

int jpeg_entropy_passed_over(const jpeg_entropy* entropy) {
    return jpeg_progressive_passed_over(entropy->progressive);
}

void jpeg_entropy_entries(jpeg_entropy* entropy, entry_store* store, int64_t record) {
    entropy->store = store;
    entropy->record = record;
}

void jpeg_entropy_finish(jpeg_entropy* entropy) {
    const int new_points = entropy->entries.count - entropy->loaded;
    if (entropy->store != NULL && entropy->state == JPEG_ENTROPY_OWN && new_points > 0 &&
        (new_points * ENTRY_WORTH >= entropy->grid.total || entropy->entries.count == entropy->grid.total))
        entry_store_keep(entropy->store, entropy->record, &entropy->entries, &entropy->grid,
                         (size_t)(entropy->data_end - entropy->scan));
    entropy->store = NULL;
    entropy->loaded = entropy->entries.count = 0;
}

void jpeg_entropy_reset(jpeg_entropy* entropy) {
    entropy->state = JPEG_ENTROPY_LIBRARY;
    jpeg_progressive_reset(entropy->progressive);
}

enum jpeg_entropy_state jpeg_entropy_in_use(const jpeg_entropy* entropy) {
    const enum jpeg_entropy_state state = jpeg_progressive_in_use(entropy->progressive);
    return state != JPEG_ENTROPY_LIBRARY ? state : entropy->state;
}

#endif /* HAVE_LIBJPEG_TURBO */
