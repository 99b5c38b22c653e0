// Belfry's own keys of cluster.yaml, and the choice between the two families. Each mapping has a
// table of its keys. Rules between keys are checked after everything is read, with the position
// that a person would have to change. In role_keys `devices` comes after `machine`, whose value it
// replaces. It is the last row, since only workers have it.
//
// Machines are checked once under `machines` and read again by each role that names one. So a
// mistake in an unused machine is also reported. Arrays are counted while they are filled, so a
// partially read cluster can be destroyed.
#include "launch/cluster/cluster_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/cluster/cluster_reader.h"
#include "ps/layout/mirror_place.h"

enum { MOST_CORES = 4096 };

// --- Machines ------------------------------------------------------------------------------------

static const bel_cluster_key machine_keys[] = {
    {.name = "cores",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_machine, cores),
     .low = 1,
     .high = MOST_CORES},
    {.name = "memory",
     .kind = BEL_CLUSTER_BYTES,
     .offset = offsetof(bel_cluster_machine, memory_bytes)},
    {.name = "devices",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_machine, devices),
     .low = 1,
     .high = BEL_CLUSTER_MOST_DEVICES},
};

static bel_status *read_machine(const bel_yaml *yaml, const bel_yaml_node *node,
                                bel_cluster_machine *machine)
{
    return bel_cluster_read_mapping(yaml, node, machine_keys,
                                    sizeof machine_keys / sizeof machine_keys[0], machine);
}

// Checks all machines; the roles read those that they name.
static bel_status *check_machines(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    (void)place;
    if (node->kind != BEL_YAML_MAPPING) {
        return bel_cluster_expected(yaml, node, "a mapping of machines");
    }
    for (size_t i = 0; i < node->count; i++) {
        bel_cluster_machine machine = {0};
        BEL_TRY(read_machine(yaml, node->values[i], &machine));
    }
    return NULL;
}

// Error for a name that is not in `machines`; names the nearest.
static bel_status *no_machine(const bel_yaml *yaml, const bel_yaml_node *node,
                              const bel_yaml_node *machines)
{
    size_t count = machines != NULL ? machines->count : 0;
    const char **names = bel_xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = machines->keys[i]->text;
    int nearest = bel_nearest_name(node->text, names, count);
    bel_status *status =
        bel_yaml_error(yaml, node, "machine \"%s\" is not among the machines of this file%s%s%s",
                       node->text, nearest >= 0 ? "; did you mean \"" : "",
                       nearest >= 0 ? names[nearest] : "", nearest >= 0 ? "\"?" : "");
    bel_free(names);
    return status;
}

// `place` is the role's bel_cluster_machine.
static bel_status *find_machine(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_machine *machine = place;
    const char *name = "";
    BEL_TRY(bel_cluster_text(yaml, node, &name));
    const bel_yaml_node *machines = bel_yaml_member(bel_yaml_root(yaml), "machines");
    const bel_yaml_node *found = bel_yaml_member(machines, name);
    if (found == NULL) return no_machine(yaml, node, machines);
    BEL_TRY(read_machine(yaml, found, machine));
    bel_free(machine->name);
    machine->name = bel_xstrdup(name);
    return NULL;
}

// --- Roles ---------------------------------------------------------------------------------------

// Adds a host: letters, digits and the characters of addresses and user@host. No leading dash,
// because a host may one day be an argument of a command.
static bel_status *add_host(const bel_yaml *yaml, const bel_yaml_node *node, bel_cluster_role *role)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:@%[]";
    const char *host = "";
    BEL_TRY(bel_cluster_text(yaml, node, &host));
    if (host[0] == '-' || host[strspn(host, letters)] != '\0') {
        return bel_cluster_expected(yaml, node, "the name or address of a host");
    }
    for (size_t i = 0; i < role->host_count; i++) {
        if (strcmp(role->hosts[i], host) != 0) continue;
        return bel_yaml_error(yaml, node, "host \"%s\" is named twice", host);
    }
    role->hosts[role->host_count++] = bel_xstrdup(host);
    return NULL;
}

// `place` is the role, here and below.
static bel_status *read_hosts(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_role *role = place;
    if (node->kind != BEL_YAML_SEQUENCE || node->count == 0) {
        return bel_yaml_error(yaml, node, "expected a list of at least one host");
    }
    role->hosts = bel_xcalloc(node->count, sizeof *role->hosts);
    for (size_t i = 0; i < node->count; i++)
        BEL_TRY(add_host(yaml, node->values[i], role));
    return NULL;
}

