/* How jpeg_coefficients.h is done with libjpeg-turbo; every jump of its error handling stays here. */
#include "coefficients.h"

#ifdef HAVE_LIBJPEG_TURBO

#include "codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "../jpeg/library.h"

struct jpeg_coefficients {
    struct jpeg_decompress_struct library; /* first: libjpeg's callbacks find us by its address */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failure;
    char message[JMSG_LENGTH_MAX];
    int status; /* set before jumping to `failure` */
    jpeg_limits limits;
    jvirt_barray_ptr *arrays;
    jpeg_frame frame;
};

static int fail(jpeg_coefficients *coefficients, int status, const char *message)
{
    coefficients->status = status;
    snprintf(coefficients->message, sizeof coefficients->message, "%s", message);
    return status;
}

/* ---- what libjpeg calls ---- */

static void on_error(j_common_ptr library)
{
    jpeg_coefficients *coefficients = (jpeg_coefficients *)library;
    const int code = library->err->msg_code;
    library->err->format_message(library, coefficients->message);
    coefficients->status = code == JERR_OUT_OF_MEMORY ? JPEG_NO_MEMORY
                           : code == JERR_BAD_PRECISION || code == JERR_SOF_UNSUPPORTED ||
                                   code == JERR_ARITH_NOTIMPL
                               ? JPEG_UNSUPPORTED
                               : JPEG_CORRUPT;
    LONG_JUMP(coefficients->failure, 1);
}

static void on_message(j_common_ptr library, int level)
{
    if (level < 0)
        on_error(library);
}

static int refuse_scans(jpeg_coefficients *coefficients, enum jpeg_work found)
{
    coefficients->status = JPEG_TOO_MANY_SCANS;
    explain_work(found, &coefficients->limits, (int)coefficients->library.image_width,
                 (int)coefficients->library.image_height, coefficients->message,
                 sizeof coefficients->message);
    return JPEG_TOO_MANY_SCANS;
}

static void on_progress(j_common_ptr library)
{
    jpeg_coefficients *coefficients = (jpeg_coefficients *)library;
    const enum jpeg_work found = check_scan(
        coefficients->library.input_scan_number, &coefficients->limits,
        (int)coefficients->library.image_width, (int)coefficients->library.image_height);
    if (found != JPEG_WORK_OK) {
        refuse_scans(coefficients, found);
        LONG_JUMP(coefficients->failure, 1);
    }
}

/* A file that has its end marker is never asked for more. */
static boolean fill_input(j_decompress_ptr library)
{
    jpeg_coefficients *coefficients = (jpeg_coefficients *)library;
    fail(coefficients, JPEG_TRUNCATED, "the data ends inside the image");
    LONG_JUMP(coefficients->failure, 1);
    return FALSE;
}

/* ---- what the file is ---- */

/* Why the coefficients are not all there is to know, or NULL. */
static const char *find_obstacle(const struct jpeg_decompress_struct *library)
{
    int i, k;
    if (library->num_components > JPEG_MAX_COMPONENTS)
        return "it has more than four components";
    for (i = 0; i < library->num_components; i++) {
        if (library->comp_info[i].quant_table == NULL)
            return "it lacks a component";
        for (k = 0; library->coef_bits != NULL && k < DCTSIZE2; k++)
            if (library->coef_bits[i][k] != 0) /* decoders smooth such an image */
                return "it is progressive and lacks its last scans";
    }
    return NULL;
}

static int is_standard(const JHUFF_TBL *table, int chroma, int is_dc)
{
    const uint8_t *lengths, *symbols;
    const int count = jpeg_standard_code(chroma, is_dc, &lengths, &symbols);
    return table != NULL && memcmp(table->bits + 1, lengths + 1, 16) == 0 &&
           memcmp(table->huffval, symbols, (size_t)count) == 0;
}

