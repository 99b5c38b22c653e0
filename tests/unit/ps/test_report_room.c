// Reports that have no room at once: the same bits as with room for all, for every order in which
// parts are computed and arrive, with slots for few nodes, merged subtrees and replaced workers.
// Lanes copy payloads to the places that their receiver names, as over a network.
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "optim/settings.h"
#include "ps/client/client.h"
#include "ps/layout/report_room.h"
#include "ps/layout/rounding.h"
#include "ps/server/shard_inner.h"
#include "support/bel_test.h"
#include "transport/inproc/inproc.h"

enum { MOST_SHARDS = 2, MOST_WORKERS = 13, MOST_REPLICAS = 16, LANE_FRAMES = 512, STEPS = 4 };

// Number of the next draw: all orders follow from it.
static uint64_t drawn;

// Returns a number from 0 to `end` - 1.
static int draw(int end)
{
    uint32_t words[4];
    bel_rng_block((bel_rng_key){{5, 6}}, 0, drawn++, words);
    return (int)(words[0] % (uint32_t)end);
}

// --- A lane that copies --------------------------------------------------------------------------

typedef struct copying_lane {
    bel_lane base;
    bel_lane_ops ops;
    bel_lane *inner;
    bel_frame_place *place; // the other end's
    void *context;          // one of the next two
    bel_shard_peer shard_peer;
    bel_client_peer client_peer;
    void (*at_once)(void *context, const bel_frame *frame);
} copying_lane;

static bel_status *copying_send(bel_lane *lane, const bel_frame *frame)
{
    const copying_lane *c = (const copying_lane *)lane;
    bel_frame copy = *frame;
    if (copy.payload_bytes > 0) {
        void *to = c->place(c->context, &copy);
        assert_non_null(to);
        memcpy(to, copy.payload, copy.payload_bytes);
        copy.payload = to;
    }
    bel_status *status = bel_lane_send(c->inner, &copy);
    if (status == NULL && c->at_once != NULL && draw(2) == 0) c->at_once(c->context, &copy);
    return status;
}

static bool copying_receive(bel_lane *lane, bel_frame *out_frame)
{
    return bel_lane_receive(((copying_lane *)lane)->inner, out_frame);
}

static struct bel_frame_queue *copying_incoming(const bel_lane *lane)
{
    const copying_lane *c = (const copying_lane *)lane;
    return c->inner->ops->incoming(c->inner);
}

static void copying_close(bel_lane *lane)
{
    bel_lane_close(((copying_lane *)lane)->inner);
    bel_free(lane);
}

static copying_lane *copying(bel_lane *inner, bel_frame_place *place)
{
    copying_lane *c = bel_xcalloc(1, sizeof *c);
    *c = (copying_lane){.inner = inner, .place = place};
    c->ops = (bel_lane_ops){.send = copying_send,
                            .receive = copying_receive,
                            .incoming = copying_incoming,
                            .close = copying_close};
    c->base.ops = &c->ops;
    return c;
}

// --- A job ---------------------------------------------------------------------------------------

typedef struct deal {
    int shards, workers;
    int replicas_of[MOST_WORKERS];
    size_t room; // 0: for all reports
    const bel_optimizer *optimizer;
    bel_rounding rounding;
    bool functions, uneven;
    int own;       // the first workers are in the shards' process
    bool replaced; // workers are
    bool streams;  // new values go past the caches
    unsigned seed; // determines all orders
} deal;

typedef struct job {
    deal deal;
    bel_layout *layout;
    bel_assignment *assignment;
    bel_space *space, *spaces[MOST_WORKERS];
    float *snapshot;
    bel_optimizers optimizers[2];
    bel_doorbell *bell;
    bel_lane *worker_ends[MOST_WORKERS][MOST_SHARDS];
    bel_lane *shard_ends[MOST_SHARDS][MOST_WORKERS];
    bel_lane *inner_ends[MOST_SHARDS][MOST_SHARDS];
    bel_shard *shards[MOST_SHARDS];
    bel_client *clients[MOST_WORKERS];
    uint32_t incarnations[MOST_WORKERS];
    uint16_t *rounded_rooms[MOST_WORKERS];
    float *ranges[MOST_REPLICAS]; // as large as the space
    double stats[BEL_STATS_COUNT];
    int64_t versions[MOST_WORKERS]; // on which they compute
    bool reported[MOST_WORKERS];
} job;

