/* What stands in for rewrite.c and coefficients.c without libjpeg-turbo: the same
 * functions, and every file is refused. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

#ifndef HAVE_LIBJPEG_TURBO

struct jpeg_coefficients {
    jpeg_frame frame;
};

static const char reason[] = "built without libjpeg-turbo";

jpeg_coefficients* jpeg_coefficients_new(void) {
    return calloc(1, sizeof(jpeg_coefficients));
}

void jpeg_coefficients_free(jpeg_coefficients* coefficients) {
    free(coefficients);
}

void jpeg_coefficients_be_lenient(jpeg_coefficients* coefficients) {
    (void)coefficients;
}

int jpeg_coefficients_read(jpeg_coefficients* coefficients, const uint8_t* data, size_t size,
                           const jpeg_limits* limits) {
    (void)coefficients, (void)data, (void)size, (void)limits;
    return JPEG_UNAVAILABLE;
}

const jpeg_frame* jpeg_coefficients_frame(const jpeg_coefficients* coefficients) {
    return &coefficients->frame;
}

int jpeg_coefficients_rows(jpeg_coefficients* coefficients, int component, int first, int count,
                           const int16_t** rows) {
    (void)coefficients, (void)component, (void)first, (void)count, (void)rows;
    return 0;
}

const char* jpeg_coefficients_message(const jpeg_coefficients* coefficients) {
    (void)coefficients;
    return reason;
}

int jpeg_rewrite(const uint8_t* data, size_t size, const jpeg_rewrite_options* options,
                 jpeg_rewritten* result) {
    (void)data, (void)size, (void)options;
    memset(result, 0, sizeof *result);
    memcpy(result->message, reason, sizeof reason);
    return JPEG_UNAVAILABLE;
}

void jpeg_rewrite_free(jpeg_rewritten* result) {
    free(result->data);
    result->data = NULL;
    result->size = 0;
}

#endif /* HAVE_LIBJPEG_TURBO */
