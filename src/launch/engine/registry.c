// The registry has two JSON files per job, each replaced as a whole, so readers need no lock. The
// job's folder reserves the name. A process that takes a name or a queued job holds the registry's
// lock meanwhile. job.json is written last and makes a job visible. So an interrupted submission
// leaves a folder that counts as damaged and that --replace removes.
//
// A reader concludes LOST when the process of a QUEUED or RUNNING record is gone. It checks boot ID
// and start time, in the machine and pid namespace of that process. Only an engine without
// supervisors writes LOST. The rules for names also keep a name inside the folder.
#include "launch/engine/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/engine/registry_record.h"

// --- Records ------------------------------------------------------------------------------------

static const char cluster_file[] = "cluster.yaml";

void bel_job_record_destroy(bel_job_record *record)
{
    if (record == NULL) return;
    char *const texts[] = {record->name,     record->engine,   record->folder,  record->model_dir,
                           record->config,   record->cluster,  record->message, record->boot_id,
                           record->host,     record->progress, record->program, record->engine_id,
                           record->directory};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bel_free(texts[i]);
    for (size_t i = 0; i < record->argument_count; i++)
        bel_free(record->arguments[i]);
    bel_free(record->arguments);
    bel_free(record);
}

bel_status *bel_job_record_cluster(const bel_job_record *record, bel_cluster **out_cluster)
{
    char *path = bel_path_join(record->folder, cluster_file);
    bel_status *status = bel_cluster_read(path, out_cluster);
    bel_free(path);
    if (status != NULL) return status;
    status = bel_cluster_change(*out_cluster, &record->changes);
    if (status != NULL) bel_cluster_destroy(*out_cluster);
    return status;
}

static char *host_name(void)
{
    char name[256] = "";
    return bel_xstrdup(gethostname(name, sizeof name - 1) == 0 ? name : "");
}

void bel_job_record_set_process(bel_job_record *record)
{
    char boot_id[64];
    record->supervisor = (int64_t)getpid();
    record->started_ticks = bel_linux_start_ticks(record->supervisor);
    record->pid_namespace = bel_linux_pid_namespace();
    bel_free(record->boot_id);
    record->boot_id = bel_xstrdup(bel_linux_boot_id(boot_id));
    bel_free(record->host);
    record->host = host_name();
}

// --- Places -------------------------------------------------------------------------------------

// A relative XDG_STATE_HOME is ignored, as the XDG rules require.
bel_status *bel_state_folder(const char *name, char **out_path)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state != NULL && state[0] == '/') {
        *out_path = bel_strf("%s/belfry/%s", state, name);
        return NULL;
    }
    if (home == NULL || home[0] != '/') {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "no place for records of jobs: neither XDG_STATE_HOME nor HOME is set to a "
                       "folder");
    }
    *out_path = bel_strf("%s/.local/state/belfry/%s", home, name);
    return NULL;
}

// Finds the folder of all jobs.
static bel_status *find_root(char **out_root)
{
    return bel_state_folder("jobs", out_root);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Also keeps a name from being a path.
static bel_status *check_name(const char *name)
{
    enum { LONGEST = 100 };
    size_t length = strlen(name);
    bool good = length <= LONGEST && is_letter(name[0]);
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        good = good && (is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-');
    }
    if (good) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "job name \"%s\": expected letters, digits, _ and -, a letter first, at most %d",
                   name, LONGEST);
}

bel_status *bel_registry_folder(const char *name, char **out_folder)
{
    char *root = NULL;
    BEL_TRY(check_name(name));
    BEL_TRY(find_root(&root));
    *out_folder = bel_path_join(root, name);
    bel_free(root);
    return NULL;
}

// The lock file is beside the folder of all jobs, because every entry of that folder is a job.
static bel_status *lock(int *out_lock)
{
    static const double patience_secs = 10;
    char *root = NULL;
    BEL_TRY(find_root(&root));
    bel_status *status = bel_dir_create(root);
    char *path = bel_strf("%s.lock", root);
    if (status == NULL) status = bel_linux_lock(path, patience_secs, out_lock);
    bel_free(path);
    bel_free(root);
    return status;
}

// --- Adding -------------------------------------------------------------------------------------

