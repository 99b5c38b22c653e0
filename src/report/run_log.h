// Curves of a run: event files, from which report.html is made (history.h). A write error is a
// warning, logged once until writing works again: no training depends on its curves. Bound to one
// thread.
#ifndef BELFRY_ESTIMATOR_RUN_LOG_H
#define BELFRY_ESTIMATOR_RUN_LOG_H

#include "belfry/estimator.h"
#include "report/details.h"

typedef struct bel_run_log bel_run_log;

// Opens `model_dir`'s event file. Values of steps after `first_step` become void. Errors: those of
// files.
bel_status *bel_run_log_open(const char *model_dir, int64_t first_step,
                             bel_run_log **out_log) BEL_MUST_USE;

// Training continues from `step`: values of later steps become void.
void bel_run_log_go_back(bel_run_log *log, int64_t step);

// A training step. Rates are over the time since the last point; values at or below 0 are omitted.
typedef struct bel_run_point {
    int64_t step;
    double loss, learning_rate, examples_per_second, steps_per_second;
} bel_run_point;
void bel_run_log_step(bel_run_log *log, const bel_run_point *point);

// Writes another scalar of a training step: a metric, or a summary.
void bel_run_log_scalar(bel_run_log *log, int64_t step, const char *tag, double value);

// Writes a text of a training step, as Markdown.
void bel_run_log_text(bel_run_log *log, int64_t step, const char *tag, const char *text);

// Writes an evaluation to an event file in the folder of that name ("eval", "eval_<name>").
void bel_run_log_evaluation(bel_run_log *log, const char *name, const bel_result *result,
                            const bel_details *details);

// Syncs the evaluations in the folder of that name to disk, before a decision based on them.
void bel_run_log_sync(bel_run_log *log, const char *name);

void bel_run_log_flush(bel_run_log *log);
void bel_run_log_close(bel_run_log *log); // also frees; accepts NULL

// Writes an evaluation by hand to a separate event file in that folder ("evaluate…").
bel_status *bel_run_log_add(const char *model_dir, const char *name, const bel_result *result,
                            const bel_details *details) BEL_MUST_USE;

// Creates a log for a process that evaluates without a master: no event file in `model_dir` itself,
// and one file in each of the folders "evaluator" and "evaluator_<name>". A folder has one writer:
// those of the job's evaluations ("eval") are the master's. Close with bel_run_log_close.
bel_run_log *bel_run_log_create_follower(const char *model_dir);

// Writes an evaluation of the newest checkpoint to such a log. Later steps become void, as training
// went back. `name` is the evaluation's; NULL: unnamed.
void bel_run_log_follow(bel_run_log *log, const char *name, const bel_result *result,
                        const bel_details *details);

#endif
