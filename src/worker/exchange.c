// An exchange of a step, on the worker's thread, while no tower runs. A replica's inputs and
// results are in its instance (runtime/program.h). A replica without examples has no instance and
// is skipped.
#include "worker/meeting.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/trace.h"

void bel_exchange_init(bel_exchange *exchange, int replica_count)
{
    size_t count = (size_t)replica_count;
    exchange->slots = bel_xcalloc(count, sizeof *exchange->slots);
    exchange->weights = bel_xcalloc(count, sizeof *exchange->weights);
    exchange->parts = bel_xcalloc(count, sizeof *exchange->parts);
    exchange->present = bel_xcalloc(count, sizeof *exchange->present);
    exchange->given = bel_xcalloc(count, sizeof *exchange->given);
    exchange->values = bel_xcalloc(count, sizeof *exchange->values);
    exchange->pieces = bel_exchange_pieces_create();
}

void bel_exchange_deinit(bel_exchange *exchange)
{
    bel_free(exchange->slots);
    bel_free(exchange->weights);
    bel_free(exchange->parts);
    bel_free(exchange->present);
    bel_free(exchange->given);
    bel_free(exchange->values);
    bel_free(exchange->pieces);
    bel_free(exchange->room);
}

// All replicas must give values of the first one's shape. (Shard 0 compares other workers'.)
static bel_status *check_shapes(const bel_meeting *m)
{
    const bel_worker *worker = m->worker;
    char place[BEL_COLLECTIVE_TEXT], one[BEL_SHAPE_TEXT], other[BEL_SHAPE_TEXT];
    const bel_shape *shape = &m->parts[m->first].input.shape;
    for (int r = m->first + 1; r < worker->replica_count; r++) {
        if (!m->present[r] || bel_shape_equal(&m->parts[r].input.shape, shape)) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "step %lld: %s: replica %d has %s and replica %d has %s: all must have the same shape",
            (long long)worker->step,
            bel_graph_collective_text(worker->config.models->graph, m->what->index, place),
            worker->first_replica + m->first, bel_shape_text(shape, one), worker->first_replica + r,
            bel_shape_text(&m->parts[r].input.shape, other));
    }
    return NULL;
}

// If no replica has examples, this worker gives and receives nothing; it notifies the others once.
static bel_status *exchange_hold(bel_meeting *m, int exchange)
{
    bel_worker *worker = m->worker;
    const bel_worker_config *config = &worker->config;
    bool alone = config->ledger || config->assignment->replica_count == worker->replica_count;
    if (m->first < 0) {
        return alone || exchange > 0 ? NULL : bel_client_no_exchange(config->client, worker->step);
    }
    int count = bel_instance_exchange_parts(bel_meeting_run(worker, m->first)->instance, exchange);
    for (int p = 0; p < count; p++) {
        bel_meeting_turn_to(m, exchange, p);
        BEL_TRY(check_shapes(m));
        BEL_TRY(alone ? bel_meeting_hold_here(m) : bel_meeting_hold_with_others(m, exchange, p));
    }
    return alone ? NULL : bel_meeting_end_with_others(m, exchange);
}

bel_status *bel_worker_exchange(bel_worker *worker, int exchange)
{
    bel_exchange *x = &worker->exchange;
    bel_meeting m = {.worker = worker, .parts = x->parts, .present = x->present, .first = -1};
    int64_t begun = bel_clock_ns();
    bel_fault_point("worker_exchanges");
    for (int r = 0; r < worker->replica_count; r++) {
        m.present[r] = bel_meeting_run(worker, r)->batch != NULL;
        if (m.present[r] && m.first < 0) m.first = r;
    }
    atomic_store(&worker->shown_exchange, exchange);
    bel_status *status = exchange_hold(&m, exchange);
    atomic_store(&worker->shown_exchange, -1);
    BEL_TRY_CTX(status, "worker %d", worker->config.worker);
    int64_t done = bel_clock_ns();
    worker->times.exchange_ns += done - begun;
    bel_trace_add(bel_worker_event(worker, BEL_TRACE_EXCHANGE, exchange), begun, done);
    return NULL;
}
