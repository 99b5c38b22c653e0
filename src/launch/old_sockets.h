// Folders of sockets that jobs have left behind which were killed as a whole.
#ifndef BELFRY_LAUNCH_OLD_SOCKETS_H
#define BELFRY_LAUNCH_OLD_SOCKETS_H

#define BEL_SOCKETS_PREFIX "belfry-sockets-"

// Removes those of this user in `base` in which nobody listens. One that was changed within the
// last ten minutes stays: its job may be starting.
void bel_old_sockets_remove(const char *base);

#endif
