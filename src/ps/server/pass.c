// Arithmetic of a chunk: sum over the tree, scale, clip, update, in pieces that stay in the L1
// cache. Chunks are independent of each other. No function here takes a lock: a job is queued when
// all its inputs are complete, and the step does not end before its jobs have finished. The tree,
// the grains and the index fix the order of additions, independent of threads and timing.
//
// With two passes the reports may be gone in the second one, so the first does all work that needs
// them (state variables, the count of replicas). The buffers are swapped last.
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/stream.h"
#include "ps/layout/norms.h"
#include "ps/server/shard_inner.h"

enum { PIECE = BEL_SHARD_PIECE, BLOCK = 128 };
_Static_assert(BLOCK % BEL_LAYOUT_ALIGN == 0 && PIECE % BLOCK == 0,
               "rounding takes groups of 16 elements, and stores past the caches 16 bytes");

// Returns `n` elements at `at` of the chunk's sum, which is there already.
static const float *summed_piece(const bel_shard *shard, const bel_shard_chunk *chunk, int64_t at,
                                 int64_t n)
{
    bel_rounding rounding = bel_shard_rounding(shard, chunk->chunk);
    const char *sum = (const char *)chunk->sum + bel_rounding_bytes(rounding, at);
    if (rounding == BEL_ROUNDING_NONE) return (const float *)(const void *)sum;
    bel_rounding_unpack(rounding, sum, chunk->scratch, n);
    return chunk->scratch;
}

// The sum of `n` elements at `offset` of the space over all replicas.
static bel_addends addends_of_piece(const bel_shard *shard, const bel_shard_chunk *chunk,
                                    int64_t offset, int64_t n)
{
    const bel_assignment *assignment = shard->config.assignment;
    int64_t start = shard->config.layout->chunks[chunk->chunk].offset;
    bel_rounding rounding = bel_shard_rounding(shard, chunk->chunk);
    if (chunk->sum != NULL)
        return (bel_addends){summed_piece(shard, chunk, offset - start, n), NULL};
    for (int k = 0; k < assignment->node_count; k++) {
        const char *sums = (const char *)chunk->taken[k];
        chunk->inputs[k] = NULL;
        if (sums == NULL) continue; // its report may arrive now, and then `packed` is written
        bel_rounding its = chunk->packed[k] ? rounding : BEL_ROUNDING_NONE;
        chunk->inputs[k] = sums + bel_rounding_bytes(its, offset - start);
    }
    const bel_assignment_inputs inputs = {.values = chunk->inputs,
                                          .weights = chunk->weights,
                                          .rounding = rounding,
                                          .step = shard->step,
                                          .packed = chunk->packed,
                                          .levels = chunk->levels};
    return bel_assignment_addends(assignment, &inputs, n, chunk->scratch);
}

typedef struct pass {
    bel_shard *shard;
    const bel_shard_chunk *chunk;
    float *gradient; // one piece long: a sum, or the scaled one
    float *before;   // the same: old values
    const float *values;
    float *new_values;
    float *directions; // between the two passes, if a rule needs a norm
    float scale;       // 1 / replicas that count; 0: no replica has examples, and nothing changes
    float of_gradient; // factor of a gradient's sum: `scale`, or 1
    bool streams;      // new values go past the caches
    int layer;         // layer of slots of the segment in work
} pass;

// Finds a rule's slots of the elements from `offset` on: slots are laid out as the space.
static void find_slots(const pass *p, const bel_rule *rule, int64_t offset,
                       float *slots[BEL_RULE_MAX_SLOTS])
{
    for (int k = 0; k < rule->slot_count; k++)
        slots[k] = p->shard->memory.slots[p->layer][k] + offset;
}

// The place of the differences of the elements from `offset` on; NULL: no worker needs them.
static void *differences_at(const bel_shard *shard, int64_t offset)
{
    char *differences = shard->memory.differences;
    return differences == NULL
               ? NULL
               : differences + bel_rounding_bytes(shard->config.settings.rounding, offset);
}