// Frees a name. It is free if there is no folder, or if `replace` permits the removal. A folder
// without a readable record comes from an interrupted submission.
static bel_status *make_room(const char *name, const char *folder, bool replace)
{
    bel_job_record *record;
    if (!bel_file_exists(folder)) return NULL;
    bel_status *status = bel_registry_read(name, &record);
    if (status != NULL) {
        bel_status_ignore(status); // damaged: only `replace` may remove it
        if (replace) return bel_dir_remove(folder);
        return BEL_ERR(BEL_ALREADY_EXISTS, "%s holds a damaged record; --replace removes it",
                       folder);
    }
    const char *state = bel_job_state_name(record->state);
    if (record->elsewhere) {
        status = BEL_ERR(BEL_ALREADY_EXISTS,
                         "there is a job %s already, and it is %s on %s; belfry jobs cancel %s "
                         "ends it there; hint: if it cannot run any more, remove %s",
                         name, state, record->host, name, folder);
    } else if (!bel_job_state_is_final(record->state)) {
        status = BEL_ERR(BEL_ALREADY_EXISTS,
                         "there is a job %s already, and it is %s; belfry jobs cancel %s ends it",
                         name, state, name);
    } else if (!replace) {
        status = BEL_ERR(BEL_ALREADY_EXISTS,
                         "there is a job %s already, which is %s; --replace takes its name", name,
                         state);
    } else {
        status = bel_dir_remove(folder);
    }
    bel_job_record_destroy(record);
    return status;
}

// job.json makes the job visible, so it is written last.
static bel_status *fill_folder(const bel_job_record *record, const char *folder)
{
    double now = bel_clock_wall();
    char *logs = bel_path_join(folder, "logs");
    bel_status *status = bel_dir_create(logs);
    bel_free(logs);
    bel_job_record queued = {.state = BEL_JOB_QUEUED};
    bel_job_record_set_process(&queued);
    bel_str cluster = {0};
    bel_str_puts(&cluster, record->cluster);
    if (status == NULL) status = bel_record_write_file(folder, cluster_file, &cluster);
    bel_str_deinit(&cluster);
    if (status == NULL) status = bel_record_write_status(&queued, folder);
    if (status == NULL)
        status = bel_record_write_job(record, folder, now); // last: makes the job visible
    bel_free(queued.boot_id);
    bel_free(queued.host);
    return status;
}

// Records are JSON, which holds nothing but UTF-8.
static bel_status *check_text(const char *job, const char *what, const char *value)
{
    bel_json *json = NULL;
    bel_str text = {0};
    bel_str_puts(&text, "[");
    bel_json_write_exact(&text, value != NULL ? value : "");
    bel_str_puts(&text, "]");
    bel_status *status = bel_json_parse(text.text, text.length, what, &json);
    bel_json_destroy(json);
    bel_str_deinit(&text);
    if (status == NULL) return NULL;
    bel_status_ignore(status); // the caller gets another message
    return BEL_ERR(BEL_INVALID_ARGUMENT, "job %s: expected UTF-8 in %s, got \"%s\"", job, what,
                   value);
}

static bel_status *check_texts(const bel_job_record *record)
{
    BEL_TRY(check_text(record->name, "the model's folder", record->model_dir));
    BEL_TRY(check_text(record->name, "the path of the cluster file", record->config));
    BEL_TRY(check_text(record->name, "the program's path", record->program));
    BEL_TRY(check_text(record->name, "the folder of the submission", record->directory));
    for (size_t i = 0; i < record->argument_count; i++)
        BEL_TRY(check_text(record->name, "an argument", record->arguments[i]));
    return NULL;
}

// Removes a folder that could not be filled.
static bel_status *add_locked(const bel_job_record *record, const char *folder, bool replace)
{
    BEL_TRY(make_room(record->name, folder, replace));
    if (mkdir(folder, 0755) != 0) return bel_file_error(errno, "create folder", folder);
    bel_status *status = fill_folder(record, folder);
    if (status != NULL) bel_status_ignore(bel_dir_remove(folder)); // the first error is reported
    return status;
}

bel_status *bel_registry_add(const bel_job_record *record, bool replace)
{
    int held;
    char *folder;
    BEL_TRY(check_name(record->name));
    BEL_TRY(check_texts(record));
    BEL_TRY(bel_registry_folder(record->name, &folder));
    bel_status *status = lock(&held);
    if (status == NULL) {
        status = add_locked(record, folder, replace);
        bel_linux_unlock(held);
    }
    bel_free(folder);
    return status;
}

