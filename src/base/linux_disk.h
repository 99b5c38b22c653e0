// Room on a disk.
#ifndef BELFRY_BASE_LINUX_DISK_H
#define BELFRY_BASE_LINUX_DISK_H

#include <stdint.h>

#include "belfry/status.h"

// Reserves room for the first `size` bytes of an open file, whose size stays. If a file system
// cannot reserve room, or would fill memory now (tmpfs), only the free room is compared, if it
// reports that.
// RESOURCE_EXHAUSTED: there is less.
bel_status *bel_linux_reserve(const char *path, int descriptor, uint64_t size) BEL_MUST_USE;

#endif
