// A collective with replicas of other workers: this worker's values go to shard 0 in pieces
// (ps/layout/exchange.h), and the results come back to its replicas. Sums over the replicas of each
// node of the tree are computed here, the rest of the tree at the shard, so the bits are those of
// one worker that plays all replicas.
//
// Pieces are written into the worker's room one after the other. They are sent when that room, the
// one for answers, or the list of pieces is full, and at the end of the exchange; then the worker
// waits for the answers. Answers overwrite the memory of the sums, which is safe as a piece is a
// copy.
#include <string.h>

#include "base/alloc.h"
#include "tensor/moments.h"
#include "worker/meeting.h"

// This worker's values for one collective.
typedef struct giving {
    bel_exchange_head head;
    bel_exchange_slot *slots;
    const char **values; // by slot
} giving;

// A piece under way. A value is divided like a matrix, into columns: moments have rows that belong
// together; any other value is one row.
typedef struct cut {
    int part;       // index in the exchange
    int64_t first;  // first column in the value
    int64_t length; // columns of the complete value
    int64_t columns;
    bel_exchange_head head;
} cut;

struct bel_exchange_pieces {
    bel_client_piece pieces[BEL_EXCHANGE_PIECES];
    cut cuts[BEL_EXCHANGE_PIECES];
    int count;
    size_t used, answers_used; // bytes of the rooms
};

bel_exchange_pieces *bel_exchange_pieces_create(void)
{
    return bel_xcalloc(1, sizeof(bel_exchange_pieces));
}

static int all_replicas(const bel_meeting *m)
{
    return m->worker->config.assignment->replica_count;
}

static int rows_of(const bel_meeting *m)
{
    return (int)m->what->reduce == BEL_REDUCE_MOMENTS ? BEL_MOMENTS_ROWS : 1;
}

// --- Values to send ------------------------------------------------------------------------------

static void add_slot(giving *g, int first, bel_weight weight, const void *value)
{
    int i = g->head.slots++;
    g->slots[i] = (bel_exchange_slot){first, (int32_t)weight.replicas, weight.examples};
    g->values[i] = value;
}

