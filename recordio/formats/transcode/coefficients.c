/* JPEG coefficients read and written by libjpeg-turbo; every jump of its error handling stays here. */
#include "coefficients.h"

#ifdef HAVE_LIBJPEG_TURBO

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "../jpeg/library.h"

struct jpeg_coefficients {
    struct jpeg_decompress_struct library;
    struct jpeg_compress_struct writer; /* created when something is to be written */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    const JOCTET* data;
    struct jpeg_progress_mgr progress;
    jmp_buf failure;
    char message[JMSG_LENGTH_MAX];
    int status;  /* set before jumping to `failure` */
    int lenient; /* what changes no pixel is no damage */
    int ran_out; /* the data ended without an end marker, which was put there */
    jpeg_limits limits;
    jvirt_barray_ptr* arrays;
    jpeg_frame frame;
};

static int fail(jpeg_coefficients* coefficients, int status, const char* message) {
    coefficients->status = status;
    snprintf(coefficients->message, sizeof coefficients->message, "%s", message);
    return status;
}

/* ---- what libjpeg calls ---- */

static void on_error(j_common_ptr library) {
    jpeg_coefficients* coefficients = library->client_data;
    const int code = library->err->msg_code;
    library->err->format_message(library, coefficients->message);
    coefficients->status =
        coefficients->ran_out && code != JERR_OUT_OF_MEMORY ? JPEG_TRUNCATED
        : code == JERR_OUT_OF_MEMORY                        ? JPEG_NO_MEMORY
        : code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED || code == JERR_ARITH_NOTIMPL
            ? JPEG_UNSUPPORTED
            : JPEG_CORRUPT;
    LONG_JUMP(coefficients->failure, 1);
}

/* Whether the bytes in front of the end marker are filling: all the same.  Others are the rest of codes
 * of which a decoder has lost track, which is how most damage shows. */
static int is_filling(const jpeg_coefficients* coefficients, size_t count) {
    const JOCTET* end = coefficients->source.next_input_byte; /* the library has yet to take the marker */
    size_t i;
    if (count == 0 || count > (size_t)(end - coefficients->data)) return 0;
    for (i = 1; i < count && end[-1] == end[-1 - (ptrdiff_t)i]; i++)
        ;
    return i == count;
}

/* Whether a warning is about something that no pixel depends on. */
static int is_harmless(const jpeg_coefficients* coefficients) {
    const struct jpeg_error_mgr* errors = &coefficients->errors;
    switch (errors->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
        return 1;
    case JWRN_EXTRANEOUS_DATA:
        if (coefficients->ran_out) return 1; /* what follows an image without an end marker */
        return errors->msg_parm.i[1] == JPEG_EOI && is_filling(coefficients, (size_t)errors->msg_parm.i[0]);
    default:
        return 0;
    }
}

static void on_message(j_common_ptr library, int level) {
    const jpeg_coefficients* coefficients = library->client_data;
    if (level < 0 && !(coefficients->lenient && is_harmless(coefficients))) on_error(library);
}

static int refuse_scans(jpeg_coefficients* coefficients, enum jpeg_work work) {
    coefficients->status = JPEG_TOO_MANY_SCANS;
    explain_work(work, &coefficients->limits, (int)coefficients->library.image_width,
                 (int)coefficients->library.image_height, coefficients->message,
                 sizeof coefficients->message);
    return JPEG_TOO_MANY_SCANS;
}

static void on_progress(j_common_ptr library) {
    jpeg_coefficients* coefficients = library->client_data;
    const enum jpeg_work work =
        check_scan(coefficients->library.input_scan_number, &coefficients->limits,
                   (int)coefficients->library.image_width, (int)coefficients->library.image_height);
    if (work != JPEG_WORK_OK) {
        refuse_scans(coefficients, work);
        LONG_JUMP(coefficients->failure, 1);
    }
}

/* A file that has its end marker is never asked for more.  All pixels may be there without one: then
 * nothing is missing if it is put there. */
static boolean fill_input(j_decompress_ptr library) {
    static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
    jpeg_coefficients* coefficients = library->client_data;
    if (coefficients->lenient) {
        coefficients->ran_out = 1;
        coefficients->source.next_input_byte = end_of_image;
        coefficients->source.bytes_in_buffer = sizeof end_of_image;
        return TRUE;
    }
    fail(coefficients, JPEG_TRUNCATED, "the data ends inside the image");
    LONG_JUMP(coefficients->failure, 1);
    return FALSE;
}

