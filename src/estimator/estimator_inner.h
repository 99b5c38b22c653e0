// The estimator object, for the rooms that run it.
#ifndef BELFRY_ESTIMATOR_ESTIMATOR_INNER_H
#define BELFRY_ESTIMATOR_ESTIMATOR_INNER_H

#include <stdatomic.h>

#include "belfry/estimator.h"
#include "cuda/choose.h"
#include "ps/layout/counting.h"
#include "runtime/program.h"

// A text for the program's functions that is no parameter of the model: checkpoints do not remember
// it.
typedef struct bel_told {
    char *name, *value;
    bool expected; // that somebody reads it
    atomic_bool read;
} bel_told;

// Who has read a parameter.
typedef enum bel_param_read {
    BEL_PARAM_UNREAD,
    BEL_PARAM_READ_BY_OTHERS, // or it only holds a default
    BEL_PARAM_READ,           // a function of the program or of the model
} bel_param_read;

struct bel_estimator {
    bel_model_fn *model_fn;
    bel_run_config config; // texts owned by the estimator
    int *towers_of;        // by worker, always set
    bool has_towers_of;    // they were given one by one
    bel_param *params;     // names and values owned
    int param_count;
    atomic_int *params_read; // by parameter: bel_param_read
    bel_told *told;          // what functions find besides parameters
    int told_count;
    size_t told_capacity;
    bel_role role;     // of this process
    int rank;          // among the workers; -1: it is none
    int local_rank;    // the same on this process's host …
    int local_size;    // … of so many; set as a process of several
    bool in_job;       // as a process of several
    bool has_launcher; // … that a launcher has started, not a supervisor of Belfry's
    int *replicas_of;  // by worker: more than its towers when it plays several in turns
    int replica_count; // sum of replicas_of
    int thread_count;  // of each tower, resolved
};

// This parameter is read by others, or only holds a default: training does not warn of it, as it
// does of others that no function asks for.
void bel_estimator_param_is_read(const bel_estimator *estimator, const char *name);

// From now on bel_estimator_param finds this text where no parameter has the name. Training warns
// when it is `expected` to be read, and is not.
void bel_estimator_tell(bel_estimator *estimator, const char *name, const char *value,
                        bool expected);

// What settings ask of each other, before anything is made for them. INVALID_ARGUMENT.
bel_status *bel_run_config_check(const bel_run_config *config) BEL_MUST_USE;

// Whose reports make a step, as the settings say. INVALID_ARGUMENT: they ask for what these workers
// cannot do.
bel_status *bel_estimator_counting(const bel_estimator *estimator,
                                   bel_counting *out_counting) BEL_MUST_USE;

// Towers of a worker; one that was added to those of the description has as many as the last of
// them.
static inline int bel_estimator_towers(const bel_estimator *estimator, int worker)
{
    int last = estimator->config.worker_count - 1;
    return estimator->towers_of[worker < last ? worker : last];
}

// Towers that evaluate and predict in this process: those of all its workers, which are worker 0's
// where it is one of several processes.
int bel_estimator_evaluation_towers(const bel_estimator *estimator);

// The cards of a worker's towers; -1: of those that evaluate, which may share them with whoever
// trains.
bel_card_choice bel_estimator_cards(const bel_estimator *estimator, int worker);
bool bel_estimator_wants_cards(const bel_run_config *config); // by its settings
bool bel_estimator_needs_cards(const bel_run_config *config); // none is an error
bel_status *bel_run_config_check_cards(const bel_run_config *config) BEL_MUST_USE; // of those

// For a job's master: a line in the log where its workers, which are on its host, find no cards.
void bel_estimator_say_cards(const bel_estimator *estimator);

// Whether other processes, on cards, compute the bits of an evaluation in this one: with fast
// arithmetic they do where this one has a card, too.
bool bel_estimator_shares_evaluations(const bel_estimator *estimator);

// For a process that another one replaces when it is killed, or without which the job goes on then,
// after `failure`: if a card of it is lost, or with `refused_cards` it has not found those that it
// asked for, it says the failure and ends, with a code that counts as killed (docs/operations.md).
// A lost card does not come back within a process, and mostly does for another one (an error of its
// memory, a kernel that was ended).
void bel_estimator_leave_if_lost(const bel_status *failure, bool refused_cards);

// How a tower's program is compiled, wherever that is done: training, `belfry graph`, a dry run.
bel_program_options bel_estimator_program_options(const bel_estimator *estimator);
// The same for evaluation and prediction.
bel_program_options bel_estimator_evaluation_options(const bel_estimator *estimator);

// Blocks of the input that a step uses up: one for each replica; when reports are taken as they
// come, only for replicas that can count.
int bel_estimator_blocks_per_step(const bel_estimator *estimator, const bel_counting *counting);

// The same before there is an estimator: of a run by `config` in this process or, where the
// environment describes a task, in its job. Steps of an epoch and of a schedule follow from it.
// INVALID_ARGUMENT: settings that bel_estimator_create would refuse.
bel_status *bel_run_config_blocks_per_step(const bel_run_config *config,
                                           int *out_blocks) BEL_MUST_USE;

// Puts the counts of a cluster over the program's: workers, shards, towers of each worker (NULL:
// as the program says), threads of a tower (0: the cores divided by all towers). INVALID_ARGUMENT:
// the program gave towers of workers one by one, and for another number of workers.
bel_status *bel_estimator_place(bel_estimator *estimator, int worker_count, const int *towers,
                                int shard_count, int thread_count) BEL_MUST_USE;

#endif