// Applies the rule, from the current buffer to the other one, and updates the moving average. The
// gradient is gradient.left times `factor`, or the sum of both, scaled and clipped.
static void update_block(pass *p, const bel_rule_group *group, int64_t offset, int64_t n,
                         bel_addends gradient, float factor, float *new_values)
{
    bel_shard *shard = p->shard;
    float *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    find_slots(p, group->rule, offset, slots);
    bel_rounding rounding = bel_shard_rounding(shard, p->chunk->chunk);
    bool rounds = rounding != BEL_ROUNDING_NONE;
    if (rounds) memcpy(p->before, p->values + offset, (size_t)n * sizeof(float));
    if (gradient.right != NULL) {
        bel_rule_apply_sum(&group->numbers, gradient.left, gradient.right, factor,
                           p->values + offset, new_values, slots, n);
    } else {
        bel_rule_apply(&group->numbers, gradient.left, factor, p->values + offset, new_values,
                       slots, n);
    }
    if (rounds)
        bel_rounding_differ(rounding, shard->step, p->before, new_values,
                            differences_at(shard, offset), n);
    if (shard->memory.averages != NULL) {
        bel_rule_average(new_values, shard->rules.average_rest, shard->memory.averages + offset, n);
    }
}

// New values that go past the caches are computed block by block: blocks are so short that the
// processor reads the next one while it writes.
static void update_piece(pass *p, const bel_rule_group *group, int64_t offset, int64_t n,
                         bel_addends gradient, float factor)
{
    if (!p->streams) {
        update_block(p, group, offset, n, gradient, factor, p->new_values + offset);
        return;
    }
    float block[BLOCK];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t left = n - at, count = left < BLOCK ? left : BLOCK;
        update_block(p, group, offset + at, count, gradient, factor, block);
        bel_stream_floats(p->new_values + offset + at, block, count);
        gradient.left += count;
        if (gradient.right != NULL) gradient.right += count;
    }
}

// The first pass of two: computes the direction, the input of norms.
static void direct_piece(pass *p, const bel_rule_group *group, int64_t offset, int64_t n,
                         const float *sum)
{
    float *direction = p->directions + offset, *slots[BEL_RULE_MAX_SLOTS] = {NULL};
    bel_rule_scale(&group->numbers, sum, p->of_gradient, direction, n);
    if (!group->rule->prepares) return;
    find_slots(p, group->rule, offset, slots);
    bel_rule_prepare(&group->numbers, direction, p->values + offset, direction, slots, n);
}

// In a step without examples, or of a function that does not update the elements, keeps values and
// slots. The first of two passes has nothing to do.
static void keep_piece(pass *p, int64_t offset, int64_t n)
{
    void *differences = differences_at(p->shard, offset);
    if (differences != NULL)
        bel_rounding_differ_nothing(p->shard->config.settings.rounding, differences, n);
    if (p->new_values != p->values)
        memcpy(p->new_values + offset, p->values + offset, (size_t)n * sizeof(float));
}

// Nodes are in the order of replicas.
static void first_piece(pass *p, int64_t offset, int64_t n)
{
    int64_t start = p->shard->config.layout->chunks[p->chunk->chunk].offset;
    int node = 0;
    while (p->chunk->taken[node] == NULL)
        node++;
    const float *first = p->chunk->sum != NULL ? p->chunk->sum : p->chunk->taken[node];
    memcpy(p->new_values + offset, first + (offset - start), (size_t)n * sizeof(float));
}

// Each node has those of the `n` elements from `first` of the variable that belong to its replicas;
// the other elements stay unchanged.
static void replicas_piece(pass *p, const bel_layout_variable *variable, int64_t first, int64_t n)
{
    const bel_assignment *assignment = p->shard->config.assignment;
    int64_t start = p->shard->config.layout->chunks[p->chunk->chunk].offset;
    if (p->chunk->sum != NULL) { // with the kept values of replicas without examples
        const float *values = (const float *)p->chunk->sum + (variable->offset + first - start);
        memcpy(p->new_values + variable->offset + first, values, (size_t)n * sizeof(float));
        return;
    }
    keep_piece(p, variable->offset + first, n);
    for (int k = 0; k < assignment->node_count; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        int64_t from = bel_layout_own_first(variable, node->first);
        int64_t end =
            bel_layout_own_first(variable, node->first + bel_shard_span(p->shard, p->chunk, k));
        if (from < first) from = first;
        if (end > first + n) end = first + n;
        if (p->chunk->taken[k] == NULL || from >= end) continue;
        int64_t offset = variable->offset + from;
        memcpy(p->new_values + offset, p->chunk->taken[k] + (offset - start),
               (size_t)(end - from) * sizeof(float));
    }
}

