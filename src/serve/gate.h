// Admission of requests: a fixed number of slots, and a bounded queue before them.
//
// A request takes a slot before it computes and returns it afterwards, so at most `slots` requests
// compute at a time. Any thread.
#ifndef BELFRY_SERVE_GATE_H
#define BELFRY_SERVE_GATE_H

#include "belfry/status.h"

typedef struct bel_gate bel_gate;

// `slots` from 1 on; `queue`: most requests that wait; `wait_ms`: most time that one waits.
bel_gate *bel_gate_create(int slots, int queue, int wait_ms);
void bel_gate_destroy(bel_gate *gate); // accepts NULL

// Takes a slot, 0 … slots-1. RESOURCE_EXHAUSTED: the queue is full. DEADLINE_EXCEEDED: no slot came
// in time.
bel_status *bel_gate_enter(bel_gate *gate, int *out_slot) BEL_MUST_USE;
void bel_gate_leave(bel_gate *gate, int slot);

// Numbers for metrics: requests that compute, and that wait.
void bel_gate_look(bel_gate *gate, int *out_busy, int *out_waiting);

#endif
