// Growing list of numbers whose length depends on the data: record numbers, offsets of rows.
#ifndef BELFRY_INPUT_FILES_NUMBER_LIST_H
#define BELFRY_INPUT_FILES_NUMBER_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// Zero-initialize to begin. Thread-compatible.
typedef struct bel_number_list {
    int64_t *items;
    size_t count;
    size_t capacity;
} bel_number_list;

// Appends a number. RESOURCE_EXHAUSTED: not enough memory; the list is then unchanged.
bel_status *bel_number_list_append(bel_number_list *list, int64_t number) BEL_MUST_USE;
void bel_number_list_deinit(bel_number_list *list);

// Index of the last of `count` >= 1 ascending numbers that is at most `number`; the first must be.
// It finds the file of a record, given the files' first records.
size_t bel_last_at_most(const int64_t *numbers, size_t count, int64_t number);

#endif
