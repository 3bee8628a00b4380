/* Huffman codes to write JPEG scans with: the usual ones, and the shortest for given counts.
 *
 * A code is what a DHT segment holds: how many symbols have each length, and the symbols in order.
 */
#ifndef ITERATORS_JPEG_CODES_H
#define ITERATORS_JPEG_CODES_H

#include <stdint.h>
#include <string.h>

#include "coefficients.h"

#define JPEG_LONGEST_CODE 16

typedef struct {
    uint8_t lengths[JPEG_LONGEST_CODE + 1]; /* number of codes by length; the first is not used */
    uint8_t symbols[256];
    int count;
    uint16_t code[256]; /* by symbol */
    uint8_t size[256];  /* by symbol; 0: it has no code */
} jpeg_code;

/* Colour differences are coded with tables of their own. */
static inline int jpeg_is_chroma(int colours, int component)
{
    return colours != JPEG_COLOURS_OTHER && (component == 1 || component == 2);
}

/* The codes that the standard suggests (ITU-T T.81, annex K.3) and most encoders write.  Returns the
 * number of symbols. */
static inline int jpeg_standard_code(int chroma, int is_dc, const uint8_t **lengths,
                                     const uint8_t **symbols)
{
    static const uint8_t dc_lengths[2][JPEG_LONGEST_CODE + 1] = {
        {0, 0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
        {0, 0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
    };
    static const uint8_t dc_symbols[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const uint8_t ac_lengths[2][JPEG_LONGEST_CODE + 1] = {
        {0, 0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125},
        {0, 0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119},
    };
    static const uint8_t ac_symbols[2][162] = {
        {
            0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
            0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xA1, 0x08, 0x23, 0x42, 0xB1, 0xC1,
            0x15, 0x52, 0xD1, 0xF0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0A, 0x16, 0x17, 0x18,
            0x19, 0x1A, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39,
            0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56, 0x57,
            0x58, 0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74, 0x75,
            0x76, 0x77, 0x78, 0x79, 0x7A, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x92,
            0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7,
            0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA, 0xC2, 0xC3,
            0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6, 0xD7, 0xD8,
            0xD9, 0xDA, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF1, 0xF2,
            0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
        },
        {
            0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
            0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xA1, 0xB1, 0xC1, 0x09,
            0x23, 0x33, 0x52, 0xF0, 0x15, 0x62, 0x72, 0xD1, 0x0A, 0x16, 0x24, 0x34, 0xE1, 0x25,
            0xF1, 0x17, 0x18, 0x19, 0x1A, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x35, 0x36, 0x37, 0x38,
            0x39, 0x3A, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4A, 0x53, 0x54, 0x55, 0x56,
            0x57, 0x58, 0x59, 0x5A, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x73, 0x74,
            0x75, 0x76, 0x77, 0x78, 0x79, 0x7A, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
            0x8A, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0xA2, 0xA3, 0xA4, 0xA5,
            0xA6, 0xA7, 0xA8, 0xA9, 0xAA, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8, 0xB9, 0xBA,
            0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xCA, 0xD2, 0xD3, 0xD4, 0xD5, 0xD6,
            0xD7, 0xD8, 0xD9, 0xDA, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xF2,
            0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8, 0xF9, 0xFA,
        },
    };
    *lengths = is_dc ? dc_lengths[chroma] : ac_lengths[chroma];
    *symbols = is_dc ? dc_symbols : ac_symbols[chroma];
    return is_dc ? 12 : 162;
}

/* The code of each symbol, from how many there are of each length. */
static inline void jpeg_assign_codes(jpeg_code *code)
{
    unsigned next = 0;
    int length, i, at = 0;
    memset(code->size, 0, sizeof code->size);
    for (length = 1; length <= JPEG_LONGEST_CODE; length++, next <<= 1)
        for (i = 0; i < code->lengths[length]; i++, at++) {
            code->code[code->symbols[at]] = (uint16_t)next++;
            code->size[code->symbols[at]] = (uint8_t)length;
        }
    code->count = at;
}

static inline void jpeg_use_standard_code(jpeg_code *code, int chroma, int is_dc)
{
    const uint8_t *lengths, *symbols;
    const int count = jpeg_standard_code(chroma, is_dc, &lengths, &symbols);
    memcpy(code->lengths, lengths, sizeof code->lengths);
    memcpy(code->symbols, symbols, (size_t)count);
    jpeg_assign_codes(code);
}

/* Codes must not be longer than 16 bits: shorten the longest ones at the cost of a shorter one, as
 * ITU-T T.81, figure K.3 does. */
static inline void jpeg_limit_lengths(int *lengths, int longest)
{
    for (; longest > JPEG_LONGEST_CODE; longest--)
        while (lengths[longest] > 0) {
            int shorter = longest - 2;
            while (lengths[shorter] == 0)
                shorter--;
            lengths[longest] -= 2;
            lengths[longest - 1]++;
            lengths[shorter + 1] += 2;
            lengths[shorter]--;
        }
}

/* The shortest code for symbols that occur `counts` times each, but for the limit of 16 bits.  The
 * code of all ones stays free, as the standard wants it; so no symbol at all is a code as well. */
static inline void jpeg_use_optimal_code(jpeg_code *code, const int64_t *counts)
{
    enum { RESERVED = 256, NODES = 2 * 257 };
    int64_t weight[NODES];
    int parent[NODES], open[257], depth[257], lengths[258];
    int symbol, length, i, last, used = 0, nodes = RESERVED + 1, longest = 0;
    for (symbol = 0; symbol <= RESERVED; symbol++) {
        weight[symbol] = symbol == RESERVED ? 1 : counts[symbol];
        parent[symbol] = -1;
        if (weight[symbol] > 0)
            open[used++] = symbol;
    }
    for (last = used; last > 1; last--) { /* join the two rarest, the later ones of equals */
        int rarest = last - 1, second = -1;
        for (i = last - 2; i >= 0; i--)
            if (weight[open[i]] < weight[open[rarest]]) {
                second = rarest;
                rarest = i;
            } else if (second < 0 || weight[open[i]] < weight[open[second]])
                second = i;
        weight[nodes] = weight[open[rarest]] + weight[open[second]];
        parent[nodes] = -1;
        parent[open[rarest]] = parent[open[second]] = nodes;
        open[rarest < second ? rarest : second] = nodes++;
        open[rarest < second ? second : rarest] = open[last - 1];
    }
    memset(lengths, 0, sizeof lengths);
    for (symbol = 0; symbol <= RESERVED; symbol++) {
        depth[symbol] = 0;
        if (weight[symbol] == 0)
            continue;
        for (i = symbol; parent[i] >= 0; i = parent[i])
            depth[symbol]++;
        if (depth[symbol] == 0)
            depth[symbol] = 1; /* nothing but the reserved one */
        lengths[depth[symbol]]++;
        longest = depth[symbol] > longest ? depth[symbol] : longest;
    }
    /* Frequent symbols first: lengths are given out anew in that order. */
    code->count = 0;
    for (length = 1; length <= longest; length++)
        for (symbol = 0; symbol < RESERVED; symbol++)
            if (depth[symbol] == length)
                code->symbols[code->count++] = (uint8_t)symbol;
    jpeg_limit_lengths(lengths, longest);
    for (length = JPEG_LONGEST_CODE; lengths[length] == 0; length--)
        ;
    lengths[length]--; /* the reserved one: the last of the longest is all ones */
    for (length = 1; length <= JPEG_LONGEST_CODE; length++)
        code->lengths[length] = (uint8_t)lengths[length];
    code->lengths[0] = 0;
    jpeg_assign_codes(code);
}

#endif
