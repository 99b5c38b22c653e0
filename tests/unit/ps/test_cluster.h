// Shards, workers and the lanes between them in one thread, for the tests of shards and ledgers.
#ifndef BELFRY_TESTS_UNIT_PS_TEST_CLUSTER_H
#define BELFRY_TESTS_UNIT_PS_TEST_CLUSTER_H

#include <limits.h>

#include "base/alloc.h"
#include "optim/settings.h"
#include "ps/client/client.h"
#include "ps/server/control.h"
#include "ps/server/kept.h"
#include "ps/server/shard.h"
#include "support/bel_test.h"
#include "transport/inproc/inproc.h"

enum { MAX_SHARDS = 3, MAX_WORKERS = 4, REPLICAS = 5, LANE_FRAMES = 256 };

typedef struct cluster {
    bel_layout *layout;
    bel_assignment *assignment;
    bel_space *space;
    bel_kept *kept;             // shard 0's, with kept_memory
    float *snapshot, *averages; // for `space`
    bel_doorbell *bell;
    bel_lane *worker_ends[MAX_WORKERS][MAX_SHARDS]; // by worker, by shard
    bel_lane *shard_ends[MAX_SHARDS][MAX_WORKERS];  // by shard, by worker
    bel_lane *inner_ends[MAX_SHARDS][MAX_SHARDS];   // between shards
    bel_shard *shards[MAX_SHARDS];
    bel_counting counting;
    bel_optimizers optimizers[2];
    float *outboxes[MAX_WORKERS]; // used with a ledger
    bel_client *clients[MAX_WORKERS];
    bel_client_config client_configs[MAX_WORKERS];
    void *row_buffers[MAX_WORKERS];
    float *gradients[REPLICAS]; // as large as the space
    float *graves[REPLICAS];    // from replaced workers, content irrelevant
    double stats_list[REPLICAS][BEL_STATS_COUNT];
    int64_t last_version; // training stops here
    int64_t decided;      // newest version decided
    double examples;      // in the step statistics of `decided`
    int asked;            // number of steps of step_functions that are asked for; NULL there: all
    int64_t block_end;    // end of the input, with a ledger
    bool polls;           // clients look once and return CANCELLED instead of waiting
    bel_weight weights[REPLICAS];
    uint64_t hashes[MAX_WORKERS]; // sent with the workers' step statistics
    void (*while_publishing)(struct cluster *c, int64_t version); // NULL: nothing happens then
    bel_control *control; // decides; NULL: the cluster decides
} cluster;

static size_t inner_frames = LANE_FRAMES; // capacity of a lane between shards
enum { TABLE_IDS = 64 };                  // most ids in a replica's batch
static int table_width;                   // width of a table beside the variables; 0: no table
static int64_t table_memory;              // bel_shard_config
static int64_t table_admit_after, table_expire_after; // bel_shard_settings
static bool with_exchanges;
static void *kept_memory;   // for the only shard; NULL: none
static int64_t kept_from;   // version at which a predecessor's state is continued; -1: none
static int64_t check_steps; // bel_shard_settings
static const uint32_t *step_decisions;           // by version, without step_functions; NULL: 0
static const int *step_functions;                // by step: 0, or 1 for the other step function
static bel_control *(*make_control)(cluster *c); // for new clusters; NULL: none
static int64_t first_version;                    // on which workers begin, without kept memory
// NULL: nothing else happens to a shard before its creation, and before its start; no other works
static void (*change_config)(cluster *c, bel_shard_config *config);
static void (*before_start)(cluster *c, int shard);
static bool (*others_work)(void);

// For change_config: new values go past the caches.
static inline void stream_all(cluster *c, bel_shard_config *config)
{
    (void)c;
    config->stream_from = 1;
}

// Variables of every kind, two of them longer than a chunk.
static bel_layout *make_layout(int shards)
{
    static char names[][8] = {"kernel", "bias", "frozen", "mean", "sum", "last", "rows"};
    const bel_layout_variable variables[] = {
        {.name = names[0], .shape = BEL_SHAPE(70, 300)},
        {.name = names[1], .shape = BEL_SHAPE(300), .kept_by = step_functions != NULL ? 2 : 0},
        {.name = names[2], .shape = BEL_SHAPE(5001), .kind = BEL_VARIABLE_FROZEN},
        {.name = names[3], .shape = BEL_SHAPE(10), .kind = BEL_VARIABLE_STATE_MEAN},
        {.name = names[4], .shape = BEL_SHAPE(3), .kind = BEL_VARIABLE_STATE_SUM},
        {.name = names[5], .shape = BEL_SHAPE(130, 130), .kept_by = step_functions != NULL ? 1 : 0},
    };
    bel_layout *layout = bel_layout_create(variables, 6, shards);
    layout->exchanges = with_exchanges;
    if (table_width > 0)
        bel_layout_add_table(layout, &(bel_layout_table){.name = names[6],
                                                         .width = table_width,
                                                         .ids = TABLE_IDS,
                                                         .initializer = {.kind = BEL_INIT_ZEROS}});
    return layout;
}

