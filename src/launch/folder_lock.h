// One run in a model folder at a time: two would remove each other's checkpoints.
#ifndef BELFRY_LAUNCH_FOLDER_LOCK_H
#define BELFRY_LAUNCH_FOLDER_LOCK_H

#include <stdbool.h>

#include "belfry/status.h"

#define BEL_LOCK_FILE "job.lock"

// Makes the folder and locks job.lock in it, at once or not at all; end it with bel_linux_unlock.
// Files that processes were killed in the middle of writing there are removed then.
// For a run in one process, and for the supervisor of a cluster, which gives its lock to the
// masters: so the folder stays locked while either is there, and when a master is replaced.
// FAILED_PRECONDITION: another run has it. Errors of bel_dir_create.
bel_status *bel_folder_lock(const char *model_dir, int *out_lock) BEL_MUST_USE;

// For a master: keeps the lock that its supervisor has given it as descriptor `given`. Without one
// (0, or a descriptor of something else) it takes the lock itself, and waits for it up to
// `patience_secs`, or until `stop` says so, since the master that it replaces may still be there.
bel_status *bel_folder_lock_of_master(const char *model_dir, int given, double patience_secs,
                                      bool (*stop)(void), int *out_lock) BEL_MUST_USE;

// ABORTED when the lock is not that of the folder any more: the folder was renamed or
// removed, or its lock was. That is believed when a second look, a second later, says the same. OK
// for a lock of -1, and where it cannot be told (a network file system that does not answer):
// that is a warning, once for each *told, false at first.
bel_status *bel_folder_lock_check(const char *model_dir, int lock, bool *told) BEL_MUST_USE;

#endif