// Sums the values of this worker's nodes. In ReduceScatter a replica receives only a part, so its
// memory is too small for a sum.
static void give_nodes(bel_meeting *m, giving *g)
{
    bel_worker *worker = m->worker;
    bel_exchange *x = &worker->exchange;
    const bel_assignment *assignment = worker->config.assignment;
    const bel_combining c = bel_meeting_combining(m, g->head.total);
    int own = worker->config.worker;
    bel_meeting_copy_values(m, m->what->op == BEL_OP_REDUCE_SCATTER);
    for (int k = assignment->first_node[own]; k < assignment->first_node[own + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        int first = node->first - worker->first_replica;
        bel_weight weight;
        const void *sum =
            bel_combine(&c, x->slots + first, x->weights + first, node->count, &weight);
        if (sum != NULL) add_slot(g, node->first, weight, sum);
    }
}

static bel_exchange_kind kind_of(bel_op op)
{
    if (op == BEL_OP_ALL_REDUCE) return BEL_EXCHANGE_REDUCE;
    if (op == BEL_OP_REDUCE_SCATTER) return BEL_EXCHANGE_SCATTER;
    return op == BEL_OP_ALL_GATHER ? BEL_EXCHANGE_GATHER : BEL_EXCHANGE_BROADCAST;
}

// Keeps the end of a long file name.
static void name_place(const bel_meeting *m, bel_exchange_head *head)
{
    const bel_graph_collective *place =
        &m->worker->config.models->graph->collectives[m->what->index];
    size_t length = strlen(place->file), most = sizeof head->file - 1;
    size_t told = length > most ? most : length;
    memcpy(head->file, place->file + (length - told), told);
    head->line = place->line;
}

static giving exchange_others_give(bel_meeting *m)
{
    bel_worker *worker = m->worker;
    const bel_tensor *like = &m->parts[m->first].input;
    giving g = {.head = {.kind = (int32_t)kind_of(m->what->op),
                         .reduce = (int32_t)m->what->reduce,
                         .dtype = (int32_t)like->dtype,
                         .source = m->what->source,
                         .rank = like->shape.rank,
                         .total = bel_shape_elements(&like->shape)},
                .slots = worker->exchange.given,
                .values = worker->exchange.values};
    for (int i = 0; i < like->shape.rank; i++)
        g.head.dims[i] = like->shape.dims[i];
    name_place(m, &g.head);
    if (m->what->op == BEL_OP_ALL_REDUCE || m->what->op == BEL_OP_REDUCE_SCATTER) {
        give_nodes(m, &g);
        return g;
    }
    for (int r = 0; r < worker->replica_count; r++) {
        int id = worker->first_replica + r;
        bool gives = m->what->op == BEL_OP_ALL_GATHER || id == m->what->source;
        if (m->present[r] && gives)
            add_slot(&g, id, bel_meeting_weight(m, r), m->parts[r].input.data);
    }
    return g;
}

// --- Results -------------------------------------------------------------------------------------

static bel_weight weight_in(const char *answer, int slot)
{
    bel_exchange_slot s;
    memcpy(&s, answer + (size_t)slot * sizeof s, sizeof s);
    return (bel_weight){s.replicas, s.examples};
}

static bel_status *check_answer(const bel_meeting *m, const char *answer)
{
    bool gathers = m->what->op == BEL_OP_ALL_GATHER;
    if (m->what->op == BEL_OP_BROADCAST_FROM && weight_in(answer, 0).replicas == 0)
        return bel_meeting_lacks(m, m->what->source);
    for (int i = 0; m->what->needs_all && gathers && i < all_replicas(m); i++)
        if (weight_in(answer, i).replicas == 0) return bel_meeting_lacks(m, i);
    bool short_of = m->what->needs_all && weight_in(answer, 0).replicas < all_replicas(m);
    return short_of && !gathers ? bel_meeting_lacks(m, -1) : NULL;
}

// Copies the part of this piece that belongs to replica r, whose part of the value begins at
// `begin`.
static void deliver_part(const bel_meeting *m, const cut *c, const char *values, bel_weight all,
                         int r)
{
    size_t size = bel_dtype_size((bel_dtype)c->head.dtype);
    int64_t part = c->head.total / all_replicas(m), begin = (m->worker->first_replica + r) * part;
    int64_t from = begin > c->first ? begin : c->first, end = begin + part;
    if (end > c->first + c->head.elements) end = c->first + c->head.elements;
    if (from >= end) return;
    const bel_combining own = bel_meeting_combining(m, end - from);
    char *to = m->parts[r].output.data;
    bel_combine_give(&own, values + (size_t)(from - c->first) * size, all, bel_meeting_weight(m, r),
                     to + (size_t)(from - begin) * size);
}

// Copies the piece of every replica's row; an absent replica's row is zeros.
static void deliver_rows(const bel_meeting *m, const cut *c, const char *answer, const char *values,
                         int r)
{
    const bel_combining piece = bel_meeting_combining(m, c->head.elements);
    size_t size = bel_dtype_size((bel_dtype)c->head.dtype);
    size_t bytes = (size_t)c->head.elements * size;
    char *to = m->parts[r].output.data;
    for (int s = 0; s < all_replicas(m); s++, values += bytes) {
        char *row = to + (size_t)(s * c->head.total + c->first) * size;
        bel_weight its = weight_in(answer, s);
        if (its.replicas == 0) {
            memset(row, 0, bytes);
        } else {
            bel_meeting_give_scaled(&piece, values, its, bel_meeting_weight(m, r), row);
        }
    }
}

static void exchange_others_deliver(const bel_meeting *m, const cut *c, const char *answer, int r)
{
    size_t size = bel_dtype_size((bel_dtype)c->head.dtype);
    bool gathers = m->what->op == BEL_OP_ALL_GATHER;
    int slots = gathers ? all_replicas(m) : 1;
    const char *values = answer + (size_t)slots * sizeof(bel_exchange_slot);
    bel_weight all = weight_in(answer, 0);
    char *to = m->parts[r].output.data;
    if (c->head.elements == 0) return;
    if (gathers) {
        deliver_rows(m, c, answer, values, r);
    } else if (m->what->op == BEL_OP_REDUCE_SCATTER) {
        deliver_part(m, c, values, all, r);
    } else if (m->what->op == BEL_OP_ALL_REDUCE) {
        const bel_combining row = bel_meeting_combining(m, c->columns);
        for (int i = 0; i < rows_of(m); i++)
            bel_combine_give(&row, values + (size_t)(i * c->columns) * size, all,
                             bel_meeting_weight(m, r),
                             to + (size_t)(i * c->length + c->first) * size);
    } else {
        memcpy(to + (size_t)c->first * size, values, (size_t)c->head.elements * size);
    }
}

bel_status *bel_meeting_end_with_others(bel_meeting *m, int exchange)
{
    bel_worker *worker = m->worker;
    bel_exchange_pieces *p = worker->exchange.pieces;
    int count = p->count;
    p->count = 0;
    p->used = p->answers_used = 0;
    if (count == 0) return NULL;
    BEL_TRY(bel_client_exchange(worker->config.client, worker->step, exchange, p->pieces, count));
    for (int i = 0; i < count; i++) {
        const char *answer = p->pieces[i].answer;
        bel_meeting_turn_to(m, exchange, p->cuts[i].part);
        BEL_TRY(check_answer(m, answer));
        for (int r = 0; r < worker->replica_count; r++)
            if (m->present[r]) exchange_others_deliver(m, &p->cuts[i], answer, r);
    }
    return NULL;
}

// --- Pieces --------------------------------------------------------------------------------------

static size_t exchange_others_aligned(size_t bytes)
{
    return (bytes + BEL_EXCHANGE_ALIGN - 1) / BEL_EXCHANGE_ALIGN * BEL_EXCHANGE_ALIGN;
}

// Returns the columns of a piece, such that a few pieces and their answers fit the rooms. All
// workers must divide alike, whatever their values, so it depends only on the assignment, which is
// the same for all. 0: a room does not hold one column.
static int64_t piece_columns(const bel_meeting *m, const bel_exchange_head *head)
{
    enum { SHARE = BEL_EXCHANGE_ROOM / 4 };
    bool gathers = head->kind == BEL_EXCHANGE_GATHER;
    size_t slots = (size_t)(gathers ? all_replicas(m)
                                    : bel_assignment_most_nodes(m->worker->config.assignment));
    size_t fixed = sizeof *head + slots * sizeof(bel_exchange_slot);
    size_t column = slots * (size_t)rows_of(m) * bel_dtype_size((bel_dtype)head->dtype);
    if (fixed + column <= SHARE) return (int64_t)((SHARE - fixed) / column);
    return fixed + column <= BEL_EXCHANGE_ROOM ? 1 : 0;
}

static bel_status *too_many(const bel_meeting *m)
{
    const bel_worker *worker = m->worker;
    char place[BEL_COLLECTIVE_TEXT];
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                   "step %lld: %s: expected fewer replicas: of %d, not even one element of each "
                   "fits the %d bytes in which workers exchange values",
                   (long long)worker->step,
                   bel_graph_collective_text(worker->config.models->graph, m->what->index, place),
                   all_replicas(m), BEL_EXCHANGE_ROOM);
}

