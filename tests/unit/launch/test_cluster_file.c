// cluster.yaml: both families of keys, and every mistake with its place.
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/cluster/cluster_file.h"
#include "support/bel_test.h"

static bel_status *parse(const char *text, bel_cluster **out_cluster)
{
    return bel_cluster_parse(text, strlen(text), "c.yaml", out_cluster);
}

// A mistake and the start of its message, or a part of it.
typedef struct mistake {
    const char *text, *part;
} mistake;

static void check_mistakes(const mistake *mistakes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bel_cluster *cluster;
        BEL_ASSERT_FAILS(parse(mistakes[i].text, &cluster), BEL_INVALID_ARGUMENT, mistakes[i].part);
    }
}

#define CHECK_MISTAKES(mistakes) check_mistakes(mistakes, sizeof(mistakes) / sizeof(mistakes)[0])

// --- Belfry's keys -------------------------------------------------------------------------------

static void test_own_keys(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(
        parse("machines:\n"
              "  box: {cores: 16, memory: 64 GiB, devices: 2}\n"
              "  small: {memory: 500 MB}\n"
              "master: {machine: box, trains: true, host: m}\n"
              "workers: {devices: 4, count: 4, machine: box, hosts: [a, b]}\n"
              "parameter_servers: {count: 2, machine: small, hosts: [c]}\n"
              "evaluators: {count: 1, machine: small, hosts: [root@10.0.0.1]}\n"
              "environment: {PATH: /bin, N: 3, EMPTY: }\n"
              "limits: {join_timeout: 5, silence_timeout: 0.5, stall_timeout: 60, restarts: 3}\n"
              "security: {secret_file: s, tls: {ca: a, certificate: b, "
              "key: c}}\n",
              &c));
    assert_string_equal(c->source, "c.yaml");
    assert_false(c->from_ai_platform);
    const bel_cluster_role *workers = &c->roles[BEL_ROLE_WORKER];
    assert_int_equal(workers->count, 4);
    assert_string_equal(workers->machine.name, "box");
    assert_int_equal(workers->machine.cores, 16);
    assert_int_equal(workers->machine.devices, 4); // instead of the machine's, wherever the key is
    assert_int_equal(workers->machine.memory_bytes, (int64_t)64 << 30);
    assert_int_equal(workers->host_count, 2);
    assert_string_equal(workers->hosts[0], "a");
    assert_string_equal(workers->hosts[1], "b");
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 2);
    assert_int_equal(c->roles[BEL_ROLE_PS].machine.memory_bytes, 500000000);
    assert_int_equal(c->roles[BEL_ROLE_PS].machine.cores, 0);
    assert_int_equal(c->roles[BEL_ROLE_EVALUATOR].count, 1);
    assert_string_equal(c->roles[BEL_ROLE_EVALUATOR].hosts[0], "root@10.0.0.1");
    assert_int_equal(c->roles[BEL_ROLE_MASTER].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_MASTER].machine.devices, 2);
    assert_string_equal(c->roles[BEL_ROLE_MASTER].hosts[0], "m");
    assert_true(c->master_trains);
    assert_int_equal(c->environment_count, 3);
    assert_string_equal(c->environment[0], "PATH=/bin");
    assert_string_equal(c->environment[1], "N=3");
    assert_string_equal(c->environment[2], "EMPTY=");
    assert_true(c->join_timeout_secs == 5 && c->silence_timeout_secs == 0.5);
    assert_true(c->stall_timeout_secs == 60);
    assert_int_equal(c->restarts, 3);
    assert_string_equal(c->secret_file, "s");
    assert_string_equal(c->tls_ca, "a");
    assert_string_equal(c->tls_certificate, "b");
    assert_string_equal(c->tls_key, "c");
    bel_cluster_destroy(c);
}

