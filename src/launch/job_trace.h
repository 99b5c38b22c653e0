// The trace of a job: each process's part in model_dir/logs, and the whole of them at the end.
#ifndef BELFRY_LAUNCH_JOB_TRACE_H
#define BELFRY_LAUNCH_JOB_TRACE_H

#include "launch/task.h"

// Begins this process's part; without a trace_file nothing is traced. `task` is NULL when
// everything runs in this process; a master that is not a replacement first removes what an earlier
// job has left, so members begin theirs once they have met it.
bel_status *bel_job_trace_start(const char *trace_file, const char *model_dir,
                                const bel_task *task) BEL_MUST_USE;

// The master's end of it: makes the whole of the parts and says where it is. What goes wrong is
// a warning: the training was good.
void bel_job_trace_finish(const char *trace_file, const char *model_dir);

#endif
