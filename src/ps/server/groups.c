// Groups of a shard's variables and tables (optim/groups.h), and the memory that their rules need.
// Membership is fixed at the shard's creation. The numbers are computed when a step begins, while
// no job runs, so passes read them without the lock.
#include "base/alloc.h"
#include "ps/server/shard_inner.h"

// Determines the variable's rule's needs of the shard's memory.
static void provide(bel_shard *shard, int function, int variable)
{
    const bel_rule_group *group = bel_shard_group_in(shard, function, variable);
    int *slots = &shard->rules.slot_counts[bel_shard_layer(shard, function, variable)];
    if (group->rule->slot_count > *slots) *slots = group->rule->slot_count;
    shard->rules.trusts = shard->rules.trusts || group->rule->trusts;
    shard->rules.needs_norm = shard->rules.needs_norm || group->rule->trusts ||
                              bel_rule_clip_norm(group->optimizer) > 0 ||
                              bel_rule_clip_global_norm(group->optimizer) > 0;
}

void bel_shard_make_groups(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    int count = layout->variable_count + layout->table_count;
    int functions = shard->config.settings.function_count;
    size_t most = (size_t)functions * (size_t)count;
    shard->rules.group_of = bel_xcalloc(most, sizeof *shard->rules.group_of);
    for (int f = 0; f < functions; f++) {
        for (int v = 0; v < count; v++) {
            bool is_table = v >= layout->variable_count;
            const char *name = is_table ? layout->tables[v - layout->variable_count].name
                                        : layout->variables[v].name;
            shard->rules.group_of[f * count + v] = bel_rule_groups_find(
                &shard->rules.groups, &shard->config.settings.optimizers[f], f, name);
            if (!is_table && bel_shard_updates(shard, f, v)) provide(shard, f, v);
        }
    }
}

// A rule and a schedule count the steps of their function.
void bel_shard_begin_numbers(bel_shard *shard)
{
    bel_rule_groups_begin(&shard->rules.groups, shard->rules.runs, shard->rules.runs);
    shard->rules.average_rest =
        bel_rule_average_rest(&shard->config.settings.optimizers->main, shard->step);
}
