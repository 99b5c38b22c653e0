// Plan of a job: every process with its place, made before the first process starts.
#ifndef BELFRY_LAUNCH_CLUSTER_PLAN_H
#define BELFRY_LAUNCH_CLUSTER_PLAN_H

#include "launch/cluster/cluster_file.h"
#include "ps/layout/counting.h"
#include "ps/layout/rounding.h"

typedef struct bel_plan_process {
    bel_role role;
    int index;        // among the role's processes
    const char *host; // NULL: this one
    int towers;       // its worker's; 0 when it does not train
    int thread_count; // per tower or evaluation; 1 for a parameter server
    bool has_shard;   // a parameter server, or a worker of a job without them
} bel_plan_process;

typedef struct bel_plan {
    const bel_cluster *cluster;
    bel_plan_process *processes; // master, parameter servers, workers, evaluators
    int process_count;
    int worker_count;      // T: workers, the master included when it trains
    int replica_count;     // R: replicas in a step, counting those that take turns
    bel_counting counting; // the reports that make an update
    int shard_count;
    double stall_timeout_secs; // the cluster's; the reader of the flags may change it
    bool threads_given;        // by a flag, for every tower
    bool apart;                // each process has separate cores (bel_plan_move)
} bel_plan;

// Sizes of the model for the printed plan; 0: unknown.
typedef struct bel_plan_sizes {
    int64_t parameters;         // elements
    int64_t slot_elements;      // the optimizer's, for all parameters, which only shards have
    int64_t exchanged;          // elements of a report, if slots are among them (local steps)
    bel_rounding rounding;      // the type of reports (--exchange_precision)
    const int64_t *shard_bytes; // by shard: its parameters, 4 bytes each; NULL: equal shares
    int64_t activation_bytes;   // one tower's, with the gradients of local steps
    int64_t row_bytes;          // rows of tables in one step's batch, with gradients, per worker
    int64_t data_bytes;         // training data that a training process keeps
} bel_plan_sizes;

// Makes the plan. `towers` is the flags' number for every worker; 0: the machine's devices, or one.
// `threads` is the flags' number for each tower; 0: the machine's cores divided by the towers of
// all workers on the host. If no process trains, cores are divided by the processes instead. The
// cluster must outlive the plan. INVALID_ARGUMENT: flags ask for more towers than the machine's
// devices or than BEL_CLUSTER_MOST_DEVICES.
bel_status *bel_plan_create(const bel_cluster *cluster, int towers, int threads,
                            bel_plan **out_plan) BEL_MUST_USE;
void bel_plan_destroy(bel_plan *plan);

// Sets which reports make an update, from the training flags (bel_counting_of). Before this call
// every report counts.
void bel_plan_set_counting(bel_plan *plan, bel_counting_kind asked, int replicas_to_aggregate,
                           int accumulate_steps, int64_t max_staleness);

// Returns the bytes of memory of a process, an estimate: the sum of
// - Program: 16 MiB.
// - Shard: 2 × parameters + slots, once more parameters + slots while saving, and one report per
//   worker, but not more than BEL_REPORT_ROOM if all workers count. With rounded exchanges reports
//   are of the narrow type, and so are differences of the values, once.
//   With copies also the sums for its mirror, and for the mirror that it holds 3 × parameters +
//   slots.
// - Worker: 2 × parameters, per tower one gradient range and the activations, the data that it
//   keeps, and rows of tables with their gradients. With rounded exchanges twice the parameters in
//   the narrow type.
// - Master and evaluator: the parameters.
// Rows that tables gain during training are unknown beforehand.
double bel_plan_memory(const bel_plan *plan, int process, const bel_plan_sizes *sizes);

// For --dry_run: writes a table of processes (role, host, towers, threads), R, N and T, bytes of
// each shard, and the memory of each process. After the table comes a line for each host whose
// machine has less memory than that.
void bel_plan_write(const bel_plan *plan, const bel_plan_sizes *sizes, bel_str *out);

// For engines that reach other hosts. If a machine does not give its cores, its processes use the
// cores that they find (threads of 0). `apart`: every process has its machine's cores for itself
// and counts as the only one of its host.
void bel_plan_move(bel_plan *plan, bool apart);

// Returns the towers of `workers` workers. Each worker beyond the plan has the same number as its
// last one.
int bel_plan_towers(const bel_plan *plan, int workers);

// Returns the host of a task's process, also of one beyond the plan; NULL: this host.
const char *bel_plan_host(const bel_plan *plan, const bel_task *task);

// Returns the moves (task.h) that bring a parameter server with a copy to another host: if possible
// neither that of its copy nor that of the server whose copy it has, else not that of its copy.
// 0: there is no other host, or it has no copy, so no state could follow it. `moved`: the present
// moves by server. *out_mate: the server with which it is then on one host, though one has the copy
// of the other; -1: none.
int bel_plan_moves(const bel_plan *plan, const bel_task *task, const int *moved, int *out_mate);

// Returns the task of a process without addresses and without a secret (NULL); the launcher fills
// those in.
bel_task *bel_plan_task(const bel_plan *plan, const char *job, int process);

// Returns the task of a worker beyond the plan, which joins when a running job is scaled up. It is
// like the plan's last worker.
bel_task *bel_plan_added_task(const bel_plan *plan, const char *job, int index);

#endif
