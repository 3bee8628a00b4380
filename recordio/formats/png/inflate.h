/* Inflate the zlib stream of a PNG image, whose size is known beforehand.
 *
 * A symbol's code tells where the next one begins, so that look-ups wait for each other: seven cycles
 * each, and in photographs most symbols are literals of five or six bits.  An entry of the table
 * therefore holds as much as fits in its bits: two literals, or a literal and the length of the match
 * behind it.  The latter also spares a branch that cannot be foreseen.
 *
 * Nothing is checked byte by byte.  A turn of the main loop reads and writes no more than so many bytes
 * beyond the ends, which must be there (INFLATE_READS, INFLATE_WRITES), and looks at its beginning whether the last one
 * stayed inside.  What is no valid stream is refused wherever zlib refuses it.
 */
#ifndef RECORDIO_PNG_INFLATE_H
#define RECORDIO_PNG_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "checksums.h"
#include "recordio/kernels/simd.h"

enum {
    INFLATE_READS = 12,   /* bytes behind the data that must be readable */
    INFLATE_WRITES = 320, /* bytes behind the output that must be there; they change */
};

enum {
    LITERAL_BITS = 12,
    DISTANCE_BITS = 9,
    LONGEST_CODE = 15,
    LITERALS = 288, /* bytes, the end of a block, lengths */
    END_OF_BLOCK = 256,
    FIRST_LENGTH = 257,
    LENGTHS = 29,
    DISTANCES = 32,
    DISTANCES_USED = 30,
    SHORTEST_MATCH = 3,
};

/* Entries of the tables.  Bits 0 to 5: how many bits they take, extra bits included.
 *
 * One or two literals: bits 6 and 7 their number, from bit 8 on their values.
 * Length or distance: bits 8 to 11 the bits in front of the extra bits.  A distance is in bits 16 to 31, a length
 * (less SHORTEST_MATCH) in 16 to 23; if ENTRY_AFTER is set, it follows the literal in bits 24 to 31.
 * All others have ENTRY_ODD: the end of a block, and codes longer than the table, whose first bits are
 * in bits 16 to 31 as a number (0 if there is no such code). */
enum {
    ENTRY_TAKES = 63,
    ENTRY_LITERALS = 3 << 6,
    ENTRY_AFTER = 1 << 12,
    ENTRY_END = 1 << 14,
    ENTRY_ODD = 1 << 15,
};

/* A canonical code: those of one length are numbered one after the other. */
typedef struct {
    uint16_t count[LONGEST_CODE + 1]; /* of each length */
    uint16_t first[LONGEST_CODE + 1]; /* code of each length */
    uint16_t index[LONGEST_CODE + 1]; /* of its symbol */
    uint16_t symbols[LITERALS];       /* in the order of their codes */
} inflate_code;

typedef struct {
    uint32_t literals[1 << LITERAL_BITS];
    uint32_t distances[1 << DISTANCE_BITS];
    inflate_code literal_code, distance_code;
    uint8_t lengths[LITERALS + DISTANCES];
} png_inflater;

/* The next bits of the data, the first one lowest; `count` of them are known to be right. */
typedef struct {
    uint64_t bits;
    unsigned count;
    const uint8_t* at;
    const uint8_t* limit; /* `at` is never beyond, unless the data end too early */
} inflate_input;

/* At least 56 bits.  Reads eight bytes. */
SIMD_INLINE void inflate_refill(inflate_input* in) {
    uint64_t word;
    memcpy(&word, in->at, sizeof word);
    in->bits |= word << in->count;
    in->at += (63 - in->count) >> 3;
    in->count |= 56;
}

SIMD_INLINE void inflate_skip(inflate_input* in, unsigned count) {
    in->bits >>= count;
    in->count -= count;
}

SIMD_INLINE unsigned inflate_take(inflate_input* in, unsigned count) {
    const unsigned value = (unsigned)in->bits & ((1u << count) - 1);
    inflate_skip(in, count);
    return value;
}

static uint32_t inflate_literal_entry(unsigned symbol, unsigned bits) {
    static const uint8_t extra[LENGTHS] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint8_t base[LENGTHS] = {0,  1,  2,  3,  4,  5,  6,  7,  8,   10,  12,  14,  16,  20, 24,
                                          28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 255};
    if (symbol < END_OF_BLOCK) return bits | 1 << 6 | symbol << 8;
    if (symbol == END_OF_BLOCK) return bits | ENTRY_ODD | ENTRY_END;
    symbol -= FIRST_LENGTH;
    return symbol < LENGTHS ? (bits + extra[symbol]) | bits << 8 | (uint32_t)base[symbol] << 16 : ENTRY_ODD;
}

