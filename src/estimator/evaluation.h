// Running a built model over an input without training: evaluation and prediction. Towers run
// batches side by side, as in training; sums are added in the order of the batches.
#ifndef BELFRY_ESTIMATOR_EVALUATION_H
#define BELFRY_ESTIMATOR_EVALUATION_H

#include "estimator/details.h"
#include "estimator/forward.h"

typedef struct bel_evaluation_config {
    bel_forward_config forward; // of each tower
    const bel_input *input;
    int64_t steps; // batches at most; 0: all
    int tower_count;
    bel_details *details; // all zeroes or of an evaluation before; NULL: not wanted
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
