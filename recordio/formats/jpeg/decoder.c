/* JPEG rows of a rectangle at a scale, by libjpeg-turbo; every jump of its error handling stays here. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LIBJPEG_TURBO

#include <jpeglib.h>
#include <jerror.h>

#include "entropy.h"
#include "idct.h"
#include "library.h"
#include "recordio/kernels/simd.h"
#include "strip.h"

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

/* Smooth upsampling mixes in the nearest chroma sample of the neighbouring column; with a chroma
 * sample for up to 4 columns nothing further away than this can reach a pixel.  Where there is one for
 * every column, nothing at all can. */
#define SIDE_MARGIN 4
/* The library chooses its upsampling routine by the width of the whole image, and its routines for
 * smooth upsampling need three chroma samples: never let it work on fewer. */
#define NARROWEST 32

/* libjpeg keeps quantisation and Huffman tables from one image to the next, for files that leave them
 * out.  Here every image must stand for itself, or the result of a damaged one would depend on its
 * predecessor; so the tables live in the decoder and are forgotten with each image. */
#define MAX_TABLES (NUM_QUANT_TBLS + 2 * NUM_HUFF_TBLS)

typedef union {
    JQUANT_TBL quantisation;
    JHUFF_TBL huffman;
} coding_table;

enum state { IDLE, OPENED, STARTED };

struct jpeg_decoder {
    struct jpeg_decompress_struct library; /* first: libjpeg's callbacks find us by its address */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf failure;
    char message[JMSG_LENGTH_MAX];
    enum state state;
    int status;    /* set before jumping to `failure` */
    int in_header; /* the data may not end here at all */
    int ran_out;   /* the library asked for bytes behind the end of the data */
    int starved;   /* the entropy decoder went on without data */
    const uint8_t* data;
    size_t size;
    jpeg_limits limits;
    int supported;
    int end_row;    /* of the scaled image, the first below the rectangle */
    ptrdiff_t left; /* bytes between the start of a decoded row and the rectangle */
    int width;      /* of the rectangle */
    int of_inks;    /* channels that four inks become in each row; 0: the library gives them */
    jpeg_strip strip;
    void* (*alloc_small)(j_common_ptr, int, size_t); /* libjpeg's own */
    jvirt_barray_ptr (*request_virt_barray)(j_common_ptr, int, boolean, JDIMENSION, JDIMENSION, JDIMENSION);
    void (*realize_virt_arrays)(j_common_ptr);
    jpeg_entropy* entropy; /* NULL: never asked for */
    int own_entropy;
    int level; /* of the instructions in use (simd.h); with AVX2 blocks are transformed by ours */
    jpeg_idct idct;
    int tables_used;
    coding_table tables[MAX_TABLES];
};

static const JOCTET end_of_image[2] = {0xFF, JPEG_EOI};
static const char data_ends[] = "the data ends inside the image";

static int fail(jpeg_decoder* decoder, int status, const char* message) {
    decoder->status = status;
    snprintf(decoder->message, sizeof decoder->message, "%s", message);
    return status;
}

/* ---- what libjpeg calls ---- */

static void on_error(j_common_ptr library) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    library->err->format_message(library, decoder->message);
    if (library->err->msg_code == JERR_OUT_OF_MEMORY)
        decoder->status = JPEG_NO_MEMORY;
    else if (decoder->ran_out) /* then the error is but a consequence */
        fail(decoder, JPEG_TRUNCATED, data_ends);
    else
        decoder->status = JPEG_CORRUPT;
    LONG_JUMP(decoder->failure, 1);
}

static void on_message(j_common_ptr library, int level) {
    if (level < 0) {
        library->err->num_warnings++;
        if (library->err->msg_code == JWRN_HIT_MARKER) ((jpeg_decoder*)library)->starved = 1;
    }
}

