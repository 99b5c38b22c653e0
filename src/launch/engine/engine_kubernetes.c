// Engine "kubernetes": a JobSet, or a TFJob, submitted by kubectl (or the program in
// BELFRY_KUBECTL). Kubernetes starts and restarts the processes. Belfry has no supervisor for them,
// so a job's state comes from the object's conditions at each look. A final state, or a missing
// object, is stored in the record. QUEUED and RUNNING never are, because a RUNNING record is judged
// by its supervisor's pid.
//
// Cancelling suspends the object: pods get SIGTERM, save and exit. The manifest goes to kubectl's
// standard input, as it has the job's secret.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_lock.h"
#include "base/program.h"
#include "base/secret.h"
#include "base/str.h"
#include "launch/engine/detached.h"
#include "launch/engine/engines.h"
#include "launch/engine/kubernetes_manifest.h"

enum {
    ASK_SECS = 60,
    DELETE_SECS = 240,    // exiting pods have two minutes
    CANCELLED_CODE = 143, // as after a job that SIGTERM ended
};

// --- Asking kubectl ------------------------------------------------------------------------------

// Runs kubectl. `words` follow the program's name and end with NULL.
static bel_status *engine_kubernetes_ask(const char *const *words, const char *input, int most_secs,
                                         char **out_text)
{
    enum { MOST_WORDS = 15 };
    char *arguments[MOST_WORDS + 2] = {NULL};
    const char *program = getenv("BELFRY_KUBECTL");
    int count = 0;
    bool named = program != NULL && program[0] != '\0';
    arguments[count++] = bel_xstrdup(named ? program : "kubectl");
    for (int i = 0; words[i] != NULL && count <= MOST_WORDS; i++)
        arguments[count++] = bel_xstrdup(words[i]);
    bel_status *status = bel_program_ask(arguments, input, most_secs, out_text);
    for (int i = 0; i < count; i++)
        bel_free(arguments[i]);
    return status;
}

// An object from the record's engine_id: NAMESPACE/KIND/NAME.
typedef struct target {
    char *copy; // copy of the whole text; the parts point into it
    const char *name_space, *kind, *name;
} target;

static bel_status *target_init(target *t, const char *engine_id)
{
    *t = (target){.copy = bel_xstrdup(engine_id)};
    char *kind = strchr(t->copy, '/'), *name = kind != NULL ? strchr(kind + 1, '/') : NULL;
    if (name == NULL) {
        bel_free(t->copy);
        return BEL_ERR(BEL_DATA_LOSS, "engine_id \"%s\": expected NAMESPACE/KIND/NAME", engine_id);
    }
    *kind++ = *name++ = '\0';
    t->name_space = t->copy;
    t->kind = kind;
    t->name = name;
    return NULL;
}

static void target_deinit(target *t)
{
    bel_free(t->copy);
}

// --- State of an object --------------------------------------------------------------------------

typedef struct view {
    bool there, ours, suspended;
    bel_job_state state;
    char *message; // "" or a sentence from Kubernetes
} view;

static void view_deinit(view *v)
{
    bel_free(v->message);
}

// Finds the condition of that type, if it holds.
static const bel_json_value *find_condition(const bel_json_value *status, const char *type)
{
    const bel_json_value *conditions = bel_json_member(status, "conditions");
    for (size_t i = 0; i < bel_json_length(conditions); i++) {
        const bel_json_value *condition = bel_json_at(conditions, i);
        const char *name = "", *holds = "";
        bool whole = bel_json_string(condition, "type", &name) &&
                     bel_json_string(condition, "status", &holds);
        if (whole && strcmp(name, type) == 0 && strcmp(holds, "True") == 0) return condition;
    }
    return NULL;
}

// A JobSet has no condition for "running"; its master is ready once it listens.
static bool master_is_ready(const bel_json_value *status)
{
    const bel_json_value *jobs = bel_json_member(status, "replicatedJobsStatus");
    for (size_t i = 0; i < bel_json_length(jobs); i++) {
        const char *name = "";
        int64_t ready = 0;
        bool whole = bel_json_string(bel_json_at(jobs, i), "name", &name) &&
                     bel_json_i64(bel_json_at(jobs, i), "ready", &ready);
        if (whole && strcmp(name, "master") == 0) return ready > 0;
    }
    return false;
}

// True for JSON `true`, which is neither text nor number.
static bool is_true(const bel_json_value *value)
{
    bel_str text = {0};
    if (value == NULL) return false;
    bel_json_write_value(&text, value);
    bool yes = strcmp(text.text, "true") == 0;
    bel_str_deinit(&text);
    return yes;
}

