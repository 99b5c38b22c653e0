// Reads a task from the environment and writes it. BELFRY_TASK, TF_CONFIG and other launchers'
// variables end in the same struct, so no code outside this folder distinguishes them, except by
// `foreign` and `follows`. Unknown JSON members are ignored in both. Known ones are checked here
// with the limits of cluster files. Errors name the variable, as another launcher may have written
// it.
//
// bel_task_parse must accept the output of bel_task_write. Times are integer milliseconds: a limit
// below one would become 0 and be refused. The secret is a separate variable, and is checked only
// when it comes from the environment.
#include "launch/task/task.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/secret.h"
#include "base/str.h"
#include "launch/task/task_launcher.h"
#include "launch/task/task_reading.h"
#include "launch/task/task_tf_config.h"

enum {
    MOST_THREADS = 4096,  // per tower
    MOST_TOWERS = 256,    // per worker
    MOST_MS = 1000000000, // longest limit
    JOIN_MS = 60000,
    SILENCE_MS = 10000
};

void bel_task_destroy(bel_task *task)
{
    if (task == NULL) return;
    bel_free(task->note);
    bel_free(task->job);
    bel_free(task->master_address);
    bel_free(task->listen_address);
    bel_free(task->host);
    bel_free(task->socket_folder);
    bel_free(task->secret);
    bel_free(task->towers);
    bel_free(task->tls_ca);
    bel_free(task->tls_certificate);
    bel_free(task->tls_key);
    bel_free(task);
}

bool bel_task_recovers(const bel_task *task)
{
    return task->recovers && (task->supervisor == 0 || (int64_t)getppid() == task->supervisor);
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

static const char address[] = "an address, host:port or unix:/path";

// --- BELFRY_TASK ---------------------------------------------------------------------------------

static const char own[] = "BELFRY_TASK";

typedef struct number {
    const char *name;
    int64_t low, high, otherwise; // otherwise < low: required
    int64_t value;
} number;

// An absent number has its default; one without a default is then out of range and refused.
static bel_status *read_numbers(const bel_json_value *root, number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        number *n = &numbers[i];
        n->value = n->otherwise;
        bool there = bel_json_member(root, n->name) != NULL;
        bool good = !there || bel_json_i64(root, n->name, &n->value);
        if (good && n->value >= n->low && n->value <= n->high) continue;
        char range[96];
        bel_snprintf(range, sizeof range, "an integer from %lld to %lld", (long long)n->low,
                     (long long)n->high);
        return bel_task_bad(own, n->name, range);
    }
    return NULL;
}

// Reads an optional text; any other type is an error.
static bel_status *read_text(const bel_json_value *root, const char *name, const char **out_text)
{
    bool good = bel_json_member(root, name) == NULL || bel_json_string(root, name, out_text);
    return good ? NULL : bel_task_bad(own, name, "a text");
}

// A master without a listen address listens where members find it.
static bel_status *read_texts(const bel_json_value *root, bel_task *task)
{
    const char *job = "job", *role = "", *master = "", *listen = "", *sockets = "", *host = "";
    BEL_TRY(read_text(root, "job", &job));
    BEL_TRY(read_text(root, "role", &role));
    BEL_TRY(read_text(root, "master", &master));
    BEL_TRY(read_text(root, "listen", &listen));
    BEL_TRY(read_text(root, "sockets", &sockets));
    BEL_TRY(read_text(root, "host", &host));
    if (!read_role(role, &task->role)) {
        return bel_task_bad(own, "role", "master, worker, ps or evaluator");
    }
    if (!bel_task_is_address(master)) return bel_task_bad(own, "master", address);
    if (listen[0] != '\0' && !bel_task_is_address(listen))
        return bel_task_bad(own, "listen", address);
    task->job = bel_xstrdup(job);
    if (sockets[0] != '\0') task->socket_folder = bel_xstrdup(sockets);
    if (host[0] != '\0') task->host = bel_xstrdup(host);
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
        const char *path = NULL;
        BEL_TRY(read_text(root, names[i], &path));
        if (path == NULL) continue;
        *places[i] = bel_xstrdup(path);
        count++;
    }
    if (count == 0 || count == 3) return NULL;
    return bel_task_bad(own, "tls_ca", "there together with tls_certificate and tls_key");
}

