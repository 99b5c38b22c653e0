// A task from the environment and back. BELFRY_TASK, TF_CONFIG and what other launchers say end in
// the same struct, so no code beyond this room asks which it was, except by `foreign` and
// `follows`. Unknown JSON members are passed over in both; known ones are checked here with the
// limits of cluster files, and errors name the variable, as a foreign launcher may have written it.
//
// What bel_task_write says bel_task_parse must take back. Times go as whole milliseconds: a
// limit below one would come back as 0 and be refused. The secret is a variable of its own and
// is checked only when it comes from the environment.
#include "launch/task.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/number.h"
#include "base/secret.h"
#include "launch/task_launcher.h"

enum {
    MOST_MEMBERS = 1024,  // of a role, as in cluster files
    MOST_THREADS = 4096,  // of a tower
    MOST_TOWERS = 256,    // of a worker
    MOST_MS = 1000000000, // of a limit
    JOIN_MS = 60000,
    SILENCE_MS = 10000
};

void bel_task_destroy(bel_task *task)
{
    if (task == NULL) return;
    bel_free(task->job);
    bel_free(task->master_address);
    bel_free(task->listen_address);
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

// The error of a member that is not as it must be.
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

// "unix:/path", or "host:port" with a port from 0 to 65535; NULL is none.
static bool is_address(const char *text)
{
    int64_t port;
    if (text == NULL) return false;
    if (strncmp(text, "unix:", 5) == 0) return text[5] != '\0';
    const char *colon = strrchr(text, ':');
    return colon != NULL && colon != text && bel_parse_i64(colon + 1, strlen(colon + 1), &port) &&
           port >= 0 && port <= UINT16_MAX;
}

static const char address[] = "an address, host:port or unix:/path";

// --- BELFRY_TASK ---------------------------------------------------------------------------------

static const char own[] = "BELFRY_TASK";

typedef struct number {
    const char *name;
    int64_t low, high, otherwise; // otherwise < low: it must be there
    int64_t value;
} number;

// A missing number takes its default; one without a default is then out of range and refused.
static bel_status *read_numbers(const bel_json_value *root, number *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        number *n = &numbers[i];
        n->value = n->otherwise;
        bool there = bel_json_member(root, n->name) != NULL;
        bool good = !there || bel_json_i64(root, n->name, &n->value);
        if (good && n->value >= n->low && n->value <= n->high) continue;
        char range[96];
        bel_snprintf(range, sizeof range, "a whole number from %lld to %lld", (long long)n->low,
                     (long long)n->high);
        return bad(own, n->name, range);
    }
    return NULL;
}

// A text that may be missing, but not be anything else.
static bel_status *read_text(const bel_json_value *root, const char *name, const char **out_text)
{
    bool good = bel_json_member(root, name) == NULL || bel_json_string(root, name, out_text);
    return good ? NULL : bad(own, name, "a text");
}

// A master that says no other address listens where members find it.
static bel_status *read_texts(const bel_json_value *root, bel_task *task)
{
    const char *job = "job", *role = "", *master = "", *listen = "", *sockets = "";
    BEL_TRY(read_text(root, "job", &job));
    BEL_TRY(read_text(root, "role", &role));
    BEL_TRY(read_text(root, "master", &master));
    BEL_TRY(read_text(root, "listen", &listen));
    BEL_TRY(read_text(root, "sockets", &sockets));
    if (!read_role(role, &task->role)) {
        return bad(own, "role", "master, worker, ps or evaluator");
    }
    if (!is_address(master)) return bad(own, "master", address);
    if (listen[0] != '\0' && !is_address(listen)) return bad(own, "listen", address);
    task->job = bel_xstrdup(job);
    if (sockets[0] != '\0') task->socket_folder = bel_xstrdup(sockets);
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
    return bad(own, "tls_ca", "there together with tls_certificate and tls_key");
}

// A number for each worker, or no list: then the program's flags say.
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
    return good ? NULL : bad(own, "towers", "a list of a number from 1 to 256 for each worker");
}

