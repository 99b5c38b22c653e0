// Exhaustive exploration of trainings that stop, pause or continue in other ways than from a
// checkpoint: requests to stop, other numbers of workers, processes that must go, shards whose
// state outlives them, a stop without a worker; and of tables.
// label: long, label: thorough (test_ledger_model.c is always run)
#include "support/bel_test.h"

#include "model/expect.h"

static bel_cluster_config job(int steps)
{
    return (bel_cluster_config){.steps = steps, .save_steps = 1, .in_place = true, .joined = true};
}

// Only the end is saved.
static bel_cluster_config long_job(int steps)
{
    bel_cluster_config config = job(steps);
    config.save_steps = 9;
    return config;
}

static bel_cluster_config loses(bel_cluster_config config, int member)
{
    config.deaths++;
    config.may_die[member] = true;
    return config;
}

static bel_cluster_config breaks(bel_cluster_config config)
{
    config.breaks = 1;
    return config;
}

static bel_cluster_config stops(bel_cluster_config config)
{
    config.stops = 1;
    return config;
}

static bel_cluster_config scales(bel_cluster_config config, bool up)
{
    config.scales = 1;
    config.one_plays = up;
    return config;
}

static bel_cluster_config leaves(bel_cluster_config config, int member)
{
    config.leaves++;
    config.may_leave[member] = true;
    return config;
}

static bel_cluster_config keeps(bel_cluster_config config)
{
    config.keeps = true;
    return config;
}

static bel_cluster_config mirrors(bel_cluster_config config)
{
    config.mirrors = true;
    return config;
}

static bel_cluster_config rescues(bel_cluster_config config)
{
    config.rescues = true;
    return config;
}

static bel_cluster_config gives_up(bel_cluster_config config)
{
    config.gives_up = true;
    return config;
}

static bel_cluster_config tables(bel_cluster_config config)
{
    config.tables = true;
    return config;
}

static bel_cluster_config with(bel_cluster_config config, bel_cluster_defect defect)
{
    config.defect = defect;
    return config;
}

// --- Sound models --------------------------------------------------------------------------------

static void test_stops(void **unused)
{
    (void)unused;
    bel_expect_sound("3 steps, a stop", stops(job(3)));
    bel_expect_sound("2 steps, a stop, a worker dies", stops(loses(long_job(2), WORKER_0)));
    bel_expect_sound("2 steps, a stop, shard 0 dies", stops(loses(job(2), SHARD_0)));
    bel_expect_sound("2 steps, a stop, the master dies", stops(loses(long_job(2), MASTER)));
    bel_expect_sound("2 steps, a stop, a connection breaks", stops(breaks(long_job(2))));
    bel_cluster_config config = stops(loses(long_job(2), WORKER_0));
    config.ledger = config.takes_stale = true;
    config.max_lead = 0;
    bel_expect_sound("2 steps, bounded by 0, a stop, a worker dies", config);
}

static void test_pauses(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, from 2 workers to 1", scales(job(2), false));
    bel_expect_sound("2 steps, from 1 worker to 2", scales(job(2), true));
    bel_expect_sound("1 step, from 2 workers to 1, a worker dies",
                     scales(loses(long_job(1), WORKER_1), false));
    bel_expect_sound("1 step, from 1 worker to 2, the master dies",
                     scales(loses(long_job(1), MASTER), true));
    bel_expect_sound("1 step, from 2 workers to 1, shard 1 dies",
                     scales(loses(job(1), SHARD_1), false));
    bel_expect_sound("1 step, from 1 worker to 2, a connection breaks",
                     scales(breaks(long_job(1)), true));
    bel_expect_sound("1 step, from 2 workers to 1, the master dies",
                     scales(loses(long_job(1), MASTER), false));
    bel_expect_sound("2 steps, a stop, from 2 workers to 1", stops(scales(long_job(2), false)));
}

static void test_farewells(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, a worker leaves", leaves(long_job(2), WORKER_0));
    bel_expect_sound("2 steps, shard 1 leaves", leaves(long_job(2), SHARD_1));
    bel_expect_sound("2 steps, the master leaves", leaves(long_job(2), MASTER));
    bel_expect_sound("1 step, shard 0 and a worker leave",
                     leaves(leaves(long_job(1), SHARD_0), WORKER_0));
    bel_cluster_config config = leaves(loses(long_job(2), SHARD_1), SHARD_1);
    config.may_die[WORKER_0] = config.may_die[SHARD_0] = true;
    bel_expect_sound("2 steps, shard 1 leaves, a shard or a worker dies", config);
    bel_expect_sound("1 step, shard 0 leaves, the master dies",
                     leaves(loses(long_job(1), MASTER), SHARD_0));
}

