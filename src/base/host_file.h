// File that one process of a host makes and all of them read, such as an unpacked file or the copy
// of an object. A kill of any process at any moment leaves no half file and no lock.
#ifndef BELFRY_BASE_HOST_FILE_H
#define BELFRY_BASE_HOST_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Open file, whole, for reading. Zero-initialize to begin.
typedef struct bel_host_file {
    int descriptor; // to map or read; holds the lock that keeps the file
    size_t size;
    char *path; // NULL: not open
    bool stays; // after its last reader; the holder may set it to false
} bel_host_file;

// Writes the content into the file `descriptor`, which is empty.
typedef bel_status *bel_host_file_make(void *user, const char *path, int descriptor);

typedef struct bel_host_file_request {
    const char *folder;   // only this user may use it (bel_host_folder)
    const char *name;     // names the content in that folder: another content has another name
    const char *source;   // name in messages: "train.csv.gz"
    const char *doing;    // in messages: "being unpacked"
    bool stays;           // the file stays after its last reader, until bel_host_file_make_room
    bool writable;        // its descriptor may write: readers complete the file
    double patience_secs; // wait without progress for another process that makes it
    bel_host_file_make *make;
    void *user;
} bel_host_file_request;

// Finds folder PREFIX-UID below `base`, which is created if it does not exist, or else $TMPDIR, or
// else /var/tmp. Creates the folder for this user only. FAILED_PRECONDITION: other users may use
// it. Free with bel_free.
bel_status *bel_host_folder(const char *base, const char *prefix, char **out_folder) BEL_MUST_USE;

// Opens the file, and makes it if it does not exist; waits for another process that makes it.
// DEADLINE_EXCEEDED: that process made no progress. Other errors: those of `make` and of files.
bel_status *bel_host_file_open(const bel_host_file_request *request,
                               bel_host_file *out_file) BEL_MUST_USE;

// Opens the file only if it exists; else *out_file stays closed.
bel_status *bel_host_file_find(const bel_host_file_request *request,
                               bel_host_file *out_file) BEL_MUST_USE;

// Closes the file. If it does not stay and no other process has it open, removes it; accepts a
// closed one.
void bel_host_file_close(bel_host_file *file);

// Removes unused files of a folder, the longest unused first, until all take at most `most` bytes.
// Returns the bytes that are left, which files in use may keep above `most`. A negative `most`
// removes nothing.
int64_t bel_host_file_make_room(const char *folder, int64_t most);

#endif
