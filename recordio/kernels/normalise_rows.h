/* One row of pixels normalised into any layout, and the element types that a batch may have. */
#ifndef RECORDIO_NORMALISE_ROWS_H
#define RECORDIO_NORMALISE_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "half.h"
#include "simd.h"

/* The element types of a batch, each named once: here, in NumPy and torch, and in C.  FLOATS are made of a
 * float32 by the function that comes last, BYTES of the pixel itself, as `normalise_store` says.
 * BATCH_TYPES in iterators/core/dtypes.py has the same names. */
#define NORMALISE_TYPES(FLOATS, BYTES)                                                                       \
    FLOATS(FLOAT32, "float32", float, (float))                                                               \
    BYTES(UINT8, "uint8", uint8_t)                                                                           \
    BYTES(INT8, "int8", int8_t)                                                                              \
    FLOATS(FLOAT16, "float16", uint16_t, normalise_half)                                                     \
    FLOATS(BFLOAT16, "bfloat16", uint16_t, normalise_brain)                                                  \
    BYTES(UINT16, "uint16", uint16_t)

#define NORMALISE_NOTHING(...)
#define NORMALISE_CODE(code, ...) NORMALISE_##code,
enum { NORMALISE_TYPES(NORMALISE_CODE, NORMALISE_CODE) NORMALISE_TYPE_COUNT };
#undef NORMALISE_CODE

/* The element type of that name, or -1. */
static SIMD_UNUSED int normalise_type(const char* name) {
#define NORMALISE_NAME(code, name, ...) name,
    static const char* const names[] = {NORMALISE_TYPES(NORMALISE_NAME, NORMALISE_NAME)};
#undef NORMALISE_NAME
    for (int type = 0; type < NORMALISE_TYPE_COUNT; type++)
        if (strcmp(name, names[type]) == 0) return type;
    return -1;
}

static SIMD_UNUSED int normalise_is_float(int type) {
#define NORMALISE_CASE(code, ...) case NORMALISE_##code:
    switch (type) {
        NORMALISE_TYPES(NORMALISE_CASE, NORMALISE_NOTHING) return 1;
    default:
        return 0;
    }
#undef NORMALISE_CASE
}

typedef struct {
    int channels; /* 1, 3 or 4 */
    int dtype;    /* of NORMALISE_TYPES */
    float mean[4];
    float factor[4];         /* contrast * scale / std */
    float offset[4];         /* illumination * scale / std */
    const float* mean_image; /* (channels, mean_height, mean_width); replaces mean, NULL if none */
    int mean_height, mean_width;
} normalise_recipe;

/* Row y of the mean image for a channel, or NULL. */
static SIMD_UNUSED const float* normalise_means(const normalise_recipe* recipe, int channel, int y) {
    if (recipe->mean_image == NULL) return NULL;
    return recipe->mean_image + ((ptrdiff_t)channel * recipe->mean_height + y) * recipe->mean_width;
}

/* Element `at` of a batch of floats. */
SIMD_INLINE void normalise_store_float(int type, void* slot, ptrdiff_t at, float value) {
#define NORMALISE_CASE(code, name, number, convert)                                                          \
    case NORMALISE_##code:                                                                                   \
        ((number*)slot)[at] = convert(value);                                                                \
        break;
    switch (type) { NORMALISE_TYPES(NORMALISE_CASE, NORMALISE_NOTHING) }
#undef NORMALISE_CASE
}

/* Rounds halves away from zero; anything beyond the pixel range saturates in the same way. */
static int normalise_rounded_mean(float mean) {
    if (mean >= 1000.f) return 1000;
    if (!(mean > -1000.f)) return -1000;
    return mean < 0 ? -(int)(0.5 - (double)mean) : (int)((double)mean + 0.5);
}

SIMD_INLINE void normalise_store(const normalise_recipe* recipe, int channel, uint8_t pixel, float mean,
                                 void* slot, ptrdiff_t at) {
    if (recipe->dtype == NORMALISE_UINT8) {
        ((uint8_t*)slot)[at] = pixel;
    } else if (recipe->dtype == NORMALISE_UINT16) {
        ((uint16_t*)slot)[at] = pixel;
    } else if (recipe->dtype == NORMALISE_INT8) {
        const int value = pixel - normalise_rounded_mean(mean);
        ((int8_t*)slot)[at] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
    } else {
        const float value = ((float)pixel - mean) * recipe->factor[channel] + recipe->offset[channel];
        normalise_store_float(recipe->dtype, slot, at, value);
    }
}

#endif
