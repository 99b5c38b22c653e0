// AI Platform's keys (trainingInput of its v1 REST interface), flat or under `trainingInput:`. What
// they say about packages, regions and images means nothing here and is passed over with one line.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/cluster_reader.h"

// --- Machine types -------------------------------------------------------------------------------

// Devices that the well-known types bring; all others have none.
static int devices_of(const char *type)
{
    static const struct {
        const char *type;
        int devices;
    } known[] = {
        {"standard_gpu", 1},         {"complex_model_m_gpu", 4},  {"complex_model_l_gpu", 8},
        {"standard_p100", 1},        {"complex_model_m_p100", 4}, {"standard_v100", 1},
        {"complex_model_m_v100", 4}, {"complex_model_l_v100", 8}, {"large_model_v100", 1}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(type, known[i].type) == 0) return known[i].devices;
    return 0;
}

static bel_status *read_type(const bel_yaml *yaml, const bel_yaml_node *node, bel_role role,
                             bel_cluster *cluster)
{
    const char *type = "";
    BEL_TRY(bel_cluster_text(yaml, node, &type));
    if (strstr(type, "tpu") != NULL) {
        return bel_yaml_error(yaml, node, "\"%s\": there are no TPUs here", type);
    }
    bel_cluster_machine *machine = &cluster->roles[role].machine;
    bel_free(machine->name);
    machine->name = bel_xstrdup(type);
    machine->devices = devices_of(type);
    return NULL;
}

static bel_status *read_master_type(const bel_yaml *yaml, const bel_yaml_node *node,
                                    bel_cluster *cluster)
{
    return read_type(yaml, node, BEL_ROLE_MASTER, cluster);
}

static bel_status *read_worker_type(const bel_yaml *yaml, const bel_yaml_node *node,
                                    bel_cluster *cluster)
{
    return read_type(yaml, node, BEL_ROLE_WORKER, cluster);
}

static bel_status *read_server_type(const bel_yaml *yaml, const bel_yaml_node *node,
                                    bel_cluster *cluster)
{
    return read_type(yaml, node, BEL_ROLE_PS, cluster);
}

static bel_status *read_evaluator_type(const bel_yaml *yaml, const bel_yaml_node *node,
                                       bel_cluster *cluster)
{
    return read_type(yaml, node, BEL_ROLE_EVALUATOR, cluster);
}

// --- Counts --------------------------------------------------------------------------------------

static bel_status *read_worker_count(const bel_yaml *yaml, const bel_yaml_node *node,
                                     bel_cluster *cluster)
{
    return bel_cluster_whole(yaml, node, 0, BEL_CLUSTER_MOST - 1,
                             &cluster->roles[BEL_ROLE_WORKER].count);
}

static bel_status *read_server_count(const bel_yaml *yaml, const bel_yaml_node *node,
                                     bel_cluster *cluster)
{
    return bel_cluster_whole(yaml, node, 0, BEL_CLUSTER_MOST, &cluster->roles[BEL_ROLE_PS].count);
}

static bel_status *read_evaluator_count(const bel_yaml *yaml, const bel_yaml_node *node,
                                        bel_cluster *cluster)
{
    return bel_cluster_whole(yaml, node, 0, 1, &cluster->roles[BEL_ROLE_EVALUATOR].count);
}

// --- Tiers ---------------------------------------------------------------------------------------

static bel_status *read_tier(const bel_yaml *yaml, const bel_yaml_node *node, bel_cluster *cluster)
{
    static const struct {
        const char *name;
        int workers, servers, devices;
    } tiers[] = {{"BASIC", 0, 0, 0},
                 {"BASIC_GPU", 0, 0, 1},
                 {"STANDARD_1", 4, 3, 0},
                 {"PREMIUM_1", 19, 11, 0},
                 {"CUSTOM", 0, 0, 0}};
    const char *name = "";
    BEL_TRY(bel_cluster_text(yaml, node, &name));
    if (strcmp(name, "BASIC_TPU") == 0) {
        return bel_yaml_error(yaml, node, "BASIC_TPU: there are no TPUs here");
    }
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        if (strcmp(name, tiers[i].name) != 0) continue;
        cluster->roles[BEL_ROLE_WORKER].count = tiers[i].workers;
        cluster->roles[BEL_ROLE_PS].count = tiers[i].servers;
        cluster->roles[BEL_ROLE_MASTER].machine.devices = tiers[i].devices;
        return NULL;
    }
    return bel_yaml_error(
        yaml, node, "expected BASIC, BASIC_GPU, STANDARD_1, PREMIUM_1 or CUSTOM, got \"%s\"", name);
}

