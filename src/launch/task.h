// A task: what a process of a cluster knows of its job. Launchers write it into the environment,
// and bel_train_and_evaluate of the started program takes its role from there; the program's flags
// are the same in every role.
//
//   BELFRY_TASK    JSON, one object: {"job": "digits", "role": "worker", "index": 1,
//                  "incarnation": 0, "worker_count": 2, "parameter_server_count": 1,
//                  "evaluator_count": 0, "master_trains": 0, "master": "unix:/run/x/master",
//                  "listen": "unix:/run/x/worker-1", "towers": [2, 2], "threads": 1,
//                  "join_timeout_ms": 60000, "silence_timeout_ms": 10000, "recovers": 1,
//                  "stall_timeout_ms": 600000, "min_workers": 0, "added": 0,
//                  "supervisor": 4711, "lock": 3, "local_rank": 1, "local_size": 2,
//                  "sockets": "/run/x",
//                  "tls_ca": "ca.pem", "tls_certificate": "host.pem", "tls_key": "host.key",
//                  "counted": 0}
//   BELFRY_TASK_INDEX
//                  a number that is added to "index", where several processes have one BELFRY_TASK:
//                  of Kubernetes, which numbers the pods of a job from 0
//   BELFRY_SECRET  what every call of the job must show; never on a command line.
//                  BELFRY_SECRET_FILE names a file with it
//   TF_CONFIG      TensorFlow's description, read when BELFRY_TASK is not set (reference:
//                  tf.estimator.RunConfig): cluster {chief or master, worker, ps}, task
//   BELFRY_TLS_CA, BELFRY_TLS_CERTIFICATE, BELFRY_TLS_KEY
//                  PEM files, where BELFRY_TASK does not say them
//
// Where neither is set, the variables of other launchers count (task_launcher.h).
//
// Without local_size all workers are taken to be on one host.
//
// TF_CONFIG says less. There, chief or master trains and is worker 0, so that its worker 0 is
// worker 1 here, unless the program says that the chief does not train (bel_run_config); an
// evaluator has no entry in the cluster, so no master waits for it and it follows the checkpoints;
// addresses tell which workers share a host; what is not said has its default.
// Members come back there (a pod is restarted), and how often a role was started in the model
// folder is its incarnation (start_count.h). So it is of a BELFRY_TASK with "counted": 1, whose
// launcher starts processes again without a word of it.
#ifndef BELFRY_LAUNCH_TASK_H
#define BELFRY_LAUNCH_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"
#include "wire/role.h"

typedef struct bel_task {
    char *job; // the job's name, for messages
    bel_role role;
    int index;            // among the role's processes, from 0
    uint32_t incarnation; // rises when the process is replaced
    int worker_count;     // the master included when it trains
    int local_rank;       // among the workers on this process's host, -1: it is none
    int local_size;       // how many these are; one that was added later is not among them
    int ps_count;         // 0: every worker holds a shard
    int evaluator_count;  // 0: the master evaluates
    bool master_trains;   // the master's process is worker 0 as well; others follow from 1
    char *master_address; // where members find the master: "unix:/path", "host:port"
    char *listen_address; // where this process serves; a port of 0 is chosen by the system, and a
                          // host of * is this host's address on the way to the master
    char *socket_folder;  // that the first process of the job makes; NULL: somebody has made it
    char *secret;         // "" for none
    char *tls_ca, *tls_certificate, *tls_key; // PEM files; NULL without TLS
    int *towers;                              // of each worker; NULL: the program's flags say
    int thread_count; // threads of a tower; 0: the machine's cores divided by its towers
    double join_timeout_secs, silence_timeout_secs; // resolved: 60 and 10 unless told
    double stall_timeout_secs;                      // 0: the program's settings say
    int min_workers; // this many are enough to go on when others stay away; 0: all are needed
    bool added;      // a worker of an index above, by which the running job was scaled up
    bool follows;    // an evaluator that no master knows of: it follows the checkpoints by itself
    bool foreign;    // of another launcher, or "counted": its incarnation is counted once the
                     // model folder is known
    bool recovers;   // members that are lost come back within the join timeout, and are waited for
    int64_t supervisor; // pid of the parent with which this process ends; 0: none
    bool carried;       // by which it was started for a supervisor on another host (carry.h): when
                        // that parent is killed, another process takes this one's place
    char *note;         // for the log: what was read otherwise than written; NULL: nothing was
    int lock;           // of a master: a descriptor with the model folder's lock; 0: none
} bel_task;

// In place of an address that is known only where the process runs.
#define BEL_TASK_ANY_ADDRESS "*:0"

// The task of this process; NULL when the environment has none (an empty variable is none, and so
// is a TF_CONFIG without a cluster): then everything runs in one process. `chief_trains`: what
// TF_CONFIG and ranks do not say. INVALID_ARGUMENT names the variable, the member and what was
// expected.
bel_status *bel_task_from_environment(bool chief_trains, bel_task **out_task) BEL_MUST_USE;

// The same from texts; `tf_config` and `secret` may be NULL. For tests.
bel_status *bel_task_parse(const char *belfry_task, const char *tf_config, const char *secret,
                           bool chief_trains, bel_task **out_task) BEL_MUST_USE;

// Makes the task that of the process which is so many behind it among those of its role, as
// BELFRY_TASK_INDEX says. INVALID_ARGUMENT: the text is no number, or the role has no such process.
bel_status *bel_task_move(bel_task *task, const char *index) BEL_MUST_USE;

void bel_task_destroy(bel_task *task);

// Names the model folder to programs whose settings name none (bel_run_config.model_dir). From a
// supervisor it is the job's folder, which it has locked.
#define BEL_MODEL_DIR_VARIABLE "BELFRY_MODEL_DIR"

// What a master writes into its model folder, and removes: members read it there.
#define BEL_TOKEN_FILE "job.token"
// How long a member reads the token again, and the master waits for that, as a network file system
// may show an older folder for a moment.
enum { BEL_TOKEN_PATIENCE_SECS = 5 };

// From now on this process ends when its supervisor does, if it has one: it saves, or a process
// that was started over the way of a supervisor on another host is killed, and replaced. A program
// calls it first, before it reads data.
void bel_task_follow_supervisor(void);

// True while lost members come back: the task says so, and their supervisor is still there.
bool bel_task_recovers(const bel_task *task);

// Appends the JSON of BELFRY_TASK (without the secret); bel_task_parse takes it back.
void bel_task_write(const bel_task *task, bel_str *out);

#endif
