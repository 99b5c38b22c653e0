// Tasks from other launchers' variables: launchers that number their processes (ranks: mpirun,
// torchrun, srun …, base/launcher.h), and those of ps-lite and BytePS (DMLC_*).
//
// Ranks: rank 0 is the master and also trains, all others are workers, and each holds a shard. If
// ranks share a host, their sockets are in a folder named after the job's word; otherwise rank 0
// listens on the launcher's address. For parameter servers, describe a cluster and let ranks take
// its places (`belfry rank`).
//
// ps-lite: the scheduler is the master and does not train; servers are parameter servers. Indices
// come from DMLC_WORKER_ID and DMLC_SERVER_ID, from DMLC_TASK_ID (workers first, then servers), or
// from the rank among the processes of one mpirun or srun.
#ifndef BELFRY_LAUNCH_TASK_TASK_LAUNCHER_H
#define BELFRY_LAUNCH_TASK_TASK_LAUNCHER_H

#include "base/launcher.h"
#include "launch/task/task.h"

// Fills in the addresses of a rank that is a process of a described cluster; the task has its role
// and index already. The master must be rank 0. INVALID_ARGUMENT: ranks are on several hosts, and
// the launcher does not provide rank 0's address.
bel_status *bel_task_set_rank(const bel_launch *launch, bel_task *task) BEL_MUST_USE;

// Fills a task that is zero except for its secret. *out_found: false if no launcher set anything (a
// single process, or ranks that call each other directly). INVALID_ARGUMENT names the variable and
// the expected value.
bel_status *bel_task_of_launcher(bool chief_trains, bel_task *task, bool *out_found) BEL_MUST_USE;

#endif
