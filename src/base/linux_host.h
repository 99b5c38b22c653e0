// Names and addresses of hosts.
#ifndef BELFRY_BASE_LINUX_HOST_H
#define BELFRY_BASE_LINUX_HOST_H

#include <stdbool.h>

// True when the host of "host:port" or "[address]:port" has an address, and for "unix:path". Asks
// the name service, which may take seconds.
bool bel_linux_host_is_known(const char *address);

// True for a name or an address ("localhost", "127.0.0.2", "::1") that no other host can reach.
// Asks nobody.
bool bel_linux_host_is_loopback(const char *host);

// The same for the host of "host:port", and true for "unix:path".
bool bel_linux_address_is_loopback(const char *address);

// True for a name by which this host calls itself: its host name, or one of the loopback's.
bool bel_linux_host_is_here(const char *host);

// The address that this host has for the host of "host:port", as other hosts on that way see it:
// "10.0.0.3", or with brackets when it has colons. NULL: there is no way, or its name has no
// address. Sends nothing; may ask the name service. Free with bel_free.
char *bel_linux_host_toward(const char *address);

// What to listen at so that others find "host:port" of this host: the same, but "[::]:port", which
// is every address of this host, where the host's own table of names gives it a loopback address
// (127.0.1.1 on Debian), at which nobody else would. Free with bel_free.
char *bel_linux_host_listening(const char *address);

#endif
