// Parts of reading a task that BELFRY_TASK (task.c) and TF_CONFIG (task_tf_config.c) share, so that
// both accept the same addresses and report the same errors. This file knows neither variable's
// format.
#include "launch/task/task_reading.h"

#include <string.h>

#include "base/str.h"

bel_status *bel_task_bad(const char *variable, const char *member, const char *expected)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: \"%s\" must be %s", variable,
                   member, expected);
}

bool bel_task_is_address(const char *text)
{
    int64_t port;
    if (text == NULL) return false;
    if (strncmp(text, "unix:", 5) == 0) return text[5] != '\0';
    const char *colon = strrchr(text, ':');
    return colon != NULL && colon != text && bel_parse_i64(colon + 1, strlen(colon + 1), &port) &&
           port >= 0 && port <= UINT16_MAX;
}

bool bel_task_trains(const bel_task *task)
{
    return task->role == BEL_ROLE_WORKER || (task->role == BEL_ROLE_MASTER && task->master_trains);
}