// Variables without a rule: states, and after local steps the values of replicas.
static void state_piece(pass *p, const bel_segment *segment, int64_t at, int64_t n)
{
    const bel_layout_variable *variable = &p->shard->config.layout->variables[segment->variable];
    int64_t offset = segment->offset + at;
    if (variable->own_elements > 0) {
        replicas_piece(p, variable, segment->first + at, n);
        return;
    }
    if (variable->kind == BEL_VARIABLE_STATE_FIRST) {
        first_piece(p, offset, n);
        return;
    }
    bool adds = variable->kind == BEL_VARIABLE_STATE_SUM;
    bel_addends addends = addends_of_piece(p->shard, p->chunk, offset, n);
    const float *sum = bel_addends_sum(addends, n, p->gradient);
    float *new_values = p->new_values + offset, *averages = p->shard->memory.averages;
    for (int64_t i = 0; i < n; i++)
        new_values[i] = adds ? p->values[offset + i] + sum[i] : sum[i] * p->scale;
    if (variable->kind == BEL_VARIABLE_TRAINABLE && averages != NULL)
        bel_rule_average(new_values, p->shard->rules.average_rest, averages + offset, n);
}

// Runs a job on `n` elements from `at` of a segment, which all belong to one variable.
static void run_piece(pass *p, bel_job_kind job, const bel_segment *segment, int64_t at, int64_t n)
{
    bel_shard *shard = p->shard;
    int64_t offset = segment->offset + at;
    if (p->scale == 0) {
        if (job != BEL_JOB_SUM) keep_piece(p, offset, n);
        return;
    }
    if (!bel_shard_updates(
            shard, bel_shard_function(shard),
            segment->variable)) { // with the sums, as reports may be gone at the update
        if (job != BEL_JOB_UPDATE) state_piece(p, segment, at, n);
        return;
    }
    const bel_rule_group *group = bel_shard_group_of(shard, segment->variable);
    const bel_rule_step *numbers = &group->numbers;
    if (job == BEL_JOB_UPDATE) {
        update_piece(p, group, offset, n, (bel_addends){p->directions + offset, NULL},
                     shard->memory.factors[segment->variable]);
        return;
    }
    bel_addends sum = addends_of_piece(shard, p->chunk, offset, n);
    if (job == BEL_JOB_SUM) {
        direct_piece(p, group, offset, n, bel_addends_sum(sum, n, p->gradient));
    } else if (sum.right != NULL || (p->of_gradient == 1.0f && numbers->clip_value == 0.0f)) {
        update_piece(p, group, offset, n, sum, p->of_gradient);
    } else {
        bel_rule_scale(numbers, sum.left, p->of_gradient, p->gradient, n);
        update_piece(p, group, offset, n, (bel_addends){p->gradient, NULL}, 1.0f);
    }
}

// If a rule has trust ratios, the squares of values follow those of directions.
static void take_squares(const pass *p, const bel_segment *segment)
{
    bel_shard *shard = p->shard;
    const bel_layout *layout = shard->config.layout;
    bel_norms_take(layout, segment, p->scale != 0 ? p->directions : NULL,
                   shard->memory.grain_squares);
    if (!shard->rules.trusts) return;
    bel_norms_take(layout, segment, p->values, shard->memory.grain_squares + layout->grain_count);
}

void bel_shard_copy_to_snapshot(bel_shard *shard, const bel_chunk *chunk, const float *values)
{
    size_t bytes = (size_t)chunk->count * sizeof(float);
    for (int layer = 0; layer < BEL_MAX_STEP_FUNCTIONS; layer++) {
        for (int k = 0; k < shard->rules.slot_counts[layer]; k++) {
            memcpy(shard->memory.snapshot_slots[layer][k] + chunk->offset,
                   shard->memory.slots[layer][k] + chunk->offset, bytes);
        }
    }
    bel_shard_snapshot_values(shard, chunk, values);
}

