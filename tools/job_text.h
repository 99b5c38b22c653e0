// Jobs on the command line, and their records as people and programs read them.
#ifndef BELFRY_TOOLS_JOB_TEXT_H
#define BELFRY_TOOLS_JOB_TEXT_H

#include "base/options.h"
#include "base/str.h"
#include "launch/registry.h"

// A table: NAME STATE STEP AGE ENGINE, one job a line.
void bel_jobs_write_list(bel_job_record *const *records, size_t count, bel_str *out);

// A table: JOB STATE STEP LOSS EXAMPLES/S ETA, of jobs that run or ended within ten minutes.
void bel_jobs_write_top(bel_job_record *const *records, size_t count, bel_str *out);

// The one job that the command line names; `more`: other words may stand behind "--".
// INVALID_ARGUMENT.
bel_status *bel_job_take_name(const bel_options *options, bool more,
                              const char **out_name) BEL_MUST_USE;

// Reads the job in a loop that follows it until its end: from the second round on a fifth of a
// second after the call before, and only now and then with what its engine knows.
bel_status *bel_job_follow(const char *name, int round, bel_job_record **out_record) BEL_MUST_USE;

// Lines "name value", of what is known.
void bel_job_write_facts(const bel_job_record *record, bel_str *out);

// One JSON object on a line.
void bel_job_write_json(const bel_job_record *record, bel_str *out);

#endif