static uint32_t inflate_distance_entry(unsigned symbol, unsigned bits) {
    const unsigned extra = symbol < 4 ? 0 : symbol / 2 - 1;
    const uint32_t base = symbol < 4 ? symbol + 1 : ((2 + (symbol & 1)) << extra) + 1;
    return symbol < DISTANCES_USED ? (bits + extra) | bits << 8 | base << 16 : ENTRY_ODD;
}

/* The code of these lengths (0: no such symbol); 0 if it has too many codes, or too few.  `one`: a single
 * code of one bit, or none, will do. */
static int inflate_read_code(inflate_code* code, const uint8_t* lengths, unsigned symbols, int one) {
    unsigned next[LONGEST_CODE + 1], i, used = 0, index = 0, longest = 0;
    memset(code->count, 0, sizeof code->count);
    for (i = 0; i < symbols; i++)
        code->count[lengths[i]]++;
    code->count[0] = 0;
    for (i = 1; i <= LONGEST_CODE; i++) {
        used *= 2;
        code->first[i] = (uint16_t)used;
        code->index[i] = (uint16_t)(next[i] = index);
        index += code->count[i];
        used += code->count[i];
        if (used > 1u << i) return 0;
        if (code->count[i]) longest = i;
    }
    if (used != 1u << LONGEST_CODE && !(one && longest <= 1)) return 0;
    for (i = 0; i < symbols; i++)
        if (lengths[i]) code->symbols[next[lengths[i]]++] = (uint16_t)i;
    return 1;
}

/* The bits of a code in the order in which the data have them. */
SIMD_INLINE unsigned inflate_reverse(unsigned code, unsigned bits) {
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0F0F) << 4 | (code >> 4 & 0x0F0F);
    code = (code & 0x00FF) << 8 | code >> 8;
    return code >> (16 - bits);
}

/* Codes longer than a table of `bits` bits. */
static void inflate_mark_long(uint32_t* table, unsigned bits, const inflate_code* code) {
    unsigned length, k;
    for (length = bits + 1; length <= LONGEST_CODE; length++)
        for (k = 0; k < code->count[length]; k++) {
            const unsigned begins = (code->first[length] + k) >> (length - bits);
            table[inflate_reverse(begins, bits)] = ENTRY_ODD | begins << 16;
        }
}

/* A table of n bits is twice one of n - 1, in which the entries of n bits are then written. */
SIMD_INLINE void inflate_double(uint32_t* table, unsigned bits) {
    memcpy(table + ((size_t)1 << (bits - 1)), table, sizeof *table << (bits - 1));
}

static void inflate_fill_literals(uint32_t* table, const inflate_code* code) {
    uint16_t codes[LITERALS];           /* of literals, the shortest first; behind them of lengths */
    uint32_t entries[LITERALS];         /* the same */
    unsigned literal[LITERAL_BITS + 2]; /* the first one of so many bits */
    unsigned length[LITERAL_BITS + 2];  /* the same */
    unsigned bits, first, i, j, k, literals = 0, lengths = END_OF_BLOCK;
    table[0] = ENTRY_ODD;
    for (bits = 1; bits <= LITERAL_BITS; bits++) {
        inflate_double(table, bits);
        literal[bits] = literals;
        length[bits] = lengths;
        for (k = 0; k < code->count[bits]; k++) {
            const unsigned symbol = code->symbols[code->index[bits] + k];
            const unsigned reversed = inflate_reverse(code->first[bits] + k, bits);
            const unsigned to = symbol < END_OF_BLOCK ? literals++ : lengths;
            table[reversed] = entries[to] = inflate_literal_entry(symbol, bits);
            codes[to] = (uint16_t)reversed;
            lengths += symbol >= FIRST_LENGTH;
        }
        literal[bits + 1] = literals;
        length[bits + 1] = lengths;
        for (first = 1; first < bits; first++) {
            const unsigned second = bits - first;
            for (i = literal[first]; i < literal[first + 1]; i++) {
                const uint32_t value = entries[i] >> 8;
                const uint32_t pair = first | 1 << 6 | value << 8;
                const uint32_t before = first | first << 8 | ENTRY_AFTER | value << 24;
                for (j = literal[second]; j < literal[second + 1]; j++)
                    table[codes[i] | codes[j] << first] =
                        pair + ((entries[j] & 0xFF) | (entries[j] & 0xFF00) << 8);
                for (j = length[second]; j < length[second + 1]; j++)
                    table[codes[i] | codes[j] << first] = before + entries[j];
            }
        }
    }
    inflate_mark_long(table, LITERAL_BITS, code);
}

