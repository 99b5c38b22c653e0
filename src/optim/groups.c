// Membership is fixed once all groups are found. A step's numbers are computed for each group when
// it begins, while no thread reads them. Groups are found by linear search: usually there is one,
// and at most one per combination of multipliers.
#include "optim/groups.h"

#include "base/alloc.h"
#include "optim/multiplier.h"

int bel_rule_groups_find(bel_rule_groups *groups, const bel_optimizers *optimizers, int function,
                         const char *name)
{
    const bel_optimizer *optimizer = bel_optimizers_find(optimizers, name);
    double lr_factor = bel_multiplier_get(optimizer->lr_mults, name);
    double decay_factor = bel_multiplier_get(optimizer->decay_mults, name);
    for (int g = 0; g < groups->count; g++) {
        const bel_rule_group *group = &groups->items[g];
        bool same = group->lr_factor == lr_factor && group->decay_factor == decay_factor;
        if (same && group->optimizer == optimizer && group->function == function) return g;
    }
    groups->items = bel_xgrow(groups->items, &groups->capacity, (size_t)groups->count + 1,
                              sizeof *groups->items);
    groups->items[groups->count] = (bel_rule_group){.function = function,
                                                    .optimizer = optimizer,
                                                    .rule = bel_rule_get(optimizer),
                                                    .lr_factor = lr_factor,
                                                    .decay_factor = decay_factor};
    return groups->count++;
}

void bel_rule_groups_begin(bel_rule_groups *groups, const int64_t *runs, const int64_t *updates)
{
    for (int g = 0; g < groups->count; g++) {
        bel_rule_group *group = &groups->items[g];
        group->numbers =
            bel_rule_begin_scaled(group->optimizer, runs[group->function], updates[group->function],
                                  group->lr_factor, group->decay_factor);
    }
}

void bel_rule_groups_deinit(bel_rule_groups *groups)
{
    bel_free(groups->items);
    *groups = (bel_rule_groups){0};
}
