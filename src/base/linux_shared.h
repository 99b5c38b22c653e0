// What processes of one host share: sealed memory, events, and descriptors sent over unix sockets.
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

// A memfd of `bytes` (a multiple of the page size), mapped for reading and writing, and sealed
// after that: its size stays, and nobody else can map it for writing. RESOURCE_EXHAUSTED: too
// large, or no descriptors; UNIMPLEMENTED: the kernel has no such seals.
bel_status *bel_linux_shared_create(const char *name, size_t bytes, int *out_descriptor,
                                    void **out_memory) BEL_MUST_USE;

// True for a memfd that carries all seals of bel_linux_shared_create; false for anything else.
bool bel_linux_shared_is_sealed(int descriptor);

// Maps from the beginning, for reading; NULL without memory. 2 MiB and more are aligned to 2 MiB,
// for huge pages where the system allows them to shared memory.
void *bel_linux_shared_map(int descriptor, size_t bytes);
// Maps a part for reading in place of the pages at `at`. All are multiples of the page size.
bool bel_linux_shared_map_at(int descriptor, size_t offset, size_t bytes, void *at);
void bel_linux_shared_unmap(void *memory, size_t bytes);

// Takes memory for all pages of a writable part now; their content stays. False: not possible.
bool bel_linux_shared_populate(void *memory, size_t bytes);

// A file in a folder that has no name yet, for this user alone: nobody finds it before it is whole,
// and nothing is left of it when this process is killed. -1: see errno.
int bel_linux_unnamed_open(const char *folder);
// Gives it a name; false: see errno (EEXIST: there is one).
bool bel_linux_unnamed_link(int descriptor, const char *path);

// --- Events -------------------------------------------------------------------------------------

// An eventfd: a number that grows by one with each signal, and is taken as a whole. Works between
// processes. -1 without descriptors.
int bel_linux_event_create(void);
bool bel_linux_event_is(int descriptor); // is it an eventfd?
void bel_linux_event_signal(int event);  // never blocks
// Sleeps until there is something to take, for at most timeout_ns, or less.
void bel_linux_event_wait(int event, int64_t timeout_ns);
uint64_t bel_linux_event_take(int event); // signals since the last take; 0: none

// --- Unix sockets -------------------------------------------------------------------------------

enum { BEL_LINUX_DESCRIPTORS = 3 }; // most that go with one message

// Is the process that connected, or that listens, one of this process's user?
bool bel_linux_socket_is_own_user(int socket);

// Sends `bytes` and `count` descriptors, which stay the caller's, without blocking; false unless
// all went.
bool bel_linux_socket_send(int socket, const void *data, size_t bytes, const int *descriptors,
                           int count);

// Receives up to `capacity` bytes without blocking; the result is that of recv (-1 with errno
// EAGAIN: nothing there). Descriptors that came along are added to descriptors[*count], the
// caller's from now on; more than BEL_LINUX_DESCRIPTORS in all are closed, and then the result is
// -1 with errno EPROTO.
ssize_t bel_linux_socket_receive(int socket, void *data, size_t capacity, int *descriptors,
                                 int *count);

// --- TCP sockets --------------------------------------------------------------------------------

// Sends without delay, and ends a connection to a host that does not answer: one that is idle after
// half a minute; one on which the other side takes nothing of what was sent after `patience_secs`.
void bel_linux_socket_watch(int socket, double patience_secs);
// Whether all that was sent has come to the other host, or never will.
bool bel_linux_socket_is_sent(int socket);

#endif
