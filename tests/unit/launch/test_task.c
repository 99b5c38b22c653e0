// Tasks from both descriptions, written and read, and mistakes.
#include <stdlib.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/task/task.h"
#include "support/bel_test.h"

static bel_task *parse(const char *belfry_task, const char *tf_config, const char *secret)
{
    bel_task *task;
    BEL_ASSERT_OK(bel_task_parse(belfry_task, tf_config, secret, true, &task));
    return task;
}

// A text and the message that it causes.
typedef struct mistake {
    const char *text, *message;
} mistake;

// --- BELFRY_TASK ---------------------------------------------------------------------------------

static void test_there_and_back(void **state)
{
    (void)state;
    static const char text[] =
        "{\"job\":\"j \\\"1\\\"\",\"role\":\"worker\",\"index\":1,\"incarnation\":5,"
        "\"worker_count\":2,\"parameter_server_count\":3,\"evaluator_count\":1,"
        "\"master_trains\":1,\"threads\":4,\"join_timeout_ms\":1001,\"silence_timeout_ms\":1500,"
        "\"supervisor\":77,\"recovers\":1,\"min_workers\":2,"
        "\"added\":1,\"lock\":3,\"stall_timeout_ms\":2500,"
        "\"local_rank\":3,\"local_size\":2,\"carried\":1,\"memory\":6,\"copies\":1,"
        "\"parameter_server_hosts\":2,"
        "\"master\":\"unix:/m\",\"listen\":\"127.0.0.1:0\",\"host\":\"a\",\"towers\":[3,1],"
        "\"tls_ca\":\"a\",\"tls_certificate\":\"b\",\"tls_key\":\"c\"}";
    bel_task *task = parse(text, "{\"task\":{\"type\":\"boss\"}}", "hush"); // the task wins
    assert_string_equal(task->job, "j \"1\"");
    assert_int_equal(task->role, BEL_ROLE_WORKER);
    assert_int_equal(task->index, 1);
    assert_int_equal(task->incarnation, 5);
    assert_int_equal(task->worker_count, 2);
    assert_int_equal(task->ps_count, 3);
    assert_int_equal(task->evaluator_count, 1);
    assert_true(task->master_trains);
    assert_string_equal(task->master_address, "unix:/m");
    assert_string_equal(task->listen_address, "127.0.0.1:0");
    assert_string_equal(task->secret, "hush");
    assert_int_equal(task->thread_count, 4);
    assert_true(task->towers[0] == 3 && task->towers[1] == 1);
    assert_true(task->join_timeout_secs == 1e-3 * 1001 && task->silence_timeout_secs == 1.5);
    assert_true(task->supervisor == 77 && task->carried);
    assert_true(task->recovers && task->added);
    assert_true(task->local_rank == 3 && task->local_size == 2); // after those of the start
    assert_int_equal(task->min_workers, 2);
    assert_int_equal(task->copies, 1);
    assert_int_equal(task->ps_hosts, 2);
    assert_int_equal(task->lock, 3);
    assert_true(task->stall_timeout_secs == 2.5);
    assert_string_equal(task->host, "a");
    assert_string_equal(task->tls_ca, "a");
    assert_string_equal(task->tls_certificate, "b");
    assert_string_equal(task->tls_key, "c");
    bel_str written = {0};
    bel_task_write(task, &written); // without the secret
    assert_string_equal(written.text, text);
    bel_str_deinit(&written);
    bel_task_destroy(task);
    bel_task_destroy(NULL);
}

