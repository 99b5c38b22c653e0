// Engines: the places and ways to run a submitted job. All engines get the same description of a
// job: its record and its plan.
#ifndef BELFRY_LAUNCH_ENGINE_ENGINE_H
#define BELFRY_LAUNCH_ENGINE_ENGINE_H

#include "launch/cluster/cluster_file.h"
#include "launch/cluster/reach.h"
#include "launch/engine/registry.h"

typedef struct bel_engine {
    const char *name;
    // INVALID_ARGUMENT: this engine cannot run such a cluster; the message has the reason, e.g.
    // hosts for "local".
    bel_status *(*check)(const bel_cluster *cluster);
    bool apart;      // each process has a separate share of a host (bel_plan_move)
    bool fixed_size; // a job cannot get more workers than at its submission
    // For --dry_run: appends the exact text that would be submitted.
    bel_status *(*show)(const bel_job_record *record, const bel_plan *plan, bel_str *out);
    // Starts the job, which is in the registry, or submits it to a queue, detached from the caller.
    // An engine without a queue returns when the job's supervisor runs or has already exited, so
    // read the record again. On failure the job is recorded as FAILED.
    bel_status *(*submit)(bel_job_record *record, const bel_plan *plan);
    // Asks the job to save and end; returns once the request is sent. FAILED_PRECONDITION: the job
    // does not run.
    bel_status *(*cancel)(const bel_job_record *record);
    // Updates the record of a job that is QUEUED or RUNNING elsewhere with the engine's knowledge.
    // NULL: the engine knows no more than the record.
    bel_status *(*look)(bel_job_record *record);
    // Fetches the output of the job's processes so far into the record's logs/, with the
    // supervisor's file names (ROLE-INDEX.INCARNATION.log). Files only grow. NULL: the files are
    // already there.
    bel_status *(*logs)(const bel_job_record *record);
    // Prefix for each line of --dry_run that `show` did not append, so that the whole output can be
    // submitted. NULL: the output is only for people.
    const char *comment;
    // Its processes see other folders than this host, so inputs are not checked here.
    bool far;
    // Creates the reach from the job's supervisor, which calls this, to its hosts, and prepares the
    // hosts. *out_reach is NULL if all processes run on the supervisor's host. NULL: they always
    // do.
    bel_status *(*reach)(const bel_job_record *record, const bel_plan *plan, bel_reach **out_reach);
} bel_engine;

const bel_engine *bel_engine_find(const char *name); // NULL: no engine of that name
const bel_engine *bel_engine_at(int index);          // NULL after the last

// Adapts a plan to the engine. The engine's other functions must get only such plans.
void bel_engine_place(const bel_engine *engine, bel_plan *plan);

// Reads a job with its engine's knowledge: bel_registry_read, then bel_engine_look.
bel_status *bel_engine_read_job(const char *name, bel_job_record **out_record) BEL_MUST_USE;

// Updates a record with its engine's knowledge. If the engine cannot be asked, the record's message
// says so.
void bel_engine_look(bel_job_record *record);

#endif
