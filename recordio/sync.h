/* A mutex, a condition variable and a clock that need no Python: POSIX, or the Windows equivalents. */
#ifndef ITERATORS_SYNC_H
#define ITERATORS_SYNC_H

#ifdef _WIN32
#include <windows.h>
typedef SRWLOCK sync_mutex;
typedef CONDITION_VARIABLE sync_condition;
static inline void sync_mutex_init(sync_mutex* mutex) {
    InitializeSRWLock(mutex);
}
static inline void sync_mutex_destroy(sync_mutex* mutex) {
    (void)mutex;
}
static inline void sync_lock(sync_mutex* mutex) {
    AcquireSRWLockExclusive(mutex);
}
static inline void sync_unlock(sync_mutex* mutex) {
    ReleaseSRWLockExclusive(mutex);
}
static inline void sync_condition_init(sync_condition* condition) {
    InitializeConditionVariable(condition);
}
static inline void sync_condition_destroy(sync_condition* condition) {
    (void)condition;
}
static inline void sync_wake_all(sync_condition* condition) {
    WakeAllConditionVariable(condition);
}
static inline void sync_wait(sync_condition* condition, sync_mutex* mutex) {
    SleepConditionVariableSRW(condition, mutex, INFINITE, 0);
}
static inline void sync_wait_ms(sync_condition* condition, sync_mutex* mutex, int milliseconds) {
    SleepConditionVariableSRW(condition, mutex, (DWORD)milliseconds, 0);
}
/* Seconds of a clock that never goes back. */
static inline double sync_now(void) {
    LARGE_INTEGER ticks, frequency;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&frequency);
    return (double)ticks.QuadPart / (double)frequency.QuadPart;
}
/* Seconds that this thread has spent on a processor. */
static inline double sync_thread_seconds(void) {
    FILETIME begun, ended, system, user;
    if (!GetThreadTimes(GetCurrentThread(), &begun, &ended, &system, &user)) {
        return 0;
    }
    return 1e-7 * ((double)(((ULONGLONG)system.dwHighDateTime << 32) | system.dwLowDateTime) +
                   (double)(((ULONGLONG)user.dwHighDateTime << 32) | user.dwLowDateTime));
}
#else
#include <pthread.h>
#include <time.h>
typedef pthread_mutex_t sync_mutex;
typedef pthread_cond_t sync_condition;
static inline void sync_mutex_init(sync_mutex* mutex) {
    pthread_mutex_init(mutex, NULL);
}
static inline void sync_mutex_destroy(sync_mutex* mutex) {
    pthread_mutex_destroy(mutex);
}
static inline void sync_lock(sync_mutex* mutex) {
    pthread_mutex_lock(mutex);
}
static inline void sync_unlock(sync_mutex* mutex) {
    pthread_mutex_unlock(mutex);
}
static inline void sync_condition_init(sync_condition* condition) {
    pthread_cond_init(condition, NULL);
}
static inline void sync_condition_destroy(sync_condition* condition) {
    pthread_cond_destroy(condition);
}
static inline void sync_wake_all(sync_condition* condition) {
    pthread_cond_broadcast(condition);
}
static inline void sync_wait(sync_condition* condition, sync_mutex* mutex) {
    pthread_cond_wait(condition, mutex);
}
/* Waits at most about that long; may return early, as every condition variable may. */
static inline void sync_wait_ms(sync_condition* condition, sync_mutex* mutex, int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)milliseconds * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(condition, mutex, &until);
}
/* Seconds of a clock that never goes back. */
static inline double sync_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
/* Seconds that this thread has spent on a processor. */
static inline double sync_thread_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
#endif

#endif