static void test_defaults(void **state)
{
    (void)state;
    bel_task *task =
        parse("{\"role\":\"master\",\"worker_count\":2,\"master\":\"a:1\"}", NULL, NULL);
    assert_string_equal(task->job, "job");
    assert_int_equal(task->index, 0);
    assert_int_equal(task->incarnation, 0);
    assert_int_equal(task->ps_count, 0);
    assert_int_equal(task->evaluator_count, 0);
    assert_false(task->master_trains);
    assert_string_equal(task->listen_address, "a:1"); // the master listens at this address
    assert_string_equal(task->secret, "");
    assert_int_equal(task->thread_count, 0);
    assert_null(task->towers);
    assert_null(task->tls_ca);
    assert_true(task->join_timeout_secs == 60 && task->silence_timeout_secs == 10);
    assert_int_equal(task->supervisor, 0);
    bel_str written = {0};
    bel_task_write(task, &written);
    assert_string_equal(
        written.text,
        "{\"job\":\"job\",\"role\":\"master\",\"index\":0,\"incarnation\":0,"
        "\"worker_count\":2,\"parameter_server_count\":0,\"evaluator_count\":0,"
        "\"master_trains\":0,\"threads\":0,\"join_timeout_ms\":60000,"
        "\"silence_timeout_ms\":10000,\"supervisor\":0,\"recovers\":0,"
        "\"min_workers\":0,\"added\":0,\"lock\":0,\"stall_timeout_ms\":0,"
        "\"local_rank\":-1,\"local_size\":2,\"carried\":0,\"memory\":0,"
        "\"copies\":0,\"parameter_server_hosts\":0,\"master\":\"a:1\",\"listen\":\"a:1\"}");
    bel_str_deinit(&written);
    bel_task_destroy(task);
}

#define PS "{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":2,\"parameter_server_count\":2"

static void test_mistakes(void **state)
{
    (void)state;
    static const char before[] = "environment variable BELFRY_TASK: ";
    static const mistake mistakes[] = {
        {"[]", "\"role\" must be master, worker, ps or evaluator"},
        {"{}", "\"role\" must be master, worker, ps or evaluator"},
        {"{\"role\":\"boss\"}", "\"role\" must be master, worker, ps or evaluator"},
        {"{\"role\":1}", "\"role\" must be a text"},
        {"{\"role\":\"ps\"}", "\"master\" must be an address, host:port or unix:/path"},
        {"{\"role\":\"ps\",\"master\":\"here\"}", "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\"unix:\"}", "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\":80\"}", "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\"a:b\"}", "\"master\" must be an address"},
        {"{\"role\":\"ps\",\"master\":\"a:65536\"}", "\"master\" must be an address"},
        {PS ",\"listen\":\"a\"}", "\"listen\" must be an address"},
        {PS ",\"listen\":5}", "\"listen\" must be a text"},
        {PS ",\"job\":5}", "\"job\" must be a text"},
        {"{\"role\":\"ps\",\"master\":\"a:1\"}",
         "\"worker_count\" must be an integer from 1 to 1024"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":\"2\"}",
         "\"worker_count\" must be an integer from 1 to 1024"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":1025}", "\"worker_count\" must be"},
        {PS ",\"evaluator_count\":2}", "\"evaluator_count\" must be an integer from 0 to 1"},
        {PS ",\"master_trains\":true}", "\"master_trains\" must be an integer from 0 to 1"},
        {PS ",\"threads\":-1}", "\"threads\" must be an integer from 0 to 4096"},
        {PS ",\"incarnation\":-1}", "\"incarnation\" must be an integer from 0"},
        {PS ",\"supervisor\":-1}", "\"supervisor\" must be an integer from 0"},
        {PS ",\"join_timeout_ms\":0}", "\"join_timeout_ms\" must be an integer from 1 to"},
        {PS ",\"silence_timeout_ms\":1.5}", "\"silence_timeout_ms\" must be an integer"},
        {PS ",\"index\":2}", "\"index\" must be below the count of its role"},
        {PS ",\"index\":-1}", "\"index\" must be an integer from 0 to 1023"},
        {"{\"role\":\"evaluator\",\"master\":\"a:1\",\"worker_count\":1}",
         "\"index\" must be below the count of its role"},
        {"{\"role\":\"worker\",\"master\":\"a:1\",\"worker_count\":2,\"master_trains\":1}",
         "\"index\" must be above 0: worker 0 is the master"},
        {PS ",\"tls_ca\":\"a\"}", "\"tls_ca\" must be there together with tls_certificate and"},
        {PS ",\"tls_ca\":1}", "\"tls_ca\" must be a text"},
        {PS ",\"towers\":[1]}",
         "\"towers\" must be a list of a number from 1 to 256 for each worker"},
        {PS ",\"towers\":[1,0]}", "\"towers\" must be a list"},
        {PS ",\"towers\":[1,257]}", "\"towers\" must be a list"},
        {PS ",\"towers\":2}", "\"towers\" must be a list"},
        {PS ",\"local_size\":2,\"local_rank\":0}", "\"local_rank\" must be that of a worker"},
        {"{\"role\":\"worker\",\"master\":\"a:1\",\"worker_count\":2,\"local_size\":1,"
         "\"local_rank\":1}",
         "\"local_rank\" must be that of a worker, below local_size"},
        {PS ",\"min_workers\":3}", "\"min_workers\" must be at most worker_count"},
        {PS ",\"copies\":2}", "\"copies\""},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":2,\"parameter_server_count\":1,"
         "\"copies\":1}",
         "\"copies\" must be 0 with fewer than two parameter servers"},
        {"{\"role\":\"ps\",\"master\":\"a:1\",\"worker_count\":2,\"parameter_server_count\":2,"
         "\"copies\":1}",
         "\"copies\" must be 0 if \"recovers\" is 0"},
        {"{\"role\":\"worker\",\"master\":\"a:1\",\"worker_count\":2,\"min_workers\":1}",
         "\"min_workers\" must be 0 where workers hold the parameters"},
        {PS ",\"index\":2,\"added\":1}", "\"index\" must be below the count of its role"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        bel_task *task;
        char *message = bel_strf("%s%s", before, mistakes[i].message);
        BEL_ASSERT_FAILS(bel_task_parse(mistakes[i].text, NULL, NULL, true, &task),
                         BEL_INVALID_ARGUMENT, message);
        assert_null(task);
        bel_free(message);
    }
    bel_task *task;
    BEL_ASSERT_FAILS(bel_task_parse("{\n  \"role\" 1}", NULL, NULL, true, &task),
                     BEL_INVALID_ARGUMENT, "environment variable BELFRY_TASK:2:10: not valid JSON");
}

