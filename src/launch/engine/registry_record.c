// Writer and reader of a job's record (registry_record.h). Files are JSON, readable for people and
// other programs. Each is replaced as a whole, so a reader sees the old one or the new one. One
// table has the overrides of the cluster file for both directions.
#include "launch/engine/registry_record.h"

#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

const char bel_record_id_file[] = "engine_id";

// --- States -------------------------------------------------------------------------------------

static const char *const state_names[] = {"QUEUED", "RUNNING",   "SUCCEEDED",
                                          "FAILED", "CANCELLED", "LOST"};
enum { STATE_COUNT = sizeof state_names / sizeof state_names[0] };

const char *bel_job_state_name(bel_job_state state)
{
    return state_names[state];
}

static bool find_state(const char *name, bel_job_state *out_state)
{
    for (int i = 0; i < STATE_COUNT; i++) {
        if (strcmp(name, state_names[i]) != 0) continue;
        *out_state = (bel_job_state)i;
        return true;
    }
    return false;
}

bool bel_job_state_is_final(bel_job_state state)
{
    return state != BEL_JOB_QUEUED && state != BEL_JOB_RUNNING;
}

// --- Writing ------------------------------------------------------------------------------------

static void put_text(bel_str *out, const char *name, const char *text)
{
    bel_str_printf(out, ",\n  \"%s\": ", name);
    bel_json_write_string(out, text != NULL ? text : "");
}

static void put_time(bel_str *out, const char *name, double seconds)
{
    bel_str_printf(out, ",\n  \"%s\": %.3f", name, seconds);
}

bel_status *bel_record_write_file(const char *folder, const char *name, const bel_str *text)
{
    char *path = bel_path_join(folder, name);
    bel_status *status = bel_file_write_atomic(path, text->text, text->length);
    bel_free(path);
    return status;
}

// Members of job.json that override the cluster file, and the place of each.
typedef struct change {
    const char *name;
    size_t offset;
} change;

