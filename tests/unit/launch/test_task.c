// Tasks from both descriptions, there and back, and mistakes.
#include "base/alloc.h"
#include "launch/task.h"
#include "support/bel_test.h"

static void test_own(void **state)
{
    (void)state;
    bel_task *task, *again;
    BEL_ASSERT_OK(bel_task_parse(
        "{\"job\":\"j\",\"role\":\"worker\",\"index\":1,\"worker_count\":2,"
        "\"parameter_server_count\":3,\"master\":\"unix:/m\","
        "\"listen\":\"unix:/w\",\"threads\":4,\"incarnation\":5,"
        "\"silence_timeout_ms\":1500,\"supervisor\":77,\"tls_ca\":\"a\",\"towers\":[3,1],"
        "\"tls_certificate\":\"b\",\"tls_key\":\"c\"}",
        "{}", "hush", &task));
    bel_str text = {0};
    bel_task_write(task, &text);
    BEL_ASSERT_OK(bel_task_parse(text.text, NULL, "hush", &again));
    bel_str_deinit(&text);
    const bel_task *both[] = {task, again};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(both[i]->job, "j");
        assert_int_equal(both[i]->role, BEL_ROLE_WORKER);
        assert_int_equal(both[i]->index, 1);
        assert_int_equal(both[i]->worker_count, 2);
        assert_int_equal(both[i]->ps_count, 3);
        assert_string_equal(both[i]->master_address, "unix:/m");
        assert_string_equal(both[i]->listen_address, "unix:/w");
        assert_string_equal(both[i]->secret, "hush");
        assert_int_equal(both[i]->thread_count, 4);
        assert_int_equal(both[i]->incarnation, 5);
        assert_true(both[i]->silence_timeout_secs == 1.5 && both[i]->join_timeout_secs == 60);
        assert_int_equal(both[i]->supervisor, 77);
        assert_true(both[i]->towers[0] == 3 && both[i]->towers[1] == 1);
        assert_string_equal(both[i]->tls_ca, "a");
        assert_string_equal(both[i]->tls_key, "c");
    }
    bel_task_destroy(task);
    bel_task_destroy(again);
}

#define TF_CLUSTER                                                                                 \
    "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:2\",\"c:3\"],\"ps\":[\"d:4\"]},"

static void test_tf_config(void **state)
{
    (void)state;
    bel_task *task;
    BEL_ASSERT_OK(bel_task_parse(NULL, TF_CLUSTER "\"task\":{\"type\":\"worker\",\"index\":1}}",
                                 NULL, &task));
    assert_int_equal(task->role, BEL_ROLE_WORKER);
    assert_int_equal(task->index, 2); // the chief is worker 0
    assert_int_equal(task->worker_count, 3);
    assert_int_equal(task->ps_count, 1);
    assert_true(task->master_trains);
    assert_string_equal(task->master_address, "a:1");
    assert_string_equal(task->listen_address, "c:3");
    assert_string_equal(task->secret, "");
    bel_task_destroy(task);
    BEL_ASSERT_OK(
        bel_task_parse(NULL, TF_CLUSTER "\"task\":{\"type\":\"chief\",\"index\":0}}", "", &task));
    assert_int_equal(task->role, BEL_ROLE_MASTER);
    bel_task_destroy(task);
    BEL_ASSERT_OK(bel_task_parse(NULL, "{\"model_dir\":\"x\"}", NULL, &task)); // no cluster
    assert_null(task);
    BEL_ASSERT_OK(bel_task_parse(NULL, NULL, NULL, &task));
    assert_null(task);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *own, *foreign, *part;
    } cases[] = {
        {"{", NULL, "environment variable BELFRY_TASK:1:"},
        {"{}", NULL, "BELFRY_TASK: \"role\" must be master, worker, ps or evaluator"},
        {"{\"role\":\"boss\"}", NULL, "\"role\" must be"},
        {"{\"role\":\"ps\"}", NULL, "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\"here\"}", NULL, "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\"a:1\"}", NULL,
         "\"worker_count\" must be a whole number from 1 to 1024"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":\"2\"}", NULL, "\"worker_count\""},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":2}", NULL,
         "\"index\" must be below the count of its role"},
        {"{\"role\":\"worker\",\"master\":\"a:1\",\"worker_count\":2,\"master_trains\":1}", NULL,
         "worker 0 is the master"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":1,\"tls_ca\":\"a\"}", NULL,
         "\"tls_ca\" must be there together with"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":2,\"towers\":[1]}", NULL,
         "\"towers\" must be a list of a number from 1 to 256 for each worker"},
        {NULL, "[", "environment variable TF_CONFIG:1:"},
        {NULL, "{\"cluster\":{}}", "exactly one chief"},
        {NULL, "{\"cluster\":{\"chief\":[\"a:1\"],\"master\":[\"a:1\"]}}", "chief or master"},
        {NULL, "{\"cluster\":{\"chief\":[\"a:1\",\"b:1\"]}}", "exactly one chief"},
        {NULL, TF_CLUSTER "\"task\":{\"type\":\"worker\"}}", "\"task\" must be an object"},
        {NULL, TF_CLUSTER "\"task\":{\"type\":\"worker\",\"index\":2}}", "\"index\" must be that"},
        {NULL, TF_CLUSTER "\"task\":{\"type\":\"boss\",\"index\":0}}", "\"type\" must be chief"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_task *task;
        BEL_ASSERT_FAILS(bel_task_parse(cases[i].own, cases[i].foreign, NULL, &task),
                         BEL_INVALID_ARGUMENT, cases[i].part);
    }
    bel_task *task;
    BEL_ASSERT_FAILS(bel_task_parse(NULL,
                                    TF_CLUSTER "\"task\":{\"type\":\"evaluator\",\"index\":0}}",
                                    NULL, &task),
                     BEL_UNIMPLEMENTED, "evaluator");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own), cmocka_unit_test(test_tf_config),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