static bel_layout *make_layout(const deal *d, int replicas)
{
    static char names[][8] = {"kernel", "frozen", "mean", "first", "each", "last", "sum"};
    uint32_t second = d->functions ? 2 : 0, first = d->functions ? 1 : 0;
    const bel_layout_variable variables[] = {
        {.name = names[0], .shape = BEL_SHAPE(60000), .kept_by = second},
        {.name = names[1], .shape = BEL_SHAPE(5001), .kind = BEL_VARIABLE_FROZEN},
        {.name = names[2], .shape = BEL_SHAPE(20000), .kind = BEL_VARIABLE_STATE_MEAN},
        {.name = names[3], .shape = BEL_SHAPE(70), .kind = BEL_VARIABLE_STATE_FIRST},
        {.name = names[4], .shape = BEL_SHAPE(replicas, 7), .kind = BEL_VARIABLE_REPLICA_MEAN},
        {.name = names[5], .shape = BEL_SHAPE(50000), .kept_by = first},
        {.name = names[6], .shape = BEL_SHAPE(3), .kind = BEL_VARIABLE_STATE_SUM}};
    return bel_layout_create(variables, 7, d->shards);
}

static int function_at(const job *j, int64_t version)
{
    return j->deal.functions ? (int)(version % 3 == 1) : 0;
}

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    (void)stats, (void)left;
    return version == STEPS ? BEL_DECIDE_STOP : bel_decision_with(0, function_at(context, version));
}

static int function_of(void *context, int64_t version)
{
    return function_at(context, version);
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version;
}

// Returns the shard's end; the worker's is in its place.
static bel_lane *make_lane(job *j, int w, int k)
{
    bel_lane *worker_end, *shard_end;
    bel_inproc_lane_create(LANE_FRAMES, j->bell, j->bell, &worker_end, &shard_end);
    j->worker_ends[w][k] = worker_end;
    if (w < j->deal.own) return shard_end;
    copying_lane *up = copying(worker_end, bel_shard_place);
    copying_lane *down = copying(shard_end, bel_client_place);
    up->shard_peer = (bel_shard_peer){j->shards[k], w, 0};
    up->context = &up->shard_peer;
    down->client_peer = (bel_client_peer){j->clients[w], k};
    down->context = &down->client_peer;
    down->at_once = bel_client_take_at_once;
    j->worker_ends[w][k] = &up->base;
    return &down->base;
}

static bool is_polling(void *context)
{
    (void)context;
    return true;
}

static void make_client(job *j, int w)
{
    bool own = w < j->deal.own;
    const bel_client_config config = {.worker = w,
                                      .generation = 1,
                                      .incarnation = j->incarnations[w],
                                      .layout = j->layout,
                                      .assignment = j->assignment,
                                      .lanes = j->worker_ends[w],
                                      .space = own ? NULL : j->spaces[w],
                                      .rounded_room = own ? NULL : j->rounded_rooms[w],
                                      .rounding = j->deal.rounding,
                                      .bell = j->bell,
                                      .cancelled = is_polling,
                                      .stall_timeout_secs = 1};
    j->clients[w] = bel_client_create(&config);
    j->reported[w] = false;
}

static void make_shard(job *j, int k)
{
    const bel_shard_config config = {.layout = j->layout,
                                     .shard = k,
                                     .assignment = j->assignment,
                                     .space = j->space,
                                     .snapshot = j->snapshot,
                                     .settings = {.optimizers = j->optimizers,
                                                  .function_count = j->deal.functions ? 2 : 1,
                                                  .rounding = j->deal.rounding},
                                     .generation = 1,
                                     .report_room = j->deal.room > 0 ? j->deal.room : SIZE_MAX / 2,
                                     .stream_from = j->deal.streams ? 1 : 0,
                                     .worker_lanes = j->shard_ends[k],
                                     .shard_lanes = j->inner_ends[k]};
    BEL_ASSERT_OK(bel_shard_create(&config, &j->shards[k]));
    assert_int_equal(j->shards[k]->streams, j->deal.streams);
    for (int w = 0; w < j->deal.workers; w++)
        if (w >= j->deal.own) BEL_ASSERT_OK(bel_shard_reserve(j->shards[k], w));
}

