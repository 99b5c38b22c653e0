// Slots: threads that compute requests, and a bounded queue before them.
//
// The threads of civetweb have stacks of 100 KB, which kernels exceed. So the thread of a connection
// gives its request to a slot and waits. At most `count` requests compute at a time.
#ifndef BELFRY_SERVE_SLOTS_H
#define BELFRY_SERVE_SLOTS_H

#include "belfry/status.h"

typedef struct bel_slots bel_slots;

// `count` from 1 on; `queue`: most requests that wait; `wait_ms`: most time that one waits. Errors
// of threads.
bel_status *bel_slots_create(int count, int queue, int wait_ms, bel_slots **out_slots) BEL_MUST_USE;
void bel_slots_destroy(bel_slots *slots); // no request is in it; accepts NULL

// Calls job(argument, slot) on the thread of a slot, 0 … count-1, and returns when it has returned.
// Any thread. RESOURCE_EXHAUSTED: the queue is full. DEADLINE_EXCEEDED: no slot was free in time.
// In both cases the job is not called.
bel_status *bel_slots_run(bel_slots *slots, void (*job)(void *argument, int slot),
                          void *argument) BEL_MUST_USE;

// Numbers for metrics: requests that compute, and that wait.
void bel_slots_look(bel_slots *slots, int *out_busy, int *out_waiting);

#endif
