// AI Platform's keys (trainingInput of its v1 REST interface), flat or under `trainingInput:`, and
// the rules between them. Keys about packages, regions and images have no effect here. They are
// known so that a file written for AI Platform works unchanged, and one log line names those that
// were present. A machine is only its number of devices, from its type or from acceleratorConfig.
// The machine of a type is not here.
//
// The order of the tables matters: rows are applied from the first to the last. So scaleTier comes
// before the counts that may change its result, and trainingInput is the first row of job_keys.
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/cluster/cluster_reader.h"

// --- Values --------------------------------------------------------------------------------------

// Devices of the well-known machine types; all others have none.
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

static bel_status *no_tpus(const bel_yaml *yaml, const bel_yaml_node *node)
{
    return bel_yaml_error(yaml, node, "\"%s\": there are no TPUs here; devices are GPUs or cores",
                          node->text);
}

// `place` is the role's bel_cluster_machine.
static bel_status *read_type(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_machine *machine = place;
    const char *type = "";
    BEL_TRY(bel_cluster_text(yaml, node, &type));
    if (strncmp(type, "cloud_tpu", 9) == 0) return no_tpus(yaml, node);
    bel_free(machine->name);
    machine->name = bel_xstrdup(type);
    machine->devices = devices_of(type);
    machine->devices_by_type = true;
    return NULL;
}

static bel_status *read_accelerator_type(const bel_yaml *yaml, const bel_yaml_node *node,
                                         void *place)
{
    (void)place; // the type of GPU has no effect
    const char *type = "";
    BEL_TRY(bel_cluster_text(yaml, node, &type));
    return strncmp(type, "TPU_", 4) == 0 ? no_tpus(yaml, node) : NULL;
}

static const bel_cluster_key accelerator_keys[] = {
    {.name = "count",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_machine, devices),
     .low = 1,
     .high = BEL_CLUSTER_MOST_DEVICES},
    {.name = "type", .kind = BEL_CLUSTER_OTHER, .read = read_accelerator_type},
};

// `place` is the role's bel_cluster_machine, here and below.
static bel_status *read_accelerators(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_machine *machine = place;
    BEL_TRY(bel_cluster_read_mapping(yaml, node, accelerator_keys,
                                     sizeof accelerator_keys / sizeof accelerator_keys[0], place));
    if (bel_yaml_member(node, "count") == NULL) {
        return bel_yaml_error(yaml, node, "acceleratorConfig needs count");
    }
    machine->devices_by_type = false;
    return NULL;
}

static const bel_cluster_key config_keys[] = {
    {.name = "acceleratorConfig", .kind = BEL_CLUSTER_OTHER, .read = read_accelerators},
    {.name = "imageUri", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "containerCommand", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "containerArgs", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "diskConfig", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "tpuTfVersion", .kind = BEL_CLUSTER_PASSED_OVER},
};

enum { CONFIG_KEY_COUNT = sizeof config_keys / sizeof config_keys[0] };

static bel_status *read_config(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, config_keys, CONFIG_KEY_COUNT, place);
}

// A tier sets counts, which later rows may change (CUSTOM).
static bel_status *read_tier(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    static const struct {
        const char *name;
        int workers, servers, devices;
    } tiers[] = {{"BASIC", 0, 0, 0},
                 {"BASIC_GPU", 0, 0, 1},
                 {"STANDARD_1", 4, 3, 0},
                 {"PREMIUM_1", 19, 11, 0},
                 {"CUSTOM", 0, 0, 0}};
    bel_cluster *cluster = place;
    const char *name = "";
    BEL_TRY(bel_cluster_text(yaml, node, &name));
    if (strcmp(name, "BASIC_TPU") == 0) return no_tpus(yaml, node);
    for (size_t i = 0; i < sizeof tiers / sizeof tiers[0]; i++) {
        if (strcmp(name, tiers[i].name) != 0) continue;
        cluster->scale_tier = tiers[i].name;
        cluster->roles[BEL_ROLE_WORKER].count = tiers[i].workers;
        cluster->roles[BEL_ROLE_PS].count = tiers[i].servers;
        cluster->roles[BEL_ROLE_MASTER].machine.devices = tiers[i].devices;
        cluster->roles[BEL_ROLE_MASTER].machine.devices_by_type = true;
        return NULL;
    }
    return bel_cluster_expected(yaml, node, "BASIC, BASIC_GPU, STANDARD_1, PREMIUM_1 or CUSTOM");
}

// --- Keys ----------------------------------------------------------------------------------------