static uint32_t decide(void *context, int64_t version, const double *stats, bel_steps_left left)
{
    cluster *c = context;
    c->decided = version;
    c->examples = stats == NULL ? 0 : stats[BEL_STATS_EXAMPLES];
    if (c->while_publishing != NULL) c->while_publishing(c, version);
    if (c->control != NULL) return bel_control_decide(c->control, version, stats, left);
    if (left == BEL_STEPS_OVER || version >= c->last_version) return BEL_DECIDE_STOP;
    if (step_functions == NULL) return step_decisions == NULL ? 0 : step_decisions[version];
    if (version >= c->asked) return BEL_DECIDE_LATER;
    return bel_decision_with(0, step_functions[version]);
}

static int function_of(void *context, int64_t version)
{
    const cluster *c = context;
    if (c->control != NULL) return bel_control_function_of(c->control, version);
    return version < c->asked ? step_functions[version] : -1;
}

static void snapshot_ready(void *context, int shard, int64_t version)
{
    (void)context, (void)shard, (void)version; // no step saves here
}

static bool work_for_shards(void *context)
{
    cluster *c = context;
    bool worked = false;
    for (int k = 0; k < c->layout->shard_count; k++)
        worked = bel_shard_work(c->shards[k]) || worked;
    if (others_work != NULL) worked = others_work() || worked;
    return worked;
}

static bool is_polling(void *context)
{
    return ((cluster *)context)->polls;
}

static void make_lanes(cluster *c)
{
    c->bell = bel_doorbell_create();
    for (int k = 0; k < c->layout->shard_count; k++) {
        for (int w = 0; w < c->assignment->worker_count; w++)
            bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &c->worker_ends[w][k],
                                   &c->shard_ends[k][w]);
        if (k > 0) {
            bel_inproc_lane_create(inner_frames, c->bell, c->bell, &c->inner_ends[0][k],
                                   &c->inner_ends[k][0]);
        }
    }
}

static bel_shard_settings settings_of(const cluster *c)
{
    return (bel_shard_settings){.optimizers = c->optimizers,
                                .function_count = step_functions != NULL ? 2 : 1,
                                .counting = c->counting,
                                .check_steps = check_steps,
                                .table_admit_after = table_admit_after,
                                .table_expire_after = table_expire_after};
}

static void fill_space(const bel_space *space)
{
    for (int64_t i = 0; i < space->layout->size; i++)
        space->buffers[0][i] = (float)(i % 101) / 50.0f - 1.0f;
}

static void make_space(cluster *c)
{
    if (kept_memory == NULL) {
        BEL_ASSERT_OK(bel_space_create(c->layout, 2, &c->space));
        fill_space(c->space);
        return;
    }
    const bel_shard_settings settings = settings_of(c);
    c->kept = bel_kept_over(kept_memory, c->layout, 0, &settings);
    float *buffers[2] = {bel_kept_buffer(c->kept, 0), bel_kept_buffer(c->kept, 1)};
    c->space = bel_space_over(c->layout, buffers);
    if (kept_from >= 0) return;
    bel_kept_clear(c->kept); // as a load does
    for (int i = 0; i < c->layout->chunk_count; i++)
        bel_kept_set_version(c->kept, i, 0);
    memset(c->space->buffers[1], 0, (size_t)c->layout->size * sizeof(float));
    fill_space(c->space);
}

static void make_shards(cluster *c)
{
    for (int k = 0; k < c->layout->shard_count; k++) {
        bel_shard_config config = {.layout = c->layout,
                                   .shard = k,
                                   .assignment = c->assignment,
                                   .space = c->space,
                                   .snapshot = c->snapshot,
                                   .snapshot_averages = c->averages,
                                   .kept = c->kept,
                                   .settings = settings_of(c),
                                   .generation = 1,
                                   .worker_lanes = c->shard_ends[k],
                                   .shard_lanes = c->inner_ends[k],
                                   .outboxes = c->outboxes,
                                   .table_memory = table_memory};
        if (change_config != NULL) change_config(c, &config);
        BEL_ASSERT_OK(bel_shard_create(&config, &c->shards[k]));
    }
    if (c->kept != NULL && kept_from < 0) bel_kept_begin(c->kept, 1, 0, 0);
    if (c->kept != NULL && kept_from >= 0)
        BEL_ASSERT_OK(bel_shard_continue(c->shards[0], kept_from));
    for (int k = 0; k < c->layout->shard_count; k++) {
        bool first = k == 0; // only shard 0 leases, and asks for a step's function
        bel_shard_events events = {c, decide, first ? function_of : NULL, snapshot_ready};
        if (first) bel_shard_lease_from(c->shards[k], 0, c->block_end);
        if (before_start != NULL) before_start(c, k);
        bel_shard_start(c->shards[k], &events);
    }
}

