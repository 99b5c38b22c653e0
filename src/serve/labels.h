// Labels of versions: names such as "stable" that requests use instead of numbers, from a file.
// Labels with shares divide the requests that name no version.
//
//     # model label version [share]
//     digits stable 500 95%
//     digits canary newest 5%
#ifndef BELFRY_SERVE_LABELS_H
#define BELFRY_SERVE_LABELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

enum { BEL_LABEL_SHARES = 10000 };

typedef struct bel_label {
    char *model, *name;
    int64_t number; // the version's; -1: the newest
    int share;      // in 1 / BEL_LABEL_SHARES of the requests; 0: none
    int line;       // the file's, from 1 on
} bel_label;

typedef struct bel_labels {
    bel_label *items;
    size_t count;
} bel_labels;

// INVALID_ARGUMENT: a line (named) has another form, a label that the model has already, or one
// that paths and gRPC could not name; the shares of a model are not 100 % together. Errors of
// files.
bel_status *bel_labels_read(const char *path, bel_labels **out_labels) BEL_MUST_USE;
void bel_labels_destroy(bel_labels *labels); // accepts NULL

// Returns a label of a model; NULL: none. `name` need not end with a zero byte. Accepts NULL.
const bel_label *bel_labels_find(const bel_labels *labels, const char *model, const char *name,
                                 size_t length);

// Returns the label with the share that `part` is in, 0 … BEL_LABEL_SHARES - 1, in the order of the
// file; NULL: the model has no shares. Accepts NULL.
const bel_label *bel_labels_choose(const bel_labels *labels, const char *model, int part);

// True if the model has a label for this version.
bool bel_labels_have(const bel_labels *labels, const char *model, int64_t number);

#endif