static void make_worker(job *j, int w)
{
    size_t arrays = 1 + (size_t)(j->assignment->first_node[w + 1] - j->assignment->first_node[w]);
    BEL_ASSERT_OK(bel_space_create(j->layout, 2, &j->spaces[w]));
    if (j->deal.rounding != BEL_ROUNDING_NONE)
        j->rounded_rooms[w] = bel_xcalloc(arrays * (size_t)j->layout->size, sizeof(uint16_t));
    make_client(j, w);
}

static job *make_job(const deal *d)
{
    job *j = bel_xcalloc(1, sizeof *j);
    j->deal = *d;
    j->assignment = bel_assignment_create(d->replicas_of, d->workers);
    j->layout = make_layout(d, j->assignment->replica_count);
    j->bell = bel_doorbell_create();
    for (int f = 0; f < 2; f++)
        j->optimizers[f] = (bel_optimizers){.main = *d->optimizer};
    BEL_ASSERT_OK(bel_space_create(j->layout, 2, &j->space));
    for (int64_t i = 0; i < j->layout->size; i++)
        j->space->buffers[0][i] = (float)(i % 101) / 50.0f - 1.0f;
    BEL_ASSERT_OK(bel_space_array(j->layout, "snapshot", &j->snapshot));
    for (int r = 0; r < j->assignment->replica_count; r++)
        BEL_ASSERT_OK(bel_space_array(j->layout, "ranges", &j->ranges[r]));
    for (int w = 0; w < d->workers; w++)
        make_worker(j, w);
    if (d->shards > 1)
        bel_inproc_lane_create(LANE_FRAMES, j->bell, j->bell, &j->inner_ends[0][1],
                               &j->inner_ends[1][0]);
    for (int k = 0; k < d->shards; k++) {
        make_shard(j, k);
        for (int w = 0; w < d->workers; w++)
            j->shard_ends[k][w] = make_lane(j, w, k);
        const bel_shard_events events = {j, decide, k == 0 ? function_of : NULL, snapshot_ready};
        bel_shard_start(j->shards[k], &events);
    }
    for (int w = 0; w < d->workers; w++)
        BEL_ASSERT_OK(bel_client_pull(j->clients[w], 0));
    return j;
}

static void destroy_job(job *j)
{
    for (int k = 0; k < j->deal.shards; k++) {
        for (int w = 0; w < j->deal.workers; w++) {
            bel_lane_close(j->worker_ends[w][k]);
            bel_lane_close(j->shard_ends[k][w]);
        }
        bel_shard_destroy(j->shards[k]);
    }
    bel_lane_close(j->inner_ends[0][1]);
    bel_lane_close(j->inner_ends[1][0]);
    for (int w = 0; w < j->deal.workers; w++) {
        bel_client_destroy(j->clients[w]);
        bel_space_destroy(j->spaces[w]);
        bel_free(j->rounded_rooms[w]);
    }
    for (int r = 0; r < j->assignment->replica_count; r++)
        bel_space_free_array(j->layout, j->ranges[r]);
    bel_space_free_array(j->layout, j->snapshot);
    bel_space_destroy(j->space);
    bel_doorbell_destroy(j->bell);
    bel_assignment_destroy(j->assignment);
    bel_layout_destroy(j->layout);
    bel_free(j);
}

// --- Reports -------------------------------------------------------------------------------------

static bel_weight weight_of(const job *j, int64_t step, int replica)
{
    if (!j->deal.uneven) return (bel_weight){1, 10};
    int64_t examples = (replica * 7 + step * 3) % 5 * 10;
    return (bel_weight){examples > 0, examples};
}

static void fill_range(job *j, const bel_segment *segment, int64_t step, int r, bool counts)
{
    for (int64_t i = segment->offset; i < segment->offset + segment->count; i++) {
        int64_t mixed = i * 7919 + step * 104729 + r * 1299709;
        j->ranges[r][i] = counts ? (float)(mixed % 2003) / 1001.0f - 0.9f : 1e30f;
    }
}

