/* System calls of the image cache: words that threads exchange, a checksum, a locked file.
 *
 * Nothing here allocates, knows what is cached, or touches Python.
 */
#ifndef ITERATORS_IMAGE_CACHE_H
#define ITERATORS_IMAGE_CACHE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* -- words -------------------------------------------------------------------------------------- */

/* A thread that loads a word sees everything that was written before it was stored. */
#if defined(_MSC_VER)
#include <intrin.h>
static inline uint64_t cache_load(const uint64_t* word) {
    const uint64_t value = *(const volatile uint64_t*)word;
    _ReadWriteBarrier();
    return value;
}
static inline void cache_store(uint64_t* word, uint64_t value) {
    _InterlockedExchange64((volatile long long*)word, (long long)value);
}
#else
static inline uint64_t cache_load(const uint64_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static inline void cache_store(uint64_t* word, uint64_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
#endif

/* A copy of words that somebody else may be changing; each is read once, so that what was found out
 * about the copy remains true of it. */
static inline void cache_copy(void* copy, const void* words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t word = cache_load((const uint64_t*)words + i);
        memcpy((char*)copy + sizeof word * i, &word, sizeof word);
    }
}

/* -- checksum ----------------------------------------------------------------------------------- */

#define CACHE_MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t cache_mix(uint64_t state, uint64_t word) {
    state = (state ^ word) * CACHE_MULTIPLIER;
    return state << 29 | state >> 35;
}

static inline uint64_t cache_word(const uint8_t* bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

/* Tells damage from what was written; four lanes, because one would wait for its multiplications. */
static inline uint64_t cache_checksum(uint64_t seed, const uint8_t* bytes, size_t size) {
    uint64_t lanes[4] = {seed, ~seed, seed ^ CACHE_MULTIPLIER, seed + CACHE_MULTIPLIER}, last = 0;
    const size_t length = size;
    for (; size >= 32; size -= 32, bytes += 32)
        for (int i = 0; i < 4; i++)
            lanes[i] = cache_mix(lanes[i], cache_word(bytes + 8 * i));
    for (; size >= 8; size -= 8, bytes += 8)
        lanes[0] = cache_mix(lanes[0], cache_word(bytes));
    memcpy(&last, bytes, size);
    lanes[0] = cache_mix(cache_mix(lanes[0], last), (uint64_t)length);
    for (int i = 1; i < 4; i++)
        lanes[0] = cache_mix(lanes[0], lanes[i]);
    return lanes[0] ^ lanes[0] >> 32;
}

/* -- file --------------------------------------------------------------------------------------- */

/* Every function returns 0 or an error number.  Files are written by calls and not through their
 * mapping: where the disk is full a call fails, whereas a store to a mapping ends the process. */
#ifdef _WIN32
#include <io.h>
#include <windows.h>
#define CACHE_LOCK_OFFSET (UINT64_C(1) << 62) /* locks are mandatory here: behind all data */
static inline OVERLAPPED cache_position(int64_t offset) {
    OVERLAPPED position;
    memset(&position, 0, sizeof position);
    position.Offset = (DWORD)(uint64_t)offset;
    position.OffsetHigh = (DWORD)((uint64_t)offset >> 32);
    return position;
}
static inline int cache_file_write(int file, const void* bytes, size_t size, int64_t offset) {
    while (size > 0) {
        OVERLAPPED position = cache_position(offset);
        const DWORD piece = size < 1 << 30 ? (DWORD)size : 1 << 30;
        DWORD done = 0;
        if (!WriteFile((HANDLE)_get_osfhandle(file), bytes, piece, &done, &position))
            return GetLastError() == ERROR_DISK_FULL ? ENOSPC : EIO;
        bytes = (const char*)bytes + done, size -= done, offset += done;
    }
    return 0;
}
static inline int cache_file_read(int file, void* bytes, size_t size, int64_t offset) {
    OVERLAPPED position = cache_position(offset);
    DWORD done = 0;
    if (!ReadFile((HANDLE)_get_osfhandle(file), bytes, (DWORD)size, &done, &position)) return EIO;
    return done == size ? 0 : EIO;
}
static inline int cache_file_try_lock(int file) {
    OVERLAPPED position = cache_position((int64_t)CACHE_LOCK_OFFSET);
    const DWORD how = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    return LockFileEx((HANDLE)_get_osfhandle(file), how, 0, 1, 0, &position) ? 0 : EAGAIN;
}
static inline void cache_file_unlock(int file) {
    OVERLAPPED position = cache_position((int64_t)CACHE_LOCK_OFFSET);
    UnlockFileEx((HANDLE)_get_osfhandle(file), 0, 1, 0, &position);
}
static inline void cache_file_close(int file) {
    _close(file);
}
static inline void cache_pause(void) {
    Sleep(1);
}
#else
#include <sys/file.h>
#include <time.h>
#include <unistd.h>
static inline int cache_file_write(int file, const void* bytes, size_t size, int64_t offset) {
    while (size > 0) {
        const ssize_t done = pwrite(file, bytes, size, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes = (const char*)bytes + done, size -= (size_t)done, offset += done;
    }
    return 0;
}
static inline int cache_file_read(int file, void* bytes, size_t size, int64_t offset) {
    while (size > 0) {
        const ssize_t done = pread(file, bytes, size, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? errno : EIO;
        bytes = (char*)bytes + done, size -= (size_t)done, offset += done;
    }
    return 0;
}
static inline int cache_file_try_lock(int file) {
    return flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}
static inline void cache_file_unlock(int file) {
    flock(file, LOCK_UN);
}
static inline void cache_file_close(int file) {
    close(file);
}
static inline void cache_pause(void) {
    const struct timespec moment = {0, 50000};
    nanosleep(&moment, NULL);
}
#endif

/* The lock that processes share, held for microseconds.  Whoever stopped while holding it must not
 * stop others: after some milliseconds they do without what they wanted to write. */
static inline int cache_file_lock(int file, int tries) {
    int status = 0;
    for (int i = 0; i < tries; i++) {
        status = cache_file_try_lock(file);
        if (status != EAGAIN && status != EWOULDBLOCK && status != EINTR) return status;
        cache_pause();
    }
    return EAGAIN;
}

#endif
