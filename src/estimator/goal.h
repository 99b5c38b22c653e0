// Which of two values of a metric is better, and whether an evaluation has that metric: the same
// for early stopping, the best checkpoint that is kept, and the exporter of the best.
#ifndef BELFRY_ESTIMATOR_GOAL_H
#define BELFRY_ESTIMATOR_GOAL_H

#include "belfry/estimator.h"

// AUTO: nothing is known of this name.
bel_goal bel_goal_of(const char *metric);

// MIN or MAX: as wanted, or with AUTO as the name says. INVALID_ARGUMENT: it does not; `user` names
// who asks, in front of the message.
bel_status *bel_goal_resolve(bel_goal wanted, const char *metric, const char *user,
                             bel_goal *out_goal) BEL_MUST_USE;

// A value that is no number is never better, and any other is better than none (NaN).
bool bel_goal_is_better(bel_goal goal, double value, double best);

// INVALID_ARGUMENT: the evaluation of that name has no such metric; says which there are.
bel_status *bel_goal_check_metric(const bel_estimator_spec *spec, const char *metric,
                                  const char *user, const char *evaluation) BEL_MUST_USE;

// The value in a result, "loss" among them; NaN: it has none of this name.
double bel_goal_value(const bel_result *result, const char *metric);

#endif
