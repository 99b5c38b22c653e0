// Text of jobs: names on the command line, and records for people and programs.
#ifndef BELFRY_TOOLS_JOBS_JOB_TEXT_H
#define BELFRY_TOOLS_JOBS_JOB_TEXT_H

#include "base/options.h"
#include "launch/engine/registry.h"

typedef struct bel_str bel_str; // base/str.h

// Writes a table: NAME STATE STEP AGE ENGINE, one job a line.
void bel_jobs_write_list(bel_job_record *const *records, size_t count, bel_str *out);

// Writes a table: JOB STATE STEP LOSS EXAMPLES/S ETA, of jobs that run or ended within ten minutes.
void bel_jobs_write_top(bel_job_record *const *records, size_t count, bel_str *out);

// Returns the one job name on the command line; `more`: other words may follow "--".
// INVALID_ARGUMENT.
bel_status *bel_job_take_name(const bel_options *options, bool more,
                              const char **out_name) BEL_MUST_USE;

// Reads the record in a loop that follows the job to its end. From the second round on it waits
// until a fifth of a second after the call before, and asks the engine only now and then.
bel_status *bel_job_follow(const char *name, int round, bel_job_record **out_record) BEL_MUST_USE;

// Writes the known facts, as lines "name value".
void bel_job_write_facts(const bel_job_record *record, bel_str *out);

// Writes one JSON object on a line.
void bel_job_write_json(const bel_job_record *record, bel_str *out);

#endif
