// The cost model of `belfry plan`: steps computed by hand, and what each bottleneck is; time and
// money of an epoch, and time to recover.
#include <math.h>

#include "plan/cost_model.h"
#include "plan/plan.h"
#include "support/bel_test.h"

enum { MOST = 64 };

static const bel_cost_rates rates = {
    .add = 0.5,
    .media = {[BEL_COST_SHM] = {.exchange = 200, .wake = 30, .message = 10, .byte = 0},
              [BEL_COST_GRPC] = {.exchange = 1000, .wake = 60, .message = 20, .byte = 0.25}}};

// Waiting of an exchange besides its work: four ends of messages, and two receivers that wake.
static const double shm_wait = 200 - 4 * 10 - 2 * 30, grpc_wait = 1000 - 4 * 20 - 2 * 60;

// Arrays of a deal.
static bel_cost_actor actors[4 * MOST];
static bel_cost_lane lanes[MOST * MOST];
static int cores[4 * MOST];

static bel_cost_deal deal_of(int actor_count, int lane_count, int host_count)
{
    for (int h = 0; h < 4 * MOST; h++)
        cores[h] = 2;
    return (bel_cost_deal){.actors = actors,
                           .actor_count = actor_count,
                           .lanes = lanes,
                           .lane_count = lane_count,
                           .cores = cores,
                           .host_count = host_count,
                           .pass_ns = 1,
                           .link_ns = 1,
                           .latency_ns = 500};
}

static bel_cost_actor worker_on(int host)
{
    return (bel_cost_actor){
        .role = BEL_COST_WORKER, .host = host, .threads = 1, .compute_ns = 10000};
}

static bel_cost_actor shard_on(int host, int reports)
{
    return (bel_cost_actor){.role = BEL_COST_SHARD,
                            .host = host,
                            .threads = 1,
                            .floats = 1000,
                            .chunks = 1,
                            .reports = reports};
}

static bel_cost_lane lane_of(int low, int high, bool remote)
{
    bel_lane_counts here = {
        .up_frames = 2, .up_bytes = 4000, .up_messages = 1, .down_frames = 1, .down_messages = 1};
    bel_lane_counts there = {.up_frames = 2,
                             .up_bytes = 4000,
                             .up_messages = 1,
                             .down_frames = 2,
                             .down_bytes = 4000,
                             .down_messages = 1};
    return (bel_cost_lane){.low = low,
                           .high = high,
                           .medium = remote ? BEL_COST_GRPC : BEL_COST_SHM,
                           .counts = remote ? there : here};
}

// Makes workers of one thread, and shards of 1,000 floats in one chunk; on one host with two
// cores, or each with a host. Each lane has a message of 4,000 bytes up, and between hosts the same
// down.
static bel_cost_deal make_deal(int worker_count, int shard_count, bool apart)
{
    for (int w = 0; w < worker_count; w++)
        actors[w] = worker_on(apart ? w : 0);
    for (int k = 0; k < shard_count; k++)
        actors[worker_count + k] = shard_on(apart ? worker_count + k : 0, worker_count);
    for (int i = 0; i < worker_count * shard_count; i++)
        lanes[i] = lane_of(i / shard_count, worker_count + i % shard_count, apart);
    return deal_of(worker_count + shard_count, worker_count * shard_count,
                   apart ? worker_count + shard_count : 1);
}

static void assert_near(double value, double expected)
{
    if (fabs(value - expected) > 1e-6 * (1 + fabs(expected)))
        fail_msg("expected %g, got %g", expected, value);
}

// A worker sends a message, wakes and takes one: 50. The shard does the same, and passes.
static void test_one_host_shares_its_cores(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(1, 1, false);
    bel_cost one = bel_cost_of(&deal, &rates);
    assert_near(one.parts_ns[BEL_COST_COMPUTING], 10000);
    assert_near(one.parts_ns[BEL_COST_WORKER_LANES], 2 * 10 + 30);
    assert_near(one.parts_ns[BEL_COST_PASS], 1000 + 2 * 10 + 30);
    assert_near(one.parts_ns[BEL_COST_WAKE_UPS], shm_wait);
    assert_near(one.step_ns, 10000 + 50 + 1050 + shm_wait);
    assert_near(one.processor_ns[BEL_COST_WORKER], 10000 + 50);
    assert_near(one.processor_ns[BEL_COST_SHARD], 1050);
    deal = make_deal(2, 1, false); // two cores
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 10000);
    deal = make_deal(6, 1, false);
    bel_cost six = bel_cost_of(&deal, &rates);
    assert_near(six.parts_ns[BEL_COST_COMPUTING], 10000 + 5 * 10000 / 2.0);
    assert_near(six.parts_ns[BEL_COST_WORKER_LANES], 50 + 5 * 50 / 2.0);
    assert_near(six.parts_ns[BEL_COST_PASS], 1000 + 5 * 500 + 6 * 2 * 10 + 30);
    assert_near(six.processor_ns[BEL_COST_WORKER], 6 * 10050);
    assert_near(six.parts_ns[BEL_COST_LATENCY] + six.parts_ns[BEL_COST_SHARD_LINK], 0);
    assert_int_equal(six.bottleneck, BEL_COST_COMPUTING);
    assert_int_equal(six.most[BEL_COST_WORKER].up_bytes, 4000);
    assert_int_equal(six.most[BEL_COST_SHARD].up_bytes, 6 * 4000);
    assert_int_equal(six.most[BEL_COST_SHARD].down_frames, 6);
}

