// Compact list of ascending offsets, one for each record of a file. It takes 2.3 bytes a record if
// records are short. Most of it then stays in the CPU caches while records are read in any order.
#ifndef BELFRY_INPUT_FILES_OFFSET_LIST_H
#define BELFRY_INPUT_FILES_OFFSET_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// A group is a cache line: an offset, and the differences of the others to it.
enum { BEL_OFFSETS_A_GROUP = 28 };
typedef struct bel_offset_group {
    int64_t first;
    uint16_t above[BEL_OFFSETS_A_GROUP];
} bel_offset_group;

// Zero-initialize to begin. Thread-compatible.
typedef struct bel_offset_list {
    bel_offset_group *groups; // pages; NULL once an offset did not fit its group
    int64_t *wide;            // pages with all offsets if `groups` is NULL
    size_t count;
    size_t bytes; // size of the pages
} bel_offset_list;

// Appends offsets that never decrease. RESOURCE_EXHAUSTED: not enough memory; the list is
// unchanged.
bel_status *bel_offset_list_append(bel_offset_list *list, const int64_t *offsets,
                                   size_t count) BEL_MUST_USE;
// Reserves room for `count` offsets in all; fewer may follow. Errors as above.
bel_status *bel_offset_list_reserve(bel_offset_list *list, size_t count) BEL_MUST_USE;
// Drops the first offsets: `count` is a multiple of BEL_OFFSETS_A_GROUP, or all. The pages stay.
void bel_offset_list_drop(bel_offset_list *list, size_t count);
// Makes all offsets smaller by `less`, which is at most the first one.
void bel_offset_list_shift(bel_offset_list *list, int64_t less);
void bel_offset_list_deinit(bel_offset_list *list);

// Offset `index` < count.
static inline int64_t bel_offset_list_at(const bel_offset_list *list, size_t index)
{
    if (list->wide != NULL) return list->wide[index];
    const bel_offset_group *group = &list->groups[index / BEL_OFFSETS_A_GROUP];
    return group->first + group->above[index % BEL_OFFSETS_A_GROUP];
}

// Index of the last offset that is at most `offset`. The first offset must be at most `offset`.
size_t bel_offset_list_last_at_most(const bel_offset_list *list, int64_t offset);

// Prefetches offset `index` into the CPU caches (batch/ahead.h).
static inline void bel_offset_list_fetch(const bel_offset_list *list, size_t index)
{
    const void *at = list->wide != NULL ? (const void *)&list->wide[index]
                                        : (const void *)&list->groups[index / BEL_OFFSETS_A_GROUP];
    __builtin_prefetch(at);
}

#endif
