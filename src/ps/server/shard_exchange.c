// Exchanges of collectives, at shard 0. Each piece of each value is a record: first the workers'
// contributions, then the answer to all of them. Before its first piece of a step, or instead of
// it, a worker reports whether it has any replica with examples. The record is answered when every
// worker that plays replicas has sent its slots or has none.
//
// A record stays until the following step ends. So a replacement that repeats a step gets the
// values that the other workers got, also if this shard is a step ahead of the others. (It is never
// two ahead: the next step's exchange waits for that worker.)
//
// All data from a worker is copied before it is checked, and checked before it is used. A repeat
// from the same process is skipped unread, as the worker's room may hold other data by then.
#include <string.h>

#include "base/alloc.h"
#include "belfry/tensor.h"
#include "ps/layout/combine.h"
#include "ps/server/shard_inner.h"
#include "tensor/moments.h"

// One worker's part in a record.
typedef struct voice {
    bool came;       // its slots have arrived
    bool waits;      // for the answer, at `at` in its room
    bool has_answer; // this process has received it
    uint32_t at;
} voice;

typedef struct record {
    int32_t exchange, part, piece;
    int opened_by; // by the worker
    bel_exchange_head head;
    void **values;       // by replica: value of the node that begins there, or NULL; owned
    bel_weight *weights; // by replica
    voice *voices;       // by worker
    char *answer;        // owned; NULL: not yet
    size_t answer_bytes;
} record;

struct bel_shard_exchange_step {
    int64_t step; // -1: no step
    record *records;
    size_t count, capacity;
    bool *absent; // by worker: it contributes nothing in this step
};

static int replicas_of(const bel_shard *shard)
{
    return shard->config.assignment->replica_count;
}

static int workers_of(const bel_shard *shard)
{
    return shard->config.assignment->worker_count;
}

// --- Life ----------------------------------------------------------------------------------------

static void free_values(const bel_shard *shard, record *r)
{
    for (int i = 0; r->values != NULL && i < replicas_of(shard); i++)
        bel_free(r->values[i]);
    bel_free(r->values);
    bel_free(r->weights);
    r->values = NULL;
    r->weights = NULL;
}

static void clear_step(const bel_shard *shard, bel_shard_exchange_step *s, int64_t step)
{
    for (size_t i = 0; i < s->count; i++) {
        free_values(shard, &s->records[i]);
        bel_free(s->records[i].voices);
        bel_free(s->records[i].answer);
    }
    s->count = 0;
    s->step = step;
    memset(s->absent, 0, (size_t)workers_of(shard) * sizeof *s->absent);
}

void bel_shard_create_exchanges(bel_shard *shard)
{
    if (!shard->config.layout->exchanges) return;
    shard->exchange.slots = bel_xcalloc((size_t)replicas_of(shard), sizeof *shard->exchange.slots);
    shard->exchange.steps = bel_xcalloc(2, sizeof *shard->exchange.steps);
    for (int i = 0; i < 2; i++) {
        shard->exchange.steps[i].step = -1;
        shard->exchange.steps[i].absent = bel_xcalloc((size_t)workers_of(shard), sizeof(bool));
    }
}

void bel_shard_forget_exchanges_locked(bel_shard *shard)
{
    for (int i = 0; shard->exchange.steps != NULL && i < 2; i++)
        clear_step(shard, &shard->exchange.steps[i], -1);
}

void bel_shard_destroy_exchanges(bel_shard *shard)
{
    for (int i = 0; shard->exchange.steps != NULL && i < 2; i++) {
        bel_shard_exchange_step *s = &shard->exchange.steps[i];
        clear_step(shard, s, -1);
        bel_free(s->records);
        bel_free(s->absent);
    }
    bel_free(shard->exchange.steps);
    bel_free(shard->exchange.slots);
}

void bel_shard_forget_voice_locked(bel_shard *shard, int worker)
{
    for (int i = 0; shard->exchange.steps != NULL && i < 2; i++) {
        const bel_shard_exchange_step *s = &shard->exchange.steps[i];
        for (size_t k = 0; k < s->count; k++)
            s->records[k].voices[worker].waits = s->records[k].voices[worker].has_answer = false;
    }
}

// --- Answering -----------------------------------------------------------------------------------

static bool shard_plays(const bel_shard *shard, int worker)
{
    return bel_assignment_replicas(shard->config.assignment, worker) > 0;
}

