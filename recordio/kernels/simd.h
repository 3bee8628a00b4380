/* The instruction sets that the kernels may use, decided at run time.
 *
 * Every kernel has a plain C form that is the definition of its result; the others must give the
 * same bytes.  Nothing here changes a result, and nothing is compiled for the machine it is built on.
 */
#ifndef RECORDIO_SIMD_H
#define RECORDIO_SIMD_H

#include "recordio/little_endian.h"

#if (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
#define SIMD_X86 1
#include <immintrin.h>
#define SIMD_SSE41  __attribute__((target("sse4.1,ssse3")))
#define SIMD_AVX2   __attribute__((target("avx2")))
#define SIMD_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni")))
#define SIMD_BMI2   __attribute__((target("bmi2")))
#define SIMD_F16C   __attribute__((target("avx2,f16c")))
#else
#define SIMD_X86 0
#endif

/* Every processor for 64-bit ARM has NEON. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__) && defined(__ARM_NEON)
#define SIMD_NEON 1
#include <arm_neon.h>
#else
#define SIMD_NEON 0
#endif

#define SIMD_VECTORS (SIMD_X86 || SIMD_NEON) /* whether there are the words of vectors.h */

#if defined(__GNUC__) || defined(__clang__)
#define SIMD_UNUSED __attribute__((unused))
#define SIMD_INLINE static inline __attribute__((always_inline, unused))
#elif defined(_MSC_VER)
#define SIMD_UNUSED
#define SIMD_INLINE static __forceinline
#else
#define SIMD_UNUSED
#define SIMD_INLINE static inline
#endif

/* NEON runs what SSE4.1 and AVX2 run in the words of vectors.h, and so stands where AVX2 stands. */
enum {
    SIMD_LEVEL_PLAIN = 0,
    SIMD_LEVEL_SSE41 = 1,
    SIMD_LEVEL_AVX2 = 2,
    SIMD_LEVEL_NEON = SIMD_LEVEL_AVX2,
    SIMD_LEVEL_AVX512 = 3
};

/* The best level of this machine, at most `limit` (tests compare the levels with each other). */
static SIMD_UNUSED int simd_level(int limit) {
    int level = SIMD_LEVEL_PLAIN;
#if SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni"))
        level = SIMD_LEVEL_AVX512;
    else if (__builtin_cpu_supports("avx2"))
        level = SIMD_LEVEL_AVX2;
    else if (__builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3"))
        level = SIMD_LEVEL_SSE41;
#elif SIMD_NEON
    if (limit >= SIMD_LEVEL_NEON) level = SIMD_LEVEL_NEON;
#endif
    return level < limit ? level : limit;
}

#endif