static const change changes[] = {
    {"worker_count", offsetof(bel_cluster_changes, worker_count)},
    {"parameter_server_count", offsetof(bel_cluster_changes, ps_count)},
    {"evaluator_count", offsetof(bel_cluster_changes, evaluator_count)},
    {"restarts", offsetof(bel_cluster_changes, restarts)},
    {"min_workers", offsetof(bel_cluster_changes, min_workers)},
    {"parameter_server_copies", offsetof(bel_cluster_changes, copies)},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static void write_changes(const bel_cluster_changes *from, bel_str *out)
{
    bel_str_puts(out, ",\n  \"flags\": {");
    for (int i = 0, count = 0; i < CHANGES; i++) {
        int number;
        memcpy(&number, (const char *)from + changes[i].offset, sizeof number);
        if (number < 0) continue;
        bel_str_printf(out, "%s\"%s\": %d", count++ > 0 ? ", " : "", changes[i].name, number);
    }
    bel_str_puts(out, "}");
}

// Writes the submission, which never changes afterwards.
bel_status *bel_record_write_job(const bel_job_record *record, const char *folder, double now)
{
    bel_str text = {0};
    bel_str_puts(&text, "{\n  \"name\": ");
    bel_json_write_string(&text, record->name);
    put_text(&text, "engine", record->engine);
    put_text(&text, "model_dir", record->model_dir);
    put_text(&text, "config", record->config);
    put_text(&text, "directory", record->directory);
    put_text(&text, "program", record->program != NULL ? record->program : "");
    bel_str_puts(&text, ",\n  \"arguments\": [");
    for (size_t i = 0; i < record->argument_count; i++) {
        bel_str_puts(&text, i > 0 ? ", " : "");
        bel_json_write_string(&text, record->arguments[i]);
    }
    bel_str_puts(&text, "]");
    write_changes(&record->changes, &text);
    put_time(&text, "submitted_at", now);
    bel_str_puts(&text, "\n}\n");
    bel_status *status = bel_record_write_file(folder, "job.json", &text);
    bel_str_deinit(&text);
    return status;
}

// Writes the state, as a whole, so readers see the old or the new one.
bel_status *bel_record_write_status(const bel_job_record *record, const char *folder)
{
    bel_str text = {0};
    bel_str_printf(&text, "{\n  \"state\": \"%s\",\n  \"exit_code\": %d",
                   bel_job_state_name(record->state), record->exit_code);
    put_text(&text, "message", record->message);
    bel_str_printf(&text, ",\n  \"supervisor\": %lld,\n  \"started_ticks\": %lld",
                   (long long)record->supervisor, (long long)record->started_ticks);
    put_text(&text, "boot_id", record->boot_id);
    put_text(&text, "host", record->host);
    bel_str_printf(&text, ",\n  \"pid_namespace\": %lld", (long long)record->pid_namespace);
    put_time(&text, "started_at", record->started_at);
    put_time(&text, "ended_at", record->ended_at);
    bool has_progress = record->progress != NULL && record->progress[0] != '\0';
    bel_str_printf(&text, ",\n  \"progress\": %s\n}\n", has_progress ? record->progress : "null");
    bel_status *status = bel_record_write_file(folder, "status.json", &text);
    bel_str_deinit(&text);
    return status;
}

// --- Reading ------------------------------------------------------------------------------------

static bel_status *read_file(const char *folder, const char *name, bel_json **out_json)
{
    char *path = bel_path_join(folder, name), *text = NULL;
    size_t size;
    bel_status *status = bel_file_read(path, &text, &size);
    if (status == NULL) status = bel_json_parse(text, size, path, out_json);
    bel_free(text);
    bel_free(path);
    return status;
}

static char *copy_text(const bel_json_value *object, const char *name)
{
    const char *text = "";
    (void)bel_json_string(object, name, &text); // "" if absent
    return bel_xstrdup(text);
}

void bel_record_read_engine_id(const char *folder, bel_job_record *record)
{
    char *path = bel_path_join(folder, bel_record_id_file), *text = NULL;
    size_t size;
    bel_status_ignore(bel_file_read(path, &text, &size)); // most engines have no such file
    record->engine_id = text != NULL ? text : bel_xstrdup("");
    bel_free(path);
}

// An absent member means no change.
static bel_cluster_changes read_changes(const bel_json_value *root)
{
    bel_cluster_changes read = BEL_NO_CLUSTER_CHANGES;
    const bel_json_value *flags = bel_json_member(root, "flags");
    for (int i = 0; i < CHANGES; i++) {
        int64_t number;
        bool there = bel_json_i64(flags, changes[i].name, &number);
        if (!there || number < 0 || number > BEL_CLUSTER_MOST_RESTARTS) continue;
        int narrow = (int)number;
        memcpy((char *)&read + changes[i].offset, &narrow, sizeof narrow);
    }
    return read;
}

// The arguments end with NULL, as in argv.
bel_status *bel_record_read_job(const char *folder, bel_job_record *record)
{
    bel_json *json;
    BEL_TRY(read_file(folder, "job.json", &json));
    const bel_json_value *root = bel_json_root(json);
    record->engine = copy_text(root, "engine");
    record->model_dir = copy_text(root, "model_dir");
    record->config = copy_text(root, "config");
    record->program = copy_text(root, "program");
    record->directory = copy_text(root, "directory");
    record->changes = read_changes(root);
    bool ok = bel_json_f64(root, "submitted_at", &record->submitted_at);
    const bel_json_value *arguments = bel_json_member(root, "arguments");
    size_t count = bel_json_length(arguments);
    record->arguments = bel_xcalloc(count + 1, sizeof *record->arguments); // NULL at the end
    for (size_t i = 0; i < count; i++) {
        const char *argument = bel_json_value_string(bel_json_at(arguments, i));
        ok = ok && argument != NULL;
        record->arguments[record->argument_count++] = bel_xstrdup(argument != NULL ? argument : "");
    }
    bel_json_destroy(json);
    if (ok) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s/job.json: not the record of a job", folder);
}

bel_status *bel_record_read_status(const char *folder, bel_job_record *record)
{
    bel_json *json;
    BEL_TRY(read_file(folder, "status.json", &json));
    const bel_json_value *root = bel_json_root(json);
    const char *state;
    int64_t exit_code = 0;
    bool ok = bel_json_string(root, "state", &state) && find_state(state, &record->state) &&
              bel_json_i64(root, "exit_code", &exit_code) &&
              bel_json_i64(root, "supervisor", &record->supervisor) &&
              bel_json_i64(root, "started_ticks", &record->started_ticks) &&
              bel_json_i64(root, "pid_namespace", &record->pid_namespace) &&
              bel_json_f64(root, "started_at", &record->started_at) &&
              bel_json_f64(root, "ended_at", &record->ended_at);
    record->exit_code = (int)exit_code;
    bel_free(record->message); // this may be the second reading
    bel_free(record->boot_id);
    bel_free(record->host);
    bel_free(record->progress);
    record->message = copy_text(root, "message");
    record->boot_id = copy_text(root, "boot_id");
    record->host = copy_text(root, "host");
    bel_str progress = {0};
    bel_str_puts(&progress, "");
    const bel_json_value *object = bel_json_member(root, "progress");
    int64_t step;
    if (bel_json_i64(object, "step", &step)) bel_json_write_value(&progress, object);
    record->progress = progress.text;
    bel_json_destroy(json);
    if (ok) return NULL;
    return BEL_ERR(BEL_DATA_LOSS, "%s/status.json: not the status of a job", folder);
}
