// cluster.yaml: both families of keys, and every mistake with its place.
#include "launch/cluster_file.h"
#include "support/bel_test.h"

static bel_status *parse(const char *text, bel_cluster **out_cluster)
{
    return bel_cluster_parse(text, strlen(text), "c.yaml", out_cluster);
}

static void test_own_keys(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(parse("machines:\n"
                        "  box: {cores: 16, memory: 64 GiB, devices: 2}\n"
                        "  small: {memory: 500 MB}\n"
                        "master: {machine: box, trains: true, host: m}\n"
                        "workers: {count: 4, machine: box, devices: 4, hosts: [a, b]}\n"
                        "parameter_servers: {count: 2, machine: small}\n"
                        "evaluators: {count: 1}\n"
                        "environment: {PATH: /bin, N: 3}\n"
                        "limits: {join_timeout: 5, silence_timeout: 0.5, stall_timeout: 60}\n"
                        "security: {secret_file: s, listen: any, tls: {ca: a, certificate: b, "
                        "key: c}}\n",
                        &c));
    const bel_cluster_role *workers = &c->roles[BEL_ROLE_WORKER];
    assert_int_equal(workers->count, 4);
    assert_string_equal(workers->machine.name, "box");
    assert_int_equal(workers->machine.cores, 16);
    assert_int_equal(workers->machine.devices, 4);
    assert_int_equal(workers->machine.memory_bytes, (int64_t)64 << 30);
    assert_int_equal(workers->host_count, 2);
    assert_string_equal(workers->hosts[1], "b");
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 2);
    assert_int_equal(c->roles[BEL_ROLE_PS].machine.memory_bytes, 500000000);
    assert_int_equal(c->roles[BEL_ROLE_EVALUATOR].count, 1);
    assert_string_equal(c->roles[BEL_ROLE_MASTER].hosts[0], "m");
    assert_true(c->master_trains && c->listen_beyond);
    assert_int_equal(c->environment_count, 2);
    assert_string_equal(c->environment[1], "N=3");
    assert_true(c->join_timeout_secs == 5 && c->silence_timeout_secs == 0.5);
    assert_true(c->stall_timeout_secs == 60);
    assert_string_equal(c->secret_file, "s");
    assert_string_equal(c->tls_key, "c");
    bel_cluster_destroy(c);
}

static void test_defaults(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(parse("workers: {count: 3}\n", &c));
    assert_int_equal(c->roles[BEL_ROLE_MASTER].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 3);
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_EVALUATOR].count, 0);
    assert_false(c->master_trains);
    assert_true(c->join_timeout_secs == 60 && c->silence_timeout_secs == 10);
    bel_cluster_destroy(c);
    BEL_ASSERT_OK(bel_cluster_read("cluster.yaml", &c)); // the README's
    assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, 2);
    bel_cluster_destroy(c);
}

