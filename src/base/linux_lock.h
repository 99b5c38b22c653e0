// A lock on a file between processes, which ends with the process that holds it.
#ifndef BELFRY_BASE_LINUX_LOCK_H
#define BELFRY_BASE_LINUX_LOCK_H

#include "belfry/status.h"

// Locks the file, which is made if it is not there, and waits for it up to `timeout_secs`. Programs
// that this process starts do not inherit the lock. *out_lock is -1 where the file system has none.
// FAILED_PRECONDITION: another one has it.
bel_status *bel_linux_lock(const char *path, double timeout_secs, int *out_lock) BEL_MUST_USE;
void bel_linux_unlock(int lock); // -1 is fine

#endif
