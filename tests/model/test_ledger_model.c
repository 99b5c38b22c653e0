// Exhaustive exploration of training where one report makes a step: backups (only a report on the
// newest version counts), async, and bounded, with and without losses.
#include "support/bel_test.h"

#include "model/expect.h"

enum { NEVER = 9 }; // more steps than there are: only the end is saved

static bel_cluster_config backups(int steps)
{
    return (bel_cluster_config){
        .steps = steps, .save_steps = NEVER, .ledger = true, .max_lead = -1, .joined = true};
}

static bel_cluster_config async(int steps)
{
    bel_cluster_config config = backups(steps);
    config.takes_stale = true;
    return config;
}

static bel_cluster_config bounded(int steps, int most)
{
    bel_cluster_config config = async(steps);
    config.max_lead = most;
    return config;
}

static bel_cluster_config loses(bel_cluster_config config, int member)
{
    config.deaths = 1;
    config.may_die[member] = true;
    return config;
}

static bel_cluster_config saves(bel_cluster_config config)
{
    config.save_steps = 1;
    return config;
}

static bel_cluster_config with(bel_cluster_config config, bel_cluster_defect defect)
{
    config.defect = defect;
    return config;
}

static void test_nobody_dies(void **unused)
{
    (void)unused;
    bel_expect_sound("backups, 3 steps", backups(3));
    bel_expect_sound("async, 3 steps", async(3));
    bel_expect_sound("bounded by 1, 3 steps", bounded(3, 1));
    bel_expect_sound("bounded by 0, 2 steps, each saved", saves(bounded(2, 0)));
}

static void test_a_worker_dies(void **unused)
{
    (void)unused;
    bel_expect_sound("backups, 2 steps, a worker dies", loses(backups(2), WORKER_0));
    bel_expect_sound("async, 2 steps, a worker dies", loses(async(2), WORKER_0));
    bel_expect_sound("bounded by 0, 2 steps, a worker dies", loses(bounded(2, 0), WORKER_0));
}

static void test_others_die(void **unused)
{
    (void)unused;
    bel_expect_sound("bounded by 0, 2 steps, shard 1 dies", loses(bounded(2, 0), SHARD_1));
    bel_expect_sound("bounded by 0, 2 steps, each saved, shard 0 dies",
                     loses(saves(bounded(2, 0)), SHARD_0));
    bel_expect_sound("bounded by 0, 2 steps, the master dies", loses(bounded(2, 0), MASTER));
}

static void test_defects(void **unused)
{
    (void)unused;
    static const char twice[] = "a block is used twice";
    static const char stuck[] = "nothing can happen any more, and it is not the end";
    static const char copying[] = "a version is published while the one before is copied";
    bel_expect_found(with(bounded(3, 0), NAMED_TWICE), twice);
    bel_expect_found(with(loses(async(2), WORKER_0), LOST_IN_THE_MIDDLE), stuck);
    bel_expect_found(with(loses(bounded(2, 0), WORKER_0), TAKES_OVER_WHAT_IS_LOST),
                     "no end can be reached from here");
    bel_expect_found(with(loses(async(2), WORKER_0), KEEPS_REPORTS_OF_DEAD),
                     "a report is read whose worker is gone");
    bel_expect_found(with(backups(2), ANSWERS_WHILE_PUBLISHING), copying);
    bel_expect_found(with(loses(async(2), WORKER_0), ANSWERS_BEHIND_LEDGER), stuck);
    bel_expect_found(with(backups(2), STALE_REPORT_COUNTS), "a report on an older version counts");
    bel_expect_found(with(loses(saves(bounded(2, 0)), SHARD_1), LEASES_FORGOTTEN), twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_dies),
        cmocka_unit_test(test_a_worker_dies),
        cmocka_unit_test(test_others_die),
        cmocka_unit_test(test_defects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
