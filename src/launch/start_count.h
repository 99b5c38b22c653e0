// How often a role was started in a model folder: its incarnation, where the launcher does not say
// it (TF_CONFIG, a task that is "counted"). Clocks may be set back.
//
// model_dir/job.starts/ROLE-INDEX has a byte for each start, so that counting is one append:
// nothing is ever read back that could have been written in part. Needs a folder that every host
// can write.
#ifndef BELFRY_LAUNCH_START_COUNT_H
#define BELFRY_LAUNCH_START_COUNT_H

#include "belfry/status.h"
#include "wire/role.h"

#include <stdint.h>

#define BEL_STARTS_FOLDER "job.starts"

// Counts this start; *out_count is 1 for the first. Makes the folders. Errors of files.
bel_status *bel_start_count(const char *model_dir, bel_role role, int index,
                            uint32_t *out_count) BEL_MUST_USE;

#endif
