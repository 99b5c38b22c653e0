// One pass over the segments, or two if a rule or a bound needs norms: directions first, then the
// update with factors. Pieces of a segment are grains, which stay in the L1 cache from one rule to
// the next. Directions take the gradients' array. Rules that trust have a separate one, as weight
// decay gives a direction to a gradient that no program writes, which must stay zero.
#include "ps/layout/space_update.h"

#include <string.h>

#include "base/alloc.h"
#include "ps/layout/norms.h"
#include "ps/layout/space.h"

// --- Life ----------------------------------------------------------------------------------------

static bool is_trained(const bel_space_update *u, int variable)
{
    return u->layout->variables[variable].kind == BEL_VARIABLE_TRAINABLE;
}

static void find_groups(bel_space_update *u, const bel_optimizers *optimizers)
{
    const bel_layout *layout = u->layout;
    u->group_of = bel_xcalloc((size_t)layout->variable_count + 1, sizeof *u->group_of);
    for (int v = 0; v < layout->variable_count; v++) {
        u->group_of[v] = bel_rule_groups_find(&u->groups, optimizers, 0, layout->variables[v].name);
        if (!is_trained(u, v)) continue;
        const bel_rule_group *group = bel_space_update_group(u, v);
        if (group->rule->slot_count > u->slot_count) u->slot_count = group->rule->slot_count;
        u->trusts = u->trusts || group->rule->trusts;
        u->needs_norm = u->needs_norm || group->rule->trusts ||
                        bel_rule_clip_norm(group->optimizer) > 0 ||
                        bel_rule_clip_global_norm(group->optimizer) > 0;
    }
}

bel_status *bel_space_update_init(bel_space_update *u, const bel_layout *layout,
                                  const bel_optimizers *optimizers)
{
    *u = (bel_space_update){.layout = layout, .main = &optimizers->main};
    find_groups(u, optimizers);
    if (!u->needs_norm) return NULL;
    size_t grains = (size_t)layout->grain_count + 1;
    u->grain_squares = bel_xcalloc((u->trusts ? 2 : 1) * grains, sizeof *u->grain_squares);
    u->factors = bel_xcalloc((size_t)layout->variable_count + 1, sizeof *u->factors);
    return u->trusts ? bel_space_array(layout, "directions", &u->directions) : NULL;
}

void bel_space_update_deinit(bel_space_update *u)
{
    bel_space_free_array(u->layout, u->directions);
    bel_rule_groups_deinit(&u->groups);
    bel_free(u->group_of);
    bel_free(u->grain_squares);
    bel_free(u->factors);
    *u = (bel_space_update){.layout = NULL};
}

// --- Passes --------------------------------------------------------------------------------------

typedef struct updating {
    bel_space_update *update;
    const bel_space_values *arrays;
} updating;

// `at`: an element of the variable; the piece has `n` from there on.
typedef void piece_fn(const updating *job, const bel_rule_group *group, int variable, int64_t at,
                      int64_t n);

static void find_slots(const updating *job, const bel_rule *rule, int variable, int64_t at,
                       float *slots[BEL_RULE_MAX_SLOTS])
{
    for (int k = 0; k < rule->slot_count; k++)
        slots[k] = job->arrays->slots[variable * BEL_RULE_MAX_SLOTS + k] + at;
}

static int64_t offset_of(const updating *job, int variable, int64_t at)
{
    return job->update->layout->variables[variable].offset + at;
}

static float *directions_of(const updating *job)
{
    return job->update->trusts ? job->update->directions : job->arrays->gradients;
}

static void update_apply(const updating *job, const bel_rule_group *group, int variable, int64_t at,
                         int64_t n, const float *gradient, float factor)
{
    int64_t offset = offset_of(job, variable, at);
    float *values = job->arrays->values + offset, *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    find_slots(job, group->rule, variable, at, slots);
    bel_rule_apply(&group->numbers, gradient, factor, values, values, slots, n);
    if (job->arrays->averages != NULL)
        bel_rule_average(values, job->arrays->average_rest, job->arrays->averages + offset, n);
}

