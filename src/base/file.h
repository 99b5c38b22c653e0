// Files. Every error names the path and the system's reason. NOT_FOUND, PERMISSION_DENIED and
// RESOURCE_EXHAUSTED (disk full) are distinguished.
#ifndef BELFRY_BASE_FILE_H
#define BELFRY_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Makes a status for errno value `error` after an attempt to `action` ("open", "write") a path.
bel_status *bel_file_error(int error, const char *action, const char *path) BEL_MUST_USE;

// Cuts an open file that is longer than `size`, and leaves another one as it is: after a cut to 0,
// some file systems (ext4) write a file to the disk as soon as it is closed.
bel_status *bel_file_cut(const char *path, int descriptor, uint64_t size) BEL_MUST_USE;

// Folder of data files whose names do not begin with /, if this variable is set: hosts of a job may
// store data in different places.
#define BEL_DATA_DIR_VARIABLE "BELFRY_DATA_DIR"

// Reads an entire file, followed by one zero byte. Contents that begin with gzip's magic are
// unpacked; a truncated or corrupt stream is DATA_LOSS. Free with bel_free.
bel_status *bel_file_read(const char *path, char **out_data, size_t *out_size) BEL_MUST_USE;

// Writer that counts its bytes and computes a CRC-32C. Errors stick: finish returns the first
// failed write, and syncs the file to disk. Either finish or abandon ends a writer.
typedef struct bel_file_writer bel_file_writer;
bel_status *bel_file_writer_open(const char *path, bel_file_writer **out_writer) BEL_MUST_USE;
void bel_file_writer_write(bel_file_writer *writer, const void *data, size_t size);
bel_status *bel_file_writer_finish(bel_file_writer *writer, uint64_t *out_size,
                                   uint32_t *out_crc32c) BEL_MUST_USE; // outputs may be NULL
void bel_file_writer_abandon(bel_file_writer *writer);

// Opens a writer of `path` that uses a temporary name in the same folder, unique to it (other
// processes may write the same file). finish renames it: readers see the old contents or the new,
// never a part. When it is abandoned, it leaves nothing.
bel_status *bel_file_writer_open_beside(const char *path,
                                        bel_file_writer **out_writer) BEL_MUST_USE;

// Writes the file atomically in one call.
bel_status *bel_file_write_atomic(const char *path, const void *data, size_t size) BEL_MUST_USE;

// The same without syncing, for files that are useless after a crash of the machine.
bel_status *bel_file_replace(const char *path, const void *data, size_t size) BEL_MUST_USE;

// Folders.
bel_status *bel_dir_create(const char *path) BEL_MUST_USE; // with its parents; no error if it
                                                           // exists
bel_status *bel_dir_sync(const char *path) BEL_MUST_USE;
bel_status *bel_dir_remove(const char *path) BEL_MUST_USE; // with all contents; no error if it is
                                                           // missing
bel_status *bel_file_rename(const char *from, const char *to) BEL_MUST_USE;
bool bel_file_exists(const char *path);
bool bel_dir_exists(const char *path); // also false for a file that is no folder

// Lists the names in a folder (without . and ..), sorted by byte. Free with bel_dir_names_free.
bel_status *bel_dir_list(const char *path, char ***out_names, size_t *out_count) BEL_MUST_USE;
void bel_dir_names_free(char **names, size_t count); // accepts NULL and 0

// Returns the cache folder, $XDG_CACHE_HOME/belfry or ~/.cache/belfry, which may not exist yet;
// NULL: the environment names none. Free with bel_free.
char *bel_cache_folder(void);

// Returns "folder/name"; free with bel_free.
char *bel_path_join(const char *folder, const char *name);

#endif
