// Job plans: hosts, towers, threads, the tasks made from a plan, and the table.
#include "base/alloc.h"
#include "base/str.h"
#include "base/thread.h"
#include "launch/cluster/plan.h"
#include "support/bel_test.h"

static bel_cluster *cluster_of(const char *text)
{
    bel_cluster *cluster;
    BEL_ASSERT_OK(bel_cluster_parse(text, strlen(text), "c.yaml", &cluster));
    return cluster;
}

static bel_plan *plan_of(const bel_cluster *cluster, int towers, int threads)
{
    bel_plan *plan;
    BEL_ASSERT_OK(bel_plan_create(cluster, towers, threads, &plan));
    return plan;
}

static void test_processes(void **state)
{
    (void)state;
    bel_cluster *cluster = bel_cluster_create(2, 3, 1);
    bel_plan *plan = plan_of(cluster, 2, 1);
    static const struct {
        bel_role role;
        int index, towers;
        bool has_shard;
    } expected[] = {{BEL_ROLE_MASTER, 0, 0, false},   {BEL_ROLE_PS, 0, 0, true},
                    {BEL_ROLE_PS, 1, 0, true},        {BEL_ROLE_PS, 2, 0, true},
                    {BEL_ROLE_WORKER, 0, 2, false},   {BEL_ROLE_WORKER, 1, 2, false},
                    {BEL_ROLE_EVALUATOR, 0, 0, false}};
    assert_int_equal(plan->process_count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < plan->process_count; i++) {
        assert_int_equal(plan->processes[i].role, expected[i].role);
        assert_int_equal(plan->processes[i].index, expected[i].index);
        assert_int_equal(plan->processes[i].towers, expected[i].towers);
        assert_int_equal(plan->processes[i].has_shard, expected[i].has_shard);
        assert_null(plan->processes[i].host);
    }
    assert_int_equal(plan->worker_count, 2);
    assert_int_equal(plan->replica_count, 4);
    assert_int_equal(plan->shard_count, 3);
    bel_plan_destroy(plan);
    bel_plan_destroy(NULL);
    bel_cluster_destroy(cluster);
}

static void test_training_master(void **state)
{
    (void)state;
    bel_cluster *cluster = cluster_of("scaleTier: CUSTOM\nmasterType: complex_model_m_gpu\n"
                                      "workerType: standard_gpu\nworkerCount: 2\n");
    bel_plan *plan = plan_of(cluster, 0, 1);
    assert_int_equal(plan->process_count, 3);
    assert_int_equal(plan->worker_count, 3);
    assert_int_equal(plan->replica_count, 6); // 4 of the master, 1 of each worker
    assert_int_equal(plan->shard_count, 3);   // without servers every worker has one
    assert_true(plan->processes[0].has_shard && plan->processes[2].has_shard);
    assert_int_equal(plan->processes[1].index, 1); // the master is worker 0
    bel_task *task = bel_plan_task(plan, "j", 2);
    assert_int_equal(task->index, 2);
    assert_true(task->master_trains);
    assert_int_equal(task->towers[0], 4);
    assert_int_equal(task->towers[1], 1);
    assert_int_equal(task->towers[2], 1);
    bel_task_destroy(task);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);

    cluster = cluster_of("scaleTier: BASIC\n"); // only a master
    plan = plan_of(cluster, 3, 1);
    assert_int_equal(plan->process_count, 1);
    assert_true(plan->worker_count == 1 && plan->replica_count == 3 && plan->shard_count == 1);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