// Reads a number for each worker; without the list the program's flags decide.
static bel_status *read_towers(const bel_json_value *root, bel_task *task)
{
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
    return good ? NULL
                : bel_task_bad(own, "towers", "a list of a number from 1 to 256 for each worker");
}

// Checks a worker's place on its host; without one there is a single host.
static bel_status *check_local(const bel_json_value *root, bel_task *task)
{
    if (bel_json_member(root, "local_size") == NULL) {
        task->local_rank = bel_task_trains(task) ? task->index : -1;
        task->local_size = task->worker_count;
        return NULL;
    }
    bool good = bel_task_trains(task) ? task->local_rank >= 0 : task->local_rank < 0;
    if (good && (task->local_rank < task->local_size || task->added)) return NULL;
    return bel_task_bad(own, "local_rank", "that of a worker, below local_size, and -1 of others");
}

// Only the master knows whether an added worker has a seat.
static bool has_index(const bel_task *task)
{
    const int counts[] = {1, task->worker_count, task->ps_count, task->evaluator_count};
    bool added = task->added && task->role == BEL_ROLE_WORKER;
    return task->index < counts[task->role] || added;
}

// Numbers are read into the table and then into the task, in the same order.
static bel_status *read_own(const bel_json_value *root, bel_task *task)
{
    number n[] = {{"index", 0, BEL_TASK_MOST_MEMBERS - 1, 0, 0},
                  {"incarnation", 0, INT32_MAX, 0, 0},
                  {"worker_count", 1, BEL_TASK_MOST_MEMBERS, 0, 0},
                  {"parameter_server_count", 0, BEL_TASK_MOST_MEMBERS, 0, 0},
                  {"evaluator_count", 0, 1, 0, 0},
                  {"master_trains", 0, 1, 0, 0},
                  {"threads", 0, MOST_THREADS, 0, 0},
                  {"join_timeout_ms", 1, MOST_MS, JOIN_MS, 0},
                  {"silence_timeout_ms", 1, MOST_MS, SILENCE_MS, 0},
                  {"supervisor", 0, INT32_MAX, 0, 0},
                  {"recovers", 0, 1, 0, 0},
                  {"min_workers", 0, BEL_TASK_MOST_MEMBERS, 0, 0},
                  {"added", 0, 1, 0, 0},
                  {"lock", 0, INT32_MAX, 0, 0},
                  {"stall_timeout_ms", 0, MOST_MS, 0, 0},
                  {"local_rank", -1, BEL_TASK_MOST_MEMBERS - 1, -1, 0},
                  {"local_size", 0, BEL_TASK_MOST_MEMBERS, 0, 0},
                  {"carried", 0, 1, 0, 0},
                  {"counted", 0, 1, 0, 0},
                  {"memory", 0, INT32_MAX, 0, 0},
                  {"copies", 0, 1, 0, 0},
                  {"parameter_server_hosts", 0, BEL_TASK_MOST_MEMBERS, 0, 0}};
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
    task->recovers = n[10].value != 0;
    task->min_workers = (int)n[11].value;
    task->added = n[12].value != 0;
    task->lock = (int)n[13].value;
    task->stall_timeout_secs = 1e-3 * (double)n[14].value;
    task->local_rank = (int)n[15].value;
    task->local_size = (int)n[16].value;
    task->carried = n[17].value != 0;
    task->foreign = n[18].value != 0;
    task->memory = (int)n[19].value;
    task->copies = (int)n[20].value;
    task->ps_hosts = (int)n[21].value;
    BEL_TRY(read_towers(root, task));
    BEL_TRY(check_local(root, task));
    if (!has_index(task)) return bel_task_bad(own, "index", "below the count of its role");
    if (task->min_workers > task->worker_count) {
        return bel_task_bad(own, "min_workers", "at most worker_count");
    }
    if (task->min_workers > 0 && task->ps_count == 0) {
        return bel_task_bad(own, "min_workers", "0 where workers hold the parameters");
    }
    if (task->copies > 0 && task->ps_count < 2) {
        return bel_task_bad(own, "copies", "0 with fewer than two parameter servers");
    }
    if (task->copies > 0 && !task->recovers) {
        return bel_task_bad(own, "copies", "0 if \"recovers\" is 0: no process would get the copy");
    }
    if (task->role == BEL_ROLE_WORKER && task->index == 0 && task->master_trains) {
        return bel_task_bad(own, "index", "above 0: worker 0 is the master");
    }
    return NULL;
}

