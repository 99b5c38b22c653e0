// A lock on a file between processes, which ends with the process that holds it.
#ifndef BELFRY_BASE_LINUX_LOCK_H
#define BELFRY_BASE_LINUX_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

// Locks the file, which is made if it is not there, and waits for it up to `timeout_secs`. Programs
// that this process starts do not inherit the lock, unless they are given it (linux_process.h):
// then it ends with the last that has it. *out_lock is -1 where the file system has none.
// FAILED_PRECONDITION: another one has it.
bel_status *bel_linux_lock(const char *path, double timeout_secs, int *out_lock) BEL_MUST_USE;
void bel_linux_unlock(int lock); // -1 is fine

// The same for a folder itself, which must be there, at once or not at all.
bel_status *bel_linux_lock_folder(const char *path, int *out_lock) BEL_MUST_USE;

// Whether the descriptor is open on the file that the path names now: false when it names another
// one, or none. An error where that cannot be told.
bel_status *bel_linux_is_open_on(int descriptor, const char *path, bool *out_is) BEL_MUST_USE;

// A lock on one byte of an open file, which need not be there, at once or not at all. It belongs to
// whoever opened the file, and ends with that process: so others who have the file see that it is
// gone, also from another container.
bool bel_linux_lock_byte(int descriptor, int64_t byte);
// Whether another one who opened the file has locked the byte.
bool bel_linux_byte_is_locked(int descriptor, int64_t byte);

// A lock that this process was given by the one that started it is not inherited any further.
void bel_linux_keep_lock(int lock);

// Whether a process of this host has a unix socket bound to a path below the folder, which is
// absolute. True where that cannot be known.
bool bel_linux_has_socket_below(const char *folder);

#endif