static bool trains(const bel_task *task)
{
    return task->role == BEL_ROLE_WORKER || (task->role == BEL_ROLE_MASTER && task->master_trains);
}

// A worker's place on its host; where nothing is said there is one host.
static bel_status *check_local(const bel_json_value *root, bel_task *task)
{
    if (bel_json_member(root, "local_size") == NULL) {
        task->local_rank = trains(task) ? task->index : -1;
        task->local_size = task->worker_count;
        return NULL;
    }
    bool good = trains(task) ? task->local_rank >= 0 : task->local_rank < 0;
    if (good && (task->local_rank < task->local_size || task->added)) return NULL;
    return bad(own, "local_rank", "that of a worker, below local_size, and -1 of others");
}

// Only the master knows whether there is a seat for a worker that was added.
static bool has_index(const bel_task *task)
{
    const int counts[] = {1, task->worker_count, task->ps_count, task->evaluator_count};
    bool added = task->added && task->role == BEL_ROLE_WORKER;
    return task->index < counts[task->role] || added;
}

// Numbers are read into the table and from it into the task, in the same order.
static bel_status *read_own(const bel_json_value *root, bel_task *task)
{
    number n[] = {{"index", 0, MOST_MEMBERS - 1, 0, 0},
                  {"incarnation", 0, INT32_MAX, 0, 0},
                  {"worker_count", 1, MOST_MEMBERS, 0, 0},
                  {"parameter_server_count", 0, MOST_MEMBERS, 0, 0},
                  {"evaluator_count", 0, 1, 0, 0},
                  {"master_trains", 0, 1, 0, 0},
                  {"threads", 0, MOST_THREADS, 0, 0},
                  {"join_timeout_ms", 1, MOST_MS, JOIN_MS, 0},
                  {"silence_timeout_ms", 1, MOST_MS, SILENCE_MS, 0},
                  {"supervisor", 0, INT32_MAX, 0, 0},
                  {"recovers", 0, 1, 0, 0},
                  {"min_workers", 0, MOST_MEMBERS, 0, 0},
                  {"added", 0, 1, 0, 0},
                  {"lock", 0, INT32_MAX, 0, 0},
                  {"stall_timeout_ms", 0, MOST_MS, 0, 0},
                  {"local_rank", -1, MOST_MEMBERS - 1, -1, 0},
                  {"local_size", 0, MOST_MEMBERS, 0, 0},
                  {"carried", 0, 1, 0, 0},
                  {"counted", 0, 1, 0, 0}};
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
    BEL_TRY(read_towers(root, task));
    BEL_TRY(check_local(root, task));
    if (!has_index(task)) return bad(own, "index", "below the count of its role");
    if (task->min_workers > task->worker_count) {
        return bad(own, "min_workers", "at most worker_count");
    }
    if (task->min_workers > 0 && task->ps_count == 0) {
        return bad(own, "min_workers", "0 where workers hold the parameters");
    }
    if (task->role == BEL_ROLE_WORKER && task->index == 0 && task->master_trains) {
        return bad(own, "index", "above 0: worker 0 is the master");
    }
    return NULL;
}

