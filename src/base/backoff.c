// Pauses of a backoff: see backoff.h. The random part is at most half, so that a caller never waits
// much less than the load of its other end demands. It is a hash of the process and the time, not
// of the job's seed: no result of a training may depend on it.
#include "base/backoff.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

int64_t bel_backoff_next(bel_backoff *backoff)
{
    int64_t pause_ns = backoff->least_ns;
    for (int i = 0; i < backoff->tries && pause_ns < backoff->most_ns; i++)
        pause_ns *= 2;
    if (pause_ns > backoff->most_ns) pause_ns = backoff->most_ns;
    backoff->tries++;
    const int64_t seeds[] = {getpid(), bel_clock_ns()};
    uint64_t half = (uint64_t)pause_ns / 2;
    return pause_ns - (int64_t)(bel_hash64(seeds, sizeof seeds) % (half + 1));
}
