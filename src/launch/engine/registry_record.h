// Files of one job in the registry, for registry.c: job.json, the submission, which never changes;
// status.json, the state, replaced as a whole; engine_id.
#ifndef BELFRY_LAUNCH_ENGINE_REGISTRY_RECORD_H
#define BELFRY_LAUNCH_ENGINE_REGISTRY_RECORD_H

#include "launch/engine/registry.h"

extern const char bel_record_id_file[]; // name of the file with the engine's name for the job

bel_status *bel_record_write_file(const char *folder, const char *name,
                                  const bel_str *text) BEL_MUST_USE;
bel_status *bel_record_write_job(const bel_job_record *record, const char *folder,
                                 double now) BEL_MUST_USE; // seconds since 1970
bel_status *bel_record_write_status(const bel_job_record *record, const char *folder) BEL_MUST_USE;

// Read into a record. DATA_LOSS: not a job's file.
bel_status *bel_record_read_job(const char *folder, bel_job_record *record) BEL_MUST_USE;
// May be called again on a record: frees the texts of the first reading.
bel_status *bel_record_read_status(const char *folder, bel_job_record *record) BEL_MUST_USE;
void bel_record_read_engine_id(const char *folder, bel_job_record *record);

#endif