static void on_progress(j_common_ptr library) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    const int width = (int)decoder->library.image_width;
    const int height = (int)decoder->library.image_height;
    const enum jpeg_work work =
        check_scan(decoder->library.input_scan_number, &decoder->limits, width, height);
    if (work != JPEG_WORK_OK) {
        decoder->status = JPEG_TOO_MANY_SCANS;
        explain_work(work, &decoder->limits, width, height, decoder->message, sizeof decoder->message);
        LONG_JUMP(decoder->failure, 1);
    }
}

/* The entropy decoder reads ahead, so that asking for more bytes is no damage by itself: feed it an
 * end marker and let `check_complete` find out whether anything was missing. */
static boolean fill_input(j_decompress_ptr library) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    decoder->ran_out = 1;
    if (decoder->in_header) {
        fail(decoder, JPEG_TRUNCATED, "the data ends inside the header");
        LONG_JUMP(decoder->failure, 1);
    }
    decoder->source.next_input_byte = end_of_image;
    decoder->source.bytes_in_buffer = sizeof end_of_image;
    return TRUE;
}

static void* alloc_small(j_common_ptr library, int pool, size_t size) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    if (pool == JPOOL_PERMANENT && decoder->state != IDLE && size <= sizeof(coding_table) &&
        decoder->tables_used < MAX_TABLES)
        return &decoder->tables[decoder->tables_used++];
    return decoder->alloc_small(library, pool, size);
}

/* The library does this for the components of an image that has several scans, in their order. */
static jvirt_barray_ptr request_virt_barray(j_common_ptr library, int pool, boolean pre_zero,
                                            JDIMENSION width, JDIMENSION height, JDIMENSION most_rows) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    jvirt_barray_ptr array = decoder->request_virt_barray(library, pool, pre_zero, width, height, most_rows);
    if (decoder->own_entropy) jpeg_entropy_array(decoder->entropy, array);
    return array;
}

/* The library does this in jpeg_start_decompress, between choosing an entropy decoder and asking it to
 * begin. */
static void realize_virt_arrays(j_common_ptr library) {
    jpeg_decoder* decoder = (jpeg_decoder*)library;
    decoder->realize_virt_arrays(library);
    if (decoder->own_entropy && !decoder->ran_out) jpeg_entropy_install(decoder->entropy, &decoder->library);
}

static void forget_tables(jpeg_decoder* decoder) {
    struct jpeg_decompress_struct* library = &decoder->library;
    int i;
    for (i = 0; i < NUM_QUANT_TBLS; i++)
        library->quant_tbl_ptrs[i] = NULL;
    for (i = 0; i < NUM_HUFF_TBLS; i++)
        library->dc_huff_tbl_ptrs[i] = library->ac_huff_tbl_ptrs[i] = NULL;
    decoder->tables_used = 0;
}

/* ---- life ---- */

int jpeg_decoder_available(void) {
    return 1;
}

const char* jpeg_decoder_library(void) {
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
}

jpeg_decoder* jpeg_decoder_new(void) {
    jpeg_decoder* decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) return NULL;
    decoder->library.err = jpeg_std_error(&decoder->errors);
    decoder->errors.error_exit = on_error;
    decoder->errors.emit_message = on_message;
    decoder->errors.output_message = ignore_output;
    if (SET_JUMP(decoder->failure)) { /* no memory, or a library of another version */
        jpeg_destroy_decompress(&decoder->library);
        free(decoder);
        return NULL;
    }
    jpeg_create_decompress(&decoder->library);
    decoder->alloc_small = decoder->library.mem->alloc_small;
    decoder->library.mem->alloc_small = alloc_small;
    decoder->request_virt_barray = decoder->library.mem->request_virt_barray;
    decoder->library.mem->request_virt_barray = request_virt_barray;
    decoder->realize_virt_arrays = decoder->library.mem->realize_virt_arrays;
    decoder->library.mem->realize_virt_arrays = realize_virt_arrays;
    decoder->progress.progress_monitor = on_progress;
    decoder->library.progress = &decoder->progress;
    decoder->source.init_source = ignore_source;
    decoder->source.fill_input_buffer = fill_input;
    decoder->source.skip_input_data = skip_input;
    decoder->source.resync_to_restart = jpeg_resync_to_restart;
    decoder->source.term_source = ignore_source;
    decoder->library.src = &decoder->source;
    return decoder;
}

