// A growing list of numbers that is as long as the data: record numbers, offsets of rows.
#ifndef BELFRY_INPUT_NUMBER_LIST_H
#define BELFRY_INPUT_NUMBER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Zero-initialise to begin. Thread-compatible.
typedef struct bel_number_list {
    int64_t *items;
    size_t count;
    size_t capacity;
} bel_number_list;

// RESOURCE_EXHAUSTED: not enough memory; the list is then unchanged.
bel_status *bel_number_list_append(bel_number_list *list, int64_t number) BEL_MUST_USE;
void bel_number_list_deinit(bel_number_list *list);

// The last of `count` >= 1 ascending numbers, the first of which is at most `number`, that is not
// above it: which of several files a record is in, by the files' first records.
size_t bel_last_at_most(const int64_t *numbers, size_t count, int64_t number);

#endif
