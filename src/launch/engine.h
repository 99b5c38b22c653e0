// Engines: where a submitted job runs, and how. One description of a job (its record and its plan)
// for all of them.
#ifndef BELFRY_LAUNCH_ENGINE_H
#define BELFRY_LAUNCH_ENGINE_H

#include "launch/cluster_file.h"
#include "launch/reach.h"
#include "launch/registry.h"

typedef struct bel_engine {
    const char *name;
    const char *description;
    // INVALID_ARGUMENT: this engine cannot run such a cluster (says why, e.g. hosts for "local").
    bel_status *(*check)(const bel_cluster *cluster);
    bool apart;      // each process has its own share of a host (bel_plan_move)
    bool fixed_size; // a job cannot have more workers than it was submitted with
    // For --dry_run: appends what would be submitted, as it would be.
    bel_status *(*show)(const bel_job_record *record, const bel_plan *plan, bel_str *out);
    // Starts the job, which is in the registry, or hands it to a queue, detached from the caller.
    // Where nothing is waited for it returns once the job's supervisor runs, or has ended already:
    // read the record again. On failure the job is recorded as FAILED.
    bel_status *(*submit)(bel_job_record *record, const bel_plan *plan);
    // Asks the job to save and end; returns when it has been asked. FAILED_PRECONDITION: it does
    // not run.
    bel_status *(*cancel)(const bel_job_record *record);
    // What the engine knows of a job that is QUEUED or RUNNING elsewhere, into the record; NULL:
    // nothing beyond the record.
    bel_status *(*look)(bel_job_record *record);
    // Fetches what the job's processes have written so far into the record's logs/, as
    // supervisors name them there (ROLE-INDEX.INCARNATION.log); files only grow. NULL: they are
    // there.
    bel_status *(*logs)(const bel_job_record *record);
    // Before each line of --dry_run that is not what show appends, so that all of it can be handed
    // in; NULL: it is for people only.
    const char *comment;
    // Its processes see other folders than this host: inputs are not looked for here.
    bool far;
    // The way from the job's supervisor, which calls this, to its hosts; *out_reach is NULL where
    // all processes run on the supervisor's. NULL: they always do. Makes ready what hosts need.
    bel_status *(*reach)(const bel_job_record *record, const bel_plan *plan, bel_reach **out_reach);
} bel_engine;

const bel_engine *bel_engine_find(const char *name); // NULL: none of that name
const bel_engine *bel_engine_at(int index);          // NULL behind the last

// Makes a plan one for the engine, which calls what is said of it with such a plan only.
void bel_engine_place(const bel_engine *engine, bel_plan *plan);

// Reads a job with what its engine knows of it: bel_registry_read, and look.
bel_status *bel_engine_read_job(const char *name, bel_job_record **out_record) BEL_MUST_USE;

// Puts what its engine knows into a record that was read; that it cannot be asked is the record's
// message.
void bel_engine_look(bel_job_record *record);

#endif