void jpeg_decoder_free(jpeg_decoder* decoder) {
    if (decoder == NULL) return;
    jpeg_destroy_decompress(&decoder->library);
    jpeg_entropy_free(decoder->entropy);
    free(decoder->strip.memory);
    free(decoder);
}

int jpeg_decoder_choose(jpeg_decoder* decoder, enum jpeg_entropy_choice choice) {
    if (choice != JPEG_ENTROPY_OF_LIBRARY && decoder->entropy == NULL) {
        decoder->entropy = jpeg_entropy_new();
        if (decoder->entropy == NULL) return JPEG_NO_MEMORY;
    }
    decoder->own_entropy = choice != JPEG_ENTROPY_OF_LIBRARY;
    decoder->level = choice == JPEG_ENTROPY_OF_LIBRARY || choice == JPEG_ENTROPY_PORTABLE ? SIMD_LEVEL_PLAIN
                     : choice == JPEG_ENTROPY_AVX2 ? simd_level(SIMD_LEVEL_AVX2)
                                                   : simd_level(SIMD_LEVEL_AVX512);
    if (decoder->own_entropy) jpeg_entropy_kernels(decoder->entropy, choice == JPEG_ENTROPY_PORTABLE);
    if (choice == JPEG_ENTROPY_ON_PROBATION) jpeg_entropy_probe(decoder->entropy);
    return JPEG_OK;
}

int jpeg_decoder_chosen(const jpeg_decoder* decoder) {
    return decoder->entropy == NULL ? 0 : (int)jpeg_entropy_in_use(decoder->entropy);
}

void jpeg_decoder_entries(jpeg_decoder* decoder, entry_store* store, int64_t record) {
    if (decoder->own_entropy && decoder->state == OPENED)
        jpeg_entropy_entries(decoder->entropy, store, record);
}

void jpeg_decoder_finish(jpeg_decoder* decoder) {
    if (decoder->state != IDLE) {
        if (decoder->entropy != NULL) jpeg_entropy_finish(decoder->entropy);
        jpeg_abort_decompress(&decoder->library);
        forget_tables(decoder);
        decoder->state = IDLE;
    }
}

const char* jpeg_decoder_message(const jpeg_decoder* decoder) {
    return decoder->message;
}

int jpeg_decoder_warnings(const jpeg_decoder* decoder) {
    return decoder->errors.num_warnings > 0x7FFFFFFF ? 0x7FFFFFFF : (int)decoder->errors.num_warnings;
}

/* ---- one image ---- */

static int is_supported(const jpeg_decoder* decoder, const jpeg_outline* outline) {
    const struct jpeg_decompress_struct* library = &decoder->library;
    if (outline->frame < 0xC0 || outline->frame > 0xC2 || library->data_precision != 8 || library->arith_code)
        return 0;
    return (library->num_components == 1 && library->jpeg_color_space == JCS_GRAYSCALE) ||
           (library->num_components == 3 &&
            (library->jpeg_color_space == JCS_YCbCr || library->jpeg_color_space == JCS_RGB)) ||
           (library->num_components == 4 &&
            (library->jpeg_color_space == JCS_CMYK || library->jpeg_color_space == JCS_YCCK));
}