// --- TF_CONFIG -----------------------------------------------------------------------------------

#define CLUSTER(primary)                                                                           \
    "{\"cluster\":{\"" primary                                                                     \
    "\":[\"a:1\"],\"worker\":[\"b:2\",\"c:3\"],\"ps\":[\"d:4\"]},\"environment\":\"cloud\","
#define TASK(type, index) "\"task\":{\"type\":\"" type "\",\"index\":" index "}}"

static void test_tf_config(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bel_role role;
        int index;
        const char *listen;
    } cases[] = {
        {CLUSTER("chief") TASK("chief", "0"), BEL_ROLE_MASTER, 0, "a:1"},
        {CLUSTER("master") TASK("master", "0"), BEL_ROLE_MASTER, 0, "a:1"},
        {CLUSTER("chief") TASK("worker", "0"), BEL_ROLE_WORKER, 1, "b:2"}, // the chief is worker 0
        {CLUSTER("master") TASK("worker", "1"), BEL_ROLE_WORKER, 2, "c:3"},
        {CLUSTER("chief") TASK("worker", "\"1\""), BEL_ROLE_WORKER, 2, "c:3"},
        {CLUSTER("chief") TASK("ps", "0"), BEL_ROLE_PS, 0, "d:4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_task *task = parse(NULL, cases[i].text, "hush");
        assert_int_equal(task->role, cases[i].role);
        assert_int_equal(task->index, cases[i].index);
        assert_string_equal(task->listen_address, cases[i].listen);
        assert_string_equal(task->master_address, "a:1");
        assert_int_equal(task->worker_count, 3);
        assert_int_equal(task->ps_count, 1);
        assert_int_equal(task->evaluator_count, 0);
        assert_true(task->master_trains);
        assert_string_equal(task->secret, "hush");
        assert_true(task->join_timeout_secs == 60 && task->silence_timeout_secs == 10);
        bel_str own = {0}; // the result is a valid task of Belfry's
        bel_task_write(task, &own);
        bel_task_destroy(parse(own.text, NULL, NULL));
        bel_str_deinit(&own);
        bel_task_destroy(task);
    }
    // Only a chief, with empty lists.
    bel_task *task = parse(
        NULL, "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[],\"ps\":[]}," TASK("chief", "0"),
        NULL);
    assert_int_equal(task->worker_count, 1);
    assert_int_equal(task->ps_count, 0);
    bel_task_destroy(task);
}

