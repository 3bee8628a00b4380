/* Philox4x32-10, a random function of (key, counter).
 *
 * By Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3". It has no
 * state, so a draw depends on what it is for - seed, epoch, record, purpose - and never on which
 * thread came first. */
#ifndef ITERATORS_PHILOX_H
#define ITERATORS_PHILOX_H

#include <stdint.h>

typedef struct {
    uint32_t word[4];
} philox_block;

static inline philox_block philox4x32(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    philox_block block = {{c0, c1, c2, c3}};
    return block;
}

/* A word as a number in [0, 1). */
static inline double philox_unit(uint32_t word) {
    return word * (1.0 / 4294967296.0);
}

/* A word as an integer in [0, n), n >= 1; the bias is below n / 2^32. */
static inline uint32_t philox_below(uint32_t word, uint32_t n) {
    return (uint32_t)(((uint64_t)word * n) >> 32);
}

#endif
