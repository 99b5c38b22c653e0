// Inside view of a worker, for worker.c (the loop), tower.c (one tower's part of a step), report.c
// (reports of chunks), local.c (local steps), rows.c (rows of tables) and pin.c (memory that GPUs
// copy).
#ifndef BELFRY_WORKER_WORKER_INNER_H
#define BELFRY_WORKER_WORKER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/thread.h"
#include "base/trace.h"
#include "input/batch/audit.h"
#include "ps/client/row_batch.h"
#include "ps/layout/exchange.h"
#include "ps/layout/space_update.h"
#include "runtime/runner.h"
#include "worker/worker.h"

// A replica's part of a table: the ids of its batch, lookup after lookup.
typedef struct bel_replica_rows {
    int64_t *ids;
    bel_row_batch *batch;
    float *gradients; // by position
    float *sums;      // by distinct id
    int64_t first;    // index of its first distinct id among those of all replicas of the round
} bel_replica_rows;

// A worker's view of a table.
typedef struct bel_worker_table {
    int width, report_width;
    int64_t capacity;           // maximum number of ids of a replica
    bel_replica_rows *replicas; // by replica of the worker
    int64_t *keys;              // distinct ids of the round's replicas, one replica after another
    bel_row_batch *all;         // over these ids
    bel_row_sum sum;
    bel_row_set *sets; // scratch, by replica
    bel_weight *weights;
    int *firsts;
} bel_worker_table;

// A replica that a tower plays. If programs stop for exchanges, all its replicas of a step are
// under way at once; otherwise there is one bel_replica_run, which is reused.
typedef struct bel_replica_run {
    const bel_batch *batch;  // NULL: the input has no example for it
    bel_shape *input_shapes; // by graph input
    float **rows;            // by lookup: its rows, by position
    bel_instance *instance;  // from part 0 on
    bel_run_context context;
} bel_replica_run;

typedef struct bel_exchange_pieces bel_exchange_pieces;

// Scratch of exchanges, by replica of the worker unless stated otherwise.
typedef struct bel_exchange {
    void **slots;
    bel_weight *weights;
    bel_exchange_part *parts;
    bool *present;
    bel_exchange_slot *given; // by slot
    const char **values;      // by slot
    bel_exchange_pieces *pieces;
    char *room; // for copies
    size_t room_bytes;
} bel_exchange;

// A step function in the worker: a program of the shared graph.
typedef struct bel_worker_function {
    const bel_worker_model *model;
    bel_program_output *outputs; // bel_worker_list_outputs
    int report_count, output_count;
    int *output_variables;   // by report: the layout variable
    int *lookup_outputs;     // by lookup: its output; -1: no output
    int first_series_output; // index in the outputs
    int64_t *chunk_reports;  // by chunk: number of its elements to count down
    int exchange_count;      // number of stops of its program
} bel_worker_function;

// A tower's rules and scratch for local steps.
typedef struct bel_local {
    int step; // the present local step, from 0; 0 without local steps
    bel_space_update update;
    float *gradients;      // by the present replica's program, laid out as the space
    int64_t *slot_offsets; // by variable and slot: its first element in the space
    float **slots;         // addresses for the present replica, as in bel_space_values
    bool *reported;        // by variable of the layout
} bel_local;

typedef struct bel_tower {
    bel_worker *worker;
    int index;
    bel_team *team;               // the threads that run its tiles
    bel_program_options program;  // for its device
    bel_runner **runners;         // by step function
    bel_program_output *observed; // values of the observation; created with the first one
    bel_runner *observer;
    int64_t observable; // the last version that replica 0 took part in here; 0: no version
    bel_prefetch *prefetch;
    bel_replica_run *runs; // bel_tower_runs of them
    bel_replica_run *run;  // the present one for the functions below …
    int replica;           // … and its number, counted from the worker's first
    bel_local local;
    int64_t input_ns, compute_ns;
    atomic_llong input_bytes; // its batches' bytes, at the last one taken
    pthread_mutex_t mutex;    // guards status while its threads publish
    bel_status *status;       // status of its part of the step
} bel_tower;

struct bel_worker {
    bel_worker_config config;
    bel_device **devices; // by tower; NULL: the CPU
    int first_replica, replica_count;
    // Without tables and exchanges each tower runs its replicas independently. Otherwise they run
    // in rounds [round, round + round_size): one of each tower, or with exchanges all of them.
    int round, round_size;
    bel_worker_function *functions;
    const bel_worker_function *function; // this step's
    bool exchanges;                      // a function has exchanges
    int part; // part that the towers run now, 0 to function->exchange_count
    bel_tower *towers;
    unsigned pinned;           // buffers of the space, as a bit set
    bel_audit *audit;          // NULL: no log
    bel_team *dispatch;        // runs towers in parallel
    atomic_int computing;      // number of computing towers
    bel_worker_table *tables;  // by table of the layout
    double *stats_list;        // by replica, stats_size each
    double *own_stats;         // over all replicas, for events
    int stats_size;            // bel_stats_size
    bel_weight *weights;       // by replica: weight of its gradients in this step
    bel_weight *plain_weights; // the same if each replica with examples counts once
    atomic_llong *chunk_left;  // by chunk: elements until all replicas have finished it
    bel_exchange exchange;     // scratch of exchanges
    int64_t step;
    uint32_t decision;
    uint64_t hash;             // hash of the parameters, if the decision includes BEL_DECIDE_CHECK
    bel_worker_times times;    // push_ns: after the programs
    atomic_llong pushing_ns;   // while programs run, over all threads
    atomic_llong shown_step;   // for bel_worker_doing
    atomic_int shown_exchange; // in which it waits; -1: no exchange
    struct {                   // for bel_worker_time_so_far
        atomic_llong input_ns, compute_ns, push_ns, exchange_ns, total_ns, steps;
    } shown_times;
    atomic_bool waits;
};

