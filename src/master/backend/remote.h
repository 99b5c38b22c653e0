// Backend of processes: the master's side of a cluster job. docs/protocol.md has the messages.
//
// A member that holds state reports it when it joins. If all shards hold the state of one
// generation, the master takes the job over unchanged (it may be a new master). Otherwise a new
// generation begins, and all load the newest checkpoint. A worker without state is admitted into
// the running generation.
#ifndef BELFRY_MASTER_BACKEND_REMOTE_H
#define BELFRY_MASTER_BACKEND_REMOTE_H

#include "launch/task/task.h"
#include "master/backend/backend.h"
#include "master/backend/watchdog.h"
#include "master/members/members.h"
#include "trainable/trainable.h"

// Writes model_dir/job.token and listens, so that members can join while the master builds its
// model. Free with bel_members_destroy. *out_replaces: an earlier master did not end its job, and
// members may belong to it.
bel_status *bel_remote_listen(const bel_task *task, const bel_estimator *estimator,
                              bel_members **out_members, bool *out_replaces) BEL_MUST_USE;

// Removes job.token and job.scale, after the members have disconnected, unless another master has
// replaced this one.
void bel_remote_unlisten(const bel_run_config *config, const bel_task *task,
                         const bel_members *members);

typedef struct bel_remote_config {
    bel_members *members;
    bool replaces; // see bel_remote_listen
    const bel_task *task;
    const bel_trainable *trainable;
    int64_t max_steps;      // version at which training ends; 0: the data decide
    bel_watchdog *watchdog; // fed in each round of a wait; NULL: absent
    int eval_count;         // evaluations by a separate evaluator
} bel_remote_config;

// The config's pointers must outlive the backend. RESOURCE_EXHAUSTED.
bel_status *bel_remote_create(const bel_remote_config *config,
                              bel_backend **out_backend) BEL_MUST_USE;

#endif