static void describe(jpeg_coefficients *coefficients)
{
    const struct jpeg_decompress_struct *library = &coefficients->library;
    jpeg_frame *frame = &coefficients->frame;
    int i, k;
    frame->width = (int)library->image_width;
    frame->height = (int)library->image_height;
    frame->components = library->num_components;
    frame->colours = library->jpeg_color_space == JCS_YCbCr  ? JPEG_COLOURS_YCC
                     : library->jpeg_color_space == JCS_YCCK ? JPEG_COLOURS_YCCK
                                                             : JPEG_COLOURS_OTHER;
    frame->sequential = !library->progressive_mode && library->input_scan_number == 1;
    frame->standard_tables = frame->sequential;
    for (i = 0; i < frame->components; i++) {
        const jpeg_component_info *from = &library->comp_info[i];
        const int chroma = jpeg_is_chroma(frame->colours, i);
        jpeg_component *to = &frame->component[i];
        to->id = from->component_id;
        to->columns = from->h_samp_factor;
        to->rows = from->v_samp_factor;
        to->width = (int)from->width_in_blocks;
        to->height = (int)from->height_in_blocks;
        for (k = 0; k < DCTSIZE2; k++)
            to->quantisation[k] = from->quant_table->quantval[k];
        frame->standard_tables =
            frame->standard_tables &&
            is_standard(library->dc_huff_tbl_ptrs[from->dc_tbl_no], chroma, 1) &&
            is_standard(library->ac_huff_tbl_ptrs[from->ac_tbl_no], chroma, 0);
    }
}

/* ---- one file ---- */

/* 0 if there is no memory, or the library is of another version. */
static int create(jpeg_coefficients *coefficients)
{
    coefficients->library.err = jpeg_std_error(&coefficients->errors);
    coefficients->errors.error_exit = on_error;
    coefficients->errors.emit_message = on_message;
    coefficients->errors.output_message = ignore_output;
    if (SET_JUMP(coefficients->failure))
        return 0;
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

jpeg_coefficients *jpeg_coefficients_new(void)
{
    jpeg_coefficients *coefficients = calloc(1, sizeof *coefficients);
    if (coefficients != NULL && !create(coefficients)) {
        jpeg_coefficients_free(coefficients);
        return NULL;
    }
    return coefficients;
}

void jpeg_coefficients_free(jpeg_coefficients *coefficients)
{
    if (coefficients == NULL)
        return;
    jpeg_destroy_decompress(&coefficients->library);
    free(coefficients);
}

int jpeg_coefficients_read(jpeg_coefficients *coefficients, const uint8_t *data, size_t size,
                           const jpeg_limits *limits)
{
    struct jpeg_decompress_struct *library = &coefficients->library;
    const char *obstacle;
    enum jpeg_work found;
    if (data == NULL || size < 3 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF)
        return fail(coefficients, JPEG_NOT_JPEG, "the data does not start like a JPEG file");
    coefficients->limits = *limits;
    coefficients->source.next_input_byte = data;
    coefficients->source.bytes_in_buffer = size;
    if (SET_JUMP(coefficients->failure))
        return coefficients->status;
    jpeg_read_header(library, TRUE);
    if ((int64_t)library->image_width * (int64_t)library->image_height > limits->most[JPEG_MAX_PIXELS]) {
        fail(coefficients, JPEG_TOO_LARGE, "");
        explain_pixels(limits, (int)library->image_width, (int)library->image_height,
                       coefficients->message, sizeof coefficients->message);
        return JPEG_TOO_LARGE;
    }
    if (library->data_precision != 8)
        return fail(coefficients, JPEG_UNSUPPORTED, "its samples have not 8 bits");
    if (library->arith_code)
        return fail(coefficients, JPEG_UNSUPPORTED, "it is coded arithmetically");
    found = count_scans(data, size, limits, (int)library->image_width, (int)library->image_height);
    if (found != JPEG_WORK_OK)
        return refuse_scans(coefficients, found);
    coefficients->arrays = jpeg_read_coefficients(library);
    obstacle = find_obstacle(library);
    if (coefficients->arrays == NULL || obstacle != NULL)
        return fail(coefficients, JPEG_UNSUPPORTED, obstacle ? obstacle : "it cannot be read");
    describe(coefficients);
    return JPEG_OK;
}

const jpeg_frame *jpeg_coefficients_frame(const jpeg_coefficients *coefficients)
{
    return &coefficients->frame;
}

int jpeg_coefficients_rows(jpeg_coefficients *coefficients, int component, int first, int count,
                           const int16_t **rows)
{
    j_common_ptr library = (j_common_ptr)&coefficients->library;
    JBLOCKARRAY found;
    int i;
    if (SET_JUMP(coefficients->failure))
        return 0;
    found = library->mem->access_virt_barray(library, coefficients->arrays[component],
                                             (JDIMENSION)first, (JDIMENSION)count, FALSE);
    for (i = 0; i < count; i++)
        rows[i] = found[i][0];
    return 1;
}

const char *jpeg_coefficients_message(const jpeg_coefficients *coefficients)
{
    return coefficients->message;
}

#endif /* HAVE_LIBJPEG_TURBO; otherwise jpeg_rewrite_unavailable.c stands in */