/* ---- what the file is ---- */

/* Why the coefficients are not all there is to know, or NULL. */
static const char* find_obstacle(const struct jpeg_decompress_struct* library) {
    int i, k;
    if (library->num_components > JPEG_MAX_COMPONENTS) return "it has more than four components";
    for (i = 0; i < library->num_components; i++) {
        if (library->comp_info[i].quant_table == NULL) return "it lacks a component";
        for (k = 0; library->coef_bits != NULL && k < DCTSIZE2; k++)
            if (library->coef_bits[i][k] != 0) /* decoders smooth such an image */
                return "it is progressive and lacks its last scans";
    }
    return NULL;
}

static int ceil_div(int value, int by) {
    return (value + by - 1) / by;
}

static void describe(jpeg_coefficients* coefficients) {
    const struct jpeg_decompress_struct* library = &coefficients->library;
    jpeg_frame* frame = &coefficients->frame;
    const int single = library->num_components == 1; /* its MCUs are blocks, whatever the sampling */
    int i, k;
    frame->width = (int)library->image_width;
    frame->height = (int)library->image_height;
    frame->components = library->num_components;
    frame->colours = (int)library->jpeg_color_space;
    frame->mcus_per_row = ceil_div(frame->width, single ? 8 : 8 * library->max_h_samp_factor);
    frame->mcu_rows = ceil_div(frame->height, single ? 8 : 8 * library->max_v_samp_factor);
    frame->sequential = !library->progressive_mode && library->input_scan_number == 1;
    for (i = 0; i < frame->components; i++) {
        const jpeg_component_info* from = &library->comp_info[i];
        jpeg_component* to = &frame->component[i];
        to->id = from->component_id;
        to->columns = from->h_samp_factor;
        to->rows = from->v_samp_factor;
        to->width = (int)from->width_in_blocks;
        to->height = (int)from->height_in_blocks;
        for (k = 0; k < DCTSIZE2; k++)
            to->quantisation[k] = from->quant_table->quantval[k];
    }
}

/* ---- one file ---- */

/* 0 if there is no memory, or the library is of another version. */
static int create(jpeg_coefficients* coefficients) {
    coefficients->library.err = jpeg_std_error(&coefficients->errors);
    coefficients->errors.error_exit = on_error;
    coefficients->errors.emit_message = on_message;
    coefficients->errors.output_message = ignore_output;
    coefficients->library.client_data = coefficients->writer.client_data = coefficients;
    if (SET_JUMP(coefficients->failure)) return 0;
    jpeg_create_decompress(&coefficients->library);
    coefficients->progress.progress_monitor = on_progress;
    coefficients->library.progress = &coefficients->progress;
    coefficients->source.init_source = ignore_source;
    coefficients->source.fill_input_buffer = fill_input;
    coefficients->source.skip_input_data = skip_input;
    coefficients->source.resync_to_restart = jpeg_resync_to_restart;
    coefficients->source.term_source = ignore_source;
    coefficients->library.src = &coefficients->source;
    return 1;
}

jpeg_coefficients* jpeg_coefficients_new(void) {
    jpeg_coefficients* coefficients = calloc(1, sizeof *coefficients);
    if (coefficients != NULL && !create(coefficients)) {
        jpeg_coefficients_free(coefficients);
        return NULL;
    }
    return coefficients;
}

void jpeg_coefficients_free(jpeg_coefficients* coefficients) {
    if (coefficients == NULL) return;
    jpeg_destroy_compress(&coefficients->writer);
    jpeg_destroy_decompress(&coefficients->library);
    free(coefficients);
}

void jpeg_coefficients_be_lenient(jpeg_coefficients* coefficients) {
    coefficients->lenient = 1;
}