static bool is_complete(const bel_shard *shard, const bel_shard_exchange_step *s, const record *r)
{
    for (int w = 0; w < workers_of(shard); w++)
        if (shard_plays(shard, w) && !r->voices[w].came && !s->absent[w]) return false;
    return true;
}

static char *put_slot(char *to, int first, bel_weight weight)
{
    const bel_exchange_slot slot = {first, (int32_t)weight.replicas, weight.examples};
    memcpy(to, &slot, sizeof slot);
    return to + sizeof slot;
}

// Writes the slots, then the elements.
static void make_answer(const bel_shard *shard, record *r)
{
    const bel_exchange_head *head = &r->head;
    int replicas = replicas_of(shard);
    size_t size = (size_t)head->elements * bel_dtype_size((bel_dtype)head->dtype);
    r->answer_bytes = bel_exchange_answered(head, replicas);
    char *to = r->answer = bel_xcalloc(r->answer_bytes, 1);
    if (head->kind == BEL_EXCHANGE_GATHER) {
        for (int i = 0; i < replicas; i++)
            to = put_slot(to, i, r->weights[i]);
        for (int i = 0; i < replicas; i++, to += size)
            if (r->values[i] != NULL && size > 0) memcpy(to, r->values[i], size);
    } else if (head->kind == BEL_EXCHANGE_BROADCAST) {
        to = put_slot(to, head->source, r->weights[head->source]);
        const void *value = r->values[head->source];
        if (value != NULL && size > 0) memcpy(to, value, size);
    } else {
        const bel_combining c = {(bel_reduce_op)head->reduce, (bel_dtype)head->dtype,
                                 head->elements};
        // The combined values stay owned by `values`. The tree moves pointers, so it works on a
        // copy of them.
        void **slots = bel_xcalloc((size_t)replicas, sizeof *slots);
        memcpy(slots, r->values, (size_t)replicas * sizeof *slots);
        bel_weight all = {0};
        const void *sum = bel_combine(&c, slots, r->weights, replicas, &all);
        to = put_slot(to, 0, sum != NULL ? all : (bel_weight){0});
        if (sum != NULL && size > 0) memcpy(to, sum, size);
        bel_free(slots);
    }
    free_values(shard, r);
}

static void answer_worker_locked(bel_shard *shard, const bel_shard_exchange_step *s, record *r,
                                 int worker)
{
    const bel_shard_config *config = &shard->config;
    void *const *rooms = config->answer_rooms != NULL ? config->answer_rooms : shard->answer_rooms;
    char *room = rooms[worker];
    room += bel_row_buffer_exchange_answers(config->layout, config->assignment, worker);
    voice *its = &r->voices[worker];
    memcpy(room + its->at, r->answer, r->answer_bytes);
    its->waits = false;
    its->has_answer = true;
    const bel_exchanged_frame said = {.version = s->step,
                                      .exchange = r->exchange,
                                      .part = r->part,
                                      .piece = r->piece,
                                      .at = its->at};
    bel_shard_send_locked(shard, config->worker_lanes[worker],
                          bel_exchanged_frame_write(said, room + its->at, r->answer_bytes));
}

// Answers the record if it has become complete, or if a worker asks for its answer.
static void look_at_locked(bel_shard *shard, const bel_shard_exchange_step *s, record *r)
{
    if (r->answer == NULL) {
        if (!is_complete(shard, s, r)) return;
        make_answer(shard, r);
    }
    for (int w = 0; w < workers_of(shard); w++)
        if (r->voices[w].waits) answer_worker_locked(shard, s, r, w);
}

// --- Received frames -----------------------------------------------------------------------------

static record *shard_find(const bel_shard *shard, bel_shard_exchange_step *s,
                          const bel_exchange_frame *said, const bel_exchange_head *head, int worker)
{
    for (size_t i = s->count; i-- > 0;) {
        record *r = &s->records[i];
        if (r->exchange == said->exchange && r->part == said->part && r->piece == said->piece)
            return r;
    }
    if (head == NULL) return NULL;
    size_t replicas = (size_t)replicas_of(shard);
    s->records = bel_xgrow(s->records, &s->capacity, s->count + 1, sizeof *s->records);
    record *made = &s->records[s->count++];
    *made = (record){.exchange = said->exchange,
                     .part = said->part,
                     .piece = said->piece,
                     .opened_by = worker,
                     .head = *head,
                     .values = bel_xcalloc(replicas, sizeof *made->values),
                     .weights = bel_xcalloc(replicas, sizeof *made->weights),
                     .voices = bel_xcalloc((size_t)workers_of(shard), sizeof(voice))};
    made->head.slots = 0; // they are a worker's
    return made;
}