static const bel_cluster_key keys[] = {
    {.name = "scaleTier",
     .kind = BEL_CLUSTER_OTHER,
     .read = read_tier}, // other rows change its result
    {.name = "masterType",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_MASTER].machine),
     .read = read_type},
    {.name = "workerType",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_WORKER].machine),
     .read = read_type},
    {.name = "parameterServerType",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_PS].machine),
     .read = read_type},
    {.name = "evaluatorType",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_EVALUATOR].machine),
     .read = read_type},
    {.name = "workerCount",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_WORKER].count),
     .high = BEL_CLUSTER_MOST - 1}, // the master is one more
    {.name = "parameterServerCount",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_PS].count),
     .high = BEL_CLUSTER_MOST},
    {.name = "evaluatorCount",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_EVALUATOR].count),
     .high = 1},
    {.name = "packageUris", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "pythonModule", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "pythonVersion", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "runtimeVersion", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "region", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "jobDir", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "args", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "masterConfig", // after the type, whose devices it replaces
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_MASTER].machine),
     .read = read_config},
    {.name = "workerConfig",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_WORKER].machine),
     .read = read_config},
    {.name = "parameterServerConfig",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_PS].machine),
     .read = read_config},
    {.name = "evaluatorConfig",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_EVALUATOR].machine),
     .read = read_config},
    {.name = "hyperparameters", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "scheduling", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "serviceAccount", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "network", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "encryptionConfig", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "enableWebAccess", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "useChiefInTfConfig", .kind = BEL_CLUSTER_PASSED_OVER},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

static bel_status *read_input(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, keys, KEY_COUNT, place);
}

// Keys of a whole job, around trainingInput.
static const bel_cluster_key job_keys[] = {
    {.name = "trainingInput", .kind = BEL_CLUSTER_OTHER, .read = read_input},
    {.name = "jobId", .kind = BEL_CLUSTER_PASSED_OVER},
    {.name = "labels", .kind = BEL_CLUSTER_PASSED_OVER},
};

enum { JOB_KEY_COUNT = sizeof job_keys / sizeof job_keys[0] };

const bel_cluster_key *bel_ai_platform_keys(size_t *out_count)
{
    *out_count = KEY_COUNT;
    return keys;
}

const bel_yaml_node *bel_ai_platform_first_key(const bel_yaml_node *root)
{
    const bel_yaml_node *key = bel_cluster_first_key(root, keys, KEY_COUNT);
    return key != NULL ? key : bel_cluster_first_key(root, job_keys, 1); // trainingInput
}

// --- Rules between keys --------------------------------------------------------------------------

