// Records of a dataset in a file: written once by whoever comes first, then mapped by all.
#ifndef BELFRY_INPUT_CACHE_FILE_H
#define BELFRY_INPUT_CACHE_FILE_H

#include "base/str.h"
#include "input/file_view.h"
#include "input/number_list.h"

// How long a process waits for another one that makes the cache: as long as records come about.
typedef struct bel_cache_patience {
    double turn_secs; // how often it looks
    int turns;        // so many without a record in between are the end
} bel_cache_patience;

static const bel_cache_patience bel_cache_usual_patience = {30, 20};

// Immutable once opened. Zero-initialise to begin.
typedef struct bel_cache_file {
    const char *path;
    bel_cache_patience patience; // all zero: the usual
    bel_file_view view;
    const char *index; // offset of each record and of what is behind the last
    uint64_t count;
} bel_cache_file;

// Makes the bytes of record `number`, appending them to `out`.
typedef bel_status *bel_cache_make(void *context, int64_t number, bel_str *out);

// Opens the cache of `count` records that were made of what `key` stands for; if there is none, or
// of another key, makes it. Processes that come at a time make it once, and others wait for it.
// ALREADY_EXISTS: the file is no cache; FAILED_PRECONDITION: another process is at it and gets no
// further; errors of `make` and of files. Close also after a failure.
bel_status *bel_cache_file_open(bel_cache_file *file, const char *path, uint64_t key, int64_t count,
                                bel_cache_make *make, void *context) BEL_MUST_USE;
void bel_cache_file_close(bel_cache_file *file);

// The bytes of a record. DATA_LOSS: they do not fit their checksum.
bel_status *bel_cache_file_get(const bel_cache_file *file, int64_t number, const char **out_data,
                               size_t *out_size) BEL_MUST_USE;

#endif