static void read_view(const bel_json_value *root, view *v)
{
    static const struct {
        const char *type;
        bel_job_state state;
    } ends[] = {{"Completed", BEL_JOB_SUCCEEDED},
                {"Succeeded", BEL_JOB_SUCCEEDED},
                {"Failed", BEL_JOB_FAILED}};
    const bel_json_value *status = bel_json_member(root, "status");
    const bel_json_value *spec = bel_json_member(root, "spec");
    const bel_json_value *policy = bel_json_member(spec, "runPolicy");
    const bel_json_value *labels = bel_json_member(bel_json_member(root, "metadata"), "labels");
    const char *message = "", *manager = "";
    v->there = true;
    v->ours = bel_json_string(labels, "app.kubernetes.io/managed-by", &manager) &&
              strcmp(manager, "belfry") == 0;
    v->suspended =
        is_true(bel_json_member(spec, "suspend")) || is_true(bel_json_member(policy, "suspend"));
    bool runs = find_condition(status, "Running") != NULL || master_is_ready(status);
    v->state = runs ? BEL_JOB_RUNNING : BEL_JOB_QUEUED;
    if (v->suspended) v->state = BEL_JOB_QUEUED;
    if (!runs) message = "Kubernetes has not started its master yet";
    if (v->suspended) message = "it is suspended in Kubernetes";
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const bel_json_value *end = find_condition(status, ends[i].type);
        if (end == NULL) continue;
        v->state = ends[i].state;
        message = "";
        if (v->state == BEL_JOB_FAILED && !bel_json_string(end, "message", &message)) {
            message = "Kubernetes does not say why";
        }
    }
    v->message = bel_xstrdup(message);
}

static bel_status *ask_view(const target *t, view *out_view)
{
    char *text;
    const char *const words[] = {"get",         t->kind,       t->name,
                                 "--namespace", t->name_space, "--ignore-not-found",
                                 "--output",    "json",        NULL};
    BEL_TRY(engine_kubernetes_ask(words, NULL, ASK_SECS, &text));
    bel_status *status = NULL;
    view v = {.state = BEL_JOB_LOST};
    if (text[strspn(text, " \n")] == '\0') {
        v.message = bel_strf("namespace %s has no %s %s any more", t->name_space, t->kind, t->name);
    } else {
        bel_json *json;
        status = bel_json_parse(text, strlen(text), "kubectl get", &json);
        if (status == NULL) {
            read_view(bel_json_root(json), &v);
            bel_json_destroy(json);
        }
    }
    bel_free(text);
    if (status == NULL) *out_view = v;
    return status;
}

// --- Submitting ----------------------------------------------------------------------------------

static bel_status *write_text(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    char *secret;
    BEL_TRY(bel_secret_create(&secret));
    bel_status *status = bel_kubernetes_write(record, plan, secret, out);
    bel_free(secret);
    return status;
}

// Deletes the finished object of an earlier run with its pods, because most of an object cannot be
// changed. An object that runs, or belongs to someone else, keeps the name.
static bel_status *make_room(const target *t)
{
    view v;
    char *text = NULL;
    const char *const words[] = {"delete",      t->kind,       t->name,
                                 "--namespace", t->name_space, "--cascade=foreground",
                                 "--wait",      NULL};
    BEL_TRY(ask_view(t, &v));
    bel_status *status = NULL;
    bool over = bel_job_state_is_final(v.state) || v.suspended;
    if (v.there && (!over || !v.ours)) {
        status =
            BEL_ERR(BEL_ALREADY_EXISTS, "namespace %s has a %s %s already, which %s", t->name_space,
                    t->kind, t->name, v.ours ? "has not ended" : "is not one of belfry's");
    } else if (v.there) {
        status = engine_kubernetes_ask(words, NULL, DELETE_SECS, &text);
    }
    bel_free(text);
    view_deinit(&v);
    return status;
}

static bel_status *hand_in(const bel_job_record *record, const bel_plan *plan)
{
    static const char *const words[] = {"apply", "-f", "-", NULL};
    const bel_cluster *cluster = plan->cluster;
    char *id = bel_strf("%s/%s/%s", cluster->kubernetes.name_space, bel_kubernetes_kind(cluster),
                        record->name);
    char *said = NULL;
    bel_str text = {0};
    target t = {0};
    bel_status *status = write_text(record, plan, &text);
    if (status == NULL) status = target_init(&t, id);
    if (status == NULL) {
        status = make_room(&t);
        target_deinit(&t);
    }
    if (status == NULL) status = engine_kubernetes_ask(words, text.text, ASK_SECS, &said);
    if (status == NULL) status = bel_registry_set_engine_id(record, id);
    bel_str_deinit(&text);
    bel_free(said);
    bel_free(id);
    return status;
}

