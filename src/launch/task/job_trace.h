// Trace of a job: each process writes a part in model_dir/logs, and the master joins the parts.
#ifndef BELFRY_LAUNCH_TASK_JOB_TRACE_H
#define BELFRY_LAUNCH_TASK_JOB_TRACE_H

#include "launch/task/task.h"

// Begins this process's part; does nothing without a trace_file. `task` is NULL if everything runs
// in this process. A master that is not a replacement first removes an earlier job's parts, so
// members must begin theirs after they have met it.
bel_status *bel_job_trace_start(const char *trace_file, const char *model_dir,
                                const bel_task *task) BEL_MUST_USE;

// Joins the parts and logs the path of the result; for the master. Errors become warnings, since
// the training succeeded.
void bel_job_trace_finish(const char *trace_file, const char *model_dir);

#endif
