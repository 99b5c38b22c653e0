// Forward pass of a graph without training: from fields to outputs, with constant values of its
// variables. Evaluation and prediction run several in parallel; a predictor has one. Bound to one
// thread at a time.
#ifndef BELFRY_PREDICTOR_FORWARD_H
#define BELFRY_PREDICTOR_FORWARD_H

#include "predictor/staging.h"

// Everything in it must outlive the forwards made from it.
typedef struct bel_forward_config {
    const bel_graph *graph;
    const int *fields;          // by graph input: the index of its field, -1: rows of a table
    const float *const *values; // by graph variable
    // Writes the rows of `count` keys of a table of the graph; any thread. NULL: the graph has no
    // tables.
    void (*pull_rows)(const void *rows, int table, const int64_t *keys, int64_t count,
                      float *out_rows);
    const void *rows;
    uint64_t seed;               // random operations' seed
    int64_t step;                // version of the values
    bel_program_options program; // with program.threads threads
    // Memory for variables, which are then read in stages from their source (staging.h); 0: they
    // are in memory, at `values`.
    size_t stage_memory;
    bel_staged_variables staged;
} bel_forward_config;

typedef struct bel_forward bel_forward;

// Copies `outputs`. Takes ownership of nothing on an error.
bel_status *bel_forward_create(const bel_forward_config *config, const bel_program_output *outputs,
                               int output_count, bel_forward **out_forward) BEL_MUST_USE;
void bel_forward_destroy(bel_forward *forward); // accepts NULL

// Sets the fields' addresses and shapes: finds or compiles the program for the shapes. After an
// error nothing is bound. Errors of bel_program_compile; RESOURCE_EXHAUSTED.
bel_status *bel_forward_bind(bel_forward *forward, const bel_tensor *fields) BEL_MUST_USE;

// Changes the address of one field; its shape must be the same.
void bel_forward_move(bel_forward *forward, int field, void *data);

// Runs the bound program; allocates nothing and takes no lock. `draw` distinguishes batches for
// random operations.
bel_status *bel_forward_run(bel_forward *forward, int64_t draw) BEL_MUST_USE;

// Returns the instance with the last run's outputs, valid until fields are bound again; NULL:
// nothing is bound.
bel_instance *bel_forward_instance(const bel_forward *forward);

size_t bel_forward_arena_bytes(const bel_forward *forward); // size of the activations

// Returns the staging; NULL: it does not run in stages, or nothing is bound.
const bel_staging *bel_forward_staging(const bel_forward *forward);

#endif
