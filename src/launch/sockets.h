// Folders of a job's unix sockets: where they lie, who may look into them, and what becomes of
// those that jobs left behind which were killed as a whole.
#ifndef BELFRY_LAUNCH_SOCKETS_H
#define BELFRY_LAUNCH_SOCKETS_H

#include "belfry/status.h"

#define BEL_SOCKETS_PREFIX "belfry-sockets-"

// The folder in which they lie: $XDG_RUNTIME_DIR, or /tmp where that is missing, cannot be written
// or is too long for an address of a socket. Free with bel_free.
char *bel_sockets_base(void);

// Removes old folders in that base and in /tmp, then makes a new one of mode 0700 and locks it for
// as long as *out_lock is open (bel_linux_unlock). Free the path with bel_free.
bel_status *bel_sockets_create(char **out_folder, int *out_lock) BEL_MUST_USE;

// The path for a job of this user's that a text names, the same in all of its processes. Free with
// bel_free.
char *bel_sockets_of(const char *job);

// Makes the folder that processes of one job have agreed on, unless one of them has. PERMISSION_
// DENIED: there is one that is not this user's alone.
bel_status *bel_sockets_share(const char *folder) BEL_MUST_USE;

// Removes those of this user in `base` that are not locked (bel_linux_lock_folder), as each
// supervisor, and each master of ranks, locks its own for its life, and in which no process has an
// open socket. One that was changed within the last ten minutes stays: its job may be starting.
void bel_old_sockets_remove(const char *base);

#endif
