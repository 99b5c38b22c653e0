// Names and addresses of hosts.
#ifndef BELFRY_BASE_LINUX_HOST_H
#define BELFRY_BASE_LINUX_HOST_H

#include <stdbool.h>

// Returns true if the host of "host:port" or "[address]:port" has an address, and for "unix:path".
// Asks the name service, which may take seconds.
bool bel_linux_host_is_known(const char *address);

// Returns true for a name or an address ("localhost", "127.0.0.2", "::1") that no other host can
// reach. Does not ask the name service.
bool bel_linux_host_is_loopback(const char *host);

// The same for the host of "host:port", and true for "unix:path".
bool bel_linux_address_is_loopback(const char *address);

// Returns true for a name of this host: its host name, or a loopback name.
bool bel_linux_host_is_here(const char *host);

// Returns this host's address as the host of "host:port" and other hosts on that route see it:
// "10.0.0.3", or with brackets if it has colons. NULL: there is no route, or the name has no
// address. Sends nothing; may ask the name service. Free with bel_free.
char *bel_linux_host_toward(const char *address);

// Returns the address to listen at so that other hosts reach "host:port" of this host, usually the
// same text. It is "[::]:port", every address, if this host's table of names gives the host a
// loopback address (127.0.1.1 on Debian), which others cannot reach. Free with bel_free.
char *bel_linux_host_listening(const char *address);

#endif
