// TF_CONFIG: the addresses of all processes of a job, and this process's place among them. It is
// parsed first; then its parts are checked against each other, since another program has written
// it. Unknown members are ignored. A member that looks like a misspelled "cluster" is refused,
// because without a cluster each process would train separately.
#include "launch/task/task_tf_config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "launch/task/task_reading.h"

// The chief or the master trains and is worker 0, unless the program says otherwise; workers follow
// it. Without a chief the first worker takes its place. An evaluator's entry is optional.
typedef struct tf_settings {
    const bel_json_value *primary, *workers, *servers; // lists of addresses; NULL: absent
    const bel_json_value *evaluators;
    bool is_master;       // the cluster says master, not chief
    bool worker_is_chief; // it names neither
    int job_count;        // lists in the cluster; 0 without a cluster
    const char *type;     // this task's; "" if absent
    int64_t index;        // -1: absent
} tf_settings;

static const bel_json_value **list_of(tf_settings *tf, const char *type)
{
    if (strcmp(type, "chief") == 0 || strcmp(type, "master") == 0) return &tf->primary;
    if (strcmp(type, "worker") == 0) return &tf->workers;
    if (strcmp(type, "evaluator") == 0) return &tf->evaluators;
    return strcmp(type, "ps") == 0 ? &tf->servers : NULL;
}

static const char *address_at(const bel_json_value *list, size_t index)
{
    return bel_json_value_string(bel_json_at(list, index));
}

static const char *chief_address(const tf_settings *tf)
{
    return address_at(tf->worker_is_chief ? tf->workers : tf->primary, 0);
}

// Number of workers besides the chief.
static size_t worker_count(const tf_settings *tf)
{
    return bel_json_length(tf->workers) - (tf->worker_is_chief ? 1 : 0);
}

static const char *worker_address(const tf_settings *tf, size_t worker)
{
    return address_at(tf->workers, worker + (tf->worker_is_chief ? 1 : 0));
}

// Reads one list of the cluster. chief and master share a place, so both together are refused.
static bel_status *read_tf_job(void *context, const char *name, const bel_json_value *list)
{
    tf_settings *tf = context;
    const bel_json_value **place = list_of(tf, name);
    if (place == NULL)
        return bel_task_bad(BEL_TF_CONFIG, "cluster",
                            "of chief (or master), worker, ps and evaluator only");
    if (*place != NULL)
        return bel_task_bad(BEL_TF_CONFIG, "cluster", "with chief or master, not both");
    size_t count = bel_json_length(list);
    bool good = bel_json_is_array(list) && count <= BEL_TASK_MOST_MEMBERS;
    for (size_t i = 0; i < count && good; i++)
        good = bel_task_is_address(address_at(list, i));
    if (!good)
        return bel_task_bad(BEL_TF_CONFIG, name, "a list of at most 1024 addresses, host:port");
    *place = list;
    tf->is_master |= strcmp(name, "master") == 0;
    tf->job_count++;
    return NULL;
}

// The index may be a quoted number, as in TensorFlow.
static bool read_tf_index(const bel_json_value *task, int64_t *out_index)
{
    const char *text;
    if (bel_json_string(task, "index", &text)) {
        return bel_parse_i64(text, strlen(text), out_index) && *out_index >= 0;
    }
    return bel_json_i64(task, "index", out_index) && *out_index >= 0;
}

// Refuses "sparseCluster", "Cluster" and the like.
static bel_status *check_tf_name(void *context, const char *name, const bel_json_value *value)
{
    (void)context, (void)value;
    size_t length = strlen(name), word = strlen("cluster");
    bool like = length >= word && strcasecmp(name + length - word, "cluster") == 0;
    if (!like || strcmp(name, "cluster") == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable %s: \"%s\" is not read, expected \"cluster\" with the "
                   "addresses of all processes%s",
                   BEL_TF_CONFIG, name,
                   strcmp(name, "sparseCluster") == 0
                       ? "; hint: enableDynamicWorker: false in the TFJob"
                       : "");
}

