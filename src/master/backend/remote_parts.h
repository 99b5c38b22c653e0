// Parts of the master's side of a cluster: the setup that members are sent, the state that they
// have reported, and the requests that they have not answered yet.
//
// `remote` (remote_inner.h) has one of each. Only the master's thread uses them, except
// remote_requested, to which the thread of the program's loop adds under a mutex.
#ifndef BELFRY_MASTER_BACKEND_REMOTE_PARTS_H
#define BELFRY_MASTER_BACKEND_REMOTE_PARTS_H

#include <pthread.h>

#include "fetch/fetch.h"
#include "master/backend/remote.h"

// Setup of a generation, which members are sent when it begins.
typedef struct remote_plan {
    char *checkpoint; // folder that shards load
    bel_control_config schedule;
    bel_input_segment segment;
    int64_t block_end; // with a ledger: one past the last block of the input to read
    bool begins_anew;  // the shards' state is void, though they hold it
    uint32_t since;    // first of the generations that continue each other up to this one
    // If shards continue: version of a snapshot that is not used yet, and its purpose; 0: none.
    int64_t snapshot;
    bool snapshot_save, snapshot_eval;
    // With copies, if shards continue: those that lack their state, and those whose mirror does.
    int32_t *stateless, *mirrorless;
    size_t stateless_count, mirrorless_count;
} remote_plan;

// Shard 0's progress messages, and the stall clock, which they reset. So do transfers of states.
typedef struct remote_progress {
    bool heard;              // in this generation, or since this master took it over
    int64_t last_ns;         // awake time of the last one, of a release, or of a request to stop
    int64_t longest_step_ns; // between two messages; 0: no step was seen yet
    double received;         // bytes that shards had received, while states are transferred
    bool sets_up;            // a worker was told to begin, and no step was made since
    int64_t examples_before; // made before this master took over; -1: not yet known
} remote_progress;

// Points of training's curves that shard 0 has sent, and that are not yet taken.
typedef struct remote_points {
    bel_control_point *items;
    size_t count, capacity;
    int64_t step; // all points up to this step have come
} remote_points;

// Replicas of workers, and how many workers shall play (remote_assignment.c).
typedef struct remote_assignment {
    int *replicas;     // by worker: its number of replicas in this generation
    int wanted;        // workers below this index shall play
    int refused;       // last refused scale request that was logged; else 0
    bool warned;       // a request for servers, which no one meets, was logged
    int64_t looked_ns; // when job.scale was last read for `wanted`
    bool gathered;     // members were waited for once
} remote_assignment;

// Admission of a worker that joins while the job runs: the shards are asked for their positions.
typedef struct admission {
    bool under_way;
    int answers;
    bool *answered;  // by shard
    int64_t step;    // their lowest step
    int64_t counted; // last step in which the predecessor counted, -1: none
} admission;

// Workers that have finished this generation.
typedef struct remote_ended {
    bool *workers; // by worker
    int count;
    int64_t step; // version at which they finished
} remote_ended;

// Requests to end this generation's training. Shard 0 gets them again when it comes back.
typedef struct remote_sent {
    bool stop;       // save and end
    int64_t stop_ns; // awake time of `stop`; 0: none
    bool pause;      // save, and continue with another assignment
    bool stop_at;    // end at `stop_step`
    int64_t stop_step;
    bool finish; // training is over, and only the evaluator is needed
} remote_sent;

// The evaluator's work (remote_evaluator.c).
typedef struct remote_evaluator {
    bool answered;
    bel_evaluated answer;
} remote_evaluator;

// Processes that are told to leave (remote_leave.c).
typedef struct remote_leaving {
    int64_t own_ns;    // when this process was told to leave; 0: unset, -1: before it began
    int64_t all_ns;    // since when all processes are told to leave; 0: not all
    int64_t notice_ns; // no process leaves before this has passed
} remote_leaving;

// Snapshots that shards hold.
typedef struct remote_snapshots {
    int64_t *newest;   // by shard: version of its newest snapshot, -1: none
    int64_t announced; // version that shard 0 has announced last, -1: none
    int64_t released;  // version that was released last
    bool at_end;       // the announced one was requested after training
    // When shard 0 announced the present one, and the newest saved one or the generation began.
    int64_t announced_ns, saved_ns;
} remote_snapshots;

// The array backend.values, and the lanes on which shards fill it (remote_values.c).
typedef struct remote_values {
    int64_t step;      // step in the array; -1: none
    uint32_t readings; // so far
    int32_t reading;   // number of the lanes
    bel_lane **lanes;  // by shard
    bel_doorbell *bell;
} remote_values;

// Request to all shards that some have not answered yet (remote_ask.c). Fields that a kind does not
// name are unused.
typedef enum bel_asked {
    BEL_ASKED_NOTHING,
    BEL_ASKED_SAVE,   // write the snapshot of `step` into `folder`
    BEL_ASKED_VALUES, // send the snapshot of `step` on the current lane
    BEL_ASKED_FINISH, // make a snapshot of the end, which is `step`
    BEL_ASKED_WHOLE,  // make a current one, if no part of the next version is made
    BEL_ASKED_HOLD,   // stop
} bel_asked;

typedef struct remote_asked {
    bel_asked what;
    int64_t step;
    char *folder;   // borrowed
    int64_t *whole; // by shard: its answer to BEL_ASKED_WHOLE
    int answers;    // number of these answers, or of those to BEL_ASKED_HOLD
} remote_asked;

// Parts of the checkpoint that shards write, and files of shards without access to its folder
// (remote_files.c).
typedef struct remote_saving {
    bel_ckpt_shard **parts; // by shard; NULL: no checkpoint is written
    int saved;              // number of shards whose part is in the checkpoint's folder
    int64_t base;           // step of the checkpoint on which this one is a delta; 0: it is full
    bool *apart;            // by shard: it was asked to save in a separate folder
    bel_fetch **pulls;      // by shard: its file, which comes from a separate folder; NULL: none
    int64_t piece_ns;       // awake time of the last piece of one
} remote_saving;

// Steps that the program's loop has requested, by version modulo the size. The loop's thread adds
// them, and the master's sends them. The mutex guards all.
typedef struct remote_requested {
    pthread_mutex_t mutex;
    struct {
        int function;
        bool waits;
    } steps[BEL_CONTROL_MOST_ASKED];
    int64_t end;  // one past the last version
    int64_t sent; // all before this version were sent
} remote_requested;

// Saving without a worker that is lost or absent (remote_rescue.c).
typedef enum bel_rescue {
    BEL_RESCUE_NONE,
    BEL_RESCUE_ASKS, // asks the shards whether their versions are complete
    BEL_RESCUE_DONE, // they are, and shards are paused; the snapshot is current
} bel_rescue;

typedef struct remote_rescue {
    bel_rescue stage;
    bool lacks_worker; // the job ends, or goes back, as a worker failed or is lost for good
    int64_t away_ns;   // since when a worker is absent while the job is to stop; 0: none
} remote_rescue;

#endif
