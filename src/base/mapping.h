// Bytes of a regular file, mapped for reading. The file must not become shorter while it is mapped:
// reading a missing page is a bus error. Immutable; any thread may read.
#ifndef BELFRY_BASE_MAPPING_H
#define BELFRY_BASE_MAPPING_H

#include <stddef.h>

#include "belfry/status.h"

typedef struct bel_mapping {
    const char *data; // NULL without bytes
    size_t size;
} bel_mapping;

// Errors are those of bel_file_read; INVALID_ARGUMENT: it is a folder, a pipe or a device.
bel_status *bel_mapping_open(const char *path, bel_mapping *out_mapping) BEL_MUST_USE;
void bel_mapping_close(bel_mapping *mapping); // accepts a zeroed one

#endif
