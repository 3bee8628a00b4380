/* The bits of a JPEG scan, and the blocks of coefficients in them.
 *
 * Every read is bounded: behind the data, or behind the first marker, there are zeros, and the count of
 * bits gets negative.  What makes no sense is said, and nothing is made of it.
 */
#ifndef ITERATORS_JPEG_BLOCKS_H
#define ITERATORS_JPEG_BLOCKS_H

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>

#include "huffman.h"
#include "../../kernels/simd.h"

/* The scan, most significant bit first. */
typedef struct {
    uint64_t buffer;    /* the next bits, left-aligned; zeros where the data has ended */
    int bits;           /* how many of them are data; negative if more were used than there are */
    const uint8_t* at;  /* the byte behind them */
    const uint8_t* end; /* where the data or, once it has been met, the marker is */
} bit_reader;

/* ---- bits ---- */

static inline uint64_t load_big_endian(const uint8_t* data) {
    uint64_t word;
    memcpy(&word, data, sizeof word);
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_bswap64(word);
#else
    word = 0;
    for (int i = 0; i < 8; i++)
        word = word << 8 | data[i];
    return word;
#endif
}

/* Byte by byte up to the marker.  Of 0xFF 0x00, which stands for 0xFF, the second byte is left out. */
static bit_reader refill_carefully(bit_reader reader) {
    while (reader.bits < 56 && reader.at < reader.end) {
        const uint8_t byte = *reader.at;
        if (byte == 0xFF) {
            if (reader.end - reader.at < 2 || reader.at[1] != 0) {
                reader.end = reader.at;
                break;
            }
            reader.at++;
        }
        reader.at++;
        reader.buffer |= (uint64_t)byte << (56 - reader.bits);
        reader.bits += 8;
    }
    return reader;
}

/* At least 56 bits, unless there are no more. */
SIMD_INLINE bit_reader refill(bit_reader reader) {
    if (reader.end - reader.at >= 8) {
        const uint64_t word = load_big_endian(reader.at);
        /* Whether a byte is 0xFF: its complement alone borrows from the bit above it. */
        if (((~word - UINT64_C(0x0101010101010101)) & word & UINT64_C(0x8080808080808080)) == 0) {
            reader.buffer |= word >> reader.bits;
            reader.at += (63 - reader.bits) >> 3;
            reader.bits |= 56;
            return reader;
        }
    }
    return refill_carefully(reader);
}

SIMD_INLINE uint32_t peek(const bit_reader* reader, int count) {
    return (uint32_t)(reader->buffer >> (64 - count));
}

SIMD_INLINE void drop(bit_reader* reader, int count) {
    reader->buffer <<= count & 63; /* which processors do anyway */
    reader->bits -= count;
}

/* ---- markers ---- */

/* The next bits are those at `at`. */
static inline void begin_bits(bit_reader* reader, const uint8_t* at, const uint8_t* end) {
    reader->buffer = 0;
    reader->bits = 0;
    reader->at = at;
    reader->end = end;
}

/* The marker that must be right behind the last bits; NULL if it is not, or is none. */
static inline const uint8_t* next_marker(const bit_reader* reader, const uint8_t* data_end) {
    const bit_reader last = refill_carefully(*reader);
    if (last.bits < 0 || last.bits >= 8 || data_end - last.at < 2 || last.at[0] != 0xFF || last.at[1] == 0 ||
        last.at[1] == 0xFF)
        return NULL;
    return last.at;
}

/* Look for the next marker; NULL if there is none, or if it is not clear where it begins. */
static inline const uint8_t* find_marker(const uint8_t* at, const uint8_t* end) {
    while (at < end && (at = memchr(at, 0xFF, (size_t)(end - at))) != NULL && end - at >= 2) {
        if (at[1] != 0) return at[1] == 0xFF ? NULL : at;
        at += 2;
    }
    return NULL;
}

/* What lies behind the next `count` restart markers, of which the first has this number; NULL if
 * anything else comes before the last than these, one after the other. */
static inline const uint8_t* find_restart_markers(const uint8_t* at, const uint8_t* end, int number,
                                                  uint64_t count) {
    for (; count > 0; count--, number++) {
        at = find_marker(at, end);
        if (at == NULL || at[1] != JPEG_RST0 + (number & 7)) return NULL;
        at += 2;
    }
    return at;
}

/* ---- blocks ---- */

/* A symbol whose code or value is longer than what an entry holds; -1 if there is no such code.  At
 * least 31 bits must be in the buffer, which the longest code and value take. */
SIMD_INLINE int rare_symbol(bit_reader* reader, const huffman_table* table, const huffman_entry* entry,
                            int* value) {
    int length = entry->first_drop, symbol = entry->value, size;
    if (length == 0) {
        symbol = huffman_search(&table->codes, peek(reader, HUFFMAN_LONGEST), &length);
        if (symbol < 0) return -1;
    }
    drop(reader, length);
    size = symbol & 15;
    *value = huffman_extend((int)(reader->buffer >> 1 >> (63 - size)), size);
    drop(reader, size);
    return symbol;
}

