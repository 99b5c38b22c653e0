// One run in a model folder at a time: two would remove each other's checkpoints.
#ifndef BELFRY_LAUNCH_FOLDER_LOCK_H
#define BELFRY_LAUNCH_FOLDER_LOCK_H

#include "belfry/status.h"

#define BEL_LOCK_FILE "job.lock"

// Makes the folder and locks job.lock in it, at once or not at all; end it with bel_linux_unlock.
// For who trains in one process; of a cluster the supervisor has the lock, since a master may be
// replaced. FAILED_PRECONDITION: another run has it. Errors of bel_dir_create.
bel_status *bel_folder_lock(const char *model_dir, int *out_lock) BEL_MUST_USE;

#endif
