// Numbers by hash: where in a list something stands that is looked up by its name or content. The
// index knows neither: it answers with the numbers that were put under a hash, and whoever asks
// compares. Thread-compatible.
#ifndef BELFRY_BASE_INDEX_H
#define BELFRY_BASE_INDEX_H

#include <stddef.h>
#include <stdint.h>

typedef struct bel_index_place {
    uint64_t hash;
    int number; // plus one; 0: the place is free
} bel_index_place;

// All zero: empty.
typedef struct bel_index {
    bel_index_place *places;
    size_t capacity, count; // capacity: 0 or a power of two
} bel_index;

void bel_index_deinit(bel_index *index);

// Adds a number from 0 on. The same one may be put under several hashes, and several under one.
void bel_index_put(bel_index *index, uint64_t hash, int number);

// The numbers under `hash` one after another, in no certain order; -1: there is no more. *at begins
// at 0 and is the index's own.
int bel_index_next(const bel_index *index, uint64_t hash, size_t *at);

// The same for a text, under its hash.
void bel_index_put_text(bel_index *index, const char *text, int number);
int bel_index_next_text(const bel_index *index, const char *text, size_t *at);

#endif
