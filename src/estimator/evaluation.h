// Running a built model over an input without training: evaluation and prediction. Towers run
// batches side by side, as in training; sums are added in the order of the batches. Others may run
// batches of an evaluation, too: since what a batch adds depends on nothing but the batch, it does
// not matter who has run it, or that two have.
#ifndef BELFRY_ESTIMATOR_EVALUATION_H
#define BELFRY_ESTIMATOR_EVALUATION_H

#include "cuda/choose.h"
#include "estimator/details.h"
#include "estimator/model.h"
#include "predictor/forward.h"

// What a batch adds to an evaluation: the outputs (blocks.h), one behind the other.
typedef struct bel_batch_sums {
    int64_t block;
    int64_t examples; // 0: it adds nothing, and there are no outputs
    int output_count;
    const int64_t *elements; // by output
    const float *values;
} bel_batch_sums;

// Others who run batches. Nobody waits for them: what is still missing when all other batches are
// through is run here.
typedef struct bel_evaluation_helpers {
    void *context;
    // Gives blocks [first, first + count) to one that has nothing to do. False: there is none.
    bool (*give)(void *context, int64_t first, int64_t count);
    // Takes what one batch adds, of those that have come; valid until the next call. False: nothing
    // has come.
    bool (*take)(void *context, bel_batch_sums *out_sums);
} bel_evaluation_helpers;

typedef struct bel_evaluation_config {
    const bel_built *built;     // EVAL or PREDICT
    bel_forward_config forward; // of it, of each tower
    const bel_input *input;
    int64_t steps; // batches at most; 0: all
    int tower_count;
    bel_card_choice cards;
    bel_details *details; // all zeroes or of an evaluation before; NULL: not wanted
    int part, parts;      // of a prediction: as of bel_run_config; 0 parts: all
    const bel_evaluation_helpers *helpers; // of an evaluation; NULL: there are none
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

// --- For helpers ---------------------------------------------------------------------------------

typedef struct bel_blocks bel_blocks;
typedef void bel_batch_sums_fn(void *context, const bel_batch_sums *sums);

// Runs blocks [first, first + count), and calls `take` for each of them in order, on this thread;
// stops where `stop` says so between batches.
bel_status *bel_evaluation_run_blocks(bel_blocks *blocks, int tower_count, int64_t first,
                                      int64_t count, bool (*stop)(void *context),
                                      bel_batch_sums_fn *take, void *context) BEL_MUST_USE;

#endif
