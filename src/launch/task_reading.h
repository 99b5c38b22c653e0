// What readers of a task share: limits, addresses, errors that name the variable.
#ifndef BELFRY_LAUNCH_TASK_READING_H
#define BELFRY_LAUNCH_TASK_READING_H

#include "launch/task.h"

enum { BEL_TASK_MOST_MEMBERS = 1024 }; // of a role, as in cluster files

// INVALID_ARGUMENT: a member of the variable's JSON is not as it must be.
bel_status *bel_task_bad(const char *variable, const char *member,
                         const char *expected) BEL_MUST_USE;

// "unix:/path", or "host:port" with a port from 0 to 65535; NULL is none.
bool bel_task_is_address(const char *text);

// A worker, or a master that trains.
bool bel_task_trains(const bel_task *task);

#endif