// Returns the error in a frame's payload, or NULL; its slots go to shard->exchange.slots. Numbers
// are bounded before they are multiplied.
static const char *find_fault(const bel_shard *shard, const bel_frame *frame, int worker,
                              const bel_exchange_head *head)
{
    const bel_assignment *assignment = shard->config.assignment;
    bool number = head->dtype == BEL_DTYPE_F32 || head->dtype == BEL_DTYPE_F64 ||
                  head->dtype == BEL_DTYPE_I32 || head->dtype == BEL_DTYPE_I64;
    bool reduces = head->kind == BEL_EXCHANGE_REDUCE || head->kind == BEL_EXCHANGE_SCATTER;
    if (head->kind < 0 || head->kind >= BEL_EXCHANGE_KIND_COUNT || head->dtype < 0 ||
        head->dtype > BEL_DTYPE_BF16 || head->dtype == BEL_DTYPE_STRING)
        return "no such collective";
    bool moments = head->kind == BEL_EXCHANGE_REDUCE && head->reduce == BEL_REDUCE_MOMENTS &&
                   head->dtype == BEL_DTYPE_F32 && head->elements % BEL_MOMENTS_ROWS == 0;
    bool known = head->reduce >= 0 && head->reduce <= BEL_REDUCE_PRODUCT;
    if (reduces && !(number && known) && !moments) return "no such reduction";
    if (head->source < 0 || head->source >= assignment->replica_count) return "no such replica";
    if (head->elements < 0 || head->elements > BEL_EXCHANGE_ROOM || head->total < head->elements ||
        head->slots < 0 || head->slots > bel_assignment_replicas(assignment, worker))
        return "sizes that cannot be";
    if (frame->payload_bytes != bel_exchange_sent(head) ||
        bel_exchange_answered(head, assignment->replica_count) > BEL_EXCHANGE_ROOM)
        return "an exchange of the wrong size";
    if (memchr(head->file, '\0', sizeof head->file) == NULL) return "a name without an end";
    if (head->rank < 0 || head->rank > BEL_MAX_RANK) return "no such shape";
    bel_exchange_slot *slots = shard->exchange.slots;
    size_t slot_bytes = (size_t)head->slots * sizeof *slots;
    if (slot_bytes > 0) memcpy(slots, (const char *)frame->payload + sizeof *head, slot_bytes);
    int32_t next = assignment->first_replica[worker];
    for (int i = 0; i < head->slots; i++) {
        const bel_exchange_slot *slot = &slots[i];
        int64_t left = (int64_t)assignment->first_replica[worker + 1] - slot->first;
        if (slot->first < next || left <= 0 || slot->replicas < 1 || slot->replicas > left ||
            slot->examples < slot->replicas || slot->examples > (int64_t)1 << 40)
            return "a slot that the worker cannot have";
        next = slot->first + 1;
    }
    return NULL;
}

static bool same_call(const bel_exchange_head *a, const bel_exchange_head *b)
{
    return a->kind == b->kind && a->reduce == b->reduce && a->dtype == b->dtype &&
           a->source == b->source && a->line == b->line && a->elements == b->elements &&
           a->total == b->total && a->rank == b->rank &&
           memcmp(a->dims, b->dims, sizeof a->dims) == 0 &&
           memcmp(a->file, b->file, sizeof a->file) == 0;
}

static void shard_exchange_describe(const bel_exchange_head *head, int worker, bel_str *out)
{
    static const char *const kinds[] = {"AllReduce", "ReduceScatter", "AllGather", "BroadcastFrom"};
    bel_shape shape = {.rank = head->rank};
    char text[BEL_SHAPE_TEXT];
    memcpy(shape.dims, head->dims, (size_t)head->rank * sizeof *head->dims);
    bel_str_printf(out, "worker %d calls %s of %s %s at %s:%d", worker, kinds[head->kind],
                   bel_dtype_name((bel_dtype)head->dtype), bel_shape_text(&shape, text), head->file,
                   (int)head->line);
}