// A count and its type go together, and only with CUSTOM.
static bel_status *check_pairs(const bel_yaml *yaml, const bel_yaml_node *input, bool custom,
                               const bel_cluster *cluster)
{
    static const struct {
        bel_role role;
        const char *type, *count, *config;
    } pairs[] = {
        {BEL_ROLE_WORKER, "workerType", "workerCount", "workerConfig"},
        {BEL_ROLE_PS, "parameterServerType", "parameterServerCount", "parameterServerConfig"},
        {BEL_ROLE_EVALUATOR, "evaluatorType", "evaluatorCount", "evaluatorConfig"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const bel_yaml_node *type = bel_yaml_member(input, pairs[i].type);
        const bel_yaml_node *count = bel_yaml_member(input, pairs[i].count);
        const bel_yaml_node *accelerators =
            bel_yaml_member(bel_yaml_member(input, pairs[i].config), "acceleratorConfig");
        bool some = count != NULL && cluster->roles[pairs[i].role].count > 0;
        if (count != NULL && !custom) {
            return bel_yaml_error(yaml, count, "%s needs scaleTier: CUSTOM", pairs[i].count);
        }
        if (type != NULL && !custom) {
            return bel_yaml_error(yaml, type, "%s needs scaleTier: CUSTOM", pairs[i].type);
        }
        if (some && type == NULL) {
            return bel_yaml_error(yaml, count, "%s above 0 needs %s", pairs[i].count,
                                  pairs[i].type);
        }
        if (type != NULL && !some) {
            return bel_yaml_error(yaml, type, "%s needs %s above 0", pairs[i].type, pairs[i].count);
        }
        if (accelerators != NULL && cluster->roles[pairs[i].role].count == 0) {
            return bel_yaml_error(yaml, accelerators, "%s.acceleratorConfig needs %s above 0",
                                  pairs[i].config, pairs[i].count);
        }
    }
    return NULL;
}

// A tier is always required; the master's type is required with CUSTOM and invalid without.
static bel_status *check_rules(const bel_yaml *yaml, const bel_yaml_node *input,
                               const bel_cluster *cluster)
{
    const bel_yaml_node *tier = bel_yaml_member(input, "scaleTier");
    if (tier == NULL) {
        return bel_yaml_error(yaml, input,
                              "scaleTier is missing; CUSTOM goes with counts and types");
    }
    bool custom = strcmp(tier->text, "CUSTOM") == 0;
    const bel_yaml_node *master = bel_yaml_member(input, "masterType");
    if (custom && master == NULL) {
        return bel_yaml_error(yaml, tier, "scaleTier: CUSTOM needs masterType");
    }
    if (!custom && master != NULL) {
        return bel_yaml_error(yaml, master, "masterType needs scaleTier: CUSTOM");
    }
    return check_pairs(yaml, input, custom, cluster);
}

// --- Files ---------------------------------------------------------------------------------------

// Lists the keys of a mapping that have no effect here, as "PARENT.NAME" for a key of a nested
// mapping.
static void add_passed_over(const bel_yaml_node *mapping, const char *parent,
                            const bel_cluster_key *table, size_t count, bel_str *names)
{
    for (size_t k = 0; k < count; k++) {
        bool passed_over = table[k].kind == BEL_CLUSTER_PASSED_OVER;
        if (!passed_over || bel_yaml_member(mapping, table[k].name) == NULL) continue;
        bel_str_printf(names, "%s%s%s%s", names->length > 0 ? ", " : "", parent,
                       parent[0] != '\0' ? "." : "", table[k].name);
    }
}

// Keys are at the top, or all under trainingInput.
bel_status *bel_ai_platform_read(const bel_yaml *yaml, const bel_yaml_node *root,
                                 bel_cluster *cluster)
{
    const bel_yaml_node *input = bel_yaml_member(root, "trainingInput");
    const bel_yaml_node *stray = bel_cluster_first_key(root, keys, KEY_COUNT);
    if (input != NULL && stray != NULL) {
        return bel_yaml_error(yaml, stray,
                              "\"%s\" belongs under trainingInput, which is in line %d",
                              stray->text, input->line);
    }
    if (input != NULL) {
        BEL_TRY(bel_cluster_read_mapping(yaml, root, job_keys, JOB_KEY_COUNT, cluster));
    } else {
        BEL_TRY(read_input(yaml, root, cluster));
        input = root;
    }
    BEL_TRY(check_rules(yaml, input, cluster));
    cluster->master_trains = true;
    cluster->from_ai_platform = true;
    bel_str names = {0};
    if (input != root) add_passed_over(root, "", job_keys, JOB_KEY_COUNT, &names);
    add_passed_over(input, "", keys, KEY_COUNT, &names);
    for (size_t k = 0; k < KEY_COUNT; k++) {
        if (keys[k].read != read_config) continue;
        const bel_yaml_node *config = bel_yaml_member(input, keys[k].name);
        add_passed_over(config, keys[k].name, config_keys, CONFIG_KEY_COUNT, &names);
    }
    if (names.length > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: passed over, without meaning here: %s",
                      bel_yaml_source(yaml), names.text);
    }
    bel_str_deinit(&names);
    return NULL;
}

// The offset in bytes at which a node begins in its text. Its column counts characters.
static size_t offset_of(const char *text, const bel_yaml_node *node)
{
    const char *at = text;
    for (int line = 1; line < node->line; line++)
        at += strcspn(at, "\n") + 1;
    for (int column = 1; column < node->column; at++)
        column += ((unsigned char)at[1] & 0xC0) != 0x80;
    return (size_t)(at - text);
}

bel_status *bel_ai_platform_add_tier(const char *text, size_t length, const char *source,
                                     const char *tier, char **out_text)
{
    bel_yaml *yaml;
    *out_text = NULL;
    BEL_TRY(bel_yaml_parse(text, length, source, &yaml));
    const bel_yaml_node *root = bel_yaml_root(yaml);
    bool theirs =
        root != NULL && root->kind == BEL_YAML_MAPPING && bel_ai_platform_first_key(root) != NULL;
    const bel_yaml_node *nested = theirs ? bel_yaml_member(root, "trainingInput") : NULL;
    const bel_yaml_node *input = nested != NULL ? nested : root;
    bool fits = theirs && input->kind == BEL_YAML_MAPPING && input->count > 0;
    if (fits && bel_yaml_member(input, "scaleTier") == NULL) {
        size_t at = offset_of(text, input);
        bool flow = text[at] == '{';
        bel_str changed = {0};
        bel_str_append(&changed, text, at);
        bel_str_printf(&changed, flow ? "{scaleTier: %s, " : "scaleTier: %s\n", tier);
        if (!flow) bel_str_printf(&changed, "%*s", input->column - 1, "");
        bel_str_puts(&changed, text + at + (flow ? 1 : 0));
        *out_text = changed.text;
    }
    bel_yaml_destroy(yaml);
    return NULL;
}
