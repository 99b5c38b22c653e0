// Common parts of collectives within and between workers: the replicas' values, room for copies,
// and the error if a value is missing.
#include "worker/meeting.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"

const bel_replica_run *bel_meeting_run(const bel_worker *worker, int replica)
{
    return bel_tower_run_of(&worker->towers[replica % worker->config.tower_count], replica);
}

void bel_meeting_turn_to(bel_meeting *m, int exchange, int part)
{
    for (int r = 0; r < m->worker->replica_count; r++)
        if (m->present[r])
            m->parts[r] =
                bel_instance_exchange_part(bel_meeting_run(m->worker, r)->instance, exchange, part);
    m->what = m->parts[m->first].what;
}

void bel_meeting_make_room(bel_meeting *m, size_t bytes)
{
    bel_exchange *x = &m->worker->exchange;
    if (x->room_bytes >= bytes) return;
    x->room_bytes = bytes;
    x->room = bel_xrealloc(x->room, bytes);
}

void bel_meeting_copy_values(bel_meeting *m, bool beside)
{
    bel_exchange *x = &m->worker->exchange;
    size_t size = bel_tensor_bytes(&m->parts[m->first].input);
    if (beside) bel_meeting_make_room(m, size * (size_t)m->worker->replica_count);
    for (int r = 0; r < m->worker->replica_count; r++) {
        x->slots[r] = NULL;
        if (!m->present[r]) continue;
        x->slots[r] = beside ? x->room + (size_t)r * size : m->parts[r].output.data;
        x->weights[r] = bel_meeting_weight(m, r);
        if (size > 0) memcpy(x->slots[r], m->parts[r].input.data, size);
    }
}

void bel_meeting_give_scaled(const bel_combining *c, const void *from, bel_weight its,
                             bel_weight own, char *to)
{
    const bel_combining sum = {BEL_REDUCE_SUM, c->dtype, c->elements};
    bel_combine_give(&sum, from, (bel_weight){1, its.examples}, (bel_weight){1, own.examples}, to);
}

bel_status *bel_meeting_lacks(const bel_meeting *m, int replica)
{
    const bel_worker *worker = m->worker;
    char place[BEL_COLLECTIVE_TEXT], who[32] = "a replica";
    if (replica >= 0) (void)bel_snprintf(who, sizeof who, "replica %d", replica);
    return BEL_ERR(BEL_FAILED_PRECONDITION,
                   "step %lld: %s: %s has no examples in this step, but its value is needed",
                   (long long)worker->step,
                   bel_graph_collective_text(worker->config.models->graph, m->what->index, place),
                   who);
}
