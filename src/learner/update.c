// Optimizer: a shard's update from the sum over one replica (src/ps/server/pass.c), segment by
// segment on the team's threads. A rule gives an element the same bits wherever its range begins,
// so the segments may be cut anywhere. Rules with norms need a first pass, which computes
// directions and their squares.
#include <string.h>

#include "base/alloc.h"
#include "learner/learner_inner.h"
#include "ps/layout/norms.h"
#include "ps/layout/space.h"

static bool is_trained(const bel_learner *l, int variable)
{
    return bel_learner_variable(l, variable)->kind == BEL_VARIABLE_TRAINABLE;
}

static const bel_rule_group *group_of(const bel_learner *l, int variable)
{
    return &l->groups.items[l->group_of[variable]];
}

// --- Memory --------------------------------------------------------------------------------------

// Finds the groups and returns the largest number of slots in one.
static int find_groups(bel_learner *l)
{
    int slots = 0;
    l->group_of = bel_xcalloc((size_t)l->layout->variable_count + 1, sizeof *l->group_of);
    for (int v = 0; v < l->layout->variable_count; v++) {
        const char *name = bel_learner_variable(l, v)->name;
        l->group_of[v] = bel_rule_groups_find(&l->groups, &l->file.optimizers, 0, name);
        if (!is_trained(l, v)) continue;
        const bel_rule_group *group = group_of(l, v);
        if (group->rule->slot_count > slots) slots = group->rule->slot_count;
        l->trusts = l->trusts || group->rule->trusts;
        l->needs_norm = l->needs_norm || group->rule->trusts ||
                        bel_rule_clip_norm(group->optimizer) > 0 ||
                        bel_rule_clip_global_norm(group->optimizer) > 0;
    }
    return slots;
}

bel_status *bel_learner_make_update(bel_learner *l)
{
    const bel_layout *layout = l->layout;
    int slots = find_groups(l);
    BEL_TRY(bel_space_array(layout, "parameters", &l->values));
    BEL_TRY(bel_space_array(layout, "gradients", &l->gradients));
    for (int k = 0; k < slots; k++)
        BEL_TRY(bel_space_array(layout, "slots of the optimizer", &l->slots[k]));
    if (l->file.optimizers.main.moving_average_decay > 0)
        BEL_TRY(bel_space_array(layout, "moving averages", &l->averages));
    if (!l->needs_norm) return NULL;
    BEL_TRY(bel_space_array(layout, "directions", &l->directions));
    size_t grains = (size_t)layout->grain_count + 1;
    l->grain_squares = bel_xcalloc((l->trusts ? 2 : 1) * grains, sizeof *l->grain_squares);
    l->factors = bel_xcalloc((size_t)layout->variable_count + 1, sizeof *l->factors);
    return NULL;
}

// --- Passes --------------------------------------------------------------------------------------

typedef void piece_fn(bel_learner *l, const bel_rule_group *group, int variable, int64_t offset,
                      int64_t n);

static void find_slots(const bel_learner *l, const bel_rule *rule, int64_t offset,
                       float *slots[BEL_RULE_MAX_SLOTS])
{
    for (int k = 0; k < rule->slot_count; k++)
        slots[k] = l->slots[k] + offset;
}

static void update_apply(bel_learner *l, const bel_rule_group *group, int64_t offset, int64_t n,
                         const float *gradient, float factor)
{
    float *values = l->values + offset, *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    find_slots(l, group->rule, offset, slots);
    bel_rule_apply(&group->numbers, gradient, factor, values, values, slots, n);
    if (l->averages != NULL) bel_rule_average(values, l->average_rest, l->averages + offset, n);
}

// Does everything in one pass, if no norm is needed. Gradients that no program writes are zero and
// stay zero when clipped.
static void update_piece(bel_learner *l, const bel_rule_group *group, int variable, int64_t offset,
                         int64_t n)
{
    (void)variable;
    float *gradient = l->gradients + offset;
    if (group->numbers.clip_value != 0) bel_rule_scale(&group->numbers, gradient, 1, gradient, n);
    update_apply(l, group, offset, n, gradient, 1);
}

static void direct_piece(bel_learner *l, const bel_rule_group *group, int variable, int64_t offset,
                         int64_t n)
{
    (void)variable;
    float *direction = l->directions + offset, *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    bel_rule_scale(&group->numbers, l->gradients + offset, 1, direction, n);
    if (!group->rule->prepares) return;
    find_slots(l, group->rule, offset, slots);
    bel_rule_prepare(&group->numbers, direction, l->values + offset, direction, slots, n);
}

static void apply_piece(bel_learner *l, const bel_rule_group *group, int variable, int64_t offset,
                        int64_t n)
{
    update_apply(l, group, offset, n, l->directions + offset, l->factors[variable]);
}

// Processes grains, which stay in the L1 cache from one rule to the next.
static void run_pieces(bel_learner *l, const bel_segment *segment, piece_fn *piece)
{
    const bel_rule_group *group = group_of(l, segment->variable);
    for (int64_t at = 0; at < segment->count; at += BEL_GRAIN) {
        int64_t left = segment->count - at;
        piece(l, group, segment->variable, segment->offset + at,
              left < BEL_GRAIN ? left : BEL_GRAIN);
    }
}

// State variables have no rule.
static void keep_state(bel_learner *l, const bel_segment *segment)
{
    bel_variable_kind kind = bel_learner_variable(l, segment->variable)->kind;
    const float *assigned = l->gradients + segment->offset;
    float *values = l->values + segment->offset;
    if (l->file.reports[segment->variable] == NULL) return;
    if (kind != BEL_VARIABLE_STATE_SUM) {
        memcpy(values, assigned, (size_t)segment->count * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < segment->count; i++)
        values[i] += assigned[i];
}

static void update_segment(void *context, int64_t tile)
{
    bel_learner *l = context;
    const bel_segment *segment = &l->layout->segments[tile];
    if (!is_trained(l, segment->variable)) {
        keep_state(l, segment);
    } else if (!l->needs_norm) {
        run_pieces(l, segment, update_piece);
    } else {
        run_pieces(l, segment, direct_piece);
        bel_norms_take(l->layout, segment, l->directions, l->grain_squares);
        if (l->trusts)
            bel_norms_take(l->layout, segment, l->values,
                           l->grain_squares + l->layout->grain_count);
    }
}

static void apply_segment(void *context, int64_t tile)
{
    bel_learner *l = context;
    const bel_segment *segment = &l->layout->segments[tile];
    if (is_trained(l, segment->variable)) run_pieces(l, segment, apply_piece);
}

static bel_norms_use use_of(const void *context, int variable)
{
    const bel_learner *l = context;
    const bel_rule_group *group = group_of(l, variable);
    return (bel_norms_use){.updates = is_trained(l, variable),
                           .clip_norm = bel_rule_clip_norm(group->optimizer),
                           .trust = group->rule->trusts ? &group->numbers : NULL};
}

void bel_learner_update(bel_learner *l)
{
    const bel_layout *layout = l->layout;
    const bel_optimizer *main = &l->file.optimizers.main;
    l->average_rest = bel_rule_average_rest(main, l->step);
    bel_team_run(l->team, update_segment, l, layout->segment_count);
    if (!l->needs_norm) return;
    double all = bel_norms_combine(layout, l->grain_squares, use_of, l, l->factors);
    bel_norms_limit(layout, all, bel_rule_clip_global_norm(main), l->factors);
    bel_team_run(l->team, apply_segment, l, layout->segment_count);
}
