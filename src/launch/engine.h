// Engines: ways to run a submitted job. Local is the first; ssh, Slurm and Kubernetes follow the
// same interface.
#ifndef BELFRY_LAUNCH_ENGINE_H
#define BELFRY_LAUNCH_ENGINE_H

#include "launch/cluster_file.h"
#include "launch/registry.h"

typedef struct bel_engine {
    const char *name;
    const char *description;
    // INVALID_ARGUMENT: this engine cannot run such a cluster (says why, e.g. hosts for "local").
    bel_status *(*check)(const bel_cluster *cluster);
    // Starts the job, which is in the registry, detached from the caller, and returns once its
    // supervisor runs, or has ended already: read the record again. On failure the job is recorded
    // as FAILED.
    bel_status *(*submit)(bel_job_record *record, const bel_cluster *cluster);
    // Asks the job to save and end; returns when it has been asked. FAILED_PRECONDITION: it does
    // not run.
    bel_status *(*cancel)(const bel_job_record *record);
} bel_engine;

const bel_engine *bel_engine_find(const char *name); // NULL: none of that name
const bel_engine *bel_engine_at(int index);          // NULL behind the last

#endif
