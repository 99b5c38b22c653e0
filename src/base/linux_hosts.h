// Look-up of many hosts at once, and which of them is this one.
#ifndef BELFRY_BASE_LINUX_HOSTS_H
#define BELFRY_BASE_LINUX_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

// Result of a host's look-up.
typedef struct bel_linux_host {
    const char *name;  // in: a name or an address, without port and brackets
    char address[64];  // the first one; "": not found
    char problem[128]; // reason of a failure; "" otherwise
    bool is_here;      // one of its addresses, or its name, is this host's
    bool is_loopback;  // the address means this host on every host
} bel_linux_host;

// Looks up all of them at once and returns after `timeout_ms` at the latest; a name without an
// answer by then has that as its problem.
void bel_linux_hosts_find(bel_linux_host *hosts, size_t count, int timeout_ms);

#endif
