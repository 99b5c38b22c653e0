// Cache of the descriptions of large tables, shared by processes: looking at every cell takes
// seconds, and all processes of a job would do it at once. The first process looks, concurrent ones
// wait, and later ones find its result. The key is a hash of the files' content and of all options,
// so a result is never used for another table. The cache is in the user's cache folder
// ($XDG_CACHE_HOME/belfry); if that cannot be used, every process looks.
#ifndef BELFRY_INPUT_TABLE_LOOK_CACHE_H
#define BELFRY_INPUT_TABLE_LOOK_CACHE_H

#include <stdbool.h>

#include "base/hash.h"

typedef struct bel_look {
    char *path; // NULL: the cache cannot be used
    int lock;
} bel_look;

// Begins a look. *out_text is the cached description, to be freed with bel_free, and *out_seen
// whether all rows were good. NULL: this process must look. End it in any case.
void bel_look_begin(bel_hash128 key, bel_look *look, char **out_text, bool *out_seen);

// Stores the text (NULL: the look failed, or must not be kept) and lets the waiting processes
// continue.
void bel_look_end(bel_look *look, const char *text, bool seen);

#endif
