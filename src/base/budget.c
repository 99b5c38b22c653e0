// Counts the size of each allocation, including malloc's overhead, so that a million empty parts
// have their real cost. Freed memory does not return to the budget: a reader that builds a message
// only grows, and the budget must cover the sum of its requests.
#include "base/budget.h"

#include <stdint.h>

#include "base/alloc.h"

enum { BESIDE = 16, RATIO = 16 };

bel_budget bel_budget_of(size_t size)
{
    const size_t least = (size_t)64 << 20;
    return (bel_budget){.left =
                            size > (SIZE_MAX - least) / RATIO ? SIZE_MAX : least + size * RATIO};
}

bool bel_budget_spend(bel_budget *budget, size_t size)
{
    bel_budget *b = budget;
    b->is_spent = b->is_spent || size > SIZE_MAX - BESIDE || size + BESIDE > b->left;
    if (!b->is_spent) b->left -= size + BESIDE;
    return !b->is_spent;
}

void *bel_budget_take(void *budget, size_t size)
{
    return bel_budget_spend(budget, size) ? bel_xmalloc(size) : NULL;
}

void bel_budget_give(void *budget, void *memory)
{
    (void)budget;
    bel_free(memory);
}