static void test_defaults(void **state)
{
    (void)state;
    bel_cluster *flags = bel_cluster_create(3, 1, 0), *file;
    BEL_ASSERT_OK(parse("workers: {count: 3}\n", &file));
    assert_string_equal(flags->source, "flags");
    const bel_cluster *both[] = {flags, file};
    for (int i = 0; i < 2; i++) {
        const bel_cluster *c = both[i];
        static const int counts[] = {1, 3, 1, 0};
        for (int r = 0; r < BEL_ROLE_COUNT; r++) {
            assert_int_equal(c->roles[r].count, counts[r]);
            assert_string_equal(c->roles[r].machine.name, "");
            assert_int_equal(c->roles[r].machine.cores, 0);
            assert_int_equal(c->roles[r].machine.devices, 0);
            assert_int_equal(c->roles[r].host_count, 0);
        }
        assert_false(c->master_trains || c->from_ai_platform);
        assert_true(c->join_timeout_secs == 60 && c->silence_timeout_secs == 10);
        assert_true(c->stall_timeout_secs == 0);
        assert_int_equal(c->restarts, 10);
        assert_null(c->secret_file);
        assert_null(c->tls_ca);
    }
    bel_cluster_destroy(flags);
    bel_cluster_destroy(file);
    bel_cluster_destroy(NULL);
}

static void test_example(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(bel_cluster_read("cluster.yaml", &c)); // the example in README
    assert_string_equal(c->source, "cluster.yaml");
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 2);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, 2);
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 2);
    bel_cluster_destroy(c);
}

// The examples in the manual.
static void test_manual(void **state)
{
    (void)state;
    static const char begin[] = "```yaml\n";
    char *manual;
    size_t size;
    int count = 0;
    BEL_ASSERT_OK(bel_file_read("docs/cluster-yaml.md", &manual, &size));
    for (const char *at = strstr(manual, begin); at != NULL; at = strstr(at, begin)) {
        at += strlen(begin);
        const char *end = strstr(at, "```");
        assert_non_null(end);
        bel_cluster *c;
        BEL_ASSERT_OK(bel_cluster_parse(at, (size_t)(end - at), "cluster-yaml.md", &c));
        bel_cluster_destroy(c);
        count++;
    }
    assert_int_equal(count, 3);
    bel_free(manual);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = {{"1024", 1024},
                 {"'7 B'", 7},
                 {"3 kB", 3000},
                 {"500 MB", 500000000},
                 {"2GB", 2000000000},
                 {"1 TB", 1000000000000},
                 {"1.5 KiB", 1536},
                 {"1 MiB", 1 << 20},
                 {"64 GiB", (int64_t)64 << 30},
                 {"2 TiB", (int64_t)2 << 40}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bel_cluster *c;
        char *text =
            bel_strf("machines: {m: {memory: %s}}\nworkers: {machine: m}\n", cases[i].text);
        BEL_ASSERT_OK(parse(text, &c));
        assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.memory_bytes, cases[i].bytes);
        bel_cluster_destroy(c);
        bel_free(text);
    }
    static const char *const wrong[] = {
        "64 GB!",       "0",   "0 GiB", "-1 GiB", "64 gib", "GiB",  "1e3",           "~",
        "'1 GiB more'", "[1]", "0.1",   "1.2.3",  "''",     "64 G", "9999999999 TiB"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bel_cluster *c;
        char *text = bel_strf("machines:\n  m: {memory: %s}\n", wrong[i]);
        BEL_ASSERT_FAILS(parse(text, &c), BEL_INVALID_ARGUMENT,
                         "c.yaml:2:15: expected a size such as 64 GiB or 500 MB, got ");
        bel_free(text);
    }
}

