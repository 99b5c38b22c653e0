// Tasks of processes that other people's launchers start: those that number their processes (ranks:
// mpirun, torchrun, srun …, base/launcher.h), and ps-lite's and BytePS's (DMLC_*).
//
// Ranks: rank 0 is the master and trains as well, all others are workers, and each holds a shard.
// Where ranks share a host their sockets lie in a folder that the job's word names, else rank 0
// listens where the launcher says. Whoever wants parameter servers describes a cluster and lets
// ranks take its places (`belfry rank`).
//
// ps-lite: the scheduler is the master and does not train, servers are parameter servers. Indices
// come from DMLC_WORKER_ID and DMLC_SERVER_ID, from DMLC_TASK_ID (of workers; servers follow them),
// or from the rank among the processes of one mpirun or srun.
#ifndef BELFRY_LAUNCH_TASK_LAUNCHER_H
#define BELFRY_LAUNCH_TASK_LAUNCHER_H

#include "base/launcher.h"
#include "launch/task.h"

// A rank as a process of a cluster that is described: the task has its role and index, and gets its
// addresses here. The master must be rank 0. INVALID_ARGUMENT: ranks of several hosts, and the
// launcher does not say where rank 0 is.
bel_status *bel_task_set_rank(const bel_launch *launch, bel_task *task) BEL_MUST_USE;

// Fills a task that is zero but for its secret. *out_found: false when no launcher says anything
// (a single process, or ranks that call each other by themselves). INVALID_ARGUMENT names the
// variable and what was expected.
bel_status *bel_task_of_launcher(bool chief_trains, bel_task *task, bool *out_found) BEL_MUST_USE;

#endif
