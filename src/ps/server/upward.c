// The shard of a relay (ps/relay). Its workers are the relay's reporters, and its rule is no
// update: a chunk's reports are added into the nodes that the relay has in its parent's assignment,
// and reported there. The chunk is passed when its next values have come from the parent, and then
// they go to the reporters as those of any shard.
//
// A node of the parent's assignment is a complete subtree here, so its sum has the bits that the
// parent would compute from the same reports. Values of version s + 1 come only after this relay
// has reported s, so no reporter reads their buffer any more.
#include "base/fault.h"
#include "ps/server/shard_inner.h"

// The nodes of this assignment that are in one of the parent's: [begin, end).
static void nodes_below(const bel_shard *shard, const bel_assignment_node *node, int *out_begin,
                        int *out_end)
{
    const bel_assignment *assignment = shard->config.assignment;
    int begin = 0;
    while (assignment->nodes[begin].first < node->first)
        begin++;
    int end = begin;
    while (end < assignment->node_count &&
           assignment->nodes[end].first < node->first + (1 << node->level))
        end++;
    *out_begin = begin;
    *out_end = end;
}

bel_status *bel_shard_sum_up(bel_shard *shard, int local)
{
    const bel_shard_parent *parent = shard->config.parent;
    const bel_shard_chunk *chunk = &shard->chunks[local];
    const int *first = parent->assignment->first_node + parent->reporter;
    int64_t offset = shard->config.layout->chunks[chunk->chunk].offset;
    for (int k = first[0]; k < first[1]; k++) {
        const bel_assignment_node *node = &parent->assignment->nodes[k];
        float *to = parent->sums[k - first[0]] + offset;
        bel_weight weight = {0};
        int begin, end;
        nodes_below(shard, node, &begin, &end);
        for (int i = begin; i < end; i++) {
            weight.replicas += chunk->weights[i].replicas;
            weight.examples += chunk->weights[i].examples;
        }
        bel_shard_merge_into(shard, local, begin, node->level, to, false);
        BEL_TRY(parent->report(parent->context, shard->step, shard->decision.now, chunk->chunk, k,
                               weight, to));
    }
    bel_fault_point("relay_reported");
    return NULL;
}

// Chunks whose sums are reported in this step.
static int chunks_up(const bel_shard *shard)
{
    int count = 0;
    for (int i = 0; i < shard->chunk_count; i++)
        count += bel_shard_changes(shard, i);
    return count;
}

// They follow all sums on the lane, which may wait for them.
void bel_shard_stats_up_locked(bel_shard *shard)
{
    const bel_shard_parent *parent = shard->config.parent;
    const bel_assignment *assignment = shard->config.assignment;
    const int *first = parent->assignment->first_node + parent->reporter;
    int size = bel_stats_size(shard->config.settings.stats);
    bool all = shard->stats.count == assignment->node_count && shard->decision.known;
    if (shard->stats.told || !all || shard->work.summed < chunks_up(shard)) return;
    shard->stats.told = true;
    for (int k = first[0]; k < first[1] && shard->error == NULL; k++) {
        const bel_assignment_node *node = &parent->assignment->nodes[k];
        double *sum = parent->stats + (size_t)(k - first[0]) * (size_t)size;
        bel_assignment_sum_f64_below(assignment, shard->stats.list, node->level, node->first, size,
                                     sum);
        shard->error = parent->report_stats(parent->context, shard->step, shard->decision.now, k,
                                            shard->workers[0].hash, sum);
    }
    bel_fault_point("relay_sent_stats");
}

void bel_shard_poll_parent_locked(bel_shard *shard)
{
    const bel_shard_parent *parent = shard->config.parent;
    bel_space *space = shard->config.space;
    if (shard->error == NULL) shard->error = parent->poll(parent->context);
    if (shard->error != NULL || !shard->started) return;
    for (int i = 0; i < shard->chunk_count; i++) {
        bel_shard_chunk *chunk = &shard->chunks[i];
        bool waits = chunk->summed || (shard->stats.told && !bel_shard_changes(shard, i));
        bool frozen = shard->config.layout->chunks[chunk->chunk].kind == BEL_VARIABLE_FROZEN;
        if (chunk->passed || frozen || !waits) continue;
        if (!parent->has_values(parent->context, chunk->chunk, shard->step + 1)) continue;
        int current = atomic_load(&space->current[chunk->chunk]);
        atomic_store(&space->current[chunk->chunk], (unsigned char)(1 - current));
        chunk->version = shard->step + 1;
        bool rounds = bel_shard_rounding(shard, chunk->chunk) != BEL_ROUNDING_NONE;
        chunk->differs = rounds && parent->has_differences(parent->context, chunk->chunk);
        chunk->passed = true;
        shard->work.passed++;
        shard->policy->chunk_passed(shard, i);
    }
}