// The third of three bursts on two cores begins when the others are over. An input takes a core as
// well.
static void test_bursts_wait_for_cores(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(3, 1, false);
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 20000);
    for (int w = 0; w < 3; w++)
        actors[w].threads = 2; // they fill the cores
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 30000);
    deal = make_deal(2, 1, false);
    actors[0].input_ns = actors[1].input_ns = 1000;
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 11000);
    deal = make_deal(1, 1, false); // the other core is free
    actors[0].input_ns = 1000;
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_COMPUTING], 10000);
    assert_near(bel_cost_of(&deal, &rates).processor_ns[BEL_COST_WORKER], 11050);
    actors[1].threads = 2; // two chunks
    actors[1].chunks = 2;
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_PASS], 500 + 50 / 2.0);
    cores[0] = 1; // the exchange takes no less than its work
    bel_cost cost = bel_cost_of(&deal, &rates);
    assert_near(cost.parts_ns[BEL_COST_COMPUTING], 11000);
    assert_near(cost.step_ns, 11000 + 50 + 1050 + shm_wait);
}

// Four workers and two shards: 16,000 bytes each way at a shard, 8,000 at a worker.
static void test_links_between_hosts(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(4, 2, true);
    bel_cost cost = bel_cost_of(&deal, &rates);
    double pass = 1000 + 3 * 500 + 4 * (2 * 20 + 8000 * 0.25) + 60;
    double own = 2 * (2 * 20 + 8000 * 0.25) + 60;
    assert_near(cost.parts_ns[BEL_COST_SHARD_LINK], 16000);
    assert_near(cost.parts_ns[BEL_COST_WORKER_LINK], 8000);
    assert_near(cost.parts_ns[BEL_COST_LATENCY], 2 * 500);
    assert_near(cost.parts_ns[BEL_COST_PASS], pass);
    assert_near(cost.step_ns, 10000 + 16000 + 16000 + pass + own + 1000 + grpc_wait);
    assert_int_equal(cost.bottleneck, BEL_COST_SHARD_LINK);
    actors[4].chunks = actors[5].chunks = 8; // they overlap
    pass = 4 * (2 * 20 + 8000 * 0.25) + 60;
    pass += (1000 + 3 * 500) / 8.0;
    assert_near(bel_cost_of(&deal, &rates).step_ns,
                10000 + 16000 + (16000 + pass + own) / 8 + 1000 + grpc_wait);
    deal.link_ns = 0;
    assert_near(bel_cost_of(&deal, &rates).parts_ns[BEL_COST_SHARD_LINK], 0);
}

// Four workers, of which 0 and 2 have relays, which report to a shard. All have separate hosts.
static bel_cost_deal make_relays(void)
{
    for (int w = 0; w < 4; w++)
        actors[w] = worker_on(w);
    for (int r = 0; r < 2; r++)
        actors[4 + r] = (bel_cost_actor){.role = BEL_COST_RELAY,
                                         .host = 2 * r,
                                         .threads = 1,
                                         .level = 1,
                                         .floats = 1000,
                                         .chunks = 1,
                                         .reports = 2};
    actors[6] = shard_on(4, 2);
    lanes[0] = lane_of(1, 4, true); // the first reporter is in the relay's process
    lanes[1] = lane_of(3, 5, true);
    lanes[2] = lane_of(4, 6, true);
    lanes[3] = lane_of(5, 6, true);
    bel_cost_deal deal = deal_of(7, 4, 5);
    deal.levels = 1;
    return deal;
}

static void test_relays_add_a_level(void **state)
{
    (void)state;
    bel_cost_deal deal = make_relays();
    bel_cost cost = bel_cost_of(&deal, &rates);
    double lane = 2 * 20 + 8000 * 0.25;
    double relay = 500 + 2 * lane + 2 * 60, pass = 1000 + 500 + 2 * lane + 60;
    assert_near(cost.parts_ns[BEL_COST_RELAYS], relay);
    assert_near(cost.parts_ns[BEL_COST_PASS], pass);
    assert_near(cost.parts_ns[BEL_COST_LATENCY], 2 * 2 * 500);
    assert_near(cost.parts_ns[BEL_COST_WAKE_UPS], 2 * grpc_wait);
    assert_near(cost.parts_ns[BEL_COST_WORKER_LINK], 4000);
    assert_near(cost.parts_ns[BEL_COST_RELAY_LINK], 8000);
    assert_near(cost.parts_ns[BEL_COST_SHARD_LINK], 8000); // instead of four workers'
    assert_near(cost.processor_ns[BEL_COST_RELAY], 2 * relay);
    double links = 2 * (4000 + 8000); // to relays, and to the shard, each way
    assert_near(cost.step_ns, 10000 + links + lane + 60 + relay + pass + 2000 + 2 * grpc_wait);
    assert_int_equal(cost.most[BEL_COST_SHARD].up_bytes, 2 * 4000);
    assert_int_equal(cost.most[BEL_COST_RELAY].up_bytes, 2 * 4000);
}

