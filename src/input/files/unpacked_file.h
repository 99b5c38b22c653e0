// Packed file unpacked into a file, as it is too large for memory: once for all processes of a host
// that read it at the same time.
#ifndef BELFRY_INPUT_FILES_UNPACKED_FILE_H
#define BELFRY_INPUT_FILES_UNPACKED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/host_file.h"

// Identity of one state of a packed file on this machine, until a reboot.
typedef struct bel_file_version {
    uint64_t device, inode, size;
    int64_t changed_ns, modified_ns;
} bel_file_version;

// Opens the unpacked form of file `path` with these packed bytes, in the folder belfry-unpacked-UID
// below $TMPDIR (/var/tmp): unpacks it, or waits for another process that does. Close it with
// bel_host_file_close: the last reader's close removes it. DATA_LOSS: it is truncated or corrupt.
// RESOURCE_EXHAUSTED, PERMISSION_DENIED, FAILED_PRECONDITION: the folder has no room, or other
// users may use it. DEADLINE_EXCEEDED: the other process made no progress for `patience_secs`.
bel_status *bel_unpacked_file_open(const char *path, const bel_file_version *version,
                                   const void *packed, size_t size, double patience_secs,
                                   bel_host_file *out_file) BEL_MUST_USE;

#endif
