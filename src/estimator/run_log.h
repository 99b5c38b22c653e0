// Curves of a run: event files, from which report.html is made (history.h). A file that cannot be
// written is a warning, once until it can be again: no training depends on its curves. Bound to one
// thread.
#ifndef BELFRY_ESTIMATOR_RUN_LOG_H
#define BELFRY_ESTIMATOR_RUN_LOG_H

#include "belfry/estimator.h"
#include "estimator/details.h"

typedef struct bel_run_log bel_run_log;

// Opens `model_dir`'s event file; what was said of steps behind `first_step` is void. Errors: those
// of files.
bel_status *bel_run_log_open(const char *model_dir, int64_t first_step,
                             bel_run_log **out_log) BEL_MUST_USE;

// Training goes on from `step`: what was said of later ones is void.
void bel_run_log_go_back(bel_run_log *log, int64_t step);

// A training step. Rates are of the time since the last point; at or below 0 there are none.
typedef struct bel_run_point {
    int64_t step;
    double loss, learning_rate, examples_per_second, steps_per_second;
} bel_run_point;
void bel_run_log_step(bel_run_log *log, const bel_run_point *point);

// Another scalar of a training step: a metric, or a summary.
void bel_run_log_scalar(bel_run_log *log, int64_t step, const char *tag, double value);

// A text of a training step, as Markdown.
void bel_run_log_text(bel_run_log *log, int64_t step, const char *tag, const char *text);

// An evaluation; writes an event file into the folder of that name ("eval", "eval_<name>").
void bel_run_log_evaluation(bel_run_log *log, const char *name, const bel_result *result,
                            const bel_details *details);

// Puts the evaluations in the folder of that name to disk: something is decided from them.
void bel_run_log_sync(bel_run_log *log, const char *name);

void bel_run_log_flush(bel_run_log *log);
void bel_run_log_close(bel_run_log *log); // also frees; NULL is fine

// An evaluation that is made by hand, into an event file of its own in that folder ("evaluate…").
bel_status *bel_run_log_add(const char *model_dir, const char *name, const bel_result *result,
                            const bel_details *details) BEL_MUST_USE;

// For a process that only evaluates: a log without an event file in `model_dir` itself, and one
// file in each folder of evaluations. These are KIND and KIND_<name>; the kind is borrowed. A
// folder has one writer: KIND is "eval" of a job's evaluator, which evaluates instead of the
// master, and "evaluator" of a process that follows a job whose master may evaluate as well. Close
// with bel_run_log_close.
bel_run_log *bel_run_log_create_follower(const char *model_dir, const char *kind);

// An evaluation of such a log, of the newest checkpoint: later steps are void, as training has gone
// back. `name` is that of the evaluation; NULL: it has none.
void bel_run_log_follow(bel_run_log *log, const char *name, const bel_result *result,
                        const bel_details *details);

#endif
