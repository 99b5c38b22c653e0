// The master's hand on a running job: what each step does, snapshots, progress, the end.
//
// Workers' threads ask `decide` at every version; the master's thread waits for snapshots and says
// when it is done with them. Which step function a step runs (belfry/replica.h) is said by a loop
// of the program's own, step by step, or it is the only one up to the last step. Thread-safe.
#ifndef BELFRY_PS_SERVER_CONTROL_H
#define BELFRY_PS_SERVER_CONTROL_H

#include "ps/server/shard.h"

typedef struct bel_control bel_control;

// A step that was made, for whoever asks for steps.
typedef struct bel_control_made {
    int64_t version;     // that it made
    bool wanted;         // as it was asked for
    bool snapshot;       // one is made of the version
    const double *stats; // the step statistics; during the call
} bel_control_made;

typedef struct bel_control_config {
    int shard_count;
    int64_t first_step;
    int64_t last_step;     // training stops at this version at the latest
    int64_t save_steps;    // 0: off
    double save_secs;      // 0: off; used when save_steps is 0
    int64_t eval_steps;    // 0: off; a multiple of each evaluation's period
    int64_t series_steps;  // every how many steps the loss is handed to the master; 0: never
    int64_t hook_steps;    // every how many steps a hook wants to hear of one; 0: never
    bel_stats_shape stats; // the step statistics
    int worker_count;
    // Steps are made as they are asked for (bel_control_ask), at most up to last_step.
    bool asks;
    void (*made)(void *context, const bel_control_made *made); // on whichever thread; not NULL then
    void *made_context;
} bel_control_config;

// A step that the master writes down.
typedef struct bel_control_point {
    int64_t step;                      // the version that the step made
    double loss;                       // mean over its examples
    double examples_per_second;        // since the previous point; 0 at the first
    double steps_per_second;           // the same
    bool for_hooks_alone;              // not for the series
    bool snapshot;                     // one is made of this version, and not released yet
    double series[2 * BEL_MAX_SERIES]; // of the step: sum and weight of each
} bel_control_point;

typedef struct bel_control_state {
    int64_t step;     // the newest version
    double loss;      // of the step that made it
    int64_t examples; // since the job started
    bool running;     // a worker still runs
    bool has_snapshot;
    int64_t snapshot; // its version
    bool save, eval;  // what it is for
} bel_control_state;

bel_control *bel_control_create(const bel_control_config *config);
void bel_control_destroy(bel_control *control);

// For bel_shard_config.events, with the control as context.
uint32_t bel_control_decide(void *control, int64_t version, const double *stats,
                            bel_steps_left left);
int bel_control_function_of(void *control, int64_t version); // which is not made yet
void bel_control_snapshot_ready(void *control, int shard, int64_t version);

enum { BEL_CONTROL_MOST_ASKED = 256 }; // steps that are asked for and not made, at most

// Asks for the step on `version`, by a step function; steps are asked for in order. False, and
// nothing is asked for: `version` is not the next one, or there are too many. Whoever asks wakes
// shard 0.
bool bel_control_ask(bel_control *control, int64_t version, int function, bool wanted);

// A worker has ended, with an error or NULL (owned by the control from now on). An error ends the
// job: the first one that is not CANCELLED is kept.
void bel_control_worker_ended(bel_control *control, bel_status *status);
bool bel_control_is_cancelled(void *control);
void bel_control_cancel(bel_control *control, bel_status *status);

// Waits until a snapshot is complete and its version's point can be taken, all workers have ended,
// or `secs` have passed.
void bel_control_wait(bel_control *control, double secs, bel_control_state *out_state);

// Training ends well at version `step`, or behind the step that is made where that has gone
// further.
void bel_control_stop_at(bel_control *control, int64_t step);

// Training ends at the next version, as after bel_request_stop.
void bel_control_interrupt(bel_control *control);

// The same, but training is to go on from there with another assignment of replicas.
void bel_control_pause(bel_control *control);

// The master has read the snapshot; the next one may be made.
void bel_control_release_snapshot(bel_control *control);

// Takes up to `capacity` points in order, and none behind that of a snapshot.
int bel_control_take_points(bel_control *control, bel_control_point *out_points, int capacity);

// The points that are still there can be taken once more.
void bel_control_give_points_again(bel_control *control);

// The error that ended the job; ownership passes to the caller. NULL: none.
bel_status *bel_control_take_error(bel_control *control) BEL_MUST_USE;

// True when training ended because somebody asked (bel_request_stop).
bool bel_control_was_interrupted(bel_control *control);

// True when training ended because of bel_control_pause.
bool bel_control_was_paused(bel_control *control);

// True when training ended because the input has nothing left (bel_shard_events.decide).
bool bel_control_is_over(bel_control *control);

#endif