static void test_kept_shards(void **unused)
{
    (void)unused;
    bel_expect_sound("3 steps, shard 0 dies with its state kept",
                     keeps(loses(long_job(3), SHARD_0)));
    bel_expect_sound("3 steps, shard 1 dies with its state kept",
                     keeps(loses(long_job(3), SHARD_1)));
    bel_cluster_config config = keeps(loses(loses(long_job(1), SHARD_0), SHARD_1));
    bel_expect_sound("1 step, both shards die with their state kept", config);
    config = keeps(loses(job(3), SHARD_1));
    config.save_steps = 2;
    bel_expect_sound("3 steps, the second saved, shard 1 dies with its state kept", config);
    config = keeps(loses(job(3), SHARD_0));
    config.save_steps = 2;
    bel_expect_sound("3 steps, the second saved, shard 0 dies with its state kept", config);
    bel_expect_sound("2 steps, all saved, shard 0 dies with its state kept",
                     keeps(loses(job(2), SHARD_0)));
    bel_expect_sound("1 step, shard 0 with its state and the master die",
                     keeps(loses(loses(long_job(1), SHARD_0), MASTER)));
    bel_expect_sound("2 steps, shard 0 dies with its state kept, a connection breaks",
                     keeps(breaks(loses(long_job(2), SHARD_0))));
    bel_expect_sound("1 step, shard 1 with its state and a worker die",
                     keeps(loses(loses(long_job(1), SHARD_1), WORKER_0)));
    bel_expect_sound("2 steps, a stop, shard 1 dies with its state kept",
                     stops(keeps(loses(long_job(2), SHARD_1))));
}

static void test_mirrors(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, mirrors", mirrors(long_job(2)));
    bel_expect_sound("2 steps, mirrors, shard 0 dies", mirrors(loses(long_job(2), SHARD_0)));
    bel_expect_sound("2 steps, mirrors, shard 1 dies", mirrors(loses(long_job(2), SHARD_1)));
    bel_cluster_config config = mirrors(loses(job(2), SHARD_1));
    bel_expect_sound("2 steps, mirrors, all saved, shard 1 dies", config);
    config = mirrors(loses(loses(long_job(1), SHARD_0), SHARD_1));
    bel_expect_sound("1 step, mirrors, two shards die", config);
    bel_expect_sound("1 step, mirrors, shard 1 and a worker die",
                     mirrors(loses(loses(long_job(1), SHARD_1), WORKER_0)));
}

static void test_stops_without_a_worker(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, a stop while a worker is lost",
                     rescues(stops(loses(long_job(2), WORKER_0))));
    bel_expect_sound("2 steps, all saved, a stop while a worker is lost",
                     rescues(stops(loses(job(2), WORKER_0))));
    bel_expect_sound("1 step, a stop while a worker is lost, shard 1 dies",
                     rescues(stops(loses(loses(long_job(1), WORKER_0), SHARD_1))));
    bel_expect_sound("2 steps, a stop while a connection is broken",
                     rescues(stops(breaks(long_job(2)))));
}

static void test_training_without_a_worker(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, a lost worker is given up", gives_up(loses(long_job(2), WORKER_1)));
    bel_expect_sound("2 steps, all saved, a lost worker is given up",
                     gives_up(loses(job(2), WORKER_1)));
    bel_cluster_config config = gives_up(loses(loses(long_job(1), WORKER_1), SHARD_0));
    bel_expect_sound("1 step, a lost worker is given up, shard 0 dies", config);
}

static void test_tables(void **unused)
{
    (void)unused;
    bel_expect_sound("2 steps, tables", tables(long_job(2)));
    bel_expect_sound("2 steps, tables, a worker dies", tables(loses(long_job(2), WORKER_0)));
    bel_cluster_config config = tables(loses(loses(long_job(1), WORKER_0), WORKER_1));
    bel_expect_sound("1 step, tables, two workers die", config);
    config = tables(loses(long_job(2), WORKER_0));
    config.in_place = false;
    bel_expect_sound("2 steps, tables, values sent, a worker dies", config);
    bel_expect_sound("2 steps, tables, shard 0 dies", tables(loses(long_job(2), SHARD_0)));
}

// --- Defects are found ---------------------------------------------------------------------------

static const char stuck[] = "nothing can happen any more, and it is not the end";
static const char mixed[] = "a checkpoint becomes visible whose parts are not of its version";
static const char wrong[] = "the job ends, and its last checkpoint is not that of the last step";
static const char twice[] = "an update is not made of the version before";

