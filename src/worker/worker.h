// A worker: towers and the step loop.
//
// The loop: wait for version s and its decision → each tower reads its next batch and runs its
// program for each of its replicas, writing gradients straight into the replica's range → as soon
// as all replicas have finished a chunk, its nodes are summed and reported → step statistics → next
// version. With a ledger the next version is whatever shard 0 answers with. A worker keeps nothing
// that outlives a step.
#ifndef BELFRY_WORKER_WORKER_H
#define BELFRY_WORKER_WORKER_H

#include <stdatomic.h>

#include "base/input_segment.h"
#include "belfry/model.h"
#include "cuda/choose.h"
#include "graph/graph.h"
#include "input/input.h"
#include "optim/updater.h"
#include "ps/client/client.h"
#include "ps/layout/space.h"
#include "ps/layout/step_stats.h"
#include "runtime/program.h"

// What a step returns to the loop that runs it; it travels with the step statistics.
typedef struct bel_worker_return {
    bel_value *value; // F32 of a closed shape
    bel_return_kind kind;
    int elements; // of it
    int first;    // place of its first number among the returned ones
} bel_worker_return;

// What a step function computes, seen by the layout. Values belong to the graph, which all step
// functions of a job share.
typedef struct bel_worker_model {
    const bel_graph *graph;
    bel_value *loss;
    bel_value *const *reports; // by layout variable: its gradient, or what a state variable is
                               // assigned; NULL: nothing is reported (zero)
    const int *variables;      // by graph variable: the layout variable
    const int *fields;         // by graph input: the batch's field; -1: rows of a table
    bel_value *const *row_gradients; // by lookup of the graph; NULL: the loss does not depend on it
    // Two scalars F32 for each series of the step statistics: its sum and its weight. Without a
    // weight (NULL) the first is a mean over the replica's examples; without both it is a series of
    // another step function.
    bel_value *const *series;
    int series_count;
    const bel_worker_return *returns;
    int return_count;
} bel_worker_model;

// Called on the worker's thread, in the middle of training. An error ends it.
typedef struct bel_worker_events {
    void *context;
    bel_status *(*before_step)(void *context, int64_t step);
    // `stats`: the step statistics of this worker's replicas, when all is reported.
    bel_status *(*after_step)(void *context, int64_t step, const double *stats);
} bel_worker_events;

// Values that are computed beside the training in some steps of replica 0, from its batch, by a
// program of their own: every every_steps versions, and of the first one that is made.
typedef struct bel_worker_observation {
    bel_value *const *values;
    int count;
    int64_t every_steps;
    void *context;
    // On a thread of a tower; `step`: the version that is made. The tensors live during the call.
    void (*take)(void *context, int64_t step, const bel_tensor *values);
} bel_worker_observation;

typedef struct bel_worker_config {
    int worker;
    const bel_worker_events *events;           // NULL: nobody is called
    const bel_worker_observation *observation; // NULL: none
    const bel_assignment *assignment;
    const bel_layout *layout;
    const bel_space *space;
    // Where it is not NULL all towers are on its devices, and compute on the values that these
    // have; `ranges` are its gradients then. For a job of this one worker without a ledger.
    const bel_updater *updater;
    const bel_worker_model *models; // by step function
    int model_count;
    bel_stats_shape stats;
    const bel_input *input;
    bel_client *client;
    float *const *ranges; // by replica of the worker: its gradients, laid out as the space; zeroed
    int tower_count;
    bel_program_options program; // of each tower, which has program.threads threads
    bel_card_choice cards;       // that towers run on
    uint64_t seed;
    bool counts_replicas; // each replica counts once; false: by its examples
    bool whole_steps;     // blocks that do not fill a step of all replicas are left out
    int64_t first_step;
    bel_input_segment segment; // which blocks the steps from first_step on read …
    bool ledger;               // … or those that are leased: not everybody counts in a step
    const char *audit_dir;     // a model_dir: which records were read is noted there; NULL: nowhere
    const atomic_bool *leaves; // true: it ends behind the step that it is in; NULL: it does not
    // What a tower that has computed does while others compute, a little of it with each call;
    // false: nothing was there to do. NULL: it waits.
    bool (*meanwhile)(void *context);
    void *meanwhile_context;
} bel_worker_config;

// Where the time of a worker's steps went, over all of them, in nanoseconds.
typedef struct bel_worker_times {
    int64_t input_ns;   // waiting for batches, mean over towers
    int64_t compute_ns; // running programs, mean over towers, without push_ns
    int64_t push_ns;    // summing gradients and handing them to the lanes: what threads spend on it
                        // while programs run, shared out over all of them, and all behind that
    int64_t exchange_ns; // from the last report to the next version
    int64_t total_ns;
    int64_t steps;
} bel_worker_times;

// What a replica's program computes: the reports in layout order (*out_reports of them), the loss,
// then gradients of rows by lookup, where there are any, then the values of the series, then those
// that are returned. Free with bel_free.
bel_program_output *bel_worker_list_outputs(const bel_layout *layout, const bel_worker_model *model,
                                            int *out_reports, int *out_count);

typedef struct bel_worker bel_worker;

// Ownership: everything in the config must outlive the worker. RESOURCE_EXHAUSTED without memory.
bel_status *bel_worker_create(const bel_worker_config *config,
                              bel_worker **out_worker) BEL_MUST_USE;
void bel_worker_destroy(bel_worker *worker);

// Runs steps until a version says stop, or it leaves. Errors: those of input, programs and client,
// with the worker's number, step and replica in front.
bel_status *bel_worker_run(bel_worker *worker) BEL_MUST_USE;

bel_worker_times bel_worker_time(const bel_worker *worker);

// The same as of the newest version that was waited for, while it runs. Any thread.
bel_worker_times bel_worker_time_so_far(const bel_worker *worker);

// Memory of the batches that all its towers keep ready and read. Any thread, while it runs.
int64_t bel_worker_input_bytes(const bel_worker *worker);

// The card that a tower runs on; NULL: it is a share of the CPU.
int bel_worker_tower_count(const bel_worker *worker);
bel_device *bel_worker_device(const bel_worker *worker, int tower);

// The step it is at, and in words what it does: "computes", "waits for version 7 of shard 1",
// "waits in exchange 0". Any
// thread.
int64_t bel_worker_doing(bel_worker *worker, bel_str *out_words);

// Calls `job` once on every thread of every tower, side by side; waits for all. For the thread that
// runs the worker, while no tower runs.
void bel_worker_on_all_threads(bel_worker *worker, void (*job)(void *context), void *context);

#endif
