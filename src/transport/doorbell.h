// Doorbells that other processes ring. A process cannot write into this process's memory. So it
// counts its rings in its memory, which is mapped here for reading, and reads here whether a
// thread sleeps. It signals the event only then:
//
//   here    asleep = 1; look at all counts again; sleep on the event
//   remote  count its ring; read asleep; signal the event if it is 1
//
// With sequentially consistent loads and stores, one of the two sees the other: no ring is lost.
#ifndef BELFRY_TRANSPORT_DOORBELL_H
#define BELFRY_TRANSPORT_DOORBELL_H

#include <stdatomic.h>

#include "transport/lane.h"

typedef struct bel_doorbell_remote {
    const _Atomic uint64_t *rings; // the remote's: number of its rings, from 0
    _Atomic uint32_t *asleep;      // the doorbell's: 1 while a thread sleeps
} bel_doorbell_remote;

// Adds a remote. Both words must stay valid until it is removed. Earlier rings count.
void bel_doorbell_add(bel_doorbell *doorbell, const bel_doorbell_remote *remote);
void bel_doorbell_remove(bel_doorbell *doorbell, const bel_doorbell_remote *remote);

// Returns the event to signal (bel_linux_event_signal), which the doorbell owns. -1: the process
// had no descriptors left, and a waiting thread polls every millisecond.
int bel_doorbell_event(const bel_doorbell *doorbell);

// Returns the number of signals of its event: each was a system call of the ringing thread.
uint64_t bel_doorbell_signals(bel_doorbell *doorbell);

#endif
