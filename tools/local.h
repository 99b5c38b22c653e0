// What `local train` and `jobs submit` have in common: a cluster from a file and flags, and the
// training flags behind "--".
#ifndef BELFRY_TOOLS_LOCAL_H
#define BELFRY_TOOLS_LOCAL_H

#include "base/options.h"
#include "launch/plan.h"

typedef struct bel_local_job {
    bel_cluster *cluster;
    bel_plan *plan;
    bel_options *training; // the flags behind "--", checked; --job_dir is their --model_dir
    char **arguments;      // of every process: verb and flags; NULL at the end
    const char *model_dir; // lives with `training`
} bel_local_job;

// Reads it all, and refuses what is wrong before anything starts: flags, the cluster file, counts,
// hosts other than this one.
bel_status *bel_local_job_create(const bel_options *options, bel_local_job **out_job) BEL_MUST_USE;
void bel_local_job_destroy(bel_local_job *job);

// Prints the plan with the model's sizes on stdout.
bel_status *bel_local_job_print_plan(bel_local_job *job) BEL_MUST_USE;

#endif