static void test_defects_of_stops(void **unused)
{
    (void)unused;
    static const char lost[] = "a request to stop is lost";
    bel_expect_found(with(stops(breaks(long_job(2))), STOP_NOT_REPEATED), lost);
    bel_expect_found(with(stops(loses(job(2), SHARD_0)), STOP_FORGOTTEN), lost);
    bel_expect_found(with(stops(job(2)), END_IS_OLD_SNAPSHOT), stuck);
    bel_expect_found(with(stops(job(2)), SAVES_WHAT_IS_SAVED),
                     "a checkpoint becomes visible that is not newer than the last");
}

static void test_defects_of_pauses(void **unused)
{
    (void)unused;
    bel_expect_found(with(scales(long_job(2), false), PAUSE_TAKES_OVER), stuck);
    bel_expect_found(with(scales(long_job(2), false), PAUSE_IS_AN_END), wrong);
    bel_expect_found(with(scales(loses(long_job(2), MASTER), true), ASSIGNMENT_BY_REQUEST),
                     "a step is made without all its reports");
    bel_expect_found(with(leaves(long_job(2), SHARD_1), SHARD_LEAVES_AT_ONCE),
                     "training goes back although no state was lost");
}

static void test_defects_of_kept_shards(void **unused)
{
    (void)unused;
    bel_cluster_config config = keeps(loses(long_job(2), SHARD_1));
    bel_expect_found(with(config, HELD_CHUNK_UPDATED), twice);
    bel_expect_found(with(config, HELD_AT_HIGHEST),
                     "a worker computes on another version than it should");
    bel_expect_found(with(config, HELD_WITHOUT_STOP),
                     "the shards stand further apart than they may");
    bel_expect_found(with(stops(config), HELD_STEP_NOT_MADE), mixed);
    config.save_steps = 1;
    static const char left_out[] = "a version that was due has no checkpoint";
    bel_expect_found(with(config, HELD_WITHOUT_SNAPSHOT), left_out);
    bel_expect_found(with(config, KEPT_FORGETS_SNAPSHOT), left_out);
}

static void test_defects_of_mirrors(void **unused)
{
    (void)unused;
    static const char apart[] = "the shards stand further apart than they may";
    static const char turn[] = "a mirror makes a step that is not its next one";
    bel_cluster_config config = mirrors(loses(long_job(2), SHARD_1));
    bel_expect_found(with(config, MIRROR_NOT_AWAITED), turn);
    bel_expect_found(with(config, MIRROR_CHUNK_UPDATED), turn);
    bel_expect_found(with(config, MIRROR_NOT_COUNTED), apart);
    bel_expect_found(with(config, MIRROR_NOT_FILLED), apart);
    bel_expect_found(with(config, MIRROR_LACKS_SUM), stuck);
    config.save_steps = 1;
    bel_expect_found(with(config, HELD_HALF_SNAPSHOT), mixed);
}

static void test_defects_of_stops_without_a_worker(void **unused)
{
    (void)unused;
    bel_cluster_config config = rescues(stops(loses(long_job(2), WORKER_0)));
    bel_expect_found(with(config, WHOLE_THOUGH_MADE), mixed);
    bel_expect_found(with(config, WHOLE_NOT_COMPARED), wrong);
    bel_expect_found(with(config, WHOLE_NOT_RELEASED), stuck);
    bel_expect_found(with(gives_up(loses(long_job(2), WORKER_1)), WHOLE_THOUGH_MADE), mixed);
    bel_expect_found(with(rescues(stops(breaks(long_job(2)))), WHOLE_CONTINUES), wrong);
}

static void test_defects_of_tables(void **unused)
{
    (void)unused;
    static const char other[] = "a worker gets rows of another version than it should";
    bel_expect_found(with(tables(loses(long_job(1), WORKER_0)), ROWS_NOT_KEPT), other);
    bel_expect_found(with(tables(long_job(1)), ROWS_UPDATED_EARLY),
                     "a step is made without all its reports");
    bel_expect_found(with(tables(long_job(1)), REPORTS_BEFORE_ROWS), other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_farewells),
        cmocka_unit_test(test_kept_shards),
        cmocka_unit_test(test_mirrors),
        cmocka_unit_test(test_stops_without_a_worker),
        cmocka_unit_test(test_training_without_a_worker),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_defects_of_stops),
        cmocka_unit_test(test_defects_of_pauses),
        cmocka_unit_test(test_defects_of_kept_shards),
        cmocka_unit_test(test_defects_of_mirrors),
        cmocka_unit_test(test_defects_of_stops_without_a_worker),
        cmocka_unit_test(test_defects_of_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
