// A member: the process of a worker, a parameter server or an evaluator, which follows the master's
// messages.
#ifndef BELFRY_MEMBER_MEMBER_H
#define BELFRY_MEMBER_MEMBER_H

#include <stdatomic.h>

#include "estimator/estimator_inner.h"
#include "launch/task/task.h"

// Arguments of the program. A worker uses the training part, an evaluator the evaluations, and a
// parameter server no part: it runs no user code.
typedef struct bel_member_program {
    bel_estimator *estimator;
    const bel_train_spec *train;
    const bel_eval_spec *evals;
    int eval_count;
    // If the master is in this process, else NULL: true after the master's end. `leave` then ends
    // the process if a step of this member does not end.
    const atomic_bool *master_over;
    void (*leave)(void *context);
    void *leave_context;
} bel_member_program;

// Runs an evaluator without a cluster: evaluates each newest checkpoint in the model folder until
// that of the last step, until the folder's job has been gone for `patience_secs`, or until a
// request to stop. Errors: those of bel_evaluate.
bel_status *bel_member_follow(const bel_member_program *program, double patience_secs,
                              bel_result *out_result) BEL_MUST_USE;

// Joins the task's master, plays the role and returns when the master ends the job. CANCELLED: the
// job ended with an error, which the master reports; UNAVAILABLE: the master is lost; others: this
// member's failure, which the master has received.
bel_status *bel_member_run(const bel_task *task, const bel_member_program *program,
                           bel_result *out_result) BEL_MUST_USE;

#endif