static void test_mistakes_in_values(void **state)
{
    (void)state;
    static const mistake mistakes[] = {
        {"", "c.yaml:1:1: the file is empty"},
        {"# nothing\n", "c.yaml:1:1: the file is empty"},
        {"{}\n", "c.yaml:1:1: the file is empty"},
        {"- workers\n", "c.yaml:1:1: expected a mapping, got a list"},
        {"workers\n", "c.yaml:1:1: expected a mapping, got \"workers\""},
        {"workers: {count: 2", "c.yaml:2:1: not valid YAML"},
        {"workers: {count: 1}\nworkers: {count: 2}\n", "c.yaml:2:1: key \"workers\" already"},
        {"workers: 2\n", "c.yaml:1:10: expected a mapping, got \"2\""},
        {"workers:\n", "c.yaml:1:9: expected a mapping, got nothing"},
        {"workers: {count: two}\n", "c.yaml:1:18: expected an integer from 0 to 1024, got \"two\""},
        {"workers: {count: 2.5}\n", "c.yaml:1:18: expected an integer from 0 to 1024"},
        {"workers: {count: 1025}\n", "c.yaml:1:18: expected an integer from 0 to 1024"},
        {"workers: {count: 99999999999999999999}\n", "c.yaml:1:18: expected an integer"},
        {"workers: {count: -1}\n", "c.yaml:1:18: expected an integer from 0 to 1024"},
        {"workers: {count: [1]}\n", "c.yaml:1:18: expected an integer from 0 to 1024, got a "
                                    "list"},
        {"workers: {count: }\n", "c.yaml:1:18: expected an integer from 0 to 1024, got "
                                 "nothing"},
        {"workers: {devices: 0}\n", "c.yaml:1:20: expected an integer from 1 to 256"},
        {"workers: {devices: 257}\n", "c.yaml:1:20: expected an integer from 1 to 256"},
        {"workers: {machine: [a]}\n", "c.yaml:1:20: expected a text, got a list"},
        {"parameter_servers: {count: 1025}\n", "c.yaml:1:28: expected an integer from 0"},
        {"machines: [box]\n", "c.yaml:1:11: expected a mapping of machines, got a list"},
        {"machines: {box: 3}\n", "c.yaml:1:17: expected a mapping, got \"3\""},
        {"machines: {box: {cores: 0}}\n", "c.yaml:1:25: expected an integer from 1 to 4096"},
        {"machines: {box: {devices: 0}}\n", "c.yaml:1:27: expected an integer from 1 to 256"},
        {"master: {trains: maybe}\n", "c.yaml:1:18: expected true or false, got \"maybe\""},
        {"master: {trains: [true]}\n", "c.yaml:1:18: expected true or false, got a list"},
        {"master: {host: ''}\n", "c.yaml:1:16: expected a text, got \"\""},
        {"limits: {stall_timeout: -1}\n",
         "c.yaml:1:25: expected seconds, from 0.001 to 1000000, got \"-1\""},
        {"limits: {restarts: -1}\n", "c.yaml:1:20: expected"},
        {"limits: {join_timeout: 0}\n", "c.yaml:1:24: expected seconds"},
        {"limits: {silence_timeout: 1e7}\n", "c.yaml:1:27: expected seconds"},
        {"limits: {silence_timeout: nan}\n", "c.yaml:1:27: expected seconds"},
        {"limits: {join_timeout: 10 s}\n", "c.yaml:1:24: expected seconds"},
        {"environment: [A]\n", "c.yaml:1:14: expected a mapping of names to values, got a list"},
        {"environment: {A: [1]}\n", "c.yaml:1:18: expected a text, got a list"},
        {"environment: {TF_CONFIG: x}\n", "c.yaml:1:15: \"TF_CONFIG\" cannot be set here"},
        {"environment: {A: 1, BELFRY_SECRET: x}\n", "c.yaml:1:21: \"BELFRY_SECRET\" cannot"},
        {"environment: {A-B: 1}\n", "c.yaml:1:15: expected letters, digits and _, no digit first"},
        {"environment: {1A: 1}\n", "c.yaml:1:15: expected letters, digits and _"},
        {"environment: {'': 1}\n", "c.yaml:1:15: expected letters, digits and _"},
        {"security: {listen: any}\n", "c.yaml:1:12: unknown key \"listen\""},
        {"security: {secret_file: [s]}\n", "c.yaml:1:25: expected a text, got a list"},
        {"security: {tls: yes}\n", "c.yaml:1:17: expected a mapping, got \"yes\""},
    };
    CHECK_MISTAKES(mistakes);
}