static bel_status *read_host(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_role *role = place;
    role->hosts = bel_xcalloc(1, sizeof *role->hosts);
    return add_host(yaml, node, role);
}

enum { SHARED_ROWS = 3 }; // parameter servers and evaluators have no towers

static const bel_cluster_key role_keys[] = {
    {.name = "count",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_role, count),
     .high = BEL_CLUSTER_MOST},
    {.name = "machine",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster_role, machine),
     .read = find_machine},
    {.name = "hosts", .kind = BEL_CLUSTER_OTHER, .read = read_hosts},
    {.name = "devices", // instead of the machine's
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster_role, machine.devices),
     .low = 1,
     .high = BEL_CLUSTER_MOST_DEVICES},
};

static bel_status *read_workers(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, role_keys, sizeof role_keys / sizeof role_keys[0],
                                    place);
}

static bel_status *read_role(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, role_keys, SHARED_ROWS, place);
}

static bel_status *read_servers(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster_key server_keys[SHARED_ROWS + 1];
    memcpy(server_keys, role_keys, SHARED_ROWS * sizeof role_keys[0]);
    server_keys[SHARED_ROWS] = (bel_cluster_key){.name = "copies",
                                                 .kind = BEL_CLUSTER_WHOLE,
                                                 .offset = offsetof(bel_cluster_role, copies),
                                                 .high = 1};
    return bel_cluster_read_mapping(yaml, node, server_keys, SHARED_ROWS + 1, place);
}

// `place` is the whole cluster, here and below.
static const bel_cluster_key master_keys[] = {
    {.name = "machine",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_MASTER].machine),
     .read = find_machine},
    {.name = "host",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_MASTER]),
     .read = read_host},
    {.name = "trains", .kind = BEL_CLUSTER_SWITCH, .offset = offsetof(bel_cluster, master_trains)},
};

static bel_status *read_master(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, master_keys,
                                    sizeof master_keys / sizeof master_keys[0], place);
}

// --- The rest ------------------------------------------------------------------------------------

// True for a shell variable's name.
static bool is_variable(const char *name)
{
    static const char letters[] = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    bool digit_first = name[0] >= '0' && name[0] <= '9';
    return name[0] != '\0' && !digit_first && name[strspn(name, letters)] == '\0';
}

static void add_variable(bel_cluster *cluster, char *item)
{
    cluster->environment = bel_xgrow(cluster->environment, &cluster->environment_capacity,
                                     cluster->environment_count + 1, sizeof *cluster->environment);
    cluster->environment[cluster->environment_count++] = item;
}

// A file cannot set the variables that launchers set.
static bel_status *read_environment(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster *cluster = place;
    if (node->kind != BEL_YAML_MAPPING) {
        return bel_cluster_expected(yaml, node, "a mapping of names to values");
    }
    for (size_t i = 0; i < node->count; i++) {
        const bel_yaml_node *key = node->keys[i], *value = node->values[i];
        if (!is_variable(key->text)) {
            return bel_cluster_expected(yaml, key, "letters, digits and _, no digit first");
        }
        if (strncmp(key->text, "BELFRY_", 7) == 0 || strcmp(key->text, "TF_CONFIG") == 0) {
            return bel_yaml_error(yaml, key, "\"%s\" cannot be set here: launchers set it",
                                  key->text);
        }
        if (value->kind != BEL_YAML_SCALAR) return bel_cluster_expected(yaml, value, "a text");
        const char *text = bel_yaml_is_null(value) ? "" : value->text;
        add_variable(cluster, bel_strf("%s=%s", key->text, text));
    }
    return NULL;
}

// How processes learn that their machine will shut down (driver/notice.h). They get it in their
// environment.
typedef struct notice {
    char *file, *command;
} notice;

static const bel_cluster_key notice_keys[] = {
    {.name = "file", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(notice, file)},
    {.name = "command", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(notice, command)},
};

static bel_status *read_notice(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster *cluster = place;
    notice n = {0};
    bel_status *status = bel_cluster_read_mapping(yaml, node, notice_keys,
                                                  sizeof notice_keys / sizeof notice_keys[0], &n);
    if (n.file != NULL) add_variable(cluster, bel_strf("BELFRY_NOTICE_FILE=%s", n.file));
    if (n.command != NULL) add_variable(cluster, bel_strf("BELFRY_NOTICE_COMMAND=%s", n.command));
    bel_free(n.file);
    bel_free(n.command);
    return status;
}

static bool is_host(const bel_cluster *cluster, const char *name)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++)
        for (size_t i = 0; i < cluster->roles[r].host_count; i++)
            if (strcmp(cluster->roles[r].hosts[i], name) == 0) return true;
    return false;
}

