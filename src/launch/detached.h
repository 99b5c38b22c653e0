// Jobs whose supervisor runs on the host of the submission, detached from the terminal: this
// program again, with the verb `supervise`, in a session of its own. For the engines local and ssh.
#ifndef BELFRY_LAUNCH_DETACHED_H
#define BELFRY_LAUNCH_DETACHED_H

#include "launch/plan.h"
#include "launch/registry.h"

// As bel_engine.submit and cancel say. A start that takes longer than `most_secs`, from which the
// engine's own limits follow, is given up and killed.
bel_status *bel_detached_submit(bel_job_record *record, int most_secs) BEL_MUST_USE;
bel_status *bel_detached_cancel(const bel_job_record *record) BEL_MUST_USE;

// The job's status says why it never ran.
void bel_job_record_failure(bel_job_record *record, const bel_status *status);

#endif