// Writes the members that read_own reads, without the secret.
void bel_task_write(const bel_task *task, bel_str *out)
{
    bel_str_printf(out, "{\"job\":");
    bel_json_write_exact(out, task->job);
    bel_str_printf(
        out,
        ",\"role\":\"%s\",\"index\":%d,\"incarnation\":%u,\"worker_count\":%d,"
        "\"parameter_server_count\":%d,\"evaluator_count\":%d,\"master_trains\":%d,"
        "\"threads\":%d,\"join_timeout_ms\":%lld,\"silence_timeout_ms\":%lld,"
        "\"supervisor\":%lld,\"recovers\":%d,\"min_workers\":%d,\"added\":%d,"
        "\"lock\":%d,\"stall_timeout_ms\":%lld,\"local_rank\":%d,\"local_size\":%d,"
        "\"carried\":%d,\"memory\":%d,\"copies\":%d,\"parameter_server_hosts\":%d,\"master\":",
        bel_role_name(task->role), task->index, task->incarnation, task->worker_count,
        task->ps_count, task->evaluator_count, task->master_trains ? 1 : 0, task->thread_count,
        llround(task->join_timeout_secs * 1e3), llround(task->silence_timeout_secs * 1e3),
        (long long)task->supervisor, task->recovers ? 1 : 0, task->min_workers, task->added ? 1 : 0,
        task->lock, llround(task->stall_timeout_secs * 1e3), task->local_rank, task->local_size,
        task->carried ? 1 : 0, task->memory, task->copies, task->ps_hosts);
    bel_json_write_exact(out, task->master_address);
    bel_str_puts(out, ",\"listen\":");
    bel_json_write_exact(out, task->listen_address);
    if (task->host != NULL) {
        bel_str_puts(out, ",\"host\":");
        bel_json_write_exact(out, task->host);
    }
    if (task->socket_folder != NULL) {
        bel_str_puts(out, ",\"sockets\":");
        bel_json_write_exact(out, task->socket_folder);
    }
    for (int w = 0; task->towers != NULL && w < task->worker_count; w++)
        bel_str_printf(out, "%s%d", w == 0 ? ",\"towers\":[" : ",", task->towers[w]);
    if (task->towers != NULL) bel_str_puts(out, "]");
    const char *const files[] = {task->tls_ca, task->tls_certificate, task->tls_key};
    static const char *const names[] = {"tls_ca", "tls_certificate", "tls_key"};
    for (int i = 0; i < 3 && files[i] != NULL; i++) {
        bel_str_printf(out, ",\"%s\":", names[i]);
        bel_json_write_exact(out, files[i]);
    }
    if (task->foreign) bel_str_puts(out, ",\"counted\":1");
    bel_str_puts(out, "}");
}

// --- Either --------------------------------------------------------------------------------------

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bel_task *task_create(const char *secret)
{
    bel_task *task = bel_xcalloc(1, sizeof *task);
    task->secret = bel_xstrdup(secret != NULL ? secret : "");
    task->join_timeout_secs = 1e-3 * JOIN_MS;
    task->silence_timeout_secs = 1e-3 * SILENCE_MS;
    return task;
}