int jpeg_coefficients_read(jpeg_coefficients* coefficients, const uint8_t* data, size_t size,
                           const jpeg_limits* limits) {
    struct jpeg_decompress_struct* library = &coefficients->library;
    const char* obstacle;
    enum jpeg_work work;
    if (data == NULL || size < 3 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF)
        return fail(coefficients, JPEG_NOT_JPEG, "the data does not start like a JPEG file");
    coefficients->limits = *limits;
    coefficients->source.next_input_byte = coefficients->data = data;
    coefficients->source.bytes_in_buffer = size;
    if (SET_JUMP(coefficients->failure)) return coefficients->status;
    jpeg_read_header(library, TRUE);
    if ((int64_t)library->image_width * (int64_t)library->image_height > limits->most[JPEG_MAX_PIXELS]) {
        fail(coefficients, JPEG_TOO_LARGE, "");
        explain_pixels(limits, (int)library->image_width, (int)library->image_height, coefficients->message,
                       sizeof coefficients->message);
        return JPEG_TOO_LARGE;
    }
    if (library->data_precision != 8)
        return fail(coefficients, JPEG_UNSUPPORTED, "its samples have not 8 bits");
    if (library->arith_code) return fail(coefficients, JPEG_UNSUPPORTED, "it is coded arithmetically");
    work = count_scans(data, size, limits, (int)library->image_width, (int)library->image_height);
    if (work != JPEG_WORK_OK) return refuse_scans(coefficients, work);
    coefficients->arrays = jpeg_read_coefficients(library);
    obstacle = find_obstacle(library);
    if (coefficients->arrays == NULL || obstacle != NULL)
        return fail(coefficients, JPEG_UNSUPPORTED, obstacle ? obstacle : "it cannot be read");
    describe(coefficients);
    return JPEG_OK;
}

const jpeg_frame* jpeg_coefficients_frame(const jpeg_coefficients* coefficients) {
    return &coefficients->frame;
}

int jpeg_coefficients_rows(jpeg_coefficients* coefficients, int component, int first, int count,
                           const int16_t** rows) {
    j_common_ptr library = (j_common_ptr)&coefficients->library;
    JBLOCKARRAY blocks;
    int i;
    if (SET_JUMP(coefficients->failure)) return 0;
    blocks = library->mem->access_virt_barray(library, coefficients->arrays[component], (JDIMENSION)first,
                                              (JDIMENSION)count, FALSE);
    for (i = 0; i < count; i++)
        rows[i] = blocks[i][0];
    return 1;
}

/* ---- writing ---- */

/* The largest absolute value that a baseline scan codes. */
#define LARGEST_AC            1023
#define LARGEST_DC_DIFFERENCE 2047

/* Tenths of bits that a coefficient, one beyond 1, and a block take with the shortest codes; as found
 * for photographs of many sizes and qualities, most of whose scans it tells to 5 %. */
#define COEFFICIENT_WEIGHT 39
#define LARGER_WEIGHT      35
#define BLOCK_WEIGHT       44

/* What coding a block takes; negative if one of its coefficients is too large. */
static int weigh_block(const int16_t* block) {
    int16_t coefficients = 0, larger = 0, too_large = 0;
    int k;
    for (k = 0; k < JPEG_BLOCK; k++) {
        coefficients += block[k] != 0;
        larger += block[k] > 1 || block[k] < -1;
        too_large |= k > 0 && (block[k] > LARGEST_AC || block[k] < -LARGEST_AC);
    }
    return too_large ? -1 : COEFFICIENT_WEIGHT * coefficients + LARGER_WEIGHT * larger + BLOCK_WEIGHT;
}

static int64_t weigh_component(jpeg_coefficients* coefficients, int component) {
    const jpeg_component* of = &coefficients->frame.component[component];
    int64_t weight = 0;
    int row, column, least = 0, most = 0;
    for (row = 0; row < of->height; row++) {
        const int16_t* block;
        if (!jpeg_coefficients_rows(coefficients, component, row, 1, &block)) return -1;
        for (column = 0; column < of->width; column++, block += JPEG_BLOCK) {
            const int block_weight = weigh_block(block);
            if (block_weight < 0) return -1;
            weight += block_weight;
            least = block[0] < least ? block[0] : least;
            most = block[0] > most ? block[0] : most;
        }
    }
    return most - least > LARGEST_DC_DIFFERENCE ? -1 : weight;
}

