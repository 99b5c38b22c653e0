// The clock of a master's own main thread. That thread looks for stalls of all others, so nobody
// would notice if it stood still itself, say in a write to a disk that does not answer.
#ifndef BELFRY_MASTER_WATCHDOG_H
#define BELFRY_MASTER_WATCHDOG_H

#include <stdbool.h>

#include "belfry/status.h"

typedef struct bel_watchdog bel_watchdog;

// It rests at first. Once fed, its thread calls `stands_still` when `limit_secs` go by (up to an
// eighth more) without its being fed again: once, with the seconds. RESOURCE_EXHAUSTED: no thread.
bel_status *bel_watchdog_start(double limit_secs, void (*stands_still)(void *context, double secs),
                               void *context, bel_watchdog **out_dog) BEL_MUST_USE;
void bel_watchdog_stop(bel_watchdog *dog); // no call comes afterwards; NULL is fine

// The watched thread is alive. With `rests` it waits for something that has a clock of its own, and
// is not watched until it feeds the dog again. NULL is fine.
void bel_watchdog_feed(bel_watchdog *dog, bool rests);

#endif
