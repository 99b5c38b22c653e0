// A collective among the replicas of one worker. A reduction is computed in place, in the results'
// memory: each replica's value is copied there, the tree combines the copies, and all replicas
// receive the result. Only a part of ReduceScatter, which has one copy for each contributing
// replica, needs extra room.
#include <string.h>

#include "worker/meeting.h"

static void all_reduce(bel_meeting *m)
{
    bel_exchange *x = &m->worker->exchange;
    const bel_combining c =
        bel_meeting_combining(m, bel_shape_elements(&m->parts[m->first].input.shape));
    bel_weight all;
    bel_meeting_copy_values(m, false);
    const void *sum = bel_combine(&c, x->slots, x->weights, m->worker->replica_count, &all);
    int owner = m->first; // owner of the sum's memory, which receives its result last
    for (int r = 0; r < m->worker->replica_count; r++) {
        if (!m->present[r]) continue;
        if (m->parts[r].output.data == sum) {
            owner = r;
        } else {
            bel_combine_give(&c, sum, all, bel_meeting_weight(m, r), m->parts[r].output.data);
        }
    }
    bel_combine_give(&c, sum, all, bel_meeting_weight(m, owner), m->parts[owner].output.data);
}

static void reduce_scatter(bel_meeting *m)
{
    bel_exchange *x = &m->worker->exchange;
    int replicas = m->worker->replica_count;
    const bel_tensor *like = &m->parts[m->first].input;
    const bel_combining c = bel_meeting_combining(m, bel_shape_elements(&like->shape) / replicas);
    size_t size = bel_tensor_bytes(like) / (size_t)replicas;
    bel_meeting_make_room(m, size * (size_t)replicas);
    for (int part = 0; part < replicas; part++) {
        if (!m->present[part]) continue; // it has no receiver
        bel_weight all;
        for (int r = 0; r < replicas; r++) {
            x->slots[r] = NULL;
            if (!m->present[r]) continue;
            x->slots[r] = x->room + (size_t)r * size;
            x->weights[r] = bel_meeting_weight(m, r);
            const char *from = m->parts[r].input.data;
            if (size > 0) memcpy(x->slots[r], from + (size_t)part * size, size);
        }
        const void *sum = bel_combine(&c, x->slots, x->weights, replicas, &all);
        bel_combine_give(&c, sum, all, bel_meeting_weight(m, part), m->parts[part].output.data);
    }
}

static void all_gather(bel_meeting *m)
{
    int replicas = m->worker->replica_count;
    const bel_tensor *like = &m->parts[m->first].input;
    const bel_combining c = bel_meeting_combining(m, bel_shape_elements(&like->shape));
    size_t size = bel_tensor_bytes(like);
    for (int r = 0; r < replicas && size > 0; r++) {
        if (!m->present[r]) continue;
        char *to = m->parts[r].output.data;
        for (int s = 0; s < replicas; s++, to += size) {
            if (m->present[s]) {
                bel_meeting_give_scaled(&c, m->parts[s].input.data, bel_meeting_weight(m, s),
                                        bel_meeting_weight(m, r), to);
            } else {
                memset(to, 0, size);
            }
        }
    }
}

static void broadcast(bel_meeting *m)
{
    const bel_tensor *from = &m->parts[m->what->source].input;
    size_t size = bel_tensor_bytes(from);
    for (int r = 0; r < m->worker->replica_count && size > 0; r++)
        if (m->present[r]) memcpy(m->parts[r].output.data, from->data, size);
}

bel_status *bel_meeting_hold_here(bel_meeting *m)
{
    for (int r = 0; m->what->needs_all && r < m->worker->replica_count; r++)
        if (!m->present[r]) return bel_meeting_lacks(m, m->worker->first_replica + r);
    if (m->what->op == BEL_OP_ALL_REDUCE) {
        all_reduce(m);
    } else if (m->what->op == BEL_OP_ALL_GATHER) {
        all_gather(m);
    } else if (m->what->op == BEL_OP_REDUCE_SCATTER) {
        reduce_scatter(m);
    } else if (m->present[m->what->source]) {
        broadcast(m);
    } else {
        return bel_meeting_lacks(m, m->what->source);
    }
    return NULL;
}
