// Exporters of an evaluation: checkpoints that are kept separately with their result
// (belfry/estimator.h, bel_exporter). The master runs them, and checks those of an evaluator's
// evaluations only as far as that is possible without their data; the evaluator checks the rest.
#ifndef BELFRY_ESTIMATOR_EXPORTERS_H
#define BELFRY_ESTIMATOR_EXPORTERS_H

#include "belfry/estimator.h"

// Zero-initialize to begin. Bound to one thread; owns nothing.
typedef struct bel_exporters {
    const bel_estimator *estimator;
    bel_exporter items[BEL_MAX_EXPORTERS]; // copied, as an older program's is shorter
    int count;
    bool lacks_model; // model.onnx cannot be written, and a warning was logged
} bel_exporters;

// Copies and checks the exporters of `eval`, called `name`. `spec` is the model's, in EVAL; NULL:
// it is unknown, and metrics are not checked. INVALID_ARGUMENT: an exporter is invalid.
bel_status *bel_exporters_init(bel_exporters *exporters, const bel_estimator *estimator,
                               const bel_eval_spec *eval, const char *name,
                               const bel_estimator_spec *spec) BEL_MUST_USE;

// INVALID_ARGUMENT: two exporters of a job have the same name.
bel_status *bel_exporters_check_names(const bel_eval_spec *evals, int count) BEL_MUST_USE;

// The exporters that keep the checkpoint of `result`, bit e for items[e]: at the end of the
// training (`over`) those of FINAL, before it the others. 0: no exporter keeps it.
unsigned bel_exporters_choose(const bel_exporters *exporters, const bel_result *result, bool over);

// Keeps the checkpoint of result->global_step, which must be in the model folder, for the exporters
// in `chosen`. A failure is a warning: the training does not depend on exports.
void bel_exporters_keep(bel_exporters *exporters, unsigned chosen, const bel_result *result);

#endif
