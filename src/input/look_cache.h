// Descriptions of large tables, kept between processes: looking at every cell takes seconds, and
// every process of a job would do it, all at once. The first one looks, those beside it wait, and
// later ones find what it saw. What is kept is found by a hash of the files' content and of all
// that was asked, so it is never another table's. It lies in the user's cache
// ($XDG_CACHE_HOME/belfry); where that cannot be used, everybody looks.
#ifndef BELFRY_INPUT_LOOK_CACHE_H
#define BELFRY_INPUT_LOOK_CACHE_H

#include <stdbool.h>

#include "base/hash.h"

typedef struct bel_look {
    char *path; // NULL: nothing can be kept
    int lock;
} bel_look;

// A look begins. *out_text is the description that was kept, to be freed with bel_free, and
// *out_seen whether all rows were good; NULL: this process is to look. End it in any case.
void bel_look_begin(bel_hash128 key, bel_look *look, char **out_text, bool *out_seen);

// Keeps the text (NULL: the look failed, or nothing is to be kept) and lets others go on.
void bel_look_end(bel_look *look, const char *text, bool seen);

#endif
