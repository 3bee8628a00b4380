/* Vectors in words that SSE4.1, AVX2 and NEON share, so that a kernel in these words is written once.
 *
 * `simd_` words are for 128 bits: SSE4.1 and NEON.  `lanes_` words are for LANES numbers of 32 bits:
 * eight with AVX2, four with NEON.  + - * / & | and comparisons are those of the compiler, for numbers
 * of 32 bits; a word that ends in 8 or 16 sees numbers of so many bits.  All of it is exact or rounded
 * as IEEE 754 says, so that the processor makes no difference.
 */
#ifndef ITERATORS_VECTORS_H
#define ITERATORS_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "simd.h"

#if SIMD_X86

#define SIMD_128   SIMD_SSE41
#define SIMD_LANES SIMD_AVX2
#define SIMD_HALF  SIMD_F16C

typedef int8_t simd_b __attribute__((vector_size(16)));
typedef int16_t simd_h __attribute__((vector_size(16)));
typedef int32_t simd_v __attribute__((vector_size(16)));
typedef float simd_f __attribute__((vector_size(16)));

SIMD_128 static inline simd_v simd_load(const void* from) {
    return (simd_v)_mm_loadu_si128((const __m128i*)from);
}
SIMD_128 static inline simd_v simd_load_8_bytes(const void* from) {
    return (simd_v)_mm_loadl_epi64((const __m128i*)from);
}
SIMD_128 static inline void simd_store(void* to, simd_v x) {
    _mm_storeu_si128((__m128i*)to, (__m128i)x);
}
SIMD_128 static inline void simd_store_8_bytes(void* to, simd_v x) {
    _mm_storel_epi64((__m128i*)to, (__m128i)x);
}
SIMD_128 static inline simd_v simd_set(int32_t x) {
    return (simd_v)_mm_set1_epi32(x);
}
SIMD_128 static inline simd_v simd_set_16(int16_t x) {
    return (simd_v)_mm_set1_epi16(x);
}
/* Bytes of x by their numbers, 0 where the number is -1. */
SIMD_128 static inline simd_v simd_shuffle(simd_v x, simd_v numbers) {
    return (simd_v)_mm_shuffle_epi8((__m128i)x, (__m128i)numbers);
}
/* Number k, a constant, four times. */
#define simd_repeat(x, k) ((simd_v)_mm_shuffle_epi32((__m128i)(x), (k) * 0x55))
/* The lower halves, after each other. */
SIMD_128 static inline simd_v simd_join(simd_v x, simd_v y) {
    return (simd_v)_mm_unpacklo_epi64((__m128i)x, (__m128i)y);
}
/* The first two numbers of 32 bits of both, interleaved. */
SIMD_128 static inline simd_v simd_mingle(simd_v x, simd_v y) {
    return (simd_v)_mm_unpacklo_epi32((__m128i)x, (__m128i)y);
}
/* The first eight unsigned bytes, or the last, as numbers of 16 bits; the first four as numbers of 32. */
SIMD_128 static inline simd_v simd_widen_8(simd_v x) {
    return (simd_v)_mm_cvtepu8_epi16((__m128i)x);
}
SIMD_128 static inline simd_v simd_widen_8_upper(simd_v x) {
    return (simd_v)_mm_unpackhi_epi8((__m128i)x, _mm_setzero_si128());
}
SIMD_128 static inline simd_v simd_widen_8_to_32(simd_v x) {
    return (simd_v)_mm_cvtepu8_epi32((__m128i)x);
}
/* Two vectors to half as many bits, saturated: 32 to signed 16, 16 to signed 8, 16 to unsigned 8. */
SIMD_128 static inline simd_v simd_narrow(simd_v x, simd_v y) {
    return (simd_v)_mm_packs_epi32((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_narrow_16(simd_v x, simd_v y) {
    return (simd_v)_mm_packs_epi16((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_narrow_16_to_bytes(simd_v x, simd_v y) {
    return (simd_v)_mm_packus_epi16((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_add_16(simd_v x, simd_v y) {
    return (simd_v)_mm_add_epi16((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_subtract_16(simd_v x, simd_v y) {
    return (simd_v)_mm_sub_epi16((__m128i)x, (__m128i)y);
}
#define simd_shift_right_16(x, bits) ((simd_v)_mm_srai_epi16((__m128i)(x), bits))
#define simd_shift_right(x, bits)    ((simd_v)_mm_srai_epi32((__m128i)(x), bits))
/* The upper halves of signed products. */
SIMD_128 static inline simd_v simd_multiply_high_16(simd_v x, simd_v y) {
    return (simd_v)_mm_mulhi_epi16((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_multiply(simd_v x, simd_v y) {
    return (simd_v)_mm_mullo_epi32((__m128i)x, (__m128i)y);
}
/* Products, of which neighbours are added: signed 16 to 32 bits; unsigned bytes and weights of 0 to 127,
   whose sums stay below 2^15. */
SIMD_128 static inline simd_v simd_pair_products_16(simd_v x, simd_v y) {
    return (simd_v)_mm_madd_epi16((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_v simd_pair_products_8(simd_v x, simd_v weights) {
    return (simd_v)_mm_maddubs_epi16((__m128i)x, (__m128i)weights);
}
/* Sums of neighbours: those of x, then those of y. */
SIMD_128 static inline simd_v simd_pair_sums(simd_v x, simd_v y) {
    return (simd_v)_mm_hadd_epi32((__m128i)x, (__m128i)y);
}
SIMD_128 static inline simd_f simd_set_float(float x) {
    return (simd_f)_mm_set1_ps(x);
}
SIMD_128 static inline simd_f simd_to_float(simd_v x) {
    return (simd_f)_mm_cvtepi32_ps((__m128i)x);
}
/* Without the fraction; the whole part must fit. */
SIMD_128 static inline simd_v simd_from_float(simd_f x) {
    return (simd_v)_mm_cvttps_epi32((__m128)x);
}

enum { LANES = 8 };
typedef int32_t lanes_v __attribute__((vector_size(32)));
typedef float lanes_f __attribute__((vector_size(32)));

SIMD_LANES static inline lanes_f lanes_load(const float* from) {
    return (lanes_f)_mm256_loadu_ps(from);
}
SIMD_LANES static inline void lanes_store(float* to, lanes_f x) {
    _mm256_storeu_ps(to, (__m256)x);
}
/* Past the caches, where that can be asked for; `to` is a multiple of the size. */
SIMD_LANES static inline void lanes_stream(float* to, lanes_f x) {
    _mm256_stream_ps(to, (__m256)x);
}
SIMD_HALF static inline void lanes_store_half(uint16_t* to, lanes_f x) {
    _mm_storeu_si128((__m128i*)to, _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT));
}
/* The upper half of every number. */
SIMD_LANES static inline void lanes_store_upper(uint16_t* to, lanes_v x) {
    const __m128i upper = _mm_setr_epi8(2, 3, 6, 7, 10, 11, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m256i halves = _mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(upper));
    _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 8)));
}
SIMD_LANES static inline lanes_f lanes_set_float(float x) {
    return (lanes_f)_mm256_set1_ps(x);
}
SIMD_LANES static inline lanes_v lanes_set(int32_t x) {
    return (lanes_v)_mm256_set1_epi32(x);
}
SIMD_LANES static inline lanes_v lanes_load_bytes(const uint8_t* from) {
    return (lanes_v)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)from));
}
/* The lowest byte of every number, for numbers of 0 to 255. */
SIMD_LANES static inline void lanes_store_bytes(uint8_t* to, lanes_v x) {
    const __m128i low = _mm256_castsi256_si128((__m256i)x), high = _mm256_extracti128_si256((__m256i)x, 1);
    const __m128i words = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i*)to, _mm_packus_epi16(words, words));
}
/* Four pixels for every 16 bytes of the vector; they are 4 * channels bytes apart. */
SIMD_LANES static inline lanes_v lanes_load_pixels(const uint8_t* from, int channels) {
    const __m128i low = _mm_loadu_si128((const __m128i*)from);
    const __m128i high = _mm_loadu_si128((const __m128i*)(from + 4 * channels));
    return (lanes_v)_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}
SIMD_LANES static inline lanes_v lanes_twice(simd_v x) {
    return (lanes_v)_mm256_broadcastsi128_si256((__m128i)x);
}
/* simd_shuffle in every 16 bytes. */
SIMD_LANES static inline lanes_v lanes_shuffle(lanes_v x, lanes_v numbers) {
    return (lanes_v)_mm256_shuffle_epi8((__m256i)x, (__m256i)numbers);
}
/* Writes the lowest three bytes of every number. */
SIMD_LANES static inline void lanes_store_three(uint8_t* to, lanes_v x) {
    const __m128i close = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    __m256i bytes = _mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(close));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
    _mm_storeu_si128((__m128i*)to, _mm256_castsi256_si128(bytes));
    _mm_storel_epi64((__m128i*)(to + 16), _mm256_extracti128_si256(bytes, 1));
}
SIMD_LANES static inline lanes_f lanes_reverse(lanes_f x) {
    return (lanes_f)_mm256_permutevar8x32_ps((__m256)x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
}
SIMD_LANES static inline lanes_f lanes_to_float(lanes_v x) {
    return (lanes_f)_mm256_cvtepi32_ps((__m256i)x);
}
SIMD_LANES static inline lanes_v lanes_from_float(lanes_f x) {
    return (lanes_v)_mm256_cvttps_epi32((__m256)x);
}
/* Halves to even. */
SIMD_LANES static inline lanes_f lanes_round(lanes_f x) {
    return (lanes_f)_mm256_round_ps((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/* Of numbers, or of something that is none and a number: the number, which is y. */
SIMD_LANES static inline lanes_f lanes_most(lanes_f x, lanes_f y) {
    return (lanes_f)_mm256_max_ps((__m256)x, (__m256)y);
}
SIMD_LANES static inline lanes_f lanes_least(lanes_f x, lanes_f y) {
    return (lanes_f)_mm256_min_ps((__m256)x, (__m256)y);
}
SIMD_LANES static inline lanes_v lanes_clamp(lanes_v x, int high) {
    return (lanes_v)_mm256_min_epi32(_mm256_max_epi32((__m256i)x, _mm256_setzero_si256()),
                                     _mm256_set1_epi32(high));
}
/* `yes` where the highest bit of `where` is set. */
SIMD_LANES static inline lanes_f lanes_choose(lanes_v where, lanes_f yes, lanes_f no) {
    return (lanes_f)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)where);
}
/* Entries 0 to 7 of a table, in the lowest byte of each number; the other bytes mean nothing. */
SIMD_LANES static inline lanes_v lanes_look_up(const int32_t table[8], lanes_v entries) {
    return (lanes_v)_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i*)table), (__m256i)entries);
}

#elif SIMD_NEON

#define SIMD_128
#define SIMD_LANES
#define SIMD_HALF

typedef int8x16_t simd_b;
typedef int16x8_t simd_h;
typedef int32x4_t simd_v;
typedef float32x4_t simd_f;

SIMD_INLINE simd_v simd_load(const void* from) {
    return (simd_v)vld1q_u8((const uint8_t*)from);
}
SIMD_INLINE simd_v simd_load_8_bytes(const void* from) {
    return (simd_v)vcombine_u8(vld1_u8((const uint8_t*)from), vdup_n_u8(0));
}
SIMD_INLINE void simd_store(void* to, simd_v x) {
    vst1q_u8((uint8_t*)to, (uint8x16_t)x);
}
SIMD_INLINE void simd_store_8_bytes(void* to, simd_v x) {
    vst1_u8((uint8_t*)to, vget_low_u8((uint8x16_t)x));
}
SIMD_INLINE simd_v simd_set(int32_t x) {
    return vdupq_n_s32(x);
}
SIMD_INLINE simd_v simd_set_16(int16_t x) {
    return (simd_v)vdupq_n_s16(x);
}
SIMD_INLINE simd_v simd_shuffle(simd_v x, simd_v numbers) {
    return (simd_v)vqtbl1q_u8((uint8x16_t)x, (uint8x16_t)numbers);
}
#define simd_repeat(x, k)            vdupq_laneq_s32(x, k)
SIMD_INLINE simd_v simd_join(simd_v x, simd_v y) {
    return vcombine_s32(vget_low_s32(x), vget_low_s32(y));
}
SIMD_INLINE simd_v simd_mingle(simd_v x, simd_v y) {
    return vzip1q_s32(x, y);
}
SIMD_INLINE simd_v simd_widen_8(simd_v x) {
    return (simd_v)vmovl_u8(vget_low_u8((uint8x16_t)x));
}
SIMD_INLINE simd_v simd_widen_8_upper(simd_v x) {
    return (simd_v)vmovl_high_u8((uint8x16_t)x);
}
SIMD_INLINE simd_v simd_widen_8_to_32(simd_v x) {
    return (simd_v)vmovl_u16(vget_low_u16(vmovl_u8(vget_low_u8((uint8x16_t)x))));
}
SIMD_INLINE simd_v simd_narrow(simd_v x, simd_v y) {
    return (simd_v)vqmovn_high_s32(vqmovn_s32(x), y);
}
SIMD_INLINE simd_v simd_narrow_16(simd_v x, simd_v y) {
    return (simd_v)vqmovn_high_s16(vqmovn_s16((int16x8_t)x), (int16x8_t)y);
}
SIMD_INLINE simd_v simd_narrow_16_to_bytes(simd_v x, simd_v y) {
    return (simd_v)vqmovun_high_s16(vqmovun_s16((int16x8_t)x), (int16x8_t)y);
}
SIMD_INLINE simd_v simd_add_16(simd_v x, simd_v y) {
    return (simd_v)vaddq_s16((int16x8_t)x, (int16x8_t)y);
}
SIMD_INLINE simd_v simd_subtract_16(simd_v x, simd_v y) {
    return (simd_v)vsubq_s16((int16x8_t)x, (int16x8_t)y);
}
#define simd_shift_right_16(x, bits) ((simd_v)vshrq_n_s16((int16x8_t)(x), bits))
#define simd_shift_right(x, bits)    vshrq_n_s32(x, bits)
SIMD_INLINE simd_v simd_multiply_high_16(simd_v x, simd_v y) {
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)y));
    return (simd_v)vuzp2q_s16((int16x8_t)low, (int16x8_t)vmull_high_s16((int16x8_t)x, (int16x8_t)y));
}
SIMD_INLINE simd_v simd_multiply(simd_v x, simd_v y) {
    return vmulq_s32(x, y);
}
SIMD_INLINE simd_v simd_pair_products_16(simd_v x, simd_v y) {
    const int32x4_t low = vmull_s16(vget_low_s16((int16x8_t)x), vget_low_s16((int16x8_t)y));
    return vpaddq_s32(low, vmull_high_s16((int16x8_t)x, (int16x8_t)y));
}
SIMD_INLINE simd_v simd_pair_products_8(simd_v x, simd_v weights) {
    const uint16x8_t low = vmull_u8(vget_low_u8((uint8x16_t)x), vget_low_u8((uint8x16_t)weights));
    return (simd_v)vpaddq_u16(low, vmull_high_u8((uint8x16_t)x, (uint8x16_t)weights));
}
SIMD_INLINE simd_v simd_pair_sums(simd_v x, simd_v y) {
    return vpaddq_s32(x, y);
}
SIMD_INLINE simd_f simd_set_float(float x) {
    return vdupq_n_f32(x);
}
SIMD_INLINE simd_f simd_to_float(simd_v x) {
    return vcvtq_f32_s32(x);
}
SIMD_INLINE simd_v simd_from_float(simd_f x) {
    return vcvtq_s32_f32(x);
}

enum { LANES = 4 };
typedef int32x4_t lanes_v;
typedef float32x4_t lanes_f;

SIMD_INLINE lanes_f lanes_load(const float* from) {
    return vld1q_f32(from);
}
SIMD_INLINE void lanes_store(float* to, lanes_f x) {
    vst1q_f32(to, x);
}
SIMD_INLINE void lanes_stream(float* to, lanes_f x) {
    vst1q_f32(to, x);
}
SIMD_INLINE void lanes_store_half(uint16_t* to, lanes_f x) {
    vst1_u16(to, (uint16x4_t)vcvt_f16_f32(x));
}
SIMD_INLINE void lanes_store_upper(uint16_t* to, lanes_v x) {
    vst1_s16((int16_t*)to, vshrn_n_s32(x, 16));
}
SIMD_INLINE lanes_f lanes_set_float(float x) {
    return vdupq_n_f32(x);
}
SIMD_INLINE lanes_v lanes_set(int32_t x) {
    return vdupq_n_s32(x);
}
SIMD_INLINE lanes_v lanes_load_bytes(const uint8_t* from) {
    uint32_t four;
    memcpy(&four, from, 4);
    return simd_widen_8_to_32((simd_v)vdupq_n_u32(four));
}
SIMD_INLINE void lanes_store_bytes(uint8_t* to, lanes_v x) {
    const int16x8_t words = vcombine_s16(vmovn_s32(x), vdup_n_s16(0));
    const uint32_t four = vget_lane_u32((uint32x2_t)vmovn_s16(words), 0);
    memcpy(to, &four, 4);
}
SIMD_INLINE lanes_v lanes_load_pixels(const uint8_t* from, int channels) {
    (void)channels;
    return simd_load(from);
}
SIMD_INLINE lanes_v lanes_twice(simd_v x) {
    return x;
}
SIMD_INLINE lanes_v lanes_shuffle(lanes_v x, lanes_v numbers) {
    return simd_shuffle(x, numbers);
}
SIMD_INLINE void lanes_store_three(uint8_t* to, lanes_v x) {
    const simd_b close = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1};
    const simd_v bytes = simd_shuffle(x, (simd_v)close);
    const int32_t last = vgetq_lane_s32(bytes, 2);
    simd_store_8_bytes(to, bytes);
    memcpy(to + 8, &last, 4);
}
SIMD_INLINE lanes_f lanes_reverse(lanes_f x) {
    const float32x4_t pairs = vrev64q_f32(x);
    return vextq_f32(pairs, pairs, 2);
}
SIMD_INLINE lanes_f lanes_to_float(lanes_v x) {
    return vcvtq_f32_s32(x);
}
SIMD_INLINE lanes_v lanes_from_float(lanes_f x) {
    return vcvtq_s32_f32(x);
}
SIMD_INLINE lanes_f lanes_round(lanes_f x) {
    return vrndnq_f32(x);
}
SIMD_INLINE lanes_f lanes_most(lanes_f x, lanes_f y) {
    return vmaxnmq_f32(x, y);
}
SIMD_INLINE lanes_f lanes_least(lanes_f x, lanes_f y) {
    return vminnmq_f32(x, y);
}
SIMD_INLINE lanes_v lanes_clamp(lanes_v x, int high) {
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(0)), vdupq_n_s32(high));
}
SIMD_INLINE lanes_f lanes_choose(lanes_v where, lanes_f yes, lanes_f no) {
    return vbslq_f32(vcltzq_s32(where), yes, no);
}
SIMD_INLINE lanes_v lanes_look_up(const int32_t table[8], lanes_v entries) {
    const int16x8_t both = vuzp1q_s16((int16x8_t)vld1q_s32(table), (int16x8_t)vld1q_s32(table + 4));
    return simd_shuffle((simd_v)vmovn_high_s16(vmovn_s16(both), both), entries);
}

#endif

#if SIMD_VECTORS
#define simd_bytes(...) ((simd_v)(simd_b){__VA_ARGS__})

/* The first four bytes. */
SIMD_128 static inline void simd_store_4_bytes(void* to, simd_v x) {
    const int32_t bytes = x[0];
    memcpy(to, &bytes, 4);
}

/* `x` where all bits of `where` are set, 0 where none is. */
SIMD_LANES static inline lanes_f lanes_keep(lanes_v where, lanes_f x) {
    return (lanes_f)(where & (lanes_v)x);
}
#endif

#endif