static void test_tasks(void **state)
{
    (void)state;
    bel_cluster *cluster =
        cluster_of("workers: {count: 2}\nparameter_servers: {count: 3}\nevaluators: {count: 1}\n"
                   "limits: {join_timeout: 1.001, silence_timeout: 1000000}\n"
                   "security: {tls: {ca: a, certificate: b, key: c}}\n");
    bel_plan *plan = plan_of(cluster, 2, 5);
    for (int i = 0; i < plan->process_count; i++) {
        bel_task *task = bel_plan_task(plan, "first", i), *again;
        assert_string_equal(task->job, "first");
        assert_int_equal(task->role, plan->processes[i].role);
        assert_int_equal(task->index, plan->processes[i].index);
        assert_int_equal(task->worker_count, 2);
        assert_int_equal(task->ps_count, 3);
        assert_int_equal(task->evaluator_count, 1);
        assert_false(task->master_trains);
        assert_true(task->towers[0] == 2 && task->towers[1] == 2);
        assert_int_equal(task->thread_count, task->role == BEL_ROLE_PS ? 1 : 5);
        assert_string_equal(task->tls_certificate, "b");
        assert_null(task->master_address);
        assert_null(task->listen_address);
        assert_null(task->secret);
        // The launcher's additions complete the task. The limits of a cluster file fit into a task.
        task->master_address = bel_xstrdup("unix:/m");
        task->listen_address = bel_xstrdup("unix:/l");
        bel_str text = {0};
        bel_task_write(task, &text);
        BEL_ASSERT_OK(bel_task_parse(text.text, NULL, NULL, true, &again));
        assert_true(again->join_timeout_secs == 1e-3 * 1001);
        assert_true(again->silence_timeout_secs == 1e6);
        bel_str_deinit(&text);
        bel_task_destroy(task);
        bel_task_destroy(again);
    }
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

// A server whose host stays away: on the next hosts, but not with its copy, or with the
// server whose copy it has, if there is another.
static void test_moves(void **state)
{
    (void)state;
    bel_cluster *cluster =
        cluster_of("parameter_servers: {count: 4, hosts: [a, b, c], copies: 1}\n");
    bel_plan *plan = plan_of(cluster, 0, 0);
    bel_task *task = bel_plan_task(plan, "j", 2); // server 1 on b; its copy with server 3 on a
    int moved[4] = {0}, mate;
    assert_true(task->role == BEL_ROLE_PS && task->index == 1);
    assert_string_equal(bel_plan_host(plan, task), "b");
    task->moves = bel_plan_moves(plan, task, moved, &mate);
    assert_string_equal(bel_plan_host(plan, task), "c");
    assert_int_equal(mate, -1);
    task->moves = bel_plan_moves(plan, task, moved, &mate);
    assert_string_equal(bel_plan_host(plan, task), "b"); // back again
    moved[3] = 1;                                        // server 3 went to b meanwhile
    task->moves = bel_plan_moves(plan, task, moved, &mate);
    assert_string_equal(bel_plan_host(plan, task), "c");
    task->copies = 0;
    assert_int_equal(bel_plan_moves(plan, task, moved, &mate), 0);
    bel_task_destroy(task);
    task = bel_plan_task(plan, "j", 0);
    assert_int_equal(bel_plan_moves(plan, task, moved, &mate), 0); // the master
    bel_task_destroy(task);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

// The host and the mate of server 1 after its first move.
static void check_move(const char *servers, const char *host, int mate)
{
    const int moved[4] = {0};
    int found;
    bel_cluster *cluster = cluster_of(servers);
    bel_plan *plan = plan_of(cluster, 0, 0);
    bel_task *task = bel_plan_task(plan, "j", 2);
    task->moves = bel_plan_moves(plan, task, moved, &found);
    assert_string_equal(bel_plan_host(plan, task), host);
    assert_int_equal(found, mate);
    bel_task_destroy(task);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

// With too few hosts a move brings a server to its copy, or to the server whose copy it has.
static void test_moves_to_a_mate(void **state)
{
    (void)state;
    check_move("parameter_servers: {count: 4, hosts: [a, b, c, d], copies: 1}\n", "d", -1);
    check_move("parameter_servers: {count: 3, hosts: [a, b, c], copies: 1}\n", "a", 0);
    check_move("parameter_servers: {count: 2, hosts: [a, b], copies: 1}\n", "a", 0);
}

static void test_threads_and_hosts(void **state)
{
    (void)state;
    bel_cluster *cluster = cluster_of("machines: {box: {cores: 8, devices: 2}}\n"
                                      "master: {machine: box, host: a}\n"
                                      "workers: {count: 3, machine: box, hosts: [a, b]}\n"
                                      "parameter_servers: {count: 2, machine: box, hosts: [c]}\n"
                                      "evaluators: {count: 1, machine: box, hosts: [d]}\n");
    bel_plan *plan = plan_of(cluster, 0, 0);
    static const struct {
        const char *host;
        int threads, local_rank, local_size;
    } expected[] = {
        {"a", 2, -1, 2}, {"c", 1, -1, 0}, {"c", 1, -1, 0}, // a: 8 cores for its 4 towers
        {"a", 2, 0, 2},  {"a", 2, 1, 2},  {"b", 4, 0, 1},  // b: for 2
        {"d", 8, -1, 0}};                                  // d: all for the evaluator
    assert_int_equal(plan->process_count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < plan->process_count; i++) {
        assert_string_equal(plan->processes[i].host, expected[i].host);
        assert_int_equal(plan->processes[i].thread_count, expected[i].threads);
        bel_task *task = bel_plan_task(plan, "j", i);
        assert_int_equal(task->local_rank, expected[i].local_rank);
        assert_int_equal(task->local_size, expected[i].local_size);
        assert_string_equal(task->host, expected[i].host);
        bel_task_destroy(task);
    }
    bel_task *added =
        bel_plan_added_task(plan, "j", 4); // on the hosts in turn; ranks as beside the last
    assert_string_equal(added->host, "a");
    assert_true(added->local_rank == 2 && added->local_size == 1);
    bel_task_destroy(added);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);

    cluster = cluster_of("machines: {huge: {cores: 4096}}\n"
                         "workers: {count: 1, machine: huge, hosts: [a]}\n");
    plan = plan_of(cluster, 1, 0);
    for (int i = 0; i < plan->process_count; i++) // the limit of a process
        if (plan->processes[i].role == BEL_ROLE_WORKER)
            assert_int_equal(plan->processes[i].thread_count, 1024);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);

    // On this host, without a machine, the plan divides its cores.
    cluster = bel_cluster_create(2, 1, 0);
    plan = plan_of(cluster, 1, 0);
    int share = bel_available_cores() / 2 > 1 ? bel_available_cores() / 2 : 1;
    assert_int_equal(plan->processes[2].thread_count, share);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

static void test_too_many_towers(void **state)
{
    (void)state;
    bel_plan *plan;
    bel_cluster *cluster = cluster_of("machines: {box: {devices: 2}, small: {devices: 1}}\n"
                                      "master: {machine: small, trains: true}\n"
                                      "workers: {count: 1, machine: box}\n");
    BEL_ASSERT_FAILS(bel_plan_create(cluster, 3, 0, &plan), BEL_INVALID_ARGUMENT,
                     "3 towers are asked for each worker, but its machine box has 2 devices");
    BEL_ASSERT_FAILS(bel_plan_create(cluster, 2, 0, &plan), BEL_INVALID_ARGUMENT,
                     "2 towers are asked for each master, but its machine small has 1 device");
    plan = plan_of(cluster, 1, 0); // fewer towers than devices are fine
    assert_int_equal(plan->replica_count, 2);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
    cluster = cluster_of("master: {trains: true}\nworkers: {count: 0, devices: 2}\n");
    bel_plan_destroy(plan_of(cluster, 3, 0)); // no process has that machine
    bel_cluster_destroy(cluster);
    cluster = bel_cluster_create(1, 1, 0);
    BEL_ASSERT_FAILS(bel_plan_create(cluster, 257, 0, &plan), BEL_INVALID_ARGUMENT,
                     "257 towers are asked for each worker; expected at most 256");
    bel_cluster_destroy(cluster);
}

// --- The table -----------------------------------------------------------------------------------

static void check_table(const bel_cluster *cluster, int towers, const bel_plan_sizes *sizes,
                        const char *expected)
{
    bel_plan *plan = plan_of(cluster, towers, 1);
    bel_str text = {0};
    bel_plan_write(plan, sizes, &text);
    assert_string_equal(text.text, expected);
    bel_str_deinit(&text);
    bel_plan_destroy(plan);
}

static void test_table(void **state)
{
    (void)state;
    bel_cluster *cluster = bel_cluster_create(1, 2, 0);
    const int64_t shard_bytes[] = {3 << 20, 1 << 20};
    bel_plan_sizes sizes = {.parameters = 1 << 20,
                            .slot_elements = 1 << 20,
                            .shard_bytes = shard_bytes,
                            .activation_bytes = 1 << 20};
    // Memory for a shard of 3 MiB: 2 × 3 + 3 for slots, 3 + 3 during a save, 3 for one report.
    check_table(cluster, 2, &sizes,
                "process       host              towers  threads      shard     memory\n"
                "master        this host              0        1          -   20.0 MiB\n"
                "ps 0          this host              0        1    3.0 MiB   34.0 MiB\n"
                "ps 1          this host              0        1    1.0 MiB   22.0 MiB\n"
                "worker 0      this host              2        1          -   34.0 MiB\n"
                "T = 1 worker, all counted (N = 1); R = 2 replicas in a step; 2 shards\n"
                "1048576 parameters, 4.0 MiB\n");
    sizes.data_bytes = 2 << 20; // in the processes that train
    sizes.row_bytes = 4 << 20;  // and a part in each shard
    check_table(cluster, 2, &sizes,
                "process       host              towers  threads      shard     memory\n"
                "master        this host              0        1          -   20.0 MiB\n"
                "ps 0          this host              0        1    3.0 MiB   36.0 MiB\n"
                "ps 1          this host              0        1    1.0 MiB   24.0 MiB\n"
                "worker 0      this host              2        1          -   40.0 MiB\n"
                "T = 1 worker, all counted (N = 1); R = 2 replicas in a step; 2 shards\n"
                "1048576 parameters, 4.0 MiB\n");
    sizes.data_bytes = sizes.row_bytes = 0;
    sizes.shard_bytes = NULL; // even shares
    check_table(cluster, 2, &sizes,
                "process       host              towers  threads      shard     memory\n"
                "master        this host              0        1          -   20.0 MiB\n"
                "ps 0          this host              0        1        yes   28.0 MiB\n"
                "ps 1          this host              0        1        yes   28.0 MiB\n"
                "worker 0      this host              2        1          -   34.0 MiB\n"
                "T = 1 worker, all counted (N = 1); R = 2 replicas in a step; 2 shards\n"
                "1048576 parameters, 4.0 MiB\n");
    bel_cluster_destroy(cluster);
}

// Four workers' reports of 8 MiB are as much as there is room for; eight need one slot more, for
// reports that come again.
static void test_room_for_reports_is_bounded_if_all_count(void **state)
{
    (void)state;
    enum { MIB = 1 << 20, REST = 16 + 3 * 8 /* values, and once more in a save */ };
    const bel_plan_sizes sizes = {.parameters = 2 * MIB};
    const int workers[] = {1, 4, 8}, all[] = {8, 32, 33}, some[] = {8, 32, 64};
    for (int i = 0; i < 3; i++) {
        bel_cluster *cluster = bel_cluster_create(workers[i], 1, 0);
        bel_plan *plan = plan_of(cluster, 1, 1);
        assert_true(bel_plan_memory(plan, 1, &sizes) == (double)(REST + all[i]) * MIB);
        bel_plan_set_counting(plan, BEL_COUNTING_ASYNC, 1, 1, 0);
        assert_true(bel_plan_memory(plan, 1, &sizes) == (double)(REST + some[i]) * MIB);
        bel_plan_destroy(plan);
        bel_cluster_destroy(cluster);
    }
}

static void test_table_without_a_model(void **state)
{
    (void)state;
    bel_cluster *cluster = cluster_of("master: {trains: true}\n"
                                      "workers: {count: 1, hosts: [a-long.name.example]}\n"
                                      "parameter_servers: {count: 0}\n");
    check_table(cluster, 0, NULL,
                "process       host                 towers  threads      shard\n"
                "master        this host                 1        1        yes\n"
                "worker 1      a-long.name.example       1        1        yes\n"
                "T = 2 workers, all counted (N = 2); R = 2 replicas in a step; 2 shards\n");
    bel_cluster_destroy(cluster);
}

static void check_counting(bel_counting_kind asked, int wanted, const char *expected)
{
    bel_cluster *cluster = bel_cluster_create(3, 1, 0);
    bel_plan *plan = plan_of(cluster, 2, 1);
    bel_plan_set_counting(plan, asked, wanted, 1, 3);
    bel_str text = {0};
    bel_plan_write(plan, NULL, &text);
    const char *line = strstr(text.text, "T = ");
    assert_non_null(line);
    assert_string_equal(line, expected);
    bel_str_deinit(&text);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
}

// The counting of three workers with two towers, in the words of the run.
static void test_counting(void **state)
{
    (void)state;
    check_counting(BEL_COUNTING_BACKUPS, 0,
                   "T = 3 workers, all counted (N = 3); R = 6 replicas in a step; 1 shard\n");
    check_counting(
        BEL_COUNTING_BACKUPS, 2,
        "T = 3 workers, the first 2 counted (N = 2); R = 6 replicas in a step; 1 shard\n");
    check_counting(
        BEL_COUNTING_BACKUPS, 5,
        "T = 3 workers, all counted, taking turns (N = 5); R = 10 replicas in a step; 1 shard\n");
    check_counting(
        BEL_COUNTING_ASYNC, 0,
        "T = 3 workers, counted as they come (N = 1); R = 2 replicas in a step; 1 shard\n");
    check_counting(
        BEL_COUNTING_BOUNDED, 2,
        "T = 3 workers, counted as they come (N = 2); R = 4 replicas in a step; 1 shard\n");
}

static void test_table_with_too_little_memory(void **state)
{
    (void)state;
    bel_cluster *cluster =
        cluster_of("machines: {box: {memory: 40 MiB}, large: {memory: 1 GiB}}\n"
                   "workers: {count: 2, machine: box, hosts: [a]}\n"
                   "parameter_servers: {count: 1, machine: large, hosts: [b]}\n");
    const bel_plan_sizes sizes = {.parameters = 1 << 18};
    check_table(cluster, 1, &sizes,
                "process       host              towers  threads      shard     memory\n"
                "master        this host              0        1          -   17.0 MiB\n"
                "ps 0          b                      0        1        yes   21.0 MiB\n"
                "worker 0      a                      1        1          -   19.0 MiB\n"
                "worker 1      a                      1        1          -   19.0 MiB\n"
                "T = 2 workers, all counted (N = 2); R = 2 replicas in a step; 1 shard\n"
                "262144 parameters, 1.0 MiB\n");
    cluster->roles[BEL_ROLE_WORKER].machine.memory_bytes = 37 << 20;
    check_table(cluster, 1, &sizes,
                "process       host              towers  threads      shard     memory\n"
                "master        this host              0        1          -   17.0 MiB\n"
                "ps 0          b                      0        1        yes   21.0 MiB\n"
                "worker 0      a                      1        1          -   19.0 MiB\n"
                "worker 1      a                      1        1          -   19.0 MiB\n"
                "T = 2 workers, all counted (N = 2); R = 2 replicas in a step; 1 shard\n"
                "262144 parameters, 1.0 MiB\n"
                "too little memory: a needs 38.0 MiB, its machine box has 37.0 MiB\n");
    bel_cluster_destroy(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_training_master),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_moves_to_a_mate),
        cmocka_unit_test(test_threads_and_hosts),
        cmocka_unit_test(test_too_many_towers),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_room_for_reports_is_bounded_if_all_count),
        cmocka_unit_test(test_table_without_a_model),
        cmocka_unit_test(test_counting),
        cmocka_unit_test(test_table_with_too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
