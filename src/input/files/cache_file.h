// Cache of a dataset's records in a file: the first process writes it, and all map it.
#ifndef BELFRY_INPUT_FILES_CACHE_FILE_H
#define BELFRY_INPUT_FILES_CACHE_FILE_H

#include "input/files/file_view.h"
#include "input/files/number_list.h"

typedef struct bel_str bel_str; // base/str.h

// Patience of a process that waits for another one to make the cache: it waits while records are
// added.
typedef struct bel_cache_patience {
    double turn_secs; // interval between two looks
    int turns;        // looks without a new record until it gives up
} bel_cache_patience;

static const bel_cache_patience bel_cache_usual_patience = {30, 20};

// Immutable once opened. Zero-initialize to begin.
typedef struct bel_cache_file {
    const char *path;
    bel_cache_patience patience; // all zero: bel_cache_usual_patience
    bel_file_view view;
    const char *index; // offset of each record, and of the end of the last one
} bel_cache_file;

// Produces the bytes of record `number` and appends them to `out`.
typedef bel_status *bel_cache_make(void *context, int64_t number, bel_str *out);

// Opens the cache of `count` records made from the data that `key` identifies. If it is absent or
// has another key, it is made. One of several concurrent processes makes it, and the others
// wait. ALREADY_EXISTS: the file is no cache. FAILED_PRECONDITION: another process is making it and
// makes no progress. Other errors: those of `make` and of files. Close also after a failure.
bel_status *bel_cache_file_open(bel_cache_file *file, const char *path, uint64_t key, int64_t count,
                                bel_cache_make *make, void *context) BEL_MUST_USE;
void bel_cache_file_close(bel_cache_file *file);

// Gets the bytes of a record. DATA_LOSS: they do not match their checksum.
bel_status *bel_cache_file_get(const bel_cache_file *file, int64_t number, const char **out_data,
                               size_t *out_size) BEL_MUST_USE;

#endif