// Copies the columns of all slots into the room.
static void write_piece(const giving *g, const cut *c, char *to)
{
    size_t size = bel_dtype_size((bel_dtype)c->head.dtype);
    size_t slots = (size_t)c->head.slots * sizeof *g->slots, row = (size_t)c->columns * size;
    int64_t rows = c->columns > 0 ? c->head.elements / c->columns : 0;
    memcpy(to, &c->head, sizeof c->head);
    to += sizeof c->head;
    if (slots > 0) memcpy(to, g->slots, slots);
    to += slots;
    for (int i = 0; i < c->head.slots; i++)
        for (int64_t r = 0; r < rows; r++, to += row)
            memcpy(to, g->values[i] + (size_t)(r * c->length + c->first) * size, row);
}

bel_status *bel_meeting_hold_with_others(bel_meeting *m, int exchange, int part)
{
    bel_worker *worker = m->worker;
    bel_exchange_pieces *p = worker->exchange.pieces;
    const giving g = exchange_others_give(m);
    int64_t rows = rows_of(m), each = piece_columns(m, &g.head), first = 0;
    int64_t length = g.head.total / rows;
    if (each == 0) return too_many(m);
    for (int32_t number = 0; number == 0 || first < length; number++, first += each) {
        cut c = {.part = part, .first = first, .length = length, .head = g.head};
        c.columns = length - first < each ? length - first : each;
        c.head.elements = rows * c.columns;
        size_t sent = bel_exchange_sent(&c.head);
        size_t answered = bel_exchange_answered(&c.head, all_replicas(m));
        bool full = p->count == BEL_EXCHANGE_PIECES || p->used + sent > BEL_EXCHANGE_ROOM ||
                    p->answers_used + answered > BEL_EXCHANGE_ROOM;
        if (full) {
            BEL_TRY(bel_meeting_end_with_others(m, exchange));
            bel_meeting_turn_to(m, exchange, part);
        }
        write_piece(&g, &c, bel_client_exchange_room(worker->config.client) + p->used);
        p->cuts[p->count] = c;
        p->pieces[p->count++] = (bel_client_piece){.part = part,
                                                   .piece = number,
                                                   .at = (uint32_t)p->used,
                                                   .bytes = sent,
                                                   .answer_at = (uint32_t)p->answers_used,
                                                   .answer_bytes = answered};
        p->used += exchange_others_aligned(sent);
        p->answers_used += exchange_others_aligned(answered);
    }
    return NULL;
}
