// Files. Every error names the path and the system's reason; NOT_FOUND, PERMISSION_DENIED and
// RESOURCE_EXHAUSTED (disk full) are told apart.
#ifndef BELFRY_BASE_FILE_H
#define BELFRY_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// A status for errno value `error` after trying to `action` ("open", "write") a path.
bel_status *bel_file_error(int error, const char *action, const char *path) BEL_MUST_USE;

// Names of data that do not begin with / are looked for in this folder, where the environment has
// it: hosts of a job need not have their data in one place.
#define BEL_DATA_DIR_VARIABLE "BELFRY_DATA_DIR"

// The whole file in memory, with one zero byte behind it. Content that begins with gzip's magic is
// unpacked; a truncated or corrupt stream is DATA_LOSS. Free with bel_free.
bel_status *bel_file_read(const char *path, char **out_data, size_t *out_size) BEL_MUST_USE;

// A writer counts its bytes and keeps a CRC-32C. Errors stick: the first failed write is returned
// by finish, which also syncs the file to disk. Either finish or abandon ends it.
typedef struct bel_file_writer bel_file_writer;
bel_status *bel_file_writer_open(const char *path, bel_file_writer **out_writer) BEL_MUST_USE;
void bel_file_writer_write(bel_file_writer *writer, const void *data, size_t size);
bel_status *bel_file_writer_finish(bel_file_writer *writer, uint64_t *out_size,
                                   uint32_t *out_crc32c) BEL_MUST_USE; // outs may be NULL
void bel_file_writer_abandon(bel_file_writer *writer);

// A writer of `path` by way of a temporary name in the same folder, which is its own alone (other
// processes may write the same file) and which finish renames: readers see the old content or the
// new, never a part. Abandoned, it leaves nothing.
bel_status *bel_file_writer_open_beside(const char *path,
                                        bel_file_writer **out_writer) BEL_MUST_USE;

// All of it in one go.
bel_status *bel_file_write_atomic(const char *path, const void *data, size_t size) BEL_MUST_USE;

// The same without syncing: for what nobody needs after a crash of the machine.
bel_status *bel_file_replace(const char *path, const void *data, size_t size) BEL_MUST_USE;

// Folders.
bel_status *bel_dir_create(const char *path) BEL_MUST_USE; // with its parents; existing is fine
bel_status *bel_dir_sync(const char *path) BEL_MUST_USE;
bel_status *bel_dir_remove(const char *path) BEL_MUST_USE; // with all content; missing is fine
bel_status *bel_file_rename(const char *from, const char *to) BEL_MUST_USE;
bool bel_file_exists(const char *path);
bool bel_dir_exists(const char *path); // false for a file that is no folder, too

// Names in a folder (without . and ..), sorted by byte. Free with bel_dir_names_free.
bel_status *bel_dir_list(const char *path, char ***out_names, size_t *out_count) BEL_MUST_USE;
void bel_dir_names_free(char **names, size_t count); // NULL and 0 are fine

// The folder of what is kept to be faster the next time, $XDG_CACHE_HOME/belfry or
// ~/.cache/belfry, which need not be there; NULL: the environment names none. Free with bel_free.
char *bel_cache_folder(void);

// "folder/name"; free with bel_free.
char *bel_path_join(const char *folder, const char *name);

#endif
