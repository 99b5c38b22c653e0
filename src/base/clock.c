// Clocks over clock_gettime. All processes of a host share CLOCK_MONOTONIC, which traces and the
// clocks in join and setup need. No one can set it, so both clocks of durations use it. Wall time
// may jump and is never subtracted for a wait.
#include "base/clock.h"

#include <pthread.h>

static pthread_mutex_t awake_mutex = PTHREAD_MUTEX_INITIALIZER; // guards the two below
static int64_t looked_ns, absent_ns; // the last call (0: none), and the time that does not count

static int64_t read_ns(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t bel_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

int64_t bel_clock_processor_ns(clockid_t clock)
{
    return read_ns(clock);
}

int64_t bel_clock_awake_ns(void)
{
    pthread_mutex_lock(&awake_mutex);
    int64_t now = bel_clock_ns(), gap = looked_ns != 0 ? now - looked_ns : 0;
    if (gap > BEL_CLOCK_GAP_NS) absent_ns += gap - BEL_CLOCK_GAP_NS;
    looked_ns = now;
    int64_t awake = now - absent_ns;
    pthread_mutex_unlock(&awake_mutex);
    return awake;
}

double bel_clock_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