// The same members as read_own reads, without the secret.
void bel_task_write(const bel_task *task, bel_str *out)
{
    bel_str_printf(out, "{\"job\":");
    bel_json_write_exact(out, task->job);
    bel_str_printf(out,
                   ",\"role\":\"%s\",\"index\":%d,\"incarnation\":%u,\"worker_count\":%d,"
                   "\"parameter_server_count\":%d,\"evaluator_count\":%d,\"master_trains\":%d,"
                   "\"threads\":%d,\"join_timeout_ms\":%lld,\"silence_timeout_ms\":%lld,"
                   "\"supervisor\":%lld,\"recovers\":%d,\"min_workers\":%d,\"added\":%d,"
                   "\"lock\":%d,\"stall_timeout_ms\":%lld,\"local_rank\":%d,\"local_size\":%d,"
                   "\"carried\":%d,\"master\":",
                   bel_role_name(task->role), task->index, task->incarnation, task->worker_count,
                   task->ps_count, task->evaluator_count, task->master_trains ? 1 : 0,
                   task->thread_count, llround(task->join_timeout_secs * 1e3),
                   llround(task->silence_timeout_secs * 1e3), (long long)task->supervisor,
                   task->recovers ? 1 : 0, task->min_workers, task->added ? 1 : 0, task->lock,
                   llround(task->stall_timeout_secs * 1e3), task->local_rank, task->local_size,
                   task->carried ? 1 : 0);
    bel_json_write_exact(out, task->master_address);
    bel_str_puts(out, ",\"listen\":");
    bel_json_write_exact(out, task->listen_address);
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

// --- TF_CONFIG -----------------------------------------------------------------------------------

static const char foreign[] = "TF_CONFIG";

// The chief or the master trains and is worker 0, unless the program says otherwise; workers follow
// it. An evaluator has no entry.
typedef struct tf_settings {
    const bel_json_value *primary, *workers, *servers; // lists of addresses; NULL: none
    bool is_master;                                    // the cluster says master, not chief
    int job_count;                                     // of the cluster: none without one
    const char *type;                                  // of this task; "" when it is not said
    int64_t index;                                     // -1: not said
} tf_settings;

static const bel_json_value **list_of(tf_settings *tf, const char *type)
{
    if (strcmp(type, "chief") == 0 || strcmp(type, "master") == 0) return &tf->primary;
    if (strcmp(type, "worker") == 0) return &tf->workers;
    return strcmp(type, "ps") == 0 ? &tf->servers : NULL;
}

// One list of the cluster. chief and master share a place, so both together are refused.
static bel_status *read_tf_job(void *context, const char *name, const bel_json_value *list)
{
    tf_settings *tf = context;
    const bel_json_value **place = list_of(tf, name);
    if (strcmp(name, "evaluator") == 0) {
        return bad(foreign, "cluster", "without an evaluator, which has no entry there");
    }
    if (place == NULL) return bad(foreign, "cluster", "of chief (or master), worker and ps only");
    if (*place != NULL) return bad(foreign, "cluster", "with chief or master, not both");
    size_t count = bel_json_length(list);
    bool good = bel_json_is_array(list) && count <= MOST_MEMBERS;
    for (size_t i = 0; i < count && good; i++)
        good = is_address(bel_json_value_string(bel_json_at(list, i)));
    if (!good) return bad(foreign, name, "a list of at most 1024 addresses, host:port");
    *place = list;
    tf->is_master |= strcmp(name, "master") == 0;
    tf->job_count++;
    return NULL;
}

// The index may be a number in quotes: TensorFlow takes that too.
static bool read_tf_index(const bel_json_value *task, int64_t *out_index)
{
    const char *text;
    if (bel_json_string(task, "index", &text)) {
        return bel_parse_i64(text, strlen(text), out_index) && *out_index >= 0;
    }
    return bel_json_i64(task, "index", out_index) && *out_index >= 0;
}

// Takes TF_CONFIG apart; whether the parts fit together is checked afterwards.
static bel_status *read_tf(const bel_json_value *root, tf_settings *out_tf)
{
    const bel_json_value *cluster = bel_json_member(root, "cluster");
    const bel_json_value *task = bel_json_member(root, "task");
    tf_settings tf = {.type = "", .index = -1};
    if (!bel_json_is_object(root)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: expected an object",
                       foreign);
    }
    if (cluster != NULL && !bel_json_is_object(cluster)) {
        return bad(foreign, "cluster", "an object of lists of addresses");
    }
    if (task != NULL && !bel_json_is_object(task)) {
        return bad(foreign, "task", "an object with a type and an index from 0");
    }
    if (cluster != NULL) BEL_TRY(bel_json_each(cluster, read_tf_job, &tf));
    if (bel_json_member(task, "type") != NULL && !bel_json_string(task, "type", &tf.type)) {
        return bad(foreign, "type", "a text");
    }
    if (bel_json_member(task, "index") != NULL && !read_tf_index(task, &tf.index)) {
        return bad(foreign, "index", "a whole number from 0");
    }
    *out_tf = tf;
    return NULL;
}