// Which workers share a host.
static void test_hosts(void **state)
{
    (void)state;
#define HOSTS                                                                                      \
    "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"ab:1\",\"a:2\"],\"ps\":[\"ab:4\",\"c:5\"]},"
#define SOCKETS "{\"cluster\":{\"chief\":[\"unix:/c\"],\"worker\":[\"unix:/w\"]},"
    static const struct {
        const char *tf_config;
        int local_rank, local_size;
    } cases[] = {
        {HOSTS TASK("chief", "0"), 0, 2},    {HOSTS TASK("worker", "0"), 0, 1},
        {HOSTS TASK("worker", "1"), 1, 2},   {HOSTS TASK("ps", "0"), -1, 1},
        {HOSTS TASK("ps", "1"), -1, 0},      {HOSTS TASK("evaluator", "0"), -1, 0},
        {SOCKETS TASK("worker", "0"), 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_task *task = parse(NULL, cases[i].tf_config, "");
        assert_int_equal(task->local_rank, cases[i].local_rank);
        assert_int_equal(task->local_size, cases[i].local_size);
        bel_task_destroy(task);
    }
    bel_task *task = parse("{\"role\":\"worker\",\"index\":1,\"master\":\"a:1\","
                           "\"worker_count\":3}",
                           NULL, NULL);
    assert_true(task->local_rank == 1 && task->local_size == 3); // by default all on one host
    bel_task_destroy(task);
}

// As in Kubeflow: no chief, so the first worker is the chief, and an evaluator with an entry.
static void test_a_worker_as_chief(void **state)
{
    (void)state;
#define NO_CHIEF                                                                                   \
    "{\"cluster\":{\"worker\":[\"b:2\",\"c:3\"],\"ps\":[\"d:4\"],\"evaluator\":[\"e:5\"]},"
    static const struct {
        const char *text;
        bel_role role;
        int index;
        const char *listen;
    } cases[] = {
        {NO_CHIEF TASK("worker", "0"), BEL_ROLE_MASTER, 0, "b:2"},
        {NO_CHIEF TASK("worker", "1"), BEL_ROLE_WORKER, 1, "c:3"},
        {NO_CHIEF TASK("ps", "0"), BEL_ROLE_PS, 0, "d:4"},
        {NO_CHIEF TASK("evaluator", "0"), BEL_ROLE_EVALUATOR, 0, "b:2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_task *task = parse(NULL, cases[i].text, "hush");
        assert_int_equal(task->role, cases[i].role);
        assert_int_equal(task->index, cases[i].index);
        assert_string_equal(task->listen_address, cases[i].listen);
        assert_string_equal(task->master_address, "b:2");
        assert_int_equal(task->worker_count, 2);
        assert_int_equal(task->ps_count, 1);
        assert_true(task->follows == (task->role == BEL_ROLE_EVALUATOR));
        assert_int_equal(task->local_size, cases[i].role == BEL_ROLE_MASTER ? 1 : task->local_size);
        bel_task_destroy(task);
    }
    bel_task *task = NULL; // a chief that does not train is not a worker
    BEL_ASSERT_FAILS(bel_task_parse(NULL, NO_CHIEF TASK("worker", "0"), NULL, false, &task),
                     BEL_INVALID_ARGUMENT, "exactly one chief");
}

static void test_no_cluster(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL,
                                        "",
                                        "{}",
                                        "{\"model_dir\":\"x\"}",
                                        "{\"cluster\":{},\"task\":{}}",
                                        "{\"cluster\":{}," TASK("worker", "0")};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_null(parse(NULL, texts[i], "hush"));
        assert_null(parse("", texts[i], NULL));
    }
}