static bel_status *engine_kubernetes_submit(bel_job_record *record, const bel_plan *plan)
{
    bel_status *status = hand_in(record, plan);
    if (status != NULL) bel_job_record_failure(record, status);
    return status;
}

// --- Looking and cancelling ----------------------------------------------------------------------

static void set_end(bel_job_record *record, bel_job_state state, const char *message)
{
    record->state = state;
    record->exit_code = state == BEL_JOB_FAILED      ? 1
                        : state == BEL_JOB_CANCELLED ? CANCELLED_CODE
                                                     : 0;
    record->ended_at = bel_clock_wall();
    bel_free(record->message);
    record->message = bel_xstrdup(message);
}

static bel_status *engine_kubernetes_look(bel_job_record *record)
{
    target t;
    view v;
    bel_job_state before = record->state;
    BEL_TRY(target_init(&t, record->engine_id));
    bel_status *status = ask_view(&t, &v);
    target_deinit(&t);
    if (status != NULL) return status;
    record->elsewhere = false; // every host can look at it
    bool over = bel_job_state_is_final(v.state);
    bool stays = before == BEL_JOB_CANCELLED && (over || v.suspended); // until it continues there
    if (stays) {
        view_deinit(&v);
        return NULL;
    }
    if (!over) {
        record->state = v.state;
        bel_free(record->message);
        record->message = bel_xstrdup(v.message);
    } else if (v.state != before) { // otherwise it is known to be lost
        set_end(record, v.state, v.message);
        status = bel_registry_update(record);
    }
    view_deinit(&v);
    return status;
}

static bel_status *suspend(const target *t)
{
    bool tfjob = strcmp(t->kind, "tfjob") == 0;
    const char *patch =
        tfjob ? "{\"spec\":{\"runPolicy\":{\"suspend\":true}}}" : "{\"spec\":{\"suspend\":true}}";
    const char *const words[] = {"patch",  t->kind, t->name,   "--namespace", t->name_space,
                                 "--type", "merge", "--patch", patch,         NULL};
    char *text = NULL;
    bel_status *status = engine_kubernetes_ask(words, NULL, ASK_SECS, &text);
    bel_free(text);
    return status;
}

static bel_status *engine_kubernetes_cancel(const bel_job_record *record)
{
    target t;
    bel_job_record *now;
    bool open = !bel_job_state_is_final(record->state) && record->engine_id[0] != '\0';
    if (!open) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "job %s is %s: there is nothing to cancel",
                       record->name, bel_job_state_name(record->state));
    }
    BEL_TRY(target_init(&t, record->engine_id));
    bel_status *status = suspend(&t);
    target_deinit(&t);
    if (status != NULL) return status;
    BEL_TRY(bel_registry_read(record->name, &now));
    set_end(now, BEL_JOB_CANCELLED, "it was suspended in Kubernetes, where its pods save and end");
    status = bel_registry_update(now);
    bel_job_record_destroy(now);
    return status;
}

// --- Logs ----------------------------------------------------------------------------------------

// Output of a pod so far.
typedef struct pod_log {
    const char *pod; // into kubectl's text; not terminated
    size_t pod_length;
    bel_str text;
} pod_log;

// Parses a pod's name after the job's name: ROLE-0-INDEX-SUFFIX (JobSet) or ROLE-INDEX (TFJob).
// False: not a pod of the job.
static bool read_pod(const char *pod, size_t length, const char *job, bool trains,
                     bel_role *out_role, int *out_index)
{
    size_t skip = strlen(job) + 1;
    char rest[64];
    if (length <= skip || length - skip >= sizeof rest) return false;
    memcpy(rest, pod + skip, length - skip);
    rest[length - skip] = '\0';
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        bel_role role = (bel_role)r;
        const char *name = bel_role_name(role), *place = rest;
        bool chief = role == BEL_ROLE_MASTER && strncmp(rest, "chief-", 6) == 0;
        size_t begin = strlen(chief ? "chief" : name);
        if ((!chief && strncmp(rest, name, begin) != 0) || rest[begin] != '-') continue;
        place += begin + 1;
        if (strncmp(place, "0-", 2) == 0) place += 2; // the replicated job has one replica
        int64_t index;
        if (!bel_parse_i64(place, strspn(place, "0123456789"), &index) || index > INT16_MAX)
            return false;
        *out_role = role;
        *out_index = (int)index + (role == BEL_ROLE_WORKER && trains ? 1 : 0);
        return true;
    }
    return false;
}

