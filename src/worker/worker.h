// A worker: towers and the step loop.
//
// The loop waits for version s and its decision. Each tower reads its next batch and runs its
// program for each of its replicas, which writes gradients directly into the replica's range. As
// soon as all replicas have finished a chunk, its nodes are summed and reported. Step statistics
// follow; then the loop continues with the next version. With a ledger the next version is shard
// 0's answer. With local steps each replica trains several batches in its range, from the version's
// values on, and reports the new values when all have (local.c). A worker keeps no state that
// outlives a step.
#ifndef BELFRY_WORKER_WORKER_H
#define BELFRY_WORKER_WORKER_H

#include <stdatomic.h>

#include "base/input_segment.h"
#include "belfry/model.h"
#include "cuda/choose.h"
#include "graph/graph.h"
#include "input/batch/input.h"
#include "optim/updater.h"
#include "ps/client/client.h"
#include "ps/layout/space.h"
#include "ps/layout/step_stats.h"
#include "runtime/program.h"

// A value that a step returns to the loop that runs it; it travels with the step statistics.
typedef struct bel_worker_return {
    bel_value *value; // F32 of a closed shape
    bel_return_kind kind;
    int elements; // the value's
    int first;    // index of its first number among the returned ones
} bel_worker_return;

// The computation of a step function, as seen by the layout. Values belong to the graph, which all
// step functions of a job share.
typedef struct bel_worker_model {
    const bel_graph *graph;
    bel_value *loss;
    bel_value *const *reports; // by layout variable: its gradient, or a state variable's new value;
                               // NULL: nothing is reported (zero)
    const int *variables;      // by graph variable: the layout variable
    const int *fields;         // by graph input: the batch's field; -1: rows of a table
    bel_value *const *row_gradients; // by lookup of the graph; NULL: the loss does not depend on it
    // Two scalars F32 for each series of the step statistics: its sum and its weight. If the weight
    // is NULL, the first is a mean over the replica's examples; if both are NULL, the series
    // belongs to another step function.
    bel_value *const *series;
    int series_count;
    const bel_worker_return *returns;
    int return_count;
} bel_worker_model;

// Callbacks on the worker's thread, during training. An error ends the training.
typedef struct bel_worker_events {
    void *context;
    bel_status *(*before_step)(void *context, int64_t step);
    // `stats`: the step statistics of this worker's replicas, after the last report.
    bel_status *(*after_step)(void *context, int64_t step, const double *stats);
} bel_worker_events;

// Values that a separate program computes beside the training, in some steps of replica 0, from its
// batch: every every_steps versions, and for the first one that is made.
typedef struct bel_worker_observation {
    bel_value *const *values;
    int count;
    int64_t every_steps;
    void *context;
    // On a tower's thread; `step`: the version that is made. The tensors are valid during the call.
    void (*take)(void *context, int64_t step, const bel_tensor *values);
} bel_worker_observation;

typedef struct bel_worker_config {
    int worker;
    const bel_worker_events *events;           // NULL: no callbacks
    const bel_worker_observation *observation; // NULL: no observation
    const bel_assignment *assignment;
    const bel_layout *layout;
    const bel_space *space;
    // Unless NULL, all towers are on its devices, and compute on the values there; `ranges` are
    // then its gradients. For a job with only this worker and no ledger.
    const bel_updater *updater;
    const bel_worker_model *models; // by step function
    int model_count;
    bel_stats_shape stats;
    const bel_input *input;
    bel_client *client;
    // By replica of the worker: its gradients, or with local steps its values and slots, laid out
    // as the space; zeroed.
    float *const *ranges;
    int tower_count;
    bel_program_options program; // each tower's; a tower has program.threads threads
    bel_card_choice cards;       // the GPUs for towers
    // Above 1: each replica trains that many batches in a step, by the rules of the first step
    // function's optimizers, and reports its values and slots.
    int local_steps;
    const bel_optimizers *optimizers; // with local steps
    uint64_t seed;
    bel_rounding rounding; // for sums over replicas
    bool counts_replicas;  // each replica counts once; false: by its examples
    double finish_secs;    // at the end it waits as long for the checksums of its input
    bool whole_steps;      // skips blocks that do not fill a step of all replicas
    int64_t first_step;
    bel_input_segment segment; // the blocks that the steps from first_step on read …
    bool ledger;               // … or the leased ones: then not all workers count in a step
    const char *audit_dir;     // a model_dir, in which the read records are logged; NULL: no log
    const atomic_bool *leaves; // true: it ends after its present step; NULL: never
    // Work for a tower that has finished while others compute, in small parts; false: there was no
    // work. NULL: it waits.
    bool (*meanwhile)(void *context);
    void *meanwhile_context;
} bel_worker_config;

// Time of a worker's steps by activity, over all of them, in nanoseconds.
typedef struct bel_worker_times {
    int64_t input_ns;   // waiting for batches, mean over towers
    int64_t compute_ns; // running programs, mean over towers, without push_ns
    int64_t push_ns;    // summing gradients and passing them to the lanes: the threads' time for it
                        // while programs run, divided by their number, and all time after that
    int64_t exchange_ns; // from the last report to the next version
    int64_t total_ns;
    int64_t steps;
} bel_worker_times;

// Lists the outputs of a replica's program: the reports in layout order (*out_reports of them), the
// loss, gradients of rows by lookup, the values of the series, and the returned values. Free with
// bel_free.
bel_program_output *bel_worker_list_outputs(const bel_layout *layout, const bel_worker_model *model,
                                            int *out_reports, int *out_count);

typedef struct bel_worker bel_worker;

// Ownership: all data in the config must outlive the worker. RESOURCE_EXHAUSTED: no memory.
bel_status *bel_worker_create(const bel_worker_config *config,
                              bel_worker **out_worker) BEL_MUST_USE;
void bel_worker_destroy(bel_worker *worker);

// Runs steps until a version's decision is to stop, or it leaves. Errors: those of input, programs
// and client, prefixed by the worker's number, step and replica.
bel_status *bel_worker_run(bel_worker *worker) BEL_MUST_USE;

// Times up to the newest version that was waited for, while it runs. Any thread.
bel_worker_times bel_worker_time_so_far(const bel_worker *worker);

// Returns the memory of the batches that all its towers keep ready and read. Any thread, while it
// runs.
int64_t bel_worker_input_bytes(const bel_worker *worker);

// number of towers
int bel_worker_tower_count(const bel_worker *worker);
// Returns the GPU of a tower; NULL: it runs on a share of the CPU.
bel_device *bel_worker_device(const bel_worker *worker, int tower);

// Returns its step, and its activity in words: "computes", "waits for version 7 of shard 1", "waits
// in exchange 0". Any thread.
int64_t bel_worker_doing(bel_worker *worker, bel_str *out_words);

// Calls `job` once on every thread of every tower in parallel, and waits for all. For the thread
// that runs the worker, while no tower runs.
void bel_worker_on_all_threads(bel_worker *worker, void (*job)(void *context), void *context);

#endif
