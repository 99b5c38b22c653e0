// Control of a running job for the master: each step's decision, snapshots, progress, the end.
//
// Workers' threads call `decide` at every version; the master's thread waits for snapshots and
// releases them. A job runs its only step function up to the last step, or the program's own loop
// chooses the function step by step (belfry/replica.h). Thread-safe.
#ifndef BELFRY_PS_SERVER_CONTROL_H
#define BELFRY_PS_SERVER_CONTROL_H

#include "ps/server/kept.h"
#include "ps/server/shard.h"

typedef struct bel_control bel_control;

// A finished step, for the loop that asks for steps.
typedef struct bel_control_made {
    int64_t version;     // the version that the step made
    bool wanted;         // as in bel_control_ask
    bool snapshot;       // a snapshot of the version is made
    const double *stats; // the step statistics; valid during the call
} bel_control_made;

typedef struct bel_control_config {
    int shard_count;
    int64_t first_step;
    int64_t last_step;     // training stops at this version at the latest
    int64_t save_steps;    // 0: off
    double save_secs;      // 0: off; used when save_steps is 0
    int64_t eval_steps;    // 0: off; a multiple of each evaluation's period
    int64_t series_steps;  // interval, in steps, at which the master gets the loss; 0: never
    int64_t hook_steps;    // interval, in steps, of the hooks; 0: never
    bel_stats_shape stats; // the step statistics
    int worker_count;
    bool continues;    // shards continue at first_step: the step is not the first of a run
    double saved_secs; // if they continue: time since the newest save, for saves by time; 0: unset
    bel_kept *kept;    // shard 0's, where points are recorded, or a predecessor's are; NULL
    // If they continue: version of a snapshot that all shards have and the master has not released,
    // and its purpose; 0: none. Until its release no other one is made.
    int64_t snapshot;
    bool snapshot_save, snapshot_eval;
    int64_t save_at; // one more save, at this version; 0: none
    // Steps are made only on request (bel_control_ask), at most up to last_step.
    bool asks;
    // called on any thread; required with `asks`
    void (*made)(void *context, const bel_control_made *made);
    void *made_context;
} bel_control_config;

// A step that the master records.
struct bel_control_point {
    int64_t step;                      // the version that the step made
    double loss;                       // mean over its examples
    double examples_per_second;        // since the previous point; 0 at the first
    double steps_per_second;           // since the previous point; 0 at the first
    bool for_hooks_alone;              // only for hooks, not for the series
    bool snapshot;                     // a snapshot of this version is made, and not yet released
    double series[2 * BEL_MAX_SERIES]; // the step's: sum and weight of each series
};

typedef struct bel_control_state {
    int64_t step;     // the newest version
    double loss;      // loss of the step that made it
    int64_t examples; // since the job started
    bool running;     // a worker is still running
    bool has_snapshot;
    int64_t snapshot; // its version
    bool save, eval;  // purpose of the snapshot
} bel_control_state;

bel_control *bel_control_create(const bel_control_config *config);
void bel_control_destroy(bel_control *control);

// For bel_shard_config.events, with the control as context.
uint32_t bel_control_decide(void *control, int64_t version, const double *stats,
                            bel_steps_left left);
int bel_control_function_of(void *control, int64_t version); // `version` is not made yet
void bel_control_snapshot_ready(void *control, int shard, int64_t version);

enum { BEL_CONTROL_MOST_ASKED = 256 }; // maximum number of requested steps that are not made

// Asks for the step on `version`, by a step function; steps are requested in order. Returns false,
// without a request, if `version` is not the next one or too many are requested. The caller wakes
// shard 0.
bool bel_control_ask(bel_control *control, int64_t version, int function, bool wanted);

// Records that a worker ended, with an error or NULL; takes ownership. An error ends the job: the
// control keeps the first one that is not CANCELLED.
void bel_control_worker_ended(bel_control *control, bel_status *status);
bool bel_control_is_cancelled(void *control);
void bel_control_cancel(bel_control *control, bel_status *status);

// Waits until a snapshot is complete and its version's point is available, all workers have
// finished, or `secs` have passed.
void bel_control_wait(bel_control *control, double secs, bel_control_state *out_state);

// Training ends successfully at version `step`, or after the step in progress if that is later.
void bel_control_stop_at(bel_control *control, int64_t step);

// Training ends at the next version, as after bel_request_stop.
void bel_control_interrupt(bel_control *control);

// As bel_control_interrupt, but training will continue from there with another assignment of
// replicas.
void bel_control_pause(bel_control *control);

// The master has read the snapshot; the next one may be made.
void bel_control_release_snapshot(bel_control *control);

// Takes up to `capacity` points in order, and no point after a snapshot's.
int bel_control_take_points(bel_control *control, bel_control_point *out_points, int capacity);

// Before the first decision: takes a predecessor's points, at most BEL_KEPT_POINTS, as far as they
// are after those that it has, and not after the first step.
void bel_control_add_points(bel_control *control, const bel_control_point *points, int count);

// Makes the points that are still in the ring available again.
void bel_control_give_points_again(bel_control *control);

// Copies the newest points in the ring, at most `capacity`, whether they were taken or not. Returns
// their number.
int bel_control_newest_points(bel_control *control, bel_control_point *out_points, int capacity);

// True after a step that ends the job with an error.
bool bel_control_has_failed(bel_control *control);

// Returns the error that ended the job, or NULL; the caller owns it.
bel_status *bel_control_take_error(bel_control *control) BEL_MUST_USE;

// True if training ended on request (bel_request_stop).
bool bel_control_was_interrupted(bel_control *control);

// True if training ended because of bel_control_pause.
bool bel_control_was_paused(bel_control *control);

// True if training ended because the input is exhausted (bel_shard_events.decide).
bool bel_control_is_over(bel_control *control);

#endif
