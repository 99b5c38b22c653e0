// A training job from its master's thread, for the files of the master's main program: begin.c (up
// to the first step), train.c (from there to the end), snapshots.c (their use), save.c
// (checkpoints), evals.c (evaluations), evaluator.c (those of another process), best.c (the best of
// them), job_report.c (report.html).
#ifndef BELFRY_MASTER_JOB_JOB_H
#define BELFRY_MASTER_JOB_JOB_H

#include "master/job/job_parts.h"
#include "master/job/master.h"
#include "master/job/status_reporter.h"
#include "report/run_log.h"
#include "trainable/trainable.h"

typedef struct bel_job {
    const bel_estimator *estimator;
    const bel_task *task; // task of a cluster's master; NULL: everything in this process
    const bel_train_spec *spec;
    bel_trainable trainable;
    bel_optimizers *optimizers; // by step function, before bel_job_rescale changed the trainable's
    bel_backend *backend;
    bel_control_state state; // newest state
    bel_run_log *log;
    bel_reporter *reporter;
    bel_job_cluster cluster;
    bel_job_folder folder;
    bool damage_is_noted; // the folder has the mark, or cannot have it (damage.c)
    bel_job_segments segments;
    bel_job_steps steps;
    bel_job_deltas deltas;
    bel_ckpt_bases bases; // for retention
    bel_job_totals totals;
    bel_job_evals evals;
    bel_job_evaluator evaluator;
    bel_stopping stopping;
    bel_best best;
    bel_job_loop loop;
    bel_job_hooks hooks;
    bel_job_points points;
    bel_job_reporting report;
    bel_result result;
} bel_job;

// --- evals.c ------------------------------------------------------------------------------------

