// Watchdog of the master's main thread, which detects stalls of all others. No other thread would
// notice if it hangs, for example in a write to a disk that does not answer.
#ifndef BELFRY_MASTER_BACKEND_WATCHDOG_H
#define BELFRY_MASTER_BACKEND_WATCHDOG_H

#include <stdbool.h>

#include "belfry/status.h"

typedef struct bel_watchdog bel_watchdog;

// Starts a resting watchdog. Once fed, its thread calls `stands_still` if `limit_secs` (up to an
// eighth more) pass without feeding: once, with the seconds. RESOURCE_EXHAUSTED: no thread.
bel_status *bel_watchdog_start(double limit_secs, void (*stands_still)(void *context, double secs),
                               void *context, bel_watchdog **out_dog) BEL_MUST_USE;
void bel_watchdog_stop(bel_watchdog *dog); // no call comes afterwards; accepts NULL

// Reports that the watched thread is alive. With `rests` the thread waits under another clock, and
// is not watched until it feeds the dog again. Accepts NULL.
void bel_watchdog_feed(bel_watchdog *dog, bool rests);

#endif
