// Doorbells that other processes ring. A process cannot write into this one's memory, so it counts
// its rings in its own, which is mapped here for reading; and it can read here whether anybody
// sleeps. Only then does it signal the event:
//
//   here   asleep = 1; look at all counts again; sleep on the event
//   there  count its ring; read asleep; signal the event when it is 1
//
// With sequentially consistent loads and stores, one of the two sees the other: no ring is lost.
#ifndef BELFRY_TRANSPORT_DOORBELL_H
#define BELFRY_TRANSPORT_DOORBELL_H

#include <stdatomic.h>

#include "transport/lane.h"

typedef struct bel_doorbell_remote {
    const _Atomic uint64_t *rings; // the other's: how often it has rung, from 0
    _Atomic uint32_t *asleep;      // the doorbell's: 1 while somebody sleeps
} bel_doorbell_remote;

// Both words stay valid until the remote is removed. Rings that are there already count.
void bel_doorbell_add(bel_doorbell *doorbell, const bel_doorbell_remote *remote);
void bel_doorbell_remove(bel_doorbell *doorbell, const bel_doorbell_remote *remote);

// The event to signal (bel_linux_event_signal); it stays the doorbell's. -1: the process had no
// descriptors left, and a waiting thread looks every millisecond.
int bel_doorbell_event(const bel_doorbell *doorbell);

// How many signals its event has had: each was a system call of the thread that rang.
uint64_t bel_doorbell_signals(bel_doorbell *doorbell);

#endif
