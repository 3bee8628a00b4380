/* What stands in for decoder.c without libjpeg-turbo: the same functions, and every image is
 * refused. */
#include "decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef HAVE_LIBJPEG_TURBO

struct jpeg_decoder {
    char message[64];
};

int jpeg_decoder_available(void) {
    return 0;
}

const char* jpeg_decoder_library(void) {
    return "none";
}

jpeg_decoder* jpeg_decoder_new(void) {
    return calloc(1, sizeof(jpeg_decoder));
}

void jpeg_decoder_free(jpeg_decoder* decoder) {
    free(decoder);
}

int jpeg_decoder_choose(jpeg_decoder* decoder, enum jpeg_entropy_choice choice) {
    (void)decoder, (void)choice;
    return JPEG_OK;
}

int jpeg_decoder_chosen(const jpeg_decoder* decoder) {
    (void)decoder;
    return 0;
}

int jpeg_decoder_check(void) {
    return 0;
}

static int unavailable(jpeg_decoder* decoder) {
    snprintf(decoder->message, sizeof decoder->message, "built without libjpeg-turbo");
    return JPEG_UNAVAILABLE;
}

int jpeg_decoder_open(jpeg_decoder* decoder, const uint8_t* data, size_t size, const jpeg_limits* limits,
                      jpeg_info* info) {
    (void)data, (void)size, (void)limits;
    memset(info, 0, sizeof *info);
    return unavailable(decoder);
}

void jpeg_decoder_entries(jpeg_decoder* decoder, entry_store* store, int64_t record) {
    (void)decoder, (void)store, (void)record;
}

void jpeg_decoder_into(jpeg_decoder* decoder, uint8_t* into, ptrdiff_t stride) {
    (void)decoder, (void)into, (void)stride;
}

int jpeg_decoder_start(jpeg_decoder* decoder, int channels, int denominator, int x, int y, int width,
                       int height) {
    (void)channels, (void)denominator, (void)x, (void)y, (void)width, (void)height;
    return unavailable(decoder);
}

int jpeg_decoder_rows(jpeg_decoder* decoder, const uint8_t** row, ptrdiff_t* stride, int* count) {
    *row = NULL;
    *stride = 0;
    *count = 0;
    return unavailable(decoder);
}

void jpeg_decoder_finish(jpeg_decoder* decoder) {
    (void)decoder;
}

const char* jpeg_decoder_message(const jpeg_decoder* decoder) {
    return decoder->message;
}

int jpeg_decoder_warnings(const jpeg_decoder* decoder) {
    (void)decoder;
    return 0;
}

#endif /* HAVE_LIBJPEG_TURBO */
