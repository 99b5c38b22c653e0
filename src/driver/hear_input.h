// Training input of a master that has no access to the data: what the first worker says of it.
#ifndef BELFRY_DRIVER_HEAR_INPUT_H
#define BELFRY_DRIVER_HEAR_INPUT_H

#include "launch/task/task.h"
#include "model/remote_input.h"

#define BEL_INPUT_ELSEWHERE "the training data is not on this host"

// Whether this process may do without the training data: it is a master that does not train, its
// workers may be on other hosts, and members call again after a lost connection.
bool bel_may_hear_input(const bel_task *task);

// Listens at the master's address until a worker joins, takes its description of the input, and
// disconnects all callers: they call again, and then meet the job's master. Logs that it waits, and
// why this process needs the description: BEL_INPUT_ELSEWHERE, or the input function's error.
// DEADLINE_EXCEEDED: no worker came within the join timeout; with the reason. CANCELLED: a request
// to end came first. Other errors: those of bel_task_reach
// and bel_endpoint_create.
bel_status *bel_hear_input(bel_task *task, const char *why,
                           bel_remote_input **out_input) BEL_MUST_USE;

#endif
