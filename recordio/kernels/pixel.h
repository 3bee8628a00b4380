/* Rounding and saturating of pixel values, without the C library and its rounding modes; and the memory
 * that must be readable behind pixels. */
#ifndef RECORDIO_PIXEL_H
#define RECORDIO_PIXEL_H

#include <stdint.h>

#include "simd.h"

/* Kernels may read a vector behind the last pixel. */
enum { PIXEL_SLACK = 64 };

#define PIXEL_MAGIC 12582912.0f /* 1.5 * 2^23: beyond it float32 has no fractions */

/* Nearest whole number, halves to even; exact for |value| < 2^22. */
SIMD_INLINE float pixel_round(float value) {
    return (value + PIXEL_MAGIC) - PIXEL_MAGIC;
}

SIMD_INLINE uint8_t pixel_saturate(int value) {
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Rounded and saturated; also right for values that no int can hold. */
SIMD_INLINE uint8_t pixel_from_float(float value) {
    value = value > 0.f ? value : 0.f;
    value = value < 255.f ? value : 255.f;
    return (uint8_t)(int)pixel_round(value);
}

#endif