static void test_mistakes_of_tf_config(void **state)
{
    (void)state;
    static const char before[] = "environment variable TF_CONFIG: ";
    static const char exactly_one[] = "\"cluster\" must be an object with exactly one chief";
    static const char type_and_index[] = "\"task\" must be an object with a type and an index";
    static const mistake mistakes[] = {
        {"[]", "expected an object"},
        {"{\"cluster\":[]}", "\"cluster\" must be an object of lists of addresses"},
        {"{\"cluster\":null}", "\"cluster\" must be an object of lists of addresses"},
        {"{\"task\":1}", type_and_index},
        {"{" TASK("chief", "0"), "\"cluster\" must be beside \"task\""},
        {"{" TASK("worker", "0"), "\"cluster\" must be beside \"task\""},
        {"{\"Cluster\":{\"chief\":[\"a:1\"]}," TASK("worker", "0"),
         "\"Cluster\" is not read, expected \"cluster\""},
        {"{\"sparseCluster\":{}," TASK("worker", "1"),
         "\"sparseCluster\" is not read, expected \"cluster\" with the addresses of all processes; "
         "hint: enableDynamicWorker: false"},
        {"{\"cluster\":{}," TASK("chief", "0"), "\"type\" must be worker when there is no cluster"},
        {"{\"cluster\":{}," TASK("worker", "1"), "\"index\" must be 0 when there is no cluster"},
        {"{\"cluster\":{\"ps\":[\"a:1\"]}," TASK("ps", "0"), exactly_one},
        {"{\"cluster\":{\"chief\":[]}," TASK("chief", "0"), exactly_one},
        {"{\"cluster\":{\"chief\":[\"a:1\",\"b:1\"]}," TASK("chief", "0"), exactly_one},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"master\":[\"a:1\"]}," TASK("chief", "0"),
         "\"cluster\" must be with chief or master, not both"},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"boss\":[\"b:1\"]}," TASK("chief", "0"),
         "\"cluster\" must be of chief (or master), worker, ps and evaluator only"},
        {"{\"cluster\":{\"chief\":\"a:1\"}," TASK("chief", "0"),
         "\"chief\" must be a list of at most 1024 addresses, host:port"},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"ps\":{\"0\":\"b:1\"}}," TASK("chief", "0"),
         "\"ps\" must be a list of at most 1024 addresses, host:port"},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b\"]}," TASK("chief", "0"),
         "\"worker\" must be a list of at most 1024 addresses, host:port"},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[7]}," TASK("chief", "0"),
         "\"worker\" must be a list of at most 1024 addresses, host:port"},
        {"{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\",\"a:1\"]}," TASK("chief", "0"),
         "\"cluster\": expected an address for each member, got a:1 twice"},
        {"{\"cluster\":{\"chief\":[\"a:1\"]}}", type_and_index},
        {CLUSTER("chief") "\"task\":{\"type\":\"worker\"}}", type_and_index},
        {CLUSTER("chief") "\"task\":{\"index\":0}}", type_and_index},
        {CLUSTER("chief") "\"task\":{\"type\":1,\"index\":0}}", "\"type\" must be a text"},
        {CLUSTER("chief") TASK("worker", "-1"), "\"index\" must be an integer from 0"},
        {CLUSTER("chief") TASK("worker", "\"x\""), "\"index\" must be an integer from 0"},
        {CLUSTER("chief") TASK("worker", "2"), "\"index\" must be that of an address"},
        {CLUSTER("chief") TASK("worker", "4294967296"), "\"index\" must be that of an address"},
        {CLUSTER("chief") TASK("chief", "1"), "\"index\" must be that of an address"},
        {CLUSTER("chief") TASK("boss", "0"),
         "\"type\" must be chief, master, worker, ps or evaluator"},
        {CLUSTER("chief") TASK("master", "0"), "\"type\" must be chief, as in the cluster"},
        {CLUSTER("master") TASK("chief", "0"), "\"type\" must be master, as in the cluster"},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        bel_task *task;
        char *message = bel_strf("%s%s", before, mistakes[i].message);
        BEL_ASSERT_FAILS(bel_task_parse(NULL, mistakes[i].text, NULL, true, &task),
                         BEL_INVALID_ARGUMENT, message);
        assert_null(task);
        bel_free(message);
    }
    bel_task *task;
    BEL_ASSERT_FAILS(bel_task_parse(NULL, "{\"cluster\":", NULL, true, &task), BEL_INVALID_ARGUMENT,
                     "environment variable TF_CONFIG:1:11: not valid JSON");
    BEL_ASSERT_OK(bel_task_parse(NULL, CLUSTER("chief") TASK("evaluator", "3"), NULL, true, &task));
    assert_int_equal(task->role, BEL_ROLE_EVALUATOR);
    assert_int_equal(task->index, 0);
    assert_true(task->follows);
    bel_task_destroy(task);
}

