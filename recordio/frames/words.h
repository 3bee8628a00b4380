/* The magic word and the flag and length of a record part, read and written. */
#ifndef RECORDIO_WORDS_H
#define RECORDIO_WORDS_H

#include "recordio/little_endian.h"

#include <stdint.h>
#include <string.h>

static const uint8_t recordio_magic[4] = {0x0A, 0x23, 0xD7, 0xCE};
static const uint8_t recordio_zeros[4] = {0, 0, 0, 0};

/* Parts are padded with zeros to whole words. */
static inline int64_t recordio_padded(int64_t length) {
    return (length + 3) & ~(int64_t)3;
}

/* The magic as the machine's own word, so that whole words can be compared. */
static inline uint32_t recordio_magic_word(void) {
    uint32_t word;
    memcpy(&word, recordio_magic, 4);
    return word;
}

static inline uint32_t recordio_word(const uint8_t* at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

/* The second word of a head is little-endian on every machine. */
static inline uint32_t recordio_flag_and_length(const uint8_t* head) {
    return (uint32_t)head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 24;
}

static inline void recordio_put_head(uint8_t* head, uint32_t flag, uint32_t length) {
    uint32_t word = flag << 29 | length;
    memcpy(head, recordio_magic, 4);
    head[4] = (uint8_t)word;
    head[5] = (uint8_t)(word >> 8);
    head[6] = (uint8_t)(word >> 16);
    head[7] = (uint8_t)(word >> 24);
}

/* Counting has no early exit, hence compilers make vector code of the inner loop.  The outer one
   may stop at the first block that has a magic word: a search must not read on for nothing. */
static inline int64_t recordio_count_magic(const uint8_t* data, int64_t words, int only_first) {
    const uint32_t magic = recordio_magic_word();
    int64_t count = 0;
    while (words > 0 && !(only_first && count)) {
        const int64_t block = words < 256 ? words : 256;
        uint32_t matches = 0;
        for (int64_t i = 0; i < block; i++)
            matches += recordio_word(data + 4 * i) == magic;
        count += matches;
        data += 4 * block;
        words -= block;
    }
    return count;
}

#endif
