// A shard's memory. Nearly all of it is allocated here, for the maximum, so that steps hardly
// allocate. Arrays are as large as the space, but only pages of the shard's chunks are ever
// touched. The queue has room for every job that can be in it at once, so no code checks whether a
// job fits: each chunk, each table's update, its answer to each worker, with a ledger the copy of
// each chunk for each worker, and a merge for each slot of reports. bel_shard_destroy also accepts
// a partly created shard.
#include "base/alloc.h"
#include "base/check.h"
#include "ps/server/shard_inner.h"

// Initializes slot k of a segment's variable, and its snapshot.
static void start_segment(bel_shard *shard, const bel_segment *segment, int function, int k)
{
    if (!bel_shard_updates(shard, function, segment->variable)) return;
    const bel_rule_group *group = bel_shard_group_in(shard, function, segment->variable);
    int layer = bel_shard_layer(shard, function, segment->variable);
    if (k >= group->rule->slot_count) return;
    float start = bel_rule_slot_start(group->optimizer, k);
    if (start == 0.0f) return; // already zero
    for (int64_t e = segment->offset; e < segment->offset + segment->count; e++)
        shard->memory.slots[layer][k][e] = shard->memory.snapshot_slots[layer][k][e] = start;
}

// Pages of other shards stay untouched.
static void start_slots(bel_shard *shard, int function)
{
    const bel_layout *layout = shard->config.layout;
    for (int i = 0; i < shard->chunk_count; i++) {
        const bel_chunk *chunk = &layout->chunks[shard->chunks[i].chunk];
        for (int s = 0; s < chunk->segment_count; s++)
            for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++)
                start_segment(shard, &layout->segments[chunk->first_segment + s], function, k);
    }
}

// Finds a place for the directions between two passes. With a kept state the buffer of the next
// version may have a predecessor's values. Directions of rules that trust are not zero where no
// program writes the gradient, which must stay zero.
static bel_status *allocate_sums(bel_shard *shard)
{
    bool in_place = bel_space_is_in_place(shard->config.space);
    if (bel_shard_on_devices(shard)) return NULL;
    if (!in_place && shard->config.kept == NULL) return NULL;
    if (in_place && !shard->rules.trusts) shard->memory.sums = shard->config.gradients;
    return bel_shard_separate_sums(shard);
}

bel_status *bel_shard_separate_sums(bel_shard *shard)
{
    if (!shard->rules.needs_norm || shard->memory.sums != NULL) return NULL;
    return bel_space_array(shard->config.layout, "summed gradients", &shard->memory.sums);
}

// Devices have slots in their memory, and a mirror makes no snapshots: both need one array.
static bool has_snapshots(const bel_shard *shard)
{
    return !bel_shard_on_devices(shard) && !shard->config.mirrors;
}

static bel_status *allocate_slots(bel_shard *shard, int layer, int k)
{
    const bel_layout *layout = shard->config.layout;
    const bel_kept *kept = shard->config.kept;
    float **slots = &shard->memory.slots[layer][k];
    float **snapshot = &shard->memory.snapshot_slots[layer][k];
    if (kept != NULL) { // there is one layer
        *slots = bel_kept_slots(kept, k);
        *snapshot = bel_kept_snapshot_slots(kept, k);
        return NULL;
    }
    BEL_TRY(bel_space_array(layout, "snapshot of slots", snapshot));
    *slots = *snapshot;
    return has_snapshots(shard) ? bel_space_array(layout, "optimizer slots", slots) : NULL;
}