static void inflate_fill_distances(uint32_t* table, const inflate_code* code) {
    unsigned bits, k;
    table[0] = ENTRY_ODD;
    for (bits = 1; bits <= DISTANCE_BITS; bits++) {
        inflate_double(table, bits);
        for (k = 0; k < code->count[bits]; k++)
            table[inflate_reverse(code->first[bits] + k, bits)] =
                inflate_distance_entry(code->symbols[code->index[bits] + k], bits);
    }
    inflate_mark_long(table, DISTANCE_BITS, code);
}

/* Tables for a block, its lengths of codes being in their place; 0 if they make no codes. */
static int inflate_make_tables(png_inflater* inflater, unsigned literals, unsigned distances) {
    const uint8_t* lengths = inflater->lengths;
    if (!lengths[END_OF_BLOCK] || !inflate_read_code(&inflater->literal_code, lengths, literals, 1) ||
        !inflate_read_code(&inflater->distance_code, lengths + literals, distances, 1))
        return 0;
    inflate_fill_literals(inflater->literals, &inflater->literal_code);
    inflate_fill_distances(inflater->distances, &inflater->distance_code);
    return 1;
}

static int inflate_fixed_tables(png_inflater* inflater) {
    memset(inflater->lengths, 8, LITERALS);
    memset(inflater->lengths + 144, 9, 112);
    memset(inflater->lengths + 256, 7, 24);
    memset(inflater->lengths + LITERALS, 5, DISTANCES);
    return inflate_make_tables(inflater, LITERALS, DISTANCES);
}

