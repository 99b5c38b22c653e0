// Merges reports of a chunk: the values of a complete subtree of the summation tree become one, in
// the slot of its first node. The additions are those of the pass, in the same order, so a sum has
// the same bits whether it is merged or not. Pieces stay in the first-level cache. A piece is read
// from all nodes before it is written, so the result may be one of the inputs. A relay adds its
// nodes in the same way, into the sums that it reports.
#include <string.h>

#include "ps/server/shard_inner.h"

enum { PIECE = 256, ROWS = 32 /* levels of the tree, and one */ };

typedef struct merge {
    const bel_shard *shard;
    bel_shard_chunk *local;
    const bel_chunk *chunk;
    int node, end, level;  // nodes [node, end)
    char *to;              // the first node's slot, or a relay's sums
    bel_rounding rounding; // for additions
    bool narrow;           // sums are written in the narrow type
} merge;

int bel_shard_span(const bel_shard *shard, const bel_shard_chunk *chunk, int node)
{
    const bel_assignment_node *own = &shard->config.assignment->nodes[node];
    int left = shard->config.assignment->replica_count - own->first;
    if (chunk->levels == NULL || chunk->levels[node] <= own->level) return own->count;
    return 1 << chunk->levels[node] < left ? 1 << chunk->levels[node] : left;
}

// True unless the node is part of another one.
static bool is_head(const merge *m, int k)
{
    return m->local->levels == NULL || m->local->levels[k] >= 0;
}

// True if the node has a value of replicas with examples.
static bool has_value(const merge *m, int k)
{
    return is_head(m, k) && m->local->weights[k].replicas > 0;
}

// Writes `n` floats of the sum at `at` of the chunk.
static void write_sum(const merge *m, const float *sum, int64_t at, int64_t n)
{
    if (m->narrow) {
        bel_rounding_pack(m->rounding, m->shard->step, sum,
                          m->to + bel_rounding_bytes(m->rounding, at), n);
    } else if (sum != (const float *)(const void *)m->to + at) {
        memcpy((float *)(void *)m->to + at, sum, (size_t)n * sizeof *sum);
    }
}

static void merge_sums(const merge *m)
{
    const bel_assignment *assignment = m->shard->config.assignment;
    float scratch[ROWS * PIECE];
    const bel_assignment_inputs inputs = {.values = m->local->inputs,
                                          .weights = m->local->weights,
                                          .rounding = m->rounding,
                                          .step = m->shard->step,
                                          .packed = m->local->packed,
                                          .levels = m->local->levels};
    for (int64_t at = 0; at < m->chunk->count; at += PIECE) {
        int64_t left = m->chunk->count - at, n = left < PIECE ? left : PIECE;
        for (int k = m->node; k < m->end; k++) {
            const char *sums = (const char *)m->local->nodes[k];
            bel_rounding its = m->local->packed[k] ? m->rounding : BEL_ROUNDING_NONE;
            m->local->inputs[k] = has_value(m, k) ? sums + bel_rounding_bytes(its, at) : NULL;
        }
        const float *sum = bel_assignment_sum_below(assignment, &inputs, m->level,
                                                    assignment->nodes[m->node].first, n, scratch);
        if (sum != NULL) write_sum(m, sum, at, n);
    }
}

// The first node with examples stands for all.
static void take_first(const merge *m)
{
    int k = m->node;
    while (k < m->end && !has_value(m, k))
        k++;
    if (k < m->end && (const char *)m->local->nodes[k] != m->to)
        memcpy(m->to, m->local->nodes[k], (size_t)m->chunk->count * sizeof(float));
}

// Copies the elements of a node's replicas that are in the segment. A node without examples keeps
// their values.
static void take_own(const merge *m, const bel_segment *segment, int k)
{
    const bel_layout_variable *variable = &m->shard->config.layout->variables[segment->variable];
    int first = m->shard->config.assignment->nodes[k].first;
    int64_t from = bel_layout_own_first(variable, first);
    int64_t end = bel_layout_own_first(variable, first + bel_shard_span(m->shard, m->local, k));
    if (from < segment->first) from = segment->first;
    if (end > segment->first + segment->count) end = segment->first + segment->count;
    if (from >= end) return;
    int64_t at = variable->offset + from - m->chunk->offset;
    const float *values = bel_space_of_chunk(m->shard->config.space, m->local->chunk);
    const float *source = has_value(m, k) ? m->local->nodes[k] : values + m->chunk->offset;
    float *to = (float *)(void *)m->to + at;
    if (source + at != to) memcpy(to, source + at, (size_t)(end - from) * sizeof *to);
}

static void take_replicas(const merge *m)
{
    for (int s = 0; s < m->chunk->segment_count; s++) {
        const bel_segment *segment =
            &m->shard->config.layout->segments[m->chunk->first_segment + s];
        for (int k = m->node; k < m->end; k++)
            if (is_head(m, k)) take_own(m, segment, k);
    }
}

void bel_shard_merge_into(bel_shard *shard, int index, int node, int level, void *to, bool packs)
{
    const bel_assignment *assignment = shard->config.assignment;
    bel_shard_chunk *local = &shard->chunks[index];
    const bel_chunk *chunk = &shard->config.layout->chunks[local->chunk];
    merge m = {.shard = shard,
               .local = local,
               .chunk = chunk,
               .node = node,
               .end = node,
               .level = level,
               .to = to,
               .rounding = bel_shard_rounding(shard, local->chunk)};
    m.narrow = packs && m.rounding != BEL_ROUNDING_NONE;
    int last = assignment->nodes[node].first + (1 << level);
    while (m.end < assignment->node_count && assignment->nodes[m.end].first < last)
        m.end++;
    if (chunk->kind == BEL_VARIABLE_STATE_FIRST) {
        take_first(&m);
    } else if (chunk->kind >= BEL_VARIABLE_REPLICA) {
        take_replicas(&m);
    } else {
        merge_sums(&m);
    }
}

void bel_shard_merge(bel_shard *shard, bel_shard_job job)
{
    bel_shard_merge_into(shard, job.local, job.node, job.level,
                         bel_shard_slot_of(shard, job.local, job.node), true);
}
