/* CRC-32C (Castagnoli, reflected, polynomial 0x1EDC6F41) of bytes.

   `crc32c_plain` is the definition; where the processor has an instruction for it, `crc32c_bytes`
   uses that, to the same result.  Both take the CRC of what came before, 0 at first. */
#ifndef RECORDIO_CRC32C_H
#define RECORDIO_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "recordio/kernels/crc_tables.h"

/* The instructions for the next eight bytes, and for the next one. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#include <nmmintrin.h>
#define CRC32C_TARGET           __attribute__((target("sse4.2")))
#define CRC32C_EIGHT(crc, word) _mm_crc32_u64(crc, word)
#define CRC32C_ONE(crc, byte)   _mm_crc32_u8((uint32_t)(crc), byte)
#define CRC32C_IS_THERE         __builtin_cpu_supports("sse4.2")
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#ifdef __clang__
#define CRC32C_TARGET           __attribute__((target("crc")))
#define CRC32C_EIGHT(crc, word) __builtin_arm_crc32cd((uint32_t)(crc), word)
#define CRC32C_ONE(crc, byte)   __builtin_arm_crc32cb((uint32_t)(crc), byte)
#else
#define CRC32C_TARGET           __attribute__((target("+crc")))
#define CRC32C_EIGHT(crc, word) __builtin_aarch64_crc32cx((uint32_t)(crc), word)
#define CRC32C_ONE(crc, byte)   __builtin_aarch64_crc32cb((uint32_t)(crc), byte)
#endif
#define CRC32C_IS_THERE (getauxval(AT_HWCAP) & 1 << 7) /* HWCAP_CRC32 */
#endif

static crc_tables crc32c_tables;
static int crc32c_instruction; /* whether the processor has one */

/* To be called once, before anything else here. */
static void crc32c_prepare(void) {
    crc_fill_tables(crc32c_tables, 0x82F63B78u);
#ifdef CRC32C_TARGET
    crc32c_instruction = CRC32C_IS_THERE != 0;
#endif
}

static uint32_t crc32c_plain(uint32_t crc, const uint8_t* data, size_t size) {
    return ~crc_by_tables(crc32c_tables, ~crc, data, size);
}

#ifdef CRC32C_TARGET
CRC32C_TARGET static uint32_t crc32c_fast(uint32_t crc, const uint8_t* data, size_t size) {
    uint64_t state = (uint32_t)~crc, word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        state = CRC32C_EIGHT(state, word);
    }
    for (; size; size--, data++)
        state = CRC32C_ONE(state, *data);
    return ~(uint32_t)state;
}
#endif

static uint32_t crc32c_bytes(uint32_t crc, const uint8_t* data, size_t size) {
#ifdef CRC32C_TARGET
    if (crc32c_instruction) return crc32c_fast(crc, data, size);
#endif
    return crc32c_plain(crc, data, size);
}

#endif