static void test_too_many_members(void **state)
{
    (void)state;
    bel_str text = {0};
    bel_str_puts(&text, "{\"cluster\":{\"chief\":[\"a:1\"],\"worker\":[\"b:1\"");
    for (int i = 1; i < 1023; i++)
        bel_str_printf(&text, ",\"b:%d\"", i + 1);
    size_t length = text.length;
    bel_str_puts(&text, "]}," TASK("worker", "1022"));
    bel_task *task = parse(NULL, text.text, NULL);
    assert_int_equal(task->worker_count, 1024);
    assert_int_equal(task->index, 1023);
    bel_task_destroy(task);
    text.length = length;
    bel_str_puts(&text, ",\"c:1\"]}," TASK("worker", "1022"));
    BEL_ASSERT_FAILS(bel_task_parse(NULL, text.text, NULL, true, &task), BEL_INVALID_ARGUMENT,
                     "\"cluster\" must be of at most 1024 workers, the chief included");
    bel_str_deinit(&text);
}

// --- Names and the environment -------------------------------------------------------------------

static void test_names(void **state)
{
    (void)state;
    char text[32];
    assert_string_equal(bel_role_text(BEL_ROLE_MASTER, 0, text), "master");
    assert_string_equal(bel_role_text(BEL_ROLE_WORKER, 1, text), "worker 1");
    assert_string_equal(bel_role_text(BEL_ROLE_PS, 0, text), "ps 0");
    assert_string_equal(bel_role_text(BEL_ROLE_EVALUATOR, 0, text), "evaluator 0");
}

static void test_environment(void **state)
{
    (void)state;
    bel_task *task;
    unsetenv("BELFRY_TASK");
    unsetenv("TF_CONFIG");
    setenv("BELFRY_SECRET", "hush-hush-hush-hush", 1);
    BEL_ASSERT_OK(bel_task_from_environment(true, &task));
    assert_null(task);
    setenv("TF_CONFIG", CLUSTER("chief") TASK("ps", "0"), 1);
    BEL_ASSERT_OK(bel_task_from_environment(true, &task));
    assert_int_equal(task->role, BEL_ROLE_PS);
    assert_string_equal(task->secret, "hush-hush-hush-hush");
    assert_true(task->foreign && task->incarnation == 0); // counted later, with the model folder
    bel_task_destroy(task);
    setenv("BELFRY_TASK", PS ",\"index\":1}", 1);
    BEL_ASSERT_OK(bel_task_from_environment(true, &task));
    assert_int_equal(task->index, 1);
    assert_false(task->foreign);
    bel_task_destroy(task);
    setenv("BELFRY_TASK", PS ",\"counted\":1}", 1);
    setenv("BELFRY_TASK_INDEX", "1", 1);
    BEL_ASSERT_OK(bel_task_from_environment(true, &task));
    assert_int_equal(task->index, 1);
    assert_true(task->foreign);
    bel_task_destroy(task);
    for (int i = 0; i < 4; i++) {
        const char *const bad[] = {"2", "-1", "one", "99999999999999"};
        char message[64];
        bel_snprintf(message, sizeof message, "another process of the role, got \"%s\"", bad[i]);
        setenv("BELFRY_TASK_INDEX", bad[i], 1);
        BEL_ASSERT_FAILS(bel_task_from_environment(true, &task), BEL_INVALID_ARGUMENT, message);
    }
    unsetenv("BELFRY_TASK_INDEX");
    setenv("BELFRY_SECRET", "s", 1);
    BEL_ASSERT_FAILS(bel_task_from_environment(true, &task), BEL_INVALID_ARGUMENT,
                     "BELFRY_SECRET: expected one line of 16 to 128 ASCII characters without "
                     "spaces, got 1;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),    cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_mistakes),          cmocka_unit_test(test_tf_config),
        cmocka_unit_test(test_a_worker_as_chief), cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_no_cluster),        cmocka_unit_test(test_mistakes_of_tf_config),
        cmocka_unit_test(test_too_many_members),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
