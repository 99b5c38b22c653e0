// cluster.yaml: the processes of a job and their machines. docs/cluster-yaml.md is the manual.
//
// A file has keys of one of two families, never of both. AI Platform's keys are scaleTier,
// masterType, workerType, parameterServerType, evaluatorType, workerCount, parameterServerCount,
// evaluatorCount …, flat or under `trainingInput:`. Their rules apply: a scale tier is required,
// counts need CUSTOM, a count above 0 needs its type and vice versa, and the master trains.
// Belfry's keys:
//
//   machines:            # named kinds of machine
//     box: {cores: 16, memory: 64 GiB, devices: 2}
//   master: {machine: box, host: a, trains: false}
//   workers: {count: 4, machine: box, devices: 2, hosts: [a, b]}
//   parameter_servers: {count: 2, machine: box, hosts: [c], copies: 1}
//   evaluators: {count: 1, machine: box, hosts: [c]}
//   environment: {NAME: value}
//   limits: {join_timeout: 60, silence_timeout: 10, stall_timeout: 600, restarts: 10,
//            min_workers: 2}
//   security: {secret_file: FILE, tls: {ca: FILE, certificate: FILE, key: FILE}}
//   slurm: {partition: P, account: A, minutes: 60, gpus: true, options: [--qos=high]}
//   data: {a: /ssd, b: /mnt/data}  # folder of relative data names, by host
//   notice: {file: FILE, command: COMMAND}  # reports that a machine will shut down
//   kubernetes: {image: I, namespace: N, kind: jobset, volume_claim: C, mount: /models,
//                user: 10001, gpus: true, secret: S, service_account: A}
#ifndef BELFRY_LAUNCH_CLUSTER_CLUSTER_FILE_H
#define BELFRY_LAUNCH_CLUSTER_CLUSTER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "launch/task/task.h"

// A kind of machine. Zero: unset, the machine decides.
typedef struct bel_cluster_machine {
    char *name; // "" when the role names none
    int cores;
    int64_t memory_bytes;
    int devices;          // towers of a worker; on CPU machines each is a share of the cores
    bool devices_by_type; // true for AI Platform's types: their machines are not here, so more
                          // towers than devices share the cores
} bel_cluster_machine;

typedef struct bel_cluster_role {
    int count;
    bel_cluster_machine machine;
    char **hosts; // processes are assigned to them in turn; empty: the local host
    size_t host_count;
    int copies; // copies of a parameter server's state, in another one's process: 0 or 1
} bel_cluster_role;

// The folder for relative data names on one host.
typedef struct bel_cluster_data {
    char *host, *folder;
} bel_cluster_data;

// Slurm settings of a job.
typedef struct bel_cluster_slurm {
    char *partition, *account; // NULL: Slurm's default
    int minutes;               // the time limit; 0: the partition's
    bool gpus;                 // the machines' devices are GPUs that Slurm allocates
    char **options;            // more arguments for sbatch
    size_t option_count;
} bel_cluster_slurm;

// Kubernetes settings of a job. Names have Kubernetes' syntax.
typedef struct bel_cluster_kubernetes {
    char *image;                // NULL: unset, as for the other texts
    char *name_space;           // "default" if unset
    bool tfjob;                 // a TFJob instead of a JobSet
    char *volume_claim, *mount; // the volume with the model folder, and its path in the pods
    int user;                   // user and group ID of the processes
    bool gpus;                  // the machines' devices are GPUs that nodes allocate
    char *secret;               // an existing secret; NULL: the job creates one
    char *service_account;
} bel_cluster_kubernetes;

typedef struct bel_cluster {
    char *source;                           // file name, for messages; "flags" without a file
    bel_cluster_role roles[BEL_ROLE_COUNT]; // the master's count is 1
    bool master_trains;                     // as one more worker, besides `workers`
    bool from_ai_platform;
    const char *scale_tier; // AI Platform's value, static; NULL: absent
    char **environment;     // "NAME=value"
    size_t environment_count, environment_capacity;
    bel_cluster_data *data;
    size_t data_count;
    double join_timeout_secs, silence_timeout_secs;
    double stall_timeout_secs; // 0: unset, the program's settings decide
    int restarts;              // per process; 0: the death of a process ends the job
    int min_workers;           // minimum to continue with, the training master included; 0: all
    char *secret_file;         // NULL: the job gets a random secret
    char *tls_ca, *tls_certificate, *tls_key; // PEM files; NULL: no TLS
    bel_cluster_slurm slurm;
    bel_cluster_kubernetes kubernetes;
} bel_cluster;

enum {
    BEL_CLUSTER_MOST = 1024,            // processes of a role; for workers with the training master
    BEL_CLUSTER_MOST_DEVICES = 256,     // devices of a machine, and towers of a worker
    BEL_CLUSTER_MOST_SECONDS = 1000000, // longest limit: 11 days
    BEL_CLUSTER_MOST_RESTARTS = 1000000,
};

// Creates a cluster of one master with these counts and default settings.
bel_cluster *bel_cluster_create(int worker_count, int ps_count, int evaluator_count);

// Reads a file. INVALID_ARGUMENT, with file:line:column:
// - not YAML, keys of both families, or an unknown key (names the nearest).
// - a value of the wrong kind or out of range, or clashing values.
// - an undefined machine, or more hosts than processes.
// - copies of parameter servers without a second one, without restarts, or on the host of their
//   shard.
// - impossible counts: 0 workers and a master that does not train, or more than BEL_CLUSTER_MOST
//   workers with a master that trains.
bel_status *bel_cluster_read(const char *path, bel_cluster **out_cluster) BEL_MUST_USE;
bel_status *bel_cluster_parse(const char *text, size_t length, const char *source,
                              bel_cluster **out_cluster) BEL_MUST_USE;

// Returns the text of an AI Platform file without scaleTier, with this tier added before its keys.
// *out_text is NULL if the file has a scaleTier or is of the other family; free with bel_free.
// INVALID_ARGUMENT: not YAML.
bel_status *bel_ai_platform_add_tier(const char *text, size_t length, const char *source,
                                     const char *tier, char **out_text) BEL_MUST_USE;

// Numbers that override a file's; -1: unchanged.
typedef struct bel_cluster_changes {
    int worker_count, ps_count, evaluator_count, restarts, min_workers, copies;
} bel_cluster_changes;

#define BEL_NO_CLUSTER_CHANGES ((bel_cluster_changes){-1, -1, -1, -1, -1, -1})

// INVALID_ARGUMENT: a rule between counts no longer holds.
bel_status *bel_cluster_change(bel_cluster *cluster,
                               const bel_cluster_changes *changes) BEL_MUST_USE;

// Returns a host's data folder; NULL: unset.
const char *bel_cluster_data_folder(const bel_cluster *cluster, const char *host);

void bel_cluster_destroy(bel_cluster *cluster);

// True for a name in Kubernetes: 1 to 63 lowercase letters, digits and dashes; no dash at either
// end.
bool bel_is_dns_label(const char *text, size_t length);

#endif