static void test_unknown_keys(void **state)
{
    (void)state;
    static const mistake mistakes[] = {
        {"worker: {count: 2}\n", "c.yaml:1:1: unknown key \"worker\"; did you mean \"workers\"?"},
        {"scaletier: CUSTOM\n",
         "c.yaml:1:1: unknown key \"scaletier\"; did you mean \"scaleTier\"?"},
        {"qqqqqqqqqqqqqqqqqqqq: 1\n", "c.yaml:1:1: unknown key \"qqqqqqqqqqqqqqqqqqqq\""},
        {"workers: {}\nmastr: {}\n", "c.yaml:2:1: unknown key \"mastr\"; did you mean \"master\"?"},
        {"workers:\n  cont: 2\n", "c.yaml:2:3: unknown key \"cont\"; did you mean \"count\"?"},
        {"master: {train: true}\n", "c.yaml:1:10: unknown key \"train\"; did you mean \"trains\"?"},
        {"master: {count: 2}\n", "c.yaml:1:10: unknown key \"count\""},
        {"parameter_servers: {devices: 2}\n", "c.yaml:1:21: unknown key \"devices\""},
        {"evaluators: {machin: box}\n", "c.yaml:1:14: unknown key \"machin\"; did you mean "
                                        "\"machine\"?"},
        {"machines: {box: {core: 1}}\n", "c.yaml:1:18: unknown key \"core\"; did you mean "
                                         "\"cores\"?"},
        {"limits: {stal_timeout: 1}\n", "c.yaml:1:10: unknown key \"stal_timeout\"; did you mean "
                                        "\"stall_timeout\"?"},
        {"security: {secretfile: a}\n", "c.yaml:1:12: unknown key \"secretfile\"; did you mean "
                                        "\"secret_file\"?"},
        {"security: {tls: {cert: a}}\n", "c.yaml:1:18: unknown key \"cert\""},
    };
    CHECK_MISTAKES(mistakes);
}

static void test_clashes(void **state)
{
    (void)state;
    static const mistake mistakes[] = {
        {"workers: {count: 0}\n", "c.yaml:1:18: there are no workers, and the master does not "
                                  "train: no process would"},
        {"master: {trains: true}\nworkers: {count: 1024}\n",
         "c.yaml:2:18: with the master that trains these are more than 1024 workers"},
        {"evaluators:\n  count: 2\n", "c.yaml:2:10: at most one evaluator is possible, got 2"},
        {"workers: {count: 1, machine: box}\n",
         "c.yaml:1:30: machine \"box\" is not among the machines of this file"},
        {"machines: {large: {}}\nmaster: {machine: larg}\n",
         "c.yaml:2:19: machine \"larg\" is not among the machines of this file; did you mean "
         "\"large\"?"},
        {"workers: {hosts: a}\n", "c.yaml:1:18: expected a list of at least one host"},
        {"workers: {count: 1, hosts: []}\n", "c.yaml:1:28: expected a list of at least one host"},
        {"workers: {count: 2, hosts: [a, a]}\n", "c.yaml:1:32: host \"a\" is named twice"},
        {"workers: {count: 2, hosts: [a, \"\"]}\n", "c.yaml:1:32: expected a text, got \"\""},
        {"workers: {count: 2, hosts: [a, \"b c\"]}\n",
         "c.yaml:1:32: expected the name or address of a host, got \"b c\""},
        {"master: {host: -oProxy}\n", "c.yaml:1:16: expected the name or address"},
        {"workers: {count: 2, hosts: [a, b, c]}\n",
         "c.yaml:1:28: 3 hosts, but the count of workers is 2"},
        {"workers: {count: 2}\nlimits: {min_workers: 3}\n",
         "c.yaml:2:23: min_workers is 3, but there are only 2 workers"},
        {"parameter_servers: {count: 3, copies: 2}\n", "c.yaml:1:39: expected"},
        {"parameter_servers: {copies: 1}\n", "c.yaml:1:29: copies (flag parameter_server_copies) "
                                             "is 1, but the count is 1: a copy is in "
                                             "the process of another parameter server"},
        {"parameter_servers: {count: 2, copies: 1}\nlimits: {restarts: 0}\n",
         "c.yaml:1:39: copies (flag parameter_server_copies) is 1, but restarts is 0: no process "
         "would get the copy"},
        {"parameter_servers: {count: 3, hosts: [a, b], copies: 1}\n",
         "c.yaml:1:54: copies (flag parameter_server_copies) is 1, but the count is 3, on 2 hosts: "
         "ps 2 and its copy would be on one host; hint: an even count, or three hosts"},
        {"workers: {copies: 1}\n", "unknown key \"copies\""},
        {"workers: {hosts: [a, b]}\n", "c.yaml:1:18: 2 hosts, but the count of workers is 1"},
        {"parameter_servers: {count: 0, hosts: [a]}\n",
         "c.yaml:1:38: 1 host, but the count of parameter_servers is 0"},
        {"evaluators: {hosts: [a]}\n", "c.yaml:1:21: 1 host, but the count of evaluators is 0"},
        {"security: {tls: {ca: a}}\n", "c.yaml:1:17: expected all of ca, certificate and key, and "
                                       "certificate is missing"},
        {"security: {tls: {certificate: a, key: b}}\n", "and ca is missing"},
        {"security: {tls: {}}\n", "c.yaml:1:17: expected all of ca, certificate and key"},
        {"scaleTier: BASIC\nworkers: {count: 1}\n",
         "c.yaml:2:1: \"scaleTier\" is a key of AI Platform's and \"workers\" one of Belfry's own"},
        {"limits: {}\nworkerCount: 1\n", "c.yaml:2:1: \"workerCount\" is a key of AI Platform's "
                                         "and \"limits\" one of Belfry's own; "
                                         "a file has keys of one family"},
        {"{trainingInput: {scaleTier: BASIC}, environment: {A: 1}}\n",
         "c.yaml:1:37: \"trainingInput\" is a key of AI Platform's"},
    };
    CHECK_MISTAKES(mistakes);
}