// Does everything in one pass, if no norm is needed. Gradients that no program writes are zero and
// stay zero when clipped.
static void update_piece(const updating *job, const bel_rule_group *group, int variable, int64_t at,
                         int64_t n)
{
    float *gradient = job->arrays->gradients + offset_of(job, variable, at);
    if (group->numbers.clip_value != 0) bel_rule_scale(&group->numbers, gradient, 1, gradient, n);
    update_apply(job, group, variable, at, n, gradient, 1);
}

static void direct_piece(const updating *job, const bel_rule_group *group, int variable, int64_t at,
                         int64_t n)
{
    int64_t offset = offset_of(job, variable, at);
    float *direction = directions_of(job) + offset, *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    bel_rule_scale(&group->numbers, job->arrays->gradients + offset, 1, direction, n);
    if (!group->rule->prepares) return;
    find_slots(job, group->rule, variable, at, slots);
    bel_rule_prepare(&group->numbers, direction, job->arrays->values + offset, direction, slots, n);
}

static void apply_piece(const updating *job, const bel_rule_group *group, int variable, int64_t at,
                        int64_t n)
{
    update_apply(job, group, variable, at, n, directions_of(job) + offset_of(job, variable, at),
                 job->update->factors[variable]);
}

static void run_pieces(const updating *job, const bel_segment *segment, piece_fn *piece)
{
    const bel_rule_group *group = bel_space_update_group(job->update, segment->variable);
    for (int64_t at = 0; at < segment->count; at += BEL_GRAIN) {
        int64_t left = segment->count - at;
        piece(job, group, segment->variable, segment->first + at,
              left < BEL_GRAIN ? left : BEL_GRAIN);
    }
}

// State variables have no rule. Variables of other kinds keep their values.
static void keep_state(const updating *job, const bel_segment *segment)
{
    bel_variable_kind kind = job->update->layout->variables[segment->variable].kind;
    const float *assigned = job->arrays->gradients + segment->offset;
    float *values = job->arrays->values + segment->offset;
    if (!job->arrays->reported[segment->variable]) return;
    if (kind != BEL_VARIABLE_STATE_SUM) {
        memcpy(values, assigned, (size_t)segment->count * sizeof *values);
        return;
    }
    for (int64_t i = 0; i < segment->count; i++)
        values[i] += assigned[i];
}

static void update_segment(void *context, int64_t tile)
{
    const updating *job = context;
    bel_space_update *u = job->update;
    const bel_segment *segment = &u->layout->segments[tile];
    if (!is_trained(u, segment->variable)) {
        keep_state(job, segment);
    } else if (!u->needs_norm) {
        run_pieces(job, segment, update_piece);
    } else {
        run_pieces(job, segment, direct_piece);
        bel_norms_take(u->layout, segment, directions_of(job), u->grain_squares);
        if (u->trusts)
            bel_norms_take(u->layout, segment, job->arrays->values,
                           u->grain_squares + u->layout->grain_count);
    }
}

static void apply_segment(void *context, int64_t tile)
{
    const updating *job = context;
    const bel_segment *segment = &job->update->layout->segments[tile];
    if (is_trained(job->update, segment->variable)) run_pieces(job, segment, apply_piece);
}

static bel_norms_use use_of(const void *context, int variable)
{
    const bel_space_update *u = context;
    const bel_rule_group *group = bel_space_update_group(u, variable);
    return (bel_norms_use){.updates = is_trained(u, variable),
                           .clip_norm = bel_rule_clip_norm(group->optimizer),
                           .trust = group->rule->trusts ? &group->numbers : NULL};
}

void bel_space_update_run(bel_space_update *u, bel_team *team, const bel_space_values *values)
{
    updating job = {u, values};
    const bel_layout *layout = u->layout;
    bel_team_run(team, update_segment, &job, layout->segment_count);
    if (!u->needs_norm) return;
    double all = bel_norms_combine(layout, u->grain_squares, use_of, u, u->factors);
    bel_norms_limit(layout, all, bel_rule_clip_global_norm(u->main), u->factors);
    bel_team_run(team, apply_segment, &job, layout->segment_count);
}
