// Rows of a table between client and shards: values against double arithmetic for every number of
// shards, repeated frames, and frames that must be refused.
#include "unit/ps/test_cluster.h"

#include <math.h>

static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.5};
static const int replicas_of[] = {3, 2};
enum { WORKERS = 2, WIDTH = 4, KEYS = 40, STEPS = 3 };

static float row_value(int worker, int64_t step, int64_t key, int j)
{
    return (float)((worker * 37 + step * 101 + key * 13 + j) % 89) / 44.0f - 1.0f;
}

static bool names(int worker, int64_t step, int64_t key)
{
    return (key + step + worker) % 3 != 0;
}

// A worker pulls the rows of its step, checks them, and reports; all of it by its first node, which
// says the sum of its replicas.
static void play(cluster *c, int worker, int64_t step, double (*expected)[WIDTH])
{
    int64_t keys[KEYS], count = 0;
    float rows[KEYS * WIDTH];
    for (int64_t key = 0; key < KEYS; key++)
        if (names(worker, step, key)) keys[count++] = key * 1000003 - 7;
    BEL_ASSERT_OK(bel_client_pull_rows(c->clients[worker], step, 0, keys, count));
    BEL_ASSERT_OK(bel_client_wait_rows(c->clients[worker], step));
    for (int64_t i = 0; i < count; i++) {
        int64_t key = (keys[i] + 7) / 1000003;
        const float *row = bel_client_row(c->clients[worker], 0, i);
        for (int j = 0; j < WIDTH; j++) {
            assert_true(fabs((double)row[j] - expected[key][j]) < 1e-5);
            rows[i * WIDTH + j] = row_value(worker, step, key, j);
        }
    }
    const bel_deal *deal = c->deal;
    for (int k = deal->first_node[worker]; k < deal->first_node[worker + 1]; k++) {
        bool first = k == deal->first_node[worker];
        bel_row_set set = {first ? count : 0, keys, rows};
        BEL_ASSERT_OK(bel_client_report_rows(c->clients[worker], step, 0, 0, k, &set));
    }
    report_step(c, worker, step);
}

static void rows_are_updated(void **state)
{
    (void)state;
    table_width = WIDTH;
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        double expected[KEYS][WIDTH] = {{0}};
        cluster *c = cluster_create(shards, replicas_of, WORKERS, sgd, STEPS);
        for (int64_t step = 0; step < STEPS; step++) {
            for (int w = 0; w < WORKERS; w++)
                assert_int_equal(wait_for(c, w, step), 0);
            for (int w = 0; w < WORKERS; w++)
                play(c, w, step, expected);
            for (int64_t key = 0; key < KEYS; key++)
                for (int w = 0; w < WORKERS; w++)
                    for (int j = 0; names(w, step, key) && j < WIDTH; j++)
                        expected[key][j] -= 0.5 * (double)row_value(w, step, key, j) / REPLICAS;
        }
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
        for (int k = 0; k < shards; k++)
            BEL_ASSERT_OK(bel_shard_check(c->shards[k]));
        cluster_destroy(c);
    }
    table_width = 0;
}

static bel_status *send_one(bel_frame frame)
{
    cluster *c = cluster_create(1, replicas_of, WORKERS, sgd, STEPS);
    assert_int_equal(wait_for(c, 0, 0), 0);
    frame.generation = 1;
    BEL_ASSERT_OK(bel_lane_send(c->worker_ends[0][0], &frame));
    while (work_for_shards(c)) {
    }
    bel_status *status = bel_shard_check(c->shards[0]);
    cluster_destroy(c);
    return status;
}

static void malformed_frames_are_refused(void **state)
{
    (void)state;
    static const int64_t descending[] = {5, 4};
    static const int64_t report[] = {5, 0, 0};
    const bel_frame bad[] = {
        {.kind = BEL_FRAME_ROW_PULL, .chunk = 1},
        {.kind = BEL_FRAME_ROW_PULL, .chunk = -1},
        {.kind = BEL_FRAME_ROW_PULL, .payload = descending, .payload_bytes = sizeof descending},
        {.kind = BEL_FRAME_ROW_PULL, .payload = descending, .payload_bytes = 7},
        {.kind = BEL_FRAME_ROW_REPORT, .chunk = 1},
        {.kind = BEL_FRAME_ROW_REPORT, .node = 99},
        {.kind = BEL_FRAME_ROW_REPORT, .payload = report, .payload_bytes = 8},
        {.kind = BEL_FRAME_ROWS},
    };
    table_width = WIDTH;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(send_one(bad[i]), BEL_INTERNAL, "malformed frame");
    BEL_ASSERT_OK(send_one((bel_frame){.kind = BEL_FRAME_ROW_REPORT,
                                       .payload = report,
                                       .payload_bytes = sizeof report})); // one row
    table_width = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_updated),
        cmocka_unit_test(malformed_frames_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