// Allocates the arrays that are as large as the space. `factors` and its kin exist only if a rule
// needs a norm.
static bel_status *shard_allocate(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    const bel_kept *kept = shard->config.kept;
    for (int l = 0; l < BEL_MAX_STEP_FUNCTIONS; l++)
        for (int k = 0; k < shard->rules.slot_counts[l]; k++)
            BEL_TRY(allocate_slots(shard, l, k));
    bool holds = kept != NULL && bel_kept_holds(kept);
    if (holds) shard->snapshot = bel_kept_snapshot(kept);
    for (int f = 0; f < shard->config.settings.function_count && !holds; f++)
        start_slots(shard, f);
    if (shard->config.settings.optimizers->main.moving_average_decay > 0) {
        BEL_CHECK(shard->config.snapshot_averages != NULL);
        shard->memory.averages = shard->config.snapshot_averages;
        if (kept != NULL) {
            shard->memory.averages = bel_kept_averages(kept);
        } else if (has_snapshots(shard)) {
            BEL_TRY(bel_space_array(layout, "moving averages", &shard->memory.averages));
        }
    }
    BEL_TRY(bel_shard_allocate_mirror(shard));
    if (!shard->rules.needs_norm) return NULL;
    size_t grains = (size_t)layout->grain_count * (size_t)bel_shard_norm_planes(shard);
    shard->memory.grain_squares = bel_xcalloc(grains, sizeof(double));
    shard->memory.factors = bel_xcalloc((size_t)layout->variable_count, sizeof(float));
    if (shard->config.shard == 0) {
        shard->inbox.norms = bel_xcalloc((size_t)layout->shard_count, sizeof *shard->inbox.norms);
        for (int k = 1; k < layout->shard_count; k++)
            shard->inbox.norms[k] = bel_xmalloc(bel_shard_norm_bytes(shard, k));
    } else {
        shard->norms.list = bel_xmalloc(bel_shard_norm_bytes(shard, shard->config.shard));
    }
    shard->inbox.factors = bel_xcalloc((size_t)layout->variable_count, sizeof(float));
    return allocate_sums(shard);
}

bel_status *bel_shard_create(const bel_shard_config *config, bel_shard **out_shard)
{
    bel_shard *shard = bel_xcalloc(1, sizeof *shard);
    const bel_layout *layout = config->layout;
    size_t nodes = (size_t)config->assignment->node_count;
    int64_t elements = 0;
    shard->config = *config;
    shard->policy = bel_policy_of(&config->settings.counting);
    if (config->parent != NULL) shard->memory.differences = config->parent->differences;
    bel_shard_make_groups(shard);
    pthread_mutex_init(&shard->mutex, NULL);
    shard->chunks = bel_xcalloc((size_t)layout->chunk_count, sizeof *shard->chunks);
    for (int c = 0; c < layout->chunk_count; c++) {
        if (layout->chunks[c].shard != config->shard) continue;
        shard->chunks[shard->chunk_count++] =
            (bel_shard_chunk){.chunk = c,
                              .inbox_offset = shard->inbox.elements,
                              .nodes = bel_xcalloc(nodes, sizeof(float *)),
                              .packed = bel_xcalloc(nodes, sizeof(bool)),
                              .weights = bel_xcalloc(nodes, sizeof(bel_weight)),
                              .taken = bel_xcalloc(nodes, sizeof(float *)),
                              .inputs = bel_xcalloc(nodes, sizeof(void *)),
                              .scratch = bel_xcalloc((size_t)config->assignment->depth + 3,
                                                     BEL_SHARD_PIECE * sizeof(float))};
        size_t bytes = bel_rounding_bytes(bel_shard_rounding(shard, c), layout->chunks[c].count);
        shard->inbox.elements += (int64_t)((bytes + sizeof(float) - 1) / sizeof(float));
        if (layout->chunks[c].kind == BEL_VARIABLE_TRAINABLE) elements += layout->chunks[c].count;
    }
    shard->streams =
        elements >= (config->stream_from > 0 ? config->stream_from : BEL_SHARD_STREAM_FROM);
    for (int i = 0; i < shard->chunk_count; i++)
        shard->chunks[i].version = config->kept != NULL ? bel_kept_version(config->kept, i) : -1;
    shard->inbox.sums = bel_xcalloc(nodes, sizeof *shard->inbox.sums);
    shard->inbox.rows =
        bel_xcalloc((size_t)config->assignment->worker_count, sizeof *shard->inbox.rows);
    shard->workers = bel_xcalloc((size_t)config->assignment->worker_count, sizeof *shard->workers);
    size_t copies = shard->policy->lockstep ? 0 : (size_t)config->assignment->worker_count;
    size_t tables = (size_t)layout->table_count * (1 + (size_t)config->assignment->worker_count);
    bel_shard_create_room(shard);
    size_t merges = (size_t)shard->room.plan.slots; // each needs one
    shard->work.ready = bel_xcalloc((size_t)shard->chunk_count * (1 + copies) + tables + merges,
                                    sizeof *shard->work.ready);
    size_t stats = (size_t)bel_stats_size(shard->config.settings.stats);
    shard->stats.values = bel_xcalloc(nodes * stats, sizeof(double));
    shard->stats.list = bel_xcalloc(nodes, sizeof *shard->stats.list);
    shard->stats.counting = bel_xcalloc(nodes, sizeof *shard->stats.counting);
    shard->stats.sum = bel_xcalloc(stats, sizeof(double));
    shard->norms.squares = bel_xcalloc((size_t)layout->shard_count, sizeof *shard->norms.squares);
    for (int w = 0; w < config->assignment->worker_count; w++)
        shard->workers[w] = (bel_shard_worker){.version = -1, .counted_step = -1};
    shard->ledger = (bel_ledger){.next_block = -1, .block_end = -1, .leased = -1};
    shard->policy->create(shard);
    bel_status *status = shard_allocate(shard);
    if (status == NULL) status = bel_shard_create_tables(shard);
    bel_shard_create_exchanges(shard);
    if (status == NULL && bel_shard_on_devices(shard)) status = bel_shard_plan_devices(shard);
    if (status != NULL) {
        bel_shard_destroy(shard);
        return status;
    }
    *out_shard = shard;
    return NULL;
}