// Number of batches that a replica trains in a step.
static inline int bel_worker_local_steps(const bel_worker *worker)
{
    return worker->config.local_steps > 1 ? worker->config.local_steps : 1;
}

// True if replicas train between reports.
static inline bool bel_worker_is_local(const bel_worker *worker)
{
    return bel_worker_local_steps(worker) > 1;
}

// End of the round's replicas.
static inline int bel_worker_round_end(const bel_worker *worker)
{
    int end = worker->round + worker->round_size;
    return end < worker->replica_count ? end : worker->replica_count;
}

// Number of replicas that a tower has under way at once.
static inline int bel_tower_runs(const bel_worker *worker)
{
    int towers = worker->config.tower_count;
    return worker->exchanges ? (worker->replica_count + towers - 1) / towers : 1;
}

// tower.c
bel_status *bel_tower_init(bel_tower *tower, bel_worker *worker, int index) BEL_MUST_USE;
void bel_tower_deinit(bel_tower *tower);
void bel_tower_step(bel_tower *tower); // runs its replicas; the result is in tower->status
// The same in parts: take a replica's batch, and run part `part` of the program on it. With tables
// rows are pulled between them, with exchanges replicas meet between the parts.
void bel_tower_take(bel_tower *tower, int replica);
void bel_tower_run(bel_tower *tower, int replica, int part);
// Returns the tower's state of one of its replicas of the round.
const bel_replica_run *bel_tower_run_of(const bel_tower *tower, int replica);

// local.c: local steps; without them these do nothing. Initialization may fail; deinit in any case.
bel_status *bel_local_init(bel_tower *tower) BEL_MUST_USE;
void bel_local_deinit(bel_tower *tower);
// Copies the version's values and slots into the range of the tower's present replica.
void bel_local_begin(bel_tower *tower);
// Returns the address of that replica's value of a variable.
const float *bel_local_variable(const bel_tower *tower, int variable);
// Updates them, when its program has run.
void bel_local_update(bel_tower *tower);

// exchange.c: runs exchange `exchange` of the step among the worker's replicas, all of which have
// run the parts up to it. Errors name the collective and the replica.
bel_status *bel_worker_exchange(bel_worker *worker, int exchange) BEL_MUST_USE;
void bel_exchange_init(bel_exchange *exchange, int replica_count);
void bel_exchange_deinit(bel_exchange *exchange);

// rows.c: lookups of the model in tables.
bel_status *bel_worker_create_rows(bel_worker *worker) BEL_MUST_USE;
void bel_worker_destroy_rows(bel_worker *worker);

// Pins or unpins their memory, which GPUs copy from and to (bel_device_pin).
void bel_worker_pin_rows(const bel_worker *worker, bel_device *card, bool pins);

// --- Memory of GPUs (pin.c); without GPUs these do nothing
// ----------------------------------------

void bel_worker_pin_own(const bel_worker *worker, bool pins); // pins or unpins ranges and rows
void bel_worker_pin_space(bel_worker *worker);                // when a version has arrived
void bel_worker_unpin_space(const bel_worker *worker);
// A tower's batch has arrived: collects its ids.
void bel_tower_gather_ids(bel_tower *tower);
// All ids of the round are collected: pulls their rows.
bel_status *bel_worker_pull_rows(bel_worker *worker) BEL_MUST_USE;
void bel_tower_bind_rows(bel_tower *tower, bel_instance *instance);
void bel_tower_sum_rows(bel_tower *tower); // its program has run
// All replicas have run.
bel_status *bel_worker_report_rows(bel_worker *worker) BEL_MUST_USE;

// report.c. Returns the end of the input's blocks that are read.
int64_t bel_worker_block_end(const bel_worker *worker);
// A span of the worker's step.
bel_trace_event bel_worker_event(const bel_worker *worker, bel_trace_span span, int part);
// Number of elements of a variable, from `first` on, that are in a chunk.
int64_t bel_worker_overlap(const bel_chunk *chunk, const bel_layout_variable *variable,
                           int64_t first, int64_t count);
// Sends the worker's nodes of a chunk.
bel_status *bel_worker_report_chunk(bel_worker *worker, int chunk) BEL_MUST_USE;
// Records that the caller has finished `count` elements of a variable of one replica, from `first`
// on; reports chunks that are complete. Any thread.
bel_status *bel_worker_finish(bel_worker *worker, int variable, int64_t first,
                              int64_t count) BEL_MUST_USE;

#endif
