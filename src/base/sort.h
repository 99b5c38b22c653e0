// Sorting of numbered keys: positions by id, rows by key.
#ifndef BELFRY_BASE_SORT_H
#define BELFRY_BASE_SORT_H

#include <stdint.h>

typedef struct bel_keyed {
    int64_t key;
    uint32_t number; // position or row of the key
} bel_keyed;

// Sorts n items by key, ascending; equal keys keep their order. `spare` has room for n more.
// Returns the array of the two that has the result. Time: n × (varying bits of keys / 11).
bel_keyed *bel_sort_keyed(bel_keyed *items, bel_keyed *spare, int64_t n);

#endif
