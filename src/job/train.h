// The master's thread of a training job, step by step; train.c has the story.
#ifndef BELFRY_JOB_TRAIN_H
#define BELFRY_JOB_TRAIN_H

#include "estimator/estimator_inner.h"
#include "estimator/model.h"
#include "estimator/run_log.h"
#include "job/look.h"
#include "job/remote.h"
#include "job/settings.h"

// One evaluation: its input and graph are kept for the whole job.
typedef struct bel_job_eval {
    const bel_eval_spec *spec;
    char *folder; // "eval" or "eval_<name>"
    bel_input *input;
    bel_built *built;
    const float **values; // by graph variable: in the snapshot
    bel_rows rows;        // of the snapshot
    int64_t last_step;    // evaluated, -1: none
    int64_t last_ns;
} bel_job_eval;

typedef struct bel_job {
    const bel_estimator *estimator;
    const bel_task *task; // of a cluster's master; NULL: everything in this process
    bool in_cluster;      // a worker's, which has no task of a master
    bel_members *members;
    const bel_train_spec *spec;
    const bel_eval_spec *evaluator_specs; // of an evaluator's process
    int evaluator_count;
    bel_input *input;
    bel_built *built;
    bel_value **reports;       // by layout variable
    int *variables;            // by graph variable
    bel_value **row_gradients; // by lookup
    bel_worker_model model;
    bel_layout *layout;
    bel_counting counting;
    bel_input_segment *segments;
    int segment_count;
    bel_settings settings;
    bel_optimizer optimizer; // before elastic_rescale changed built->spec's
    bel_crew *crew;
    bel_control_state state; // the newest
    bel_run_log *log;
    bel_look *look;
    bel_watchdog *watchdog; // of a cluster's master; else NULL
    int lock;               // bel_folder_lock's
    int64_t folder_ns;      // when it was looked at last
    bool folder_told;       // that this could not be done
    bool replaces;          // bel_remote_listen's
    bel_job_eval *evals;
    int eval_count;
    int64_t first_step, last_step;
    int64_t saved_step;         // of the newest checkpoint
    double started_at, seconds; // of training: of this deal, and in all of them
    int64_t examples;           // that it read in them
    int64_t reported_ns;        // when report.html was written, or training began
    int64_t report_cost_ns;     // what that took; 0: it was not yet written
    bel_result result;
} bel_job;

// job_model.c: input, graph with gradients, layout; evaluations.
bel_status *bel_job_build(bel_job *job) BEL_MUST_USE;
// The rows of an evaluation's tables, as they are in the snapshot in hand, that of `step`.
bel_status *bel_job_read_rows(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
bel_status *bel_job_build_evals(bel_job *job, const bel_eval_spec *specs, int count) BEL_MUST_USE;
bel_status *bel_job_embed(const bel_job *job, bel_crew **out_crew) BEL_MUST_USE;
void bel_job_free_model(bel_job *job);

// job_save.c: checkpoints, evaluations of the snapshot, the report.
bel_status *bel_job_resume(bel_job *job) BEL_MUST_USE; // from the newest checkpoint, or from ckpt-0
bel_status *bel_job_go_back(bel_job *job) BEL_MUST_USE; // to the newest checkpoint, after a loss
                                                        // or a pause
// With elastic_rescale: another number of replicas is a new segment, and the learning rate follows.
void bel_job_rescale(bel_job *job);
bel_status *bel_job_save(bel_job *job, int64_t step) BEL_MUST_USE;
bel_status *bel_job_evaluate(bel_job *job, bel_job_eval *eval, int64_t step) BEL_MUST_USE;
// report.html as far as the job has come. It never ends a job: what cannot be written is a warning.
void bel_job_report(bel_job *job, bool over);

// predict.c: bel_evaluate of the newest checkpoint by who follows them: an evaluation of a later
// one that is gone is void.
bel_status *bel_job_evaluate_newest(bel_estimator *estimator, const bel_eval_spec *eval,
                                    bel_result *out_result) BEL_MUST_USE;

// Opens an input function's dataset, with the mode's name in errors. `like` as in bel_input_open;
// or as the setting BEL_SETTING_COLUMNS of a checkpoint has it, NULL where there is none.
bel_status *bel_job_open_input(bel_input_fn *input_fn, void *user, bel_mode mode,
                               const bel_column_names *like, bel_input **out_input) BEL_MUST_USE;
bel_status *bel_job_open_like(bel_input_fn *input_fn, void *user, bel_mode mode,
                              const char *columns, bel_input **out_input) BEL_MUST_USE;

#endif
