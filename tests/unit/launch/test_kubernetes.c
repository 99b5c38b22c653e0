// Kubernetes manifests: keys of cluster.yaml, checks, and the text. tests/cli/kubernetes.sh checks
// that Kubernetes accepts the complete text and that the pods train.
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/yaml.h"
#include "launch/engine/kubernetes_manifest.h"
#include "support/bel_test.h"

static bel_cluster *parse(const char *text)
{
    bel_cluster *cluster;
    BEL_ASSERT_OK(bel_cluster_parse(text, strlen(text), "c.yaml", &cluster));
    return cluster;
}

static const char least[] = "kubernetes: {image: i, volume_claim: v}\n";

// --- Keys ----------------------------------------------------------------------------------------

static void test_keys(void **state)
{
    (void)state;
    bel_cluster *c = parse("kubernetes: {image: \"r.io:5000/a/b:0.1@sha256:ab\", namespace: ml-1, "
                           "kind: tfjob, volume_claim: a.b-c, mount: /data/models, user: 7, "
                           "gpus: true, secret: s, service_account: robot}\n");
    const bel_cluster_kubernetes *k = &c->kubernetes;
    assert_string_equal(k->image, "r.io:5000/a/b:0.1@sha256:ab");
    assert_string_equal(k->name_space, "ml-1");
    assert_string_equal(k->volume_claim, "a.b-c");
    assert_string_equal(k->mount, "/data/models");
    assert_string_equal(k->secret, "s");
    assert_string_equal(k->service_account, "robot");
    assert_true(k->tfjob && k->gpus && k->user == 7);
    assert_string_equal(bel_kubernetes_kind(c), "tfjob");
    bel_cluster_destroy(c);
    c = parse(least);
    k = &c->kubernetes;
    assert_string_equal(k->name_space, "default");
    assert_string_equal(k->mount, "/models");
    assert_true(!k->tfjob && !k->gpus && k->user == 10001 && k->secret == NULL);
    assert_string_equal(bel_kubernetes_kind(c), "jobset");
    bel_cluster_destroy(c);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *keys, *message;
    } mistakes[] = {
        {"imag: i", "c.yaml:1:14: unknown key \"imag\"; did you mean \"image\"?"},
        {"image: \"a b\"", "c.yaml:1:21: expected the name of an image, got \"a b\""},
        {"image: \"a\\\"b\"", "c.yaml:1:21: expected the name of an image"},
        {"image: []", "c.yaml:1:21: expected a text"},
        {"namespace: Ml", "c.yaml:1:25: expected small letters, digits and -"},
        {"namespace: a.b", "c.yaml:1:25: expected small letters, digits and -"},
        {"namespace: -a", "c.yaml:1:25: expected small letters, digits and -"},
        {"namespace: a-", "c.yaml:1:25: expected small letters, digits and -"},
        {"namespace: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "c.yaml:1:25: expected small letters, digits and -"},
        {"kind: job", "c.yaml:1:20: expected jobset or tfjob, got \"job\""},
        {"volume_claim: a..b", "c.yaml:1:28: expected small letters, digits, - and ."},
        {"volume_claim: a_b", "c.yaml:1:28: expected small letters, digits, - and ."},
        {"mount: models", "c.yaml:1:21: expected a path from the root"},
        {"mount: /", "c.yaml:1:21: expected a path from the root"},
        {"mount: /a/", "c.yaml:1:21: expected a path from the root"},
        {"mount: /a/../b", "c.yaml:1:21: expected a path from the root"},
        {"mount: \"/a:b\"", "c.yaml:1:21: expected a path from the root"},
        {"user: 0", "c.yaml:1:20: expected an integer from 1 to 2147483646"},
        {"gpus: 2", "c.yaml:1:20: expected true or false"},
        {"secret: a.", "c.yaml:1:22: expected small letters, digits, - and ."},
        {"service_account: A", "c.yaml:1:31: expected small letters, digits, - and ."},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        bel_cluster *cluster;
        char *text = bel_strf("kubernetes: {%s}\n", mistakes[i].keys);
        BEL_ASSERT_FAILS(bel_cluster_parse(text, strlen(text), "c.yaml", &cluster),
                         BEL_INVALID_ARGUMENT, mistakes[i].message);
        bel_free(text);
    }
}

static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message; // NULL: valid
    } checks[] = {
        {least, NULL},
        {"workers: {count: 2}\n", "c.yaml: kubernetes.image is missing"},
        {"kubernetes: {image: i}\n", "c.yaml: kubernetes.volume_claim is missing"},
        {"master: {host: a}\nkubernetes: {image: i, volume_claim: v}\n",
         "c.yaml: host a of the master role"},
        {"security: {secret_file: s}\nkubernetes: {image: i, volume_claim: v}\n",
         "name it in kubernetes.secret"},
        {"security: {tls: {ca: a, certificate: b, key: c}}\n"
         "kubernetes: {image: i, volume_claim: v}\n",
         "c.yaml: security.tls: pods have addresses that no certificate names"},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        bel_cluster *cluster = parse(checks[i].text);
        if (checks[i].message == NULL) {
            BEL_ASSERT_OK(bel_kubernetes_check(cluster));
        } else {
            BEL_ASSERT_FAILS(bel_kubernetes_check(cluster), BEL_INVALID_ARGUMENT,
                             checks[i].message);
        }
        bel_cluster_destroy(cluster);
    }
}

