// Private layout of the estimator, for the folders that run it.
#ifndef BELFRY_ESTIMATOR_ESTIMATOR_INNER_H
#define BELFRY_ESTIMATOR_ESTIMATOR_INNER_H

#include <stdatomic.h>

#include "belfry/estimator.h"
#include "cuda/choose.h"
#include "ps/layout/counting.h"
#include "runtime/program.h"

// A text for the program's functions that is no parameter of the model. Checkpoints do not store
// it.
typedef struct bel_told {
    char *name, *value;
    bool expected; // a function should read it
    atomic_bool read;
} bel_told;

// How a parameter was read.
typedef enum bel_param_read {
    BEL_PARAM_UNREAD,
    BEL_PARAM_READ_BY_OTHERS, // or it only holds a default
    BEL_PARAM_READ,           // read by a function of the program or of the model
} bel_param_read;

struct bel_estimator {
    bel_model_fn *model_fn;
    bel_run_config config; // texts owned by the estimator
    int *towers_of;        // by worker, always set
    bool has_towers_of;    // set one by one
    bel_param *params;     // names and values owned
    int param_count;
    atomic_int *params_read; // by parameter: bel_param_read
    bel_told *told;          // texts for functions besides parameters
    int told_count;
    size_t told_capacity;
    bel_role role;     // role of this process
    int rank;          // rank among the workers; -1: no worker
    int local_rank;    // rank among this host's workers …
    int local_size;    // … and their number, in a job of several processes
    bool in_job;       // a process of a job of several
    bool has_launcher; // … started by a launcher, not by Belfry's supervisor
    int server_copies; // copies of the state of each parameter server
    int server_hosts;  // hosts of parameter servers, one after another; 0: unknown
    int *replicas_of;  // by worker: more than its towers if it plays several in turns
    int replica_count; // sum of replicas_of
    int thread_count;  // threads of each tower, resolved
    const struct bel_remote_input *remote_input; // training input of other hosts, borrowed; NULL:
                                                 // this process opens it
};

// Marks a parameter that other code reads, or that only holds a default. Training warns of other
// parameters that no function reads.
void bel_estimator_param_is_read(const bel_estimator *estimator, const char *name);

// Makes bel_estimator_param return this text if no parameter has the name. Training warns if it is
// `expected` to be read, and is not.
void bel_estimator_tell(bel_estimator *estimator, const char *name, const char *value,
                        bool expected);

// Checks settings against each other, before anything is created for them. INVALID_ARGUMENT.
bel_status *bel_run_config_check(const bel_run_config *config) BEL_MUST_USE;

// Copies a program's spec into one of this library's size (base/sized.h). INVALID_ARGUMENT: a size,
// also out_result's, or the input function is unset.
bel_status *bel_eval_spec_take(const void *given, bel_eval_spec *out_spec) BEL_MUST_USE;

// Computes from the settings whose reports make a step. INVALID_ARGUMENT: these workers cannot do
// that.
bel_status *bel_estimator_counting(const bel_estimator *estimator,
                                   bel_counting *out_counting) BEL_MUST_USE;

// Towers of a worker. A worker beyond the configured ones has the same number as the last of them.
static inline int bel_estimator_towers(const bel_estimator *estimator, int worker)
{
    int last = estimator->config.num_workers - 1;
    return estimator->towers_of[worker < last ? worker : last];
}

// Towers that evaluate and predict in this process: those of all its workers. In a job of several
// processes, the number of worker 0's.
int bel_estimator_evaluation_towers(const bel_estimator *estimator);

// GPU choice for a worker's towers. -1: for evaluating towers, which may share GPUs with training.
bel_card_choice bel_estimator_cards(const bel_estimator *estimator, int worker);
bool bel_estimator_wants_cards(const bel_run_config *config); // by the settings
bool bel_estimator_needs_cards(const bel_run_config *config); // no GPU is an error
bel_status *bel_run_config_check_cards(const bel_run_config *config) BEL_MUST_USE; // GPU settings

// For a job's master: logs if its workers, which are on its host, find no GPUs.
void bel_estimator_say_cards(const bel_estimator *estimator);

// Whether other processes, on GPUs, compute the bits of an evaluation in this one. With fast
// arithmetic they do only if this one has a GPU, too.
bool bel_estimator_shares_evaluations(const bel_estimator *estimator);

// Logs `failure` and exits with a code that counts as killed (docs/operations.md), if this process
// has lost a GPU or, with `refused_cards`, has not found the GPUs that it requested. For a process
// that another one replaces when it is killed, or without which the job then continues. A lost GPU
// does not recover within a process, and usually does for another one (after a memory error or an
// aborted kernel).
void bel_estimator_leave_if_lost(const bel_status *failure, bool refused_cards);

// Compile options of a tower's program in training, `belfry graph` and a dry run.
bel_program_options bel_estimator_program_options(const bel_estimator *estimator);
// The same for evaluation and prediction.
bel_program_options bel_estimator_evaluation_options(const bel_estimator *estimator);

// Blocks of the input that a step consumes: one for each replica, with local steps that many. If
// reports are taken as they come, only replicas that can count have one.
int64_t bel_estimator_blocks_per_step(const bel_estimator *estimator, const bel_counting *counting);

// The same without an estimator: for a run by `config` in this process or, if the environment
// describes a task, in its job. Steps of an epoch and of a schedule follow from it.
// INVALID_ARGUMENT: bel_estimator_create would refuse the settings.
bel_status *bel_run_config_blocks_per_step(const bel_run_config *config,
                                           int64_t *out_blocks) BEL_MUST_USE;

// Replaces the program's counts by a cluster's: workers, shards, towers of each worker (NULL: the
// program's), threads of a tower (0: the cores divided by all towers). INVALID_ARGUMENT: the
// program sets towers one by one for another number of workers.
bel_status *bel_estimator_place(bel_estimator *estimator, int worker_count, const int *towers,
                                int shard_count, int thread_count) BEL_MUST_USE;

#endif