// Combines the values of a node's replicas as a worker does. Replicas without examples have values
// that must not be used.
static bel_weight combine(job *j, int64_t step, const bel_assignment_node *node, int c)
{
    const bel_chunk *chunk = &j->layout->chunks[c];
    bel_weight weights[MOST_REPLICAS], all = {0};
    bool plain = chunk->kind != BEL_VARIABLE_TRAINABLE && chunk->kind != BEL_VARIABLE_STATE_MEAN;
    for (int r = node->first; r < node->first + node->count; r++) {
        const bel_weight weight = weight_of(j, step, r);
        weights[r - node->first] = plain ? bel_weight_once(weight) : weight;
        all.replicas += weights[r - node->first].replicas;
        all.examples += weights[r - node->first].examples;
        for (int s = 0; s < chunk->segment_count; s++)
            fill_range(j, &j->layout->segments[chunk->first_segment + s], step, r,
                       weight.replicas > 0);
    }
    float *const *ranges = j->ranges + node->first;
    if (chunk->kind >= BEL_VARIABLE_STATE_FIRST) return all; // the first replica's range
    if (chunk->kind == BEL_VARIABLE_TRAINABLE && j->deal.rounding != BEL_ROUNDING_NONE)
        return bel_assignment_sum_node_rounded(node, j->deal.rounding, step, ranges, weights,
                                               chunk->offset, chunk->count);
    return bel_assignment_sum_node(node, ranges, weights, chunk->offset, chunk->count);
}

static void report_chunk(job *j, int w, int c)
{
    int64_t step = j->versions[w];
    uint32_t decision = bel_decision_with(0, function_at(j, step));
    for (int k = j->assignment->first_node[w]; k < j->assignment->first_node[w + 1]; k++) {
        const bel_assignment_node *node = &j->assignment->nodes[k];
        bel_weight weight = combine(j, step, node, c);
        BEL_ASSERT_OK(bel_client_report(j->clients[w], step, decision, c, k, weight,
                                        j->ranges[node->first] + j->layout->chunks[c].offset));
    }
}

static void work_somewhat(job *j)
{
    for (int turns = draw(4); turns > 0; turns--)
        (void)bel_shard_work(j->shards[draw(j->deal.shards)]);
}

static void report_worker(job *j, int w)
{
    int *order = bel_xcalloc((size_t)j->layout->chunk_count, sizeof *order), count = 0;
    for (int c = 0; c < j->layout->chunk_count; c++)
        if (bel_chunk_changes(&j->layout->chunks[c], function_at(j, j->versions[w])))
            order[count++] = c;
    for (; count > 0; count--) {
        int at = draw(count);
        report_chunk(j, w, order[at]);
        order[at] = order[count - 1];
        work_somewhat(j);
    }
    bel_free(order);
    uint32_t decision = bel_decision_with(0, function_at(j, j->versions[w]));
    for (int k = j->assignment->first_node[w]; k < j->assignment->first_node[w + 1]; k++)
        BEL_ASSERT_OK(bel_client_stats(j->clients[w], j->versions[w], decision, k, 0, j->stats));
    j->reported[w] = true;
}

// --- Steps ---------------------------------------------------------------------------------------

static void replace(job *j, int w)
{
    int64_t begin = INT64_MAX;
    bel_client *before = j->clients[w];
    j->incarnations[w]++;
    make_client(j, w);
    for (int k = 0; k < j->deal.shards; k++) {
        int64_t step;
        bel_lane *theirs = j->worker_ends[w][k], *ours = make_lane(j, w, k);
        bel_lane_close(bel_shard_admit(j->shards[k], w, j->incarnations[w], ours, &step));
        j->shard_ends[k][w] = ours;
        bel_lane_close(theirs);
        begin = step < begin ? step : begin;
    }
    bel_client_destroy(before);
    j->versions[w] = begin;
    BEL_ASSERT_OK(bel_client_pull(j->clients[w], begin));
}

// Looks once whether the worker's next version is there. Takes frames meanwhile.
static bool has_version(job *j, int w, int64_t version)
{
    uint32_t decision;
    bel_status *status = bel_client_wait(j->clients[w], version, &decision);
    if (status == NULL) return true;
    assert_int_equal(bel_status_code(status), BEL_CANCELLED);
    bel_status_destroy(status);
    return false;
}