// Without a cluster everything runs in one process, which may call itself worker 0 but nothing
// else.
static bel_status *check_tf_alone(const tf_settings *tf)
{
    if (tf->type[0] != '\0' && strcmp(tf->type, "worker") != 0) {
        return bad(foreign, "type", "worker when there is no cluster");
    }
    return tf->index <= 0 ? NULL : bad(foreign, "index", "0 when there is no cluster");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// At an address that two members were given only one could be reached. Port 0 is any free one.
static bel_status *check_addresses(const tf_settings *tf)
{
    const bel_json_value *const lists[] = {tf->primary, tf->workers, tf->servers};
    size_t most = 0, count = 0;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        most += bel_json_length(lists[l]);
    const char **all = bel_xcalloc(most + 1, sizeof *all);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        for (size_t i = 0; i < bel_json_length(lists[l]); i++)
            all[count++] = bel_json_value_string(bel_json_at(lists[l], i));
    }
    qsort(all, count, sizeof *all, compare_texts);
    bel_status *status = NULL;
    for (size_t i = 1; i < count && status == NULL; i++) {
        const char *port = strrchr(all[i], ':');
        bool any = port != NULL && strcmp(port, ":0") == 0;
        if (any || strcmp(all[i - 1], all[i]) != 0) continue;
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT,
                    "environment variable %s: \"cluster\": expected an address for each member, "
                    "got %s twice",
                    foreign, all[i]);
    }
    bel_free(all);
    return status;
}

// Exactly one chief, and a task that has an entry, unless it is an evaluator.
static bel_status *check_tf_cluster(tf_settings *tf, bool chief_trains)
{
    size_t workers = (chief_trains ? 1 : 0) + bel_json_length(tf->workers);
    if (bel_json_length(tf->primary) != 1) {
        return bad(foreign, "cluster", "an object with exactly one chief (or master)");
    }
    if (workers > MOST_MEMBERS) {
        return bad(foreign, "cluster", "of at most 1024 workers, the chief included");
    }
    if (workers == 0) {
        return bad(foreign, "cluster", "with a worker at least, as the chief does not train");
    }
    BEL_TRY(check_addresses(tf));
    if (tf->type[0] == '\0' || tf->index < 0) {
        return bad(foreign, "task", "an object with a type and an index from 0");
    }
    if (strcmp(tf->type, "evaluator") == 0) return NULL;
    const bel_json_value **list = list_of(tf, tf->type);
    if (list == NULL) return bad(foreign, "type", "chief, master, worker, ps or evaluator");
    if (list == &tf->primary && tf->is_master != (strcmp(tf->type, "master") == 0)) {
        return bad(foreign, "type",
                   tf->is_master ? "master, as in the cluster" : "chief, as in the cluster");
    }
    if (tf->index < (int64_t)bel_json_length(*list)) return NULL;
    return bad(foreign, "index", "that of an address in the cluster");
}

// "host" of "host:port"; all unix sockets are on one host.
static bool same_host(const char *a, const char *b)
{
    size_t length = (size_t)(strrchr(a, ':') - a);
    if (strncmp(a, "unix:", 5) == 0) length = strlen("unix");
    return strncmp(a, b, length + 1) == 0;
}

// The workers on this task's host; an evaluator's is not known.
static void count_local(const tf_settings *tf, bel_task *task)
{
    int first = task->master_trains ? 1 : 0; // worker of the list
    task->local_rank = -1;
    for (int w = 0; w < task->worker_count && !task->follows; w++) {
        const bel_json_value *list = w < first ? tf->primary : tf->workers;
        size_t index = w < first ? 0 : (size_t)(w - first);
        const char *worker = bel_json_value_string(bel_json_at(list, index));
        if (!same_host(worker, task->listen_address)) continue;
        if (trains(task) && w == task->index) task->local_rank = task->local_size;
        task->local_size++;
    }
}

