// Labels of versions: names such as "stable" that requests use instead of numbers, from a file.
//
//     # model label version
//     digits stable 500
//     digits canary newest
#ifndef BELFRY_SERVE_LABELS_H
#define BELFRY_SERVE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_label {
    char *model, *name;
    int64_t number; // the version's; -1: the newest
    int line;       // the file's, from 1 on
} bel_label;

typedef struct bel_labels {
    bel_label *items;
    size_t count;
} bel_labels;

// INVALID_ARGUMENT: a line (named) has another form, a label that the model has already, or one
// that paths and gRPC could not name. Errors of files.
bel_status *bel_labels_read(const char *path, bel_labels **out_labels) BEL_MUST_USE;
void bel_labels_destroy(bel_labels *labels); // accepts NULL

// Returns a label of a model; NULL: none. `name` need not end with a zero byte. Accepts NULL.
const bel_label *bel_labels_find(const bel_labels *labels, const char *model, const char *name,
                                 size_t length);

// True if the model has a label for this version.
bool bel_labels_have(const bel_labels *labels, const char *model, int64_t number);

#endif
