// Groups of variables and tables with the same factors of learning rate and weight decay: each
// has the numbers of the step once. Without such factors there is one group. Membership is fixed
// when the shard is made; the numbers are computed when a step begins, while no job runs, so
// passes read them without the lock.
#include "base/alloc.h"
#include "optim/multiplier.h"
#include "ps/server/shard_inner.h"

static int find_group(bel_shard *shard, double lr_factor, double decay_factor)
{
    for (int g = 0; g < shard->group_count; g++) {
        const bel_shard_group *group = &shard->groups[g];
        if (group->lr_factor == lr_factor && group->decay_factor == decay_factor) return g;
    }
    shard->groups[shard->group_count] =
        (bel_shard_group){.lr_factor = lr_factor, .decay_factor = decay_factor};
    return shard->group_count++;
}

void bel_shard_make_groups(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    const bel_optimizer *optimizer = &shard->config.settings.optimizer;
    int count = layout->variable_count + layout->table_count;
    shard->group_of = bel_xcalloc((size_t)count, sizeof *shard->group_of);
    shard->groups = bel_xcalloc((size_t)count, sizeof *shard->groups);
    for (int v = 0; v < count; v++) {
        bool is_table = v >= layout->variable_count;
        const char *name =
            is_table ? layout->tables[v - layout->variable_count].name : layout->variables[v].name;
        shard->group_of[v] = find_group(shard, bel_multiplier_get(optimizer->lr_mults, name),
                                        bel_multiplier_get(optimizer->decay_mults, name));
    }
}

void bel_shard_begin_numbers(bel_shard *shard)
{
    for (int g = 0; g < shard->group_count; g++) {
        bel_shard_group *group = &shard->groups[g];
        group->numbers = bel_rule_begin_scaled(&shard->config.settings.optimizer, shard->step,
                                               group->lr_factor, group->decay_factor);
    }
    shard->average_rest = bel_rule_average_rest(&shard->config.settings.optimizer, shard->step);
}
