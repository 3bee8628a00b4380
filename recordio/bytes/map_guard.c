/* Mapped files that may become shorter: a table of all maps of the process, and the handler of SIGBUS.
 *
 * The handler may run in any thread at any moment, so it takes no lock and no memory.  The table has
 * none either, and can be used in a child of a fork; it grows, and never shrinks.
 */
#ifdef __linux__
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#endif

#include "map_guard.h"

#include <stddef.h>

#if MAP_IS_GUARDED

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif
#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

#define BLOCK_MAPS 64
/* Faults at one address, one after the other, that others claimed to have mended. */
#define MOST_REPEATS 1000

/* Values of `begin` that are no address. */
enum { SLOT_FREE = 0, SLOT_TAKEN = 1 };

typedef struct block {
    map_guard maps[BLOCK_MAPS];
    struct block* next;
} block;

static block table;
static uintptr_t page_size;
static const struct sigaction* previous; /* what handled SIGBUS before */

/* ---- what was lost ---- */

static void lower(int64_t* value, int64_t to) {
    int64_t seen = __atomic_load_n(value, __ATOMIC_RELAXED);
    while (to < seen && !__atomic_compare_exchange_n(value, &seen, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void lift(int64_t* value, int64_t to) {
    int64_t seen = __atomic_load_n(value, __ATOMIC_RELAXED);
    while (to > seen && !__atomic_compare_exchange_n(value, &seen, to, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Bytes that the file has now; -1 if that cannot be found out. */
static int64_t size_now(const map_guard* guard) {
    struct stat status;
    return fstat(guard->file, &status) == 0 ? (int64_t)status.st_size : -1;
}

static int is_lost(const map_guard* guard, int64_t begin, int64_t end) {
    return end > __atomic_load_n(&guard->shortest, __ATOMIC_RELAXED) ||
           (begin < __atomic_load_n(&guard->failed_to, __ATOMIC_RELAXED) &&
            end > __atomic_load_n(&guard->failed_from, __ATOMIC_RELAXED));
}

int map_lost(map_guard* guard, int64_t begin, int64_t end) {
    int64_t size;
    if (map_is_whole(guard, end)) return 0;
    size = size_now(guard);
    if (size >= 0 && size < guard->size) {
        lower(&guard->shortest, size);
        __atomic_store_n(&guard->damaged, 1, __ATOMIC_RELEASE);
    }
    return is_lost(guard, begin, end);
}

/* ---- the handler ---- */

static map_guard* guard_at(uintptr_t address) {
    block* at;
    int i;
    for (at = &table; at != NULL; at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE))
        for (i = 0; i < BLOCK_MAPS; i++) {
            map_guard* guard = &at->maps[i];
            const uintptr_t begin = __atomic_load_n(&guard->begin, __ATOMIC_ACQUIRE);
            if (begin > SLOT_TAKEN && address >= begin &&
                address < __atomic_load_n(&guard->end, __ATOMIC_ACQUIRE) &&
                begin == __atomic_load_n(&guard->begin, __ATOMIC_RELAXED))
                return guard;
        }
    return NULL;
}

/* Put zeros where the page at `address` was, and where all others behind the end of the file were: one
 * fault for each cut.  The note comes first, so that who reads zeros finds it.
 *
 * POSIX does not list mmap among the functions for handlers, but it is a bare system call everywhere:
 * no lock, no memory, nothing that the interrupted thread could be in the middle of. */
static int mend(map_guard* guard, uintptr_t address) {
    const uintptr_t page = __atomic_load_n(&page_size, __ATOMIC_RELAXED);
    uintptr_t first = address / page * page, end = first + page;
    const int64_t size = size_now(guard);
    if (size >= 0 && guard->begin + (uintptr_t)size <= first) {
        first = guard->begin + ((uintptr_t)size + page - 1) / page * page;
        end = guard->end;
        lower(&guard->shortest, size);
    } else {
        lower(&guard->failed_from, (int64_t)(first - guard->begin));
        lift(&guard->failed_to, (int64_t)(end - guard->begin));
    }
    __atomic_store_n(&guard->damaged, 1, __ATOMIC_RELEASE);
    return mmap((void*)first, end - first, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0) != MAP_FAILED;
}

/* Whether a page could not be had, as opposed to a bad access. */
static int is_missing_page(const siginfo_t* info) {
#ifdef BUS_MCEERR_AR
    if (info->si_code == BUS_MCEERR_AR) return 1;
#endif
#ifdef BUS_MCEERR_AO
    if (info->si_code == BUS_MCEERR_AO) return 1;
#endif
    return info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR;
}

/* Whether a process sent the signal, by kill or raise. */
static int was_sent(const siginfo_t* info) {
    return info->si_code <= 0 || info->si_code == SI_USER;
}

static int any_map_is_short(void) {
    const block* at;
    int i;
    for (at = &table; at != NULL; at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE))
        for (i = 0; i < BLOCK_MAPS; i++) {
            const map_guard* guard = &at->maps[i];
            if (__atomic_load_n(&guard->begin, __ATOMIC_ACQUIRE) > SLOT_TAKEN) {
                const int64_t size = size_now(guard);
                if (size >= 0 && size < guard->size) return 1;
            }
        }
    return 0;
}

/* Whether the same fault came again and again, so that nobody mends it. */
static int is_endless(const siginfo_t* info) {
    static uintptr_t address;
    static int repeats;
    if (__atomic_exchange_n(&address, (uintptr_t)info->si_addr, __ATOMIC_RELAXED) !=
        (uintptr_t)info->si_addr) {
        __atomic_store_n(&repeats, 0, __ATOMIC_RELAXED);
        return 0;
    }
    return __atomic_add_fetch(&repeats, 1, __ATOMIC_RELAXED) > MOST_REPEATS;
}

/* End the process as if there were no handler: by the access that is tried again, or by raising. */
static void give_up(int number, int sent) {
    struct sigaction usual = {0};
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, NULL);
    if (sent) raise(number);
}

/* Not ours: as if this handler did not exist. */
static void pass_on(int number, siginfo_t* info, void* context) {
    /* Somebody who handles the signal after us may hand it back, or raise it again, as Python's
     * faulthandler does when it has told what it knows. */
    static __thread int passing;
    const struct sigaction* to = __atomic_load_n(&previous, __ATOMIC_ACQUIRE);
    const int sent = was_sent(info);
    if (!passing && sent && info->si_pid == getpid() && any_map_is_short())
        return; /* raised again for a fault of ours, which comes again, and to us, on return */
    if (!(to->sa_flags & SA_SIGINFO) && to->sa_handler == SIG_IGN && sent) return;
    if (passing || (!sent && is_endless(info)) ||
        (!(to->sa_flags & SA_SIGINFO) && (to->sa_handler == SIG_DFL || to->sa_handler == SIG_IGN))) {
        give_up(number, sent);
        return;
    }
    passing = 1;
    if (to->sa_flags & SA_SIGINFO)
        to->sa_sigaction(number, info, context);
    else
        to->sa_handler(number);
    passing = 0;
}

static void on_signal(int number, siginfo_t* info, void* context) {
    const int error = errno;
    const uintptr_t address = (uintptr_t)info->si_addr;
    map_guard* guard = is_missing_page(info) ? guard_at(address) : NULL;
    if (guard == NULL || !mend(guard, address)) pass_on(number, info, context);
    errno = error;
}

/* Be the handler, also if another library became it since; 0 if that is impossible. */
static int install(void) {
    struct sigaction ours = {0}, now, *kept;
    __atomic_store_n(&page_size, (uintptr_t)sysconf(_SC_PAGESIZE), __ATOMIC_RELAXED);
    if (sigaction(SIGBUS, NULL, &now) != 0) return 0;
    if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_signal) return 1;
    kept = malloc(sizeof *kept); /* for ever: a handler may be looking at it */
    if (kept == NULL) return 0;
    *kept = now;
    __atomic_store_n(&previous, kept, __ATOMIC_RELEASE);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL) == 0;
}

/* ---- maps ---- */

static map_guard* take_slot(void) {
    block* at = &table;
    for (;;) {
        block *next, *fresh;
        int i;
        for (i = 0; i < BLOCK_MAPS; i++) {
            uintptr_t free_slot = SLOT_FREE;
            /* Slots of others are only looked at: their owners read them without atomic operations. */
            if (__atomic_load_n(&at->maps[i].begin, __ATOMIC_RELAXED) != SLOT_FREE) continue;
            if (__atomic_compare_exchange_n(&at->maps[i].begin, &free_slot, SLOT_TAKEN, 0, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))
                return &at->maps[i];
        }
        next = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE);
        if (next == NULL) {
            fresh = calloc(1, sizeof *fresh);
            if (fresh == NULL) return NULL;
            if (__atomic_compare_exchange_n(&at->next, &next, fresh, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                next = fresh;
            else
                free(fresh); /* another thread was faster, and `next` is its block */
        }
        at = next;
    }
}

map_guard* map_open(int file, int64_t size) {
    const int64_t page = (int64_t)sysconf(_SC_PAGESIZE);
    map_guard* guard;
    void* base;
    if ((uint64_t)size > SIZE_MAX || !install() || (guard = take_slot()) == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    base = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) {
        __atomic_store_n(&guard->begin, SLOT_FREE, __ATOMIC_RELEASE);
        return NULL;
    }
    guard->file = file;
    guard->size = size;
    guard->last_page = (size - 1) / page * page;
    guard->damaged = 0;
    guard->shortest = guard->failed_from = INT64_MAX;
    guard->failed_to = 0;
    __atomic_store_n(&guard->end, (uintptr_t)base + (uintptr_t)(guard->last_page + page), __ATOMIC_RELEASE);
    __atomic_store_n(&guard->begin, (uintptr_t)base, __ATOMIC_RELEASE);
    return guard;
}

void map_close(map_guard* guard) {
    void* base;
    if (guard == NULL) return;
    base = (void*)guard->begin;
    __atomic_store_n(&guard->begin, SLOT_TAKEN, __ATOMIC_RELEASE);
    munmap(base, (size_t)guard->size);
    close(guard->file);
    __atomic_store_n(&guard->begin, SLOT_FREE, __ATOMIC_RELEASE);
}

const uint8_t* map_base(const map_guard* guard) {
    return (const uint8_t*)guard->begin;
}

#else

map_guard* map_open(int file, int64_t size) {
    (void)file, (void)size;
    return NULL;
}

void map_close(map_guard* guard) {
    (void)guard;
}

const uint8_t* map_base(const map_guard* guard) {
    (void)guard;
    return NULL;
}

int map_lost(map_guard* guard, int64_t begin, int64_t end) {
    (void)guard, (void)begin, (void)end;
    return 0;
}

#endif
