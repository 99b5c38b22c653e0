// Names of hosts.
#ifndef BELFRY_BASE_LINUX_HOST_H
#define BELFRY_BASE_LINUX_HOST_H

#include <stdbool.h>

// True when the host of "host:port" or "[address]:port" has an address, and for "unix:path". Asks
// the name service, which may take seconds.
bool bel_linux_host_is_known(const char *address);

#endif
