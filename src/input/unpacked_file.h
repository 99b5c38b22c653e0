// A packed file that is too large to be unpacked into memory, unpacked into a file: once for all
// processes of a host that read it at the same time.
#ifndef BELFRY_INPUT_UNPACKED_FILE_H
#define BELFRY_INPUT_UNPACKED_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_unpacked_file {
    int descriptor; // to map or read; holds the lock that keeps the file
    size_t size;
    char *path; // NULL: nothing is open
} bel_unpacked_file;

// What tells one state of a packed file from another on this machine until it is started again.
typedef struct bel_file_version {
    uint64_t device, inode, size;
    int64_t changed_ns, modified_ns;
} bel_file_version;

// Opens what the file `path` with these packed bytes becomes, in the folder belfry-unpacked-UID
// below $TMPDIR (/var/tmp): unpacks it, or waits for another process that does. DATA_LOSS: it is
// truncated or corrupt. RESOURCE_EXHAUSTED, PERMISSION_DENIED, FAILED_PRECONDITION: the folder has
// no room, or is not this user's alone. DEADLINE_EXCEEDED: the other process has not gone on for
// `patience_secs`.
bel_status *bel_unpacked_file_open(const char *path, const bel_file_version *version,
                                   const void *packed, size_t size, double patience_secs,
                                   bel_unpacked_file *out_file) BEL_MUST_USE;

// Removes the file where nobody else has it open; a zeroed one is fine.
void bel_unpacked_file_close(bel_unpacked_file *file);

#endif
