// Belfry's own keys of cluster.yaml, and what both families share.
#include "launch/cluster_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/cluster_reader.h"

enum { MOST_CORES = 4096, MOST_DEVICES = 256 };

// --- Values --------------------------------------------------------------------------------------

static bel_status *expected(const bel_yaml *yaml, const bel_yaml_node *node, const char *what)
{
    static const char *const kinds[] = {"", "a list", "a mapping"};
    if (node->kind != BEL_YAML_SCALAR) {
        return bel_yaml_error(yaml, node, "expected %s, got %s", what, kinds[node->kind]);
    }
    return bel_yaml_error(yaml, node, "expected %s, got \"%s\"", what, node->text);
}

bel_status *bel_cluster_text(const bel_yaml *yaml, const bel_yaml_node *node, const char **out_text)
{
    bool good = node->kind == BEL_YAML_SCALAR && !bel_yaml_is_null(node) && node->text[0] != '\0';
    if (!good) return expected(yaml, node, "a text");
    *out_text = node->text;
    return NULL;
}

bel_status *bel_cluster_whole(const bel_yaml *yaml, const bel_yaml_node *node, int low, int high,
                              int *out_number)
{
    int64_t value = 0;
    bool good = node->kind == BEL_YAML_SCALAR &&
                bel_parse_i64(node->text, strlen(node->text), &value) && value >= low &&
                value <= high;
    if (!good) {
        char what[96];
        bel_str text = {0};
        bel_str_printf(&text, "a whole number from %d to %d", low, high);
        memcpy(what, text.text, text.length + 1);
        bel_str_deinit(&text);
        return expected(yaml, node, what);
    }
    *out_number = (int)value;
    return NULL;
}

bel_status *bel_cluster_seconds(const bel_yaml *yaml, const bel_yaml_node *node,
                                double *out_seconds)
{
    double value = 0;
    bool good = node->kind == BEL_YAML_SCALAR &&
                bel_parse_f64(node->text, strlen(node->text), &value) && value >= 0.001 &&
                value <= 1e9;
    if (!good) return expected(yaml, node, "seconds, from 0.001 to 1e9");
    *out_seconds = value;
    return NULL;
}

bel_status *bel_cluster_bool(const bel_yaml *yaml, const bel_yaml_node *node, bool *out_value)
{
    bool scalar = node->kind == BEL_YAML_SCALAR;
    bool yes = scalar && strcmp(node->text, "true") == 0;
    if (!yes && !(scalar && strcmp(node->text, "false") == 0)) {
        return expected(yaml, node, "true or false");
    }
    *out_value = yes;
    return NULL;
}

// "64 GiB", "500 MB", "1024".
static bel_status *read_bytes(const bel_yaml *yaml, const bel_yaml_node *node, int64_t *out_bytes)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},         {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},    {"TB", 1e12},
                 {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    static const char what[] = "a size such as 64 GiB or 500 MB";
    if (node->kind != BEL_YAML_SCALAR) return expected(yaml, node, what);
    size_t digits = strspn(node->text, "0123456789.");
    const char *unit = node->text + digits + strspn(node->text + digits, " ");
    double value;
    if (!bel_parse_f64(node->text, digits, &value)) return expected(yaml, node, what);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(unit, units[i].unit) != 0 || value * units[i].factor > 0x1p60) continue;
        *out_bytes = (int64_t)(value * units[i].factor);
        return NULL;
    }
    return expected(yaml, node, what);
}

// --- Keys ----------------------------------------------------------------------------------------

static bel_status *unknown_key(const bel_yaml *yaml, const bel_yaml_node *key,
                               const char *const *names, size_t count)
{
    int nearest = bel_nearest_name(key->text, names, count);
    if (nearest < 0) return bel_yaml_error(yaml, key, "unknown key \"%s\"", key->text);
    return bel_yaml_error(yaml, key, "unknown key \"%s\"; did you mean \"%s\"?", key->text,
                          names[nearest]);
}

bel_status *bel_cluster_check_keys(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                   const char *const *names, size_t count)
{
    if (mapping->kind != BEL_YAML_MAPPING) return expected(yaml, mapping, "a mapping");
    for (size_t i = 0; i < mapping->count; i++) {
        bool known = false;
        for (size_t k = 0; k < count && !known; k++)
            known = strcmp(mapping->keys[i]->text, names[k]) == 0;
        if (!known) return unknown_key(yaml, mapping->keys[i], names, count);
    }
    return NULL;
}

