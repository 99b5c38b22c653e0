// An exchange among a worker's replicas, on the worker's thread, while no tower runs. What a
// replica gives and what it is given lie in its instance (runtime/program.h). A replica without
// examples has no instance and is passed over.
//
// A reduction is made in place where the results go: each replica's value is copied there, the tree
// combines those copies, and all are given the result. Only a part of ReduceScatter, of which there
// is one copy for each replica that gives, needs room beside.
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"
#include "ps/layout/combine.h"
#include "worker/worker_inner.h"

// One collective of the exchange, for all replicas.
typedef struct meeting {
    bel_worker *worker;
    const bel_collective *what;
    bel_exchange_part *parts; // by replica
    bool *present;            // by replica: it has examples
    int first;                // the first that is present
} meeting;

// Everybody must give as much as the first does; what only some replicas have cannot be given.
static bel_status *check(const meeting *m)
{
    const bel_worker *worker = m->worker;
    char place[BEL_COLLECTIVE_TEXT], one[BEL_SHAPE_TEXT], other[BEL_SHAPE_TEXT];
    const bel_shape *shape = &m->parts[m->first].input.shape;
    int missing = -1;
    for (int r = 0; r < worker->replica_count; r++) {
        if (!m->present[r]) {
            bool needed = m->what->needs_all ||
                          (m->what->op == BEL_OP_BROADCAST_FROM && m->what->source == r);
            if (needed) missing = r;
            continue;
        }
        if (bel_shape_equal(&m->parts[r].input.shape, shape)) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "step %lld: %s: replica %d has %s and replica %d has %s: all must have the "
            "same shape",
            (long long)worker->step,
            bel_graph_collective_text(worker->config.model->graph, m->what->index, place),
            worker->first_replica + m->first, bel_shape_text(shape, one), worker->first_replica + r,
            bel_shape_text(&m->parts[r].input.shape, other));
    }
    if (missing < 0) return NULL;
    return BEL_ERR(
        BEL_FAILED_PRECONDITION,
        "step %lld: %s: replica %d has no examples in this step, but its value is needed",
        (long long)worker->step,
        bel_graph_collective_text(worker->config.model->graph, m->what->index, place),
        worker->first_replica + missing);
}

// How replica r counts.
static bel_weight weight_of(const meeting *m, int r)
{
    return m->what->weighted ? m->worker->weights[r] : (bel_weight){1, 1};
}

static bel_combining combining_of(const meeting *m, int64_t elements)
{
    return (bel_combining){m->what->reduce, m->parts[m->first].input.dtype, elements};
}

static void all_reduce(meeting *m)
{
    bel_exchange *x = &m->worker->exchange;
    const bel_tensor *like = &m->parts[m->first].input;
    const bel_combining c = combining_of(m, bel_shape_elements(&like->shape));
    size_t size = bel_tensor_bytes(like);
    bel_weight all;
    for (int r = 0; r < m->worker->replica_count; r++) {
        x->slots[r] = NULL;
        if (!m->present[r]) continue;
        x->slots[r] = m->parts[r].output.data;
        x->weights[r] = weight_of(m, r);
        if (size > 0) memcpy(x->slots[r], m->parts[r].input.data, size);
    }
    const void *sum = bel_combine(&c, x->slots, x->weights, m->worker->replica_count, &all);
    const void *owner = NULL; // of the sum's memory, which is given last
    for (int r = 0; r < m->worker->replica_count; r++) {
        if (!m->present[r]) continue;
        if (m->parts[r].output.data == sum) {
            owner = &m->parts[r];
        } else {
            bel_combine_give(&c, sum, all, weight_of(m, r), m->parts[r].output.data);
        }
    }
    const bel_exchange_part *last = owner;
    bel_combine_give(&c, sum, all, weight_of(m, (int)(last - m->parts)), last->output.data);
}

static void reduce_scatter(meeting *m)
{
    bel_exchange *x = &m->worker->exchange;
    int replicas = m->worker->replica_count;
    const bel_tensor *like = &m->parts[m->first].input;
    const bel_combining c = combining_of(m, bel_shape_elements(&like->shape) / replicas);
    size_t size = bel_tensor_bytes(like) / (size_t)replicas;
    if (x->room_bytes < size * (size_t)replicas) {
        x->room_bytes = size * (size_t)replicas;
        x->room = bel_xrealloc(x->room, x->room_bytes);
    }
    for (int part = 0; part < replicas; part++) {
        if (!m->present[part]) continue; // nobody wants it
        bel_weight all;
        for (int r = 0; r < replicas; r++) {
            x->slots[r] = NULL;
            if (!m->present[r]) continue;
            x->slots[r] = x->room + (size_t)r * size;
            x->weights[r] = weight_of(m, r);
            const char *from = m->parts[r].input.data;
            if (size > 0) memcpy(x->slots[r], from + (size_t)part * size, size);
        }
        const void *sum = bel_combine(&c, x->slots, x->weights, replicas, &all);
        bel_combine_give(&c, sum, all, weight_of(m, part), m->parts[part].output.data);
    }
}

