// Regular file opened for reads at any offset. Reads use pread instead of a mapping: a file that
// shrinks or a disk that fails then gives a status instead of a signal.
#ifndef BELFRY_CHECKPOINT_DISK_FILE_H
#define BELFRY_CHECKPOINT_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Immutable once opened; several threads may read at once.
typedef struct bel_disk_file {
    char *path;
    int descriptor;
    uint64_t size_bytes; // size when it was opened
} bel_disk_file;

// Opens a file. NOT_FOUND: no such file. DATA_LOSS: it is a folder, a pipe or the like. Close it
// with bel_disk_file_close. The file stays readable after its name is removed.
bel_status *bel_disk_file_open(const char *path, bel_disk_file *out_file) BEL_MUST_USE;
void bel_disk_file_close(bel_disk_file *file); // accepts a zeroed or closed file

// Reads exactly `size` bytes from `offset`. DATA_LOSS: the file ends earlier, or cannot be read.
bel_status *bel_disk_file_read(const bel_disk_file *file, uint64_t offset, void *out_data,
                               size_t size) BEL_MUST_USE;

// Computes the CRC-32C of the whole file. DATA_LOSS as above.
bel_status *bel_disk_file_crc32c(const bel_disk_file *file, uint32_t *out_crc32c) BEL_MUST_USE;

#endif