// Parses TF_CONFIG; the consistency of its parts is checked later.
static bel_status *read_tf(const bel_json_value *root, tf_settings *out_tf)
{
    const bel_json_value *cluster = bel_json_member(root, "cluster");
    const bel_json_value *task = bel_json_member(root, "task");
    tf_settings tf = {.type = "", .index = -1};
    if (!bel_json_is_object(root)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: expected an object",
                       BEL_TF_CONFIG);
    }
    BEL_TRY(bel_json_each(root, check_tf_name, NULL));
    if (cluster != NULL && !bel_json_is_object(cluster)) {
        return bel_task_bad(BEL_TF_CONFIG, "cluster", "an object of lists of addresses");
    }
    if (task != NULL && !bel_json_is_object(task)) {
        return bel_task_bad(BEL_TF_CONFIG, "task", "an object with a type and an index from 0");
    }
    if (cluster == NULL && bel_json_member(task, "type") != NULL) {
        return bel_task_bad(BEL_TF_CONFIG, "cluster",
                            "beside \"task\", or {} for one process only");
    }
    if (cluster != NULL) BEL_TRY(bel_json_each(cluster, read_tf_job, &tf));
    if (bel_json_member(task, "type") != NULL && !bel_json_string(task, "type", &tf.type)) {
        return bel_task_bad(BEL_TF_CONFIG, "type", "a text");
    }
    if (bel_json_member(task, "index") != NULL && !read_tf_index(task, &tf.index)) {
        return bel_task_bad(BEL_TF_CONFIG, "index", "an integer from 0");
    }
    *out_tf = tf;
    return NULL;
}

// Without a cluster everything runs in one process, which may only be worker 0.
static bel_status *check_tf_alone(const tf_settings *tf)
{
    if (tf->type[0] != '\0' && strcmp(tf->type, "worker") != 0) {
        return bel_task_bad(BEL_TF_CONFIG, "type", "worker when there is no cluster");
    }
    return tf->index <= 0 ? NULL
                          : bel_task_bad(BEL_TF_CONFIG, "index", "0 when there is no cluster");
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Refuses duplicate addresses, because only one of the two members could be reached. Port 0 is any
// free port.
static bel_status *check_addresses(const tf_settings *tf)
{
    const bel_json_value *const lists[] = {tf->primary, tf->workers, tf->servers};
    size_t most = 0, count = 0;
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        most += bel_json_length(lists[l]);
    const char **all = bel_xcalloc(most + 1, sizeof *all);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (size_t i = 0; i < bel_json_length(lists[l]); i++)
            all[count++] = address_at(lists[l], i);
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
                    BEL_TF_CONFIG, all[i]);
    }
    bel_free(all);
    return status;
}

// Checks for one chief, or a worker in its place, and an entry for the task unless it is an
// evaluator.
static bel_status *check_tf_cluster(tf_settings *tf, bool chief_trains)
{
    tf->worker_is_chief = tf->primary == NULL && chief_trains && bel_json_length(tf->workers) > 0;
    size_t workers = (chief_trains ? 1 : 0) + worker_count(tf);
    if (!tf->worker_is_chief && bel_json_length(tf->primary) != 1) {
        return bel_task_bad(BEL_TF_CONFIG, "cluster",
                            "an object with exactly one chief (or master)");
    }
    if (workers > BEL_TASK_MOST_MEMBERS) {
        return bel_task_bad(BEL_TF_CONFIG, "cluster",
                            "of at most 1024 workers, the chief included");
    }
    if (workers == 0) {
        return bel_task_bad(BEL_TF_CONFIG, "cluster",
                            "with a worker at least, as the chief does not train");
    }
    BEL_TRY(check_addresses(tf));
    if (tf->type[0] == '\0' || tf->index < 0) {
        return bel_task_bad(BEL_TF_CONFIG, "task", "an object with a type and an index from 0");
    }
    if (strcmp(tf->type, "evaluator") == 0) return NULL;
    const bel_json_value **list = list_of(tf, tf->type);
    if (list == NULL)
        return bel_task_bad(BEL_TF_CONFIG, "type", "chief, master, worker, ps or evaluator");
    if (list == &tf->primary && tf->is_master != (strcmp(tf->type, "master") == 0)) {
        return bel_task_bad(BEL_TF_CONFIG, "type",
                            tf->is_master ? "master, as in the cluster"
                                          : "chief, as in the cluster");
    }
    if (tf->index < (int64_t)bel_json_length(*list)) return NULL;
    return bel_task_bad(BEL_TF_CONFIG, "index", "that of an address in the cluster");
}

