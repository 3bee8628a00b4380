/* Blocks of the scans of progressive JPEG images: one component, the AC coefficients of one band.
 *
 * A first scan brings the upper bits of the coefficients, each refinement scan one bit more.  Which
 * coefficients are not zero is kept as one bit each, the lower positions in the higher bits, as the
 * coded bits come: a refinement then finds the next zeros, and takes the bits of all coefficients
 * between them, without looking at the coefficients.
 *
 * Every read and write is bounded, whatever is in the data.  What makes no sense is said.
 */
#ifndef ITERATORS_JPEG_BANDS_H
#define ITERATORS_JPEG_BANDS_H

#include "blocks.h"

/* A scan while it is being read. */
typedef struct {
    bit_reader reader;
    unsigned ended;  /* blocks ahead in which no coefficient becomes another than zero */
    int first, last; /* positions of the band */
    int scale;       /* what the last bit of this scan is worth */
    int keep;        /* of a first scan, whether to note which coefficients are not zero */
} band_scan;

/* The next bits of a refinement scan: a code, and the sign of the coefficient that it sets. */
typedef struct {
    uint8_t drop; /* 0: its code does not fit */
    uint8_t kind;
    int8_t value; /* 1 or -1; 0 for zeros alone */
    uint8_t run;  /* zeros that are passed; of an end how many bits say of how many blocks */
} refining_entry;

enum { REFINING_VALUE, REFINING_END, REFINING_RARE };

typedef struct {
    refining_entry entries[1 << HUFFMAN_BITS];
    huffman_codes codes;
} refining_table;

/* ---- numbers of bits ---- */

SIMD_INLINE int count_bits(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_popcountll(word);
#else
    int count = 0;
    for (; word != 0; word &= word - 1)
        count++;
    return count;
#endif
}

/* Of a word that is not 0. */
SIMD_INLINE int lowest_bit(uint64_t word) {
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(word);
#else
    int bit = 0;
    for (; (word & 1) == 0; word >>= 1)
        bit++;
    return bit;
#endif
}

/* The bit of a position in the order of coding, if `k` is the position behind it. */
SIMD_INLINE uint64_t bit_before(int k) {
    return UINT64_C(1) << (DCTSIZE2 - k);
}

/* The bits of all positions of a band. */
static inline uint64_t band_bits(int first, int last) {
    return UINT64_MAX >> first & ~(UINT64_MAX >> 1 >> last);
}

#if SIMD_X86 && defined(__x86_64__)
#define BANDS_BMI2 __attribute__((target("bmi,bmi2,popcnt")))
/* The lowest bits of `bits`, moved to where the bits of `mask` are. */
SIMD_INLINE uint64_t deposit_bits(uint64_t bits, uint64_t mask) {
    uint64_t deposit;
    __asm__("pdepq %2, %1, %0" : "=r"(deposit) : "r"(bits), "r"(mask));
    return deposit;
}
#else
SIMD_INLINE uint64_t deposit_bits(uint64_t bits, uint64_t mask) {
    (void)bits;
    return mask;
}
#endif

/* The same with and without the instruction for it. */
SIMD_INLINE uint64_t spread(uint64_t bits, uint64_t mask, int bmi2) {
    uint64_t deposit = 0;
    if (bmi2) return deposit_bits(bits, mask);
    for (; bits != 0 && mask != 0; bits >>= 1, mask &= mask - 1)
        deposit |= (mask & (~mask + 1)) & (~(bits & 1) + 1);
    return deposit;
}

/* Of a word that is not 0, as a word. */
SIMD_INLINE uint64_t highest_bit(uint64_t word) {
    int shift;
    for (shift = 1; shift < 64; shift *= 2)
        word |= word >> shift;
    return word ^ word >> 1;
}

/* Of `count` bits the one with `run` above it; 0 if there are not so many. */
SIMD_INLINE uint64_t find_bit(uint64_t word, int count, int run, int bmi2) {
    if (run >= count) return 0;
    if (bmi2) return deposit_bits(UINT64_C(1) << (count - 1 - run), word);
    for (; run > 0; run--)
        word ^= highest_bit(word);
    return highest_bit(word);
}

/* ---- first scans ---- */

/* How many blocks end here, of which this is one: `size` bits and the one before them. */
SIMD_INLINE unsigned ended_blocks(bit_reader* reader, int size) {
    unsigned count;
    *reader = refill(*reader);
    count = (1u << size) + (unsigned)(reader->buffer >> 1 >> (63 - size));
    drop(reader, size);
    return count;
}

/* One symbol at position `k`.  The new position, behind the band at the end of the block, or 0 if it
 * makes no sense. */
