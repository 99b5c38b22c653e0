// Jobs that were submitted, in $XDG_STATE_HOME/belfry/jobs (or ~/.local/state/belfry/jobs): a
// folder each, with job.json (what was asked), cluster.yaml (a copy of its cluster file),
// status.json (what became of it, rewritten atomically about once a second while it runs) and
// logs/. docs/operations.md describes these files.
//
// Thread-compatible. Processes may read at any time; a job's status is written by the process whose
// pid stands in it: first the one that submits, then the supervisor.
#ifndef BELFRY_LAUNCH_REGISTRY_H
#define BELFRY_LAUNCH_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "launch/cluster_file.h"

typedef enum bel_job_state {
    BEL_JOB_QUEUED,
    BEL_JOB_RUNNING,
    BEL_JOB_SUCCEEDED,
    BEL_JOB_FAILED,
    BEL_JOB_CANCELLED,
    BEL_JOB_LOST, // was running when its supervisor or the machine went away; can be resumed
} bel_job_state;

const char *bel_job_state_name(bel_job_state state); // "RUNNING"
bool bel_job_state_is_final(bel_job_state state);    // neither QUEUED nor RUNNING

typedef struct bel_job_record {
    char *name;
    char *engine;    // "local"
    char *engine_id; // the engine's own name for the job: Slurm's number; "": it has none
    char *folder;    // of the job, in the registry; set by reading
    char *model_dir; // "" when the arguments name none
    char *config;    // path of the cluster file that was submitted, absolute
    char *cluster;   // what it said then; not set by reading: bel_job_record_cluster
    bel_cluster_changes changes; // that win over it
    char *directory;             // in which it was submitted and its processes run, absolute
    char *program;               // of every process, absolute; "": belfry itself
    char **arguments;            // of every process, behind the program's name
    size_t argument_count;
    bel_job_state state;
    int exit_code;
    char *message;         // why it failed, or ""
    int64_t supervisor;    // pid; while QUEUED that of the process that submits
    int64_t started_ticks; // of that pid, /proc/PID/stat field 22: tells a reused pid apart
    char *boot_id;         // of the machine when it was started
    char *host;            // its name
    int64_t pid_namespace; // in which the pid is meant
    bool elsewhere;        // set by reading: on a machine or in a container of which this process
                           // cannot see whether the job still runs
    double submitted_at, started_at, ended_at; // seconds since 1970; 0: not yet
    char *progress; // the newest progress object of the master as JSON, or ""
} bel_job_record;

void bel_job_record_destroy(bel_job_record *record);

// The cluster of a record that was read, as it was submitted, whatever became of that file since.
// Free with bel_cluster_destroy.
bel_status *bel_job_record_cluster(const bel_job_record *record,
                                   bel_cluster **out_cluster) BEL_MUST_USE;

// Puts this process into a record: supervisor, started_ticks, boot_id, host, pid_namespace.
void bel_job_record_set_process(bel_job_record *record);

// Where a job of that name has, or would have, its folder. INVALID_ARGUMENT, FAILED_PRECONDITION as
// below. Free with bel_free.
bel_status *bel_registry_folder(const char *name, char **out_folder) BEL_MUST_USE;

// Makes the folder of a new job, with its logs/. Of the record, what was asked counts; the job is
// QUEUED by this process. ALREADY_EXISTS: the name is taken by a job that has not ended, or may run
// elsewhere (one that has ended is replaced only with `replace`). INVALID_ARGUMENT: a name must be
// letters, digits, _ and -, at most 100 of them, and begin with a letter; texts must be UTF-8.
// FAILED_PRECONDITION: neither XDG_STATE_HOME nor HOME says where, or others have been adding jobs
// for ten seconds.
bel_status *bel_registry_add(const bel_job_record *record, bool replace) BEL_MUST_USE;

// Makes a job that has ended, or was lost, QUEUED by this process again, as it was submitted; its
// logs stay. NOT_FOUND. FAILED_PRECONDITION: it is queued or runs, here or elsewhere.
bel_status *bel_registry_requeue(const char *name) BEL_MUST_USE;

// Removes the record and the logs of a job that has ended; its model's folder stays. NOT_FOUND.
// FAILED_PRECONDITION: it is queued or runs, here or elsewhere.
bel_status *bel_registry_remove(const char *name) BEL_MUST_USE;

// Makes this process the one that runs a QUEUED job, and reads it. `again` is the engine's own name
// of the job that it has started anew, so that one which was running, lost or stopped begins again,
// too; NULL: it has not. FAILED_PRECONDITION: it is in another state, or was submitted anew as
// another job of the engine's.
bel_status *bel_registry_claim(const char *name, const char *again,
                               bel_job_record **out_record) BEL_MUST_USE;

// Keeps the engine's own name for the job, beside its status: whoever submits it learns the name
// when the job may have begun to write the status itself.
bel_status *bel_registry_set_engine_id(const bel_job_record *record, const char *id) BEL_MUST_USE;

// The engine says that a job has ended, or is no more, of which nobody else will: its record
// becomes that, unless its own process has written an end meanwhile. Reads the record anew.
bel_status *bel_registry_conclude(bel_job_record *record, bel_job_state state,
                                  const char *message) BEL_MUST_USE;

// Writes status.json of an existing job.
bel_status *bel_registry_update(const bel_job_record *record) BEL_MUST_USE;

// Reads one job; QUEUED or RUNNING becomes LOST when its process is gone (other boot id, pid or
// start time), but stays as it is for a job elsewhere. NOT_FOUND names the nearest name there is.
// DATA_LOSS: a damaged record.
bel_status *bel_registry_read(const char *name, bel_job_record **out_record) BEL_MUST_USE;

// All jobs, newest first; damaged ones are passed over with a warning. Destroy each, and free the
// array with bel_free.
bel_status *bel_registry_list(bel_job_record ***out_records, size_t *out_count) BEL_MUST_USE;

#endif
