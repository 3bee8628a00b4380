/* Rows of MCUs, read and transformed at the same time, with AVX2; nothing is done where that is not there. */
#ifdef HAVE_LIBJPEG_TURBO

#include "mcus.h"
#include "idct_pair.h"

/* What the library's controller of coefficients begins with. */
typedef struct {
    void (*start_input_pass)(j_decompress_ptr);
    int (*consume_data)(j_decompress_ptr);
    void (*start_output_pass)(j_decompress_ptr);
    int (*decompress_data)(j_decompress_ptr, JSAMPIMAGE);
} coefficients_head;

void mcu_rows_remove(mcu_rows* rows, j_decompress_ptr library) {
    if (rows->of_library != NULL)
        ((coefficients_head*)(void*)library->coef)->decompress_data = rows->of_library;
    rows->of_library = NULL;
}

#if SIMD_X86

#define ROWS        __attribute__((target("avx2,bmi2")))
#define ROWS_AVX512 __attribute__((target("avx2,bmi2,avx512f,avx512bw,avx512dq,avx512vl")))
#define ROWS_INLINE static inline __attribute__((always_inline, target("avx2,bmi2")))

/* The pairs that are to be transformed; each is two pieces of work. */
struct mcu_work {
    block_pair* pairs;
    int next, pieces;
    _Alignas(32) int16_t between[8][16]; /* rows of a pair between the first piece and the second */
};

ROWS_INLINE void transform_piece(mcu_work* work) {
    block_pair* pair;
    __m256i row[8];
    int i;
    if (work->next == work->pieces) return;
    pair = &work->pairs[work->next / 2];
    if (work->next++ % 2 == 0) {
        idct_columns_of_pair(pair->blocks, pair->factors, row);
        for (i = 0; i < 8; i++)
            _mm256_store_si256((__m256i*)(void*)work->between[i], row[i]);
        idct_clear_pair(pair->blocks);
    } else {
        for (i = 0; i < 8; i++)
            row[i] = _mm256_load_si256((const __m256i*)(const void*)work->between[i]);
        idct_rows_of_pair(row, pair->out, pair->column, (int)pair->end - (int)pair->column);
        pair->column += pair->step;
    }
}

ROWS_INLINE void begin_work(mcu_work* work, block_pair* pairs, int count) {
    work->pairs = pairs;
    work->next = 0;
    work->pieces = 2 * count;
}

/* Let all pairs begin at the left end of a row. */
static void begin_row(mcu_rows* rows, int count, JSAMPIMAGE out) {
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < count; i++) {
            block_pair* pair = &rows->pairs[half][i];
            pair->out = out[pair->component] + (ptrdiff_t)pair->row * DCTSIZE;
            pair->column = pair->first;
        }
}

/* Let the library have this row and all that follow. */
static int row_of_library(j_decompress_ptr library, jpeg_entropy* entropy, JSAMPIMAGE out) {
    int (*decompress_data)(j_decompress_ptr, JSAMPIMAGE) = entropy->rows.of_library;
    memset(entropy->rows.memory, 0, sizeof entropy->rows.memory);
    if (!jpeg_entropy_hand_over(library, entropy)) return JPEG_SUSPENDED;
    return decompress_data(library, out);
}

/* Pass over this many MCUs and, if `go_on`, get to the one behind them; 0 if there is something wrong with them. */
ROWS static int pass_mcus(jpeg_entropy* entropy, JDIMENSION count, int go_on) {
    for (JDIMENSION i = 0; i < count; i++) {
        if (!pass_mcu(entropy)) return 0;
        count_mcus(entropy, 1);
    }
    return !go_on || arrive(entropy);
}

/* Read this many MCUs, and transform their blocks; 0 if there is something wrong with them. */
ROWS_INLINE int read_mcus(jpeg_entropy* entropy, JDIMENSION count) {
    mcu_rows* rows = &entropy->rows;
    const int num_blocks = entropy->num_blocks;
    int half = 0, num_mcus = 0;
    JDIMENSION left = count, run, i;
    mcu_work work = {NULL, 0, 0, {{0}}};
    for (; left > 0; left -= run) {
        const uint64_t most = until_boundary(entropy);
        scan_place place;
        run = most < left ? (JDIMENSION)most : left;
        if (run == 0 && !pass_boundary(entropy)) return 0;
        load_place(&place, entropy);
        for (i = 0; i < run; i++) {
            if (!read_blocks(entropy, &place, rows->mcus[half][num_mcus], 1, transform_piece, &work))
                return 0;
            if (++num_mcus == 2) {
                begin_work(&work, rows->pairs[half], num_blocks);
                half ^= 1;
                num_mcus = 0;
            }
        }
        if (place.reader.bits < 0) return 0; /* the data has ended */
        store_place(&place, entropy);
        move_on(entropy, run);
    }
    count_mcus(entropy, count);
    for (;; num_mcus = 0) { /* there is nothing left to read beside this */
        while (work.next < work.pieces)
            transform_piece(&work);
        if (num_mcus == 0) return 1;
        begin_work(&work, rows->pairs[half], num_blocks);
    }
}