SIMD_INLINE int band_symbol(band_scan* scan, bit_reader* reader, const huffman_table* table, int k,
                            JCOEF* block, uint64_t* nonzero) {
    const huffman_entry* entry;
    int step, value, size;
    *reader = refill(*reader);
    entry = &table->entries[peek(reader, HUFFMAN_BITS)];
    value = first_value(reader, entry);
    if (entry->step == HUFFMAN_RARE) {
        const int symbol = rare_symbol(reader, table, entry, &value);
        if (symbol < 0) return 0;
        step = huffman_step(symbol);
        size = symbol >> 4;
    } else {
        drop(reader, entry->first_drop);
        step = entry->first_step ? entry->first_step : HUFFMAN_END;
        size = entry->second_value;
    }
    if (step == HUFFMAN_END) {
        scan->ended = ended_blocks(reader, size) - 1;
        return scan->last + 1;
    }
    k += step;
    if (k > scan->last + 1) return 0;
    block[zigzag[k]] = (JCOEF)(value * scan->scale);
    if (value != 0) *nonzero |= bit_before(k);
    return k;
}

/* The coefficients of a block in which those of the band are zero; 0 if they make no sense. */
SIMD_INLINE int decode_band(band_scan* scan, bit_reader* reader, const huffman_table* table, JCOEF* block,
                            uint64_t* nonzero, int keep) {
    const int limit = scan->last + 1, scale = scan->scale;
    int k = scan->first, i;
    for (;;) {
        const huffman_entry* entry;
        *reader = refill(*reader);
        for (i = 0; i < 3; i++) { /* of no more than HUFFMAN_MOST bits */
            const uint32_t bits = peek(reader, HUFFMAN_BITS);
            const int move = table->moves[bits], next = k + (move >> 8);
            int value;
            entry = &table->entries[bits];
            if (next >= limit) break;
            value = first_value(reader, entry);
            drop(reader, move & 0xFF);
            block[zigzag[next]] = (JCOEF)(entry->second_value * scale); /* as in blocks.h */
            block[zigzag[k + entry->first_step]] = (JCOEF)(value * scale);
            if (keep)
                *nonzero |= (uint64_t)(entry->second_value != 0) << (DCTSIZE2 - next) |
                            (uint64_t)(value != 0) << (DCTSIZE2 - k - entry->first_step);
            k = next;
        }
        if (i == 3) continue;
        if (entry->step != HUFFMAN_RARE && entry->step >= HUFFMAN_END && k + entry->first_step < limit) {
            const int written = entry->step == HUFFMAN_END ? k + 1 : k + entry->first_step;
            drop(reader, entry->drop);
            block[zigzag[written]] = (JCOEF)(entry->value * scale);
            if (keep) *nonzero |= (uint64_t)(entry->value != 0) << (DCTSIZE2 - written);
            scan->ended = ended_blocks(reader, entry->second_value) - 1;
            return 1;
        }
        /* The block may be full before the second symbol, which then belongs to the next. */
        k = band_symbol(scan, reader, table, k, block, nonzero);
        if (k == 0) return 0;
        if (k == limit) return 1;
    }
}

/* The next blocks of a first scan; 0 if they make no sense, or not all of them were there. */
SIMD_INLINE int decode_bands(band_scan* scan, const huffman_table* table, JBLOCK* blocks, uint64_t* nonzero,
                             JDIMENSION count) {
    bit_reader reader = scan->reader;
    JDIMENSION i = 0;
    while (i < count) {
        uint64_t new_bits = 0;
        if (scan->ended > 0) {
            const JDIMENSION passed = scan->ended < count - i ? scan->ended : count - i;
            scan->ended -= passed;
            i += passed;
            continue;
        }
        if (!decode_band(scan, &reader, table, blocks[i], &new_bits, scan->keep)) return 0;
        if (scan->keep) nonzero[i] |= new_bits;
        i++;
    }
    scan->reader = reader;
    return reader.bits >= 0;
}

/* ---- refinement scans ---- */

/* All entries that begin with this code. */
static inline void refining_fill(refining_table* table, uint32_t code, int length, int symbol) {
    const int spare = HUFFMAN_BITS - length, size = symbol & 15;
    refining_entry* entry = table->entries + (code << spare);
    refining_entry filled = {(uint8_t)length, REFINING_VALUE, 0, (uint8_t)(symbol >> 4)};
    int i;
    if (size > 1 || size > spare) {
        filled.kind = REFINING_RARE;
        filled.run = (uint8_t)symbol;
    } else if (size == 0 && symbol != 0xF0)
        filled.kind = REFINING_END;
    for (i = 0; i < 1 << spare; i++) {
        entry[i] = filled;
        if (filled.kind == REFINING_VALUE && size == 1) {
            entry[i].drop++;
            entry[i].value = i >> (spare - 1) ? 1 : -1;
        }
    }
}

