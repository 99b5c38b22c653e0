// A task from the environment and back.
#include "launch/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

enum { MOST_MEMBERS = 1024, JOIN_MS = 60000, SILENCE_MS = 10000, MOST_MS = 1000000000 };

const char *bel_role_name(bel_role role)
{
    static const char *const names[] = {"master", "worker", "ps", "evaluator"};
    return names[role];
}

const char *bel_task_name(bel_role role, int index, char text[32])
{
    snprintf(text, 32, role == BEL_ROLE_MASTER ? "%s" : "%s %d", bel_role_name(role), index);
    return text;
}

void bel_task_destroy(bel_task *task)
{
    if (task == NULL) return;
    bel_free(task->job);
    bel_free(task->master_address);
    bel_free(task->listen_address);
    bel_free(task->secret);
    bel_free(task->towers);
    bel_free(task->tls_ca);
    bel_free(task->tls_certificate);
    bel_free(task->tls_key);
    bel_free(task);
}

static bel_status *bad(const char *variable, const char *member, const char *expected)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: \"%s\" must be %s", variable,
                   member, expected);
}

static bool read_role(const char *name, bel_role *out_role)
{
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        if (strcmp(name, bel_role_name((bel_role)r)) != 0) continue;
        *out_role = (bel_role)r;
        return true;
    }
    return false;
}

// --- BELFRY_TASK ---------------------------------------------------------------------------------

static const char own[] = "BELFRY_TASK";

typedef struct number {
    const char *name;
    int64_t low, high, otherwise; // otherwise < low: it must be there
    int64_t value;
} number;

static bel_status *read_numbers(const bel_json_value *root, number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        number *n = &numbers[i];
        n->value = n->otherwise;
        bool there = bel_json_member(root, n->name) != NULL;
        bool good = !there || bel_json_i64(root, n->name, &n->value);
        if (good && n->value >= n->low && n->value <= n->high) continue;
        char range[96];
        snprintf(range, sizeof range, "a whole number from %lld to %lld", (long long)n->low,
                 (long long)n->high);
        return bad(own, n->name, range);
    }
    return NULL;
}

static bel_status *read_texts(const bel_json_value *root, bel_task *task)
{
    const char *job = "job", *role, *master, *listen = "";
    (void)bel_json_string(root, "job", &job);
    if (!bel_json_string(root, "role", &role) || !read_role(role, &task->role)) {
        return bad(own, "role", "master, worker, ps or evaluator");
    }
    if (!bel_json_string(root, "master", &master) || strchr(master, ':') == NULL) {
        return bad(own, "master", "an address, host:port or unix:/path");
    }
    (void)bel_json_string(root, "listen", &listen);
    if (listen[0] != '\0' && strchr(listen, ':') == NULL) {
        return bad(own, "listen", "an address, host:port or unix:/path");
    }
    task->job = bel_xstrdup(job);
    task->master_address = bel_xstrdup(master);
    bool is_master = task->role == BEL_ROLE_MASTER;
    task->listen_address = bel_xstrdup(is_master && listen[0] == '\0' ? master : listen);
    return NULL;
}

static bel_status *read_tls(const bel_json_value *root, bel_task *task)
{
    char **const places[] = {&task->tls_ca, &task->tls_certificate, &task->tls_key};
    static const char *const names[] = {"tls_ca", "tls_certificate", "tls_key"};
    int count = 0;
    for (int i = 0; i < 3; i++) {
        const char *path;
        if (!bel_json_string(root, names[i], &path)) continue;
        *places[i] = bel_xstrdup(path);
        count++;
    }
    if (count == 0 || count == 3) return NULL;
    return bad(own, "tls_ca", "there together with tls_certificate and tls_key");
}

static bel_status *read_towers(const bel_json_value *root, bel_task *task)
{
    enum { MOST_TOWERS = 256 };
    const bel_json_value *list = bel_json_member(root, "towers");
    if (list == NULL) return NULL;
    size_t count = (size_t)task->worker_count;
    bool good = bel_json_length(list) == count;
    task->towers = bel_xcalloc(count, sizeof *task->towers);
    for (size_t w = 0; w < count && good; w++) {
        int64_t towers;
        good = bel_json_value_i64(bel_json_at(list, w), &towers) && towers >= 1 &&
               towers <= MOST_TOWERS;
        if (good) task->towers[w] = (int)towers;
    }
    return good ? NULL : bad(own, "towers", "a list of a number from 1 to 256 for each worker");
}

