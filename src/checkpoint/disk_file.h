// A regular file opened for reading at any place. Reads go through pread and not through a mapping:
// a file that shrinks or a disk that fails then gives a status instead of a signal.
#ifndef BELFRY_CHECKPOINT_DISK_FILE_H
#define BELFRY_CHECKPOINT_DISK_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Immutable once opened; several threads may read at once.
typedef struct bel_disk_file {
    char *path;
    int descriptor;
    uint64_t size_bytes; // when it was opened
} bel_disk_file;

// NOT_FOUND: no such file. DATA_LOSS: it is a folder, a pipe or the like. Close with
// bel_disk_file_close, also when it stays open while the name is removed.
bel_status *bel_disk_file_open(const char *path, bel_disk_file *out_file) BEL_MUST_USE;
void bel_disk_file_close(bel_disk_file *file); // a zeroed or already closed file is fine

// Reads exactly `size` bytes from `offset`. DATA_LOSS: the file ends before, or cannot be read.
bel_status *bel_disk_file_read(const bel_disk_file *file, uint64_t offset, void *out_data,
                               size_t size) BEL_MUST_USE;

// CRC-32C of the whole file. DATA_LOSS as above.
bel_status *bel_disk_file_crc32c(const bel_disk_file *file, uint32_t *out_crc32c) BEL_MUST_USE;

#endif
