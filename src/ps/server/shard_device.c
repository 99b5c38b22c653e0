// A shard whose parameters are on devices (optim/updater.h). One job passes all chunks, and only
// after all workers have completed their reports of the step: then no program reads values any
// more, so they are updated in place. The process's arrays are the snapshot's, and hold the last
// loaded or saved values.
#include <string.h>

#include "base/alloc.h"
#include "ps/server/shard_inner.h"

// An update's kind of a variable; -1: it never changes.
static int32_t kind_of(bel_variable_kind kind)
{
    switch (kind) {
    case BEL_VARIABLE_TRAINABLE: return BEL_UPDATE_RULE;
    case BEL_VARIABLE_STATE_MEAN: return BEL_UPDATE_MEAN;
    case BEL_VARIABLE_STATE_SUM: return BEL_UPDATE_ADD;
    case BEL_VARIABLE_STATE_FIRST: return BEL_UPDATE_FIRST;
    default: return -1;
    }
}

// Appends the pieces of a segment.
static int add_pieces(const bel_shard *shard, const bel_segment *segment, bel_update_piece *pieces,
                      int count)
{
    const bel_layout *layout = shard->config.layout;
    const bel_layout_variable *variable = &layout->variables[segment->variable];
    int32_t kind = kind_of(variable->kind);
    for (int64_t at = 0; kind >= 0 && at < segment->count; at += BEL_GRAIN) {
        int64_t left = segment->count - at;
        pieces[count++] =
            (bel_update_piece){.offset = segment->offset + at,
                               .grain = variable->first_grain + (segment->first + at) / BEL_GRAIN,
                               .count = (int32_t)(left < BEL_GRAIN ? left : BEL_GRAIN),
                               .kind = kind,
                               .group = shard->rules.group_of[segment->variable],
                               .variable = segment->variable};
    }
    return count;
}

bel_status *bel_shard_plan_devices(bel_shard *shard)
{
    bel_updater *updater = shard->config.updater;
    const bel_layout *layout = shard->config.layout;
    bel_update_piece *pieces = bel_xcalloc((size_t)layout->grain_count, sizeof *pieces);
    bel_update_plan plan = {.pieces = pieces,
                            .groups = &shard->rules.groups,
                            .variable_count = layout->variable_count,
                            .grain_count = layout->grain_count,
                            .norms = shard->rules.needs_norm,
                            .trusts = shard->rules.trusts,
                            .values = shard->config.snapshot,
                            .averages = shard->memory.averages,
                            .slot_count = shard->rules.slot_counts[0]};
    for (int s = 0; s < layout->segment_count; s++)
        plan.piece_count = add_pieces(shard, &layout->segments[s], pieces, plan.piece_count);
    for (int k = 0; k < plan.slot_count; k++)
        plan.slots[k] = shard->memory.slots[0][k];
    bel_status *status = updater->ops->plan(updater, &plan);
    bel_free(pieces);
    return status;
}

// Without chunks there is nothing to pass, and no room for a job.
void bel_shard_push_all_locked(bel_shard *shard, bel_job_kind kind)
{
    if (shard->chunk_count > 0)
        bel_shard_push_locked(shard, (bel_shard_job){.kind = kind, .local = BEL_ALL_CHUNKS});
}

// The chunk whose weights are used for all: one with sums by examples, if there is any. Other sums
// need only the counting workers. No worker reports frozen chunks.
static const bel_shard_chunk *weighing_chunk(const bel_shard *shard)
{
    const bel_shard_chunk *plain = NULL;
    for (int i = 0; i < shard->chunk_count; i++) {
        bel_variable_kind kind = shard->config.layout->chunks[shard->chunks[i].chunk].kind;
        if (kind == BEL_VARIABLE_TRAINABLE || kind == BEL_VARIABLE_STATE_MEAN)
            return &shard->chunks[i];
        if (kind != BEL_VARIABLE_FROZEN) plain = &shard->chunks[i];
    }
    return plain;
}

// The counting replicas of the step, and the factors of the sum over them. A node is a replica.
static bel_update_step step_of(const bel_shard *shard, float joins[2 * BEL_UPDATER_REPLICAS])
{
    const bel_shard_chunk *chunk = weighing_chunk(shard);
    bel_weight weights[BEL_UPDATER_REPLICAS] = {{0}};
    bel_update_step step = {.joins = joins, .average_rest = shard->rules.average_rest};
    int nodes = shard->config.assignment->node_count;
    int64_t replicas = 0;
    for (int k = 0; k < nodes && chunk != NULL; k++) {
        if (chunk->weights[k].replicas == 0) continue; // it had no examples
        weights[k] = chunk->weights[k];
        step.counts |= UINT64_C(1) << k;
        replicas += weights[k].replicas;
    }
    bel_assignment_joins(weights, nodes, joins);
    step.scale = replicas > 0 ? (float)(1.0 / (double)replicas) : 0;
    step.of_gradient = shard->config.settings.sums ? 1 : step.scale;
    return step;
}

bel_status *bel_shard_pass_devices(bel_shard *shard, bel_job_kind kind)
{
    float joins[2 * BEL_UPDATER_REPLICAS];
    bel_updater *updater = shard->config.updater;
    bel_update_step step = step_of(shard, joins);
    if (shard->decision.compares_devices) BEL_TRY(updater->ops->compare(updater));
    shard->decision.compares_devices = false; // there may be a second pass
    if (kind == BEL_JOB_SUM)
        return updater->ops->direct(updater, &step, shard->memory.grain_squares);
    if (kind == BEL_JOB_UPDATE) {
        step.factors = shard->memory.factors;
        BEL_TRY(updater->ops->follow(updater, &step));
    } else {
        BEL_TRY(updater->ops->update(updater, &step));
    }
    return (shard->decision.now & BEL_DECIDE_SAVE) != 0 ? bel_shard_save_devices(shard) : NULL;
}

// Elements without an average keep their value, as in bel_shard_copy_to_snapshot.
bel_status *bel_shard_save_devices(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    BEL_TRY(shard->config.updater->ops->save(shard->config.updater));
    for (int c = 0; c < layout->chunk_count && shard->memory.averages != NULL; c++) {
        const bel_chunk *chunk = &layout->chunks[c];
        if (chunk->kind == BEL_VARIABLE_TRAINABLE) continue;
        memcpy(shard->memory.averages + chunk->offset, shard->config.snapshot + chunk->offset,
               (size_t)chunk->count * sizeof(float));
    }
    return NULL;
}
