/* Normal numbers by the thousand, from the counter-based generator: the same everywhere and always. */
#ifndef ITERATORS_NOISE_H
#define ITERATORS_NOISE_H

#include <stdint.h>

#include "philox.h"
#include "simd.h"

/* Quantiles of the normal distribution at i / NOISE_STEPS, its ends cut off; filled by who uses it. */
enum { NOISE_STEPS = 4096, NOISE_AT_ONCE = 8 };

/* Sixteen bits as a normal number: twelve select a quantile, four interpolate to the next. */
SIMD_INLINE float noise_normal(const float* quantiles, uint32_t bits) {
    const float low = quantiles[bits >> 4], high = quantiles[(bits >> 4) + 1];
    return low + (high - low) * ((float)(bits & 15) + 0.5f) * 0.0625f;
}

/* The numbers NOISE_AT_ONCE * number ... of a sequence that has a key. */
static SIMD_UNUSED void noise_block(const float* quantiles, uint64_t key, uint32_t number,
                                    float out[NOISE_AT_ONCE]) {
    const philox_block block = philox4x32(key, number, 0, 0, 0x6e6f6973); /* "nois" */
    for (int i = 0; i < 4; i++) {
        out[2 * i] = noise_normal(quantiles, block.word[i] & 0xffff);
        out[2 * i + 1] = noise_normal(quantiles, block.word[i] >> 16);
    }
}

#endif
