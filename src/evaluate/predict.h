// Evaluation for a process that evaluates the checkpoints of a run as they come. Other callers use
// bel_evaluate and bel_predict (belfry/estimator.h).
#ifndef BELFRY_ESTIMATOR_PREDICT_H
#define BELFRY_ESTIMATOR_PREDICT_H

#include "evaluate/evaluation.h"

// Like bel_evaluate, for one of the newest checkpoints, by its folder, or for the newest one
// (NULL); the caller writes the curves. *data is the fingerprint of the previous evaluation's data,
// 0 at first; the call sets it to this one's. A change is a warning. *out_details: empty before;
// free them with bel_details_deinit, also after an error.
bel_status *bel_evaluate_along(bel_estimator *estimator, const bel_eval_spec *eval,
                               const char *checkpoint, uint64_t *data, bel_details *out_details,
                               bel_result *out_result) BEL_MUST_USE;

// An evaluation whose batches another process adds up: the values of a checkpoint (its moving
// averages if present), the input and the programs. Bound to one thread.
typedef struct bel_evaluating bel_evaluating;

// `checkpoint` is its folder. Errors: those of bel_evaluate. The estimator must outlive it.
bel_status *bel_evaluating_open(bel_estimator *estimator, const bel_eval_spec *eval,
                                const char *checkpoint,
                                bel_evaluating **out_evaluating) BEL_MUST_USE;
void bel_evaluating_close(bel_evaluating *evaluating); // accepts NULL

// bel_input_fingerprint of its data.
uint64_t bel_evaluating_fingerprint(const bel_evaluating *evaluating);

// Like bel_evaluation_run_blocks. OUT_OF_RANGE: the evaluation has no such batches.
bel_status *bel_evaluating_run(bel_evaluating *evaluating, int64_t first, int64_t count,
                               bool (*stop)(void *context), bel_batch_sums_fn *take,
                               void *context) BEL_MUST_USE;

#endif
