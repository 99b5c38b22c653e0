// Comparison of two values of a metric, and the check that an evaluation has that metric. Early
// stopping, the best checkpoint that is kept and the exporter of the best share it.
#ifndef BELFRY_ESTIMATOR_GOAL_H
#define BELFRY_ESTIMATOR_GOAL_H

#include "belfry/estimator.h"

// The direction for a metric's name. AUTO: the name is unknown.
bel_goal bel_goal_of(const char *metric);

// MIN or MAX: `wanted`, or with AUTO the direction for the name. INVALID_ARGUMENT: the name is
// unknown; the message begins with `user`, the requester.
bel_status *bel_goal_resolve(bel_goal wanted, const char *metric, const char *user,
                             bel_goal *out_goal) BEL_MUST_USE;

// Whether a value is better. NaN is never better, and any other value is better than NaN.
bool bel_goal_is_better(bel_goal goal, double value, double best);

// INVALID_ARGUMENT: the evaluation of that name has no such metric; the message lists its metrics.
bel_status *bel_goal_check_metric(const bel_estimator_spec *spec, const char *metric,
                                  const char *user, const char *evaluation) BEL_MUST_USE;

// The value in a result, including "loss"; NaN: absent.
double bel_goal_value(const bel_result *result, const char *metric);

#endif
