// The inside of a worker, for worker.c (the loop) and tower.c (one tower's part of a step).
#ifndef BELFRY_WORKER_WORKER_INNER_H
#define BELFRY_WORKER_WORKER_INNER_H

#include <stdatomic.h>

#include "base/thread.h"
#include "runtime/runner.h"
#include "worker/worker.h"

typedef struct bel_tower {
    bel_worker *worker;
    int index;
    bel_team *team; // the threads that run its tiles
    bel_runner *runner;
    bel_prefetch *prefetch;
    bel_run_context context;
    bel_shape *input_shapes; // scratch, by graph input
    int replica;             // being run, counted from the worker's first
    int64_t input_ns, compute_ns;
    bel_status *status; // of its part of the step
} bel_tower;

struct bel_worker {
    bel_worker_config config;
    int first_replica, replica_count;
    bel_tower *towers;
    bel_team *dispatch;          // runs towers side by side
    bel_program_output *outputs; // reports, then the loss
    int *output_variables;       // by report: the layout variable
    int report_count;
    double *tallies;        // by replica, tally_width each
    atomic_int *chunk_left; // by chunk: publications until all replicas have finished it
    int *chunk_reports;     // by chunk: variables in it that are reported
    int64_t step;
    uint32_t decision;
    bel_worker_times times;
    atomic_llong shown_step; // for bel_worker_doing
    struct {                 // for bel_worker_time_so_far
        atomic_llong input_ns, compute_ns, exchange_ns, total_ns, steps;
    } shown_times;
    atomic_bool waits;
};

// tower.c
bel_status *bel_tower_init(bel_tower *tower, bel_worker *worker, int index) BEL_MUST_USE;
void bel_tower_deinit(bel_tower *tower);
void bel_tower_step(bel_tower *tower); // runs its replicas; the outcome is in tower->status

// True while blocks are left for the worker's next step.
bool bel_worker_has_blocks(const bel_worker *worker, int64_t first_block);

// worker.c: the caller has finished one variable of one replica; reports chunks that are complete.
bel_status *bel_worker_finish_variable(bel_worker *worker, int variable) BEL_MUST_USE;

#endif
