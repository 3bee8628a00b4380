/* Encode pixels as a JPEG image with libjpeg-turbo; every jump of its error handling stays here. */
#include "compress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LIBJPEG_TURBO

#include <jpeglib.h>
#include <jerror.h>

#include "library.h"

enum { FIRST_ROOM = 1 << 16, ROWS_AT_ONCE = 16 };

struct jpeg_encoder {
    struct jpeg_compress_struct library; /* first: libjpeg's callbacks find us by its address */
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    jmp_buf failure;
    char message[JMSG_LENGTH_MAX];
    int status; /* set before jumping to `failure` */
    uint8_t* content;
    size_t room;
    int created;
    int has_tables; /* of an image that was optimised: jpeg_set_defaults would leave them to the next */
};

/* ---- what libjpeg calls ---- */

static void on_error(j_common_ptr library) {
    jpeg_encoder* encoder = (jpeg_encoder*)library;
    library->err->format_message(library, encoder->message);
    encoder->status =
        library->err->msg_code == JERR_OUT_OF_MEMORY ? JPEG_ENCODER_NO_MEMORY : JPEG_ENCODER_REFUSED;
    LONG_JUMP(encoder->failure, 1);
}

static void on_message(j_common_ptr library, int level) {
    (void)library;
    (void)level;
}

static void begin_output(j_compress_ptr library) {
    jpeg_encoder* encoder = (jpeg_encoder*)library;
    encoder->destination.next_output_byte = encoder->content;
    encoder->destination.free_in_buffer = encoder->room;
}

/* The library calls this when the memory is full, whatever it says about what is free in it. */
static boolean grow_output(j_compress_ptr library) {
    jpeg_encoder* encoder = (jpeg_encoder*)library;
    uint8_t* larger = encoder->room <= SIZE_MAX / 2 ? realloc(encoder->content, 2 * encoder->room) : NULL;
    if (larger == NULL) {
        encoder->status = JPEG_ENCODER_NO_MEMORY;
        snprintf(encoder->message, sizeof encoder->message, "no memory for the encoded image");
        LONG_JUMP(encoder->failure, 1);
    }
    encoder->content = larger;
    encoder->destination.next_output_byte = larger + encoder->room;
    encoder->destination.free_in_buffer = encoder->room;
    encoder->room *= 2;
    return TRUE;
}

static void end_output(j_compress_ptr library) {
    (void)library;
}

/* ---- life ---- */

int jpeg_encoder_available(void) {
    return 1;
}

jpeg_encoder* jpeg_encoder_new(void) {
    jpeg_encoder* encoder = calloc(1, sizeof *encoder);
    if (encoder == NULL) return NULL;
    encoder->content = malloc(FIRST_ROOM);
    encoder->room = FIRST_ROOM;
    encoder->library.err = jpeg_std_error(&encoder->errors);
    encoder->errors.error_exit = on_error;
    encoder->errors.emit_message = on_message;
    encoder->errors.output_message = ignore_output;
    encoder->destination.init_destination = begin_output;
    encoder->destination.empty_output_buffer = grow_output;
    encoder->destination.term_destination = end_output;
    if (encoder->content == NULL) {
        free(encoder);
        return NULL;
    }
    return encoder;
}

/* Begin with the tables of the library. */
static void create(jpeg_encoder* encoder) {
    if (encoder->created && !encoder->has_tables) return;
    if (encoder->created) jpeg_destroy_compress(&encoder->library);
    encoder->created = encoder->has_tables = 0;
    jpeg_create_compress(&encoder->library);
    encoder->created = 1;
    encoder->library.dest = &encoder->destination;
}

void jpeg_encoder_free(jpeg_encoder* encoder) {
    if (encoder == NULL) return;
    if (encoder->created) jpeg_destroy_compress(&encoder->library);
    free(encoder->content);
    free(encoder);
}

const char* jpeg_encoder_message(const jpeg_encoder* encoder) {
    return encoder->message;
}

/* ---- one image ---- */

int jpeg_encoder_encode(jpeg_encoder* encoder, const uint8_t* pixels, ptrdiff_t stride, int width, int height,
                        int channels, const jpeg_encoder_settings* settings, const uint8_t** content,
                        size_t* size) {
    struct jpeg_compress_struct* library = &encoder->library;
    JSAMPROW rows[ROWS_AT_ONCE];
    encoder->message[0] = 0;
    if (SET_JUMP(encoder->failure)) {
        if (encoder->created) jpeg_abort_compress(library);
        return encoder->status;
    }
    create(encoder);
    encoder->has_tables = settings->optimize || settings->progressive;
    library->image_width = (JDIMENSION)width;
    library->image_height = (JDIMENSION)height;
    library->input_components = channels == 1 ? 1 : 3;
    library->in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_BGR;
    jpeg_set_defaults(library);
    jpeg_set_quality(library, settings->quality, TRUE);
    library->optimize_coding = settings->optimize != 0;
    if (channels != 1) {
        library->comp_info[0].h_samp_factor = settings->across;
        library->comp_info[0].v_samp_factor = settings->down;
    }
    if (settings->progressive) jpeg_simple_progression(library);
    jpeg_start_compress(library, TRUE);
    while (library->next_scanline < library->image_height) {
        const JDIMENSION left = library->image_height - library->next_scanline;
        const JDIMENSION count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;
        const uint8_t* first = pixels + (ptrdiff_t)library->next_scanline * stride;
        JDIMENSION row;
        for (row = 0; row < count; row++)
            rows[row] = (JSAMPROW)(first + (ptrdiff_t)row * stride); /* the library reads them only */
        jpeg_write_scanlines(library, rows, count);
    }
    jpeg_finish_compress(library);
    *content = encoder->content;
    *size = encoder->room - encoder->destination.free_in_buffer;
    return JPEG_ENCODED;
}

#else /* without libjpeg-turbo */

int jpeg_encoder_available(void) {
    return 0;
}

jpeg_encoder* jpeg_encoder_new(void) {
    return NULL;
}

void jpeg_encoder_free(jpeg_encoder* encoder) {
    (void)encoder;
}

const char* jpeg_encoder_message(const jpeg_encoder* encoder) {
    (void)encoder;
    return "";
}

int jpeg_encoder_encode(jpeg_encoder* encoder, const uint8_t* pixels, ptrdiff_t stride, int width, int height,
                        int channels, const jpeg_encoder_settings* settings, const uint8_t** content,
                        size_t* size) {
    (void)encoder, (void)pixels, (void)stride, (void)width, (void)height, (void)channels, (void)settings;
    *content = NULL;
    *size = 0;
    return JPEG_ENCODER_REFUSED;
}

#endif
