// Files of a store's model folder on this host: which of them go to the store, and in which order
// they make a folder whole.
#ifndef BELFRY_LAUNCH_FOLDER_STORED_FILES_H
#define BELFRY_LAUNCH_FOLDER_STORED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/folder/stored.h"
#include "launch/folder/stored_state.h"

struct stat;

// True for a name below the folder that is only this host's: of running processes, of logs, and of
// files on the way to or from their names.
bool bel_stored_is_of_host(const char *name);

// Length of the folder's part of a name, without the slash.
size_t bel_stored_folder_length(const char *name);

// True for the file that makes its folder whole: a checkpoint's manifest.json, an export's
// signature.json.
bool bel_stored_is_last(const char *name);

// Length of the name of the checkpoint's folder that a file is in; 0: none.
size_t bel_stored_checkpoint_length(const char *name);

// Length of the name of the version that a file is in: a checkpoint, "ckpt-00000100", or an export,
// "export/best/100"; 0: none.
size_t bel_stored_version_length(const char *name);

// True if the file is in a version of the same series as `name`, with a higher step.
bool bel_stored_is_newer(const char *other, const char *name);

// True for a name that a file below a folder can have: no empty part, no "." and "..", no part of
// more than 255 bytes.
bool bel_stored_is_name(const char *name);

// True for a name that the writer may send: an unsent checkpoint or best.json of an owner would
// overwrite the files of its successor.
bool bel_stored_may_send(bel_stored_writer writer, const char *name);

// True for the curves of an evaluator or a verb, which only grow, by one process.
bool bel_stored_is_curve(const char *name);

// URL of a file's object; free with bel_free.
char *bel_stored_object(const bel_stored_state *state, const char *name);

// Modification time.
int64_t bel_stored_changed_ns(const struct stat *info);

// A file as it is on this host now.
typedef struct bel_stored_file {
    char *name;
    uint64_t size_bytes;
    int64_t changed_ns;
} bel_stored_file;

// Zero-initialize to begin.
typedef struct bel_stored_files {
    bel_stored_file *items;
    size_t count, capacity;
} bel_stored_files;

// Adds the files of folder `below` ("": the model folder `root`) that go to the store. A folder
// that is removed meanwhile has no files. Errors of folders that cannot be read.
bel_status *bel_stored_walk(const char *root, const char *below,
                            bel_stored_files *list) BEL_MUST_USE;
void bel_stored_files_deinit(bel_stored_files *list);

#endif
