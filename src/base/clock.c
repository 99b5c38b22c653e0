// Clocks over clock_gettime. CLOCK_MONOTONIC is one clock for all processes of a host, which
// traces and the clocks in join and setup rest on, and nobody sets it, so deadlines are given in
// it. Wall time may jump and is never subtracted for a wait.
#include "base/clock.h"

#include <time.h>

int64_t bel_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double bel_clock_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
