// Records of jobs as people and programs read them.
#ifndef BELFRY_TOOLS_JOB_TEXT_H
#define BELFRY_TOOLS_JOB_TEXT_H

#include "base/str.h"
#include "launch/registry.h"

// A table: NAME STATE STEP AGE ENGINE, one job a line.
void bel_jobs_write_list(bel_job_record *const *records, size_t count, bel_str *out);

// A table: JOB STATE STEP LOSS EXAMPLES/S ETA, of jobs that run or ended within ten minutes.
void bel_jobs_write_top(bel_job_record *const *records, size_t count, bel_str *out);

// Lines "name value", of what is known.
void bel_job_write_facts(const bel_job_record *record, bel_str *out);

// One JSON object on a line.
void bel_job_write_json(const bel_job_record *record, bel_str *out);

#endif
