// cluster.yaml: which processes a job has, on which machines. docs/cluster-yaml.md is the manual.
//
// Two families of keys, never mixed in one file. AI Platform's (scaleTier, masterType, workerType,
// parameterServerType, evaluatorType, workerCount, parameterServerCount, evaluatorCount …), flat or
// under `trainingInput:`, with their rules: a scale tier is required, counts need CUSTOM, a count
// above 0 needs its type and the other way round, and the master trains. And Belfry's own:
//
//   machines:            # named kinds of machine
//     box: {cores: 16, memory: 64 GiB, devices: 2}
//   master: {machine: box, host: a, trains: false}
//   workers: {count: 4, machine: box, devices: 2, hosts: [a, b]}
//   parameter_servers: {count: 2, machine: box, hosts: [c]}
//   evaluators: {count: 1, machine: box, hosts: [c]}
//   environment: {NAME: value}
//   limits: {join_timeout: 60, silence_timeout: 10, stall_timeout: 600, restarts: 10,
//            min_workers: 2}
//   security: {secret_file: FILE, tls: {ca: FILE, certificate: FILE, key: FILE}}
//   slurm: {partition: P, account: A, minutes: 60, gpus: true, options: [--qos=high]}
//   data: {a: /ssd, b: /mnt/data}  # where relative names of data lie, by host
//   notice: {file: FILE, command: COMMAND}  # that a machine is to go
//   kubernetes: {image: I, namespace: N, kind: jobset, volume_claim: C, mount: /models,
//                user: 10001, gpus: true, secret: S, service_account: A}
#ifndef BELFRY_LAUNCH_CLUSTER_FILE_H
#define BELFRY_LAUNCH_CLUSTER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"
#include "launch/task.h"

// A kind of machine. Zero: not said, the machine decides.
typedef struct bel_cluster_machine {
    char *name; // "" when the role names none
    int cores;
    int64_t memory_bytes;
    int devices;          // towers of a worker; on CPU machines a tower is a share of the cores
    bool devices_by_type; // of AI Platform's types: machines that are not here, so that more towers
                          // than devices share the cores
} bel_cluster_machine;

typedef struct bel_cluster_role {
    int count;
    bel_cluster_machine machine;
    char **hosts; // processes are assigned to them in turn; none: the local host
    size_t host_count;
} bel_cluster_role;

// Where relative names of data lie on a host.
typedef struct bel_cluster_data {
    char *host, *folder;
} bel_cluster_data;

// What Slurm is told of a job.
typedef struct bel_cluster_slurm {
    char *partition, *account; // NULL: its default
    int minutes;               // the time limit; 0: the partition's
    bool gpus;                 // devices of machines are GPUs, which Slurm gives out
    char **options;            // more words for sbatch
    size_t option_count;
} bel_cluster_slurm;

// What Kubernetes is told of a job. Names are as Kubernetes has them.
typedef struct bel_cluster_kubernetes {
    char *image;                // NULL: not said, as is each of the other texts
    char *name_space;           // "default" unless said
    bool tfjob;                 // a TFJob in place of a JobSet
    char *volume_claim, *mount; // the volume with the model's folder, and where pods see it
    int user;                   // of the processes, and their group
    bool gpus;                  // devices of machines are GPUs, which nodes give out
    char *secret;               // that there is already; NULL: one is made for the job
    char *service_account;
} bel_cluster_kubernetes;

typedef struct bel_cluster {
    char *source;                           // file name, for messages; "flags" without a file
    bel_cluster_role roles[BEL_ROLE_COUNT]; // the master's count is 1
    bool master_trains;                     // counts as a worker of its own, beside `workers`
    bool from_ai_platform;
    const char *scale_tier; // of AI Platform's keys, static; NULL: there is none
    char **environment;     // "NAME=value"
    size_t environment_count, environment_capacity;
    bel_cluster_data *data;
    size_t data_count;
    double join_timeout_secs, silence_timeout_secs;
    double stall_timeout_secs; // 0: not said, the program's settings do
    int restarts;              // of each process; 0: a process that dies ends the job
    int min_workers;           // so many are enough to go on, the training master included; 0: all
    char *secret_file;         // NULL: a secret is made up for the job
    char *tls_ca, *tls_certificate, *tls_key; // PEM files, NULL without TLS
    bel_cluster_slurm slurm;
    bel_cluster_kubernetes kubernetes;
} bel_cluster;

enum {
    BEL_CLUSTER_MOST = 1024,            // processes of a role; workers with the training master
    BEL_CLUSTER_MOST_DEVICES = 256,     // of a machine, and towers of a worker
    BEL_CLUSTER_MOST_SECONDS = 1000000, // of a limit: 11 days
    BEL_CLUSTER_MOST_RESTARTS = 1000000,
};

// A cluster of one master with these counts and everything else at its default.
bel_cluster *bel_cluster_create(int worker_count, int ps_count, int evaluator_count);

// Reads a file. INVALID_ARGUMENT with file:line:column: not YAML, an unknown key (names the
// nearest), a value of the wrong kind or out of range, keys of both families, clashing values, an
// undefined machine, more hosts than processes, impossible counts (a count of workers of 0 while
// the master does not train, more than BEL_CLUSTER_MOST workers when it does).
bel_status *bel_cluster_read(const char *path, bel_cluster **out_cluster) BEL_MUST_USE;
bel_status *bel_cluster_parse(const char *text, size_t length, const char *source,
                              bel_cluster **out_cluster) BEL_MUST_USE;

// An AI Platform's file that says no scaleTier, with this one in front of its keys. *out_text: NULL
// where it says one, or is of the other family; free with bel_free. INVALID_ARGUMENT: not YAML.
bel_status *bel_ai_platform_add_tier(const char *text, size_t length, const char *source,
                                     const char *tier, char **out_text) BEL_MUST_USE;

// Numbers that win over a file's; -1: that is left as it is.
typedef struct bel_cluster_changes {
    int worker_count, ps_count, evaluator_count, restarts, min_workers;
} bel_cluster_changes;

#define BEL_NO_CLUSTER_CHANGES ((bel_cluster_changes){-1, -1, -1, -1, -1})

// INVALID_ARGUMENT: a rule between counts that holds no more.
bel_status *bel_cluster_change(bel_cluster *cluster,
                               const bel_cluster_changes *changes) BEL_MUST_USE;

// The folder of data of a host; NULL: none is said.
const char *bel_cluster_data_folder(const bel_cluster *cluster, const char *host);

void bel_cluster_destroy(bel_cluster *cluster);

// Small letters, digits and -, neither - at an end, 63 at most: a name in Kubernetes.
bool bel_is_dns_label(const char *text, size_t length);

#endif
