// Addresses of a task: makes them ones at which this process can listen and be called.
#ifndef BELFRY_DRIVER_REACH_H
#define BELFRY_DRIVER_REACH_H

#include "launch/task/task.h"

// Waits until the name of the listening address resolves, at most for the join timeout, and
// replaces `*` in it. INVALID_ARGUMENT: neither a secret nor TLS protects a job beyond the
// loopback. UNAVAILABLE: no network leads to the master. CANCELLED: the process was asked to end.
bel_status *bel_task_reach(bel_task *task) BEL_MUST_USE;

#endif
