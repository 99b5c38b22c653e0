// Folders of sockets that were left behind by jobs which were killed as a whole.
#ifndef BELFRY_LAUNCH_OLD_SOCKETS_H
#define BELFRY_LAUNCH_OLD_SOCKETS_H

#define BEL_SOCKETS_PREFIX "belfry-sockets-"

// Removes those of this user in `base` that are not locked (bel_linux_lock_folder), as each
// supervisor locks its own for its life. One that was changed within the last ten minutes stays:
// its job may be starting, or ending without its supervisor.
void bel_old_sockets_remove(const char *base);

#endif
