// Folders for a job's unix sockets: their place, their permissions, and the removal of those that
// killed jobs left.
#ifndef BELFRY_LAUNCH_FOLDER_SOCKETS_H
#define BELFRY_LAUNCH_FOLDER_SOCKETS_H

#include "belfry/status.h"

#define BEL_SOCKETS_PREFIX "belfry-sockets-"
#define BEL_SOCKETS_WORKER "w%d.%u" // a worker's socket, in a job over several hosts: incarnation

// Removes old folders in the parent folder and in /tmp, then creates a new one of mode 0700. The
// parent is $XDG_RUNTIME_DIR, or /tmp if that is unset, not writable or too long for a socket
// address. The folder stays locked while *out_lock is open (bel_linux_unlock). Free the path with
// bel_free.
bel_status *bel_sockets_create(char **out_folder, int *out_lock) BEL_MUST_USE;

// Returns the path for a job of this user, derived from a text, so that all its processes get the
// same. Free with bel_free.
char *bel_sockets_of(const char *job);

// Creates the folder that the processes of one job have agreed on, unless it exists.
// PERMISSION_DENIED: it exists and others than this user have access.
bel_status *bel_sockets_share(const char *folder) BEL_MUST_USE;

// For a process of a job over several hosts: removes old folders, then creates the folder of the
// job's processes on this host, unless it exists. It stays while *out_lock is open. Free the path
// with bel_free. Errors as above.
bel_status *bel_sockets_meet(const char *job, char **out_folder, int *out_lock) BEL_MUST_USE;

// Connects to each socket in the folder. PERMISSION_DENIED: one of them cannot be reached, though a
// process may listen there, as between containers that are kept apart.
bel_status *bel_sockets_check(const char *folder) BEL_MUST_USE;

// Leaves the folder; the last process that does so removes it, with sockets of killed processes.
void bel_sockets_part(const char *folder, int lock);

// For a process whose supervisor is gone: removes the folder of the job's sockets, with those of
// killed processes, unless a process uses it. One that another launcher chose is removed only if it
// is empty.
void bel_sockets_abandon(const char *folder);

// Removes this user's unused folders in `base`. A folder is in use if it is locked
// (bel_linux_lock_folder) or if a process has an open socket in it. Each supervisor and each master
// of ranks locks its folder for its lifetime. A folder changed within the last ten minutes stays:
// its job may be starting.
void bel_old_sockets_remove(const char *base);

#endif
