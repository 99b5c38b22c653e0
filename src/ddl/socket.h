// TCP connections of ranks: non-blocking, without delay, and broken off by the system when the
// other host has gone (bel_linux_socket_watch).
#ifndef BELFRY_DDL_SOCKET_H
#define BELFRY_DDL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "belfry/status.h"

enum { BEL_DDL_ADDRESS_TEXT = 64 }; // of an address in numbers

// Listens at a port of this host; 0: at any, *out_port. Where `host` is none of this host's
// addresses, as behind a translation, or is a name that this host alone takes for a local one, it
// listens at all of them. UNAVAILABLE names host and port.
bel_status *bel_ddl_socket_listen(const char *host, int port, int *out_file,
                                  int *out_port) BEL_MUST_USE;

// One attempt. UNAVAILABLE: nobody listens there, as yet; NOT_FOUND: a name that has no address.
bel_status *bel_ddl_socket_connect(const char *host, int port, int64_t deadline,
                                   double patience_secs, int *out_file) BEL_MUST_USE;

// The next one that has connected; -1: nobody has.
int bel_ddl_socket_accept(int listener, double patience_secs);

// The address of this side (`peer`: of the other) in numbers; "" where there is none.
void bel_ddl_socket_address(int file, bool peer, char out[BEL_DDL_ADDRESS_TEXT]);

// Up to `bytes`, without waiting. 0: none now; -1: the connection has ended, for *out_why.
ssize_t bel_ddl_socket_send(int file, const void *data, size_t bytes, const char **out_why);
ssize_t bel_ddl_socket_receive(int file, void *data, size_t bytes, const char **out_why);
// Whether so many bytes have come; they are copied, and left where they are.
bool bel_ddl_socket_peek(int file, void *data, size_t bytes);
// Whether the other side has ended it; what has come is left where it is.
bool bel_ddl_socket_has_ended(int file);

// All of it, by the deadline (bel_clock_ns). False: *out_why.
bool bel_ddl_socket_send_all(int file, const void *data, size_t bytes, int64_t deadline,
                             const char **out_why);
bool bel_ddl_socket_receive_all(int file, void *data, size_t bytes, int64_t deadline,
                                const char **out_why);

#endif
