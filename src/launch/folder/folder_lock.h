// Lock of a model folder, for one run at a time: two runs would remove each other's checkpoints.
#ifndef BELFRY_LAUNCH_FOLDER_FOLDER_LOCK_H
#define BELFRY_LAUNCH_FOLDER_FOLDER_LOCK_H

#include <stdbool.h>

#include "belfry/status.h"

#define BEL_LOCK_FILE "job.lock"

// Creates the folder and locks job.lock in it without waiting; release with bel_folder_unlock. Also
// removes files that killed processes left half-written, and owns the folder in its store, if it is
// a store's (stored.h). For a run in one process, and for a
// cluster's supervisor, which passes its lock to the masters. So the folder stays locked while
// either of them runs, and while a master is replaced. FAILED_PRECONDITION: another run has the
// lock. Errors of bel_dir_create and bel_stored_own.
bel_status *bel_folder_lock(const char *model_dir, int *out_lock) BEL_MUST_USE;

// Releases the lock; accepts -1. Errors of bel_stored_release.
bel_status *bel_folder_unlock(const char *model_dir, int lock) BEL_MUST_USE;

// For a master: keeps the lock that its supervisor passed as descriptor `given`. Without one (0, or
// a descriptor of another file) it takes the lock itself. It then waits up to `patience_secs`, or
// until `stop` is true, since its predecessor may still run.
bel_status *bel_folder_lock_of_master(const char *model_dir, int given, double patience_secs,
                                      bool (*stop)(void), int *out_lock) BEL_MUST_USE;

// ABORTED: the lock is no longer the folder's, because the folder or its lock file was renamed or
// removed. A second check one second later must agree. OK for a lock of -1, and if the file system
// cannot tell (a network file system that does not answer). The latter is a warning, once for each
// *told, which starts as false.
bel_status *bel_folder_lock_check(const char *model_dir, int lock, bool *told) BEL_MUST_USE;

#endif