static int check_limits(jpeg_decoder* decoder, const uint8_t* data, size_t size, const jpeg_info* info) {
    const jpeg_limits* limits = &decoder->limits;
    const int several = !info->supported || jpeg_has_multiple_scans(&decoder->library);
    enum jpeg_work work = JPEG_WORK_OK;
    if (several) work = count_scans(data, size, limits, info->width, info->height);
    if ((int64_t)info->width * info->height > limits->most[JPEG_MAX_PIXELS]) {
        decoder->status = JPEG_TOO_LARGE;
        explain_pixels(limits, info->width, info->height, decoder->message, sizeof decoder->message);
    } else if (work != JPEG_WORK_OK) {
        decoder->status = JPEG_TOO_MANY_SCANS;
        explain_work(work, limits, info->width, info->height, decoder->message, sizeof decoder->message);
    } else
        return JPEG_OK;
    jpeg_decoder_finish(decoder);
    return decoder->status;
}

/* Read the header, from the start of the data. */
static void read_header(jpeg_decoder* decoder) {
    decoder->errors.num_warnings = 0;
    decoder->ran_out = decoder->starved = 0;
    decoder->source.next_input_byte = decoder->data;
    decoder->source.bytes_in_buffer = decoder->size;
    decoder->in_header = 1;
    jpeg_read_header(&decoder->library, TRUE);
    decoder->in_header = 0;
}

int jpeg_decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size, const jpeg_limits* limits,
                      jpeg_info* info) {
    struct jpeg_decompress_struct* library = &decoder->library;
    jpeg_outline outline;

    jpeg_decoder_finish(decoder);
    memset(info, 0, sizeof *info);
    decoder->status = JPEG_OK;
    decoder->message[0] = 0;
    decoder->errors.num_warnings = 0;
    decoder->supported = 0;
    if (decoder->entropy != NULL) jpeg_entropy_reset(decoder->entropy);
    decoder->limits = limits ? *limits : jpeg_default_limits;
    if (data == NULL || size < 3 || data[0] != 0xFF || data[1] != 0xD8 || data[2] != 0xFF)
        return fail(decoder, JPEG_NOT_JPEG, "the data does not start like a JPEG file");

    read_jpeg_outline(data, size, &outline);
    info->orientation = outline.orientation ? outline.orientation : 1;
    decoder->data = data;
    decoder->size = size;
    decoder->state = OPENED;
    if (SET_JUMP(decoder->failure)) {
        jpeg_decoder_finish(decoder);
        if (decoder->status != JPEG_CORRUPT || outline.width == 0 || outline.height == 0 ||
            (decoder->errors.msg_code != JERR_BAD_PRECISION &&
             decoder->errors.msg_code != JERR_SOF_UNSUPPORTED))
            return decoder->status;
        /* Not damaged: a kind of JPEG that this library was built without. */
        info->width = outline.width;
        info->height = outline.height;
        info->components = outline.components;
        decoder->status = JPEG_OK;
        decoder->message[0] = 0;
        decoder->state = OPENED; /* so that start can say what is the matter */
    } else {
        read_header(decoder);
        info->width = (int)library->image_width;
        info->height = (int)library->image_height;
        info->components = library->num_components;
        info->progressive = library->progressive_mode;
        info->supported = decoder->supported = is_supported(decoder, &outline);
    }
    decoder->in_header = 0;
    return check_limits(decoder, data, size, info);
}

/* Whether the library will blend neighbouring blocks because a progressive file did not bring all
 * bits of its coefficients; the blend looks over the edges of a region. */
static int is_smoothed(const struct jpeg_decompress_struct* library) {
    int component, coefficient;
    if (!library->progressive_mode || library->coef_bits == NULL) return 0;
    for (component = 0; component < library->num_components; component++)
        for (coefficient = 0; coefficient < DCTSIZE2; coefficient++)
            if (library->coef_bits[component][coefficient] != 0) return 1;
    return 0;
}

/* Whether the library gives the same pixels for a part as for the whole.  Not if it smooths, and not
 * for samplings such as 4x2, 1x1, 1x1 at a reduced scale: the inverse DCT then enlarges the chroma by
 * 2 and the upsampling does the rest, but jpeg_crop_scanline (seen in 2.1.5) computes the width of the
 * chroma rows as if the inverse DCT left them alone. */