// Two shards, each with the other's mirror: a sum goes there, and a second update follows.
static void test_copies_add_a_sum_and_an_update(void **state)
{
    (void)state;
    bel_cost_deal deal = make_deal(1, 2, true);
    bel_cost without = bel_cost_of(&deal, &rates);
    for (int k = 0; k < 2; k++) {
        actors[1 + k].mirrored = true;
        actors[1 + k].mirror = 1000;
        lanes[2 + k] = lane_of(1 + k, 2 - k, true);
        lanes[2 + k].counts.down_bytes = 0;
    }
    deal.lane_count = 4;
    bel_cost cost = bel_cost_of(&deal, &rates);
    double work = 500 + 1000 + 2 * (2 * 20 + 4000 * 0.25) + 2 * 60;
    assert_near(cost.parts_ns[BEL_COST_COPIES], work);
    assert_near(cost.parts_ns[BEL_COST_PASS], without.parts_ns[BEL_COST_PASS] + work);
    assert_near(cost.parts_ns[BEL_COST_SHARD_LINK], 4000 + 4000);
    assert_near(cost.step_ns, without.step_ns + work + 4000 + 2 * 500 + grpc_wait);
    assert_near(cost.processor_ns[BEL_COST_SHARD], without.processor_ns[BEL_COST_SHARD] + 2 * work);
    assert_near(without.parts_ns[BEL_COST_COPIES], 0);
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
    actors[0].compute_ns = 1;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_WORKER_LANES);
    deal = make_deal(1, 1, false);
    actors[0].compute_ns = 1;
    deal.pass_ns = 0;
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_WAKE_UPS);
    deal = make_relays();
    deal.link_ns = deal.latency_ns = deal.pass_ns = 0;
    for (int a = 0; a < 6; a++) {
        actors[a].compute_ns = 1;
        actors[a].floats *= 100;
    }
    assert_int_equal(bel_cost_of(&deal, &rates).bottleneck, BEL_COST_RELAYS);
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
        actors[16 + k].floats = 250;
    for (int i = 0; i < 16 * 4; i++)
        lanes[i].counts.up_bytes = lanes[i].counts.down_bytes = 1000;
    assert_true(bel_cost_of(&deal, &rates).step_ns < one);
}

// Steps of half a second and 100 examples: 5 s for 1,000 records, on 4 hosts of 7.2 an hour.
static void test_outlook(void **state)
{
    (void)state;
    bel_plan_facts facts = {.price = 7.2,
                            .epoch_records = 1000,
                            .silence_secs = 10,
                            .start_ns = 2e9,
                            .state_bytes = 3e9,
                            .state_ns = 1,
                            .save_secs = 600};
    bel_plan_outlook outlook = bel_plan_outlook_of(&facts, 5e8, 100, 4);
    assert_near(outlook.epoch_secs, 5);
    assert_near(outlook.epoch_money, 5.0 / 3600 * 4 * 7.2);
    assert_near(outlook.process_back_secs, 2.5 + 3 + 300);
    assert_near(outlook.host_back_secs, 10 + 2.5 + 3 + 300);
    facts.save_steps = 40;
    assert_near(bel_plan_outlook_of(&facts, 5e8, 100, 4).host_back_secs, 10 + 2.5 + 3 + 10);
    facts.kept = true; // in the host's memory
    outlook = bel_plan_outlook_of(&facts, 5e8, 100, 4);
    assert_near(outlook.process_back_secs, 2.5);
    assert_near(outlook.host_back_secs, 10 + 2.5 + 3 + 10);
    facts.copied = true;
    assert_near(bel_plan_outlook_of(&facts, 5e8, 100, 4).host_back_secs, 10 + 2.5 + 3);
    facts.kept = facts.copied = false;
    facts.save_steps = facts.save_secs = facts.price = 0;
    outlook = bel_plan_outlook_of(&facts, 5e8, 100, 4);
    assert_true(outlook.host_back_secs < 0 && outlook.process_back_secs < 0); // no checkpoint
    assert_near(outlook.epoch_money, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host_shares_its_cores),
        cmocka_unit_test(test_bursts_wait_for_cores),
        cmocka_unit_test(test_links_between_hosts),
        cmocka_unit_test(test_relays_add_a_level),
        cmocka_unit_test(test_copies_add_a_sum_and_an_update),
        cmocka_unit_test(test_each_part_can_be_the_longest),
        cmocka_unit_test(test_more_workers_and_more_shards),
        cmocka_unit_test(test_outlook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
