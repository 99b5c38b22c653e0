// Memory limit for parsing untrusted bytes. A few bytes of a message can stand for a part that
// needs a hundred in memory. A reader of messages therefore gets a budget, and fails when it is
// spent. Bound to one thread.
//
// take and give have the types of protobuf-c's allocator, without depending on it:
//
//     bel_budget budget = bel_budget_of(size);
//     ProtobufCAllocator allocator = {bel_budget_take, bel_budget_give, &budget};
#ifndef BELFRY_BASE_BUDGET_H
#define BELFRY_BASE_BUDGET_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bel_budget {
    size_t left;
    bool is_spent; // a request exceeded the budget
} bel_budget;

// Returns the budget for a message of a file: 64 MiB plus sixteen times its size. One-byte numbers
// become eight bytes each, and a short text becomes a pointer, a length and an allocation.
bel_budget bel_budget_of(size_t size);

// Takes the size of an allocation that the caller makes; false once the budget is spent.
bool bel_budget_spend(bel_budget *budget, size_t size);

// Allocates; NULL once the budget is spent. Freed memory does not return to the budget.
void *bel_budget_take(void *budget, size_t size);
void bel_budget_give(void *budget, void *memory); // `budget` may be NULL

#endif
