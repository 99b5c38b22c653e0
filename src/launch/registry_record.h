// The files of one job in the registry, for registry.c: job.json, what was asked for, which never
// changes; status.json, what became of it, replaced as a whole; engine_id.
#ifndef BELFRY_LAUNCH_REGISTRY_RECORD_H
#define BELFRY_LAUNCH_REGISTRY_RECORD_H

#include "launch/registry.h"

extern const char bel_record_id_file[]; // the name of the file with the engine's own name

bel_status *bel_record_write_file(const char *folder, const char *name,
                                  const bel_str *text) BEL_MUST_USE;
bel_status *bel_record_write_job(const bel_job_record *record, const char *folder,
                                 double now) BEL_MUST_USE; // seconds since 1970
bel_status *bel_record_write_status(const bel_job_record *record, const char *folder) BEL_MUST_USE;

// Into a record that is being read. DATA_LOSS: a file is none of a job's.
bel_status *bel_record_read_job(const char *folder, bel_job_record *record) BEL_MUST_USE;
// May be called again for the same record: texts of the first reading are freed.
bel_status *bel_record_read_status(const char *folder, bel_job_record *record) BEL_MUST_USE;
void bel_record_read_engine_id(const char *folder, bel_job_record *record);

#endif
