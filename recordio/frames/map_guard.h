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

typedef struct map_guard map_guard;

/* Map the first `size` bytes, at least 1, of an open file; NULL after a failure, for which see errno.
 * The map takes the descriptor over. */
map_guard* map_open(int file, int64_t size);

/* Take the map away.  Nobody may be reading it. */
void map_close(map_guard* guard);

const uint8_t* map_base(const map_guard* guard);

/* Whether any of the bytes [begin, end) has been lost since the file was mapped, so that zeros may
 * have been read instead.  Once lost, bytes stay lost.  NULL stands for memory that is no map. */
int map_lost(map_guard* guard, int64_t begin, int64_t end);

#endif