void bel_shard_snapshot_values(bel_shard *shard, const bel_chunk *chunk, const float *values)
{
    size_t bytes = (size_t)chunk->count * sizeof(float);
    memcpy(shard->config.snapshot + chunk->offset, values + chunk->offset, bytes);
    if (shard->memory.averages == NULL) return;
    // Elements without an average keep their value, so evaluation gets a complete array.
    bool averaged = chunk->kind == BEL_VARIABLE_TRAINABLE;
    memcpy(shard->config.snapshot_averages + chunk->offset,
           (averaged ? shard->memory.averages : values) + chunk->offset, bytes);
}

// Runs piece by piece; a segment's squares are taken once its sums are complete. The last pass
// changes slots in place: if they are kept, it leaves out the pieces that a predecessor has
// finished. Returns false if it has left out some.
static bool run_segments(pass *p, bel_job_kind kind, const bel_chunk *chunk)
{
    const bel_layout *layout = p->shard->config.layout;
    bel_kept *kept = kind != BEL_JOB_SUM ? p->shard->config.kept : NULL;
    int local = (int)(p->chunk - p->shard->chunks);
    int64_t piece = 0, done = kept != NULL ? bel_kept_open_chunk(kept, local, p->shard->step) : 0;
    for (int s = 0; s < chunk->segment_count; s++) {
        const bel_segment *segment = &layout->segments[chunk->first_segment + s];
        p->layer = bel_shard_layer(p->shard, bel_shard_function(p->shard), segment->variable);
        for (int64_t at = 0; at < segment->count; at += PIECE, piece++) {
            int64_t left = segment->count - at, n = left < PIECE ? left : PIECE;
            if (piece < done) continue;
            if (kept != NULL) bel_kept_copy_piece(kept, local, piece, segment->offset + at, n);
            run_piece(p, kind, segment, at, n);
            if (kept == NULL) continue;
            bel_fault_point("shard_kept_piece"); // as if in the middle of it
            bel_kept_end_piece(kept, local, piece);
        }
        if (kind == BEL_JOB_SUM && chunk->kind == BEL_VARIABLE_TRAINABLE) {
            take_squares(p, segment);
        }
    }
    return done == 0;
}

// Selects the reports that the pass sums: those of counting workers with examples.
static void take_reports(const bel_shard *shard, bel_shard_chunk *chunk)
{
    chunk->replicas = 0;
    if (!bel_shard_changes(shard, (int)(chunk - shard->chunks))) return; // no worker reports it
    for (int k = 0; k < shard->config.assignment->node_count; k++) {
        // Reports of other workers may still arrive meanwhile, so they are not read.
        bool taken = bel_shard_counts(shard, k) && chunk->weights[k].replicas > 0;
        chunk->taken[k] = taken ? chunk->nodes[k] : NULL;
        if (taken) chunk->replicas += chunk->weights[k].replicas;
    }
}

// The buffer index changes with a release store, after the chunk's values are written, for readers
// without the shard's lock. Only the one job that passes a chunk changes it.
static void pass_chunk(bel_shard *shard, bel_shard_job job)
{
    bel_shard_chunk *local = &shard->chunks[job.local];
    const bel_chunk *chunk = &shard->config.layout->chunks[local->chunk];
    bel_space *space = shard->config.space;
    int current = atomic_load(&space->current[local->chunk]);
    const bel_assignment *assignment = shard->config.assignment;

    bool whole = false,
         made = local->version > shard->step && job.kind != BEL_JOB_SUM; // by an earlier pass
    if (chunk->kind != BEL_VARIABLE_FROZEN && !made) {
        // Reports may be gone at the update, so the selection of the first pass stays.
        if (job.kind != BEL_JOB_UPDATE) take_reports(shard, local);
        pass p = {.shard = shard,
                  .chunk = local,
                  .gradient = local->scratch + (assignment->depth + 1) * PIECE,
                  .before = local->scratch + (assignment->depth + 2) * PIECE,
                  .values = space->buffers[current],
                  .new_values = space->buffers[1 - current],
                  .scale = local->replicas > 0 ? (float)(1.0 / (double)local->replicas) : 0};
        p.directions = shard->memory.sums != NULL ? shard->memory.sums : p.new_values;
        p.of_gradient = shard->config.settings.sums ? 1 : p.scale;
        p.streams = shard->streams && p.new_values != p.values;
        whole = run_segments(&p, job.kind, chunk);
        if (p.streams) bel_stream_fence();
    }
    if (job.kind == BEL_JOB_SUM) return;
    local->version = shard->step + 1;
    local->differs = whole && shard->memory.differences != NULL &&
                     bel_shard_rounding(shard, local->chunk) != BEL_ROUNDING_NONE;
    if (shard->config.kept != NULL)
        bel_kept_set_version(shard->config.kept, job.local, shard->step + 1);
    if (chunk->kind != BEL_VARIABLE_FROZEN) {
        current = 1 - current;
        atomic_store_explicit(&space->current[local->chunk], (unsigned char)current,
                              memory_order_release);
    }
    if ((shard->decision.now & BEL_DECIDE_SAVE) != 0) {
        bel_shard_copy_to_snapshot(shard, chunk, space->buffers[current]);
    }
}

