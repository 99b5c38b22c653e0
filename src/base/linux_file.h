// Calls on files that only Linux has.
#ifndef BELFRY_BASE_LINUX_FILE_H
#define BELFRY_BASE_LINUX_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Opens a file without a name in a folder, only for this user: no process can find it before it is
// complete, and nothing is left when this process is killed. -1: see errno.
int bel_linux_unnamed_open(const char *folder);
// Gives it a name; false: see errno (EEXIST: the name exists).
bool bel_linux_unnamed_link(int descriptor, const char *path);

// Reads bytes that the system has in its cache, without waiting for a disk. False: it does not have
// all of them, or the file system cannot tell.
bool bel_linux_read_cached(int descriptor, void *out_bytes, size_t size, int64_t offset);

#endif
