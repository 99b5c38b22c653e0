// Lock on a file between processes, which ends with the process that holds it.
#ifndef BELFRY_BASE_LINUX_LOCK_H
#define BELFRY_BASE_LINUX_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"

// Locks the file, which is created if it does not exist, and waits for it up to `timeout_secs`.
// Child programs do not inherit the lock, unless it is passed to them (linux_process.h): then it
// ends with the last process that has it. *out_lock is -1 if the file system has no locks.
// FAILED_PRECONDITION: another process holds it.
bel_status *bel_linux_lock(const char *path, double timeout_secs, int *out_lock) BEL_MUST_USE;
void bel_linux_unlock(int lock); // accepts -1

// Opens the file for locks on its bytes, and creates it if it does not exist; close it with
// bel_linux_unlock.
bel_status *bel_linux_open_bytes(const char *path, int *out_descriptor) BEL_MUST_USE;

// The same for a folder itself, which must exist, without waiting.
bel_status *bel_linux_lock_folder(const char *path, int *out_lock) BEL_MUST_USE;

// The same together with others: such locks exclude only those of bel_linux_lock_folder.
bel_status *bel_linux_share_folder(const char *path, int *out_lock) BEL_MUST_USE;

// Sets *out_is to whether the path still names the descriptor's file: false if it names another
// file, or does not exist. An error if this cannot be determined.
bel_status *bel_linux_is_open_on(int descriptor, const char *path, bool *out_is) BEL_MUST_USE;

// Locks one byte of an open file, which may be beyond its end, without waiting. The lock belongs to
// the open file, and ends with that process. Other processes that have the file thus see that it is
// gone, also from another container.
bool bel_linux_lock_byte(int descriptor, int64_t byte);
void bel_linux_unlock_byte(int descriptor, int64_t byte);
// Returns true if another open file has locked the byte.
bool bel_linux_byte_is_locked(int descriptor, int64_t byte);

// Children do not inherit a lock that this process received from its parent.
void bel_linux_keep_lock(int lock);

// Returns true if a process of this host has a unix socket bound to a path below the folder, which
// is absolute. True if that is unknown.
bool bel_linux_has_socket_below(const char *folder);

#endif