bel_status *bel_cluster_read_keys(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                  const bel_cluster_key *keys, size_t key_count,
                                  bel_cluster *cluster)
{
    const char **names = bel_xcalloc(key_count, sizeof *names);
    for (size_t k = 0; k < key_count; k++)
        names[k] = keys[k].name;
    bel_status *status = bel_cluster_check_keys(yaml, mapping, names, key_count);
    bel_free(names);
    // In the order of the table, not of the file: later keys may refer to earlier ones.
    for (size_t k = 0; k < key_count && status == NULL; k++) {
        const bel_yaml_node *value = bel_yaml_member(mapping, keys[k].name);
        if (value != NULL && keys[k].read != NULL) status = keys[k].read(yaml, value, cluster);
    }
    return status;
}

// --- Machines ------------------------------------------------------------------------------------

static bel_status *read_machine(const bel_yaml *yaml, const bel_yaml_node *node,
                                bel_cluster_machine *machine)
{
    static const char *const names[] = {"cores", "memory", "devices"};
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 3));
    const bel_yaml_node *value;
    if ((value = bel_yaml_member(node, "cores")) != NULL)
        BEL_TRY(bel_cluster_whole(yaml, value, 1, MOST_CORES, &machine->cores));
    if ((value = bel_yaml_member(node, "memory")) != NULL)
        BEL_TRY(read_bytes(yaml, value, &machine->memory_bytes));
    if ((value = bel_yaml_member(node, "devices")) != NULL)
        BEL_TRY(bel_cluster_whole(yaml, value, 1, MOST_DEVICES, &machine->devices));
    return NULL;
}

static bel_status *read_machines(const bel_yaml *yaml, const bel_yaml_node *node,
                                 bel_cluster *cluster)
{
    (void)cluster; // each is read again by the roles that name it; here all are checked
    if (node->kind != BEL_YAML_MAPPING) return expected(yaml, node, "a mapping of machines");
    for (size_t i = 0; i < node->count; i++) {
        bel_cluster_machine machine = {0};
        BEL_TRY(read_machine(yaml, node->values[i], &machine));
    }
    return NULL;
}

static bel_status *find_machine(const bel_yaml *yaml, const bel_yaml_node *name,
                                bel_cluster_machine *machine)
{
    const char *text = "";
    BEL_TRY(bel_cluster_text(yaml, name, &text));
    const bel_yaml_node *machines = bel_yaml_member(bel_yaml_root(yaml), "machines");
    const bel_yaml_node *found = machines != NULL ? bel_yaml_member(machines, text) : NULL;
    if (found == NULL) {
        return bel_yaml_error(yaml, name, "machine \"%s\" is not among the machines of this file",
                              text);
    }
    BEL_TRY(read_machine(yaml, found, machine));
    bel_free(machine->name);
    machine->name = bel_xstrdup(text);
    return NULL;
}

// --- Roles ---------------------------------------------------------------------------------------

static bel_status *read_hosts(const bel_yaml *yaml, const bel_yaml_node *node,
                              bel_cluster_role *role)
{
    if (node->kind != BEL_YAML_SEQUENCE || node->count == 0) {
        return bel_yaml_error(yaml, node, "expected a list of at least one host");
    }
    role->hosts = bel_xcalloc(node->count, sizeof *role->hosts);
    for (size_t i = 0; i < node->count; i++) {
        const char *host = "";
        BEL_TRY(bel_cluster_text(yaml, node->values[i], &host));
        for (size_t k = 0; k < role->host_count; k++) {
            if (strcmp(role->hosts[k], host) != 0) continue;
            return bel_yaml_error(yaml, node->values[i], "host \"%s\" is named twice", host);
        }
        role->hosts[role->host_count++] = bel_xstrdup(host);
    }
    return NULL;
}

static bel_status *read_role(const bel_yaml *yaml, const bel_yaml_node *node, int low, int high,
                             bel_cluster_role *role)
{
    static const char *const names[] = {"count", "machine", "devices", "hosts"};
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 4));
    const bel_yaml_node *value;
    if ((value = bel_yaml_member(node, "count")) != NULL)
        BEL_TRY(bel_cluster_whole(yaml, value, low, high, &role->count));
    if ((value = bel_yaml_member(node, "machine")) != NULL)
        BEL_TRY(find_machine(yaml, value, &role->machine));
    if ((value = bel_yaml_member(node, "devices")) != NULL)
        BEL_TRY(bel_cluster_whole(yaml, value, 1, MOST_DEVICES, &role->machine.devices));
    if ((value = bel_yaml_member(node, "hosts")) != NULL) BEL_TRY(read_hosts(yaml, value, role));
    return NULL;
}

