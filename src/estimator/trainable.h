// A trainable: the model of a job as it is trained, built once from the estimator and the training
// input. Master, workers, `belfry graph` and a dry run build the same one from the same settings,
// and none of them has a second way to find out what is trained: so what a master lays out is what
// a worker computes and what a dry run counts. Parameter servers build none; the master describes
// the layout to them.
#ifndef BELFRY_ESTIMATOR_TRAINABLE_H
#define BELFRY_ESTIMATOR_TRAINABLE_H

#include "estimator/estimator_inner.h"
#include "estimator/hooks.h"
#include "estimator/model.h"
#include "estimator/observer.h"
#include "estimator/settings.h"
#include "ps/layout/shard_settings.h"
#include "ps/layout/step_stats.h"
#include "worker/worker.h"

// What the step statistics say besides the loss: a summary, or a metric in training.
typedef struct bel_series {
    const char *name; // the model function's
    bel_metric_kind kind;
} bel_series;

typedef struct bel_trainable {
    const bel_estimator *estimator; // borrowed
    bool loop;                      // steps are those of a loop of the program's own
    bel_input *input;               // opened, with the columns of the newest checkpoint if any
    bel_built *built;               // TRAIN, with gradients added
    int *variables;                 // by graph variable: its index in the layout
    bel_value **reports; // by step function and layout variable: its gradient, or its next state;
                         // then the gradients of rows by lookup
    bel_worker_model *models; // by step function, for workers; they point into what is here
    bel_worker_return returns[BEL_MAX_STEP_FUNCTIONS][BEL_MAX_RETURNS];
    bel_stats_shape stats;
    bel_hooks hooks;
    bel_worker_events events; // of the hooks, for workers
    bel_observer *observer;   // of histograms and images; NULL: there are none
    bel_value *observed[BEL_MAX_SUMMARIES];
    bel_worker_observation observation;
    bel_series series[BEL_MAX_SERIES];
    bel_value *series_values[BEL_MAX_STEP_FUNCTIONS][2 * BEL_MAX_SERIES]; // bel_worker_model.series
    int series_count;
    bel_layout *layout;    // parameter space, cut for the job's shards
    bel_counting counting; // whose reports make a step
    bel_settings settings; // what determines the bits
    bel_str collectives;   // bel_graph_write_collectives of the graph
} bel_trainable;

// Calls the input and the model function and lays the parameters out. The result holds all that was
// made before an error, too: free it with bel_trainable_deinit in any case. The estimator must
// outlive it. Errors: those of the two functions; INVALID_ARGUMENT or UNIMPLEMENTED name what
// cannot be trained; RESOURCE_EXHAUSTED: it does not fit into this machine's memory.
bel_status *bel_trainable_init(bel_trainable *trainable, const bel_estimator *estimator,
                               const bel_train_spec *spec) BEL_MUST_USE;
void bel_trainable_deinit(bel_trainable *trainable); // all zeroes are fine

// The values of all series, from their sums and weights in the statistics of a step.
void bel_trainable_series_values(const bel_trainable *trainable, const double *sums,
                                 bel_step_value *out_values);

// What a worker needs of the trainable and of the settings, wherever it runs. Still missing are its
// assignment, space, client, ranges, first_step and segment.
bel_worker_config bel_trainable_worker_config(const bel_trainable *trainable, int worker);

// Where parameters of a training in this process alone are updated by the cards that its towers are
// on: for bel_trainable_worker_config's worker 0, which has all of them. NULL: in the process's
// memory. Errors: those of bel_cards_choose; RESOURCE_EXHAUSTED: cards have no room for them; where
// update_device is CUDA, FAILED_PRECONDITION: the towers are not on cards.
bel_status *bel_trainable_create_updater(const bel_trainable *trainable,
                                         bel_updater **out_updater) BEL_MUST_USE;

// Whether the cards have room beside the updater, which is there by now: for the program of a step
// and for an evaluation, which is taken to be no larger with its parameters. RESOURCE_EXHAUSTED:
// says what is needed and free.
bel_status *bel_trainable_check_room(const bel_trainable *trainable) BEL_MUST_USE;

// What every shard needs of them.
bel_shard_settings bel_trainable_shard_settings(const bel_trainable *trainable);

#endif