static bel_status *read_own(const bel_json_value *root, bel_task *task)
{
    number n[] = {{"index", 0, MOST_MEMBERS, 0, 0},
                  {"incarnation", 0, INT32_MAX, 0, 0},
                  {"worker_count", 1, MOST_MEMBERS, 0, 0},
                  {"parameter_server_count", 0, MOST_MEMBERS, 0, 0},
                  {"evaluator_count", 0, 1, 0, 0},
                  {"master_trains", 0, 1, 0, 0},
                  {"threads", 0, MOST_MEMBERS, 0, 0},
                  {"join_timeout_ms", 1, MOST_MS, JOIN_MS, 0},
                  {"silence_timeout_ms", 1, MOST_MS, SILENCE_MS, 0},
                  {"supervisor", 0, INT32_MAX, 0, 0}};
    BEL_TRY(read_texts(root, task));
    BEL_TRY(read_tls(root, task));
    BEL_TRY(read_numbers(root, n, sizeof n / sizeof n[0]));
    task->index = (int)n[0].value;
    task->incarnation = (uint32_t)n[1].value;
    task->worker_count = (int)n[2].value;
    task->ps_count = (int)n[3].value;
    task->evaluator_count = (int)n[4].value;
    task->master_trains = n[5].value != 0;
    task->thread_count = (int)n[6].value;
    task->join_timeout_secs = 1e-3 * (double)n[7].value;
    task->silence_timeout_secs = 1e-3 * (double)n[8].value;
    task->supervisor = n[9].value;
    BEL_TRY(read_towers(root, task));
    const int counts[] = {1, task->worker_count, task->ps_count, task->evaluator_count};
    if (task->index >= counts[task->role]) return bad(own, "index", "below the count of its role");
    if (task->role == BEL_ROLE_WORKER && task->index == 0 && task->master_trains) {
        return bad(own, "index", "above 0: worker 0 is the master");
    }
    return NULL;
}

void bel_task_write(const bel_task *task, bel_str *out)
{
    bel_str_printf(out, "{\"job\":");
    bel_json_write_string(out, task->job);
    bel_str_printf(out,
                   ",\"role\":\"%s\",\"index\":%d,\"incarnation\":%u,\"worker_count\":%d,"
                   "\"parameter_server_count\":%d,\"evaluator_count\":%d,\"master_trains\":%d,"
                   "\"threads\":%d,\"join_timeout_ms\":%lld,\"silence_timeout_ms\":%lld,"
                   "\"supervisor\":%lld,\"master\":",
                   bel_role_name(task->role), task->index, task->incarnation, task->worker_count,
                   task->ps_count, task->evaluator_count, task->master_trains ? 1 : 0,
                   task->thread_count, (long long)(task->join_timeout_secs * 1e3),
                   (long long)(task->silence_timeout_secs * 1e3), (long long)task->supervisor);
    bel_json_write_string(out, task->master_address);
    bel_str_puts(out, ",\"listen\":");
    bel_json_write_string(out, task->listen_address);
    for (int w = 0; task->towers != NULL && w < task->worker_count; w++)
        bel_str_printf(out, "%s%d", w == 0 ? ",\"towers\":[" : ",", task->towers[w]);
    if (task->towers != NULL) bel_str_puts(out, "]");
    const char *const files[] = {task->tls_ca, task->tls_certificate, task->tls_key};
    static const char *const names[] = {"tls_ca", "tls_certificate", "tls_key"};
    for (int i = 0; i < 3 && files[i] != NULL; i++) {
        bel_str_printf(out, ",\"%s\":", names[i]);
        bel_json_write_string(out, files[i]);
    }
    bel_str_puts(out, "}");
}

// --- TF_CONFIG -----------------------------------------------------------------------------------

static const char foreign[] = "TF_CONFIG";

// The chief or the master trains and is worker 0; workers follow it. An evaluator is no part of the
// cluster, and joins all the same.
typedef struct tf_cluster {
    const bel_json_value *primary, *workers, *servers;
    const char *type; // of this task
    int64_t index;
} tf_cluster;