// Reads data folders by host, after the roles: a host without a process is a mistake.
static bel_status *read_data(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    bel_cluster *cluster = place;
    if (node->kind != BEL_YAML_MAPPING) {
        return bel_cluster_expected(yaml, node, "a mapping of hosts to folders");
    }
    cluster->data = bel_xcalloc(node->count + 1, sizeof *cluster->data);
    for (size_t i = 0; i < node->count; i++) {
        const char *folder = "";
        if (!is_host(cluster, node->keys[i]->text)) {
            return bel_cluster_expected(yaml, node->keys[i], "a host of one of the roles");
        }
        BEL_TRY(bel_cluster_text(yaml, node->values[i], &folder));
        if (folder[0] != '/') {
            return bel_cluster_expected(yaml, node->values[i], "a path from the root");
        }
        cluster->data[cluster->data_count++] =
            (bel_cluster_data){bel_xstrdup(node->keys[i]->text), bel_xstrdup(folder)};
    }
    return NULL;
}

const char *bel_cluster_data_folder(const bel_cluster *cluster, const char *host)
{
    for (size_t i = 0; host != NULL && i < cluster->data_count; i++)
        if (strcmp(cluster->data[i].host, host) == 0) return cluster->data[i].folder;
    return NULL;
}

static const bel_cluster_key limit_keys[] = {
    {.name = "join_timeout",
     .kind = BEL_CLUSTER_SECONDS,
     .offset = offsetof(bel_cluster, join_timeout_secs)},
    {.name = "silence_timeout",
     .kind = BEL_CLUSTER_SECONDS,
     .offset = offsetof(bel_cluster, silence_timeout_secs)},
    {.name = "stall_timeout",
     .kind = BEL_CLUSTER_SECONDS,
     .offset = offsetof(bel_cluster, stall_timeout_secs)},
    {.name = "restarts",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster, restarts),
     .high = BEL_CLUSTER_MOST_RESTARTS},
    {.name = "min_workers",
     .kind = BEL_CLUSTER_WHOLE,
     .offset = offsetof(bel_cluster, min_workers),
     .high = BEL_CLUSTER_MOST},
};

static bel_status *read_limits(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, limit_keys,
                                    sizeof limit_keys / sizeof limit_keys[0], place);
}

static const bel_cluster_key tls_keys[] = {
    {.name = "ca", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster, tls_ca)},
    {.name = "certificate",
     .kind = BEL_CLUSTER_TEXT,
     .offset = offsetof(bel_cluster, tls_certificate)},
    {.name = "key", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster, tls_key)},
};

// All three files or no file: one without the others secures nothing.
static bel_status *read_tls(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    size_t count = sizeof tls_keys / sizeof tls_keys[0];
    BEL_TRY(bel_cluster_read_mapping(yaml, node, tls_keys, count, place));
    for (size_t i = 0; i < count; i++) {
        if (bel_yaml_member(node, tls_keys[i].name) != NULL) continue;
        return bel_yaml_error(yaml, node,
                              "expected all of ca, certificate and key, and %s is missing",
                              tls_keys[i].name);
    }
    return NULL;
}

static const bel_cluster_key security_keys[] = {
    {.name = "secret_file", .kind = BEL_CLUSTER_TEXT, .offset = offsetof(bel_cluster, secret_file)},
    {.name = "tls", .kind = BEL_CLUSTER_OTHER, .read = read_tls},
};

static bel_status *read_security(const bel_yaml *yaml, const bel_yaml_node *node, void *place)
{
    return bel_cluster_read_mapping(yaml, node, security_keys,
                                    sizeof security_keys / sizeof security_keys[0], place);
}

static const bel_cluster_key keys[] = {
    {.name = "machines", .kind = BEL_CLUSTER_OTHER, .read = check_machines},
    {.name = "master", .kind = BEL_CLUSTER_OTHER, .read = read_master},
    {.name = "workers",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_WORKER]),
     .read = read_workers},
    {.name = "parameter_servers",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_PS]),
     .read = read_servers},
    {.name = "evaluators",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, roles[BEL_ROLE_EVALUATOR]),
     .read = read_role},
    {.name = "environment", .kind = BEL_CLUSTER_OTHER, .read = read_environment},
    {.name = "limits", .kind = BEL_CLUSTER_OTHER, .read = read_limits},
    {.name = "security", .kind = BEL_CLUSTER_OTHER, .read = read_security},
    {.name = "slurm",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, slurm),
     .read = bel_cluster_read_slurm},
    {.name = "kubernetes",
     .kind = BEL_CLUSTER_OTHER,
     .offset = offsetof(bel_cluster, kubernetes),
     .read = bel_cluster_read_kubernetes},
    {.name = "data", .kind = BEL_CLUSTER_OTHER, .read = read_data},
    {.name = "notice", .kind = BEL_CLUSTER_OTHER, .read = read_notice},
};

enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

// --- Rules between keys --------------------------------------------------------------------------

// The first broken rule: its section, its key and its message. False: no broken rule.
typedef struct broken_rule {
    const char *section, *key;
    char words[200];
} broken_rule;

// Copies without a place, without use, or on the host that they shall outlive.
static bool breaks_copies(const bel_cluster *cluster, broken_rule *rule)
{
    const bel_cluster_role *servers = &cluster->roles[BEL_ROLE_PS];
    int hosts = (int)servers->host_count, count = servers->count;
    int together = bel_mirror_together(count, hosts, bel_mirror_distance(count, hosts));
    if (servers->copies == 0 || (count > 1 && cluster->restarts > 0 && together < 0)) return false;
    *rule = (broken_rule){.section = "parameter_servers", .key = "copies"};
    bel_snprintf(rule->words, sizeof rule->words,
                 "copies (flag parameter_server_copies) is 1, but ");
    char *end = rule->words + strlen(rule->words);
    size_t room = sizeof rule->words - strlen(rule->words);
    if (count < 2) {
        bel_snprintf(end, room,
                     "the count is %d: a copy is in the process of another parameter server",
                     count);
    } else if (cluster->restarts == 0) {
        bel_snprintf(end, room, "restarts is 0: no process would get the copy");
    } else {
        bel_snprintf(end, room,
                     "the count is %d, on %d hosts: ps %d and its copy would be on one host; hint: "
                     "an even count, or three hosts",
                     count, hosts, together);
    }
    return true;
}

static bool find_broken(const bel_cluster *cluster, broken_rule *rule)
{
    static const char *const names[BEL_ROLE_COUNT] = {[BEL_ROLE_WORKER] = "workers",
                                                      [BEL_ROLE_PS] = "parameter_servers",
                                                      [BEL_ROLE_EVALUATOR] = "evaluators"};
    int evaluators = cluster->roles[BEL_ROLE_EVALUATOR].count;
    int workers = cluster->roles[BEL_ROLE_WORKER].count + (cluster->master_trains ? 1 : 0);
    size_t size = sizeof rule->words;
    if (evaluators > 1) {
        *rule = (broken_rule){.section = "evaluators", .key = "count"};
        bel_snprintf(rule->words, size, "at most one evaluator is possible, got %d", evaluators);
        return true;
    }
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        const bel_cluster_role *role = &cluster->roles[r];
        if (names[r] == NULL || role->host_count <= (size_t)role->count) continue;
        *rule = (broken_rule){.section = names[r], .key = "hosts"};
        bel_snprintf(rule->words, size, "%zu host%s, but the count of %s is %d", role->host_count,
                     role->host_count == 1 ? "" : "s", names[r], role->count);
        return true;
    }
    if (workers == 0 || workers > BEL_CLUSTER_MOST) {
        *rule = (broken_rule){.section = "workers", .key = "count"};
        if (workers == 0) {
            bel_snprintf(rule->words, size,
                         "there are no workers, and the master does not train: no process would");
        } else {
            bel_snprintf(rule->words, size,
                         "with the master that trains these are more than %d workers",
                         BEL_CLUSTER_MOST);
        }
        return true;
    }
    if (breaks_copies(cluster, rule)) return true;
    if (cluster->min_workers <= workers) return false;
    *rule = (broken_rule){.section = "limits", .key = "min_workers"};
    bel_snprintf(rule->words, size, "min_workers is %d, but there are only %d workers",
                 cluster->min_workers, workers);
    return true;
}

// Error for the first broken rule, at the key to change, or as near to it as the file goes.
static bel_status *check_own(const bel_yaml *yaml, const bel_yaml_node *root,
                             const bel_cluster *cluster)
{
    broken_rule rule;
    if (!find_broken(cluster, &rule)) return NULL;
    const bel_yaml_node *section = bel_cluster_place(root, rule.section, root);
    return bel_yaml_error(yaml, bel_cluster_place(section, rule.key, section), "%s", rule.words);
}

static void cluster_file_set(int *place, int number)
{
    if (number >= 0) *place = number;
}

