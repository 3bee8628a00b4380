/* Telling the system which parts of a mapped file are about to be read.
 *
 * Where the system cannot be told, nothing happens.
 */
#ifndef ITERATORS_READAHEAD_H
#define ITERATORS_READAHEAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32

static inline int64_t readahead_faults(void) {
    return 0;
}

static inline void readahead_sparse(const uint8_t* base, int64_t size, int sparse) {
    (void)base, (void)size, (void)sparse;
}

static inline void readahead_range(const uint8_t* base, int64_t begin, int64_t end) {
    (void)base, (void)begin, (void)end;
}

#else

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Page faults of this process that had to wait for a disk, so far. */
static inline int64_t readahead_faults(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_majflt : 0;
}

/* Whether a fault shall bring in nothing but its own page (what else is needed is asked for), or what
 * surrounds it as well.  `base` is where the map begins. */
static inline void readahead_sparse(const uint8_t* base, int64_t size, int sparse) {
    (void)posix_madvise((void*)(uintptr_t)base, (size_t)size, sparse ? POSIX_MADV_RANDOM : POSIX_MADV_NORMAL);
}

/* Start reading the pages of these bytes; returns before they are there. */
static inline void readahead_range(const uint8_t* base, int64_t begin, int64_t end) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)base + (uintptr_t)begin) / page * page;
    const uintptr_t last = (uintptr_t)base + (uintptr_t)end;
    (void)posix_madvise((void*)first, (size_t)(last - first), POSIX_MADV_WILLNEED);
}

#endif
#endif
