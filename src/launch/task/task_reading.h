// Shared by the readers of a task: limits, addresses, errors that name the variable.
#ifndef BELFRY_LAUNCH_TASK_TASK_READING_H
#define BELFRY_LAUNCH_TASK_TASK_READING_H

#include "launch/task/task.h"

enum { BEL_TASK_MOST_MEMBERS = 1024 }; // per role, as in cluster files

// INVALID_ARGUMENT: an invalid member of the variable's JSON.
bel_status *bel_task_bad(const char *variable, const char *member,
                         const char *expected) BEL_MUST_USE;

// True for "unix:/path", or "host:port" with a port from 0 to 65535; false for NULL.
bool bel_task_is_address(const char *text);

// True for a worker, or a master that trains.
bool bel_task_trains(const bel_task *task);

#endif