// Compares the hosts of "host:port"; all unix sockets are on one host.
static bool same_host(const char *a, const char *b)
{
    size_t length = (size_t)(strrchr(a, ':') - a);
    if (strncmp(a, "unix:", 5) == 0) length = strlen("unix");
    return strncmp(a, b, length + 1) == 0;
}

// Counts the workers on this task's host; an evaluator's host is unknown.
static void count_local(const tf_settings *tf, bel_task *task)
{
    int first = task->master_trains ? 1 : 0; // index of the list's first worker
    task->local_rank = -1;
    for (int w = 0; w < task->worker_count && !task->follows; w++) {
        const char *worker =
            w < first ? chief_address(tf) : worker_address(tf, (size_t)(w - first));
        if (!same_host(worker, task->listen_address)) continue;
        if (bel_task_trains(task) && w == task->index) task->local_rank = task->local_size;
        task->local_size++;
    }
}

// Describes the entries that were reinterpreted.
static char *note_of(const tf_settings *tf)
{
    if (!tf->worker_is_chief && tf->evaluators == NULL) return NULL;
    return bel_strf(
        BEL_TF_CONFIG ":%s%s%s", tf->worker_is_chief ? " without a chief, worker 0 is it" : "",
        tf->worker_is_chief && tf->evaluators != NULL ? ";" : "",
        tf->evaluators != NULL ? " the evaluator follows the checkpoints, and the chief "
                                 "evaluates as well"
                               : "");
}

bel_status *bel_task_read_tf_config(const bel_json_value *root, bool chief_trains, bel_task *task,
                                    bool *out_alone)
{
    tf_settings tf;
    BEL_TRY(read_tf(root, &tf));
    *out_alone = tf.job_count == 0;
    if (tf.job_count == 0) return check_tf_alone(&tf);
    BEL_TRY(check_tf_cluster(&tf, chief_trains));
    task->follows = strcmp(tf.type, "evaluator") == 0;
    const bel_json_value *list = *list_of(&tf, tf.type), *chief = tf.primary;
    if (tf.worker_is_chief && tf.index == 0) chief = tf.workers;
    bool is_chief = list == chief;
    if (task->follows) tf.index = 0; // there is one evaluator, whatever its number
    task->role = task->follows        ? BEL_ROLE_EVALUATOR
                 : is_chief           ? BEL_ROLE_MASTER
                 : list == tf.workers ? BEL_ROLE_WORKER
                                      : BEL_ROLE_PS;
    bool after_chief = task->role == BEL_ROLE_WORKER && chief_trains && !tf.worker_is_chief;
    task->index = (int)tf.index + (after_chief ? 1 : 0);
    task->master_address = bel_xstrdup(chief_address(&tf));
    // An evaluator does not listen.
    task->listen_address =
        bel_xstrdup(task->follows ? chief_address(&tf) : address_at(list, (size_t)tf.index));
    task->job = bel_xstrdup("job");
    task->master_trains = chief_trains;
    task->worker_count = (chief_trains ? 1 : 0) + (int)worker_count(&tf);
    task->ps_count = (int)bel_json_length(tf.servers);
    count_local(&tf, task);
    task->note = note_of(&tf);
    task->recovers = true;
    return NULL;
}