void bel_shard_destroy(bel_shard *shard)
{
    if (shard == NULL) return;
    const bel_layout *layout = shard->config.layout;
    bel_updater *updater = shard->config.updater;
    if (updater != NULL) updater->ops->forget(updater);
    for (int l = 0; l < BEL_MAX_STEP_FUNCTIONS && shard->config.kept == NULL; l++) {
        for (int k = 0; k < BEL_RULE_MAX_SLOTS; k++) {
            bool own = shard->memory.slots[l][k] != shard->memory.snapshot_slots[l][k];
            if (own) bel_space_free_array(layout, shard->memory.slots[l][k]);
            bel_space_free_array(layout, shard->memory.snapshot_slots[l][k]);
        }
    }
    if (shard->memory.averages != shard->config.snapshot_averages && shard->config.kept == NULL)
        bel_space_free_array(layout, shard->memory.averages);
    if (shard->memory.sums != shard->config.gradients)
        bel_space_free_array(layout, shard->memory.sums);
    if (shard->config.parent == NULL)
        bel_pages_destroy(shard->memory.differences,
                          bel_rounding_bytes(shard->config.settings.rounding, layout->size));
    shard->policy->destroy(shard);
    bel_shard_destroy_exchanges(shard);
    bel_shard_destroy_tables(shard);
    bel_shard_free_inboxes(shard);
    bel_shard_free_mirror(shard);
    bel_free(shard->transfer.numbers);
    bel_free(shard->transfer.points);
    bel_shard_destroy_room(shard);
    bel_free(shard->memory.grain_squares);
    bel_free(shard->memory.factors);
    bel_rule_groups_deinit(&shard->rules.groups);
    bel_free(shard->rules.group_of);
    for (int i = 0; i < shard->chunk_count; i++) {
        bel_free(shard->chunks[i].nodes);
        bel_free(shard->chunks[i].packed);
        bel_free(shard->chunks[i].weights);
        bel_free(shard->chunks[i].taken);
        bel_free(shard->chunks[i].inputs);
        bel_free(shard->chunks[i].scratch);
    }
    bel_free(shard->chunks);
    bel_free(shard->workers);
    bel_free(shard->work.ready);
    bel_free(shard->stats.values);
    bel_free(shard->stats.list);
    bel_free(shard->stats.counting);
    bel_free(shard->stats.sum);
    bel_free(shard->norms.squares);
    bel_free(shard->norms.list);
    bel_status_destroy(shard->error);
    pthread_mutex_destroy(&shard->mutex);
    bel_free(shard);
}