static int64_t block_end = INT64_MAX; // for new clusters
static cluster *cluster_create_counting(int shards, const int *replicas_of, int workers,
                                        bel_optimizer optimizer, int64_t last_version,
                                        bel_counting counting)
{
    cluster *c = bel_xcalloc(1, sizeof *c);
    c->last_version = last_version;
    c->block_end = block_end;
    for (int r = 0; r < REPLICAS; r++)
        c->weights[r] = (bel_weight){1, 10};
    c->counting = counting;
    c->layout = make_layout(shards);
    c->assignment = bel_assignment_create(replicas_of, workers);
    assert_in_range(c->assignment->replica_count, 1, REPLICAS);
    BEL_ASSERT_OK(bel_optimizer_check(&optimizer));
    for (int f = 0; f < 2; f++)
        c->optimizers[f] = (bel_optimizers){.main = optimizer};
    make_space(c);
    BEL_ASSERT_OK(bel_space_array(c->layout, "snapshot", &c->snapshot));
    BEL_ASSERT_OK(bel_space_array(c->layout, "snapshot of averages", &c->averages));
    for (int r = 0; r < REPLICAS; r++)
        BEL_ASSERT_OK(bel_space_array(c->layout, "gradients", &c->gradients[r]));
    for (int w = 0; w < workers && counting.workers > 0; w++)
        BEL_ASSERT_OK(bel_space_array(c->layout, "parameters", &c->outboxes[w]));
    make_lanes(c);
    if (make_control != NULL) c->control = make_control(c);
    make_shards(c);
    for (int w = 0; w < workers; w++) {
        c->row_buffers[w] = bel_xcalloc(bel_row_buffer_bytes(c->layout, c->assignment, w) + 1, 1);
        c->client_configs[w] = (bel_client_config){.worker = w,
                                                   .generation = 1,
                                                   .layout = c->layout,
                                                   .assignment = c->assignment,
                                                   .lanes = c->worker_ends[w],
                                                   .row_buffer = c->row_buffers[w],
                                                   .bell = c->bell,
                                                   .ledger = counting.workers > 0,
                                                   .help = work_for_shards,
                                                   .help_context = c,
                                                   .cancelled = is_polling,
                                                   .cancelled_context = c,
                                                   .stall_timeout_secs = 0.2};
        c->clients[w] = bel_client_create(&c->client_configs[w]);
        BEL_ASSERT_OK(bel_client_pull(
            c->clients[w], c->kept != NULL && kept_from > 0 ? kept_from : first_version));
    }
    return c;
}

static inline cluster *cluster_create(int shards, const int *replicas_of, int workers,
                                      bel_optimizer optimizer, int64_t last_version)
{
    return cluster_create_counting(shards, replicas_of, workers, optimizer, last_version,
                                   (bel_counting){.workers = 0});
}

static void cluster_destroy(cluster *c)
{
    for (int k = 0; k < c->layout->shard_count; k++) {
        bel_shard_destroy(c->shards[k]);
        for (int w = 0; w < c->assignment->worker_count; w++) {
            bel_lane_close(c->worker_ends[w][k]);
            bel_lane_close(c->shard_ends[k][w]);
        }
        bel_lane_close(c->inner_ends[0][k]);
        if (k > 0) bel_lane_close(c->inner_ends[k][0]);
    }
    for (int w = 0; w < c->assignment->worker_count; w++) {
        bel_client_destroy(c->clients[w]);
        bel_free(c->row_buffers[w]);
        bel_space_free_array(c->layout, c->outboxes[w]);
    }
    for (int r = 0; r < REPLICAS; r++) {
        bel_space_free_array(c->layout, c->gradients[r]);
        bel_space_free_array(c->layout, c->graves[r]);
    }
    bel_space_free_array(c->layout, c->snapshot);
    bel_space_free_array(c->layout, c->averages);
    bel_space_destroy(c->space);
    bel_kept_destroy(c->kept);
    bel_doorbell_destroy(c->bell);
    bel_control_destroy(c->control);
    bel_assignment_destroy(c->assignment);
    bel_layout_destroy(c->layout);
    bel_free(c);
}

