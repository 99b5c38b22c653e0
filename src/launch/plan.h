// The plan of a job: every process with its place, before anything is started.
#ifndef BELFRY_LAUNCH_PLAN_H
#define BELFRY_LAUNCH_PLAN_H

#include "launch/cluster_file.h"
#include "ps/layout/counting.h"

typedef struct bel_plan_process {
    bel_role role;
    int index;        // among the role's processes
    const char *host; // NULL: this one
    int towers;       // of its worker; 0 when it does not train
    int thread_count; // of each tower, or of an evaluation; 1 for a parameter server
    bool has_shard;   // a parameter server, or a worker when there are none
} bel_plan_process;

typedef struct bel_plan {
    const bel_cluster *cluster;
    bel_plan_process *processes; // master, parameter servers, workers, evaluators
    int process_count;
    int worker_count;      // T: workers, the master included when it trains
    int replica_count;     // R: what they play in a step, one after the other where they take turns
    bel_counting counting; // whose reports make an update
    int shard_count;
    double stall_timeout_secs; // the cluster's; whoever has read flags may change it
    bool threads_given;        // by a flag, for every tower
    bool apart;                // each process has cores of its own (bel_plan_move)
} bel_plan;

// What is known of the model when the plan is printed; zeros when nothing is known.
typedef struct bel_plan_sizes {
    int64_t parameters;         // elements
    int64_t slot_elements;      // of the optimizer, for all parameters
    const int64_t *shard_bytes; // by shard: its parameters, 4 bytes each; NULL: even shares
    int64_t activation_bytes;   // of one tower
    int64_t row_bytes;          // of tables: rows of one step's batch and their gradients, a worker
    int64_t data_bytes;         // what a process that trains keeps of the training data
} bel_plan_sizes;

// `towers` is what the flags say for every worker (0: the machine's devices, or one); `threads` the
// same for each tower (0: the cores of the machine divided by the towers that share it, counting
// every worker of that host; where no process trains, divided by the processes). The cluster must
// outlive the plan. INVALID_ARGUMENT: flags ask for more towers than a machine has devices, or for
// more than BEL_CLUSTER_MOST_DEVICES.
bel_status *bel_plan_create(const bel_cluster *cluster, int towers, int threads,
                            bel_plan **out_plan) BEL_MUST_USE;
void bel_plan_destroy(bel_plan *plan);

// Whose reports make an update, as the training flags say (bel_counting_of). Before it all are
// counted.
void bel_plan_set_counting(bel_plan *plan, bel_counting_kind asked, int replicas_to_aggregate,
                           int accumulate_steps, int64_t max_staleness);

// For --dry_run: a table of processes (role, host, towers, threads), R, N and T, bytes of each
// shard, and the memory that each process needs: the program itself 16 MiB; a shard 2 × parameters
// + slots, parameters + slots once more while saving, and one report per worker; a worker 2 ×
// parameters, one gradient range and the activations per tower, the data that it keeps, and rows of
// tables with their gradients; the master and the evaluator the parameters. Rows that tables get
// while they are trained are not known beforehand. Then a line for each
// host whose machine is said to have less memory than that.
void bel_plan_write(const bel_plan *plan, const bel_plan_sizes *sizes, bel_str *out);

// For engines that reach other hosts: where a machine does not say its cores, processes over there
// use what they find (threads of 0). `apart`: every process has its machine's cores for itself, and
// is the only one of its host as far as anybody knows.
void bel_plan_move(bel_plan *plan, bool apart);

// Towers of so many workers; those beyond the plan have as many as the last one of it.
int bel_plan_towers(const bel_plan *plan, int workers);

// The host of a process of a role, also of one beyond those of the plan; NULL: this one.
const char *bel_plan_host(const bel_plan *plan, bel_role role, int index);

// The task of a process, without addresses and secret (NULL): the launcher fills those in.
bel_task *bel_plan_task(const bel_plan *plan, const char *job, int process);

// The same for a worker beyond those of the plan, by which a running job is scaled up: it is like
// the last of them.
bel_task *bel_plan_added_task(const bel_plan *plan, const char *job, int index);

#endif
