// Master of a training job. It builds the model, makes or loads the first checkpoint, and starts
// shards and workers: threads of this process, or members of a cluster. It saves, evaluates and
// reports until the end, and returns to the newest checkpoint when state is lost.
#ifndef BELFRY_MASTER_JOB_MASTER_H
#define BELFRY_MASTER_JOB_MASTER_H

#include "estimator/estimator_inner.h"
#include "launch/task/task.h"

typedef struct bel_master_config {
    const bel_estimator *estimator;
    const bel_train_spec *train;
    const bel_eval_spec *evals; // made by the master itself
    int eval_count;
    const bel_eval_spec *evaluator_evals; // made by an evaluator's process
    int evaluator_count;
    const bel_task *task; // task of a cluster's master; NULL: everything in this process
} bel_master_config;

// Runs the job to its end on the calling thread; all members have been sent its end on return.
// Errors: the first of those that ended the job; ABORTED or FAILED_PRECONDITION: another run holds
// the model folder, or this one's settings differ from the checkpoint's.
bel_status *bel_master_run(const bel_master_config *config, bel_result *out_result) BEL_MUST_USE;

#endif