// --- The text ------------------------------------------------------------------------------------

static char verb[] = "train", quote[] = "a\"b", variable[] = "$(X)", home[] = "/home", none[] = "";
static char *words[] = {verb, quote, variable};

static bel_status *write_job(const char *text, const char *name, const char *model_dir,
                             bel_str *out)
{
    bel_plan *plan;
    bel_cluster *cluster = parse(text);
    bel_job_record record = {.name = bel_xstrdup(name),
                             .model_dir = bel_xstrdup(model_dir),
                             .directory = home,
                             .program = none,
                             .arguments = words,
                             .argument_count = sizeof words / sizeof words[0]};
    BEL_ASSERT_OK(bel_plan_create(cluster, 0, 0, &plan));
    bel_status *status = bel_kubernetes_write(&record, plan, "hush-hush-hush-hush", out);
    bel_plan_destroy(plan);
    bel_cluster_destroy(cluster);
    bel_free(record.name);
    bel_free(record.model_dir);
    return status;
}

static void has(const bel_str *text, const char *part)
{
    if (strstr(text->text, part) == NULL) fail_msg("there is no %s in\n%s", part, text->text);
}

static void test_jobset(void **state)
{
    (void)state;
    bel_str text = {0};
    BEL_ASSERT_OK(write_job("master: {trains: true}\n"
                            "machines: {m: {cores: 6, memory: 1 GiB, devices: 2}}\n"
                            "workers: {count: 3, machine: m}\n"
                            "parameter_servers: {count: 0}\n"
                            "limits: {restarts: 4}\n"
                            "kubernetes: {image: i, volume_claim: v, namespace: n}\n",
                            "job-1", "/models", &text));
    has(&text, "kind: Secret\nmetadata:\n  name: \"job-1-secret\"\n  namespace: \"n\"\n");
    has(&text, "stringData:\n  secret: \"hush-hush-hush-hush\"\n---\n");
    has(&text, "\n    maxRestarts: 4\n");
    has(&text, "\n        completions: 3\n        completionMode: Indexed\n"
               "        backoffLimit: 12\n");
    has(&text, "\n              - \"belfry\"\n              - \"train\"\n"
               "              - \"a\\\"b\"\n              - \"$$(X)\"\n");
    // Workers count from 1. Each has a separate host, whose cores its towers share.
    has(&text, "{\\\"job\\\":\\\"job-1\\\",\\\"role\\\":\\\"worker\\\",\\\"index\\\":1,");
    has(&text, "\\\"worker_count\\\":4,");
    has(&text, "\\\"threads\\\":3,");
    has(&text, "\\\"local_rank\\\":0,\\\"local_size\\\":1,\\\"carried\\\":0,\\\"memory\\\":0,"
               "\\\"copies\\\":0,\\\"parameter_server_hosts\\\":0,\\\"master\\\":"
               "\\\"job-1-master-0-0.job-1:7077\\\",\\\"listen\\\":\\\"$(POD_IP):7077\\\","
               "\\\"towers\\\":[1,2,2,2],\\\"counted\\\":1}");
    has(&text, "cpu: \"6\"\n");
    has(&text, "memory: \"1073741824\"\n");
    assert_null(strstr(text.text, "nvidia")); // only on request
    assert_null(strstr(text.text, "name: ps"));
    bel_str_deinit(&text);
}

static void test_listeners(void **state)
{
    (void)state;
    bel_str text = {0};
    BEL_ASSERT_OK(write_job(least, "j", "/models/x", &text)); // a master, a server, a worker
    int ports = 0, addresses = 0;
    for (const char *c = text.text; (c = strstr(c, "containerPort: 7077")) != NULL; c++)
        ports++;
    for (const char *c = text.text; (c = strstr(c, "$(POD_IP):0")) != NULL; c++)
        addresses++;
    assert_int_equal(ports, 2);
    assert_int_equal(addresses, 1); // the worker's, which no process calls
    bel_yaml *yaml = NULL;
    const char *jobset = strstr(text.text, "---\n") + 4;
    BEL_ASSERT_OK(bel_yaml_parse(jobset, strlen(jobset), "manifest", &yaml));
    const bel_yaml_node *spec = bel_yaml_member(bel_yaml_root(yaml), "spec");
    assert_int_equal(bel_yaml_member(spec, "replicatedJobs")->count, 3);
    bel_yaml_destroy(yaml);
    bel_str_deinit(&text);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *model_dir, *message;
    } refused[] = {
        {"A", "/models/a", "job name \"A\": Kubernetes has names of small letters"},
        {"a_b", "/models/a", "job name \"a_b\""},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "/models/a", "at most 40"},
        {"a", "/modelsa", "the model's folder /modelsa is not on the volume"},
        {"a", "", "the model's folder  is not on the volume, which pods see at /models"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        bel_str text = {0};
        BEL_ASSERT_FAILS(write_job(least, refused[i].name, refused[i].model_dir, &text),
                         BEL_INVALID_ARGUMENT, refused[i].message);
        bel_str_deinit(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),      cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_checks),    cmocka_unit_test(test_jobset),
        cmocka_unit_test(test_listeners), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