// --- AI Platform's keys --------------------------------------------------------------------------

static void test_article(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(parse("scaleTier: CUSTOM\nmasterType: standard_p100\nworkerType: standard_p100\n"
                        "parameterServerType: complex_model_m\nworkerCount: 3\n"
                        "parameterServerCount: 1\n",
                        &c));
    assert_true(c->master_trains && c->from_ai_platform);
    assert_int_equal(c->roles[BEL_ROLE_MASTER].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_MASTER].machine.devices, 1);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 3);
    assert_string_equal(c->roles[BEL_ROLE_WORKER].machine.name, "standard_p100");
    assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, 1);
    assert_int_equal(c->roles[BEL_ROLE_PS].count, 1);
    assert_int_equal(c->roles[BEL_ROLE_PS].machine.devices, 0);
    assert_int_equal(c->roles[BEL_ROLE_EVALUATOR].count, 0);
    bel_cluster_destroy(c);
}

static void test_tiers(void **state)
{
    (void)state;
    static const struct {
        const char *tier;
        int workers, servers, devices;
    } tiers[] = {{"BASIC", 0, 0, 0},
                 {"BASIC_GPU", 0, 0, 1},
                 {"STANDARD_1", 4, 3, 0},
                 {"PREMIUM_1", 19, 11, 0}};
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        for (int nested = 0; nested < 2; nested++) {
            bel_cluster *c;
            char *text =
                bel_strf("%sscaleTier: %s\n", nested ? "trainingInput:\n  " : "", tiers[i].tier);
            BEL_ASSERT_OK(parse(text, &c));
            assert_int_equal(c->roles[BEL_ROLE_WORKER].count, tiers[i].workers);
            assert_int_equal(c->roles[BEL_ROLE_PS].count, tiers[i].servers);
            assert_int_equal(c->roles[BEL_ROLE_MASTER].machine.devices, tiers[i].devices);
            assert_true(c->master_trains);
            bel_cluster_destroy(c);
            bel_free(text);
        }
    }
}