// The folder of an evaluation's curves: "eval" or "eval_<name>"; free with bel_free.
char *bel_job_eval_folder(const bel_eval_spec *spec);
// Builds inputs and graphs of the evaluations.
bel_status *bel_job_build_evals(bel_job *job, const bel_eval_spec *specs, int count) BEL_MUST_USE;
// Loads the rows of an evaluation's tables from the current snapshot, that of `step`.
bel_status *bel_job_read_rows(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
bel_status *bel_job_evaluate(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
// Evaluates the checkpoint from which the job continues, if an uninterrupted run would have done so
// and the event files lack the result. In a cluster members have joined, and have not begun.
bel_status *bel_job_make_up_evals(bel_job *job) BEL_MUST_USE;
// Finds the last evaluation up to `step` in the event files, of the first evaluation spec;
// evaluation_step -1: absent.
void bel_job_recall_evaluation(const bel_job *job, int64_t step, bel_result *out_result);
// `folder`: the evaluation's. Whether the event files have its result.
bool bel_job_has_evaluated(const bel_job *job, const char *folder, int64_t step);
void bel_job_log_evaluation(const char *folder, const bel_result *result);
void bel_job_free_evals(bel_job *job);

// --- evaluator.c --------------------------------------------------------------------------------

// Takes the exporters of the evaluator's evaluations.
bel_status *bel_job_begin_evaluator(bel_job *job) BEL_MUST_USE;
// In each round of the wait: takes results, and asks for the evaluations of the newest checkpoint
// if it is time.
bel_status *bel_job_tend_evaluator(bel_job *job) BEL_MUST_USE;
// After the last checkpoint, that of `step`: waits for its evaluations.
bel_status *bel_job_end_evaluator(bel_job *job, int64_t step) BEL_MUST_USE;
// At the end of a training that was not stopped: makes the final exports.
bel_status *bel_job_end_exports(bel_job *job, int64_t step) BEL_MUST_USE;
// Before a start: the request is void, and so are results of later steps.
void bel_job_reset_evaluator(bel_job *job);
void bel_job_free_evaluator(bel_job *job);

// --- snapshots.c --------------------------------------------------------------------------------

// Saves the current snapshot, then evaluates it, as far as it is due and not done.
bel_status *bel_job_use_snapshot(bel_job *job, const bel_control_state *state) BEL_MUST_USE;
// After a loss: does what can be done without the snapshot that shards cannot continue
// (backend.missed). UNAVAILABLE: training must go back; backend.lost is set.
bel_status *bel_job_miss_snapshot(bel_job *job) BEL_MUST_USE;

// --- begin.c ------------------------------------------------------------------------------------

// Does everything before the first step.
bel_status *bel_job_prepare(bel_job *job, const bel_eval_spec *evals, int eval_count) BEL_MUST_USE;
// Finds the version at which training ends, from the current state. INVALID_ARGUMENT: never, or
// nothing can be trained.
bel_status *bel_job_find_last_step(bel_job *job) BEL_MUST_USE;
// One past the last block of the input to read.
int64_t bel_job_block_end(const bel_job *job);
// Logs what is about to be trained.
void bel_job_describe(const bel_job *job);

// --- save.c, initial_values.c -------------------------------------------------------------------

// Computes the initial values of every variable of a new run (initial_values.c), in the layout of
// the space. Rows of its tables go into the backend, which is an embedded one.
bel_status *bel_job_initialize(const bel_job *job, float *values) BEL_MUST_USE;

bel_status *bel_job_resume(bel_job *job) BEL_MUST_USE; // from the newest checkpoint, or from ckpt-0
bel_status *bel_job_go_back(bel_job *job) BEL_MUST_USE; // to the newest checkpoint, after a loss
                                                        // or a pause
// Adapts to the number of replicas. With elastic_rescale another number is a new segment, and the
// learning rate follows. With scale_learning_rate the rate is multiplied by that number.
void bel_job_rescale(bel_job *job);
// Saves the current snapshot, that of `step`, in full or as a delta on the last full one.
bel_status *bel_job_save(bel_job *job, int64_t step) BEL_MUST_USE;
// The last checkpoint of a run is full; replaces a delta of this step.
bel_status *bel_job_save_last(bel_job *job, int64_t step) BEL_MUST_USE;

// Logs the rows of the last checkpoint's tables: those that come and go in a cluster, and tables
// without a row.
void bel_job_say_rows(const bel_job *job);

// --- hook_state.c -------------------------------------------------------------------------------

// Frees the saved initial memory of hooks.
void bel_job_forget_hooks(bel_job_hooks *hooks);
// Writes the hooks' memory into the folder of a new checkpoint.
bel_status *bel_job_write_hooks(const bel_job *job, const char *folder) BEL_MUST_USE;
// Writes it into the checkpoint of that version, if there is one.
bel_status *bel_job_rewrite_hooks(const bel_job *job, int64_t step) BEL_MUST_USE;
// Reads it from a folder. Without a file there, restores the program's initial memory.
bel_status *bel_job_read_hooks(bel_job *job, const char *folder) BEL_MUST_USE;

// --- watched.c ----------------------------------------------------------------------------------

// Whether the name of an evaluation in a rule (NULL: the unnamed one) means the one in this folder.
bool bel_job_is_named(const char *folder, const char *name);
// INVALID_ARGUMENT: no evaluation has that name, or it lacks the metric.
bel_status *bel_job_check_metric(const bel_job *job, const char *user, const char *name,
                                 const char *metric) BEL_MUST_USE;

// --- early_stopping.c ---------------------------------------------------------------------------

// Checks whether the rule can be followed.
bel_status *bel_job_check_stopping(bel_job *job) BEL_MUST_USE;
// Restores the evaluations up to the step from which the job continues, and the resulting end.
bel_status *bel_job_recall_stopping(bel_job *job) BEL_MUST_USE;
// Adds one evaluation.
void bel_job_count_evaluation(bel_job *job, const char *folder, const bel_result *result);
// Stops after an evaluation, as a hook requested.
void bel_job_stop_behind_evaluation(bel_job *job, int64_t step);
// Stops when training has taken the spec's max_seconds.
void bel_job_look_at_clock(bel_job *job, double seconds);
// Applies a requested stop while no step is made.
void bel_job_settle_stop(bel_job *job);
// Applies a requested stop while steps are made.
void bel_job_stop_if_wanted(bel_job *job);

// --- best.c -------------------------------------------------------------------------------------

// Checks whether the rule can be followed.
bel_status *bel_job_check_best(bel_job *job) BEL_MUST_USE;
// Finds the best evaluation up to the newest checkpoint, and records it in best.json.
bel_status *bel_job_recall_best(bel_job *job) BEL_MUST_USE;
// Whether one more evaluation is the best.
bel_status *bel_job_is_best(bel_job *job, const char *folder, const bel_result *result,
                            bool *out_best) BEL_MUST_USE;
// Records it as the best, after its version was saved.
bel_status *bel_job_take_best(bel_job *job, const bel_result *result) BEL_MUST_USE;
// Removes old checkpoints, except the one that an evaluator evaluates.
void bel_job_retain(bel_job *job);

// --- loop.c: the program's loop -----------------------------------------------------------------

// Starts the loop, or lets it continue.
bel_status *bel_job_start_loop(bel_job *job) BEL_MUST_USE;
// Whether the loop's state for a checkpoint of `step` is known yet.
bool bel_job_knows_loop(bel_job_loop *loop, int64_t step);
bel_status *bel_job_await_loop(bel_job *job, int64_t step) BEL_MUST_USE;
// Checks whether it has returned.
bel_status *bel_job_look_at_loop(bel_job *job) BEL_MUST_USE;
// Without members: starts the loop, to see whether it requests a step or returns (loop.end).
bel_status *bel_job_try_loop(bel_job *job) BEL_MUST_USE;
// Waits until it has returned, after training ended with `status`. Takes ownership of the status,
// and returns it or the loop's error instead.
bel_status *bel_job_end_loop(bel_job *job, bel_status *status) BEL_MUST_USE;

// --- exports.c ----------------------------------------------------------------------------------

// Checks the exporters of all evaluations, `own` or an evaluator's.
bel_status *bel_job_take_exporters(bel_job *job, const bel_eval_spec *own) BEL_MUST_USE;
// Runs the exporters of an evaluation on its result, with `over` only the final ones. The
// snapshot of its version is current, or saved.
bel_status *bel_job_export(bel_job *job, bel_job_eval *eval, const bel_result *result,
                           bool over) BEL_MUST_USE;
// The same for a checkpoint that is there.
void bel_job_export_saved(bel_job *job, bel_exporters *exporters, const bel_result *result,
                          bool over);

// --- damage.c -----------------------------------------------------------------------------------

// Refuses a folder with checkpoints of damaged data: DATA_LOSS; or lifts its mark.
bel_status *bel_job_check_damage(const bel_job *job) BEL_MUST_USE;
// After an error: marks the folder if damaged data was used.
void bel_job_note_damage(bel_job *job);

// --- job_report.c -------------------------------------------------------------------------------

// Writes the current report.html. A failure is a warning.
void bel_job_report(bel_job *job, bool over);

#endif
