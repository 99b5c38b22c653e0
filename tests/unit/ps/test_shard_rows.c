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
    if (step == 1 && key % 8 == 7) return false;
    return (key + step + worker) % 3 != 0;
}

enum { PULLED = 1, REPORTED_TO_ONE, REPORTED, WHOLE = 100 };

// A worker pulls the rows of its step, checks them, and reports. Its first node reports the sum of
// its replicas. The worker may end after `cut` parts: nothing, the pull, reports of rows to the
// first shard only, all of them, then one more frame for each.
static void play_part(cluster *c, int worker, int64_t step, double (*expected)[WIDTH], int cut)
{
    int64_t keys[KEYS], count = 0;
    float rows[KEYS * WIDTH];
    if (cut == 0) return;
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
    if (cut == PULLED) return;
    const bel_assignment *assignment = c->assignment;
    if (cut == REPORTED_TO_ONE) {
        bel_lane_close(c->shard_ends[1][worker]);
        c->shard_ends[1][worker] = NULL;
    }
    for (int k = assignment->first_node[worker]; k < assignment->first_node[worker + 1]; k++) {
        bool first = k == assignment->first_node[worker];
        bel_row_set set = {first ? count : 0, keys, rows};
        bel_status *status = bel_client_report_rows(
            c->clients[worker], step, 0, 0, k,
            (bel_weight){assignment->nodes[k].count, 10 * assignment->nodes[k].count}, &set);
        if (cut == REPORTED_TO_ONE) {
            assert_int_equal(bel_status_code(status), BEL_UNAVAILABLE);
            bel_status_ignore(status); // intended
        } else {
            BEL_ASSERT_OK(status);
        }
    }
    if (cut == REPORTED_TO_ONE) return;
    report_part(c, worker, step, cut - REPORTED);
}

static void play(cluster *c, int worker, int64_t step, double (*expected)[WIDTH])
{
    play_part(c, worker, step, expected, WHOLE);
}

// A key that a step does not name loses its row, or its count, if rows expire after one step.
static void update(double (*expected)[WIDTH], int64_t step)
{
    static int uses[KEYS];
    for (int64_t key = 0; key < KEYS; key++) {
        bool named = names(0, step, key) || names(1, step, key);
        if (step == 0 || (!named && table_expire_after == 1)) uses[key] = 0;
        if (!named && table_expire_after == 1) memset(expected[key], 0, sizeof expected[key]);
        uses[key] += named;
        for (int w = 0; uses[key] >= table_admit_after && w < WORKERS; w++)
            for (int j = 0; names(w, step, key) && j < WIDTH; j++)
                expected[key][j] -= 0.5 * (double)row_value(w, step, key, j) / REPLICAS;
    }
}

// All 40 keys but 5 are named in each of the three steps, and these in the first and last.
static void check_counts(const cluster *c, int shards)
{
    enum { SELDOM = KEYS / 8 };
    bel_shard_counters sum = {0};
    for (int k = 0; k < shards; k++) {
        bel_shard_counters counters = bel_shard_count(c->shards[k]);
        sum.rows += counters.rows;
        sum.waiting_keys += counters.waiting_keys;
        sum.admitted_rows += counters.admitted_rows;
        sum.expired_rows += counters.expired_rows;
    }
    bool expires = table_expire_after == 1, waits = table_admit_after == 2 && expires;
    int64_t expired = expires && !waits ? SELDOM : 0;
    assert_int_equal(sum.rows, waits ? KEYS - SELDOM : KEYS);
    assert_int_equal(sum.waiting_keys, waits ? SELDOM : 0);
    assert_int_equal(sum.expired_rows, expired);
    assert_int_equal(sum.admitted_rows, sum.rows + expired);
}

