// Counter of a role's starts in a model folder. The count is the incarnation if the launcher does
// not provide one (TF_CONFIG, a task that is "counted"). A clock would not do: it can be set back.
//
// model_dir/job.starts/ROLE-INDEX has one byte per start, so counting is a single append, and no
// partially written content is ever read. Needs a folder that every host can write.
#ifndef BELFRY_LAUNCH_FOLDER_START_COUNT_H
#define BELFRY_LAUNCH_FOLDER_START_COUNT_H

#include "belfry/status.h"
#include "wire/role.h"

#include <stdint.h>

#define BEL_STARTS_FOLDER "job.starts"

// Counts this start; *out_count is 1 for the first. Creates the folders. File errors.
bel_status *bel_start_count(const char *model_dir, bel_role role, int index,
                            uint32_t *out_count) BEL_MUST_USE;

#endif
