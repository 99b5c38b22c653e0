// Unix sockets of our own, handed to gRPC as connected descriptors: its own have send buffers of
// 200 KB, which cut a megabyte into many small writes, each with a wake-up on the other side; with
// large buffers a step costs a fifth less.
#ifndef BELFRY_TRANSPORT_GRPC_LOCAL_SOCKET_H
#define BELFRY_TRANSPORT_GRPC_LOCAL_SOCKET_H

#include <stdbool.h>

#include "belfry/status.h"

bool bel_local_is(const char *address); // begins with "unix:"

// A listening descriptor at "unix:/path"; a socket file that nobody listens on is replaced.
// UNAVAILABLE: somebody listens. INVALID_ARGUMENT: the path is too long.
bel_status *bel_local_listen(const char *address, int *out_descriptor) BEL_MUST_USE;

// The next connection; -1 when the descriptor is shut down. Blocks.
int bel_local_accept(int descriptor);

// UNAVAILABLE: nobody listens there, or the listener is too busy. Does not block.
bel_status *bel_local_connect(const char *address, int *out_descriptor) BEL_MUST_USE;

// Ends a listening descriptor's accept, on whatever thread it is, and removes the socket file.
void bel_local_shut(const char *address, int descriptor);

#endif
