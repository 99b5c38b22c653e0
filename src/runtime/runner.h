// Runner: one tower's programs for all the batch shapes it meets. Programs are compiled on first
// use, kept (the 64 most recently used), and share one arena that grows to the largest plan. One
// thread at a time may use it.
//
// Programs with exchanges run for several replicas at the same time: each replica has a slot with a
// separate arena and instances.
#ifndef BELFRY_RUNTIME_RUNNER_H
#define BELFRY_RUNTIME_RUNNER_H

#include "runtime/program.h"

typedef struct bel_runner bel_runner;

enum { BEL_RUNNER_PROGRAMS = 64 };

// The graph and the outputs' values must outlive the runner.
bel_runner *bel_runner_create(const bel_graph *graph, const bel_program_output *outputs,
                              int output_count, const bel_program_options *options, int slot_count);
void bel_runner_destroy(bel_runner *runner);

// The instance of slot `slot` (0 to slot_count - 1) for these closed input shapes. It lives until
// the next call for the slot. All addresses must be bound again before it runs. Errors: those of
// bel_program_compile; RESOURCE_EXHAUSTED.
bel_status *bel_runner_get(bel_runner *runner, int slot, const bel_shape *input_shapes,
                           bel_instance **out_instance) BEL_MUST_USE;

// The same for a training. If the device is full and evaluations or predictions of this process
// have memory there, it waits until they finish, at most for the device's patience.
bel_status *bel_runner_get_beside_guests(bel_runner *runner, int slot,
                                         const bel_shape *input_shapes,
                                         bel_instance **out_instance) BEL_MUST_USE;

size_t bel_runner_arena_bytes(const bel_runner *runner); // sum over all slots, now

typedef struct bel_runner_counters {
    int64_t hits, compiles;
} bel_runner_counters;
bel_runner_counters bel_runner_count(const bel_runner *runner);

#endif