bel_status *bel_cluster_change(bel_cluster *cluster, const bel_cluster_changes *changes)
{
    broken_rule rule;
    cluster_file_set(&cluster->roles[BEL_ROLE_WORKER].count, changes->worker_count);
    cluster_file_set(&cluster->roles[BEL_ROLE_PS].count, changes->ps_count);
    cluster_file_set(&cluster->roles[BEL_ROLE_EVALUATOR].count, changes->evaluator_count);
    cluster_file_set(&cluster->restarts, changes->restarts);
    cluster_file_set(&cluster->min_workers, changes->min_workers);
    cluster_file_set(&cluster->roles[BEL_ROLE_PS].copies, changes->copies);
    if (!find_broken(cluster, &rule)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s with the counts of the command line: %s",
                   cluster->source, rule.words);
}

// --- Families ------------------------------------------------------------------------------------

// Error for a file of unknown keys only, which may be meant for either family.
static bel_status *no_family(const bel_yaml *yaml, const bel_yaml_node *root)
{
    if (root->count == 0) return bel_yaml_error(yaml, root, "the file is empty");
    size_t count;
    const bel_cluster_key *theirs = bel_ai_platform_keys(&count);
    const char **names = bel_xcalloc(count + KEY_COUNT, sizeof *names);
    for (size_t k = 0; k < KEY_COUNT; k++)
        names[k] = keys[k].name;
    for (size_t k = 0; k < count; k++)
        names[KEY_COUNT + k] = theirs[k].name;
    bel_status *status = bel_cluster_unknown_key(yaml, root->keys[0], names, count + KEY_COUNT);
    bel_free(names);
    return status;
}

// Determines the file's family and reads it. On an error the cluster may be half filled.
static bel_status *read_document(const bel_yaml *yaml, bel_cluster *cluster)
{
    const bel_yaml_node *root = bel_yaml_root(yaml);
    if (root == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s:1:1: the file is empty", bel_yaml_source(yaml));
    }
    if (root->kind != BEL_YAML_MAPPING) return bel_cluster_expected(yaml, root, "a mapping");
    const bel_yaml_node *own = bel_cluster_first_key(root, keys, KEY_COUNT);
    const bel_yaml_node *theirs = bel_ai_platform_first_key(root);
    if (own == NULL && theirs == NULL) return no_family(yaml, root);
    if (own == NULL) return bel_ai_platform_read(yaml, root, cluster);
    if (theirs != NULL) {
        bool own_first =
            own->line < theirs->line || (own->line == theirs->line && own->column < theirs->column);
        return bel_yaml_error(yaml, own_first ? theirs : own,
                              "\"%s\" is a key of AI Platform's and \"%s\" one of Belfry's own; a "
                              "file has keys of one family",
                              theirs->text, own->text);
    }
    BEL_TRY(bel_cluster_read_mapping(yaml, root, keys, KEY_COUNT, cluster));
    return check_own(yaml, root, cluster);
}

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
    cluster->restarts = 10;
    cluster->kubernetes = (bel_cluster_kubernetes){
        .name_space = bel_xstrdup("default"), .mount = bel_xstrdup("/models"), .user = 10001};
    return cluster;
}

// Takes ownership of the document. A nearly empty file has one worker and one parameter server.
static bel_status *cluster_file_finish(bel_yaml *yaml, bel_cluster **out_cluster)
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
    return cluster_file_finish(yaml, out_cluster);
}

bel_status *bel_cluster_parse(const char *text, size_t length, const char *source,
                              bel_cluster **out_cluster)
{
    bel_yaml *yaml;
    BEL_TRY(bel_yaml_parse(text, length, source, &yaml));
    return cluster_file_finish(yaml, out_cluster);
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
    for (size_t i = 0; i < cluster->data_count; i++) {
        bel_free(cluster->data[i].host);
        bel_free(cluster->data[i].folder);
    }
    bel_free(cluster->data);
    bel_free(cluster->secret_file);
    bel_free(cluster->tls_ca);
    bel_free(cluster->tls_certificate);
    bel_free(cluster->tls_key);
    for (size_t i = 0; i < cluster->slurm.option_count; i++)
        bel_free(cluster->slurm.options[i]);
    bel_free(cluster->slurm.options);
    bel_cluster_kubernetes *k = &cluster->kubernetes;
    char *const texts[] = {k->image, k->name_space, k->volume_claim,
                           k->mount, k->secret,     k->service_account};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bel_free(texts[i]);
    bel_free(cluster->slurm.partition);
    bel_free(cluster->slurm.account);
    bel_free(cluster->source);
    bel_free(cluster);
}
