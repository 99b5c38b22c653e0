// Pace of the evaluations of checkpoints as they come: a delay before the first one, and a pause
// between two. All evaluations of a job run together, at the pace of the most frequent one.
#ifndef BELFRY_EVALUATE_PACE_H
#define BELFRY_EVALUATE_PACE_H

#include "belfry/estimator.h"

// Zero but for begun_ns to begin. Bound to one thread.
typedef struct bel_eval_pace {
    int64_t begun_ns, last_ns; // begin of the job, and of the last evaluations; 0: none yet
    bool said;                 // the pace is logged
} bel_eval_pace;

// Whether evaluations may begin now.
bool bel_eval_pace_is_time(bel_eval_pace *pace, const bel_eval_spec *evals, int count);

#endif