// Runs without the lock, on the thread that took the job.
bel_status *bel_shard_run_job(bel_shard *shard, bel_shard_job job, bel_team *team)
{
    switch (job.kind) {
    case BEL_JOB_PASS:
    case BEL_JOB_SUM:
    case BEL_JOB_UPDATE:
        if (bel_shard_relays(shard))
            return job.kind == BEL_JOB_SUM ? bel_shard_sum_up(shard, job.local) : NULL;
        if (job.local == BEL_ALL_CHUNKS)
            return bel_status_wrap(bel_shard_pass_devices(shard, job.kind), __FILE__, __LINE__,
                                   "shard %d, step %lld", shard->config.shard,
                                   (long long)shard->step);
        pass_chunk(shard, job);
        break;
    case BEL_JOB_COPY: bel_shard_copy_values(shard, job.local, job.worker); break;
    case BEL_JOB_ROWS: return bel_shard_answer_rows(shard, job.local, job.worker);
    case BEL_JOB_TABLE: return bel_shard_update_table(shard, job.local, team);
    case BEL_JOB_MERGE: bel_shard_merge(shard, job); break;
    case BEL_JOB_MIRROR: bel_shard_sum_for_mirror(shard, job.local); break;
    }
    return NULL;
}

// BELFRY_FAULT=chunk_order: adds chunk by chunk, shard after shard, in f32, as a careless
// implementation would.
static double chunk_order_total(const bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    float total = 0;
    for (int owner = 0; owner < layout->shard_count; owner++) {
        float part = 0;
        for (int c = 0; c < layout->chunk_count; c++) {
            const bel_chunk *chunk = &layout->chunks[c];
            for (int s = 0; chunk->shard == owner && s < chunk->segment_count; s++) {
                const bel_segment *segment = &layout->segments[chunk->first_segment + s];
                int64_t grain =
                    layout->variables[segment->variable].first_grain + segment->first / BEL_GRAIN;
                for (int64_t g = 0; g < bel_grains_of(segment->count); g++)
                    part += (float)shard->memory.grain_squares[grain + g];
            }
        }
        total += part;
    }
    return total;
}

static bel_norms_use use_of(const void *context, int v)
{
    const bel_shard *shard = context;
    const bel_rule_group *group = bel_shard_group_of(shard, v);
    return (bel_norms_use){.updates = bel_shard_updates(shard, bel_shard_function(shard), v),
                           .clip_norm = bel_rule_clip_norm(group->optimizer),
                           .trust = group->rule->trusts ? &group->numbers : NULL};
}

void bel_shard_combine_norms(bel_shard *shard)
{
    const bel_layout *layout = shard->config.layout;
    int function = bel_shard_function(shard);
    double limit = bel_rule_clip_global_norm(&shard->config.settings.optimizers[function].main);
    for (int k = 1; k < layout->shard_count; k++)
        bel_norms_unpack(layout, k, bel_shard_norm_planes(shard), shard->norms.squares[k],
                         shard->memory.grain_squares);
    double disordered = bel_fault_is(BEL_FAULT_CHUNK_ORDER) ? chunk_order_total(shard) : 0;
    double all = bel_norms_combine(layout, shard->memory.grain_squares, use_of, shard,
                                   shard->memory.factors);
    if (bel_fault_is(BEL_FAULT_CHUNK_ORDER)) all = disordered;
    bel_norms_limit(layout, all, limit, shard->memory.factors);
}
