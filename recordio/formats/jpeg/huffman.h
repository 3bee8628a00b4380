/* Tables that turn the next bits of a JPEG scan into coefficients, several bits at a time.
 *
 * A Huffman code says how many zeros come before a coefficient and how many bits its value has; the
 * value follows.  Code and value together are mostly short, so one look at the next HUFFMAN_BITS bits
 * finds both, and often those of the next coefficient as well; or all of the code and the upper bits
 * of the value, to which the lower ones are added.  What does not fit is found the slow way.  Tables are
 * built only from codes that libjpeg accepts as well; all others are left for it to decide.
 */
#ifndef ITERATORS_JPEG_HUFFMAN_H
#define ITERATORS_JPEG_HUFFMAN_H

#include <stdint.h>
#include <string.h>

/* The zigzag order: the index in its block of the coefficient that is coded before position `k`. */
static const uint8_t zigzag[64 + 1] = {
    0,  0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40,
    48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15,
    23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* 10 bits hold the codes of nearly all coefficients, and the tables of an image leave room in a
 * first-level cache of 32 kB; with 11 bits they do not. */
#define HUFFMAN_BITS    10
#define HUFFMAN_LONGEST 16
/* Most bits that an entry may drop: three of them at a time are in the bit buffer. */
#define HUFFMAN_MOST 18

/* How far symbols move the position in the block.  Positions end at 64, so that one comparison finds
 * everything that is not an ordinary coefficient. */
enum {
    HUFFMAN_END = 128, /* the rest of the block is zero; added to the step of what came before */
    HUFFMAN_RARE = 255 /* not all of it fits, and `value` is the symbol, if at least that does */
};

/* What the next bits begin with: one coefficient, or two, or the end of the block, or a coefficient and
 * then the end.  Of one coefficient alone some lower bits may be missing.  An end of a progressive scan
 * may be that of several blocks; how many is in the bits that follow. */
typedef struct {
    int16_t value;
    int8_t second_value; /* or length of the code, if bits of the value are missing; of an end how many
                            bits say of how many blocks */
    uint8_t shift; /* brings the bits that are missing to the end; those before them are to be cleared */
    uint8_t first_drop, first_step; /* of the first symbol; drop 0: its code does not fit */
    uint8_t drop, step;             /* bits and positions of everything */
} huffman_entry;

/* The shift if no bit is missing. */
#define HUFFMAN_ALL_THERE (64 - HUFFMAN_BITS)

/* Codes as they are in the file, and what finds those that are longer than HUFFMAN_BITS. */
typedef struct {
    int count;
    uint32_t limit[HUFFMAN_LONGEST + 1];    /* codes up to this length are below it, as 16 bits */
    int32_t symbol_at[HUFFMAN_LONGEST + 1]; /* index of a symbol minus its code */
    uint8_t lengths[HUFFMAN_LONGEST + 1];   /* how many codes have a length */
    uint8_t symbols[256];
} huffman_codes;

typedef struct {
    huffman_entry entries[1 << HUFFMAN_BITS];
    /* Step << 8 | bits to drop, once more: everything waits for this look-up, which finds it in the
     * first-level cache more often than among the values. */
    uint16_t moves[1 << HUFFMAN_BITS];
    uint16_t skips[1 << HUFFMAN_BITS]; /* the same of as many symbols as fit */
    uint8_t
        order[sizeof zigzag]; /* zigzag once more, at a distance from the entries that the compiler knows */
    int has_skips;
    int lasting; /* skips are worth their making */
    int is_dc;
    huffman_codes codes;
} huffman_table;

/* The coefficient that `size` bits stand for: the upper half is positive, the lower half negative.  No
 * branch, as nothing could predict it. */
static inline int huffman_extend(int bits, int size) {
    const int upper = bits << 1 >> size; /* 1 or 0 */
    return bits + ((upper - 1) & (1 - (1 << size)));
}

/* Step of an AC symbol: the zeros before a coefficient and itself, 16 zeros, or the end of the block
 * (of which libjpeg knows 15, as a remnant of progressive files). */
static inline int huffman_step(int symbol) {
    if (symbol & 15) return (symbol >> 4) + 1;
    return symbol == 0xF0 ? 16 : HUFFMAN_END;
}

/* All entries that begin with this code. */
static inline void huffman_fill(huffman_table* table, uint32_t code, int length, int symbol) {
    const int spare = HUFFMAN_BITS - length, size = symbol & 15;
    const int step = table->is_dc ? 0 : huffman_step(symbol);
    huffman_entry* entry = table->entries + (code << spare);
    huffman_entry filled;
    int value, copy;
    filled.second_value = (int8_t)(step == HUFFMAN_END ? symbol >> 4 : 0);
    filled.shift = HUFFMAN_ALL_THERE;
    if (size > spare && (spare == 0 || length + size > HUFFMAN_MOST)) {
        filled.drop = filled.first_drop = (uint8_t)length;
        filled.step = HUFFMAN_RARE;
        filled.first_step = 0;
        filled.value = (int16_t)symbol;
        for (value = 0; value < 1 << spare; value++)
            *entry++ = filled;
        return;
    }
    filled.drop = filled.first_drop = (uint8_t)(length + size);
    filled.step = (uint8_t)step;
    filled.first_step = (uint8_t)(step == HUFFMAN_END ? 0 : step);
    if (size > spare) { /* the first bit of the value says in which half it is */
        filled.second_value = (int8_t)length;
        filled.shift = (uint8_t)(HUFFMAN_ALL_THERE - (size - spare));
        for (value = 0; value < 1 << spare; value++) {
            filled.value = (int16_t)huffman_extend(value << (size - spare), size);
            *entry++ = filled;
        }
        return;
    }
    for (value = 0; value < 1 << size; value++) { /* once, to 0, for the end of the block */
        filled.value = (int16_t)huffman_extend(value, size);
        for (copy = 0; copy < 1 << (spare - size); copy++)
            *entry++ = filled;
    }
}

/* Let entries with room for a second symbol have it.  The first ones stay as they are, so that it does
 * not matter in which order this is done. */
static inline void huffman_pair(huffman_table* table) {
    const uint32_t mask = (1 << HUFFMAN_BITS) - 1;
    uint32_t bits;
    for (bits = 0; bits <= mask; bits++) {
        huffman_entry* entry = &table->entries[bits];
        const huffman_entry* next = &table->entries[bits << entry->first_drop & mask];
        if (entry->step >= HUFFMAN_END || next->step == HUFFMAN_RARE ||
            entry->first_drop + next->first_drop > HUFFMAN_BITS || next->value < INT8_MIN ||
            next->value > INT8_MAX)
            continue;
        entry->drop = (uint8_t)(entry->first_drop + next->first_drop);
        entry->step = (uint8_t)(entry->first_step + (next->first_step ? next->first_step : HUFFMAN_END));
        entry->second_value = next->first_step ? (int8_t)next->value : next->second_value;
    }
}

/* Number of symbols if these are codes that both we and libjpeg accept, otherwise -1. */
static inline int huffman_check(const uint8_t* lengths, const uint8_t* symbols, int is_dc) {
    uint32_t code = 0;
    int length, i, count = 0;
    for (length = 1; length <= HUFFMAN_LONGEST; length++) {
        code = (code << 1) + lengths[length];
        count += lengths[length];
        if (lengths[length] && code >= 1u << length) /* the code of all ones is not allowed */
            return -1;
    }
    if (count > 256) return -1;
    for (i = 0; is_dc && i < count; i++)
        if (symbols[i] > 15) return -1;
    return count;
}

/* Whether these are the codes that were taken over last. */
static inline int huffman_equals(const huffman_codes* codes, const uint8_t* lengths, const uint8_t* symbols) {
    return memcmp(codes->lengths, lengths, sizeof codes->lengths) == 0 &&
           memcmp(codes->symbols, symbols, (size_t)codes->count) == 0;
}

static inline int huffman_matches(const huffman_table* table, const uint8_t* lengths, const uint8_t* symbols,
                                  int is_dc) {
    return table->is_dc == is_dc && huffman_equals(&table->codes, lengths, symbols);
}

/* Take over codes; 0 if they are not acceptable. */
static inline int huffman_take(huffman_codes* codes, const uint8_t* lengths, const uint8_t* symbols,
                               int is_dc) {
    uint32_t code = 0;
    int length, at = 0;
    const int count = huffman_check(lengths, symbols, is_dc);
    if (count < 0) return 0;
    codes->count = count;
    memcpy(codes->lengths, lengths, sizeof codes->lengths);
    memcpy(codes->symbols, symbols, (size_t)count);
    for (length = 1; length <= HUFFMAN_LONGEST; length++) {
        code <<= 1;
        codes->symbol_at[length] = at - (int32_t)code;
        code += lengths[length];
        at += lengths[length];
        codes->limit[length] = code << (HUFFMAN_LONGEST - length);
    }
    return 1;
}

/* Build a table; 0 if the codes are not acceptable. */
static inline int huffman_build(huffman_table* table, const uint8_t* lengths, const uint8_t* symbols,
                                int is_dc) {
    const huffman_entry nothing = {.shift = HUFFMAN_ALL_THERE, .step = HUFFMAN_RARE};
    uint32_t code = 0;
    int length, i, at = 0;
    if (!huffman_take(&table->codes, lengths, symbols, is_dc)) return 0;
    memcpy(table->order, zigzag, sizeof zigzag);
    table->has_skips = table->lasting = 0;
    table->is_dc = is_dc;
    for (length = 1; length <= HUFFMAN_BITS; length++)
        for (code <<= 1, i = 0; i < lengths[length]; i++, code++, at++)
            huffman_fill(table, code, length, symbols[at]);
    for (i = (int)code; i < 1 << HUFFMAN_BITS; i++) /* what is left belongs to longer codes */
        table->entries[i] = nothing;
    if (!is_dc) huffman_pair(table);
    for (i = 0; i < 1 << HUFFMAN_BITS; i++)
        table->moves[i] = (uint16_t)(table->entries[i].step << 8 | table->entries[i].drop);
    return 1;
}

/* For AC symbols that nobody wants the value of: how far all symbols that can be told from the same
 * bits lead.  The last value may reach beyond those bits. */
static inline void huffman_build_skips(huffman_table* table) {
    const uint32_t mask = (1 << HUFFMAN_BITS) - 1;
    uint32_t bits;
    for (bits = 0; bits <= mask; bits++) {
        int drop = 0, steps = 0;
        while (drop < HUFFMAN_BITS && steps < HUFFMAN_END) {
            const huffman_entry* entry = &table->entries[bits << drop & mask];
            int length = entry->shift < HUFFMAN_ALL_THERE ? entry->second_value : entry->first_drop;
            int step = entry->first_step ? entry->first_step : HUFFMAN_END;
            /* Bits behind ours count as zeros in this look-up: it tells the truth only if the code
             * itself (here: with its value, if the entry has it) lies within ours. */
            if (drop + length > HUFFMAN_BITS || length == 0) break;
            if (entry->step == HUFFMAN_RARE) {
                step = huffman_step(entry->value);
                length += entry->value & 15;
            } else
                length = entry->first_drop;
            if (step != HUFFMAN_END && steps + step > 63) break;
            drop += length;
            steps += step;
        }
        table->skips[bits] =
            (uint16_t)(drop == 0 ? HUFFMAN_RARE << 8 : (unsigned)steps << 8 | (unsigned)drop);
    }
    table->has_skips = 1;
}

/* The symbol of a code that is longer than HUFFMAN_BITS, given the next 16 bits, and its length; -1
 * if there is no such code. */
static inline int huffman_search(const huffman_codes* codes, uint32_t bits, int* length) {
    int l = HUFFMAN_BITS + 1;
    while (l <= HUFFMAN_LONGEST && bits >= codes->limit[l])
        l++;
    if (l > HUFFMAN_LONGEST) return -1;
    *length = l;
    return codes->symbols[codes->symbol_at[l] + (int32_t)(bits >> (HUFFMAN_LONGEST - l))];
}

#endif
