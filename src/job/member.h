// A member: the process of a worker or of a parameter server, which does what the master says.
#ifndef BELFRY_JOB_MEMBER_H
#define BELFRY_JOB_MEMBER_H

#include "estimator/estimator_inner.h"
#include "launch/task.h"

// Joins the task's master, plays the role and returns when the master ends the job. A parameter
// server runs no user code: `train` may be NULL there. CANCELLED: the job ended with an error,
// which the master reports; UNAVAILABLE: the master is lost; others: this member's own failure,
// which the master has been told.
bel_status *bel_member_run(const bel_task *task, const bel_estimator *estimator,
                           const bel_train_spec *train, bel_result *out_result) BEL_MUST_USE;

#endif
