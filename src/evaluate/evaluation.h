// Evaluation and prediction: a run of a built model over an input without training. Towers run
// batches side by side, as in training. Sums are added in the order of the batches. Other processes
// may run batches of an evaluation, too: a batch's sums depend only on the batch, so it does not
// matter which process ran it, or that two did.
#ifndef BELFRY_ESTIMATOR_EVALUATION_H
#define BELFRY_ESTIMATOR_EVALUATION_H

#include "cuda/choose.h"
#include "model/model.h"
#include "predictor/forward.h"
#include "report/details.h"

// A batch's share of an evaluation: the concatenated outputs (blocks.h).
typedef struct bel_batch_sums {
    int64_t block;
    int64_t examples; // 0: no share and no outputs
    int output_count;
    const int64_t *elements; // elements of each output
    const float *values;
} bel_batch_sums;

// Helpers that run batches. The evaluation never waits for them: when all other batches are
// finished, it runs the missing ones here.
typedef struct bel_evaluation_helpers {
    void *context;
    // Gives blocks [first, first + count) to an idle helper. False: no helper is idle.
    bool (*give)(void *context, int64_t first, int64_t count);
    // Takes the sums of one received batch, valid until the next call. False: no batch was
    // received.
    bool (*take)(void *context, bel_batch_sums *out_sums);
} bel_evaluation_helpers;

typedef struct bel_evaluation_config {
    const bel_built *built;     // EVAL or PREDICT
    bel_forward_config forward; // program of each tower
    const bel_input *input;
    int64_t steps; // maximum number of batches; 0: all
    int tower_count;
    bel_card_choice cards;
    bel_details *details;                  // all zeroes or of an earlier evaluation; NULL: unwanted
    int part, parts;                       // part of a prediction: see bel_run_config; parts 0: all
    const bel_evaluation_helpers *helpers; // helpers of an evaluation; NULL: no helpers
    bel_between_fn *between;               // as in bel_eval_spec
    void *context;
} bel_evaluation_config;

// Computes means over all examples. Fills loss, batch_mean_loss, examples and metrics of
// *out_result. Returns DATA_LOSS if the input has no example, or the error of `between`.
bel_status *bel_evaluation_run(const bel_evaluation_config *config,
                               bel_result *out_result) BEL_MUST_USE;

// Calls `each` for every example in order.
bel_status *bel_prediction_run(const bel_evaluation_config *config, bel_predict_fn *each,
                               void *user) BEL_MUST_USE;

// --- For helpers ---------------------------------------------------------------------------------

typedef struct bel_blocks bel_blocks;
typedef void bel_batch_sums_fn(void *context, const bel_batch_sums *sums);

// Runs blocks [first, first + count), and calls `take` for each of them in order, on this thread.
// Stops if `stop` returns true between batches.
bel_status *bel_evaluation_run_blocks(bel_blocks *blocks, int tower_count, int64_t first,
                                      int64_t count, bool (*stop)(void *context),
                                      bel_batch_sums_fn *take, void *context) BEL_MUST_USE;

#endif