static const bel_cluster_key keys[] = {
    {"scaleTier", read_tier}, // first: it sets what the others change
    {"masterType", read_master_type},
    {"workerType", read_worker_type},
    {"parameterServerType", read_server_type},
    {"evaluatorType", read_evaluator_type},
    {"workerCount", read_worker_count},
    {"parameterServerCount", read_server_count},
    {"evaluatorCount", read_evaluator_count},
    {"packageUris", NULL},
    {"pythonModule", NULL},
    {"pythonVersion", NULL},
    {"runtimeVersion", NULL},
    {"region", NULL},
    {"jobDir", NULL},
    {"args", NULL},
    {"masterConfig", NULL},
    {"workerConfig", NULL},
    {"parameterServerConfig", NULL},
    {"evaluatorConfig", NULL},
    {"hyperparameters", NULL},
    {"scheduling", NULL},
    {"serviceAccount", NULL},
    {"network", NULL},
    {"encryptionConfig", NULL},
    {"enableWebAccess", NULL},
    {"useChiefInTfConfig", NULL},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

// --- Rules between keys --------------------------------------------------------------------------

static const struct {
    bel_role role;
    const char *type, *count;
} pairs[] = {{BEL_ROLE_WORKER, "workerType", "workerCount"},
             {BEL_ROLE_PS, "parameterServerType", "parameterServerCount"},
             {BEL_ROLE_EVALUATOR, "evaluatorType", "evaluatorCount"}};

static bel_status *check_pairs(const bel_yaml *yaml, const bel_yaml_node *root, bool custom,
                               const bel_cluster *cluster)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const bel_yaml_node *type = bel_yaml_member(root, pairs[i].type);
        const bel_yaml_node *count = bel_yaml_member(root, pairs[i].count);
        const bel_yaml_node *either = count != NULL ? count : type;
        if (either != NULL && !custom) {
            return bel_yaml_error(yaml, either, "%s needs scaleTier: CUSTOM",
                                  count != NULL ? pairs[i].count : pairs[i].type);
        }
        if (count != NULL && cluster->roles[pairs[i].role].count > 0 && type == NULL) {
            return bel_yaml_error(yaml, count, "%s above 0 needs %s", pairs[i].count,
                                  pairs[i].type);
        }
        if (type != NULL && (count == NULL || cluster->roles[pairs[i].role].count == 0)) {
            return bel_yaml_error(yaml, type, "%s needs %s above 0", pairs[i].type, pairs[i].count);
        }
    }
    return NULL;
}

static bel_status *check_rules(const bel_yaml *yaml, const bel_yaml_node *root,
                               const bel_cluster *cluster)
{
    const bel_yaml_node *tier = bel_yaml_member(root, "scaleTier");
    if (tier == NULL) {
        return bel_yaml_error(yaml, root,
                              "scaleTier is missing; CUSTOM goes with counts and types");
    }
    bool custom = strcmp(tier->text, "CUSTOM") == 0;
    const bel_yaml_node *master = bel_yaml_member(root, "masterType");
    if (custom && master == NULL) {
        return bel_yaml_error(yaml, tier, "scaleTier: CUSTOM needs masterType");
    }
    if (!custom && master != NULL) {
        return bel_yaml_error(yaml, master, "masterType needs scaleTier: CUSTOM");
    }
    return check_pairs(yaml, root, custom, cluster);
}

static void say_what_is_passed_over(const bel_yaml *yaml, const bel_yaml_node *root)
{
    bel_str names = {0};
    for (size_t k = 0; k < KEY_COUNT; k++) {
        if (keys[k].read != NULL || bel_yaml_member(root, keys[k].name) == NULL) continue;
        bel_str_printf(&names, "%s%s", names.length > 0 ? ", " : "", keys[k].name);
    }
    if (names.length > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: passed over, without meaning here: %s",
                      bel_yaml_source(yaml), names.text);
    }
    bel_str_deinit(&names);
}

bool bel_ai_platform_is(const bel_yaml_node *root)
{
    if (bel_yaml_member(root, "trainingInput") != NULL) return true;
    for (size_t k = 0; k < KEY_COUNT; k++)
        if (bel_yaml_member(root, keys[k].name) != NULL) return true;
    return false;
}

bel_status *bel_ai_platform_read(const bel_yaml *yaml, const bel_yaml_node *root,
                                 bel_cluster *cluster)
{
    const bel_yaml_node *inner = bel_yaml_member(root, "trainingInput");
    if (inner != NULL) {
        static const char *const outer[] = {"trainingInput", "jobId", "labels"};
        BEL_TRY(bel_cluster_check_keys(yaml, root, outer, 3));
        root = inner;
    }
    BEL_TRY(bel_cluster_read_keys(yaml, root, keys, KEY_COUNT, cluster));
    BEL_TRY(check_rules(yaml, root, cluster));
    say_what_is_passed_over(yaml, root);
    cluster->master_trains = true;
    cluster->from_ai_platform = true;
    return NULL;
}
