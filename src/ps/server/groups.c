// Groups of variables and tables with the same optimizer and factors of learning rate and weight
// decay in the same step function: each has the numbers of the step once. Mostly there is one.
// Membership is fixed when the shard is made; the numbers are computed when a step begins, while no
// job runs, so passes read them without the lock.
#include "base/alloc.h"
#include "optim/multiplier.h"
#include "ps/server/shard_inner.h"

static int find_group(bel_shard *shard, int function, const char *name)
{
    const bel_optimizer *optimizer =
        bel_optimizers_find(&shard->config.settings.optimizers[function], name);
    double lr_factor = bel_multiplier_get(optimizer->lr_mults, name);
    double decay_factor = bel_multiplier_get(optimizer->decay_mults, name);
    for (int g = 0; g < shard->group_count; g++) {
        const bel_shard_group *group = &shard->groups[g];
        bool same = group->lr_factor == lr_factor && group->decay_factor == decay_factor;
        if (same && group->optimizer == optimizer) return g;
    }
    shard->groups[shard->group_count] = (bel_shard_group){.function = function,
                                                          .optimizer = optimizer,
                                                          .rule = bel_rule_get(optimizer),
                                                          .lr_factor = lr_factor,
                                                          .decay_factor = decay_factor};
    return shard->group_count++;
}

// What the variable's rule needs of the shard's memory.
static void provide(bel_shard *shard, int function, int variable)
{
    const bel_shard_group *group = bel_shard_group_in(shard, function, variable);
    int *slots = &shard->slot_counts[bel_shard_layer(shard, function, variable)];
    if (group->rule->slot_count > *slots) *slots = group->rule->slot_count;
    shard->trusts = shard->trusts || group->rule->trusts;
    shard->needs_norm = shard->needs_norm || group->rule->trusts ||
                        bel_rule_clip_norm(group->optimizer) > 0 ||
                        bel_rule_clip_global_norm(group->optimizer) > 0;
}

void bel_shard_make_groups(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    int count = layout->variable_count + layout->table_count;
    int functions = shard->config.settings.function_count;
    size_t most = (size_t)functions * (size_t)count;
    shard->group_of = bel_xcalloc(most, sizeof *shard->group_of);
    shard->groups = bel_xcalloc(most, sizeof *shard->groups);
    for (int f = 0; f < functions; f++) {
        for (int v = 0; v < count; v++) {
            bool is_table = v >= layout->variable_count;
            const char *name = is_table ? layout->tables[v - layout->variable_count].name
                                        : layout->variables[v].name;
            shard->group_of[f * count + v] = find_group(shard, f, name);
            if (!is_table && bel_shard_updates(shard, f, v)) provide(shard, f, v);
        }
    }
}

// A rule and a schedule count the steps of their own function.
void bel_shard_begin_numbers(bel_shard *shard)
{
    for (int g = 0; g < shard->group_count; g++) {
        bel_shard_group *group = &shard->groups[g];
        group->numbers = bel_rule_begin_scaled(group->optimizer, shard->runs[group->function],
                                               group->lr_factor, group->decay_factor);
    }
    shard->average_rest =
        bel_rule_average_rest(&shard->config.settings.optimizers->main, shard->step);
}
