/* float32 to the floats of 16 bits, for the processor and, compiled by nvrtc, for a CUDA device. */
#ifndef RECORDIO_HALF_H
#define RECORDIO_HALF_H

#ifdef __CUDACC_RTC__ /* which has no headers */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
#else
#include <stdint.h>
#include <string.h>
#endif

/* Nearest float16, ties to even; overflow gives infinity, as the hardware conversion does. */
static inline uint16_t normalise_half(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* not a number: keep the upper bits, made quiet */
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    uint32_t half, rest, tie;
    if (magnitude >= 0x38800000u) { /* normal */
        half = (magnitude - 0x38000000u) >> 13;
        rest = magnitude & 0x1fffu;
        tie = 0x1000u;
    } else if (magnitude > 0x33000000u) { /* subnormal */
        const uint32_t shift = 126u - (magnitude >> 23);
        const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
        half = mantissa >> shift;
        rest = mantissa & ((1u << shift) - 1u);
        tie = 1u << (shift - 1u);
    } else {
        return (uint16_t)sign;
    }
    half += rest > tie || (rest == tie && (half & 1u));
    return (uint16_t)(sign | half);
}

/* Nearest bfloat16, which is the upper half of a float32, ties to even.  What is not a number becomes the
 * quiet one of its sign, as in ml_dtypes. */
static inline uint16_t normalise_brain(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) bits = (bits & 0x80000000u) | 0x7fc00000u;
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
