// Hashes of the parameters: when shard 0 asks for them, and its reaction if they differ.
#include "unit/ps/test_cluster.h"

enum { STEPS = 8, WORKERS = 3 };

static const int replicas_of[] = {2, 1, 2};
static const bel_optimizer sgd = {.kind = BEL_OPTIMIZER_SGD, .learning_rate = 0.5};

static cluster *begin(int64_t every)
{
    check_steps = every;
    return cluster_create(2, replicas_of, WORKERS, sgd, STEPS);
}

// All workers report c->hashes; returns shard 0's decision for the step.
static uint32_t make_step(cluster *c, int64_t step)
{
    uint32_t decision = wait_for(c, 0, step);
    for (int w = 0; w < WORKERS; w++) {
        assert_int_equal(wait_for(c, w, step), decision);
        report_step(c, w, step);
    }
    while (work_for_shards(c)) {
    }
    return decision;
}

static void check_asked(int64_t every, const char *asked)
{
    cluster *c = begin(every);
    for (int64_t step = 0; step < STEPS; step++)
        assert_int_equal(make_step(c, step), asked[step] == 'x' ? BEL_DECIDE_CHECK : 0);
    assert_int_equal(wait_for(c, 0, STEPS), BEL_DECIDE_STOP);
    cluster_destroy(c);
}

static void test_when(void **state)
{
    (void)state;
    check_asked(0, "........");
    check_asked(1, "xxxxxxxx");
    check_asked(3, "x..x..x.");
    check_asked(INT64_MAX, "x.......");
}

// A newcomer is asked with all others, at the next step decided.
static void test_newcomer(void **state)
{
    (void)state;
    cluster *c = begin(INT64_MAX);
    assert_int_equal(make_step(c, 0), BEL_DECIDE_CHECK);
    assert_int_equal(wait_for(c, 1, 1), 0);
    assert_int_equal(replace_worker(c, 1, 1), 1);
    assert_int_equal(make_step(c, 1), 0);
    assert_int_equal(make_step(c, 2), BEL_DECIDE_CHECK);
    assert_int_equal(make_step(c, 3), 0);
    cluster_destroy(c);
}

// A worker that repeats a checked step reports its hash again, and the last report counts.
static void test_repeated(void **state)
{
    (void)state;
    for (uint64_t hash = 7; hash < 9; hash++) {
        cluster *c = begin(1);
        c->hashes[0] = c->hashes[1] = c->hashes[2] = 7;
        wait_for(c, 1, 0);
        report_step(c, 1, 0);
        while (work_for_shards(c)) {
        }
        assert_int_equal(replace_worker(c, 1, 1), 0);
        c->hashes[1] = hash;
        (void)make_step(c, 0);
        bel_status *status = bel_shard_check(c->shards[0]);
        assert_int_equal(bel_status_code(status), hash == 7 ? BEL_OK : BEL_DATA_LOSS);
        bel_status_destroy(status);
        cluster_destroy(c);
    }
}

// The step is not published, so no worker continues.
static void check_differs(const uint64_t hashes[WORKERS], const char *message)
{
    cluster *c = begin(2);
    (void)make_step(c, 0);
    memcpy(c->hashes, hashes, WORKERS * sizeof *hashes);
    (void)make_step(c, 1); // hashes not asked for are ignored
    (void)make_step(c, 2);
    uint32_t decision;
    BEL_ASSERT_FAILS(bel_shard_check(c->shards[0]), BEL_DATA_LOSS, message);
    BEL_ASSERT_FAILS(bel_client_wait(c->clients[0], 3, &decision), BEL_DEADLINE_EXCEEDED,
                     "worker 0 waits for version 3");
    cluster_destroy(c);
}

static void test_who_differs(void **state)
{
    (void)state;
    check_differs((const uint64_t[]){1, 1, 0xab},
                  "worker 2 computes step 2 on other parameters than "
                  "worker 0: their hash is 00000000000000ab, "
                  "expected 0000000000000001");
    check_differs((const uint64_t[]){9, 5, 5}, "worker 0 computes step 2 on other parameters than "
                                               "worker 1");
    check_differs((const uint64_t[]){1, 2, 3}, "worker 1 computes step 2 on other parameters than "
                                               "worker 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when),
        cmocka_unit_test(test_newcomer),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_who_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
