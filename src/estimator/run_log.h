// What a run writes down while it trains: event files, curves for report.html, progress lines.
// Bound to one thread.
#ifndef BELFRY_ESTIMATOR_RUN_LOG_H
#define BELFRY_ESTIMATOR_RUN_LOG_H

#include "belfry/estimator.h"
#include "estimator/report.h"

typedef struct bel_run_log bel_run_log;

// Opens `model_dir`'s event file and marks the session's first step. Errors: those of files.
bel_status *bel_run_log_open(const char *model_dir, int64_t first_step,
                             bel_run_log **out_log) BEL_MUST_USE;

// Training goes on from `step`: what was said of later ones is void.
void bel_run_log_go_back(bel_run_log *log, int64_t step);

// A training step's loss; `examples_per_second` is of the time since the last call.
void bel_run_log_step(bel_run_log *log, int64_t step, double loss, double examples_per_second,
                      double learning_rate);

// An evaluation; writes an event file into the folder of that name ("eval", "eval_<name>").
bel_status *bel_run_log_evaluation(bel_run_log *log, const char *name,
                                   const bel_result *result) BEL_MUST_USE;

// What the report shows beside the curves; its charts are ignored.
bel_status *bel_run_log_report(bel_run_log *log, const bel_report *frame) BEL_MUST_USE;

bel_status *bel_run_log_flush(bel_run_log *log) BEL_MUST_USE;
bel_status *bel_run_log_close(bel_run_log *log) BEL_MUST_USE; // also frees; NULL is fine

#endif
