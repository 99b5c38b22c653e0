// The cost model of `belfry plan`: steps computed by hand, and what each bottleneck is.
#include <math.h>

#include "plan/cost_model.h"
#include "support/bel_test.h"

enum { MOST = 64 };

static const bel_cost_rates rates = {
    .add = 0.5,
    .lanes = {[BEL_COST_SHM] = {.exchange = 100, .frame = 10, .byte = 0},
              [BEL_COST_GRPC] = {.exchange = 1000, .frame = 20, .byte = 0.25}}};

// Arrays of a deal.
static bel_cost_worker workers[MOST];
static bel_cost_shard shards[MOST];
static bel_lane_counts lanes[MOST * MOST];
static int cores[2 * MOST];

// Makes workers of one thread, and shards of 1,000 floats in one chunk; on one host with two
// cores, or each with a host. Each lane has 2 frames of 4,000 bytes up, and the same down.
static bel_cost_deal make_deal(int worker_count, int shard_count, bool apart)
{
    for (int w = 0; w < worker_count; w++)
        workers[w] = (bel_cost_worker){
            .host = apart ? w : 0, .threads = 1, .reports = 1, .compute_ns = 10000};
    for (int k = 0; k < shard_count; k++)
        shards[k] =
            (bel_cost_shard){.host = apart ? worker_count + k : 0, .floats = 1000, .chunks = 1};
    for (int i = 0; i < worker_count * shard_count; i++)
        lanes[i] = apart ? (bel_lane_counts){2, 4000, 2, 4000} : (bel_lane_counts){2, 4000, 1, 0};
    for (int h = 0; h < 2 * MOST; h++)
        cores[h] = 2;
    return (bel_cost_deal){.workers = workers,
                           .worker_count = worker_count,
                           .shards = shards,
                           .shard_count = shard_count,
                           .cores = cores,
                           .host_count = apart ? worker_count + shard_count : 1,
                           .lanes = lanes,
                           .pass_ns = 1,
                           .link_ns = 1,
                           .latency_ns = 500};
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-6 * (1 + fabs(expected)))
        fail_msg("expected %g, got %g", expected, value);
}

// Pass: 1,000 floats and 3 frames a worker. A worker wakes its shard and is woken, with 3 frames.
static void test_one_host_shares_its_cores(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(1, 1, false);
    bel_cost one = bel_cost_of(&deal, &rates);
    assert_near(one.parts_ns[BEL_COST_COMPUTING], 10000);
    assert_near(one.parts_ns[BEL_COST_PASS], 1000 + 3 * 10);
    assert_near(one.parts_ns[BEL_COST_WAKE_UPS], 100 + 3 * 10);
    assert_near(one.step_ns, 10000 + 1030 + 130);
    deal = make_deal(2, 1, false); // two cores
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 10000);
    deal = make_deal(6, 1, false);
    bel_cost six = bel_cost_of(&deal, &rates);
    assert_near(six.parts_ns[BEL_COST_COMPUTING], 30000);
    assert_near(six.parts_ns[BEL_COST_PASS], 1000 + 5 * 500 + 6 * 3 * 10);
    assert_near(six.parts_ns[BEL_COST_WAKE_UPS], 100 + 3 * 3 * 10);
    assert_near(six.parts_ns[BEL_COST_LATENCY] + six.parts_ns[BEL_COST_SHARD_LINK], 0);
    assert_int_equal(six.bottleneck, BEL_COST_COMPUTING);
    assert_int_equal(six.worker.up_bytes, 4000);
    assert_int_equal(six.shard.up_bytes, 6 * 4000);
    assert_int_equal(six.shard.down_frames, 6);
}

// Four workers and two shards: 16,000 bytes each way at a shard, 8,000 at a worker.
static void test_links_between_hosts(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(4, 2, true);
    bel_cost cost = bel_cost_of(&deal, &rates);
    double pass = 1000 + 3 * 500 + 4 * (4 * 20 + 8000 * 0.25);
    assert_near(cost.parts_ns[BEL_COST_SHARD_LINK], 2 * 16000);
    assert_near(cost.parts_ns[BEL_COST_WORKER_LINK], 2 * 8000);
    assert_near(cost.parts_ns[BEL_COST_LATENCY], 2 * 500);
    assert_near(cost.parts_ns[BEL_COST_PASS], pass);
    double wake = 1000 + 2 * (4 * 20 + 8000 * 0.25);
    assert_near(cost.step_ns, 10000 + 16000 + 16000 + pass + 1000 + wake);
    assert_int_equal(cost.bottleneck, BEL_COST_SHARD_LINK);
    shards[0].chunks = shards[1].chunks = 8; // they overlap
    assert_near(bel_cost_of(&deal, &rates).step_ns,
                10000 + 16000 + (16000 + pass) / 8 + 1000 + wake);
    deal.link_ns = 0;
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_SHARD_LINK], 0);
}

static void test_each_part_can_be_the_longest(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(2, 1, true);
    deal.link_ns = 0;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_COMPUTING);
    deal.latency_ns = 1e6;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_LATENCY);
    deal.pass_ns = 1e6;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_PASS);
    deal.link_ns = 1e6;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_SHARD_LINK);
    deal = make_deal(1, 8, true);
    deal.link_ns = 1e3;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_WORKER_LINK);
    deal.link_ns = 0;
    workers[0].compute_ns = 1;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_WAKE_UPS);
}

// More shards divide the pass and its links; more workers never shorten a step.
static void test_more_workers_and_more_shards(void **state)
{
    (void)state;
    double before = 0;
    for (int w = 1; w <= MOST; w *= 2) {
        bel_cost_deal deal = make_deal(w, 1, true);
        double step = bel_cost_of(&deal, &rates).step_ns;
        assert_true(step > before);
        before = step;
    }
    bel_cost_deal deal = make_deal(16, 1, true);
    double one = bel_cost_of(&deal, &rates).step_ns;
    deal = make_deal(16, 4, true);
    for (int k = 0; k < 4; k++)
        shards[k].floats = 250;
    for (int i = 0; i < 16 * 4; i++)
        lanes[i] = (bel_lane_counts){2, 1000, 2, 1000};
    assert_true(bel_cost_of(&deal, &rates).step_ns < one);
}

static void test_lanes_within_a_host_may_be_grpc(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(1, 1, false);
    assert_int_equal(bel_cost_lane_of(&deal, 0, 0), BEL_COST_SHM);
    deal.grpc = true;
    assert_int_equal(bel_cost_lane_of(&deal, 0, 0), BEL_COST_GRPC);
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_LATENCY], 0);
    deal = make_deal(1, 1, true);
    assert_int_equal(bel_cost_lane_of(&deal, 0, 0), BEL_COST_GRPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host_shares_its_cores),
        cmocka_unit_test(test_links_between_hosts),
        cmocka_unit_test(test_each_part_can_be_the_longest),
        cmocka_unit_test(test_more_workers_and_more_shards),
        cmocka_unit_test(test_lanes_within_a_host_may_be_grpc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
