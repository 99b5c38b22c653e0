// A lock on a file between processes, which ends with the process that holds it.
#ifndef BELFRY_BASE_LINUX_LOCK_H
#define BELFRY_BASE_LINUX_LOCK_H

#include "belfry/status.h"

// Locks the file, which is made if it is not there, for as long as the descriptor is open; close it
// with close. Programs that this process starts do not inherit it. *out_descriptor is -1 where the
// file system has no locks. FAILED_PRECONDITION: another process has it.
bel_status *bel_linux_lock(const char *path, int *out_descriptor) BEL_MUST_USE;

#endif