// Sets `out_alone` in place of filling the task when there is no cluster.
static bel_status *read_foreign(const bel_json_value *root, bool chief_trains, bel_task *task,
                                bool *out_alone)
{
    tf_settings tf;
    BEL_TRY(read_tf(root, &tf));
    *out_alone = tf.job_count == 0;
    if (tf.job_count == 0) return check_tf_alone(&tf);
    BEL_TRY(check_tf_cluster(&tf, chief_trains));
    task->follows = strcmp(tf.type, "evaluator") == 0;
    const bel_json_value *list = task->follows ? tf.primary : *list_of(&tf, tf.type);
    task->role = task->follows        ? BEL_ROLE_EVALUATOR
                 : list == tf.primary ? BEL_ROLE_MASTER
                 : list == tf.workers ? BEL_ROLE_WORKER
                                      : BEL_ROLE_PS;
    int first = task->role == BEL_ROLE_WORKER && chief_trains ? 1 : 0; // behind the chief
    if (task->follows) tf.index = 0;                                   // it listens to nobody
    task->index = (int)tf.index + first;
    task->master_address = bel_xstrdup(bel_json_value_string(bel_json_at(tf.primary, 0)));
    task->listen_address = bel_xstrdup(bel_json_value_string(bel_json_at(list, (size_t)tf.index)));
    task->job = bel_xstrdup("job");
    task->master_trains = chief_trains;
    task->worker_count = (chief_trains ? 1 : 0) + (int)bel_json_length(tf.workers);
    task->ps_count = (int)bel_json_length(tf.servers);
    count_local(&tf, task);
    task->recovers = true;
    return NULL;
}

// --- Either --------------------------------------------------------------------------------------

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bel_task *create(const char *secret)
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
    bel_status *status = bel_json_parse(text, strlen(text), is_own ? own : foreign, &json);
    if (status != NULL) {
        bel_status *error =
            BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s", bel_status_message(status));
        bel_status_destroy(status);
        return error;
    }
    bool alone = false;
    const bel_json_value *root = bel_json_root(json);
    bel_task *task = create(secret);
    status = is_own ? read_own(root, task) : read_foreign(root, chief_trains, task, &alone);
    bel_json_destroy(json);
    if (alone || status != NULL) {
        bel_task_destroy(task);
    } else {
        *out_task = task;
    }
    return status;
}

// Of launchers that say neither.
static bel_status *read_launcher(const char *secret, bool chief_trains, bel_task **out_task)
{
    bool found = false;
    bel_task *task = create(secret);
    bel_status *status = bel_task_of_launcher(chief_trains, task, &found);
    if (found && status == NULL) {
        *out_task = task;
    } else {
        bel_task_destroy(task);
    }
    return status;
}

// Files of TLS that the launcher does not say; all three, or none.
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

bel_status *bel_task_move(bel_task *task, const char *index)
{
    int64_t more;
    bool good = bel_parse_i64(index, strlen(index), &more) && more >= 0 && more < MOST_MEMBERS;
    if (good) task->index += (int)more;
    if (good && has_index(task)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable BELFRY_TASK_INDEX: expected a number that leads from "
                   "\"index\" of %s to another process of the role, got \"%s\"",
                   own, index);
}

static bel_status *complete(bel_task *task)
{
    const char *more = getenv("BELFRY_TASK_INDEX");
    bool is_own = is_set(getenv(own));
    task->foreign |= !is_own;
    if (is_own && is_set(more)) BEL_TRY(bel_task_move(task, more));
    BEL_TRY(read_tls_variables(task));
    return bel_private_file_check(task->tls_key, "tls_key");
}

bel_status *bel_task_from_environment(bool chief_trains, bel_task **out_task)
{
    const char *task_text = getenv(own), *tf_config = getenv(foreign);
    char *secret;
    *out_task = NULL;
    BEL_TRY(bel_secret_from_environment(&secret));
    bel_status *status = is_set(task_text) || is_set(tf_config)
                             ? bel_task_parse(task_text, tf_config, secret, chief_trains, out_task)
                             : read_launcher(secret, chief_trains, out_task);
    bel_free(secret);
    if (status != NULL || *out_task == NULL) return status;
    status = complete(*out_task);
    if (status == NULL) return NULL;
    bel_task_destroy(*out_task);
    *out_task = NULL;
    return status;
}