static void test_machine_types(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int devices;
    } types[] = {{"standard", 0},         {"complex_model_l", 0},      {"n1-highmem-8", 0},
                 {"output_server", 0}, // "tpu" inside a name does not count
                 {"standard_gpu", 1},     {"complex_model_m_gpu", 4},  {"complex_model_l_gpu", 8},
                 {"standard_p100", 1},    {"complex_model_m_p100", 4}, {"standard_v100", 1},
                 {"large_model_v100", 1}, {"complex_model_m_v100", 4}, {"complex_model_l_v100", 8}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        bel_cluster *c;
        char *text = bel_strf("workerCount: \"2\"\nworkerType: %s\nmasterType: standard\n"
                              "evaluatorCount: '1'\nevaluatorType: standard\nscaleTier: CUSTOM\n",
                              types[i].type);
        BEL_ASSERT_OK(parse(text, &c)); // in the REST interface counts are texts
        assert_int_equal(c->roles[BEL_ROLE_WORKER].count, 2);
        assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, types[i].devices);
        assert_int_equal(c->roles[BEL_ROLE_PS].count, 0);
        assert_int_equal(c->roles[BEL_ROLE_EVALUATOR].count, 1);
        bel_cluster_destroy(c);
        bel_free(text);
    }
}

// The log written while a text is read; free with bel_free.
static char *log_of(const char *text)
{
    char *folder = bel_test_folder();
    char *path = bel_path_join(folder, "log");
    fflush(stderr);
    int before = dup(2), log = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(before >= 0 && log >= 0);
    dup2(log, 2);
    bel_cluster *c = NULL;
    bel_status *status = parse(text, &c);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    close(log);
    BEL_ASSERT_OK(status);
    bel_cluster_destroy(c);
    char *said;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &said, &size));
    bel_free(path);
    bel_test_remove_folder(folder);
    return said;
}

static void test_passed_over(void **state)
{
    (void)state;
    bel_log_configure(BEL_LOG_INFO, BEL_LOG_TEXT);
    char *said = log_of("jobId: first\n"
                        "labels: {a: b}\n"
                        "trainingInput:\n"
                        "  scaleTier: BASIC\n"
                        "  region: us-central1\n"
                        "  args: [--train_steps, '100']\n"
                        "  packageUris: [gs://x/y.tar.gz]\n"
                        "  pythonModule: trainer.main\n"
                        "  pythonVersion: '3.7'\n"
                        "  runtimeVersion: '1.4'\n"
                        "  jobDir: gs://x\n"
                        "  masterConfig: {imageUri: z}\n"
                        "  workerConfig: {}\n"
                        "  parameterServerConfig: {}\n"
                        "  evaluatorConfig: {}\n"
                        "  hyperparameters: {goal: MAXIMIZE}\n"
                        "  scheduling: {maxRunningTime: 1h}\n"
                        "  serviceAccount: s\n"
                        "  network: n\n"
                        "  encryptionConfig: {}\n"
                        "  enableWebAccess: true\n"
                        "  useChiefInTfConfig: true\n");
    static const char line[] =
        "c.yaml: passed over, without meaning here: jobId, labels, packageUris, pythonModule, "
        "pythonVersion, runtimeVersion, region, jobDir, args, hyperparameters, scheduling, "
        "serviceAccount, network, encryptionConfig, enableWebAccess, useChiefInTfConfig, "
        "masterConfig.imageUri\n";
    const char *found = strstr(said, line);
    assert_non_null(found);
    assert_string_equal(found, line);                        // and no line after it
    assert_null(memchr(said, '\n', (size_t)(found - said))); // nor a line before it
    bel_free(said);
    said = log_of("scaleTier: BASIC\n");
    assert_string_equal(said, "");
    bel_free(said);
}

#define CUSTOM "scaleTier: CUSTOM\nmasterType: m\n"

static void test_accelerators(void **state)
{
    (void)state;
    bel_cluster *c;
    BEL_ASSERT_OK(parse("scaleTier: CUSTOM\nmasterType: standard_p100\n"
                        "workerType: n1-highcpu-16\nworkerCount: 2\n"
                        "workerConfig: {acceleratorConfig: {count: '4', type: NVIDIA_TESLA_T4}}\n",
                        &c));
    assert_int_equal(c->roles[BEL_ROLE_MASTER].machine.devices, 1);
    assert_true(c->roles[BEL_ROLE_MASTER].machine.devices_by_type);
    assert_int_equal(c->roles[BEL_ROLE_WORKER].machine.devices, 4);
    assert_false(c->roles[BEL_ROLE_WORKER].machine.devices_by_type);
    bel_cluster_destroy(c);
}

