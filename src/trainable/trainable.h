// A trainable: the model of a job in its training form, built once from the estimator and the
// training input. Master, workers, `belfry graph` and a dry run build it from the same settings and
// have no other source for it. So the master's layout, the workers' computation and the dry run's
// sizes agree. Parameter servers build no trainable; the master describes the layout to them.
#ifndef BELFRY_ESTIMATOR_TRAINABLE_H
#define BELFRY_ESTIMATOR_TRAINABLE_H

#include <stdint.h>

#include "estimator/estimator_inner.h"
#include "model/model.h"
#include "model/settings.h"
#include "ps/layout/shard_settings.h"
#include "ps/layout/step_stats.h"
#include "trainable/hooks.h"
#include "trainable/observer.h"
#include "worker/worker.h"

// A value of the step statistics besides the loss: a summary, or a metric in training.
typedef struct bel_series {
    const char *name; // name from the model function
    bel_metric_kind kind;
} bel_series;

typedef struct bel_trainable {
    const bel_estimator *estimator; // borrowed
    bool loop;                      // steps are those of the program's loop
    bel_input *input;               // opened, with the columns of the newest checkpoint if any
    bel_built *built;               // TRAIN, with gradients added
    int *variables;                 // by graph variable: its index in the layout
    bel_value **reports; // by step function and layout variable: its gradient, or its next state;
                         // then the gradients of rows by lookup
    bel_worker_model *models; // by step function, for workers; they point into this struct
    bel_worker_return returns[BEL_MAX_STEP_FUNCTIONS][BEL_MAX_RETURNS];
    bel_stats_shape stats;
    bel_hooks hooks;
    bel_worker_events events; // events of the hooks, for workers
    bel_observer *observer;   // observer of histograms and images; NULL: absent
    bel_value *observed[BEL_MAX_SUMMARIES];
    bel_worker_observation observation;
    bel_series series[BEL_MAX_SERIES];
    bel_value *series_values[BEL_MAX_STEP_FUNCTIONS][2 * BEL_MAX_SERIES]; // bel_worker_model.series
    int series_count;
    bel_layout *layout;    // parameter space, cut for the job's shards
    bel_counting counting; // whose reports make a step
    bel_settings settings; // settings that determine the bits
    bel_str collectives;   // bel_graph_write_collectives of the graph
    _Atomic int64_t rests; // times at which the loop saw too few rows of a followed file for a step
} bel_trainable;

// Calls the input and the model function and lays the parameters out. After an error the result
// holds all that was made before it, so call bel_trainable_deinit in any case. The estimator must
// outlive it. Errors: those of the two functions. INVALID_ARGUMENT or UNIMPLEMENTED: the message
// names the part that cannot be trained. RESOURCE_EXHAUSTED: it does not fit into this machine's
// memory.
bel_status *bel_trainable_init(bel_trainable *trainable, const bel_estimator *estimator,
                               const bel_train_spec *spec) BEL_MUST_USE;
void bel_trainable_deinit(bel_trainable *trainable); // accepts all zeroes

// Computes the values of all series from their sums and weights in the statistics of a step.
void bel_trainable_series_values(const bel_trainable *trainable, const double *sums,
                                 bel_step_value *out_values);

// Returns the longest time between two steps that is no stall, for a process that does not see
// whether the loop rests. With a file that is followed, each record of a step may take
// bel_input_follow_secs. The master's clock, which stands still while the loop rests, ends sooner.
double bel_trainable_patience_secs(const bel_trainable *trainable);

// Makes a worker's config from the trainable and the settings, for any process. The caller sets its
// assignment, space, client, ranges, first_step and segment.
bel_worker_config bel_trainable_worker_config(const bel_trainable *trainable, int worker);

// Creates the updater if GPUs update the parameters: those of the towers, in a training in only
// this process. It is for bel_trainable_worker_config's worker 0, which has all towers. NULL:
// parameters are in the process's memory. Errors: those of bel_cards_choose; RESOURCE_EXHAUSTED:
// GPUs have no room for the parameters; FAILED_PRECONDITION: update_device is CUDA, and the towers
// are not on GPUs.
bel_status *bel_trainable_create_updater(const bel_trainable *trainable,
                                         bel_updater **out_updater) BEL_MUST_USE;

// Checks that the GPUs have room, besides the existing updater, for the program of a step and for
// an evaluation, which counts as no larger with its parameters. RESOURCE_EXHAUSTED: the message has
// the needed and the free memory.
bel_status *bel_trainable_check_room(const bel_trainable *trainable) BEL_MUST_USE;

// Returns the most workers that report to a shard, if there can be relays (ps/layout/fan_in.h) …
int bel_trainable_fan_in(const bel_trainable *trainable);
// … and why there can be none in this training; NULL: there can.
const char *bel_trainable_why_no_relays(const bel_trainable *trainable);

// Returns why shards that run cannot make a step again, so that training goes back to the newest
// checkpoint if a lost member has part of it; NULL: they can. When the layout is made.
const char *bel_trainable_why_no_hold(const bel_trainable *trainable);

// Makes the settings that every shard needs.
bel_shard_settings bel_trainable_shard_settings(const bel_trainable *trainable);
// Returns the rounding of exchanges that the settings ask for.
bel_rounding bel_trainable_rounding(const bel_trainable *trainable);

#endif
