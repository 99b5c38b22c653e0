// Optimizer: a shard's update from the sum over one replica (ps/layout/space_update.h), on the
// team's threads. Workers with local steps make the same call, so the learner has the bits of a
// job with one replica. Values and slots are updated in place: no step runs meanwhile.
#include "base/alloc.h"
#include "learner/learner_inner.h"
#include "ps/layout/space.h"

bel_status *bel_learner_make_update(bel_learner *l)
{
    const bel_layout *layout = l->layout;
    size_t count = (size_t)layout->variable_count;
    BEL_TRY(bel_space_update_init(&l->update, layout, &l->file.optimizers));
    BEL_TRY(bel_space_array(layout, "parameters", &l->values));
    BEL_TRY(bel_space_array(layout, "gradients", &l->gradients));
    for (int k = 0; k < l->update.slot_count; k++)
        BEL_TRY(bel_space_array(layout, "slots of the optimizer", &l->slots[k]));
    if (l->file.optimizers.main.moving_average_decay > 0)
        BEL_TRY(bel_space_array(layout, "moving averages", &l->averages));
    l->slot_starts = bel_xcalloc(count * BEL_RULE_MAX_SLOTS + 1, sizeof *l->slot_starts);
    l->reported = bel_xcalloc(count + 1, sizeof *l->reported);
    for (size_t v = 0; v < count; v++) {
        l->reported[v] = l->file.reports[v] != NULL;
        for (int k = 0; k < l->update.slot_count; k++)
            l->slot_starts[v * BEL_RULE_MAX_SLOTS + (size_t)k] =
                l->slots[k] + layout->variables[v].offset;
    }
    return NULL;
}

void bel_learner_update(bel_learner *l)
{
    const bel_space_values values = {.values = l->values,
                                     .gradients = l->gradients,
                                     .reported = l->reported,
                                     .slots = l->slot_starts,
                                     .averages = l->averages,
                                     .average_rest =
                                         bel_rule_average_rest(&l->file.optimizers.main, l->step)};
    bel_space_update_run(&l->update, l->team, &values);
}