// `expected` NULL: the text stays unchanged.
static void check_tier(const char *text, const char *expected)
{
    char *changed;
    BEL_ASSERT_OK(bel_ai_platform_add_tier(text, strlen(text), "c.yaml", "BASIC", &changed));
    if (expected == NULL) {
        assert_null(changed);
    } else {
        bel_cluster *c;
        assert_string_equal(changed, expected);
        BEL_ASSERT_OK(parse(changed, &c));
        assert_string_equal(c->scale_tier, "BASIC");
        bel_cluster_destroy(c);
    }
    bel_free(changed);
}

static void test_tier_added(void **state)
{
    (void)state;
    check_tier("# mine\nhyperparameters:\n  goal: MAXIMIZE\n",
               "# mine\nscaleTier: BASIC\nhyperparameters:\n  goal: MAXIMIZE\n");
    check_tier("trainingInput:\n    region: x\n    args: []\n",
               "trainingInput:\n    scaleTier: BASIC\n    region: x\n    args: []\n");
    check_tier(
        "{\"jobId\": \"\xc3\xbc\", \"trainingInput\": {\"region\": \"x\"}}",
        "{\"jobId\": \"\xc3\xbc\", \"trainingInput\": {scaleTier: BASIC, \"region\": \"x\"}}");
    check_tier("scaleTier: CUSTOM\nmasterType: m\n", NULL);
    check_tier("workers: {count: 1}\n", NULL);
    check_tier("", NULL);
}

