// Groups of variables and tables with the same optimizer and factors of learning rate and weight
// decay: each has the numbers of the step once. Mostly there is one group. Membership is fixed when
// the shard is made; the numbers are computed when a step begins, while no job runs, so passes read
// them without the lock.
#include "base/alloc.h"
#include "optim/multiplier.h"
#include "ps/server/shard_inner.h"

static int find_group(bel_shard *shard, const bel_optimizer *optimizer, const char *name)
{
    double lr_factor = bel_multiplier_get(optimizer->lr_mults, name);
    double decay_factor = bel_multiplier_get(optimizer->decay_mults, name);
    for (int g = 0; g < shard->group_count; g++) {
        const bel_shard_group *group = &shard->groups[g];
        bool same = group->lr_factor == lr_factor && group->decay_factor == decay_factor;
        if (same && group->optimizer == optimizer) return g;
    }
    shard->groups[shard->group_count] = (bel_shard_group){.optimizer = optimizer,
                                                          .rule = bel_rule_get(optimizer),
                                                          .lr_factor = lr_factor,
                                                          .decay_factor = decay_factor};
    return shard->group_count++;
}

void bel_shard_make_groups(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    const bel_optimizers *optimizers = &shard->config.settings.optimizers;
    int count = layout->variable_count + layout->table_count;
    shard->group_of = bel_xcalloc((size_t)count, sizeof *shard->group_of);
    shard->groups = bel_xcalloc((size_t)count, sizeof *shard->groups);
    for (int v = 0; v < count; v++) {
        bool is_table = v >= layout->variable_count;
        const char *name =
            is_table ? layout->tables[v - layout->variable_count].name : layout->variables[v].name;
        int g = find_group(shard, bel_optimizers_find(optimizers, name), name);
        shard->group_of[v] = g;
        const bel_shard_group *group = &shard->groups[g];
        if (is_table || layout->variables[v].kind != BEL_VARIABLE_TRAINABLE) continue;
        if (group->rule->slot_count > shard->slot_count)
            shard->slot_count = group->rule->slot_count;
        shard->trusts = shard->trusts || group->rule->trusts;
        shard->needs_norm = shard->needs_norm || group->rule->trusts ||
                            group->optimizer->clip_norm > 0 ||
                            group->optimizer->clip_global_norm > 0;
    }
}

void bel_shard_begin_numbers(bel_shard *shard)
{
    for (int g = 0; g < shard->group_count; g++) {
        bel_shard_group *group = &shard->groups[g];
        group->numbers = bel_rule_begin_scaled(group->optimizer, shard->step, group->lr_factor,
                                               group->decay_factor);
    }
    shard->average_rest =
        bel_rule_average_rest(&shard->config.settings.optimizers.main, shard->step);
}
