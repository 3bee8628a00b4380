/* Rows of a table, picked by number, to the rows of another one: the inner loops of `gather.pyx`. */
#ifndef ITERATORS_GATHER_H
#define ITERATORS_GATHER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Into the second level only: asking for so many lines at once would throw out of the first what is
 * in use, and measured twice as slow. */
#if defined(__GNUC__)
#define GATHER_PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define GATHER_PREFETCH(address) ((void)(address))
#endif

#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define GATHER_AVX2 1
#include <immintrin.h>
#else
#define GATHER_AVX2 0
#endif

enum {
    GATHER_LINE = 64,    /* bytes of a cache line */
    GATHER_AHEAD = 4096, /* bytes to ask for before they are needed */
    GATHER_WHOLE = 16    /* rows of up to so many lines are asked for completely */
};

/* Ask for the row that comes about GATHER_AHEAD bytes later: the processor cannot guess it. */
static inline void gather_ask(const uint8_t* source, ptrdiff_t stride, size_t row_bytes, const int64_t* rows,
                              ptrdiff_t i, ptrdiff_t count) {
    ptrdiff_t ahead = row_bytes < GATHER_AHEAD ? GATHER_AHEAD / (ptrdiff_t)(row_bytes + 1) + 1 : 1;
    const uint8_t* row;
    size_t at, end;
    if (i + ahead >= count) return;
    row = source + rows[i + ahead] * stride;
    end = row_bytes < GATHER_WHOLE * GATHER_LINE ? row_bytes : GATHER_WHOLE * GATHER_LINE;
    for (at = 0; at < end; at += GATHER_LINE)
        GATHER_PREFETCH(row + at);
}

/* Neighbouring rows that are wanted one after the other are copied at once. */
static void gather_copy(const uint8_t* source, ptrdiff_t stride, size_t row_bytes, const int64_t* rows,
                        ptrdiff_t count, uint8_t* target) {
    ptrdiff_t i = 0, run;
    while (i < count) {
        run = 1;
        if (stride == (ptrdiff_t)row_bytes)
            while (i + run < count && rows[i + run] == rows[i] + run)
                run++;
        gather_ask(source, stride, row_bytes, rows, i + run - 1, count);
        memcpy(target, source + rows[i] * stride, (size_t)run * row_bytes);
        target += (size_t)run * row_bytes;
        i += run;
    }
}

#if GATHER_AVX2
/* As many values as there are whole vectors; returns how many. */
__attribute__((target("avx2"))) static size_t gather_scale_row(const uint8_t* row, size_t columns,
                                                               float factor, float* target) {
    const __m256 factors = _mm256_set1_ps(factor);
    size_t j;
    for (j = 0; j + 16 <= columns; j += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i*)(row + j));
        __m256i low = _mm256_cvtepu8_epi32(bytes);
        __m256i high = _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8));
        _mm256_storeu_ps(target + j, _mm256_mul_ps(_mm256_cvtepi32_ps(low), factors));
        _mm256_storeu_ps(target + j + 8, _mm256_mul_ps(_mm256_cvtepi32_ps(high), factors));
    }
    return j;
}
#endif

static void gather_scale(const uint8_t* source, ptrdiff_t stride, size_t columns, const int64_t* rows,
                         ptrdiff_t count, float factor, float* target, int vectors) {
    ptrdiff_t i;
    size_t j;
#if GATHER_AVX2
    const int wide = vectors && __builtin_cpu_supports("avx2");
#else
    (void)vectors;
#endif
    for (i = 0; i < count; i++) {
        const uint8_t* row = source + rows[i] * stride;
        gather_ask(source, stride, columns, rows, i, count);
        j = 0;
#if GATHER_AVX2
        if (wide) j = gather_scale_row(row, columns, factor, target);
#endif
        for (; j < columns; j++)
            target[j] = (float)row[j] * factor;
        target += columns;
    }
}

#endif
