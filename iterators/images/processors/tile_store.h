/* Memory that is written once and read much later: past the caches, if it lies in whole vectors. */
#ifndef ITERATORS_TILE_STORE_H
#define ITERATORS_TILE_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/simd.h"

/* Copies memory as memcpy does. */
static SIMD_UNUSED void tile_store(void* to, const void* from, size_t size) {
#if SIMD_X86 && defined(__SSE2__)
    if (((uintptr_t)to | size) % sizeof(__m128i) == 0) {
        __m128i* line = (__m128i*)to;
        const __m128i* source = (const __m128i*)from;
        for (size_t i = 0; i < size / sizeof(__m128i); i++)
            _mm_stream_si128(line + i, _mm_loadu_si128(source + i));
        return;
    }
#endif
    memcpy(to, from, size);
}

/* Other threads see what was written before. */
static SIMD_UNUSED void tile_store_done(void) {
#if SIMD_X86 && defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