static bel_status *read_tf_cluster(const bel_json_value *root, tf_cluster *out)
{
    const bel_json_value *cluster = bel_json_member(root, "cluster");
    const bel_json_value *chief = bel_json_member(cluster, "chief");
    const bel_json_value *master = bel_json_member(cluster, "master");
    if (chief != NULL && master != NULL) return bad(foreign, "cluster", "with chief or master");
    out->primary = chief != NULL ? chief : master;
    if (bel_json_length(out->primary) != 1) {
        return bad(foreign, "cluster", "an object with exactly one chief (or master)");
    }
    out->workers = bel_json_member(cluster, "worker");
    out->servers = bel_json_member(cluster, "ps");
    const bel_json_value *task = bel_json_member(root, "task");
    bool good = task != NULL && bel_json_string(task, "type", &out->type) &&
                bel_json_i64(task, "index", &out->index) && out->index >= 0;
    return good ? NULL : bad(foreign, "task", "an object with a type and an index from 0");
}

static bel_status *place_tf_task(const tf_cluster *tf, bel_task *task)
{
    const bel_json_value *own_list = NULL;
    task->index = (int)(tf->index < MOST_MEMBERS ? tf->index : MOST_MEMBERS);
    if (strcmp(tf->type, "chief") == 0 || strcmp(tf->type, "master") == 0) {
        task->role = BEL_ROLE_MASTER;
        own_list = tf->primary;
    } else if (strcmp(tf->type, "worker") == 0) {
        task->role = BEL_ROLE_WORKER;
        own_list = tf->workers;
    } else if (strcmp(tf->type, "ps") == 0) {
        task->role = BEL_ROLE_PS;
        own_list = tf->servers;
    } else if (strcmp(tf->type, "evaluator") == 0) {
        return BEL_ERR(BEL_UNIMPLEMENTED,
                       "environment variable TF_CONFIG: an evaluator there is unknown to the "
                       "cluster; hint: without one the chief evaluates");
    } else {
        return bad(foreign, "type", "chief, master, worker or ps");
    }
    const char *address = NULL;
    if ((size_t)task->index < bel_json_length(own_list)) {
        address = bel_json_value_string(bel_json_at(own_list, (size_t)task->index));
    }
    if (address == NULL) return bad(foreign, "index", "that of an address in the cluster");
    task->listen_address = bel_xstrdup(address);
    if (task->role == BEL_ROLE_WORKER) task->index++; // behind the chief
    return NULL;
}

static bel_status *read_foreign(const bel_json_value *root, bel_task *task)
{
    tf_cluster tf = {0};
    BEL_TRY(read_tf_cluster(root, &tf));
    BEL_TRY(place_tf_task(&tf, task));
    const char *master = bel_json_value_string(bel_json_at(tf.primary, 0));
    if (master == NULL) return bad(foreign, "chief", "a list of one address");
    task->master_address = bel_xstrdup(master);
    task->job = bel_xstrdup("job");
    task->master_trains = true;
    task->worker_count = 1 + (int)bel_json_length(tf.workers);
    task->ps_count = (int)bel_json_length(tf.servers);
    task->join_timeout_secs = 1e-3 * JOIN_MS;
    task->silence_timeout_secs = 1e-3 * SILENCE_MS;
    if (task->worker_count <= MOST_MEMBERS && task->ps_count <= MOST_MEMBERS) return NULL;
    return bad(foreign, "cluster", "of at most 1024 workers and 1024 parameter servers");
}

// --- Either --------------------------------------------------------------------------------------

bel_status *bel_task_parse(const char *belfry_task, const char *tf_config, const char *secret,
                           bel_task **out_task)
{
    *out_task = NULL;
    const char *text = belfry_task != NULL ? belfry_task : tf_config;
    if (text == NULL) return NULL;
    const char *variable = belfry_task != NULL ? own : foreign;
    bel_json *json;
    bel_status *status = bel_json_parse(text, strlen(text), variable, &json);
    if (status != NULL) {
        bel_status *error =
            BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s", bel_status_message(status));
        bel_status_destroy(status);
        return error;
    }
    const bel_json_value *root = bel_json_root(json);
    bool alone = belfry_task == NULL && bel_json_member(root, "cluster") == NULL;
    bel_task *task = bel_xcalloc(1, sizeof *task);
    task->secret = bel_xstrdup(secret != NULL ? secret : "");
    if (!alone) status = belfry_task != NULL ? read_own(root, task) : read_foreign(root, task);
    bel_json_destroy(json);
    if (alone || status != NULL) {
        bel_task_destroy(task);
    } else {
        *out_task = task;
    }
    return status;
}

bel_status *bel_task_from_environment(bel_task **out_task)
{
    return bel_task_parse(getenv(own), getenv(foreign), getenv("BELFRY_SECRET"), out_task);
}