// Replaces a worker by another incarnation; returns the version on which that one begins.
static inline int64_t replace_worker(cluster *c, int worker, uint32_t incarnation)
{
    int64_t begin = INT64_MAX;
    for (int k = 0; k < c->layout->shard_count; k++) {
        int64_t step;
        bel_lane *own, *theirs;
        bel_inproc_lane_create(LANE_FRAMES, c->bell, c->bell, &own, &theirs);
        bel_lane_close(bel_shard_admit(c->shards[k], worker, incarnation, theirs, &step));
        bel_lane_close(c->worker_ends[worker][k]);
        c->worker_ends[worker][k] = own;
        begin = step < begin ? step : begin;
    }
    for (int r = c->assignment->first_replica[worker]; r < c->assignment->first_replica[worker + 1];
         r++) {
        assert_null(c->graves[r]); // at most once in a test
        c->graves[r] = c->gradients[r];
        BEL_ASSERT_OK(bel_space_array(c->layout, "gradients", &c->gradients[r]));
        memset(c->graves[r], 0xa5, bel_space_bytes(c->layout));
    }
    bel_client_destroy(c->clients[worker]);
    c->client_configs[worker].incarnation = incarnation;
    size_t room = bel_row_buffer_bytes(c->layout, c->assignment, worker);
    void *other = bel_xcalloc(room + 1, 1);
    memset(c->row_buffers[worker], 0xa5, room); // its content is now irrelevant
    bel_free(c->row_buffers[worker]);
    c->client_configs[worker].row_buffer = c->row_buffers[worker] = other;
    c->clients[worker] = bel_client_create(&c->client_configs[worker]);
    BEL_ASSERT_OK(bel_client_pull(c->clients[worker], begin));
    return begin;
}

// The report of replica `replica` at `step` for an element of the space.
static float report_element(int replica, int64_t step, int64_t element)
{
    int64_t mixed = element * 7919 + step * 104729 + replica * 1299709;
    return (float)(mixed % 2003) / 1001.0f - 0.9f;
}

static inline uint32_t wait_for(cluster *c, int worker, int64_t version)
{
    uint32_t decision = 0;
    BEL_ASSERT_OK(bel_client_wait(c->clients[worker], version, &decision));
    return decision;
}

// Computes the report of worker `worker` for a step of a step function, and sends its first `most`
// frames.
static void report_part_of(cluster *c, int worker, int64_t step, int function, int most)
{
    uint32_t decision = bel_decision_with(0, function);
    int sent = 0;
    const bel_assignment *assignment = c->assignment;
    bel_weight plain[REPLICAS];
    for (int r = assignment->first_replica[worker]; r < assignment->first_replica[worker + 1];
         r++) {
        plain[r] = bel_weight_once(c->weights[r]);
        for (int64_t i = 0; i < c->layout->size; i++)
            c->gradients[r][i] = report_element(r, step, i);
    }
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        const bel_assignment_node *node = &assignment->nodes[k];
        double examples = 0;
        for (int r = node->first; r < node->first + node->count; r++)
            examples += (double)c->weights[r].examples;
        for (int chunk = 0; chunk < c->layout->chunk_count; chunk++) {
            const bel_chunk *part = &c->layout->chunks[chunk];
            const bel_weight *weights = part->kind == BEL_VARIABLE_STATE_SUM ? plain : c->weights;
            bel_weight weight = bel_assignment_sum_node(
                node, c->gradients + node->first, weights + node->first, part->offset, part->count);
            if (!bel_chunk_changes(part, function) || sent++ >= most) continue;
            BEL_ASSERT_OK(bel_client_report(c->clients[worker], step, decision, chunk, k, weight,
                                            c->gradients[node->first] + part->offset));
        }
        memset(c->stats_list[k], 0, sizeof c->stats_list[k]);
        c->stats_list[k][BEL_STATS_EXAMPLES] = examples;
        if (sent++ >= most) continue;
        BEL_ASSERT_OK(bel_client_stats(c->clients[worker], step, decision, k, c->hashes[worker],
                                       c->stats_list[k]));
    }
}

static inline void report_part(cluster *c, int worker, int64_t step, int most)
{
    report_part_of(c, worker, step, 0, most);
}

static inline void report_step(cluster *c, int worker, int64_t step)
{
    report_part(c, worker, step, INT_MAX);
}

#endif
