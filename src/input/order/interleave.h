// Interleaved order of several datasets, as a function: number → (dataset, position in it).
#ifndef BELFRY_INPUT_ORDER_INTERLEAVE_H
#define BELFRY_INPUT_ORDER_INTERLEAVE_H

#include <stddef.h>
#include <stdint.h>

// Records that one slot gives in a stretch: those of `dataset` from `start` on.
typedef struct bel_interleave_part {
    int dataset;
    int64_t start;
} bel_interleave_part;

// Stretch of the order in which the same parts take turns, each giving `turn` records at a time.
typedef struct bel_interleave_stretch {
    int64_t turn;
    size_t first_part, part_count;
} bel_interleave_stretch;

// Immutable once made.
typedef struct bel_interleave {
    int64_t *firsts; // number of each stretch's first record
    bel_interleave_stretch *stretches;
    bel_interleave_part *parts;
    size_t stretch_count, stretch_capacity, first_capacity;
    size_t part_count, part_capacity;
    int64_t count; // number of all records
} bel_interleave;

// Makes the order of `count` datasets. cycle_length (1 … count): number of datasets open at a time;
// block_length >= 1: number of records that each gives in its turn.
void bel_interleave_init(bel_interleave *order, const int64_t *lengths, int count, int cycle_length,
                         int64_t block_length);
void bel_interleave_deinit(bel_interleave *order);

// Looks up a number, 0 <= number < order->count.
bel_interleave_part bel_interleave_at(const bel_interleave *order, int64_t number);

#endif
