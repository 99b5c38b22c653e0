// Jobs with a supervisor on the submitting host, detached from the terminal. The supervisor is this
// program with the verb `supervise`, in a separate session. The engines local and ssh use it.
#ifndef BELFRY_LAUNCH_ENGINE_DETACHED_H
#define BELFRY_LAUNCH_ENGINE_DETACHED_H

#include "launch/cluster/plan.h"
#include "launch/engine/registry.h"

// Implement bel_engine.submit and cancel. A start that takes longer than `most_secs` is killed; the
// engine's own limits determine `most_secs`.
bel_status *bel_detached_submit(bel_job_record *record, int most_secs) BEL_MUST_USE;
bel_status *bel_detached_cancel(const bel_job_record *record) BEL_MUST_USE;

// Records in the job's status why the job never ran.
void bel_job_record_failure(bel_job_record *record, const bel_status *status);

#endif