static void fail_different_locked(bel_shard *shard, const bel_exchange_frame *said, const record *r,
                                  const bel_exchange_head *head, int worker)
{
    bel_str both = {0};
    shard_exchange_describe(&r->head, r->opened_by, &both);
    bel_str_puts(&both, ", ");
    shard_exchange_describe(head, worker, &both);
    shard->error = BEL_ERR(BEL_INVALID_ARGUMENT,
                           "step %lld, exchange %d: %s: all replicas must make the same "
                           "collectives in the same order",
                           (long long)said->version, said->exchange, both.text);
    bel_str_deinit(&both);
}

static void keep_slots(record *r, const bel_frame *frame, const bel_exchange_head *head,
                       const bel_exchange_slot *slots)
{
    size_t size = (size_t)head->elements * bel_dtype_size((bel_dtype)head->dtype);
    const char *values = (const char *)frame->payload + sizeof *head;
    values += (size_t)head->slots * sizeof *slots;
    for (int i = 0; i < head->slots; i++) {
        int first = slots[i].first;
        r->values[first] = bel_xmalloc(size + 1);
        r->weights[first] = (bel_weight){slots[i].replicas, slots[i].examples};
        memcpy(r->values[first], values + (size_t)i * size, size);
    }
}

// A worker without examples contributes nothing in this step, whatever the others exchange.
static void take_absence_locked(bel_shard *shard, bel_shard_exchange_step *s, int worker)
{
    s->absent[worker] = true;
    for (size_t i = 0; i < s->count; i++)
        look_at_locked(shard, s, &s->records[i]);
}

void bel_shard_take_exchange_locked(bel_shard *shard, const bel_frame *frame, int worker)
{
    const bel_exchange_frame said = bel_exchange_frame_read(frame);
    if (shard->exchange.steps == NULL || shard->config.shard != 0 || !shard->policy->lockstep) {
        bel_shard_fail_locked(shard, frame, "no exchanges are made here");
        return;
    }
    bel_shard_exchange_step *s = &shard->exchange.steps[said.version & 1];
    bool now = said.version == shard->step && !bel_shard_is_stopping(shard);
    if (now && s->step != said.version) clear_step(shard, s, said.version);
    if (s->step != said.version || said.version < 0) {
        shard->counters.late++;
        return;
    }
    if (said.exchange < 0) {
        take_absence_locked(shard, s, worker);
        return;
    }
    const record *known = shard_find(shard, s, &said, NULL, worker);
    if (known != NULL && (known->voices[worker].has_answer || known->voices[worker].waits)) {
        shard->counters.repeated++;
        return;
    }
    bel_exchange_head head;
    const char *fault = frame->payload_bytes < sizeof head ? "an exchange of the wrong size" : NULL;
    if (fault == NULL) {
        memcpy(&head, frame->payload, sizeof head);
        fault = find_fault(shard, frame, worker, &head);
    }
    if (fault == NULL &&
        said.answer_at + bel_exchange_answered(&head, replicas_of(shard)) > BEL_EXCHANGE_ROOM)
        fault = "an answer that is out of its room";
    if (fault != NULL) {
        bel_shard_fail_locked(shard, frame, fault);
        return;
    }
    record *r = shard_find(shard, s, &said, &head, worker);
    if (!same_call(&r->head, &head)) {
        fail_different_locked(shard, &said, r, &head, worker);
        return;
    }
    voice *its = &r->voices[worker];
    its->at = said.answer_at;
    its->waits = true;
    if (!its->came && r->answer == NULL) keep_slots(r, frame, &head, shard->exchange.slots);
    its->came = true;
    look_at_locked(shard, s, r);
}

void bel_shard_exchange_missing(const bel_shard *shard, bel_str *out)
{
    if (shard->exchange.steps == NULL || shard->step < 0) return;
    const bel_shard_exchange_step *s = &shard->exchange.steps[shard->step & 1];
    for (size_t i = 0; s->step == shard->step && i < s->count; i++) {
        const record *r = &s->records[i];
        if (r->answer != NULL) continue;
        for (int w = 0; w < workers_of(shard); w++) {
            if (!shard_plays(shard, w) || r->voices[w].came || s->absent[w]) continue;
            bel_str_printf(out, "waits for worker %d in exchange %d (%s:%d)", w, r->exchange,
                           r->head.file, (int)r->head.line);
            return;
        }
    }
}
