// A member: the process of a worker, a parameter server or an evaluator, which does what the master
// says.
#ifndef BELFRY_MEMBER_MEMBER_H
#define BELFRY_MEMBER_MEMBER_H

#include <stdatomic.h>

#include "estimator/estimator_inner.h"
#include "launch/task.h"

// What the program was called with. A worker uses the training part of it, an evaluator the
// evaluations, and a parameter server nothing: it runs no user code.
typedef struct bel_member_program {
    bel_estimator *estimator;
    const bel_train_spec *train;
    const bel_eval_spec *evals;
    int eval_count;
    // Where the master is in this process, else NULL: set when it has ended, and what ends the
    // process then if a step of this member does not end.
    const atomic_bool *master_over;
    void (*leave)(void *context);
    void *leave_context;
} bel_member_program;

// An evaluator that belongs to no cluster: evaluates each newest checkpoint in the model folder
// until that of the last step, until the job that was there has been gone for `patience_secs`, or
// until it is asked to stop. Errors: those of bel_evaluate.
bel_status *bel_member_follow(const bel_member_program *program, double patience_secs,
                              bel_result *out_result) BEL_MUST_USE;

// Joins the task's master, plays the role and returns when the master ends the job. CANCELLED: the
// job ended with an error, which the master reports; UNAVAILABLE: the master is lost; others: this
// member's own failure, which the master has been told.
bel_status *bel_member_run(const bel_task *task, const bel_member_program *program,
                           bel_result *out_result) BEL_MUST_USE;

#endif
