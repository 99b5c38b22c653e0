// Objects shared by processes of one host: sealed memory, events, and descriptors sent over unix
// sockets.
//
// Thread-safe. Every descriptor made or received here is close-on-exec.
#ifndef BELFRY_BASE_LINUX_SHARED_H
#define BELFRY_BASE_LINUX_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "belfry/status.h"

// --- Memory -------------------------------------------------------------------------------------

// Makes a memfd of `bytes` (a multiple of the page size), mapped for reading and writing, and then
// sealed: its size is fixed, and no other process can map it for writing. RESOURCE_EXHAUSTED: too
// large, or no descriptors; UNIMPLEMENTED: the kernel has no such seals.
bel_status *bel_linux_shared_create(const char *name, size_t bytes, int *out_descriptor,
                                    void **out_memory) BEL_MUST_USE;

// Makes a memfd without a size, for bel_linux_shared_keep in another process. -1: not possible.
int bel_linux_shared_open(const char *name);

// Sizes a memfd of bel_linux_shared_open, maps it for reading and writing, and seals its size. If
// it has that size already, another process has used it, and its contents stay. *out_descriptor is
// another descriptor of it, for reading only. Takes ownership of `descriptor`, also on failure.
// INVALID_ARGUMENT: it is no memfd, or has another size; others as above.
bel_status *bel_linux_shared_keep(int descriptor, size_t bytes, int *out_descriptor,
                                  void **out_memory) BEL_MUST_USE;

// Programs that this process starts do not get the descriptor.
void bel_linux_shared_close_on_exec(int descriptor);

// Returns the size of a memfd; 0: no size yet, or no memfd.
size_t bel_linux_shared_bytes(int descriptor);

// Returns true for a memfd whose size is sealed; false for anything else.
bool bel_linux_shared_is_sealed(int descriptor);

// Maps from the beginning, for reading; NULL without memory. Mappings from 2 MiB on are aligned to
// 2 MiB, for huge pages if the system allows them for shared memory.
void *bel_linux_shared_map(int descriptor, size_t bytes);
// Maps a part for reading over the pages at `at`. All are multiples of the page size.
bool bel_linux_shared_map_at(int descriptor, size_t offset, size_t bytes, void *at);
void bel_linux_shared_unmap(void *memory, size_t bytes);

// Allocates all pages of a writable part now; their contents stay. False: not possible.
bool bel_linux_shared_populate(void *memory, size_t bytes);

// --- Events -------------------------------------------------------------------------------------

// Makes an eventfd: a counter that each signal increments and a take resets. Works between
// processes. -1 without descriptors.
int bel_linux_event_create(void);
bool bel_linux_event_is(int descriptor); // true for an eventfd
void bel_linux_event_signal(int event);  // never blocks
// Sleeps until there is a signal, for at most timeout_ns; may wake early.
void bel_linux_event_wait(int event, int64_t timeout_ns);
uint64_t bel_linux_event_take(int event); // signals since the last take; 0: none

// --- Unix sockets -------------------------------------------------------------------------------

enum { BEL_LINUX_DESCRIPTORS = 3 }; // maximum in one message

// Returns true if the connected or listening process has the same user as this one.
bool bel_linux_socket_is_own_user(int socket);

// Connects to the socket file, and disconnects. Errors: those of files. OK also if no process
// listens there, or it is too busy.
bel_status *bel_linux_socket_try(const char *path) BEL_MUST_USE;

// Returns a text that is equal in two processes only if each can connect to sockets that the other
// has in the folder, and pass descriptors: the kernel's boot, the user namespace, and the folder's
// device and inode. NULL: one of them is unknown. Free with bel_free.
char *bel_linux_shared_place(const char *folder);

// Sends `bytes` and `count` descriptors, which stay the caller's, without blocking; false unless
// all were sent.
bool bel_linux_socket_send(int socket, const void *data, size_t bytes, const int *descriptors,
                           int count);

// Receives up to `capacity` bytes without blocking; the result is that of recv (-1 with errno
// EAGAIN: no data). Received descriptors are added to descriptors[*count], and belong to the
// caller. More than BEL_LINUX_DESCRIPTORS in all are closed, and then the result is -1 with errno
// EPROTO.
ssize_t bel_linux_socket_receive(int socket, void *data, size_t capacity, int *descriptors,
                                 int *count);

// --- TCP sockets --------------------------------------------------------------------------------

// Sends without delay, and ends a connection to a host that does not answer: an idle one after half
// a minute; one whose peer accepts no sent data after `patience_secs`.
void bel_linux_socket_watch(int socket, double patience_secs);
// Returns true if all sent data has reached the other host, or never will.
bool bel_linux_socket_is_sent(int socket);

#endif