static bel_status *read_master(const bel_yaml *yaml, const bel_yaml_node *node,
                               bel_cluster *cluster)
{
    static const char *const names[] = {"machine", "host", "trains"};
    bel_cluster_role *role = &cluster->roles[BEL_ROLE_MASTER];
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 3));
    const bel_yaml_node *value;
    if ((value = bel_yaml_member(node, "machine")) != NULL)
        BEL_TRY(find_machine(yaml, value, &role->machine));
    if ((value = bel_yaml_member(node, "trains")) != NULL)
        BEL_TRY(bel_cluster_bool(yaml, value, &cluster->master_trains));
    if ((value = bel_yaml_member(node, "host")) != NULL) {
        const char *host = "";
        BEL_TRY(bel_cluster_text(yaml, value, &host));
        role->hosts = bel_xcalloc(1, sizeof *role->hosts);
        role->hosts[role->host_count++] = bel_xstrdup(host);
    }
    return NULL;
}

static bel_status *read_workers(const bel_yaml *yaml, const bel_yaml_node *node,
                                bel_cluster *cluster)
{
    return read_role(yaml, node, 0, BEL_CLUSTER_MOST, &cluster->roles[BEL_ROLE_WORKER]);
}

static bel_status *read_servers(const bel_yaml *yaml, const bel_yaml_node *node,
                                bel_cluster *cluster)
{
    return read_role(yaml, node, 0, BEL_CLUSTER_MOST, &cluster->roles[BEL_ROLE_PS]);
}

static bel_status *read_evaluators(const bel_yaml *yaml, const bel_yaml_node *node,
                                   bel_cluster *cluster)
{
    return read_role(yaml, node, 0, 1, &cluster->roles[BEL_ROLE_EVALUATOR]);
}

// --- The rest ------------------------------------------------------------------------------------

static bel_status *read_environment(const bel_yaml *yaml, const bel_yaml_node *node,
                                    bel_cluster *cluster)
{
    if (node->kind != BEL_YAML_MAPPING) return expected(yaml, node, "a mapping of names to values");
    cluster->environment = bel_xcalloc(node->count, sizeof *cluster->environment);
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->keys[i]->text;
        bool own = strncmp(name, "BELFRY_", 7) == 0 || strcmp(name, "TF_CONFIG") == 0;
        if (name[0] == '\0' || strchr(name, '=') != NULL || own) {
            return bel_yaml_error(yaml, node->keys[i], "\"%s\" cannot be set here", name);
        }
        if (node->values[i]->kind != BEL_YAML_SCALAR) {
            return expected(yaml, node->values[i], "a text");
        }
        cluster->environment[cluster->environment_count++] =
            bel_strf("%s=%s", name, node->values[i]->text);
    }
    return NULL;
}

static bel_status *read_limits(const bel_yaml *yaml, const bel_yaml_node *node,
                               bel_cluster *cluster)
{
    static const char *const names[] = {"join_timeout", "silence_timeout", "stall_timeout"};
    double *const places[] = {&cluster->join_timeout_secs, &cluster->silence_timeout_secs,
                              &cluster->stall_timeout_secs};
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 3));
    for (int i = 0; i < 3; i++) {
        const bel_yaml_node *value = bel_yaml_member(node, names[i]);
        if (value != NULL) BEL_TRY(bel_cluster_seconds(yaml, value, places[i]));
    }
    return NULL;
}

static bel_status *read_file_name(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                  const char *name, char **out_path)
{
    const bel_yaml_node *value = bel_yaml_member(mapping, name);
    const char *text = "";
    if (value == NULL) return NULL;
    BEL_TRY(bel_cluster_text(yaml, value, &text));
    *out_path = bel_xstrdup(text);
    return NULL;
}

static bel_status *read_tls(const bel_yaml *yaml, const bel_yaml_node *node, bel_cluster *cluster)
{
    static const char *const names[] = {"ca", "certificate", "key"};
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 3));
    BEL_TRY(read_file_name(yaml, node, "ca", &cluster->tls_ca));
    BEL_TRY(read_file_name(yaml, node, "certificate", &cluster->tls_certificate));
    BEL_TRY(read_file_name(yaml, node, "key", &cluster->tls_key));
    bool all =
        cluster->tls_ca != NULL && cluster->tls_certificate != NULL && cluster->tls_key != NULL;
    return all ? NULL : bel_yaml_error(yaml, node, "expected all of ca, certificate and key");
}

