// Reporter of the running job, once a second: the metrics on the master's HTTP port, and in a
// cluster the file board.json in the model folder. Bound to the master's thread.
#ifndef BELFRY_MASTER_JOB_STATUS_REPORTER_H
#define BELFRY_MASTER_JOB_STATUS_REPORTER_H

#include "estimator/estimator_inner.h"
#include "launch/task/task.h"
#include "master/backend/backend.h"

typedef struct bel_reporter bel_reporter;

// Opens the port, if the configuration has one, and logs it. `task` is NULL in one process.
// UNAVAILABLE: the port is taken.
bel_status *bel_reporter_create(const bel_estimator *estimator, const bel_task *task,
                                bel_reporter **out_reporter) BEL_MUST_USE;

// Updates if a second has passed since the last time, or at once with `now`.
void bel_reporter_update(bel_reporter *reporter, bel_backend *backend, int64_t last_step, bool now);

// The board of the last update.
const bel_board *bel_reporter_board(const bel_reporter *reporter);

// After the workers have finished: logs the slowest one, if any.
void bel_reporter_end(bel_reporter *reporter, bel_backend *backend, int64_t last_step);

void bel_reporter_destroy(bel_reporter *reporter); // accepts NULL

#endif
