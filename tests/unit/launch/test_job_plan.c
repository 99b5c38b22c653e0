// Plans: towers, threads, hosts and the table.
#include "base/alloc.h"
#include "launch/plan.h"
#include "support/bel_test.h"

static bel_plan *plan_of(bel_cluster *cluster, int towers, int threads)
{
    bel_plan *plan;
    BEL_ASSERT_OK(bel_plan_create(cluster, towers, threads, &plan));
    return plan;
}

static void test_counts(void **state)
{
    (void)state;
    bel_cluster *cluster = bel_cluster_create(2, 3, 1);
    bel_plan *plan = plan_of(cluster, 2, 1);
    assert_int_equal(plan->process_count, 7);
    assert_int_equal(plan->worker_count, 2);
    assert_int_equal(plan->replica_count, 4);
    assert_int_equal(plan->shard_count, 3);
    assert_int_equal(plan->processes[0].role, BEL_ROLE_MASTER);
    assert_int_equal(plan->processes[0].towers, 0);
    bel_task *task = bel_plan_task(plan, "j", 5);
    assert_int_equal(task->role, BEL_ROLE_WORKER);
    assert_int_equal(task->index, 1);
    assert_int_equal(task->ps_count, 3);
    assert_int_equal(task->evaluator_count, 1);
    assert_true(task->towers[0] == 2 && task->towers[1] == 2);
    bel_task_destroy(task);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

static void test_training_master(void **state)
{
    (void)state;
    bel_cluster *cluster = bel_cluster_create(2, 0, 0);
    cluster->master_trains = true;
    bel_plan *plan = plan_of(cluster, 0, 1);
    assert_int_equal(plan->process_count, 3);
    assert_int_equal(plan->worker_count, 3);
    assert_int_equal(plan->shard_count, 3); // none of their own: every worker has one
    assert_true(plan->processes[0].has_shard && plan->processes[2].has_shard);
    assert_int_equal(plan->processes[1].index, 1);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

static void test_threads(void **state)
{
    (void)state;
    bel_cluster *cluster;
    static const char text[] = "machines: {box: {cores: 8, devices: 2}}\n"
                               "workers: {count: 3, machine: box, hosts: [a, b]}\n";
    BEL_ASSERT_OK(bel_cluster_parse(text, sizeof text - 1, "c.yaml", &cluster));
    bel_plan *plan = plan_of(cluster, 0, 0);
    const bel_plan_process *workers = plan->processes + 2;
    assert_string_equal(workers[0].host, "a");
    assert_string_equal(workers[1].host, "b");
    assert_string_equal(workers[2].host, "a");
    assert_int_equal(workers[0].thread_count, 2); // 8 cores for 4 towers
    assert_int_equal(workers[1].thread_count, 4);
    bel_plan_destroy(plan);
    BEL_ASSERT_FAILS(bel_plan_create(cluster, 3, 0, &plan), BEL_INVALID_ARGUMENT,
                     "3 towers are asked for each worker, but its machine box has 2 devices");
    bel_cluster_destroy(cluster);
}

static void test_table(void **state)
{
    (void)state;
    bel_cluster *cluster = bel_cluster_create(1, 2, 0);
    bel_plan *plan = plan_of(cluster, 2, 1);
    const int64_t shard_bytes[] = {2 << 20, 2 << 20};
    const bel_plan_sizes sizes = {.parameters = 1 << 20,
                                  .slot_elements = 1 << 20,
                                  .shard_bytes = shard_bytes,
                                  .activation_bytes = 1 << 20};
    bel_str text = {0};
    bel_plan_write(plan, &sizes, &text);
    assert_string_equal(text.text,
                        "process       host              towers  threads      shard     memory\n"
                        "master        this host              0        1          -    4.0 MiB\n"
                        "ps 0          this host              0        1    2.0 MiB   12.0 MiB\n"
                        "ps 1          this host              0        1    2.0 MiB   12.0 MiB\n"
                        "worker 0      this host              2        1          -   18.0 MiB\n"
                        "T = 1 worker, all counted (N = 1); R = 2 replicas in a step; 2 shards\n"
                        "1048576 parameters, 4.0 MiB\n");
    bel_str_deinit(&text);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_training_master),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