/* Build a table; 0 if the codes are not acceptable. */
static inline int refining_build(refining_table* table, const uint8_t* lengths, const uint8_t* symbols) {
    const refining_entry nothing = {0, REFINING_RARE, 0, 0};
    uint32_t code = 0;
    int length, i, at = 0;
    if (!huffman_take(&table->codes, lengths, symbols, 0)) return 0;
    for (length = 1; length <= HUFFMAN_BITS; length++)
        for (code <<= 1, i = 0; i < lengths[length]; i++, code++, at++)
            refining_fill(table, code, length, symbols[at]);
    for (i = (int)code; i < 1 << HUFFMAN_BITS; i++)
        table->entries[i] = nothing;
    return 1;
}

/* A code that is longer than an entry holds, or has its sign behind it; 0 if it makes no sense.  At least
 * 17 bits must be in the buffer. */
SIMD_INLINE int rare_refinement(bit_reader* reader, const refining_table* table, refining_entry* entry) {
    int length = entry->drop, symbol = entry->run;
    if (length == 0) symbol = huffman_search(&table->codes, peek(reader, HUFFMAN_LONGEST), &length);
    if (symbol < 0 || (symbol & 15) > 1) return 0; /* libjpeg warns of larger values, and goes on */
    drop(reader, length);
    entry->run = (uint8_t)(symbol >> 4);
    entry->value = 0;
    entry->kind = (symbol & 15) == 0 && symbol != 0xF0 ? REFINING_END : REFINING_VALUE;
    entry->drop = (uint8_t)(symbol & 15);
    if (symbol & 15) entry->value = peek(reader, 1) ? 1 : -1;
    return 1;
}

/* One bit for each coefficient in `which`: those that grow. */
SIMD_INLINE uint64_t growing(bit_reader* reader, uint64_t which, int bmi2) {
    int count = count_bits(which);
    uint64_t bits;
    if (reader->bits < count) *reader = refill(*reader);
    if (count > 56) { /* more than a refill warrants */
        bits = peek(reader, 32);
        drop(reader, 32);
        *reader = refill(*reader);
        count -= 32;
        bits = bits << count | reader->buffer >> (64 - count);
    } else
        bits = reader->buffer >> 1 >> (63 - count);
    drop(reader, count);
    return spread(bits, which, bmi2);
}

/* Refine a block of which `nonzero` are the coefficients that are not zero; 0 if it makes no sense. */
SIMD_INLINE int refine_band(band_scan* scan, bit_reader* reader, const refining_table* table, JCOEF* block,
                            uint64_t* nonzero, int bmi2) {
    const uint64_t band = band_bits(scan->first, scan->last), final = bit_before(scan->last + 1);
    uint64_t old_bits = *nonzero & band, zeros = band & ~old_bits, new_bits = 0, grown = 0;
    const int scale = scan->scale;
    int num_zeros = count_bits(zeros);
    while (scan->ended == 0) {
        refining_entry entry;
        uint64_t target, passed;
        *reader = refill(*reader);
        entry = table->entries[peek(reader, HUFFMAN_BITS)];
        if (entry.kind == REFINING_RARE && !rare_refinement(reader, table, &entry)) return 0;
        drop(reader, entry.drop);
        if (entry.kind == REFINING_END) {
            scan->ended = ended_blocks(reader, entry.run);
            break;
        }
        target = find_bit(zeros, num_zeros, entry.run, bmi2);
        if (target == 0) return 0;
        num_zeros -= entry.run + 1;
        zeros &= target - 1;
        passed = old_bits & (~target + 1); /* those at lower positions */
        old_bits &= target - 1;
        grown |= growing(reader, passed, bmi2);
        block[zigzag[DCTSIZE2 - lowest_bit(target)]] = (JCOEF)(entry.value * scale);
        if (entry.value != 0) new_bits |= target;
        if (target == final) break;
    }
    if (scan->ended > 0) {
        scan->ended--;
        if (old_bits != 0) grown |= growing(reader, old_bits, bmi2);
    }
    for (; grown != 0; grown &= grown - 1) {
        JCOEF* coefficient = &block[zigzag[DCTSIZE2 - lowest_bit(grown)]];
        const int sign = -(*coefficient < 0); /* no branch, as nothing could predict it */
        *coefficient = (JCOEF)(*coefficient + ((scale ^ sign) - sign));
    }
    *nonzero |= new_bits;
    return 1;
}

/* The next blocks of a refinement scan; 0 if they make no sense, or not all of them were there. */
SIMD_INLINE int refine_bands(band_scan* scan, const refining_table* table, JBLOCK* blocks, uint64_t* nonzero,
                             JDIMENSION count, int bmi2) {
    bit_reader reader = scan->reader;
    JDIMENSION i;
    for (i = 0; i < count; i++)
        if (!refine_band(scan, &reader, table, blocks[i], &nonzero[i], bmi2)) return 0;
    scan->reader = reader;
    return reader.bits >= 0;
}

#endif
