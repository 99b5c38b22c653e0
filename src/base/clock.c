// Clocks over clock_gettime. All processes of a host share CLOCK_MONOTONIC, which traces and the
// clocks in join and setup need. No one can set it, so deadlines use it. Wall time may jump and is
// never subtracted for a wait.
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
