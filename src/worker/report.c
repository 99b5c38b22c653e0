// What a tower has finished becomes reports: elements are counted down chunk by chunk, by any
// thread of any tower, and the thread that finishes the last of a chunk sends its sum to the
// chunk's shard. The countdown is acquire and release, so that the thread that brings it to zero
// sees what all the others have written. The sum is made in place, in the range of the node's first
// replica, and stays as it is until the next version has come: lanes do not copy it.
#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"
#include "worker/worker_inner.h"

// How many elements of a variable, from `first` on, lie in a chunk.
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

// Sums each of this worker's nodes over its replicas, for one chunk, and sends them. All replicas
// have their batches by then, so their weights are known. What is a plain sum over replicas is not
// brought to a mean of examples.
bel_status *bel_worker_report_chunk(bel_worker *worker, int c)
{
    const bel_assignment *assignment = worker->config.assignment;
    const bel_chunk *chunk = &worker->config.layout->chunks[c];
    bool plain = chunk->kind == BEL_VARIABLE_STATE_SUM;
    int w = worker->config.worker;
    int64_t begun = bel_trace_begin();
    for (int k = assignment->first_node[w]; k < assignment->first_node[w + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        int first = node->first - worker->first_replica;
        float *const *ranges = worker->config.ranges + first;
        const bel_weight *weights = (plain ? worker->plain_weights : worker->weights) + first;
        bel_weight weight =
            bel_assignment_sum_node(node, ranges, weights, chunk->offset, chunk->count);
        BEL_TRY(bel_client_report(worker->config.client, worker->step, worker->decision, c, k,
                                  weight, ranges[0] + chunk->offset));
        bel_fault_point("worker_reported");
    }
    bel_trace_end(bel_worker_event(worker, BEL_TRACE_REPORT, c), begun);
    return NULL;
}

// A variable may lie in several chunks, one after the other: each is counted down by its own part.
bel_status *bel_worker_finish(bel_worker *worker, int variable, int64_t first, int64_t count)
{
    const bel_layout *layout = worker->config.layout;
    const bel_layout_variable *v = &layout->variables[variable];
    int64_t end = v->offset + first + count;
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
