// Task: a process's knowledge of its job. Launchers write it into the environment, and
// bel_train_and_evaluate of the started program takes its role from it. The program's flags are the
// same in every role.
//
//   BELFRY_TASK    JSON, one object: {"job": "digits", "role": "worker", "index": 1,
//                  "incarnation": 0, "worker_count": 2, "parameter_server_count": 1,
//                  "evaluator_count": 0, "master_trains": 0, "master": "unix:/run/x/master",
//                  "listen": "unix:/run/x/worker-1", "towers": [2, 2], "threads": 1,
//                  "join_timeout_ms": 60000, "silence_timeout_ms": 10000, "recovers": 1,
//                  "stall_timeout_ms": 600000, "min_workers": 0, "added": 0,
//                  "supervisor": 4711, "lock": 3, "local_rank": 1, "local_size": 2,
//                  "memory": 3, "copies": 0,
//                  "parameter_server_hosts": 0, "host": "a", "sockets": "/run/x",
//                  "tls_ca": "ca.pem", "tls_certificate": "host.pem", "tls_key": "host.key",
//                  "counted": 0}
//   BELFRY_TASK_INDEX
//                  a number that is added to "index" when processes share one BELFRY_TASK:
//                  Kubernetes sets it, as it numbers the pods of a job from 0
//   BELFRY_SECRET  secret that every call of the job must send; never on a command line.
//                  BELFRY_SECRET_FILE names a file with it
//   TF_CONFIG      TensorFlow's description, read when BELFRY_TASK is not set (reference:
//                  tf.estimator.RunConfig): cluster {chief or master, worker, ps}, task
//   BELFRY_TLS_CA, BELFRY_TLS_CERTIFICATE, BELFRY_TLS_KEY
//                  PEM files, if BELFRY_TASK does not name them
//
// If neither is set, other launchers' variables apply (task_launcher.h).
//
// Without local_size all workers count as on one host.
//
// - The chief or master trains and is worker 0, so worker 0 of TF_CONFIG is worker 1 here. The
//   exception is a program that says that the chief does not train (bel_run_config).
// - An evaluator has no entry in the cluster, so no master waits for it, and it follows the
//   checkpoints.
// - Equal hosts in the addresses tell which workers share a host.
// - Absent values have their defaults.
// - Members come back (a pod is restarted). The number of a role's starts in the model folder is
//   its incarnation (start_count.h). The same applies to a BELFRY_TASK with "counted": 1, whose
//   launcher restarts processes silently.
#ifndef BELFRY_LAUNCH_TASK_TASK_H
#define BELFRY_LAUNCH_TASK_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"
#include "wire/role.h"

typedef struct bel_str bel_str; // base/str.h

typedef struct bel_task {
    char *job; // the job's name, for messages
    bel_role role;
    int index;            // among the role's processes, from 0
    uint32_t incarnation; // rises when the process is replaced
    int worker_count;     // the master included when it trains
    int local_rank;       // among the workers on this process's host; -1: not a worker
    int local_size;       // number of these, without workers that were added later
    int ps_count;         // 0: every worker holds a shard
    int evaluator_count;  // 0: the master evaluates
    bool master_trains;   // the master's process is also worker 0; others follow from 1
    char *master_address; // address at which members find the master: "unix:/path", "host:port"
    char *listen_address; // this process's; the system chooses a port for 0, and * as the host is
                          // this host's address on the route to the master
    char *host;           // its host's name in the cluster file; NULL: unknown
    char *socket_folder;  // created by the job's first process; NULL: exists already
    char *secret;         // "": no secret
    char *tls_ca, *tls_certificate, *tls_key; // PEM files; NULL without TLS
    int *towers;                              // per worker; NULL: the program's flags decide
    int thread_count; // threads of a tower; 0: the machine's cores divided by its towers
    double join_timeout_secs, silence_timeout_secs; // resolved: 60 and 10 by default
    double stall_timeout_secs;                      // 0: the program's settings decide
    int min_workers; // minimum to continue with when others are absent; 0: all are needed
    int ps_hosts;    // parameter server i is on host i mod ps_hosts; 0: unknown
    int moves;       // in a supervisor: a parameter server starts on the host of the server that
                     // is this many further on, as its host stays away
    int copies;      // copies of each parameter server's state in another one's process: 0 or 1
    bool added;      // a worker that joined later, when the running job was scaled up
    bool follows;    // an evaluator that is unknown to the master and follows the checkpoints
    bool foreign;    // another launcher's, or "counted": its incarnation is counted once the model
                     // folder is known
    bool recovers;   // lost members come back within the join timeout, and the job waits
    int64_t supervisor; // pid of the parent, with which this process ends; 0: none
    bool carried;       // started by `carry` for a supervisor on another host (carry.h); if that
                        // parent is killed, another process replaces this one
    char *note;         // for the log: input that was reinterpreted; NULL: none
    int lock;           // for a master: descriptor with the model folder's lock; 0: none
    int memory; // for a process with a shard: descriptor of memory that outlives it; 0: none
} bel_task;

// Stands for an address that is known only where the process runs.
#define BEL_TASK_ANY_ADDRESS "*:0"

// Reads this process's task. NULL: the environment has none, so everything runs in one process; an
// empty variable and a TF_CONFIG without a cluster count as none. `chief_trains`: applies to
// TF_CONFIG and ranks, which do not say it. INVALID_ARGUMENT names the variable, the member and the
// expected value.
bel_status *bel_task_from_environment(bool chief_trains, bel_task **out_task) BEL_MUST_USE;

// The same from texts; `tf_config` and `secret` may be NULL. For tests.
bel_status *bel_task_parse(const char *belfry_task, const char *tf_config, const char *secret,
                           bool chief_trains, bel_task **out_task) BEL_MUST_USE;

void bel_task_destroy(bel_task *task);

// Names the model folder for programs whose settings have none (bel_run_config.model_dir). A
// supervisor sets it to the job's folder, which it has locked.
#define BEL_MODEL_DIR_VARIABLE "BELFRY_MODEL_DIR"

// File that a master writes into its model folder, and removes; members read it there.
#define BEL_TOKEN_FILE "job.token"
// Time for which a member rereads the token, and the master waits, as a network file system may
// show an older folder for a moment.
enum { BEL_TOKEN_PATIENCE_SECS = 5 };

// Makes this process end with its supervisor, if it has one. It then saves; a process with a
// supervisor on another host is killed and replaced instead. Call it before the program reads data.
void bel_task_follow_supervisor(void);

// True while lost members come back: the task says so, and its supervisor is still there.
bool bel_task_recovers(const bel_task *task);

// Appends the JSON of BELFRY_TASK (without the secret), which bel_task_parse reads.
void bel_task_write(const bel_task *task, bel_str *out);

#endif
