// Evaluation for a process that follows the checkpoints of a run; all others use bel_evaluate and
// bel_predict (belfry/estimator.h).
#ifndef BELFRY_ESTIMATOR_PREDICT_H
#define BELFRY_ESTIMATOR_PREDICT_H

#include "belfry/estimator.h"

// bel_evaluate of the newest checkpoint. An earlier evaluation of a later one that is gone, since
// training went back behind it, is void in the curves.
bel_status *bel_evaluate_newest(bel_estimator *estimator, const bel_eval_spec *eval,
                                bel_result *out_result) BEL_MUST_USE;

#endif
