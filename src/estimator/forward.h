// One tower's forward pass without training: batches to outputs of a built model, with fixed values
// of its variables. Evaluation and prediction run several side by side, a predictor has one. Bound
// to one thread at a time.
#ifndef BELFRY_ESTIMATOR_FORWARD_H
#define BELFRY_ESTIMATOR_FORWARD_H

#include "estimator/model.h"
#include "runtime/program.h"

// Borrowed, all of it, while forwards made of it are used.
typedef struct bel_forward_config {
    const bel_built *built;     // EVAL or PREDICT
    const float *const *values; // by graph variable
    // Writes the rows of `count` keys of one of the graph's tables; any thread. NULL: it has none.
    void (*pull_rows)(const void *rows, int table, const int64_t *keys, int64_t count,
                      float *out_rows);
    const void *rows;
    uint64_t seed;               // of random operations
    int64_t step;                // of the values
    bel_program_options program; // with program.threads threads
} bel_forward_config;

typedef struct bel_forward bel_forward;

// `outputs` are kept as a pointer. Takes nothing on an error.
bel_status *bel_forward_create(const bel_forward_config *config, const bel_program_output *outputs,
                               int output_count, bel_forward **out_forward) BEL_MUST_USE;
void bel_forward_destroy(bel_forward *forward); // accepts NULL

// Runs a batch: fields by the input's order, each with the batch first. `draw` sets apart what
// random operations make of different batches. *out_instance has the outputs until the next run.
bel_status *bel_forward_run(bel_forward *forward, const bel_tensor *fields, int64_t draw,
                            bel_instance **out_instance) BEL_MUST_USE;

// INVALID_ARGUMENT: an output of PREDICT does not have a row for each of so many examples, whatever
// the symbols of the graph's shapes have promised.
bel_status *bel_forward_check_rows(const bel_forward *forward, bel_instance *instance,
                                   int64_t examples) BEL_MUST_USE;

#endif
