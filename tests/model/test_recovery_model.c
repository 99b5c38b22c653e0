// Exhaustive exploration of synchronous training with all its losses: two workers, two shards and a
// master, of which one or two die at any moment, and connections that break.
// label: long, label: thorough (test_ledger_model.c is always run)
#include "support/bel_test.h"

#include "model/expect.h"

static const char stuck[] = "nothing can happen any more, and it is not the end";
static const char cut[] = "the lane of a worker that was admitted is cut";
static const char overwritten[] = "a snapshot is overwritten before its release";
static const char other[] = "a worker computes on another version than it should";
static const char left_out[] = "a version that was due has no checkpoint";
static const char torn[] = "a checkpoint becomes visible while a shard writes into it";

static bel_cluster_config job(int steps)
{
    return (bel_cluster_config){.steps = steps, .save_steps = 1, .in_place = true, .joined = true};
}

static bel_cluster_config loses(int steps, int member)
{
    bel_cluster_config config = job(steps);
    config.deaths = 1;
    config.may_die[member] = true;
    return config;
}

static bel_cluster_config with(bel_cluster_config config, bel_cluster_defect defect)
{
    config.defect = defect;
    return config;
}

// --- Sound models --------------------------------------------------------------------------------

static void test_nobody_dies(void **unused)
{
    (void)unused;
    bel_cluster_config config = job(3);
    bel_expect_sound("3 steps, read in place", config);
    config.in_place = false;
    bel_expect_sound("3 steps, values sent", config);
    config.joined = false;
    config.in_place = true;
    bel_expect_sound("3 steps, from the first join", config);
}

static void test_one_dies(void **unused)
{
    (void)unused;
    bel_expect_sound("3 steps, shard 0 dies", loses(3, SHARD_0));
    bel_expect_sound("3 steps, shard 1 dies", loses(3, SHARD_1));
    bel_expect_sound("3 steps, a worker dies", loses(3, WORKER_0));
    bel_expect_sound("3 steps, the master dies", loses(3, MASTER));
    bel_cluster_config config = loses(3, WORKER_0);
    config.in_place = false;
    bel_expect_sound("3 steps, values sent, a worker dies", config);
    config = loses(1, WORKER_0);
    config.joined = false;
    config.may_die[SHARD_0] = config.may_die[SHARD_1] = config.may_die[MASTER] = true;
    bel_expect_sound("1 step, from the first join, any process dies", config);
}

static void test_two_die(void **unused)
{
    (void)unused;
    bel_cluster_config config = loses(1, WORKER_0);
    config.may_die[SHARD_0] = config.may_die[SHARD_1] = config.may_die[WORKER_1] = true;
    config.deaths = 2;
    bel_expect_sound("1 step, any two members die", config);
    config = loses(1, WORKER_0);
    config.may_die[MASTER] = true;
    config.deaths = 2;
    bel_expect_sound("1 step, the master and a worker die", config);
}

static void test_a_connection_breaks(void **unused)
{
    (void)unused;
    bel_cluster_config config = job(2);
    config.breaks = 1;
    bel_expect_sound("2 steps, a connection breaks", config);
    config = loses(1, WORKER_0);
    config.breaks = 1;
    bel_expect_sound("1 step, a worker dies and a connection breaks", config);
}

// --- Defects are found ---------------------------------------------------------------------------

static void test_defects_of_steps(void **unused)
{
    (void)unused;
    bel_expect_found(with(loses(2, WORKER_0), FORGETS_PREVIOUS_VERSION), stuck);
    bel_expect_found(with(loses(2, WORKER_0), KEEPS_REPORTS_OF_DEAD),
                     "a report is read whose worker is gone");
    bel_expect_found(with(loses(2, WORKER_0), LAST_STEP_TWICE_UNTOLD), stuck);
    bel_expect_found(with(job(2), OVERWRITES_EARLY), "a step is made without all its reports");
    bel_cluster_config config = loses(3, WORKER_0);
    config.may_die[MASTER] = true;
    config.deaths = 2;
    bel_expect_found(with(config, PLACE_BY_MASTERS_WORD), other);
}

static void test_defects_of_snapshots(void **unused)
{
    (void)unused;
    bel_cluster_config breaks = job(2);
    breaks.breaks = 1;
    bel_expect_found(with(job(3), NEVER_WAITS_FOR_RELEASE), overwritten);
    bel_expect_found(with(breaks, SAVES_TWICE), torn);
    bel_expect_found(with(job(3), FINISHES_EARLY), left_out);
    bel_expect_found(with(loses(2, MASTER), ENDS_BY_JOIN), left_out);
    bel_expect_found(with(loses(3, MASTER), SNAPSHOT_NOT_TOLD_AGAIN), stuck);
    bel_expect_found(with(loses(3, MASTER), SNAPSHOT_MIXED_UP), left_out);
    breaks.steps = 3;
    bel_expect_found(with(breaks, RELEASE_NOT_REPEATED), left_out);
    bel_expect_found(with(breaks, OLD_SNAPSHOT_COUNTS), stuck);
}

static void test_defects_of_recovery(void **unused)
{
    (void)unused;
    bel_expect_found(with(loses(2, MASTER), ENDED_NOT_TOLD_AGAIN), stuck);
    bel_expect_found(with(loses(2, MASTER), GENERATION_NOT_RAISED), stuck);
    bel_cluster_config config = loses(2, WORKER_0);
    config.breaks = 1;
    bel_expect_found(with(config, ADMITS_TWICE), cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_dies),
        cmocka_unit_test(test_one_dies),
        cmocka_unit_test(test_two_die),
        cmocka_unit_test(test_a_connection_breaks),
        cmocka_unit_test(test_defects_of_steps),
        cmocka_unit_test(test_defects_of_snapshots),
        cmocka_unit_test(test_defects_of_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