static bel_status *engine_kubernetes_append(const char *path, const char *text, size_t length)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "create", path);
    bel_status *status = NULL;
    while (length > 0 && status == NULL) {
        ssize_t written = write(descriptor, text, length);
        if (written < 0 && errno != EINTR) status = bel_file_error(errno, "write", path);
        text += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    close(descriptor);
    return status;
}

// Appends to the file that begins with the same log; the log of a replacement pod goes into the
// file with the next number.
static bel_status *keep_log(const char *folder, bel_role role, int index, const bel_str *text)
{
    bel_status *status = NULL;
    bool done = false;
    for (int k = 0; !done && status == NULL; k++) {
        char *path = bel_strf("%s/%s-%d.%d.log", folder, bel_role_name(role), index, k),
             *old = NULL;
        size_t size = 0;
        if (bel_file_exists(path)) status = bel_file_read(path, &old, &size);
        size_t common = size < text->length ? size : text->length;
        done = status == NULL && (size == 0 || memcmp(old, text->text, common) == 0);
        if (done)
            status = engine_kubernetes_append(path, text->text + common, text->length - common);
        bel_free(old);
        bel_free(path);
    }
    return status;
}

// Splits lines "[pod/NAME/CONTAINER] line" by pod. Returns the number of pods; free the array with
// bel_free, and deinit each text.
static size_t split_logs(const char *text, pod_log **out_pods)
{
    static const char prefix[] = "[pod/";
    size_t count = 0, capacity = 0, skip = sizeof prefix - 1;
    pod_log *pods = NULL;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        const char *bracket = memchr(text, ']', length);
        bool good = strncmp(text, prefix, skip) == 0 && bracket != NULL;
        size_t pod_length = good ? strcspn(text + skip, "/]") : 0, k = 0;
        while (
            good && k < count &&
            (pods[k].pod_length != pod_length || memcmp(pods[k].pod, text + skip, pod_length) != 0))
            k++;
        if (good && k == count) {
            pods = bel_xgrow(pods, &capacity, count + 1, sizeof *pods);
            pods[count++] = (pod_log){.pod = text + skip, .pod_length = pod_length};
        }
        bool whole = text[length] == '\n'; // the newest line may still be in progress
        if (good && whole) {
            const char *line = bracket + (bracket[1] == ' ' ? 2 : 1);
            bel_str_append(&pods[k].text, line, (size_t)(text + length + 1 - line));
        }
        text += length + (whole ? 1 : 0);
    }
    *out_pods = pods;
    return count;
}

static bel_status *keep_logs(const bel_job_record *record, const char *text, bool trains)
{
    enum { LOCK_SECS = 10 };
    int lock;
    pod_log *pods;
    char *folder = bel_path_join(record->folder, "logs"), *held = bel_path_join(folder, "lock");
    bel_status *status = bel_linux_lock(held, LOCK_SECS, &lock);
    bel_free(held);
    if (status != NULL) {
        bel_free(folder);
        return status;
    }
    size_t count = split_logs(text, &pods);
    for (size_t i = 0; i < count; i++) {
        bel_role role;
        int index;
        bool ours = read_pod(pods[i].pod, pods[i].pod_length, record->name, trains, &role, &index);
        if (ours && pods[i].text.length > 0 && status == NULL) {
            status = keep_log(folder, role, index, &pods[i].text);
        }
        bel_str_deinit(&pods[i].text);
    }
    bel_free(pods);
    bel_linux_unlock(lock);
    bel_free(folder);
    return status;
}

static bel_status *logs(const bel_job_record *record)
{
    target t;
    bel_cluster *cluster;
    char *text = NULL;
    BEL_TRY(bel_job_record_cluster(record, &cluster));
    bool trains = cluster->master_trains;
    bel_cluster_destroy(cluster);
    BEL_TRY(target_init(&t, record->engine_id));
    char *selector = bel_strf("%s=%s", bel_kubernetes_label(t.kind), t.name);
    const char *const words[] = {"logs",       "--namespace",     t.name_space,
                                 "--selector", selector,          "--prefix",
                                 "--tail=-1",  "--ignore-errors", NULL};
    bel_status *status = engine_kubernetes_ask(words, NULL, ASK_SECS, &text);
    if (status == NULL) status = keep_logs(record, text, trains);
    bel_free(text);
    bel_free(selector);
    target_deinit(&t);
    return status;
}

// --- The engine ----------------------------------------------------------------------------------

const bel_engine bel_engine_kubernetes = {
    .name = "kubernetes",
    .check = bel_kubernetes_check,
    .show = write_text,
    .submit = engine_kubernetes_submit,
    .cancel = engine_kubernetes_cancel,
    .look = engine_kubernetes_look,
    .logs = logs,
    .comment = "# ",
    .far = true,
    .apart = true,
};