// One turn of a worker: true if the training is over for it.
static bool turn(job *j, int w)
{
    int64_t next = j->versions[w] + (j->reported[w] ? 1 : 0);
    if (j->deal.replaced && w >= j->deal.own && draw(40) == 0) {
        replace(j, w);
        return false;
    }
    if (!has_version(j, w, next)) return false;
    j->versions[w] = next;
    j->reported[w] = false;
    if (next == STEPS) return true;
    report_worker(j, w);
    return false;
}

static void check_values(const job *j)
{
    for (int w = j->deal.own; w < j->deal.workers; w++) {
        for (int v = 0; v < j->layout->variable_count; v++)
            assert_memory_equal(bel_space_variable(j->spaces[w], v),
                                bel_space_variable(j->space, v),
                                (size_t)j->layout->variables[v].elements * sizeof(float));
    }
}

// Returns the final values; free with bel_free.
static float *train(const deal *d)
{
    enum { MOST_TURNS = 100000 };
    drawn = (uint64_t)d->seed << 32;
    job *j = make_job(d);
    int over = 0;
    bool done[MOST_WORKERS] = {false};
    for (int t = 0; over < d->workers; t++) {
        int w = draw(d->workers);
        assert_in_range(t, 0, MOST_TURNS);
        for (int k = 0; k < d->shards; k++)
            BEL_ASSERT_OK(bel_shard_check(j->shards[k]));
        if (!done[w]) over += done[w] = turn(j, w);
        work_somewhat(j);
    }
    check_values(j);
    float *values = bel_xcalloc((size_t)j->layout->size, sizeof *values);
    for (int v = 0; v < j->layout->variable_count; v++) {
        const bel_layout_variable *variable = &j->layout->variables[v];
        memcpy(values + variable->offset, bel_space_variable(j->space, v),
               (size_t)variable->elements * sizeof *values);
    }
    destroy_job(j);
    return values;
}

static size_t size_of(const deal *d)
{
    bel_assignment *assignment = bel_assignment_create(d->replicas_of, d->workers);
    bel_layout *layout = make_layout(d, assignment->replica_count);
    size_t bytes = (size_t)layout->size * sizeof(float);
    bel_layout_destroy(layout);
    bel_assignment_destroy(assignment);
    return bytes;
}

static const bel_optimizer optimizers[] = {
    {.kind = BEL_OPTIMIZER_ADAM, .learning_rate = 0.1},
    {.kind = BEL_OPTIMIZER_MOMENTUM,
     .learning_rate = 0.1,
     .momentum = 0.9,
     .clip_global_norm = 0.5},
    {.kind = BEL_OPTIMIZER_LAMB, .learning_rate = 0.1},
};

// Rooms for one slot (the least that is safe), a few, and half of all. In some of them new values
// go past the caches.
static void check(deal d)
{
    enum { KB = 1 << 10 };
    static const size_t rooms[] = {0, 1, 600 * KB, 2000 * KB};
    d.room = 0;
    bool replaced = d.replaced;
    d.replaced = false;
    float *expected = train(&d);
    d.replaced = replaced;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        d.room = rooms[i];
        d.streams = i % 2 == 0;
        d.seed++;
        float *values = train(&d);
        assert_memory_equal(values, expected, size_of(&d));
        bel_free(values);
    }
    bel_free(expected);
}

