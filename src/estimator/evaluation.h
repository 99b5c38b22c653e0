// Running a built model over an input without training: evaluation and prediction. Towers run
// batches side by side, as in training; sums are added in the order of the batches.
#ifndef BELFRY_ESTIMATOR_EVALUATION_H
#define BELFRY_ESTIMATOR_EVALUATION_H

#include "estimator/model.h"
#include "runtime/program.h"

typedef struct bel_evaluation_config {
    const bel_built *built; // EVAL or PREDICT
    const bel_input *input;
    const float *const *values; // by graph variable
    // Writes the rows of `count` keys of one of the graph's tables; any thread. NULL: it has none.
    void (*pull_rows)(const void *rows, int table, const int64_t *keys, int64_t count,
                      float *out_rows);
    const void *rows;
    int64_t steps; // batches at most; 0: all
    uint64_t seed; // of random operations
    int64_t step;  // of the values
    int tower_count;
    bel_program_options program; // of each tower, which has program.threads threads
    // Asked between batches: an error ends the evaluation. May be NULL.
    bel_status *(*between)(void *context);
    void *context;
} bel_evaluation_config;

// Means over all examples. Fills loss, batch_mean_loss, examples and metrics of *out_result.
// DATA_LOSS: the input has no example. Or the error of `between`.
bel_status *bel_evaluation_run(const bel_evaluation_config *config,
                               bel_result *out_result) BEL_MUST_USE;

// Calls `each` for every example in order.
bel_status *bel_prediction_run(const bel_evaluation_config *config, bel_predict_fn *each,
                               void *user) BEL_MUST_USE;

#endif