/* The tables that a block brings: lengths of codes, which have a code themselves. */
static int inflate_dynamic_tables(png_inflater* inflater, inflate_input* in) {
    enum { KINDS = 19, BITS = 7, REPEAT = 16, ZEROS = 17 };
    static const uint8_t order[KINDS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t kinds[KINDS] = {0}, table[1 << BITS] = {0}; /* kind << 3 | bits of its code */
    inflate_code code;
    unsigned literals, all, count, bits, i, k;
    if (in->at > in->limit) return 0;
    inflate_refill(in);
    literals = inflate_take(in, 5) + FIRST_LENGTH;
    all = literals + inflate_take(in, 5) + 1;
    count = inflate_take(in, 4) + 4;
    if (literals > FIRST_LENGTH + LENGTHS || all - literals > DISTANCES_USED) return 0;
    for (i = 0; i < count; i++) {
        if (in->at > in->limit) return 0;
        inflate_refill(in);
        kinds[order[i]] = (uint8_t)inflate_take(in, 3);
    }
    if (!inflate_read_code(&code, kinds, KINDS, 0)) return 0;
    for (bits = 1; bits <= BITS; bits++)
        for (k = 0; k < code.count[bits]; k++)
            for (i = inflate_reverse(code.first[bits] + k, bits); i < 1 << BITS; i += 1u << bits)
                table[i] = (uint8_t)(code.symbols[code.index[bits] + k] << 3 | bits);
    for (i = 0; i < all;) {
        unsigned kind, times = 1;
        uint8_t value;
        if (in->at > in->limit) return 0;
        inflate_refill(in);
        kind = table[in->bits & ((1 << BITS) - 1)];
        inflate_skip(in, kind & 7);
        kind >>= 3;
        value = (uint8_t)kind;
        if (kind >= REPEAT) {
            if (kind == REPEAT && !i) return 0;
            value = kind == REPEAT ? inflater->lengths[i - 1] : 0;
            times = kind == REPEAT  ? 3 + inflate_take(in, 2)
                    : kind == ZEROS ? 3 + inflate_take(in, 3)
                                    : 11 + inflate_take(in, 7);
            if (times > all - i) return 0;
        }
        memset(inflater->lengths + i, value, times);
        i += times;
    }
    return inflate_make_tables(inflater, literals, all - literals);
}

/* The entry of a code longer than its table, of which `entry` has the first bits; odd if there is none. */
static uint32_t inflate_long_code(const inflate_code* code, uint64_t bits, uint32_t entry, unsigned length,
                                  uint32_t (*entry_of)(unsigned, unsigned)) {
    unsigned value = entry >> 16, k;
    for (bits >>= length++; length <= LONGEST_CODE; length++, bits >>= 1) {
        value = value << 1 | (unsigned)(bits & 1);
        k = value - code->first[length];
        if (k < code->count[length]) return entry_of(code->symbols[code->index[length] + k], length);
    }
    return ENTRY_ODD;
}

SIMD_INLINE uint32_t inflate_look(const uint32_t* literals, const inflate_input* in) {
    return literals[in->bits & ((1 << LITERAL_BITS) - 1)];
}

/* Write the literals of an entry, and go to the next one; that first, since it is what all else waits for. */
SIMD_INLINE uint8_t* inflate_literals(const uint32_t* literals, inflate_input* in, uint32_t* entry,
                                      uint8_t* out) {
    const uint32_t now = *entry;
    const uint16_t two = (uint16_t)(now >> 8);
    inflate_skip(in, now & ENTRY_TAKES);
    *entry = inflate_look(literals, in);
    memcpy(out, &two, sizeof two);
    return out + (now >> 6 & 3);
}

/* The extra bits of an entry. */
SIMD_INLINE unsigned inflate_extra(uint64_t bits, uint32_t entry) {
    return (unsigned)((bits & ((UINT64_C(1) << (entry & ENTRY_TAKES)) - 1)) >> (entry >> 8 & 15));
}

/* Repeat what is so far back.  Up to 15 bytes more are written. */
SIMD_INLINE void inflate_copy(uint8_t* out, size_t distance, size_t length) {
    static const uint8_t steps[8] = {0, 8, 8, 6, 8, 5, 6, 7}; /* multiples of the distance */
    const uint8_t *from = out - distance, *end = out + length;
    if (distance >= 16) {
        do {
            memcpy(out, from, 16);
            out += 16;
            from += 16;
        } while (out < end);
    } else if (distance >= 8) {
        do {
            memcpy(out, from, 8);
            out += 8;
            from += 8;
        } while (out < end);
    } else {
        uint64_t pattern;
        unsigned bits = 8 * (unsigned)distance;
        memcpy(&pattern, from, sizeof pattern);
        pattern &= (UINT64_C(1) << bits) - 1;
        for (; bits < 64; bits *= 2)
            pattern |= pattern << bits;
        do {
            memcpy(out, &pattern, sizeof pattern);
            out += steps[distance];
        } while (out < end);
    }
}

/* A block by its tables; NULL if it is damaged, or else the end of its output. */
SIMD_INLINE uint8_t* inflate_block(const png_inflater* inflater, inflate_input* input, const uint8_t* begin,
                                   uint8_t* out, const uint8_t* end) {
    const uint32_t* literals = inflater->literals;
    inflate_input in = *input;
    uint32_t entry, far;
    if (in.at > in.limit) return NULL;
    inflate_refill(&in);
    entry = inflate_look(literals, &in);
    /* There are 56 bits at least, but for those of `entry`, which were looked at before the refill: so it
     * is not waited for. */
    while (in.at <= in.limit && out <= end) {
        size_t length, distance;
        uint64_t before;
        int few;
        if (entry & ENTRY_LITERALS) {
            out = inflate_literals(literals, &in, &entry, out);
            if (entry & ENTRY_LITERALS) {
                out = inflate_literals(literals, &in, &entry, out);
                if (entry & ENTRY_LITERALS) {
                    out = inflate_literals(literals, &in, &entry, out);
                    inflate_refill(&in);
                    continue;
                }
            }
            inflate_refill(&in);
            if (in.at > in.limit) return NULL;
        }
        if (entry & ENTRY_ODD) {
            if (!(entry & ENTRY_END))
                entry = inflate_long_code(&inflater->literal_code, in.bits, entry, LITERAL_BITS,
                                          inflate_literal_entry);
            if (entry & ENTRY_LITERALS) {
                out = inflate_literals(literals, &in, &entry, out);
                inflate_refill(&in);
                continue;
            }
            if (entry & ENTRY_END) {
                inflate_skip(&in, entry & ENTRY_TAKES);
                *input = in;
                return out <= end ? out : NULL;
            }
            if (entry & ENTRY_ODD) return NULL;
        }
        before = in.bits;
        inflate_skip(&in, entry & ENTRY_TAKES);
        far = inflater->distances[in.bits & ((1 << DISTANCE_BITS) - 1)];
        *out = (uint8_t)(entry >> 24); /* the match overwrites it, if there is no literal */
        out += (entry & ENTRY_AFTER) != 0;
        length = SHORTEST_MATCH + (entry >> 16 & 0xFF) + inflate_extra(before, entry);
        if (far & ENTRY_ODD) {
            far = inflate_long_code(&inflater->distance_code, in.bits, far, DISTANCE_BITS,
                                    inflate_distance_entry);
            if (far & ENTRY_ODD) return NULL;
        }
        before = in.bits;
        inflate_skip(&in, far & ENTRY_TAKES);
        distance = (far >> 16) + inflate_extra(before, far);
        if (distance > (size_t)(out - begin)) return NULL;
        entry = inflate_look(literals, &in);
        few = in.count < LITERAL_BITS;
        inflate_refill(&in);
        if (few) entry = inflate_look(literals, &in);
        inflate_copy(out, distance, length);
        out += length;
    }
    return NULL;
}

static uint8_t* inflate_block_plain(const png_inflater* inflater, inflate_input* in, const uint8_t* begin,
                                    uint8_t* out, const uint8_t* end) {
    return inflate_block(inflater, in, begin, out, end);
}

#if SIMD_X86
SIMD_BMI2 static uint8_t* inflate_block_bmi2(const png_inflater* inflater, inflate_input* in,
                                             const uint8_t* begin, uint8_t* out, const uint8_t* end) {
    return inflate_block(inflater, in, begin, out, end);
}
#endif

/* A block that is stored as it is. */
static uint8_t* inflate_stored(inflate_input* in, const uint8_t* last, uint8_t* out, const uint8_t* end) {
    size_t size;
    in->at -= in->count >> 3;
    in->bits = in->count = 0;
    if (in->at > last || last - in->at < 4) return NULL;
    size = (size_t)in->at[0] | (size_t)in->at[1] << 8;
    if ((size ^ ((size_t)in->at[2] | (size_t)in->at[3] << 8)) != 0xFFFF) return NULL;
    in->at += 4;
    if (size > (size_t)(last - in->at) || size > (size_t)(end - out)) return NULL;
    memcpy(out, in->at, size);
    in->at += size;
    return out + size;
}

/* Whether the data are one zlib stream of exactly `out_size` bytes, with the right checksum.  `portable`: without
 * instructions that not every processor has. */
static int png_inflate(png_inflater* inflater, int portable, const uint8_t* data, size_t size, uint8_t* out,
                       size_t out_size) {
    enum { HEADER = 2, CHECKSUM = 4, STORED = 0, FIXED, DYNAMIC };
    uint8_t* (*block)(const png_inflater*, inflate_input*, const uint8_t*, uint8_t*, const uint8_t*) =
        inflate_block_plain;
    const uint8_t *begin = out, *end = out + out_size, *last;
    inflate_input in = {0, 0, NULL, NULL};
    unsigned final;
    (void)portable;
    if (size < HEADER + CHECKSUM) return 0;
    if ((data[0] & 15) != 8 || data[0] >> 4 > 7 || data[1] & 32 || (data[0] << 8 | data[1]) % 31) return 0;
    in.at = data + HEADER;
    last = data + size - CHECKSUM;
    in.limit = last + 7; /* a refill keeps at most seven whole bytes */
#if SIMD_X86
    if (!portable && __builtin_cpu_supports("bmi2")) block = inflate_block_bmi2;
#endif
    do {
        unsigned kind;
        if (in.at > in.limit) return 0;
        inflate_refill(&in);
        final = inflate_take(&in, 1);
        kind = inflate_take(&in, 2);
        if (kind == STORED) {
            out = inflate_stored(&in, last, out, end);
        } else if (kind == FIXED ? inflate_fixed_tables(inflater)
                                 : kind == DYNAMIC && inflate_dynamic_tables(inflater, &in)) {
            out = block(inflater, &in, begin, out, end);
        } else {
            return 0;
        }
        if (!out) return 0;
    } while (!final);
    return out == end && in.at - (in.count >> 3) == last && png_adler32(begin, out_size) == png_number(last);
}

#endif