static void test_ai_platform(void **state)
{
    (void)state;
    bel_cluster *c;
    // The file of the Quantiphi article.
    BEL_ASSERT_OK(parse("scaleTier: CUSTOM\nmasterType: standard_p100\nworkerType: standard_p100\n"
                        "parameterServerType: complex_model_m\nworkerCount: 3\n"
                        "parameterServerCount: 1\n",
                        &c));
    assert_true(c->master_trains);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 3);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, 1);
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_PS].machine.devices, 0);
    bel_cluster_destroy(c);
    BEL_ASSERT_OK(parse("trainingInput:\n  scaleTier: STANDARD_1\n  region: x\n", &c));
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 4);
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 3);
    bel_cluster_destroy(c);
    BEL_ASSERT_OK(parse("scaleTier: BASIC_GPU\n", &c)); // the master alone
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 0);
    assert_int_equal(c->roles[BEL_ROLE_MASTER].machine.devices, 1);
    bel_cluster_destroy(c);
    BEL_ASSERT_OK(parse("scaleTier: CUSTOM\nmasterType: n1-highmem-8\nworkerType: n1-highmem-8\n"
                        "workerCount: \"2\"\n", // counts are texts in the REST interface
                        &c));
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 2);
    bel_cluster_destroy(c);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "c.yaml: the file is empty"},
        {"workers: {count: 2", "c.yaml:2:1: not valid YAML"},
        {"worker: {count: 2}\n", "c.yaml:1:1: unknown key \"worker\"; did you mean \"workers\"?"},
        {"workers:\n  cont: 2\n", "c.yaml:2:3: unknown key \"cont\"; did you mean \"count\"?"},
        {"workers: {count: two}\n", "c.yaml:1:18: expected a whole number from 0 to 1024"},
        {"workers: {count: 1025}\n", "got \"1025\""},
        {"workers: {count: -1}\n", "got \"-1\""},
        {"workers: 2\n", "c.yaml:1:10: expected a mapping, got \"2\""},
        {"workers: {count: 0}\n", "nobody would"},
        {"workers: {count: 1, machine: box}\n", "c.yaml:1:30: machine \"box\" is not among"},
        {"machines: {box: {cores: 0}}\n", "c.yaml:1:25: expected a whole number from 1"},
        {"machines: {box: {memory: 64 GB!}}\n", "expected a size such as 64 GiB"},
        {"machines: [box]\n", "expected a mapping of machines, got a list"},
        {"machines: {box: {core: 1}}\n", "did you mean \"cores\"?"},
        {"workers: {count: 1, hosts: []}\n", "c.yaml:1:28: expected a list of at least one host"},
        {"workers: {count: 1, hosts: [a, a]}\n", "c.yaml:1:32: host \"a\" is named twice"},
        {"workers: {count: 1, hosts: [a, \"\"]}\n", "expected a text"},
        {"evaluators: {count: 2}\n", "expected a whole number from 0 to 1, got \"2\""},
        {"master: {trains: maybe}\n", "c.yaml:1:18: expected true or false, got \"maybe\""},
        {"limits: {stall_timeout: -1}\n", "c.yaml:1:25: expected seconds"},
        {"limits: {stal_timeout: 1}\n", "did you mean \"stall_timeout\"?"},
        {"environment: {TF_CONFIG: x}\n", "\"TF_CONFIG\" cannot be set here"},
        {"environment: {A: [1]}\n", "expected a text, got a list"},
        {"security: {listen: all}\n", "expected loopback or any, got \"all\""},
        {"security: {tls: {ca: a}}\n", "expected all of ca, certificate and key"},
        {"workers: {count: 1}\nworkers: {count: 2}\n", "c.yaml:2:1"},
        {"scaleTier: CUSTOM\nworkers: {count: 1}\n", "c.yaml:2:1: unknown key \"workers\""},
        {"masterType: standard\n", "scaleTier is missing"},
        {"scaleTier: HUGE\n", "c.yaml:1:12: expected BASIC, BASIC_GPU"},
        {"scaleTier: BASIC_TPU\n", "no TPUs"},
        {"scaleTier: CUSTOM\n", "CUSTOM needs masterType"},
        {"scaleTier: BASIC\nworkerCount: 2\n", "c.yaml:2:14: workerCount needs scaleTier: CUSTOM"},
        {"scaleTier: BASIC\nmasterType: x\n", "masterType needs scaleTier: CUSTOM"},
        {"scaleTier: CUSTOM\nmasterType: m\nworkerCount: 2\n",
         "workerCount above 0 needs workerType"},
        {"scaleTier: CUSTOM\nmasterType: m\nworkerType: w\n",
         "workerType needs workerCount above 0"},
        {"scaleTier: CUSTOM\nmasterType: cloud_tpu\n", "c.yaml:2:13: \"cloud_tpu\""},
        {"trainingInput:\n  scaleTier: BASIC\nworkerCount: 1\n", "c.yaml:3:1: unknown key"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_cluster *c;
        BEL_ASSERT_FAILS(parse(cases[i].text, &c), BEL_INVALID_ARGUMENT, cases[i].part);
    }
    bel_cluster *c;
    BEL_ASSERT_FAILS(bel_cluster_read("/nowhere/c.yaml", &c), BEL_INVALID_ARGUMENT,
                     "/nowhere/c.yaml");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_keys), cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_ai_platform), cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