static int is_divisible(const struct jpeg_decompress_struct* library) {
    const int smallest = SMALLEST_BLOCK_SIZE(library);
    int i;
    if (is_smoothed(library)) return 0;
    for (i = 0; i < library->num_components; i++) {
        const jpeg_component_info* component = &library->comp_info[i];
        const int size = BLOCK_SIZE(component);
        const int full_size = component->h_samp_factor * size == library->max_h_samp_factor * smallest &&
                              component->v_samp_factor * size == library->max_v_samp_factor * smallest;
        if (size != smallest && !full_size) return 0;
    }
    return 1;
}

/* JPEG_TRUNCATED if the data ended before what was decoded so far was complete. */
static int check_complete(jpeg_decoder* decoder) {
    struct jpeg_decompress_struct* library = &decoder->library;
    int component, incomplete = decoder->starved;
    if (!decoder->ran_out) return JPEG_OK;
    if (jpeg_has_multiple_scans(library)) {
        incomplete |= is_smoothed(library);
        for (component = 0; component < library->num_components; component++)
            incomplete |= library->comp_info[component].quant_table == NULL;
    }
    return incomplete ? fail(decoder, JPEG_TRUNCATED, data_ends) : JPEG_OK;
}

/* Reading rows gave none.  It does not happen, as our source never suspends; but no loop here relies
 * on that. */
static int stalled(jpeg_decoder* decoder) {
    jpeg_decoder_finish(decoder);
    return fail(decoder, JPEG_CORRUPT, "the library stopped before the last row");
}

/* The columns to decode so that `width` columns from `x` on are exact. */
static void widen(int x, int width, int full_width, int margin, JDIMENSION* first, JDIMENSION* count) {
    int left = x > margin ? x - margin : 0;
    int right = full_width - margin > x + width ? x + width + margin : full_width;
    if (right - left < NARROWEST) right = left + NARROWEST < full_width ? left + NARROWEST : full_width;
    if (right - left < NARROWEST) left = right > NARROWEST ? right - NARROWEST : 0;
    *first = (JDIMENSION)left;
    *count = (JDIMENSION)(right - left);
}

static void choose_output(jpeg_decoder* decoder, int channels, int denominator) {
    struct jpeg_decompress_struct* library = &decoder->library;
    library->out_color_space = library->num_components == 4 ? JCS_CMYK
                               : channels == JPEG_GREY      ? JCS_GRAYSCALE
                               : channels == JPEG_RGB       ? JCS_RGB
                                                            : JCS_EXT_BGR;
    library->dct_method = JDCT_ISLOW;
    library->do_fancy_upsampling = TRUE;
    library->scale_num = 1;
    library->scale_denom = (unsigned)denominator;
    jpeg_calc_output_dimensions(library);
}

/* Start, which for a progressive image means to read its scans: down to this row of MCUs or, if it is 0,
 * all of them, and once more from the start of the data.  0 if that failed. */
static int start_library(jpeg_decoder* decoder, int channels, int denominator, JDIMENSION rows) {
    struct jpeg_decompress_struct* library = &decoder->library;
    if (SET_JUMP(decoder->failure)) return 0;
    if (decoder->own_entropy) jpeg_entropy_rows(decoder->entropy, rows);
    if (rows == 0) {
        jpeg_abort_decompress(library);
        forget_tables(decoder);
        jpeg_entropy_reset(decoder->entropy);
        read_header(decoder);
        choose_output(decoder, channels, denominator);
    }
    jpeg_start_decompress(library);
    return 1;
}

/* Whether our entropy decoder passed over something on which, as it has turned out, more depends than the
 * pixels that are wanted. */
static int has_missed_something(const jpeg_decoder* decoder, int started) {
    return decoder->own_entropy && jpeg_entropy_passed_over(decoder->entropy) &&
           (!started || decoder->ran_out || is_smoothed(&decoder->library) ||
            jpeg_entropy_in_use(decoder->entropy) == JPEG_ENTROPY_GIVEN_BACK);
}

