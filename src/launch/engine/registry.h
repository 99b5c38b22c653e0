// Registry of submitted jobs, in $XDG_STATE_HOME/belfry/jobs (or ~/.local/state/belfry/jobs). Each
// job has a folder with job.json (the submission), cluster.yaml (a copy of its cluster file),
// status.json (the state, rewritten atomically about once a second while the job runs) and logs/.
// docs/operations.md describes these files.
//
// Thread-compatible. Processes may read at any time. A job's status is written by the process whose
// pid is in it: first the submitting process, then the supervisor.
#ifndef BELFRY_LAUNCH_ENGINE_REGISTRY_H
#define BELFRY_LAUNCH_ENGINE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "launch/cluster/cluster_file.h"

typedef enum bel_job_state {
    BEL_JOB_QUEUED,
    BEL_JOB_RUNNING,
    BEL_JOB_SUCCEEDED,
    BEL_JOB_FAILED,
    BEL_JOB_CANCELLED,
    BEL_JOB_LOST, // its supervisor or the machine went away; can be resumed
} bel_job_state;

const char *bel_job_state_name(bel_job_state state); // "RUNNING"
bool bel_job_state_is_final(bel_job_state state);    // neither QUEUED nor RUNNING

typedef struct bel_job_record {
    char *name;
    char *engine;    // "local"
    char *engine_id; // the engine's name for the job, e.g. Slurm's number; "": no name
    char *folder;    // the job's, in the registry; set by reading
    char *model_dir; // "" when the arguments name none
    char *config;    // path of the cluster file that was submitted, absolute
    char *cluster;   // its text at submission; not set by reading: bel_job_record_cluster
    bel_cluster_changes changes; // override the cluster file
    char *directory;             // working directory of the submission and its processes, absolute
    char *program;               // every process's, absolute; "": belfry itself
    char **arguments;            // every process's, after the program's name
    size_t argument_count;
    bel_job_state state;
    int exit_code;
    char *message;         // why it failed, or ""
    int64_t supervisor;    // pid; while QUEUED the submitting process's
    int64_t started_ticks; // the pid's, /proc/PID/stat field 22: detects a reused pid
    char *boot_id;         // the machine's at the job's start
    char *host;            // the machine's name
    int64_t pid_namespace; // namespace of the pid
    bool elsewhere;        // set by reading: on another machine or in another container, so this
                           // process cannot see whether the job still runs
    double submitted_at, started_at, ended_at; // seconds since 1970; 0: not yet
    char *progress;                            // the master's newest progress object as JSON, or ""
} bel_job_record;

void bel_job_record_destroy(bel_job_record *record);

// Reads a record's cluster as it was submitted, even if that file has changed since. Free with
// bel_cluster_destroy.
bel_status *bel_job_record_cluster(const bel_job_record *record,
                                   bel_cluster **out_cluster) BEL_MUST_USE;

// Puts this process into a record: supervisor, started_ticks, boot_id, host, pid_namespace.
void bel_job_record_set_process(bel_job_record *record);

// Returns the folder of a job of that name, existing or not. INVALID_ARGUMENT, FAILED_PRECONDITION
// as below. Free with bel_free.
bel_status *bel_registry_folder(const char *name, char **out_folder) BEL_MUST_USE;

// Gets the path of a folder of Belfry's state, $XDG_STATE_HOME/belfry/NAME (or
// ~/.local/state/belfry/NAME), which need not exist. Free with bel_free. FAILED_PRECONDITION:
// neither XDG_STATE_HOME nor HOME is set.
bel_status *bel_state_folder(const char *name, char **out_path) BEL_MUST_USE;

// Creates a new job's folder with its logs/. Only the submission's fields of the record are used;
// the job is QUEUED by this process.
// ALREADY_EXISTS: the name belongs to a job that runs or may run elsewhere, or, without `replace`,
// to a finished job.
// INVALID_ARGUMENT: an invalid name (valid: 1 to 100 letters, digits, _ and -, starting with a
// letter), or a text that is not UTF-8.
// FAILED_PRECONDITION: neither XDG_STATE_HOME nor HOME is set, or other processes have been adding
// jobs for ten seconds.
bel_status *bel_registry_add(const bel_job_record *record, bool replace) BEL_MUST_USE;

// Makes a finished or lost job QUEUED by this process again, as it was submitted; its logs stay.
// NOT_FOUND. FAILED_PRECONDITION: it is queued or runs, here or elsewhere.
bel_status *bel_registry_requeue(const char *name) BEL_MUST_USE;

// Removes the record and the logs of a finished job; its model folder stays. NOT_FOUND.
// FAILED_PRECONDITION: it is queued or runs, here or elsewhere.
bel_status *bel_registry_remove(const char *name) BEL_MUST_USE;

// Makes this process the one that runs a QUEUED job, and reads the job. `again` is the engine's
// name of a job that the engine restarted: such a job may also be running, lost or stopped. NULL:
// not a restart. FAILED_PRECONDITION: the job is in another state, or was resubmitted as another
// job of the engine.
bel_status *bel_registry_claim(const char *name, const char *again,
                               bel_job_record **out_record) BEL_MUST_USE;

// Stores the engine's name for the job in a separate file beside the status. The submitting process
// may learn the name after the job has started to write the status.
bel_status *bel_registry_set_engine_id(const bel_job_record *record, const char *id) BEL_MUST_USE;

// Records the final state that the engine reports for an ended or missing job, which has no process
// to record it. Does nothing if the job's process has recorded an end meanwhile. Rereads the
// record.
bel_status *bel_registry_conclude(bel_job_record *record, bel_job_state state,
                                  const char *message) BEL_MUST_USE;

// Writes status.json of an existing job.
bel_status *bel_registry_update(const bel_job_record *record) BEL_MUST_USE;

// Reads one job. QUEUED or RUNNING becomes LOST if its process is gone (other boot ID, pid or start
// time), except for a job elsewhere. NOT_FOUND names the nearest existing name. DATA_LOSS: a
// damaged record.
bel_status *bel_registry_read(const char *name, bel_job_record **out_record) BEL_MUST_USE;

// Reads all jobs, newest first; skips damaged ones with a warning. Destroy each, and free the array
// with bel_free.
bel_status *bel_registry_list(bel_job_record ***out_records, size_t *out_count) BEL_MUST_USE;

#endif
