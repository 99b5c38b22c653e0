// Unix sockets, for streams and for lanes in shared memory. They have large buffers: the system's
// 200 KB divide a megabyte into many small writes, each with a wake-up on the other side.
#ifndef BELFRY_TRANSPORT_STREAMS_LOCAL_SOCKET_H
#define BELFRY_TRANSPORT_STREAMS_LOCAL_SOCKET_H

#include <stdbool.h>

#include "belfry/status.h"

bool bel_local_is(const char *address); // begins with "unix:"

// Opens a listening descriptor at "unix:/path"; replaces a socket file without a listener. It does
// not block. UNAVAILABLE: another process listens, or the file is no socket. INVALID_ARGUMENT: the
// path is too long.
bel_status *bel_local_listen(const char *address, int *out_descriptor) BEL_MUST_USE;

// Returns the next connection, or -1 with errno: EAGAIN, a lack of descriptors or memory, or the
// descriptor is shut down. Does not block.
int bel_local_accept(int descriptor);

// Connects. UNAVAILABLE: no process listens there, or the listener is too busy. Does not block.
bel_status *bel_local_connect(const char *address, int *out_descriptor) BEL_MUST_USE;

// Ends a listening descriptor's accept, on any thread, and removes the socket file.
void bel_local_shut(const char *address, int descriptor);

#endif
