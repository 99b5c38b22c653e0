// A training job as its master's thread sees it, for the files that tell its story: begin.c (up to
// the first step), train.c (from there to the end), save.c (checkpoints), evals.c (evaluations),
// best.c (the best of them), job_report.c (report.html).
#ifndef BELFRY_MASTER_JOB_H
#define BELFRY_MASTER_JOB_H

#include "estimator/estimator_inner.h"
#include "estimator/exporters.h"
#include "estimator/model.h"
#include "estimator/run_log.h"
#include "estimator/trainable.h"
#include "master/master.h"
#include "master/remote.h"
#include "master/replicator.h"
#include "master/status_reporter.h"
#include "ps/table/rows.h"

// One evaluation: its input and graph are kept for the whole job.
typedef struct bel_job_eval {
    const bel_eval_spec *spec;
    char *folder; // "eval" or "eval_<name>"
    bel_input *input;
    bel_built *built;
    const float **values;   // by graph variable: in the snapshot
    bel_result last_result; // of last_step
    bel_rows rows;          // of the snapshot
    int64_t last_step;      // evaluated, -1: none
    int64_t built_ns, last_ns;
    bel_exporters exporters;
} bel_job_eval;

// Early stopping, and other reasons to end before the last step (early_stopping.c).
typedef struct bel_stopping {
    float best; // of the evaluations so far; NaN: none
    int64_t best_step;
    int worse;       // so many in a row were not better
    int64_t rule_at; // where these evaluations end training; -1: they do not
    int64_t hook_at; // where a hook ends it that was told of an evaluation; -1: none does
    int64_t stop_at; // training ends at this version; 0: soon; -1: nobody has asked
} bel_stopping;

// The checkpoint that is kept as the best (best.c).
typedef struct bel_best {
    bel_goal goal;
    int64_t step; // -1: none yet
    float value;
    bool stated; // best.json says so
} bel_best;

typedef struct bel_job {
    const bel_estimator *estimator;
    const bel_task *task; // of a cluster's master; NULL: everything in this process
    bel_members *members;
    const bel_train_spec *spec;
    const bel_eval_spec *evaluator_specs; // of an evaluator's process
    int evaluator_count;
    bel_trainable trainable;
    bel_input_segment *segments;
    int segment_count;
    bel_optimizers *optimizers; // by step function, before bel_job_rescale changed the trainable's
    bel_backend *backend;
    bel_control_state state; // the newest
    bel_run_log *log;
    bel_reporter *reporter;
    bel_watchdog *watchdog; // of a cluster's master; else NULL
    int lock;               // bel_folder_lock's
    int64_t folder_ns;      // when it was last looked at
    bool folder_told;       // the user was told that it could not be looked at
    bool replaces;          // bel_remote_listen's
    bel_job_eval *evals;
    int eval_count;
    int64_t first_step, last_step;
    int64_t told_step;  // up to which reports of steps were taken
    int64_t max_steps;  // 0: until the input ends
    int64_t saved_step; // of the newest checkpoint
    int64_t started_ns; // when training by this assignment began
    double seconds;     // of training, by all assignments
    int64_t examples;   // that it read in them
    bel_stopping stopping;
    bel_goal stopping_goal; // of the rule, once it was checked
    bel_best best;
    bel_replicator *replicator; // of a loop of the program's own; NULL: there is none
    int64_t loop_end;           // the version at which it has returned; -1: it has not
    char runs[BEL_RUNS_TEXT];   // of step functions by the version that is saved
    uint8_t *hook_beginning; // the hooks' memory as the program has begun it; NULL: they have none
    int64_t awaited;         // the snapshot before which no later point is told; -1: none
    int64_t used_snapshot;   // the last one; -1: none
    bool hook_stop;          // an end was asked for, soon
    bool hooks_begun;        // `begin` was called
    bool went_back;          // and no step was reported since
    bool leaves;             // this process goes, and members wait for the next master
    int64_t reported_ns;     // when report.html was written, or training began
    int64_t report_cost_ns;  // what that took; 0: it was not yet written
    bool report_told;        // the user was told that it cannot be written
    bel_result result;
} bel_job;

