// Several trainings with the same flags but for a few, each in a folder of its own below
// --model_dir, as processes of their own: what cross_validate and tune are made of. Each is a
// training like any other: its folder has checkpoints, report and log, and one that was interrupted
// goes on when the study is run again; one that had ended only tells its result once more.
#ifndef BELFRY_TOOLS_STUDY_H
#define BELFRY_TOOLS_STUDY_H

#include "base/json.h"
#include "base/options.h"

typedef struct bel_study bel_study;

// One training of it. What it points to is the study's.
typedef struct bel_study_run {
    const char *folder; // its model_dir
    bel_json *result;   // as train_and_evaluate --json prints it; NULL: it failed, or never ran
    char *failure;      // why, in one line; NULL: it did not fail
    int exit_code;      // of its process
    bool killed;        // by somebody: the same flags would train another time
} bel_study_run;

// Takes all flags that are given, for every training. INVALID_ARGUMENT: flags that are for one
// training alone, or none to train on, or others than those with which trainings in the folder
// began; FAILED_PRECONDITION: another study runs in it; errors of files. Free with
// bel_study_destroy.
bel_status *bel_study_create(const bel_options *options, bel_study **out_study) BEL_MUST_USE;
void bel_study_destroy(bel_study *study); // accepts NULL

// Adds a training in folder `name` (which may have a / in it) with further flags,
// "--eval_share=0/5". Its number is how many there were.
void bel_study_add(bel_study *study, const char *name, const char *const *flags, int count);

// Runs those that were added, as --parallel says. `ended` is called as each ends; false: the rest
// is given up. ABORTED: a signal ended it, whose exit code is *out_exit_code; errors of starting.
bel_status *bel_study_execute(bel_study *study, bool (*ended)(void *context, int run),
                              void *context, int *out_exit_code) BEL_MUST_USE;

const bel_study_run *bel_study_at(const bel_study *study, int run);

// A metric of its result; NaN: there is none, or it is no number.
double bel_study_metric(const bel_study_run *run, const char *name);

// The names of the metrics of a result, "loss" first; the list is freed with bel_free, the names
// belong to the result.
const char **bel_study_metrics(const bel_study_run *run, int *out_count);

// Mean and standard deviation (with n - 1) of a metric over those of runs [first, first + count)
// that have it as a number; NaN where none has.
typedef struct bel_study_spread {
    double mean, deviation;
    int count;
} bel_study_spread;
bel_study_spread bel_study_spread_of(const bel_study *study, int first, int count,
                                     const char *metric);

#endif
