// Sorting of numbered keys: positions by id, rows by key.
#ifndef BELFRY_BASE_SORT_H
#define BELFRY_BASE_SORT_H

#include <stdint.h>

typedef struct bel_keyed {
    int64_t key;
    uint32_t number; // whose key it is
} bel_keyed;

// Sorts n items by key, ascending; equal keys stay in their order. `spare` has room for n more. The
// result lies in one of the two arrays, which is returned. Time: n × (varying bits of keys / 11).
bel_keyed *bel_sort_keyed(bel_keyed *items, bel_keyed *spare, int64_t n);

#endif
