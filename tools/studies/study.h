// Several trainings whose flags differ in a few, for cross_validate and tune. Each is a separate
// process with a folder below --model_dir. Each is a normal training: its folder has checkpoints,
// report and log. If the study is run again, an interrupted training continues, and a finished one
// only reports its result again.
#ifndef BELFRY_TOOLS_STUDIES_STUDY_H
#define BELFRY_TOOLS_STUDIES_STUDY_H

#include "base/json.h"
#include "base/options.h"

typedef struct bel_study bel_study;

// One training of a study. The study owns the memory that its pointers refer to.
typedef struct bel_study_run {
    const char *folder; // its model_dir
    bel_json *result;   // in the form of train_and_evaluate --json; NULL: it failed, or never ran
    char *failure;      // reason, in one line; NULL: it did not fail
    int exit_code;      // the process's
    bool killed;        // by a user or another process: the same flags could succeed later
} bel_study_run;

// Takes all given flags, for every training. INVALID_ARGUMENT: flags for only one training, no
// files to train on, or flags that differ from those with which trainings in the folder began.
// FAILED_PRECONDITION: another study runs in the folder. Errors of files. Free with
// bel_study_destroy.
bel_status *bel_study_create(const bel_options *options, bel_study **out_study) BEL_MUST_USE;
void bel_study_destroy(bel_study *study); // accepts NULL

// Adds a training in folder `name` (which may have a / in it) with further flags,
// "--eval_share=0/5". Its number is the count of trainings before.
void bel_study_add(bel_study *study, const char *name, const char *const *flags, int count);

// Runs the added trainings, as --parallel says. Calls `ended` after each; if that returns false,
// the rest is cancelled. ABORTED: a signal ended it, whose exit code is *out_exit_code; errors of
// starting.
bel_status *bel_study_execute(bel_study *study, bool (*ended)(void *context, int run),
                              void *context, int *out_exit_code) BEL_MUST_USE;

const bel_study_run *bel_study_at(const bel_study *study, int run);

// Returns a metric of the result; NaN: absent, or no number.
double bel_study_metric(const bel_study_run *run, const char *name);

// Returns the names of a result's metrics, "loss" first. Free the list with bel_free; the result
// owns the names.
const char **bel_study_metrics(const bel_study_run *run, int *out_count);

// Mean and standard deviation (with n - 1) of a metric over those of runs [first, first + count)
// that have it as a number; NaN if no run has it.
typedef struct bel_study_spread {
    double mean, deviation;
    int count;
} bel_study_spread;
bel_study_spread bel_study_spread_of(const bel_study *study, int first, int count,
                                     const char *metric);

#endif
