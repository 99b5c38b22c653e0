// What a training step computes, for people: `belfry graph`.
#ifndef BELFRY_JOB_EXPLAIN_H
#define BELFRY_JOB_EXPLAIN_H

#include "base/str.h"
#include "belfry/estimator.h"

// Compiles the model's training program for a full batch and writes it to `out`: an instruction a
// line, in the order in which they run, then what memory the plan takes and the least that any
// could. With `measure` the program runs on the first batch, with initial values and on one thread;
// each line has its time and share, the time that is expected of it (runtime/cost.h), and how far
// that is off. Errors: those of input and model; RESOURCE_EXHAUSTED.
bel_status *bel_job_explain(const bel_estimator *estimator, const bel_train_spec *train,
                            bool measure, bel_str *out) BEL_MUST_USE;

#endif
