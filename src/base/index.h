// Index from the hash of a name or content to its number in a list. The index stores only the
// numbers under each hash; the caller compares the keys. Thread-compatible.
#ifndef BELFRY_BASE_INDEX_H
#define BELFRY_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct bel_index_place {
    uint64_t hash;
    int number; // plus one; 0: the place is free
} bel_index_place;

// Zeros: empty.
typedef struct bel_index {
    bel_index_place *places;
    size_t capacity, count; // capacity: 0 or a power of two
} bel_index;

void bel_index_deinit(bel_index *index);

// Adds a number from 0 on. The same one may be put under several hashes, and several under one.
void bel_index_put(bel_index *index, uint64_t hash, int number);

// Returns the numbers under `hash` one after another, in no particular order; -1: no more. *at
// begins at 0 and is the state of the search.
int bel_index_next(const bel_index *index, uint64_t hash, size_t *at);

// The same for a text, by its hash.
void bel_index_put_text(bel_index *index, const char *text, int number);
int bel_index_next_text(const bel_index *index, const char *text, size_t *at);

#endif