static void check_updates(void)
{
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        double expected[KEYS][WIDTH] = {{0}};
        cluster *c = cluster_create(shards, replicas_of, WORKERS, sgd, STEPS);
        for (int64_t step = 0; step < STEPS; step++) {
            for (int w = 0; w < WORKERS; w++)
                assert_int_equal(wait_for(c, w, step), 0);
            for (int w = 0; w < WORKERS; w++)
                play(c, w, step, expected);
            update(expected, step);
        }
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
        for (int k = 0; k < shards; k++)
            BEL_ASSERT_OK(bel_shard_check(c->shards[k]));
        check_counts(c, shards);
        cluster_destroy(c);
    }
}

static void rows_are_updated(void **state)
{
    (void)state;
    table_width = WIDTH;
    for (table_admit_after = 1; table_admit_after <= 2; table_admit_after++)
        for (table_expire_after = 0; table_expire_after <= 1; table_expire_after++)
            check_updates();
    table_width = 0;
    table_admit_after = table_expire_after = 0;
}

// Wide rows, of which the limit holds one block of 16. The keys after those get no row: they keep
// their start values, and the shard counts them.
static void full_tables_continue(void **state)
{
    (void)state;
    enum { WIDE = 1 << 15, NAMED = 20, HELD = 16 };
    table_width = WIDE;
    table_memory = 5 << 20;
    static float ones[NAMED * WIDE];
    int64_t keys[NAMED];
    for (int i = 0; i < NAMED; i++)
        keys[i] = i * 1000003 - 7;
    for (int i = 0; i < NAMED * WIDE; i++)
        ones[i] = 1;
    cluster *c = cluster_create(1, replicas_of, WORKERS, sgd, STEPS);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, step), 0);
        for (int w = 0; w < WORKERS; w++) {
            BEL_ASSERT_OK(bel_client_pull_rows(c->clients[w], step, 0, keys, NAMED));
            BEL_ASSERT_OK(bel_client_wait_rows(c->clients[w], step));
            for (int64_t i = 0; i < NAMED; i++) {
                double expected = i < HELD ? -0.5 * WORKERS / REPLICAS * (double)step : 0;
                const float *row = bel_client_row(c->clients[w], 0, i);
                for (int j = 0; j < WIDE; j++)
                    assert_true(fabs((double)row[j] - expected) < 1e-5);
            }
            for (int k = c->assignment->first_node[w]; k < c->assignment->first_node[w + 1]; k++) {
                bel_row_set set = {k == c->assignment->first_node[w] ? NAMED : 0, keys, ones};
                bel_weight weight = {c->assignment->nodes[k].count,
                                     10 * c->assignment->nodes[k].count};
                BEL_ASSERT_OK(bel_client_report_rows(c->clients[w], step, 0, 0, k, weight, &set));
            }
            report_step(c, w, step);
        }
    }
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    BEL_ASSERT_OK(bel_shard_check(c->shards[0]));
    assert_int_equal(bel_shard_count(c->shards[0]).refused_rows, STEPS * (NAMED - HELD));
    cluster_destroy(c);
    table_width = 0;
    table_memory = 0;
}

// Worker 1 ends after `cut` parts of step 1 and is replaced, before or after worker 0 reports. Its
// successor gets the rows of the step that it repeats, whatever was updated meanwhile.
static void check_replaced(int cut, bool last)
{
    double expected[KEYS][WIDTH] = {{0}}, before[KEYS][WIDTH];
    cluster *c = cluster_create(2, replicas_of, WORKERS, sgd, STEPS);
    for (int64_t step = 0; step < STEPS; step++) {
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, step), 0);
        memcpy(before, expected, sizeof before);
        if (last) play(c, 0, step, before);
        if (step == 1) {
            play_part(c, 1, step, before, cut);
            while (work_for_shards(c)) {
            }
            int64_t again = replace_worker(c, 1, 1);
            wait_for(c, 1, again);
            if (again == step) play(c, 1, step, before);
        } else {
            play(c, 1, step, before);
        }
        if (!last) play(c, 0, step, before);
        update(expected, step);
    }
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    for (int k = 0; k < 2; k++)
        BEL_ASSERT_OK(bel_shard_check(c->shards[k]));
    cluster_destroy(c);
}