// Removes an earlier run's own files of the job; keeps logs, which are appended to.
static bel_status *requeue(const bel_job_record *record)
{
    static const char *const files[] = {"output.txt", bel_record_id_file};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char *path = bel_path_join(record->folder, files[i]);
        (void)remove(path); // usually absent
        bel_free(path);
    }
    bel_job_record queued = {.state = BEL_JOB_QUEUED};
    bel_job_record_set_process(&queued);
    bel_status *status = bel_record_write_status(&queued, record->folder);
    bel_free(queued.boot_id);
    bel_free(queued.host);
    return status;
}

// Needs the lock, so that no other job of the same name replaces the job meanwhile.
static bel_status *end_locked(const char *name, bool again)
{
    bel_job_record *record;
    BEL_TRY(bel_registry_read(name, &record));
    bel_status *status;
    if (bel_job_state_is_final(record->state)) {
        status = again ? requeue(record) : bel_dir_remove(record->folder);
    } else {
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "job %s is %s%s%s; belfry jobs cancel %s ends it",
                         name, bel_job_state_name(record->state), record->elsewhere ? " on " : "",
                         record->elsewhere ? record->host : "", name);
    }
    bel_job_record_destroy(record);
    return status;
}

static bel_status *registry_end(const char *name, bool again)
{
    int held;
    BEL_TRY(lock(&held));
    bel_status *status = end_locked(name, again);
    bel_linux_unlock(held);
    return status;
}

bel_status *bel_registry_requeue(const char *name)
{
    return registry_end(name, true);
}

bel_status *bel_registry_remove(const char *name)
{
    return registry_end(name, false);
}

// Needs the lock: only one process may find the job QUEUED.
static bel_status *claim_locked(const char *name, const char *again, bel_job_record **out_record)
{
    bel_job_record *record;
    BEL_TRY(bel_registry_read(name, &record));
    bel_status *status = NULL;
    bool over = record->state == BEL_JOB_SUCCEEDED || record->state == BEL_JOB_FAILED;
    bool same = again != NULL && strcmp(again, record->engine_id) == 0;
    bool other = again != NULL && !same; // it was resubmitted meanwhile
    if (other || (record->state != BEL_JOB_QUEUED && (!same || over))) {
        status = BEL_ERR(BEL_FAILED_PRECONDITION, "job %s is %s; belfry jobs submit starts one",
                         name, bel_job_state_name(record->state));
    } else {
        record->state = BEL_JOB_QUEUED; // until its processes have started
        record->ended_at = 0;
        record->exit_code = 0;
        record->message[0] = '\0';
        bel_job_record_set_process(record);
        status = bel_registry_update(record);
    }
    if (status == NULL) {
        *out_record = record;
    } else {
        bel_job_record_destroy(record);
    }
    return status;
}

bel_status *bel_registry_claim(const char *name, const char *again, bel_job_record **out_record)
{
    int held;
    BEL_TRY(lock(&held));
    bel_status *status = claim_locked(name, again, out_record);
    bel_linux_unlock(held);
    return status;
}

bel_status *bel_registry_set_engine_id(const bel_job_record *record, const char *id)
{
    char *path = bel_path_join(record->folder, bel_record_id_file);
    bel_status *status = bel_file_write_atomic(path, id, strlen(id));
    bel_free(path);
    return status;
}

bel_status *bel_registry_conclude(bel_job_record *record, bel_job_state state, const char *message)
{
    int held;
    BEL_TRY(lock(&held));
    char *copy = bel_xstrdup(message); // it may belong to the record, which is reread
    bel_status *status = bel_record_read_status(record->folder, record);
    if (status == NULL && !bel_job_state_is_final(record->state)) { // otherwise the job's process
                                                                    // has
        record->state = state;
        record->exit_code = 1;
        record->ended_at = bel_clock_wall();
        bel_free(record->message);
        record->message = bel_xstrdup(copy);
        status = bel_record_write_status(record, record->folder);
    }
    bel_linux_unlock(held);
    bel_free(copy);
    return status;
}

bel_status *bel_registry_update(const bel_job_record *record)
{
    char *folder;
    BEL_TRY(bel_registry_folder(record->name, &folder));
    bel_status *status = bel_record_write_status(record, folder);
    bel_free(folder);
    return status;
}

// --- Reading ------------------------------------------------------------------------------------

// Machines, and containers of one machine, may share folders of jobs.
static bool is_elsewhere(const bel_job_record *record)
{
    char boot_id[64];
    if (strcmp(record->boot_id, bel_linux_boot_id(boot_id)) == 0) {
        return record->pid_namespace != bel_linux_pid_namespace();
    }
    char *host = host_name(); // same name: the machine has rebooted
    bool other = strcmp(record->host, host) != 0;
    bel_free(host);
    return other;
}