static bel_status *read_security(const bel_yaml *yaml, const bel_yaml_node *node,
                                 bel_cluster *cluster)
{
    static const char *const names[] = {"secret_file", "listen", "tls"};
    BEL_TRY(bel_cluster_check_keys(yaml, node, names, 3));
    BEL_TRY(read_file_name(yaml, node, "secret_file", &cluster->secret_file));
    const bel_yaml_node *value = bel_yaml_member(node, "listen");
    if (value != NULL) {
        const char *text = "";
        BEL_TRY(bel_cluster_text(yaml, value, &text));
        cluster->listen_beyond = strcmp(text, "any") == 0;
        if (!cluster->listen_beyond && strcmp(text, "loopback") != 0) {
            return expected(yaml, value, "loopback or any");
        }
    }
    value = bel_yaml_member(node, "tls");
    return value != NULL ? read_tls(yaml, value, cluster) : NULL;
}

static const bel_cluster_key keys[] = {
    {"machines", read_machines},     {"master", read_master},
    {"workers", read_workers},       {"parameter_servers", read_servers},
    {"evaluators", read_evaluators}, {"environment", read_environment},
    {"limits", read_limits},         {"security", read_security},
};

// --- Files ---------------------------------------------------------------------------------------

bel_cluster *bel_cluster_create(int worker_count, int ps_count, int evaluator_count)
{
    bel_cluster *cluster = bel_xcalloc(1, sizeof *cluster);
    cluster->source = bel_xstrdup("flags");
    const int counts[] = {1, worker_count, ps_count, evaluator_count};
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        cluster->roles[r].count = counts[r];
        cluster->roles[r].machine.name = bel_xstrdup("");
    }
    cluster->join_timeout_secs = 60;
    cluster->silence_timeout_secs = 10;
    cluster->stall_timeout_secs = 600;
    return cluster;
}

static bel_status *read_document(const bel_yaml *yaml, bel_cluster *cluster)
{
    const bel_yaml_node *root = bel_yaml_root(yaml);
    if (root == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: the file is empty", bel_yaml_source(yaml));
    }
    if (bel_ai_platform_is(root)) {
        BEL_TRY(bel_ai_platform_read(yaml, root, cluster));
    } else {
        BEL_TRY(bel_cluster_read_keys(yaml, root, keys, sizeof keys / sizeof keys[0], cluster));
    }
    if (cluster->roles[BEL_ROLE_WORKER].count > 0 || cluster->master_trains) return NULL;
    return bel_yaml_error(yaml, root,
                          "there are no workers, and the master does not train: nobody would");
}

static bel_status *finish(bel_yaml *yaml, bel_cluster **out_cluster)
{
    bel_cluster *cluster = bel_cluster_create(1, 1, 0);
    bel_free(cluster->source);
    cluster->source = bel_xstrdup(bel_yaml_source(yaml));
    bel_status *status = read_document(yaml, cluster);
    bel_yaml_destroy(yaml);
    if (status != NULL) {
        bel_cluster_destroy(cluster);
    } else {
        *out_cluster = cluster;
    }
    return status;
}

bel_status *bel_cluster_read(const char *path, bel_cluster **out_cluster)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_read(path, &yaml));
    return finish(yaml, out_cluster);
}

bel_status *bel_cluster_parse(const char *text, size_t length, const char *source,
                              bel_cluster **out_cluster)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_parse(text, length, source, &yaml));
    return finish(yaml, out_cluster);
}

void bel_cluster_destroy(bel_cluster *cluster)
{
    if (cluster == NULL) return;
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        bel_cluster_role *role = &cluster->roles[r];
        for (size_t i = 0; i < role->host_count; i++)
            bel_free(role->hosts[i]);
        bel_free(role->hosts);
        bel_free(role->machine.name);
    }
    for (size_t i = 0; i < cluster->environment_count; i++)
        bel_free(cluster->environment[i]);
    bel_free(cluster->environment);
    bel_free(cluster->secret_file);
    bel_free(cluster->tls_ca);
    bel_free(cluster->tls_certificate);
    bel_free(cluster->tls_key);
    bel_free(cluster->source);
    bel_free(cluster);
}