// Replica r's copy of what replica s gives: as much as it counts for r.
static void copy_scaled(const meeting *m, int r, int s, char *to)
{
    const bel_tensor *from = &m->parts[s].input;
    const bel_weight all = {1, weight_of(m, s).examples};
    const bel_combining c = {BEL_REDUCE_SUM, from->dtype, bel_shape_elements(&from->shape)};
    bel_combine_give(&c, from->data, all, (bel_weight){1, weight_of(m, r).examples}, to);
}

static void all_gather(meeting *m)
{
    int replicas = m->worker->replica_count;
    size_t size = bel_tensor_bytes(&m->parts[m->first].input);
    for (int r = 0; r < replicas && size > 0; r++) {
        if (!m->present[r]) continue;
        char *to = m->parts[r].output.data;
        for (int s = 0; s < replicas; s++, to += size) {
            if (m->present[s]) {
                copy_scaled(m, r, s, to);
            } else {
                memset(to, 0, size);
            }
        }
    }
}

static void broadcast(meeting *m)
{
    const bel_tensor *from = &m->parts[m->what->source].input;
    size_t size = bel_tensor_bytes(from);
    for (int r = 0; r < m->worker->replica_count && size > 0; r++)
        if (m->present[r]) memcpy(m->parts[r].output.data, from->data, size);
}

static void make(meeting *m)
{
    if (m->what->op == BEL_OP_ALL_REDUCE) {
        all_reduce(m);
    } else if (m->what->op == BEL_OP_ALL_GATHER) {
        all_gather(m);
    } else if (m->what->op == BEL_OP_REDUCE_SCATTER) {
        reduce_scatter(m);
    } else {
        broadcast(m);
    }
}

// --- The exchange --------------------------------------------------------------------------------

static const bel_replica_run *run_of(const bel_worker *worker, int replica)
{
    return bel_tower_run_of(&worker->towers[replica % worker->config.tower_count], replica);
}

void bel_exchange_init(bel_exchange *exchange, int replica_count)
{
    size_t count = (size_t)replica_count;
    exchange->slots = bel_xcalloc(count, sizeof *exchange->slots);
    exchange->weights = bel_xcalloc(count, sizeof *exchange->weights);
    exchange->parts = bel_xcalloc(count, sizeof *exchange->parts);
    exchange->present = bel_xcalloc(count, sizeof *exchange->present);
}

void bel_exchange_deinit(bel_exchange *exchange)
{
    bel_free(exchange->slots);
    bel_free(exchange->weights);
    bel_free(exchange->parts);
    bel_free(exchange->present);
    bel_free(exchange->room);
}

bel_status *bel_worker_exchange(bel_worker *worker, int exchange)
{
    bel_exchange *x = &worker->exchange;
    meeting m = {.worker = worker, .parts = x->parts, .present = x->present, .first = -1};
    int64_t begun = bel_clock_ns();
    bel_fault_point("worker_exchanges");
    for (int r = 0; r < worker->replica_count; r++) {
        m.present[r] = run_of(worker, r)->batch != NULL;
        if (m.present[r] && m.first < 0) m.first = r;
    }
    int count =
        m.first < 0 ? 0 : bel_instance_exchange_parts(run_of(worker, m.first)->instance, exchange);
    for (int p = 0; p < count; p++) {
        for (int r = 0; r < worker->replica_count; r++)
            if (m.present[r])
                m.parts[r] = bel_instance_exchange_part(run_of(worker, r)->instance, exchange, p);
        m.what = m.parts[m.first].what;
        BEL_TRY_CTX(check(&m), "worker %d", worker->config.worker);
        make(&m);
    }
    int64_t done = bel_clock_ns();
    worker->times.exchange_ns += done - begun;
    bel_trace_add(bel_worker_event(worker, BEL_TRACE_EXCHANGE, exchange), begun, done);
    return NULL;
}
