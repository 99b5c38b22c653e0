// The inside of a member: member.c (joining and messages), member_shard.c, member_worker.c.
#ifndef BELFRY_JOB_MEMBER_INNER_H
#define BELFRY_JOB_MEMBER_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "job/control.h"
#include "job/member.h"
#include "job/remote.h"
#include "job/train.h"
#include "transport/grpc/grpc_lane.h"
#include "transport/grpc/mailbox.h"

// What a process that holds a shard has. In a process that is a worker as well the two share space
// and layout.
typedef struct member_shard {
    bool here;
    int index;
    const bel_layout *layout;
    const bel_deal *deal;
    bel_space *space;
    float *snapshot;
    bel_shard *shard;
    bel_control *control; // shard 0
    bel_doorbell *bell;
    bel_lane **worker_lanes; // by worker
    bel_lane **shard_lanes;  // shard 0: by shard; others: [0]
    bel_lane *master_lane;
    bel_shard_peer *worker_peers, *shard_peers;
    pthread_mutex_t mutex; // guards open
    bool open;             // lanes can be found
    pthread_t engine;
    bool has_engine;
    atomic_bool stop;
} member_shard;

typedef struct member_worker {
    bool here;
    bel_job job; // its model: input, graph, layout, settings
    bel_space *space;
    bel_lane **lanes; // by shard
    bel_client_peer *peers;
    bel_client *client;
    bel_doorbell *bell;
    bel_worker *worker;
    pthread_t thread;
    bool has_thread;
    atomic_bool cancelled, ended;
    bel_status *status; // of bel_worker_run, once it has ended
    bool told;          // the master knows
} member_worker;

typedef struct member {
    const bel_task *task;
    const bel_member_program *program;
    const bel_estimator *estimator;
    bel_endpoint *endpoint;
    bel_doorbell *bell; // of the mailbox
    bel_mailbox *mailbox;
    bel_deal *deal;
    bel_layout *layout; // a parameter server's own, from the master's description
    member_shard shard;
    member_worker worker;
    int64_t status_ns, progress_ns; // when they were last sent
    int64_t progress_step;
    bel_status *end; // what the master said; CANCELLED or NULL once it has
    bool over, told_stop, told_failure;
    int64_t evaluated_step; // evaluator: of the newest checkpoint that it has evaluated
    bool evaluates;         // evaluator: the master has said that the job runs
} member;

// Creates the shard as the setup says, loads the checkpoint and opens the lanes.
bel_status *bel_member_shard_start(member *m, const bel_message *setup) BEL_MUST_USE;
void bel_member_shard_stop(member *m); // ends its thread and closes its lanes
void bel_member_shard_free(member *m); // once the endpoint is gone
// Answers what the master asks of a shard.
void bel_member_shard_message(member *m, const bel_message *message);
void bel_member_shard_progress(member *m); // shard 0: tells the master about steps
// The error that stopped the shard or, at shard 0, the training (a loss that is not finite).
bel_status *bel_member_shard_check(member *m) BEL_MUST_USE;
// For the endpoint: a peer opens a lane.
bel_status *bel_member_shard_accept(void *context, const char *path, bel_stream *stream,
                                    bel_stream_events *out_events) BEL_MUST_USE;

// Builds the model; before joining, since its settings are shown then.
bel_status *bel_member_worker_build(member *m) BEL_MUST_USE;
bel_status *bel_member_worker_start(member *m, const bel_message *setup) BEL_MUST_USE;
bel_status *bel_member_worker_run(member *m) BEL_MUST_USE; // starts its thread
// member_evaluator.c: evaluates the newest checkpoint if it is new; with `last`, then tells the
// master that it is through.
bel_status *bel_member_evaluate(member *m, bool last) BEL_MUST_USE;

void bel_member_worker_check(member *m); // tells the master when the worker has ended
void bel_member_worker_stop(member *m);  // ends its thread and closes its lanes
void bel_member_worker_free(member *m);  // once the endpoint is gone

#endif
