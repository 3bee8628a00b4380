/* Rows moved with vector instructions: one pixel at a time, the same bytes as in affine.h.
 *
 * Included by affine.h, which has the plain forms and the edges.  Colours of 3 and 4 channels.
 */
#ifndef ITERATORS_AFFINE_SIMD_H
#define ITERATORS_AFFINE_SIMD_H

#if SIMD_VECTORS

/* Four bytes; of three channels the last one belongs to the next pixel, if there is one. */
SIMD_INLINE void affine_store(uint32_t value, int channels, int is_last, uint8_t* out) {
    if (channels == 3 && is_last)
        memcpy(out, &value, 3);
    else
        memcpy(out, &value, 4);
}

SIMD_128 SIMD_INLINE void affine_bilinear_run(const affine_image* image, affine_point point, int64_t across,
                                              int64_t down, int count, int channels, uint8_t* out) {
    const ptrdiff_t size = (ptrdiff_t)image->width * channels;
    /* Two neighbours of each channel side by side, 16 bits each. */
    const simd_v neighbours = channels == 3
                                  ? simd_bytes(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1)
                                  : simd_bytes(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
    const simd_v gather = simd_bytes(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    for (int i = 0; i < count; i++, point.x += across, point.y += down, out += channels) {
        const int64_t x = point.x >> 32, y = point.y >> 32;
        if (x < 0 || y < 0 || x > image->width - 2 || y > image->height - 2) {
            affine_bilinear_pixel(image, point, channels, out);
            continue;
        }
        const int right = (int)(point.x >> 21) & 2047, low = (int)(point.y >> 21) & 2047;
        const uint8_t* from = image->pixels + y * size + x * channels;
        const simd_v weights = simd_set((2048 - right) | right << 16);
        simd_v above = simd_shuffle(simd_load_8_bytes(from), neighbours);
        simd_v below = simd_shuffle(simd_load_8_bytes(from + size), neighbours);
        above = simd_multiply(simd_pair_products_16(above, weights), simd_set(2048 - low));
        below = simd_multiply(simd_pair_products_16(below, weights), simd_set(low));
        const simd_v pixel = simd_shuffle(simd_shift_right(above + below, 22), gather);
        affine_store((uint32_t)pixel[0], channels, i == count - 1, out);
    }
}

/* A run of pixels of a row, of 3 or 4 channels. */
SIMD_128 static SIMD_UNUSED void affine_bilinear_128(const affine_image* image, affine_point point,
                                                     int64_t across, int64_t down, int count, uint8_t* out) {
    if (image->channels == 3)
        affine_bilinear_run(image, point, across, down, count, 3, out);
    else
        affine_bilinear_run(image, point, across, down, count, 4, out);
}
#endif

#if SIMD_X86

/* The sum of four neighbours of each channel, as affine_bicubic_pixel makes it. */
SIMD_AVX2 static inline __m128 affine_four(const uint8_t* from, __m128i first, __m128i second, __m256 outer,
                                           __m256 inner) {
    const __m128i values = _mm_loadu_si128((const __m128i*)from);
    const __m256 left = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(values, first)));
    const __m256 right = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(values, second)));
    const __m256 sum = _mm256_add_ps(_mm256_mul_ps(left, outer), _mm256_mul_ps(right, inner));
    return _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
}

SIMD_AVX2 static inline void affine_bicubic_run(const affine_image* image, affine_point point, int64_t across,
                                                int64_t down, int count, int channels, uint8_t* out) {
    const ptrdiff_t size = (ptrdiff_t)image->width * channels;
    const __m128i gather = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i first = channels == 3
                              ? _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1)
                              : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i second = channels == 3
                               ? _mm_setr_epi8(6, 7, 8, -1, 9, 10, 11, -1, -1, -1, -1, -1, -1, -1, -1, -1)
                               : _mm_setr_epi8(8, 9, 10, 11, 12, 13, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1);
    for (int i = 0; i < count; i++, point.x += across, point.y += down, out += channels) {
        const int64_t x = point.x >> 32, y = point.y >> 32;
        if (x < 1 || y < 1 || x > image->width - 3 || y > image->height - 3) {
            affine_bicubic_pixel(image, point, channels, out);
            continue;
        }
        float a[4], d[4];
        affine_cubic((float)(uint32_t)point.x * AFFINE_UNIT, a);
        affine_cubic((float)(uint32_t)point.y * AFFINE_UNIT, d);
        const __m256 outer = _mm256_setr_ps(a[0], a[0], a[0], a[0], a[1], a[1], a[1], a[1]);
        const __m256 inner = _mm256_setr_ps(a[2], a[2], a[2], a[2], a[3], a[3], a[3], a[3]);
        const uint8_t* from = image->pixels + (y - 1) * size + (x - 1) * channels;
        __m128 sum = _mm_mul_ps(affine_four(from, first, second, outer, inner), _mm_set1_ps(d[0]));
        for (int j = 1; j < 4; j++)
            sum = _mm_add_ps(sum, _mm_mul_ps(affine_four(from + j * size, first, second, outer, inner),
                                             _mm_set1_ps(d[j])));
        sum = _mm_min_ps(_mm_max_ps(sum, _mm_setzero_ps()), _mm_set1_ps(255.f));
        const __m128i pixel = _mm_shuffle_epi8(_mm_cvttps_epi32(sum), gather);
        affine_store((uint32_t)_mm_cvtsi128_si32(pixel), channels, i == count - 1, out);
    }
}

/* A run of pixels of a row, of 3 or 4 channels. */
SIMD_AVX2 static SIMD_UNUSED void affine_run_avx2(int method, const affine_image* image, affine_point point,
                                                  int64_t across, int64_t down, int count, uint8_t* out) {
    const int channels = image->channels;
    if (method == AFFINE_BILINEAR && channels == 3)
        affine_bilinear_run(image, point, across, down, count, 3, out);
    else if (method == AFFINE_BILINEAR)
        affine_bilinear_run(image, point, across, down, count, 4, out);
    else if (channels == 3)
        affine_bicubic_run(image, point, across, down, count, 3, out);
    else
        affine_bicubic_run(image, point, across, down, count, 4, out);
}

#endif
#endif