/* Start with as little as the rows above `end_row` need; 0 if that failed. */
static int start_image(jpeg_decoder* decoder, int channels, int denominator, int end_row) {
    const struct jpeg_decompress_struct* library = &decoder->library;
    const int mcu_height = library->max_v_samp_factor * SMALLEST_BLOCK_SIZE(library);
    /* Smooth upsampling looks at the row of MCUs below the last one. */
    const int rows = (end_row - 1) / mcu_height + 2;
    const int started = start_library(decoder, channels, denominator, (JDIMENSION)rows);
    if (!has_missed_something(decoder, started)) return started;
    decoder->status = JPEG_OK;
    return start_library(decoder, channels, denominator, 0);
}

/* Columns of MCUs without a pixel of what the library crops to need not be stored. */
static void limit_columns(jpeg_decoder* decoder, JDIMENSION first, JDIMENSION count) {
    const struct jpeg_decompress_struct* library = &decoder->library;
    JDIMENSION width = (JDIMENSION)SMALLEST_BLOCK_SIZE(library);
    if (library->num_components > 1) /* otherwise an MCU is one block, whatever the sampling */
        width *= (JDIMENSION)library->max_h_samp_factor;
    if (decoder->entropy != NULL)
        jpeg_entropy_columns(decoder->entropy, first / width, (first + count - 1) / width);
}

/* Pixels in the place of four inks each, which all files store inverted, with Adobe's marker or without: the bytes of
 * Pillow, and grey of them as `grey_of` makes it. */
static void inks_to_pixels(uint8_t* row, int width, int channels) {
    const uint8_t* from = row;
    int x, k;
    for (x = 0; x < width; x++, from += 4) {
        unsigned colour[3];
        for (k = 0; k < 3; k++) {
            const unsigned product = (255u - from[k]) * from[3] + 128;
            const unsigned missing = (product + (product >> 8)) >> 8;
            colour[k] = from[3] > missing ? from[3] - missing : 0;
        }
        if (channels == JPEG_GREY) {
            *row++ = (uint8_t)((4899 * colour[0] + 9617 * colour[1] + 1868 * colour[2] + 8192) >> 14);
            continue;
        }
        for (k = 0; k < 3; k++)
            *row++ = (uint8_t)colour[channels == JPEG_RGB ? k : 2 - k];
    }
}

void jpeg_decoder_into(jpeg_decoder* decoder, uint8_t* into, ptrdiff_t stride) {
    decoder->strip.into = into;
    decoder->strip.into_stride = stride;
}