/* The first value of an entry.  Mostly no bit of it is missing, but to find out would cost more. */
SIMD_INLINE int first_value(const bit_reader* reader, const huffman_entry* entry) {
    return entry->value + (int)((reader->buffer & UINT64_MAX >> HUFFMAN_BITS) >> entry->shift);
}

/* The difference of the DC coefficient to its predecessor; 0 for a code that does not exist. */
SIMD_INLINE int decode_dc(bit_reader* reader, const huffman_table* table, unsigned* difference) {
    const huffman_entry* entry = &table->entries[peek(reader, HUFFMAN_BITS)];
    int value = first_value(reader, entry);
    if (entry->step == HUFFMAN_RARE) {
        if (rare_symbol(reader, table, entry, &value) < 0) return 0;
    } else
        drop(reader, entry->drop);
    *difference = (unsigned)value;
    return 1;
}

/* One AC symbol at position `k`, whatever it is.  The new position, DCTSIZE2 at the end of the block,
 * or 0 if it makes no sense.  `block` may be NULL. */
SIMD_INLINE int decode_ac_symbol(bit_reader* reader, const huffman_table* table, int k, JCOEF* block) {
    const huffman_entry* entry = &table->entries[peek(reader, HUFFMAN_BITS)];
    int step = entry->first_step ? entry->first_step : HUFFMAN_END;
    int value = first_value(reader, entry);
    if (entry->step == HUFFMAN_RARE) {
        const int symbol = rare_symbol(reader, table, entry, &value);
        if (symbol < 0) return 0;
        step = huffman_step(symbol);
    } else
        drop(reader, entry->first_drop);
    if (step == HUFFMAN_END) return DCTSIZE2;
    k += step;
    if (k > DCTSIZE2) return 0;
    if (block != NULL) block[zigzag[k]] = (JCOEF)value;
    return k;
}

/* The AC coefficients of a block into zeroed memory; 0 if they make no sense. */
SIMD_INLINE int decode_ac(bit_reader* reader, const huffman_table* table, JCOEF* block) {
    uint64_t at = 1 << 8; /* position << 8 | bits dropped since the last refill: one sum instead of two */
    int i, k;
    for (;;) {
        const huffman_entry* entry;
        *reader = refill(*reader);
        for (i = 0; i < 3; i++) { /* of no more than HUFFMAN_MOST bits */
            const uint64_t bits = reader->buffer >> (64 - HUFFMAN_BITS);
            const uint64_t move = table->moves[bits], next = at + move;
            int value;
            entry = &table->entries[bits];
            if (next >= DCTSIZE2 << 8) break;
            value = first_value(reader, entry);
            reader->buffer <<= move & 63;
            block[table->order[next >> 8]] = entry->second_value; /* if there is one, otherwise ... */
            block[table->order[(at >> 8) + entry->first_step]] = (JCOEF)value; /* ... at the same index */
            at = next;
        }
        reader->bits -= (int)(at & 0xFF);
        at &= ~UINT64_C(0xFF);
        if (i == 3) continue;
        k = (int)(at >> 8);
        if (entry->step != HUFFMAN_RARE && entry->step >= HUFFMAN_END && k + entry->first_step < DCTSIZE2) {
            /* The end alone writes the zero that is there, which costs less than finding out. */
            const int written = entry->step == HUFFMAN_END ? k + 1 : k + entry->first_step;
            drop(reader, entry->drop);
            block[zigzag[written]] = entry->value;
            return 1;
        }
        /* The block may be full before the second symbol, which then belongs to the next. */
        *reader = refill(*reader);
        k = decode_ac_symbol(reader, table, k, block);
        if (k == 0 || k == DCTSIZE2) return k;
        at = (uint64_t)k << 8;
    }
}

/* Pass over the AC coefficients of a block; 0 if they make no sense. */
SIMD_INLINE int skip_ac(bit_reader* reader, const huffman_table* table) {
    int k = 1, i;
    for (;;) {
        int skip, step;
        *reader = refill(*reader);
        for (i = 0; i < 2; i++) { /* the first takes up to 25 bits, and leaves the second 31 */
            skip = table->skips[peek(reader, HUFFMAN_BITS)];
            step = skip >> 8;
            if (k + step >= DCTSIZE2) break;
            drop(reader, skip & 0xFF);
            k += step;
        }
        if (i == 2) continue;
        if (step != HUFFMAN_RARE && step >= HUFFMAN_END && k + step - HUFFMAN_END < DCTSIZE2) {
            drop(reader, skip & 0xFF);
            return 1;
        }
        /* The block may be full before the last of these symbols: one at a time. */
        k = decode_ac_symbol(reader, table, k, NULL);
        if (k == 0 || k == DCTSIZE2) return k;
    }
}

#endif