// Only the same process has the same pid, start tick and boot.
static bool is_alive(const bel_job_record *record)
{
    char boot_id[64];
    return strcmp(record->boot_id, bel_linux_boot_id(boot_id)) == 0 && record->started_ticks != 0 &&
           bel_linux_start_ticks(record->supervisor) == record->started_ticks;
}

// A process that seems gone may have exited properly since its status was read. So the status is
// read once more before the job counts as lost.
static bel_status *read_record(const char *folder, bel_job_record *record)
{
    BEL_TRY(bel_record_read_job(folder, record));
    bel_record_read_engine_id(folder, record);
    for (int i = 0; i < 2; i++) {
        BEL_TRY(bel_record_read_status(folder, record));
        if (bel_job_state_is_final(record->state)) return NULL;
        record->elsewhere = is_elsewhere(record);
        if (record->elsewhere || is_alive(record)) return NULL;
        if (record->state == BEL_JOB_QUEUED && record->engine_id[0] != '\0')
            return NULL; // in a queue
    }
    record->state = BEL_JOB_LOST;
    bel_free(record->message);
    record->message = bel_strf("its supervisor is gone, or the machine was started again; belfry "
                               "jobs resume %s continues from the newest checkpoint in %s",
                               record->name, record->model_dir);
    return NULL;
}

// Makes the error with the nearest name; reads all jobs for it.
static bel_status *not_found(const char *name)
{
    bel_job_record **records;
    size_t count;
    BEL_TRY(bel_registry_list(&records, &count));
    const char **names = bel_xcalloc(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = records[i]->name;
    int nearest = bel_nearest_name(name, names, count);
    bel_status *status =
        nearest >= 0
            ? BEL_ERR(BEL_NOT_FOUND, "there is no job %s; did you mean %s?", name, names[nearest])
            : BEL_ERR(BEL_NOT_FOUND, "there is no job %s; belfry jobs list shows all", name);
    for (size_t i = 0; i < count; i++)
        bel_job_record_destroy(records[i]);
    bel_free(records);
    bel_free(names);
    return status;
}

bel_status *bel_registry_read(const char *name, bel_job_record **out_record)
{
    char *folder;
    BEL_TRY(bel_registry_folder(name, &folder));
    if (!bel_file_exists(folder)) {
        bel_free(folder);
        return not_found(name);
    }
    bel_job_record *record = bel_xcalloc(1, sizeof *record);
    record->name = bel_xstrdup(name);
    record->folder = folder;
    bel_status *status = read_record(folder, record);
    if (status != NULL) {
        bel_job_record_destroy(record);
        return status;
    }
    *out_record = record;
    return NULL;
}

// --- The list -----------------------------------------------------------------------------------

// Newest first; equal times are ordered by name.
static int compare_records(const void *a, const void *b)
{
    const bel_job_record *x = *(bel_job_record *const *)a, *y = *(bel_job_record *const *)b;
    if (x->submitted_at != y->submitted_at) return x->submitted_at > y->submitted_at ? -1 : 1;
    return strcmp(x->name, y->name);
}

// Skips a job that is removed before it is read, and one that does not exist completely yet.
bel_status *bel_registry_list(bel_job_record ***out_records, size_t *out_count)
{
    char *root = NULL, **names = NULL;
    size_t name_count = 0, count = 0;
    BEL_TRY(find_root(&root));
    bel_status *status = NULL;
    if (bel_file_exists(root)) status = bel_dir_list(root, &names, &name_count);
    bel_free(root);
    if (status != NULL) return status;
    bel_job_record **records = bel_xcalloc(name_count + 1, sizeof *records);
    for (size_t i = 0; i < name_count; i++) {
        status = bel_registry_read(names[i], &records[count]);
        if (status == NULL) {
            count++;
        } else {
            bool begun = bel_status_code(status) == BEL_NOT_FOUND; // its files will follow soon
            if (!begun) {
                bel_log_write(BEL_LOG_WARN, "job %s is passed over: %s", names[i],
                              bel_status_message(status));
            }
            bel_status_destroy(status);
        }
    }
    bel_dir_names_free(names, name_count);
    if (count > 0) qsort(records, count, sizeof *records, compare_records);
    *out_records = records;
    *out_count = count;
    return NULL;
}