ROWS static int read_mcus_avx2(jpeg_entropy* entropy, JDIMENSION count) {
    return read_mcus(entropy, count);
}

/* The same instructions, but on a processor that has twice as many registers for them. */
ROWS_AVX512 static int read_mcus_avx512(jpeg_entropy* entropy, JDIMENSION count) {
    return read_mcus(entropy, count);
}

/* What the library calls for every row of MCUs. */
static int decompress_row(j_decompress_ptr library, JSAMPIMAGE out) {
    jpeg_entropy* entropy = (jpeg_entropy*)(void*)library->entropy;
    const JDIMENSION first = entropy->first_column, end = entropy->last_column + 1;
    const uint64_t done = entropy->done;
    if (library->input_iMCU_row + 1 >= library->total_iMCU_rows)
        return entropy->rows.of_library(library, out);
    begin_row(&entropy->rows, entropy->num_blocks, out);
    if (!pass_mcus(entropy, first, 1) || !entropy->rows.read(entropy, end - first) ||
        !pass_mcus(entropy, entropy->num_columns - end, 0)) {
        entropy->done = done;
        return row_of_library(library, entropy, out);
    }
    library->output_iMCU_row++;
    library->input_iMCU_row++;
    return JPEG_ROW_COMPLETED;
}

/* Whether blocks of all components become 8 x 8 pixels each. */
static int is_whole(j_decompress_ptr library) {
    int i;
    for (i = 0; i < library->comps_in_scan; i++) {
        const jpeg_component_info* component = library->cur_comp_info[i];
        if (!component->component_needed || BLOCK_SIZE(component) != DCTSIZE ||
            component->quant_table == NULL)
            return 0;
    }
    return library->comps_in_scan > 1 && library->dct_method == JDCT_ISLOW;
}

/* The pairs of a component, of which `before` blocks of the MCU are others. */
static void plan_pairs(jpeg_entropy* entropy, const jpeg_component_info* component, JBLOCK* blocks, int half,
                       int before) {
    const int across = component->MCU_width, count = across * component->MCU_height;
    const JDIMENSION begin = entropy->first_column * (JDIMENSION)across;
    mcu_rows* rows = &entropy->rows;
    for (int i = 0; i < count; i++) {
        block_pair* pair = &rows->pairs[half][before + i];
        pair->blocks = blocks[2 * (before + i)];
        pair->factors = component->quant_table->quantval;
        pair->component = component->component_index;
        pair->row = i / across;
        pair->first = (JDIMENSION)(2 * DCTSIZE * (i % across + half * across));
        pair->step = (JDIMENSION)(4 * DCTSIZE * across);
        pair->end = DCTSIZE * (component->width_in_blocks - begin);
        for (int mcu = 0; mcu < 2; mcu++) {
            const int column = mcu * across + i % across;
            const int place = 2 * (before + i / across * across + column / 2) + column % 2;
            rows->mcus[half][mcu][before + i] = &blocks[place];
        }
    }
}

void mcu_rows_install(jpeg_entropy* entropy, j_decompress_ptr library, int level) {
    coefficients_head* head = (coefficients_head*)(void*)library->coef;
    mcu_rows* rows = &entropy->rows;
    JBLOCK* blocks = (JBLOCK*)(void*)(rows->memory + (64 - (uintptr_t)rows->memory % 64) % 64);
    if (!__builtin_cpu_supports("bmi2") || !is_whole(library)) return;
    for (int half = 0; half < 2; half++, blocks += 2 * entropy->num_blocks) {
        int before = 0;
        for (int i = 0; i < library->comps_in_scan; i++) {
            plan_pairs(entropy, library->cur_comp_info[i], blocks, half, before);
            before += library->cur_comp_info[i]->MCU_blocks;
        }
    }
    rows->read = level == SIMD_LEVEL_AVX512 ? read_mcus_avx512 : read_mcus_avx2;
    rows->of_library = head->decompress_data;
    head->decompress_data = decompress_row;
}

#else

void mcu_rows_install(jpeg_entropy* entropy, j_decompress_ptr library, int level) {
    (void)entropy, (void)library, (void)level;
}

#endif
#endif /* HAVE_LIBJPEG_TURBO */
