// Reports of the towers' results. Elements are counted down chunk by chunk, by any thread of any
// tower; the thread that finishes a chunk's last element sends its sum to the chunk's shard. The
// countdown is acquire and release, so that the thread that brings it to zero sees the writes of
// all others. Sums are computed in place, in the range of the node's first replica, and stay
// unchanged until the next version has arrived: lanes do not copy them.
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"
#include "worker/worker_inner.h"

// Number of elements of a variable, from `first` on, that are in a chunk.
int64_t bel_worker_overlap(const bel_chunk *chunk, const bel_layout_variable *variable,
                           int64_t first, int64_t count)
{
    int64_t begin = variable->offset + first, end = begin + count;
    if (begin < chunk->offset) begin = chunk->offset;
    if (end > chunk->offset + chunk->count) end = chunk->offset + chunk->count;
    return end > begin ? end - begin : 0;
}

bel_trace_event bel_worker_event(const bel_worker *worker, bel_trace_span span, int part)
{
    return (bel_trace_event){.role = BEL_TRACE_WORKER,
                             .index = (int16_t)worker->config.worker,
                             .step = worker->step,
                             .part = part,
                             .span = (uint8_t)span};
}

// The first replica of the node with examples stands for all.
static bel_weight take_first(const bel_worker *worker, const bel_chunk *chunk,
                             const bel_assignment_node *node)
{
    float *const *ranges = worker->config.ranges + (node->first - worker->first_replica);
    const bel_weight *weights = worker->plain_weights + (node->first - worker->first_replica);
    int from = 0;
    while (from < node->count && weights[from].replicas == 0)
        from++;
    if (from == node->count) return (bel_weight){0};
    if (from > 0)
        memcpy(ranges[0] + chunk->offset, ranges[from] + chunk->offset,
               (size_t)chunk->count * sizeof(float));
    return weights[from];
}

// Copies replica `replica`'s separate elements in the segment to `to`, a range. Elements that it
// has not assigned in this step come unchanged from `values`.
static void take_own(const bel_worker *worker, const bel_segment *segment, int replica,
                     const float *values, float *to)
{
    const bel_worker_config *config = &worker->config;
    const bel_layout_variable *variable = &config->layout->variables[segment->variable];
    int r = replica - worker->first_replica;
    int64_t from = bel_layout_own_first(variable, replica), end = from + variable->own_elements;
    if (from < segment->first) from = segment->first;
    if (end > segment->first + segment->count) end = segment->first + segment->count;
    if (from >= end) return;
    bool assigned = worker->plain_weights[r].replicas > 0 &&
                    worker->function->model->reports[segment->variable] != NULL;
    const float *own = (assigned ? config->ranges[r] : values) + variable->offset;
    to += variable->offset;
    if (own != to) memcpy(to + from, own + from, (size_t)(end - from) * sizeof(float));
}

// Puts values of replicas side by side. Kept values are read from the buffer that is current for
// this chunk: it stays current until all workers have reported the chunk, when other chunks of its
// variables may already be one version ahead.
static bel_weight take_replicas(const bel_worker *worker, const bel_chunk *chunk,
                                const bel_assignment_node *node)
{
    const bel_layout *layout = worker->config.layout;
    const float *values = bel_space_of_chunk(worker->config.space, (int)(chunk - layout->chunks));
    float *range = worker->config.ranges[node->first - worker->first_replica];
    bel_weight all = {0};
    for (int j = 0; j < node->count; j++) {
        const bel_weight *own = &worker->plain_weights[node->first + j - worker->first_replica];
        all.replicas += own->replicas;
        all.examples += own->examples;
        for (int s = 0; s < chunk->segment_count; s++)
            take_own(worker, &layout->segments[chunk->first_segment + s], node->first + j, values,
                     range);
    }
    return all;
}

// A plain sum over replicas is not converted to a mean over examples.
static bel_weight report_combine(const bel_worker *worker, const bel_chunk *chunk,
                                 const bel_assignment_node *node)
{
    int first = node->first - worker->first_replica;
    if (chunk->kind == BEL_VARIABLE_STATE_FIRST) return take_first(worker, chunk, node);
    if (chunk->kind >= BEL_VARIABLE_REPLICA) return take_replicas(worker, chunk, node);
    bool plain = chunk->kind == BEL_VARIABLE_STATE_SUM;
    const bel_weight *weights = (plain ? worker->plain_weights : worker->weights) + first;
    bel_rounding rounding = worker->config.rounding;
    if (rounding != BEL_ROUNDING_NONE && chunk->kind == BEL_VARIABLE_TRAINABLE) {
        return bel_assignment_sum_node_rounded(node, rounding, worker->step,
                                               worker->config.ranges + first, weights,
                                               chunk->offset, chunk->count);
    }
    return bel_assignment_sum_node(node, worker->config.ranges + first, weights, chunk->offset,
                                   chunk->count);
}

// Combines the values of the replicas of each of this worker's nodes, for one chunk, and sends
// them. All replicas have their batches by then, so their weights are known.
bel_status *bel_worker_report_chunk(bel_worker *worker, int c)
{
    const bel_assignment *assignment = worker->config.assignment;
    const bel_chunk *chunk = &worker->config.layout->chunks[c];
    int w = worker->config.worker;
    int64_t begun = bel_trace_begin();
    for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        const float *range = worker->config.ranges[node->first - worker->first_replica];
        bel_weight weight = report_combine(worker, chunk, node);
        BEL_TRY(bel_client_report(worker->config.client, worker->step, worker->decision, c, k,
                                  weight, range + chunk->offset));
        bel_fault_point("worker_reported");
    }
    bel_trace_end(bel_worker_event(worker, BEL_TRACE_REPORT, c), begun);
    return NULL;
}

// A variable may be in several consecutive chunks: each is counted down by its part. Values of
// replicas are not counted: see report_rest.
bel_status *bel_worker_finish(bel_worker *worker, int variable, int64_t first, int64_t count)
{
    const bel_layout *layout = worker->config.layout;
    const bel_layout_variable *v = &layout->variables[variable];
    int64_t end = v->offset + first + count;
    if (v->own_elements > 0) return NULL;
    for (int c = v->first_chunk; c < layout->chunk_count && layout->chunks[c].offset < end; c++) {
        long long done = bel_worker_overlap(&layout->chunks[c], v, first, count);
        if (done == 0) continue;
        if (atomic_fetch_sub_explicit(&worker->chunk_left[c], done, memory_order_acq_rel) != done)
            continue;
        int64_t begun = bel_clock_ns();
        BEL_TRY(bel_worker_report_chunk(worker, c));
        atomic_fetch_add_explicit(&worker->pushing_ns, bel_clock_ns() - begun,
                                  memory_order_relaxed);
    }
    return NULL;
}

int64_t bel_worker_block_end(const bel_worker *worker)
{
    return bel_input_block_count(worker->config.input, !worker->config.whole_steps);
}