static void replaced_workers_get_the_same_rows(void **state)
{
    (void)state;
    table_width = WIDTH;
    for (int cut = 0; cut < REPORTED + 24; cut++) {
        table_admit_after = 1 + cut % 2;
        table_expire_after = cut / 2 % 2;
        check_replaced(cut, false);
        check_replaced(cut, true);
    }
    table_width = 0;
    table_admit_after = table_expire_after = 0;
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
    const bel_row_pull_frame pull = {0};
    const bel_row_report_frame rows = {0};
    const bel_frame bad[] = {
        bel_row_pull_frame_write((bel_row_pull_frame){.table = 1}, NULL, 0),
        bel_row_pull_frame_write((bel_row_pull_frame){.table = -1}, NULL, 0),
        bel_row_pull_frame_write(pull, descending, sizeof descending),
        bel_row_pull_frame_write(pull, descending, 7),
        bel_row_pull_frame_write((bel_row_pull_frame){.number = 99}, NULL, 0),
        bel_row_pull_frame_write((bel_row_pull_frame){.number = -1}, NULL, 0),
        bel_row_report_frame_write((bel_row_report_frame){.table = 1}, NULL, 0),
        bel_row_report_frame_write((bel_row_report_frame){.node = 99}, NULL, 0),
        bel_row_report_frame_write(rows, report, 8),
        bel_rows_frame_write((bel_rows_frame){0}, NULL, 0),
    };
    table_width = WIDTH;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        BEL_ASSERT_FAILS(send_one(bad[i]), BEL_INTERNAL, "malformed frame");
    BEL_ASSERT_OK(send_one(bel_row_report_frame_write(rows, report, sizeof report))); // one row
    table_width = 0;
}

static bel_status *count_snapshot(void *context, int64_t count, const int64_t *keys,
                                  const float *rows)
{
    (void)keys, (void)rows;
    *(int64_t *)context += count;
    return NULL;
}

// The update that learns of the release ends the snapshot; what reads it then is refused.
static void released_snapshots_end(void **state)
{
    (void)state;
    static const uint32_t decisions[STEPS + 1] = {BEL_DECIDE_SAVE, BEL_DECIDE_RELEASED};
    double expected[KEYS][WIDTH] = {{0}};
    bel_ckpt_shard *saved;
    int64_t count = 0;
    table_width = WIDTH;
    step_decisions = decisions;
    cluster *c = cluster_create(1, replicas_of, WORKERS, sgd, STEPS);
    for (int64_t step = 0; step < 2; step++) {
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, step), decisions[step]);
        if (step == 1) BEL_ASSERT_OK(bel_shard_read_rows(c->shards[0], 0, count_snapshot, &count));
        for (int w = 0; w < WORKERS; w++)
            play(c, w, step, expected);
        update(expected, step);
    }
    assert_true(count > 0);
    assert_int_equal(wait_for(c, 0, 2), 0);
    BEL_ASSERT_FAILS(bel_shard_read_rows(c->shards[0], 0, count_snapshot, &count),
                     BEL_FAILED_PRECONDITION, "its snapshot was released before it was read");
    BEL_ASSERT_FAILS(bel_shard_write(c->shards[0], bel_test_own_folder(), 1, 0, &saved),
                     BEL_FAILED_PRECONDITION, "its snapshot was released before it was read");
    cluster_destroy(c);
    table_width = 0;
    step_decisions = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_updated),
        cmocka_unit_test(full_tables_continue),
        cmocka_unit_test(replaced_workers_get_the_same_rows),
        cmocka_unit_test(malformed_frames_are_refused),
        BEL_TEST_IN_FOLDER(released_snapshots_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
