/* The kernel of small boxes in instructions of x86; box_blur.h includes it for each size of vectors.
 *
 * BOX_BLUR_TAPS is what comes before the parameters, BOX_BLUR_BITS a vector's size, and
 * BOX_BLUR_(word) an instruction for it.
 *
 * Weights of 24 bits are split into halves of 12, so that a signed product of 16 bits holds: sums of a
 * small box are at most 17 * 255.  Their products with a half, added to those of the edges, stay below
 * 2^25; both halves put together are the definition's number less 2^23, which fits 32 bits.  That half
 * is added last: with n = 2^23 * a + b, (n + 2^23) >> 24 is (a + 1) >> 1, the mean of a and 0 rounded up.
 *
 * Unpacking and packing work within 16 bytes, and undo each other.
 */
#define BOX_BLUR_JOIN(a, b)      a##b
#define BOX_BLUR_NAME(word, end) BOX_BLUR_JOIN(word, end)
#define BOX_BLUR_SI(word)        BOX_BLUR_NAME(BOX_BLUR_(word), BOX_BLUR_BITS)
#define BOX_BLUR_VECTOR          __typeof__(BOX_BLUR_SI(setzero_si)())

BOX_BLUR_TAPS(const box_blur* box, const uint8_t* const* taps, ptrdiff_t count, uint8_t* out) {
    const int step = BOX_BLUR_BITS / 8, last = 2 * box->radius + 2;
    const BOX_BLUR_VECTOR none = BOX_BLUR_SI(setzero_si)();
    const BOX_BLUR_VECTOR upper =
        BOX_BLUR_(set1_epi32)((int)(box->edge_weight >> 12 << 16 | box->weight >> 12));
    const BOX_BLUR_VECTOR lower =
        BOX_BLUR_(set1_epi32)((int)((box->edge_weight & 4095) << 16 | (box->weight & 4095)));
    for (ptrdiff_t x = 0; count < step && x < count; x++) {
        uint32_t sum = 0;
        for (int k = 1; k < last; k++)
            sum += taps[k][x];
        out[x] = box_blur_value(box, sum, (uint32_t)taps[0][x] + taps[last][x]);
    }
    for (ptrdiff_t x = 0; count >= step && x < count; x += step) {
        if (x > count - step) x = count - step; /* once more, so that the last are whole vectors too */
        BOX_BLUR_VECTOR value, sums[2], edges[2], words[2];
#define BOX_BLUR_LOAD(k) BOX_BLUR_SI(loadu_si)((const void*)(taps[k] + x))
        value = BOX_BLUR_LOAD(0);
        edges[0] = BOX_BLUR_(unpacklo_epi8)(value, none);
        edges[1] = BOX_BLUR_(unpackhi_epi8)(value, none);
        value = BOX_BLUR_LOAD(last);
        edges[0] = BOX_BLUR_(add_epi16)(edges[0], BOX_BLUR_(unpacklo_epi8)(value, none));
        edges[1] = BOX_BLUR_(add_epi16)(edges[1], BOX_BLUR_(unpackhi_epi8)(value, none));
        value = BOX_BLUR_LOAD(1);
        sums[0] = BOX_BLUR_(unpacklo_epi8)(value, none);
        sums[1] = BOX_BLUR_(unpackhi_epi8)(value, none);
        for (int k = 2; k < last; k++) {
            value = BOX_BLUR_LOAD(k);
            sums[0] = BOX_BLUR_(add_epi16)(sums[0], BOX_BLUR_(unpacklo_epi8)(value, none));
            sums[1] = BOX_BLUR_(add_epi16)(sums[1], BOX_BLUR_(unpackhi_epi8)(value, none));
        }
#undef BOX_BLUR_LOAD
        for (int i = 0; i < 2; i++) {
            BOX_BLUR_VECTOR pairs[2] = {BOX_BLUR_(unpacklo_epi16)(sums[i], edges[i]),
                                        BOX_BLUR_(unpackhi_epi16)(sums[i], edges[i])};
            for (int j = 0; j < 2; j++) {
                const BOX_BLUR_VECTOR high =
                    BOX_BLUR_(slli_epi32)(BOX_BLUR_(madd_epi16)(pairs[j], upper), 12);
                const BOX_BLUR_VECTOR low = BOX_BLUR_(madd_epi16)(pairs[j], lower);
                pairs[j] = BOX_BLUR_(srli_epi32)(BOX_BLUR_(add_epi32)(high, low), 23);
            }
            words[i] = BOX_BLUR_(avg_epu16)(BOX_BLUR_(packs_epi32)(pairs[0], pairs[1]), none);
        }
        value = BOX_BLUR_(packus_epi16)(words[0], words[1]);
        BOX_BLUR_SI(storeu_si)((void*)(out + x), value);
    }
}

#undef BOX_BLUR_TAPS
#undef BOX_BLUR_BITS
#undef BOX_BLUR_
#undef BOX_BLUR_JOIN
#undef BOX_BLUR_NAME
#undef BOX_BLUR_SI
#undef BOX_BLUR_VECTOR
