/* A mistake of each kind, which .ci/sanitize wants to see reported before it believes silence. */
#include <pthread.h>
#include <stdlib.h>

static int shared;

static void *count(void *argument) {
    shared++;
    return argument;
}

/* TSan: two threads write without a lock. */
int thread(void) {
    pthread_t other;
    pthread_create(&other, NULL, count, NULL);
    shared++;
    return pthread_join(other, NULL);
}

/* ASan: reads behind what was allocated. */
int address(void) {
    char *volatile few = calloc(3, 1);
    int beyond = few[3];
    free(few);
    return beyond;
}

/* UBSan: shifts by more than there are bits. */
int undefined(void) {
    volatile int bits = 40;
    return 1 << bits;
}
