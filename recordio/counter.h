/* Numbers that threads change while others read them: whoever reads one gets a value that it had.
 *
 * Of the order in which changes of several numbers, or of other memory, are seen nothing is promised, but
 * for `counter_publish`: whoever gets its number by `counter_published` sees what was written before it.
 */
#ifndef ITERATORS_COUNTER_H
#define ITERATORS_COUNTER_H

#include <stdint.h>

#if defined(_MSC_VER)
#include <intrin.h>
static inline int64_t counter_load(const int64_t* counter) {
    return *(const volatile int64_t*)counter;
}
static inline void counter_store(int64_t* counter, int64_t value) {
    *(volatile int64_t*)counter = value;
}
static inline void counter_add(int64_t* counter, int64_t number) {
    _InterlockedExchangeAdd64((volatile long long*)counter, number);
}
static inline int counter_exchange(int64_t* counter, int64_t* expected, int64_t value) {
    const int64_t old = *expected;
    *expected = _InterlockedCompareExchange64((volatile long long*)counter, value, old);
    return *expected == old;
}
static inline int64_t counter_published(const int64_t* counter) {
    return _InterlockedCompareExchange64((volatile long long*)counter, 0, 0);
}
static inline void counter_publish(int64_t* counter, int64_t value) {
    _InterlockedExchange64((volatile long long*)counter, value);
}
static inline double seconds_load(const double* seconds) {
    return *(const volatile double*)seconds;
}
static inline void seconds_store(double* seconds, double value) {
    *(volatile double*)seconds = value;
}
#else
static inline int64_t counter_load(const int64_t* counter) {
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}
static inline void counter_store(int64_t* counter, int64_t value) {
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}
/* By any number of threads. */
static inline void counter_add(int64_t* counter, int64_t number) {
    __atomic_fetch_add(counter, number, __ATOMIC_RELAXED);
}
/* Set the new value if it was `expected`, return whether it was; else `expected` becomes the value. */
static inline int counter_exchange(int64_t* counter, int64_t* expected, int64_t value) {
    return __atomic_compare_exchange_n(counter, expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
static inline int64_t counter_published(const int64_t* counter) {
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
static inline void counter_publish(int64_t* counter, int64_t value) {
    __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}
static inline double seconds_load(const double* seconds) {
    double value;
    __atomic_load(seconds, &value, __ATOMIC_RELAXED);
    return value;
}
static inline void seconds_store(double* seconds, double value) {
    __atomic_store(seconds, &value, __ATOMIC_RELAXED);
}
#endif

/* At least that much from now on. */
static inline void counter_raise(int64_t* counter, int64_t least) {
    int64_t now = counter_load(counter);
    while (now < least && !counter_exchange(counter, &now, least)) {
    }
}

/* By one thread, the only one that changes it. */
static inline void seconds_add(double* seconds, double more) {
    seconds_store(seconds, seconds_load(seconds) + more);
}

#endif
