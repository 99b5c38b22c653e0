// TCP connections of ranks: non-blocking, TCP_NODELAY, and closed by the system when the other host
// is gone (bel_linux_socket_watch).
#ifndef BELFRY_DDL_SOCKET_H
#define BELFRY_DDL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "belfry/status.h"

enum { BEL_DDL_ADDRESS_TEXT = 64 }; // numeric address

// Listens at a port of this host; 0: any port, in *out_port. If `host` is not one of this host's
// addresses (NAT), or is a name that only this host resolves to a loopback address, it listens at
// all addresses. UNAVAILABLE names host and port.
bel_status *bel_ddl_socket_listen(const char *host, int port, int *out_file,
                                  int *out_port) BEL_MUST_USE;

// Makes one attempt, until the deadline (bel_clock_awake_ns). UNAVAILABLE: no listener yet;
// NOT_FOUND: a name without an address.
bel_status *bel_ddl_socket_connect(const char *host, int port, int64_t deadline,
                                   double patience_secs, int *out_file) BEL_MUST_USE;

// Accepts the next connection; -1: no connection.
int bel_ddl_socket_accept(int listener, double patience_secs);

// Writes the numeric address of this side, or with `peer` of the other; "" if unknown.
void bel_ddl_socket_address(int file, bool peer, char out[BEL_DDL_ADDRESS_TEXT]);

// Transfer up to `bytes`, without waiting. 0: nothing now; -1: the connection is closed, see
// *out_why.
ssize_t bel_ddl_socket_send(int file, const void *data, size_t bytes, const char **out_why);
ssize_t bel_ddl_socket_receive(int file, void *data, size_t bytes, const char **out_why);
// True if `bytes` bytes have arrived; copies them and leaves them in the socket.
bool bel_ddl_socket_peek(int file, void *data, size_t bytes);
// True if the other side has closed; leaves received bytes in the socket.
bool bel_ddl_socket_has_ended(int file);

// Transfer all bytes by the deadline (bel_clock_awake_ns). False: see *out_why.
bool bel_ddl_socket_send_all(int file, const void *data, size_t bytes, int64_t deadline,
                             const char **out_why);
bool bel_ddl_socket_receive_all(int file, void *data, size_t bytes, int64_t deadline,
                                const char **out_why);

#endif
