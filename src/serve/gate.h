// Admission of requests: a fixed number of slots, a bounded queue before them, and batches of
// requests that run together.
//
// A request is admitted before it is read, and passes the gate when it is to be computed. The
// thread of one waiting request gets a slot, takes waiting requests with the same key along, and
// runs them all; the threads of the others wait for it. With a delay, a request waits that long for
// others before it takes a slot. Any thread.
#ifndef BELFRY_SERVE_GATE_H
#define BELFRY_SERVE_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_gate bel_gate;
typedef struct bel_gate_request bel_gate_request;

// Request that waits to be computed. The caller sets the first fields; the others are the gate's.
struct bel_gate_request {
    const void *key; // requests of equal keys may run together
    size_t key_bytes;
    int most;            // most requests in its run; runs have 1, 2, 4, … requests
    int64_t deadline_ns; // bel_clock_ns
    // Computes `count` requests, of which the first is the oldest, on slot 0 … slots-1. No error:
    // each request's owner finds its result where `run` left it.
    void (*run)(bel_gate_request *const *requests, int count, int slot);

    int state;
    int64_t arrived_ns, taken_ns, computed_ns; // bel_clock_ns; the last two of its run
    pthread_cond_t wake;
    bel_gate_request *next;
};

// `slots` from 1 on; `queue`: most requests that are admitted beside one a slot; `delay_us`: most
// time that a request waits for others.
bel_gate *bel_gate_create(int slots, int queue, int delay_us);
void bel_gate_destroy(bel_gate *gate); // accepts NULL

// Admits a request. RESOURCE_EXHAUSTED: the queue is full.
bel_status *bel_gate_admit(bel_gate *gate) BEL_MUST_USE;
void bel_gate_dismiss(bel_gate *gate);

// Returns when the request was computed. DEADLINE_EXCEEDED: it was not taken in time. UNAVAILABLE:
// the gate was stopped before.
bel_status *bel_gate_pass(bel_gate *gate, bel_gate_request *request) BEL_MUST_USE;

// Ends the wait of all requests that are not in a run, also of later ones.
void bel_gate_stop(bel_gate *gate);

// Numbers for metrics.
typedef struct bel_gate_numbers {
    int busy, waiting;       // slots in use; requests that are admitted and in no run
    uint64_t runs, requests; // runs so far, and their requests
} bel_gate_numbers;

bel_gate_numbers bel_gate_look(bel_gate *gate);

#endif