bel_status *bel_task_parse(const char *belfry_task, const char *tf_config, const char *secret,
                           bool chief_trains, bel_task **out_task)
{
    *out_task = NULL;
    bool is_own = is_set(belfry_task);
    if (!is_own && !is_set(tf_config)) return NULL;
    const char *text = is_own ? belfry_task : tf_config;
    bel_json *json;
    bel_status *status = bel_json_parse(text, strlen(text), is_own ? own : BEL_TF_CONFIG, &json);
    if (status != NULL) {
        bel_status *error =
            BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s", bel_status_message(status));
        bel_status_destroy(status);
        return error;
    }
    bool alone = false;
    const bel_json_value *root = bel_json_root(json);
    bel_task *task = task_create(secret);
    status =
        is_own ? read_own(root, task) : bel_task_read_tf_config(root, chief_trains, task, &alone);
    bel_json_destroy(json);
    if (alone || status != NULL) {
        bel_task_destroy(task);
    } else {
        *out_task = task;
    }
    return status;
}

// Reads the variables of launchers with neither BELFRY_TASK nor TF_CONFIG.
static bel_status *read_launcher(const char *secret, bool chief_trains, bel_task **out_task)
{
    bool found = false;
    bel_task *task = task_create(secret);
    bel_status *status = bel_task_of_launcher(chief_trains, task, &found);
    if (found && status == NULL) {
        *out_task = task;
    } else {
        bel_task_destroy(task);
    }
    return status;
}

// Reads TLS files that the launcher does not provide: all three, or none.
static bel_status *read_tls_variables(bel_task *task)
{
    static const char *const names[] = {"BELFRY_TLS_CA", "BELFRY_TLS_CERTIFICATE",
                                        "BELFRY_TLS_KEY"};
    char **const places[] = {&task->tls_ca, &task->tls_certificate, &task->tls_key};
    int missing = 0;
    for (int i = 0; i < 3; i++)
        missing += !is_set(getenv(names[i]));
    bool taken = task->foreign && task->tls_ca == NULL && missing == 0;
    for (int i = 0; i < 3 && taken; i++)
        *places[i] = bel_xstrdup(getenv(names[i]));
    if (!task->foreign || missing == 0 || missing == 3) return NULL;
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "environment variables BELFRY_TLS_CA, BELFRY_TLS_CERTIFICATE and BELFRY_TLS_KEY: "
        "expected all three or none, got %d",
        3 - missing);
}

// Adds BELFRY_TASK_INDEX to the task's index in its role.
static bel_status *task_move(bel_task *task, const char *index)
{
    int64_t more;
    bool good =
        bel_parse_i64(index, strlen(index), &more) && more >= 0 && more < BEL_TASK_MOST_MEMBERS;
    if (good) task->index += (int)more;
    if (good && has_index(task)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable BELFRY_TASK_INDEX: expected a number that leads from "
                   "\"index\" of %s to another process of the role, got \"%s\"",
                   own, index);
}

static bel_status *task_complete(bel_task *task)
{
    const char *more = getenv("BELFRY_TASK_INDEX");
    bool is_own = is_set(getenv(own));
    task->foreign |= !is_own;
    if (is_own && is_set(more)) BEL_TRY(task_move(task, more));
    BEL_TRY(read_tls_variables(task));
    return bel_private_file_check(task->tls_key, "tls_key");
}

bel_status *bel_task_from_environment(bool chief_trains, bel_task **out_task)
{
    const char *task_text = getenv(own), *tf_config = getenv(BEL_TF_CONFIG);
    char *secret;
    *out_task = NULL;
    BEL_TRY(bel_secret_from_environment(&secret));
    bel_status *status = is_set(task_text) || is_set(tf_config)
                             ? bel_task_parse(task_text, tf_config, secret, chief_trains, out_task)
                             : read_launcher(secret, chief_trains, out_task);
    bel_free(secret);
    if (status != NULL || *out_task == NULL) return status;
    status = task_complete(*out_task);
    if (status == NULL) return NULL;
    bel_task_destroy(*out_task);
    *out_task = NULL;
    return status;
}

void bel_task_follow_supervisor(void)
{
    bel_task *task;
    bel_status *status = bel_task_from_environment(false, &task);
    bool reads = status == NULL;
    bel_status_ignore(status); // the error comes again where the task is needed
    if (reads && task != NULL && task->supervisor > 0)
        bel_linux_signal_at_parents_end(task->supervisor, task->carried ? SIGKILL : SIGINT);
    if (reads) bel_task_destroy(task);
}
