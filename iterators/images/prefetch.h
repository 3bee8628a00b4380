/* Ask for memory ahead of its use. */
#ifndef ITERATORS_PREFETCH_H
#define ITERATORS_PREFETCH_H

#include <stddef.h>

/* A hint: the lines of this memory are about to be written. */
static inline void prefetch_for_writing(const void *memory, size_t size) {
#if defined(__GNUC__) || defined(__clang__)
    const char *line = (const char *)memory;
    for (const char *end = line + size; line < end; line += 64)
        __builtin_prefetch(line, 1, 2);
#else
    (void)memory, (void)size;
#endif
}

#endif
