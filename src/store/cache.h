// Cache of this host: files that one process makes and all read, whole, and that stay for the next
// job: copies of objects, and tokens of texts.
//
// The files are in belfry-objects-UID below $BELFRY_CACHE_DIR, or else $TMPDIR, or else /var/tmp.
// Files that no process uses stay there until all take more than $BELFRY_CACHE_SIZE MiB (16384):
// then the longest unused are removed.
#ifndef BELFRY_STORE_CACHE_H
#define BELFRY_STORE_CACHE_H

#include "base/host_file.h"

#define BEL_CACHE_DIR_VARIABLE "BELFRY_CACHE_DIR"
#define BEL_CACHE_SIZE_VARIABLE "BELFRY_CACHE_SIZE"

typedef struct bel_cache_request {
    const char *name;         // names the content: another content has another name
    const char *source;       // name in messages: "s3://bucket/train.csv"
    const char *doing;        // in messages: "being copied"
    uint64_t size_bytes;      // for which room is made
    double patience_secs;     // wait without progress for another thread or process that makes it
    bool writable;            // as in bel_host_file_request
    bel_host_file_make *make; // called if this host has no such file
    void *user;
} bel_cache_request;

// Opens a file of the cache, and makes it first if it does not exist. Close it with
// bel_host_file_close. RESOURCE_EXHAUSTED: no room on the disk. INVALID_ARGUMENT: a variable of the
// environment is invalid. Other errors: those of bel_host_file_open.
bel_status *bel_cache_open(const bel_cache_request *request, bel_host_file *out_file) BEL_MUST_USE;

// Adds the place and a hint to an error of a full disk; returns other results as they are.
bel_status *bel_cache_explain(bel_status *status, const char *source, uint64_t size_bytes,
                              const char *doing) BEL_MUST_USE;

#endif