// evals.c: inputs and graphs of the evaluations; the rows of an evaluation's tables, as they are in
// the snapshot in hand, that of `step`.
bel_status *bel_job_build_evals(bel_job *job, const bel_eval_spec *specs, int count) BEL_MUST_USE;
bel_status *bel_job_read_rows(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
bel_status *bel_job_evaluate(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
// Evaluates the checkpoint that the job goes on from, where a run without interruption would have
// done it and the event files have no result of it. In a cluster members have come, and have not
// begun.
bel_status *bel_job_make_up_evals(bel_job *job) BEL_MUST_USE;
// The last evaluation up to `step` that the event files have, of the first one that was asked for;
// evaluation_step -1: they have none.
void bel_job_recall_evaluation(const bel_job *job, int64_t step, bel_result *out_result);
bool bel_job_has_evaluated(const bel_job *job, const bel_job_eval *eval, int64_t step);
void bel_job_free_evals(bel_job *job);

// begin.c. Everything before the first step; the version at which training ends, from where it
// stands now, INVALID_ARGUMENT: never, or nothing can be trained; behind the last block of the
// input that is read; and what is about to be trained, for the log.
bel_status *bel_job_prepare(bel_job *job, const bel_eval_spec *evals, int eval_count) BEL_MUST_USE;
bel_status *bel_job_find_last_step(bel_job *job) BEL_MUST_USE;
int64_t bel_job_block_end(const bel_job *job);
void bel_job_describe(const bel_job *job);

// save.c: checkpoints.

// initial_values.c. What every variable of a new run begins with, laid out as the space; rows of
// its tables go into the backend, which is an embedded one.
bel_status *bel_job_initialize(const bel_job *job, float *values) BEL_MUST_USE;

bel_status *bel_job_resume(bel_job *job) BEL_MUST_USE; // from the newest checkpoint, or from ckpt-0
bel_status *bel_job_go_back(bel_job *job) BEL_MUST_USE; // to the newest checkpoint, after a loss
                                                        // or a pause
// With elastic_rescale: another number of replicas is a new segment, and the learning rate follows.
// With scale_learning_rate it is multiplied by that number.
void bel_job_rescale(bel_job *job);
bel_status *bel_job_save(bel_job *job, int64_t step) BEL_MUST_USE;

// hook_state.c: the hooks' memory as it is, into the folder of a checkpoint that is made, or into
// that of the version's, where there is one; from there, and as the program has begun it where the
// folder has none.
void bel_job_forget_hooks(bel_job *job);
bel_status *bel_job_write_hooks(const bel_job *job, const char *folder) BEL_MUST_USE;
bel_status *bel_job_rewrite_hooks(const bel_job *job, int64_t step) BEL_MUST_USE;
bel_status *bel_job_read_hooks(bel_job *job, const char *folder) BEL_MUST_USE;

// watched.c: whether a rule that names an evaluation (NULL: the one without a name) means that of
// this folder; INVALID_ARGUMENT: there is none of that name, or it has no such metric.
bool bel_job_is_named(const char *folder, const char *name);
bel_status *bel_job_check_metric(const bel_job *job, const char *user, const char *name,
                                 const char *metric) BEL_MUST_USE;

// early_stopping.c: whether the rule can be followed; what is known of evaluations up to the step
// that the job goes on from, and what follows for its end; one evaluation more, behind which a hook
// may have asked for the end; the end as it was asked for, while no step is made and while some
// are.
bel_status *bel_job_check_stopping(bel_job *job) BEL_MUST_USE;
bel_status *bel_job_recall_stopping(bel_job *job) BEL_MUST_USE;
void bel_job_count_evaluation(bel_job *job, const char *folder, const bel_result *result);
void bel_job_stop_behind_evaluation(bel_job *job, int64_t step);
void bel_job_look_at_clock(bel_job *job, double seconds);
void bel_job_settle_stop(bel_job *job);
void bel_job_stop_if_wanted(bel_job *job);

// best.c: whether the rule can be followed; the best of the evaluations up to the newest
// checkpoint, as it is stated from then on; whether one evaluation more is the best; it is, and its
// version is saved.
bel_status *bel_job_check_best(bel_job *job) BEL_MUST_USE;
bel_status *bel_job_recall_best(bel_job *job) BEL_MUST_USE;
bel_status *bel_job_is_best(bel_job *job, const char *folder, const bel_result *result,
                            bool *out_best) BEL_MUST_USE;
bel_status *bel_job_take_best(bel_job *job, const bel_result *result) BEL_MUST_USE;
// Old checkpoints go; with an evaluator of its own the best one is looked for before.
void bel_job_retain(bel_job *job);

// loop.c: a loop of the program's own. Begins it, or lets it go on; says whether what a checkpoint
// of `step` has of it is known yet; looks whether it has returned; waits until it has, as training
// has ended with `status`, which is taken over, and returned or replaced by the loop's own.
bel_status *bel_job_start_loop(bel_job *job) BEL_MUST_USE;
bool bel_job_knows_loop(bel_job *job, int64_t step);
bel_status *bel_job_await_loop(bel_job *job, int64_t step) BEL_MUST_USE;
bel_status *bel_job_look_at_loop(bel_job *job) BEL_MUST_USE;
// Without members: begins the loop, to see whether it asks for a step or returns (loop_end).
bel_status *bel_job_try_loop(bel_job *job) BEL_MUST_USE;
bel_status *bel_job_end_loop(bel_job *job, bel_status *status) BEL_MUST_USE;

// exports.c: checks the exporters of all evaluations, `own` or an evaluator's; runs those of an
// evaluation on its result, with `over` those of the end only. The snapshot of its version is in
// hand, or saved.
bel_status *bel_job_take_exporters(bel_job *job, const bel_eval_spec *own) BEL_MUST_USE;
bel_status *bel_job_export(bel_job *job, bel_job_eval *eval, const bel_result *result,
                           bool over) BEL_MUST_USE;

// job_report.c: report.html as far as the job has come; what cannot be written is a warning.
void bel_job_report(bel_job *job, bool over);

#endif
