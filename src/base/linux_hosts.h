// What the name service says of many hosts at once, and which of them is this one.
#ifndef BELFRY_BASE_LINUX_HOSTS_H
#define BELFRY_BASE_LINUX_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

// What the name service says of a host.
typedef struct bel_linux_host {
    const char *name;  // in: a name or an address, without port and brackets
    char address[64];  // the first that it has; "": none was found
    char problem[128]; // why none was found; "" otherwise
    bool is_here;      // it is this host: one of its addresses is, or the name is this host's own
    bool is_loopback;  // that address is one that means this host to every host
} bel_linux_host;

// Asks for all of them at once and returns after `timeout_ms` at the latest; a name for which there
// is no answer by then has that as its problem.
void bel_linux_hosts_find(bel_linux_host *hosts, size_t count, int timeout_ms);

#endif
