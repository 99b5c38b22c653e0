// Memory for what bytes of somebody else's become when they are read. A few bytes of a message can
// stand for a part that takes a hundred in memory, so a reader of whole messages is given a budget,
// and gives up where it is spent. Bound to one thread.
//
// take and give have the types of protobuf-c's allocator, and of nothing of its own:
//
//     bel_budget budget = bel_budget_of(size);
//     ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
#ifndef BELFRY_BASE_BUDGET_H
#define BELFRY_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bel_budget {
    size_t left;
    bool is_spent; // more was asked for
} bel_budget;

// For a message of a file: 64 MiB, and sixteen times its bytes, as numbers of one byte each become
// eight, and short texts a pointer, a length and an allocation.
bel_budget bel_budget_of(size_t size);

// NULL once the budget is spent; what is given back does not count as left again.
void *bel_budget_take(void *budget, size_t size);
void bel_budget_give(void *budget, void *memory); // `budget` may be NULL

#endif
