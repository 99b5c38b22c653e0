// Snapshots in the middle of a step that one worker does not finish. A shard makes one unless it
// has begun the next version, and then stops until bel_shard_go_on.
#include "unit/ps/test_cluster.h"

static const int replicas_of[] = {3, 2};
enum { WORKERS = 2, STEPS = 3, STOPPED = 1 };

static const bel_optimizer momentum = {
    .kind = BEL_OPTIMIZER_MOMENTUM, .learning_rate = 0.1, .momentum = 0.9};
static const bel_optimizer plain = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1};
static const bel_optimizer clipped = {
    .kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.1, .clip_global_norm = 1};

static const bel_optimizer lamb = {.kind = BEL_OPTIMIZER_LAMB,
                                   .learning_rate = 0.1,
                                   .beta1 = 0.9,
                                   .beta2 = 0.999,
                                   .epsilon = 1e-6};

static void work(cluster *c)
{
    while (work_for_shards(c)) {
    }
}

static void play(cluster *c, int64_t step)
{
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, step), 0);
    for (int w = 0; w < WORKERS; w++)
        report_step(c, w, step);
}

// The version that a worker reads, and its snapshot.
static void check_snapshot(const cluster *c, int shard, const float *version)
{
    for (int i = 0; i < c->layout->chunk_count; i++) {
        const bel_chunk *chunk = &c->layout->chunks[i];
        if (chunk->shard != shard) continue;
        assert_memory_equal(c->snapshot + chunk->offset, version + chunk->offset,
                            (size_t)chunk->count * sizeof(float));
    }
}

static void copy_values(const cluster *c, float *out)
{
    for (int i = 0; i < c->layout->chunk_count; i++) {
        const bel_chunk *chunk = &c->layout->chunks[i];
        const float *values = c->space->buffers[atomic_load(&c->space->current[i])];
        memcpy(out + chunk->offset, values + chunk->offset, (size_t)chunk->count * sizeof *out);
    }
}

static int frames_of(const cluster *c, int worker)
{
    int chunks = 0;
    for (int i = 0; i < c->layout->chunk_count; i++)
        chunks += bel_chunk_changes(&c->layout->chunks[i], 0);
    int nodes = c->assignment->first_node[worker + 1] - c->assignment->first_node[worker];
    return nodes * (chunks + 1);
}

// Worker 1 has sent `cut` frames of a step when the shards are asked, and is replaced afterwards.
// Returns the number of shards that made a snapshot.
static int check_cut(int shards, const bel_optimizer *optimizer, int cut, const float *expected)
{
    cluster *c = cluster_create(shards, replicas_of, WORKERS, *optimizer, STEPS);
    size_t size = (size_t)c->layout->size;
    float *before = bel_xcalloc(size, sizeof *before), *now = bel_xcalloc(size, sizeof *now);
    int count = 0, all = frames_of(c, 1);
    for (int64_t step = 0; step < STOPPED; step++)
        play(c, step);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STOPPED), 0);
    copy_values(c, before);
    report_part(c, 1, STOPPED, cut);
    work(c);
    for (int k = 0; k < shards; k++) {
        int64_t version;
        BEL_ASSERT_OK(bel_shard_snapshot_whole(c->shards[k], &version));
        assert_true(version == STOPPED); // worker 0 has sent nothing
        check_snapshot(c, k, before);
    }
    report_step(c, 0, STOPPED);
    work(c);
    copy_values(c, now);
    assert_memory_equal(now, before, size * sizeof *now); // the report is not applied
    for (int k = 0; k < 2 * shards; k++)
        bel_shard_go_on(c->shards[k % shards]); // the second call has no effect
    work(c);
    copy_values(c, now);
    for (int k = 0; k < shards; k++) {
        int64_t version;
        BEL_ASSERT_OK(bel_shard_snapshot_whole(c->shards[k], &version));
        if (version >= 0) check_snapshot(c, k, version == STOPPED ? before : now);
        count += version >= 0;
        bel_shard_go_on(c->shards[k]);
    }
    if (cut < all) {
        int64_t again = replace_worker(c, 1, 1);
        assert_int_equal(wait_for(c, 1, again), 0);
        report_step(c, 1, again);
    }
    for (int64_t step = STOPPED + 1; step < STEPS; step++)
        play(c, step);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    copy_values(c, now);
    assert_memory_equal(now, expected, size * sizeof *now);
    bel_free(before);
    bel_free(now);
    cluster_destroy(c);
    return count;
}

