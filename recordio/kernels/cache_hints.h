/* Ask for memory ahead of its use. */
#ifndef ITERATORS_PREFETCH_H
#define ITERATORS_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

/* A hint: the lines of this memory are about to be written. */
static inline void prefetch_for_writing(const void* memory, size_t size) {
#if defined(__GNUC__) || defined(__clang__)
    const char* line = (const char*)memory;
    for (const char* end = line + size; line < end; line += 64)
        __builtin_prefetch(line, 1, 2);
#else
    (void)memory, (void)size;
#endif
}

/* A hint: the lines of this memory are about to be read. */
static inline void prefetch_for_reading(const void* memory, size_t size) {
#if defined(__GNUC__) || defined(__clang__)
    const char* line = (const char*)((uintptr_t)memory & ~(uintptr_t)63);
    for (const char* end = (const char*)memory + size; line < end; line += 64)
        __builtin_prefetch(line, 0, 3);
#else
    (void)memory, (void)size;
#endif
}

#endif
