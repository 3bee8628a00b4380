/* Files mapped for reading that may become shorter, or whose disk may fail, while they are read.
 *
 * The system then sends SIGBUS to the thread that touches a page which is not there.  A handler puts
 * zeros in its place and makes a note: the thread goes on, whatever code it is in, and whoever reads
 * a map asks `map_lost` after reading whether to believe what was read.
 *
 * Windows keeps mapped files from being truncated; nothing is guarded there.
 */
#ifndef RECORDIO_MAP_GUARD_H
#define RECORDIO_MAP_GUARD_H

#include <stdint.h>

#ifdef _WIN32
#define MAP_IS_GUARDED 0
#else
#define MAP_IS_GUARDED 1
#endif

typedef struct map_guard {
    uintptr_t begin;   /* of the map; or a value that is no address, see map_guard.c */
    uintptr_t end;     /* behind the last page */
    int64_t size;      /* of the file when it was mapped */
    int64_t last_page; /* where it begins in the file */
    int file;
    int damaged;                    /* whether anything below has been noted */
    int64_t shortest;               /* size that the file has been found to have */
    int64_t failed_from, failed_to; /* pages that could not be read for other reasons lie in here */
} map_guard;

/* Map the first `size` bytes, at least 1, of an open file; NULL after a failure, for which see errno.
 * The map takes the descriptor over. */
map_guard* map_open(int file, int64_t size);

/* Take the map away.  Nobody may be reading it. */
void map_close(map_guard* guard);

const uint8_t* map_base(const map_guard* guard);

/* Whether any of the bytes [begin, end) has been lost since the file was mapped, so that zeros may
 * have been read instead.  Once lost, bytes stay lost.  NULL stands for memory that is no map. */
int map_lost(map_guard* guard, int64_t begin, int64_t end);

/* The quick half of `map_lost`, for whoever asks once a record: true if nothing before `end` has been
 * lost; otherwise ask the slow half. */
static inline int map_is_whole(const map_guard* guard, int64_t end) {
#if MAP_IS_GUARDED
    if (guard == 0) return 1;
    /* When a file is cut, its last page goes, and touching it tells.  That costs next to nothing,
     * and is not enough only for a cut within the last page, whose end then reads as zeros. */
    (void)*(const volatile uint8_t*)(guard->begin + (uintptr_t)guard->size - 1);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return !__atomic_load_n(&guard->damaged, __ATOMIC_RELAXED) && end <= guard->last_page;
#else
    (void)guard, (void)end;
    return 1;
#endif
}

#endif