static void check_all_cuts(const bel_optimizer *optimizer)
{
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        cluster *c = cluster_create(shards, replicas_of, WORKERS, *optimizer, STEPS);
        float *expected = bel_xcalloc((size_t)c->layout->size, sizeof *expected);
        for (int64_t step = 0; step < STEPS; step++)
            play(c, step);
        for (int w = 0; w < WORKERS; w++)
            assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
        copy_values(c, expected);
        int nodes = c->assignment->first_node[2] - c->assignment->first_node[1];
        int all = frames_of(c, 1), frames = all / nodes, broken = 0;
        cluster_destroy(c);
        for (int cut = 0; cut <= all; cut++) {
            int whole = check_cut(shards, optimizer, cut, expected);
            broken += whole < shards;
            if (cut == 0 || cut == all) assert_int_equal(whole, shards);
            if (cut > all - frames && cut < all) assert_true(whole < shards); // a chunk is complete
        }
        assert_true(broken > 0); // the test must meet the time between two chunks
        bel_free(expected);
    }
}

static void momentum_is_whole_or_not(void **state)
{
    (void)state;
    check_all_cuts(&momentum);
}

static void two_passes_are_whole_or_not(void **state)
{
    (void)state;
    check_all_cuts(&clipped);
    check_all_cuts(&lamb); // writes its slots in the first pass
}

// Tables are updated in place: a shard with updated rows makes no snapshot, whatever its chunks
// are.
static void tables_are_whole_or_not(void **state)
{
    (void)state;
    enum { WIDTH = 4 };
    static const int64_t keys[] = {3, 17};
    static const float rows[2 * WIDTH] = {1, 2, 3, 4, 5, 6, 7, 8};
    table_width = WIDTH;
    cluster *c = cluster_create(1, replicas_of, WORKERS, plain, STEPS);
    int64_t version;
    for (int w = 0; w < WORKERS; w++) {
        assert_int_equal(wait_for(c, w, 0), 0);
        BEL_ASSERT_OK(bel_client_pull_rows(c->clients[w], 0, 0, keys, 2));
        BEL_ASSERT_OK(bel_client_wait_rows(c->clients[w], 0));
    }
    for (int w = 0; w < WORKERS; w++) {
        BEL_ASSERT_OK(bel_shard_snapshot_whole(c->shards[0], &version));
        assert_true(version == 0);
        bel_shard_go_on(c->shards[0]);
        for (int k = c->assignment->first_node[w]; k < c->assignment->first_node[w + 1]; k++) {
            bel_row_set set = {2, keys, rows};
            BEL_ASSERT_OK(
                bel_client_report_rows(c->clients[w], 0, 0, 0, k, (bel_weight){1, 10}, &set));
        }
        work(c);
    }
    BEL_ASSERT_OK(bel_shard_snapshot_whole(c->shards[0], &version));
    assert_true(version == -1);
    cluster_destroy(c);
    table_width = 0;
}

// A master may end a generation before the engine has started. The start must not void the
// snapshot, which has the slots only where they are.
static void test_snapshot_before_a_late_start(void **state)
{
    (void)state;
    char *folders[2] = {bel_test_folder(), bel_test_folder()};
    bel_ckpt_shard *parts[2];
    cluster *c = cluster_create(1, replicas_of, WORKERS, momentum, STEPS);
    const bel_shard_events events = {c, decide, function_of, snapshot_ready};
    for (int64_t step = 0; step < STEPS; step++)
        play(c, step);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(wait_for(c, w, STEPS), BEL_DECIDE_STOP);
    BEL_ASSERT_OK(bel_shard_snapshot_now(c->shards[0]));
    BEL_ASSERT_OK(bel_shard_write(c->shards[0], folders[0], STEPS, 0, &parts[0]));
    bel_shard_start(c->shards[0], &events);
    BEL_ASSERT_OK(bel_shard_write(c->shards[0], folders[1], STEPS, 0, &parts[1]));
    size_t sizes[2];
    uint8_t *bytes[2];
    for (int i = 0; i < 2; i++) {
        bytes[i] = bel_ckpt_shard_pack(parts[i], &sizes[i]); // checksums of all pieces
        bel_ckpt_shard_destroy(parts[i]);
        bel_test_remove_folder(folders[i]);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    bel_free(bytes[0]);
    bel_free(bytes[1]);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_snapshot_before_a_late_start),
        cmocka_unit_test(momentum_is_whole_or_not),
        cmocka_unit_test(two_passes_are_whole_or_not),
        cmocka_unit_test(tables_are_whole_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