int64_t jpeg_coefficients_scan_bytes(jpeg_coefficients* coefficients) {
    int64_t weight = 0;
    int i;
    for (i = 0; i < coefficients->frame.components; i++) {
        const int64_t component_weight = weigh_component(coefficients, i);
        if (component_weight < 0) return -1;
        weight += component_weight;
    }
    return weight / (10 * 8);
}

/* Jumps to `failure`, as all that writes. */
static void prepare_writer(jpeg_coefficients* coefficients) {
    struct jpeg_compress_struct* writer = &coefficients->writer;
    if (writer->err != NULL) return;
    writer->err = &coefficients->errors;
    jpeg_create_compress(writer);
    jpeg_copy_critical_parameters(&coefficients->library, writer);
    writer->write_JFIF_header = writer->write_Adobe_marker = FALSE;
}

static int is_same_code(const JHUFF_TBL* one, const JHUFF_TBL* other) {
    int count = 0, length;
    if (one == NULL || memcmp(one->bits + 1, other->bits + 1, 16) != 0) return 0;
    for (length = 1; length <= 16; length++)
        count += one->bits[length];
    return memcmp(one->huffval, other->huffval, (size_t)count) == 0;
}

int jpeg_coefficients_standard_codes(jpeg_coefficients* coefficients) {
    const struct jpeg_decompress_struct* library = &coefficients->library;
    const struct jpeg_compress_struct* writer = &coefficients->writer;
    int i;
    if (!coefficients->frame.sequential || SET_JUMP(coefficients->failure)) return 0;
    prepare_writer(coefficients);
    for (i = 0; i < library->num_components; i++) {
        const jpeg_component_info *from = &library->comp_info[i], *to = &writer->comp_info[i];
        if (!is_same_code(library->dc_huff_tbl_ptrs[from->dc_tbl_no],
                          writer->dc_huff_tbl_ptrs[to->dc_tbl_no]) ||
            !is_same_code(library->ac_huff_tbl_ptrs[from->ac_tbl_no],
                          writer->ac_huff_tbl_ptrs[to->ac_tbl_no]))
            return 0;
    }
    return 1;
}

typedef struct {
    struct jpeg_destination_mgr manager; /* first: libjpeg's callbacks find us by its address */
    jpeg_bytes* bytes;
} destination;

/* Called when all there is has been filled. */
static boolean grow_output(j_compress_ptr library) {
    destination* to = (destination*)library->dest;
    const size_t size = to->bytes->size;
    uint8_t* data = size > 0 && size <= SIZE_MAX / 2 ? realloc(to->bytes->data, 2 * size) : NULL;
    if (data == NULL) ERREXIT1(library, JERR_OUT_OF_MEMORY, 0);
    to->bytes->data = data;
    to->bytes->size = 2 * size;
    to->manager.next_output_byte = data + size;
    to->manager.free_in_buffer = size;
    return TRUE;
}

static void begin_output(j_compress_ptr library) {
    destination* to = (destination*)library->dest;
    to->bytes->data = malloc(to->bytes->size);
    if (to->bytes->data == NULL) ERREXIT1(library, JERR_OUT_OF_MEMORY, 0);
    to->manager.next_output_byte = to->bytes->data;
    to->manager.free_in_buffer = to->bytes->size;
}

static void end_output(j_compress_ptr library) {
    destination* to = (destination*)library->dest;
    to->bytes->size -= to->manager.free_in_buffer;
}

int jpeg_coefficients_write(jpeg_coefficients* coefficients, int restart, int standard, jpeg_bytes* bytes) {
    struct jpeg_compress_struct* writer = &coefficients->writer;
    destination to;
    memset(&to, 0, sizeof to);
    to.bytes = bytes;
    to.manager.init_destination = begin_output;
    to.manager.empty_output_buffer = grow_output;
    to.manager.term_destination = end_output;
    if (SET_JUMP(coefficients->failure)) return coefficients->status;
    prepare_writer(coefficients);
    writer->dest = &to.manager;
    writer->restart_interval = (unsigned)restart;
    writer->optimize_coding = !standard;
    jpeg_write_coefficients(writer, coefficients->arrays);
    jpeg_finish_compress(writer);
    return JPEG_OK;
}

const char* jpeg_coefficients_message(const jpeg_coefficients* coefficients) {
    return coefficients->message;
}

#endif /* HAVE_LIBJPEG_TURBO; otherwise rewrite_unavailable.c stands in */
