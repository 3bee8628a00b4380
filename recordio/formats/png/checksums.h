/* The two checksums of PNG files: CRC-32 of chunks, Adler-32 of inflated data. */
#ifndef RECORDIO_PNG_CHECKSUMS_H
#define RECORDIO_PNG_CHECKSUMS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/crc_tables.h"
#include "recordio/kernels/simd.h"

/* Four bytes, the highest first. */
static inline uint32_t png_number(const uint8_t* data) {
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

static crc_tables crc32_tables;

/* To be called once, before anything else here. */
static SIMD_UNUSED void crc32_prepare(void) {
    crc_fill_tables(crc32_tables, 0xEDB88320u);
}

static uint32_t crc32_plain(const uint8_t* data, size_t size) {
    return ~crc_by_tables(crc32_tables, ~0u, data, size);
}

#if SIMD_X86 && defined(__x86_64__)
#define CRC32_TARGET   __attribute__((target("pclmul")))
#define CRC32_IS_THERE __builtin_cpu_supports("pclmul")

/* What 16 bytes leave so much later that their halves count for the two numbers in `later`. */
#define CRC32_FOLD(bytes, later)                                                                             \
    _mm_xor_si128(_mm_clmulepi64_si128(bytes, later, 0x00), _mm_clmulepi64_si128(bytes, later, 0x11))

/* 64 bytes at a time, replaced by what they leave 64 bytes later, and at last 16 bytes by tables.  Intel, "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", explains it and has the numbers. */
CRC32_TARGET static uint32_t crc32_fast(const uint8_t* data, size_t size) {
    const __m128i later_64 = _mm_set_epi64x(0x1C6E41596, 0x154442BD4);
    const __m128i later_16 = _mm_set_epi64x(0x0CCAA009E, 0x1751997D0);
    __m128i lanes[4], all;
    uint8_t rest[16];
    int i;
    if (size < 64) return crc32_plain(data, size);
    for (i = 0; i < 4; i++)
        lanes[i] = _mm_loadu_si128((const __m128i*)(data + 16 * i));
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(-1));
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64)
        for (i = 0; i < 4; i++)
            lanes[i] = _mm_xor_si128(CRC32_FOLD(lanes[i], later_64),
                                     _mm_loadu_si128((const __m128i*)(data + 16 * i)));
    all = lanes[0];
    for (i = 1; i < 4; i++)
        all = _mm_xor_si128(CRC32_FOLD(all, later_16), lanes[i]);
    for (; size >= 16; data += 16, size -= 16)
        all = _mm_xor_si128(CRC32_FOLD(all, later_16), _mm_loadu_si128((const __m128i*)data));
    _mm_storeu_si128((__m128i*)rest, all);
    return ~crc_by_tables(crc32_tables, crc_by_tables(crc32_tables, 0, rest, sizeof rest), data, size);
}
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifdef __clang__
#define CRC32_TARGET           __attribute__((target("crc")))
#define CRC32_EIGHT(crc, word) __builtin_arm_crc32d(crc, word)
#else
#define CRC32_TARGET           __attribute__((target("+crc")))
#define CRC32_EIGHT(crc, word) __builtin_aarch64_crc32x(crc, word)
#endif
#define CRC32_IS_THERE (getauxval(AT_HWCAP) & 1 << 7) /* HWCAP_CRC32 */

CRC32_TARGET static uint32_t crc32_fast(const uint8_t* data, size_t size) {
    uint32_t crc = ~0u;
    uint64_t word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        crc = CRC32_EIGHT(crc, word);
    }
    return ~crc_by_tables(crc32_tables, crc, data, size);
}
#endif

static SIMD_UNUSED uint32_t png_crc32(const uint8_t* data, size_t size) {
#ifdef CRC32_TARGET
    if (CRC32_IS_THERE) return crc32_fast(data, size);
#endif
    return crc32_plain(data, size);
}

enum { ADLER_PRIME = 65521, ADLER_BLOCK = 16, ADLER_BLOCKS = 256 };

#if defined(__SSE2__)
#include <emmintrin.h>

/* Blocks of 16 bytes: their sum, and the sum in which a byte counts as often as it and those behind it
 * in the same row of blocks are bytes. */
static void adler32_blocks(const uint8_t* data, size_t blocks, uint64_t* sum, uint64_t* weighted) {
    const __m128i zero = _mm_setzero_si128();
    const __m128i first = _mm_set_epi16(9, 10, 11, 12, 13, 14, 15, 16);
    const __m128i second = _mm_set_epi16(1, 2, 3, 4, 5, 6, 7, 8);
    __m128i sums = zero, before = zero, inside = zero;
    uint32_t lanes[3][4];
    for (; blocks; blocks--, data += ADLER_BLOCK) {
        const __m128i bytes = _mm_loadu_si128((const __m128i*)data);
        before = _mm_add_epi32(before, sums);
        sums = _mm_add_epi32(sums, _mm_sad_epu8(bytes, zero));
        inside = _mm_add_epi32(inside, _mm_madd_epi16(_mm_unpacklo_epi8(bytes, zero), first));
        inside = _mm_add_epi32(inside, _mm_madd_epi16(_mm_unpackhi_epi8(bytes, zero), second));
    }
    _mm_storeu_si128((__m128i*)lanes[0], sums);
    _mm_storeu_si128((__m128i*)lanes[1], before);
    _mm_storeu_si128((__m128i*)lanes[2], inside);
    *sum = (uint64_t)lanes[0][0] + lanes[0][2];
    *weighted = ((uint64_t)lanes[1][0] + lanes[1][2]) * ADLER_BLOCK + lanes[2][0] + lanes[2][1] +
                lanes[2][2] + lanes[2][3];
}
#else
static void adler32_blocks(const uint8_t* data, size_t blocks, uint64_t* sum, uint64_t* weighted) {
    size_t i;
    *sum = *weighted = 0;
    for (i = 0; i < blocks * ADLER_BLOCK; i++)
        *weighted += *sum += data[i];
}
#endif

static SIMD_UNUSED uint32_t png_adler32(const uint8_t* data, size_t size) {
    uint64_t low = 1, high = 0, sum, weighted;
    while (size >= ADLER_BLOCK) {
        const size_t whole = size / ADLER_BLOCK, blocks = whole < ADLER_BLOCKS ? whole : ADLER_BLOCKS;
        adler32_blocks(data, blocks, &sum, &weighted);
        high = (high + blocks * ADLER_BLOCK * low + weighted) % ADLER_PRIME;
        low = (low + sum) % ADLER_PRIME;
        data += blocks * ADLER_BLOCK;
        size -= blocks * ADLER_BLOCK;
    }
    for (; size; size--)
        high += low += *data++;
    return (uint32_t)(high % ADLER_PRIME << 16 | low % ADLER_PRIME);
}

#endif