static void test_mistakes_of_ai_platform(void **state)
{
    (void)state;
    static const mistake mistakes[] = {
        {"masterType: standard\n",
         "c.yaml:1:1: scaleTier is missing; CUSTOM goes with counts and types"},
        {"trainingInput:\n  region: x\n", "c.yaml:2:3: scaleTier is missing"},
        {"trainingInput:\n", "c.yaml:1:15: expected a mapping, got nothing"},
        {"trainingInput: BASIC\n", "c.yaml:1:16: expected a mapping, got \"BASIC\""},
        {"scaleTier: HUGE\n", "c.yaml:1:12: expected BASIC, BASIC_GPU, STANDARD_1, PREMIUM_1 or "
                              "CUSTOM, got \"HUGE\""},
        {"scaleTier: [BASIC]\n", "c.yaml:1:12: expected a text, got a list"},
        {"scaleTier: BASIC_TPU\n", "c.yaml:1:12: \"BASIC_TPU\": there are no TPUs here"},
        {"scaleTier: CUSTOM\nmasterType: cloud_tpu\n",
         "c.yaml:2:13: \"cloud_tpu\": there are no TPUs here"},
        {CUSTOM "workerCount: 1\nworkerType: cloud_tpu\n", "c.yaml:4:13: \"cloud_tpu\""},
        {"scaleTier: CUSTOM\n", "c.yaml:1:12: scaleTier: CUSTOM needs masterType"},
        {"scaleTier: BASIC\nmasterType: x\n", "c.yaml:2:13: masterType needs scaleTier: CUSTOM"},
        {"scaleTier: BASIC\nworkerCount: 2\n", "c.yaml:2:14: workerCount needs scaleTier: CUSTOM"},
        {"scaleTier: STANDARD_1\nparameterServerCount: 0\n",
         "c.yaml:2:23: parameterServerCount needs scaleTier: CUSTOM"},
        {"scaleTier: BASIC\nevaluatorType: x\n", "c.yaml:2:16: evaluatorType needs scaleTier"},
        {CUSTOM "workerCount: 2\n", "c.yaml:3:14: workerCount above 0 needs workerType"},
        {CUSTOM "parameterServerCount: 2\n",
         "c.yaml:3:23: parameterServerCount above 0 needs parameterServerType"},
        {CUSTOM "evaluatorCount: 1\n", "c.yaml:3:17: evaluatorCount above 0 needs evaluatorType"},
        {CUSTOM "workerType: w\n", "c.yaml:3:13: workerType needs workerCount above 0"},
        {CUSTOM "workerType: w\nworkerCount: 0\n", "c.yaml:3:13: workerType needs workerCount"},
        {CUSTOM "parameterServerType: p\n", "c.yaml:3:22: parameterServerType needs"},
        {CUSTOM "evaluatorType: e\n", "c.yaml:3:16: evaluatorType needs evaluatorCount above 0"},
        {CUSTOM "workerType: w\nworkerCount: 1024\n", // 1025 with the master
         "c.yaml:4:14: expected an integer from 0 to 1023, got \"1024\""},
        {CUSTOM "workerType: w\nworkerCount: -1\n", "c.yaml:4:14: expected an integer"},
        {CUSTOM "workerType: w\nworkerCount: \"x\"\n", "c.yaml:4:14: expected an integer"},
        {CUSTOM "evaluatorType: w\nevaluatorCount: 2\n",
         "c.yaml:4:17: expected an integer from 0 to 1, got \"2\""},
        {CUSTOM "masterConfig: {imageUrl: x}\n",
         "c.yaml:3:16: unknown key \"imageUrl\"; did you mean \"imageUri\"?"},
        {CUSTOM "masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4}}\n",
         "c.yaml:3:35: acceleratorConfig needs count"},
        {CUSTOM "masterConfig: {acceleratorConfig: {count: 8, type: TPU_V3}}\n",
         "\"TPU_V3\": there are no TPUs here"},
        {CUSTOM "masterConfig: {acceleratorConfig: {count: x}}\n", "expected an integer from 1"},
        {CUSTOM "workerConfig: {acceleratorConfig: {count: 2}}\n",
         "c.yaml:3:35: workerConfig.acceleratorConfig needs workerCount above 0"},
        {CUSTOM "workerTipe: w\n",
         "c.yaml:3:1: unknown key \"workerTipe\"; did you mean \"workerType\"?"},
        {"trainingInput:\n  scaleTier: BASIC\n  regio: x\n",
         "c.yaml:3:3: unknown key \"regio\"; did you mean \"region\"?"},
        {"trainingInput:\n  scaleTier: BASIC\njobid: x\n",
         "c.yaml:3:1: unknown key \"jobid\"; did you mean \"jobId\"?"},
        {"trainingInput:\n  scaleTier: BASIC\nworkerCount: 1\n",
         "c.yaml:3:1: \"workerCount\" belongs under trainingInput, which is in line 2"},
    };
    CHECK_MISTAKES(mistakes);
}

// --- Files ---------------------------------------------------------------------------------------

static void test_files(void **state)
{
    (void)state;
    static const char text[] = "workers: {count: 2}\nmster: {}\n";
    char *folder = bel_test_folder();
    char *path = bel_test_file(folder, "bad.yaml", text, sizeof text - 1);
    char *place = bel_strf("%s:2:1: unknown key", path);
    bel_cluster *c;
    BEL_ASSERT_FAILS(bel_cluster_read(path, &c), BEL_INVALID_ARGUMENT, place);
    BEL_ASSERT_FAILS(bel_cluster_read(folder, &c), BEL_INVALID_ARGUMENT, folder);
    BEL_ASSERT_FAILS(bel_cluster_read("/nowhere/c.yaml", &c), BEL_INVALID_ARGUMENT,
                     "/nowhere/c.yaml");
    bel_free(place);
    bel_free(path);
    bel_test_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_keys),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_manual),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_mistakes_in_values),
        cmocka_unit_test(test_unknown_keys),
        cmocka_unit_test(test_clashes),
        cmocka_unit_test(test_article),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_accelerators),
        cmocka_unit_test(test_tier_added),
        cmocka_unit_test(test_machine_types),
        cmocka_unit_test(test_passed_over),
        cmocka_unit_test(test_mistakes_of_ai_platform),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
