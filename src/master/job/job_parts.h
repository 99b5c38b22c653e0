// Parts of a training job on the master's thread: its place in the input, evaluations and their
// rules, the program's loop and hooks, and its report.
//
// bel_job (job.h) has one of each. Only the master's thread uses them.
#ifndef BELFRY_MASTER_JOB_JOB_PARTS_H
#define BELFRY_MASTER_JOB_JOB_PARTS_H

#include "estimator/estimator_inner.h"
#include "evaluate/pace.h"
#include "export/exporters.h"
#include "master/backend/remote.h"
#include "master/job/follow.h"
#include "master/job/replicator.h"
#include "model/model.h"
#include "ps/table/row_layers.h"
#include "ps/table/rows.h"

// The members of a cluster. Without one, `members` and `watchdog` are NULL.
typedef struct bel_job_cluster {
    bel_members *members;
    bel_watchdog *watchdog;
    bool replaces; // see bel_remote_listen
    bool leaves;   // this process leaves, and members wait for the next master
} bel_job_cluster;

// The lock of the model folder, and its checks.
typedef struct bel_job_folder {
    int lock;          // lock of bel_folder_lock; -1: none
    int64_t looked_ns; // time of the last check
    bool told;         // a failed check was logged
} bel_job_folder;

// The run's place in the input, by ascending first steps.
typedef struct bel_job_segments {
    bel_input_segment *items;
    int count;
} bel_job_segments;

static inline bel_input_segment *bel_job_newest_segment(const bel_job_segments *segments)
{
    return &segments->items[segments->count - 1];
}

// Versions between which the job trains.
typedef struct bel_job_steps {
    int64_t first, last;
    int64_t max;   // 0: until the input ends
    int64_t saved; // step of the newest checkpoint; -1: none
    int64_t found; // step of the checkpoint that was loaded last, which others may have evaluated
    bool owed;     // a checkpoint was left out: one is made at once
} bel_job_steps;

// The chain of checkpoints with full_checkpoint_every above 1, since the backend was started.
typedef struct bel_job_deltas {
    bel_ckpt_base base; // the last full checkpoint; step 0: none
    int64_t count;      // deltas on it
    bool ends;          // the newest checkpoint is a delta
} bel_job_deltas;

// Duration of training, and the examples that it read, over all assignments.
typedef struct bel_job_totals {
    int64_t started_ns; // start of training by this assignment
    double seconds;
    int64_t examples;
} bel_job_totals;

// An evaluation, whose input and graph are kept for the whole job.
typedef struct bel_job_eval {
    const bel_eval_spec *spec;
    char *folder; // "eval" or "eval_<name>"
    bel_input *input;
    bel_built *built;
    const float **values;   // by graph variable: pointer into the snapshot
    bel_result last_result; // result of last_step
    bel_rows rows;          // rows of the snapshot, from the shards of this process
    bel_row_layers layers;  // or from its checkpoint
    int64_t last_step;      // last evaluated step, -1: none
    int64_t done_step;      // the same, with all that follows from the result
    int64_t built_ns, last_ns;
    bel_exporters exporters;
} bel_job_eval;

// Evaluations by the master (evals.c).
typedef struct bel_job_evals {
    bel_job_eval *items;
    int count;
} bel_job_evals;

// Evaluations by an evaluator's process, of which the master knows the specs (evaluator.c).
typedef struct bel_job_evaluator {
    const bel_eval_spec *specs;
    int count;
    bel_exporters *exporters; // by evaluation
    bel_eval_pace pace;
    int64_t looked;          // step of the checkpoint of its last answer; -1: none
    int64_t evaluated;       // the same of its last results; -1: none
    bel_result *last_result; // by evaluation: these results
} bel_job_evaluator;

// Early stopping, and other reasons to stop before the last step (early_stopping.c).
typedef struct bel_stopping {
    bel_goal goal; // resolved goal of the rule
    float best;    // best value so far; NaN: none
    int64_t best_step;
    int worse;       // consecutive evaluations that were not better
    int64_t rule_at; // version at which these evaluations end training; -1: unset
    int64_t hook_at; // version at which a hook ends it after an evaluation; -1: unset
    int64_t stop_at; // training ends at this version; 0: soon; -1: unset
    bool soon;       // a hook, or the time limit, requested a stop soon
} bel_stopping;

// The best checkpoint, which is kept (best.c).
typedef struct bel_best {
    bel_goal goal;
    int64_t step; // -1: none yet
    float value;
    bool stated; // best.json has it
} bel_best;

// The program's loop (loop.c).
typedef struct bel_job_loop {
    bel_replicator *replicator; // NULL: no loop
    bel_follow *follow;         // whose loop it is; NULL: the program's
    int64_t end;                // version at which it returned; -1: running
    char runs[BEL_RUNS_TEXT];   // counts of step functions at the version to save
} bel_job_loop;

// The program's hooks (hook_state.c); trainable.hooks has the functions.
typedef struct bel_job_hooks {
    uint8_t *beginning; // their initial memory; NULL: no memory
    bool begun;         // `begin` was called
    bool went_back;     // no step was reported since
} bel_job_hooks;

// Points of training's curves, which reach hooks in the order of the versions (train.c).
typedef struct bel_job_points {
    int64_t told_step;     // last step whose point was taken
    int64_t awaited;       // snapshot whose later points are held back; -1: none
    int64_t used_snapshot; // last used one; -1: none
} bel_job_points;

// Writing of report.html while the job runs (job_report.c).
typedef struct bel_job_reporting {
    int64_t written_ns; // time of the last one, or of training's begin
    int64_t cost_ns;    // its duration; 0: not yet written
    bool told;          // a failure to write it was logged
} bel_job_reporting;

#endif
