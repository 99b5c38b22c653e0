// A graph run forward without training: its fields in, its outputs out, with values of its
// variables that do not change. Evaluation and prediction run several side by side, a predictor has
// one. Bound to one thread at a time.
#ifndef BELFRY_PREDICTOR_FORWARD_H
#define BELFRY_PREDICTOR_FORWARD_H

#include "predictor/staging.h"

// Borrowed, all of it, while forwards made of it are used.
typedef struct bel_forward_config {
    const bel_graph *graph;
    const int *fields;          // by graph input: the field that it gets, -1: rows of a table
    const float *const *values; // by graph variable
    // Writes the rows of `count` keys of one of the graph's tables; any thread. NULL: it has none.
    void (*pull_rows)(const void *rows, int table, const int64_t *keys, int64_t count,
                      float *out_rows);
    const void *rows;
    uint64_t seed;               // of random operations
    int64_t step;                // of the values
    bel_program_options program; // with program.threads threads
    // Memory for variables, which are then read in stages from where they lie (staging.h); 0: they
    // are in memory, at `values`.
    size_t stage_memory;
    bel_staged_variables staged;
} bel_forward_config;

typedef struct bel_forward bel_forward;

// `outputs` are copied. Takes nothing on an error.
bel_status *bel_forward_create(const bel_forward_config *config, const bel_program_output *outputs,
                               int output_count, bel_forward **out_forward) BEL_MUST_USE;
void bel_forward_destroy(bel_forward *forward); // accepts NULL

// Where fields lie and of which shapes they are from now on: finds or makes the program for the
// shapes. After an error nothing is bound. Errors: those of bel_program_compile;
// RESOURCE_EXHAUSTED.
bel_status *bel_forward_bind(bel_forward *forward, const bel_tensor *fields) BEL_MUST_USE;

// One field lies somewhere else, and has the shape that it had.
void bel_forward_move(bel_forward *forward, int field, void *data);

// Runs what is bound; allocates nothing and takes no lock. `draw` sets apart what random operations
// make of different batches.
bel_status *bel_forward_run(bel_forward *forward, int64_t draw) BEL_MUST_USE;

// With the outputs of the last run, until fields are bound again; NULL: nothing is bound.
bel_instance *bel_forward_instance(const bel_forward *forward);

size_t bel_forward_arena_bytes(const bel_forward *forward); // that activations take

// How it runs in stages; NULL: it does not, or nothing is bound.
const bel_staging *bel_forward_staging(const bel_forward *forward);

#endif
