// Local steps of a replica: values and slots of a version are copied into its range, and each batch
// updates them there, with a shard's rules (ps/layout/space_update.h). Programs read the range and
// write gradients into scratch of the tower, which its replicas use in turn. So a step depends only
// on the version and on the replica's batches, and nothing is kept for the next step.
#include <string.h>

#include "base/alloc.h"
#include "ps/layout/space.h"
#include "runtime/device.h"
#include "worker/worker_inner.h"

static const bel_layout *layout_of(const bel_tower *tower)
{
    return tower->worker->config.layout;
}

// Values and slots of the tower's present replica.
static float *range_of(const bel_tower *tower)
{
    return tower->worker->config.ranges[tower->replica];
}

// Finds the slots of each variable among the layout's variables.
static void find_slots(bel_local *local, const bel_layout *layout)
{
    size_t count = (size_t)layout->variable_count * BEL_RULE_MAX_SLOTS;
    local->slots = bel_xcalloc(count, sizeof *local->slots);
    local->slot_offsets = bel_xcalloc(count, sizeof *local->slot_offsets);
    for (int v = 0; v < bel_layout_model_variables(layout); v++) {
        const bel_layout_variable *variable = &layout->variables[v];
        const bel_rule *rule = bel_space_update_group(&local->update, v)->rule;
        size_t room = strlen(variable->name) + BEL_RULE_SLOT_TEXT;
        char *name = bel_xmalloc(room);
        for (int k = 0; k < rule->slot_count; k++) {
            if (variable->kind != BEL_VARIABLE_TRAINABLE) continue;
            (void)bel_rule_slot_name(name, room, variable->name, rule, 0, k);
            local->slot_offsets[v * BEL_RULE_MAX_SLOTS + k] =
                layout->variables[bel_layout_find(layout, name)].offset;
        }
        bel_free(name);
    }
}

bel_status *bel_local_init(bel_tower *tower)
{
    const bel_worker *worker = tower->worker;
    const bel_layout *layout = layout_of(tower);
    bel_local *local = &tower->local;
    if (!bel_worker_is_local(worker)) return NULL;
    BEL_TRY(bel_space_update_init(&local->update, layout, worker->config.optimizers));
    BEL_TRY(bel_space_array(layout, "gradients of a tower", &local->gradients));
    if (tower->program.device != NULL)
        bel_device_pin(tower->program.device, local->gradients, bel_space_bytes(layout), true);
    find_slots(local, layout);
    local->reported = bel_xcalloc((size_t)layout->variable_count, sizeof *local->reported);
    for (int v = 0; v < bel_layout_model_variables(layout); v++)
        local->reported[v] = worker->config.models->reports[v] != NULL;
    return NULL;
}

void bel_local_deinit(bel_tower *tower)
{
    bel_local *local = &tower->local;
    if (local->update.layout == NULL) return; // no local steps
    if (local->gradients != NULL && tower->program.device != NULL)
        bel_device_pin(tower->program.device, local->gradients, bel_space_bytes(layout_of(tower)),
                       false);
    bel_space_free_array(layout_of(tower), local->gradients);
    bel_space_update_deinit(&local->update);
    bel_free(local->slots);
    bel_free(local->slot_offsets);
    bel_free(local->reported);
}

static void copy_chunk(void *context, int64_t tile)
{
    const bel_tower *tower = context;
    const bel_chunk *chunk = &layout_of(tower)->chunks[tile];
    if (chunk->kind == BEL_VARIABLE_FROZEN) return; // read where they are
    memcpy(range_of(tower) + chunk->offset,
           bel_space_of_chunk(tower->worker->config.space, (int)tile) + chunk->offset,
           (size_t)chunk->count * sizeof(float));
}

void bel_local_begin(bel_tower *tower)
{
    bel_team_run(tower->team, copy_chunk, tower, layout_of(tower)->chunk_count);
}

const float *bel_local_variable(const bel_tower *tower, int variable)
{
    const bel_layout_variable *v = &layout_of(tower)->variables[variable];
    if (v->kind == BEL_VARIABLE_FROZEN)
        return bel_space_variable(tower->worker->config.space, variable);
    return range_of(tower) + v->offset;
}

// The rate is that of the step, the same for all its batches.
void bel_local_update(bel_tower *tower)
{
    bel_local *local = &tower->local;
    int64_t step = tower->worker->step;
    int64_t number = step * bel_worker_local_steps(tower->worker) + local->step;
    int count = layout_of(tower)->variable_count * BEL_RULE_MAX_SLOTS;
    bel_rule_groups_begin(&local->update.groups, &step, &number);
    for (int i = 0; i < count; i++)
        local->slots[i] = range_of(tower) + local->slot_offsets[i];
    const bel_space_values values = {.values = range_of(tower),
                                     .gradients = local->gradients,
                                     .reported = local->reported,
                                     .slots = local->slots};
    bel_space_update_run(&local->update, tower->team, &values);
}