int jpeg_decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y, int width,
                       int height) {
    struct jpeg_decompress_struct* library = &decoder->library;
    JDIMENSION first, count;
    const int samples = library->num_components == 4 ? 4 : channels < 0 ? -channels : channels;
    int full_width, skipped;

    if (decoder->state != OPENED) return fail(decoder, JPEG_BAD_ARGUMENT, "no image is open");
    decoder->status = JPEG_OK; /* a refused start may be tried again with other arguments */
    if (!decoder->supported) return fail(decoder, JPEG_UNSUPPORTED, "this kind of JPEG is not decoded here");
    if ((channels != JPEG_GREY && channels != JPEG_RGB && channels != JPEG_BGR) ||
        (denominator != 1 && denominator != 2 && denominator != 4 && denominator != 8))
        return fail(decoder, JPEG_BAD_ARGUMENT, "channels must be 1 or 3, denominator 1, 2, 4 or 8");
    if (SET_JUMP(decoder->failure)) {
        jpeg_decoder_finish(decoder);
        return decoder->status;
    }
    choose_output(decoder, channels, denominator);
    if (x < 0 || y < 0 || width < 1 || height < 1 || width > (int)library->output_width - x ||
        height > (int)library->output_height - y)
        return fail(decoder, JPEG_BAD_ARGUMENT, "the rectangle lies outside the image");

    if (!start_image(decoder, channels, denominator, y + height) || SET_JUMP(decoder->failure)) {
        jpeg_decoder_finish(decoder);
        return decoder->status;
    }
    decoder->state = STARTED;
    full_width = (int)library->output_width;
    first = 0;
    skipped = 0;
    if (is_divisible(library)) {
        count = (JDIMENSION)full_width;
        widen(x, width, full_width, library->max_h_samp_factor > 1 ? SIDE_MARGIN : 0, &first, &count);
        if ((int)count < full_width) {
            jpeg_crop_scanline(library, &first, &count);
            limit_columns(decoder, first, count);
        }
        if (y > 0) skipped = (int)jpeg_skip_scanlines(library, (JDIMENSION)y);
    }

    if (decoder->level >= SIMD_LEVEL_AVX2 && !is_smoothed(library)) {
        jpeg_idct_install(&decoder->idct, library, first);
        jpeg_entropy_whole_rows(decoder->entropy, library, decoder->level);
    }
    decoder->end_row = y + height;
    decoder->left = (ptrdiff_t)(x - (int)first) * samples;
    decoder->width = width;
    decoder->of_inks = samples == 4 ? channels : 0;
    if ((int)library->output_width != width || decoder->of_inks) decoder->strip.into = NULL;
    if (!strip_reserve(&decoder->strip, (int)library->output_width, samples)) {
        jpeg_decoder_finish(decoder);
        return fail(decoder, JPEG_NO_MEMORY, "no memory for the decoded rows");
    }
    while (skipped < y) {
        JDIMENSION num_rows = (JDIMENSION)(y - skipped < STRIP_ROWS ? y - skipped : STRIP_ROWS);
        JDIMENSION read = jpeg_read_scanlines(library, decoder->strip.rows, num_rows);
        if (read == 0) return stalled(decoder);
        skipped += (int)read;
    }
    if (check_complete(decoder) != JPEG_OK) jpeg_decoder_finish(decoder);
    return decoder->status;
}

int jpeg_decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count) {
    struct jpeg_decompress_struct* library = &decoder->library;
    JSAMPROW rows[STRIP_ROWS];
    int num_rows, i;

    *row = NULL;
    *stride = 0;
    *count = 0;
    if (decoder->state != STARTED)
        return decoder->status != JPEG_OK ? decoder->status
                                          : fail(decoder, JPEG_BAD_ARGUMENT, "no image is started");
    if (SET_JUMP(decoder->failure)) {
        *count = 0;
        jpeg_decoder_finish(decoder);
        return decoder->status;
    }
    num_rows = decoder->end_row - (int)library->output_scanline;
    if (num_rows > STRIP_ROWS) num_rows = STRIP_ROWS;
    for (i = 0; i < num_rows; i++)
        rows[i] = strip_aim(&decoder->strip, i);
    while (*count < num_rows) {
        JDIMENSION read = jpeg_read_scanlines(library, rows + *count, (JDIMENSION)(num_rows - *count));
        if (read == 0) {
            *count = 0;
            return stalled(decoder);
        }
        *count += (int)read;
    }
    if (check_complete(decoder) != JPEG_OK) {
        *count = 0;
        jpeg_decoder_finish(decoder);
        return decoder->status;
    }
    if (decoder->strip.into != NULL) {
        *stride = decoder->strip.into_stride;
        *row =
            strip_place(&decoder->strip, *count, library->output_width * (size_t)library->output_components);
    } else {
        *stride = decoder->strip.stride;
        *row = decoder->strip.rows[0] + decoder->left;
        for (i = 0; decoder->of_inks && i < *count; i++)
            inks_to_pixels(decoder->strip.rows[i] + decoder->left, decoder->width, decoder->of_inks);
    }
    return JPEG_OK;
}

#endif /* HAVE_LIBJPEG_TURBO; otherwise unavailable.c stands in */