static const deal one_each = {.workers = 13,
                              .replicas_of = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
static const deal several_each = {.workers = 4, .replicas_of = {3, 5, 1, 4}};
static const deal a_pair = {.workers = 2, .replicas_of = {1, 1}};

static void check_deals(deal with)
{
    static int number;
    const deal *deals[] = {&one_each, &several_each, &a_pair};
    for (int i = 0; i < 3; i++) {
        for (int shards = 1; shards <= 2; shards++) {
            if (bel_test_spares(number++)) continue;
            deal d = with;
            d.workers = deals[i]->workers;
            memcpy(d.replicas_of, deals[i]->replicas_of, sizeof d.replicas_of);
            d.shards = shards;
            d.seed = (unsigned)(17 * i + shards);
            check(d);
        }
    }
}

// --- Tests ---------------------------------------------------------------------------------------

static void test_same_bits_in_any_order(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        check_deals((deal){.optimizer = &optimizers[i], .uneven = i > 0});
}

static void test_same_bits_with_rounded_sums(void **state)
{
    (void)state;
    check_deals((deal){.optimizer = &optimizers[0], .rounding = BEL_ROUNDING_BF16, .uneven = true});
    check_deals((deal){.optimizer = &optimizers[1], .rounding = BEL_ROUNDING_INT8, .uneven = true});
}

static void test_same_bits_with_two_step_functions(void **state)
{
    (void)state;
    check_deals((deal){.optimizer = &optimizers[1], .functions = true});
}

static void test_same_bits_beside_a_worker_of_the_same_process(void **state)
{
    (void)state;
    check_deals((deal){.optimizer = &optimizers[0], .own = 1, .uneven = true});
    check_deals((deal){.optimizer = &optimizers[0], .own = 1, .rounding = BEL_ROUNDING_INT8});
}

// Nothing needs room then, however little there is.
static void test_same_bits_if_all_workers_are_of_the_same_process(void **state)
{
    (void)state;
    check_deals((deal){.optimizer = &optimizers[0], .own = MOST_WORKERS, .uneven = true});
}

static void test_same_bits_with_replaced_workers(void **state)
{
    (void)state;
    check_deals((deal){.optimizer = &optimizers[1], .replaced = true});
    check_deals(
        (deal){.optimizer = &optimizers[0], .replaced = true, .rounding = BEL_ROUNDING_BF16});
    check_deals((deal){.optimizer = &optimizers[0], .replaced = true, .functions = true});
}

// A worker writes only to slots that it has got.
static void test_a_report_without_room_is_refused(void **state)
{
    (void)state;
    deal d = a_pair;
    d.shards = 1;
    d.optimizer = &optimizers[0];
    d.room = 1;
    job *j = make_job(&d);
    while (bel_shard_work(j->shards[0])) {
    }
    int order[16], parts = bel_report_order(j->layout, 0, 0, order);
    assert_true(parts > 2);
    for (int w = 0; w < 2; w++) {
        bel_shard_peer peer = {j->shards[0], w, 0};
        for (int p = 0; p < parts; p++) {
            bel_report_frame report = {.chunk = order[p], .node = w};
            size_t bytes = (size_t)j->layout->chunks[order[p]].count * sizeof(float);
            bel_frame frame = bel_report_frame_write(report, NULL, bytes);
            frame.sender = w;
            bool has = bel_shard_place(&peer, &frame) != NULL;
            assert_int_equal(has, p < 1);
        }
    }
    destroy_job(j);
}

static void test_room_by_size_workers_and_depth(void **state)
{
    (void)state;
    static char name[] = "v";
    enum { ELEMENTS = 1 << 20, MOST = 1000 };
    const bel_layout_variable variable = {.name = name, .shape = BEL_SHAPE(ELEMENTS)};
    bel_layout *layout = bel_layout_create(&variable, 1, 1);
    int replicas_of[MOST];
    for (int w = 0; w < MOST; w++)
        replicas_of[w] = 1;
    const size_t slot = ELEMENTS / 8 * sizeof(float), limit = 32 * slot;
    for (int workers = 1; workers <= MOST; workers = workers < 256 ? 4 * workers : workers + 744) {
        bel_assignment *assignment = bel_assignment_create(replicas_of, workers);
        bel_report_room room = bel_report_room_of(layout, assignment, 0, false, limit);
        assert_int_equal(room.limited, workers > 4);
        if (room.limited) {
            assert_int_equal(room.parts, 8);
            assert_int_equal(room.slot_bytes, slot);
            assert_int_equal(room.slots, 32);
            assert_int_equal(room.merge_levels > 0, workers > 16);
        }
        int begun = bel_report_room_at_begin(&room, assignment, workers - 1);
        assert_int_equal(begun, workers <= 4 ? 0 : workers <= 32 ? 32 / workers : 0);
        bel_assignment_destroy(assignment);
    }
    bel_layout_destroy(layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room_by_size_workers_and_depth),
        cmocka_unit_test(test_a_report_without_room_is_refused),
        cmocka_unit_test(test_same_bits_in_any_order),
        cmocka_unit_test(test_same_bits_with_rounded_sums),
        cmocka_unit_test(test_same_bits_with_two_step_functions),
        cmocka_unit_test(test_same_bits_beside_a_worker_of_the_same_process),
        cmocka_unit_test(test_same_bits_if_all_workers_are_of_the_same_process),
        cmocka_unit_test(test_same_bits_with_replaced_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
