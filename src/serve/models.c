// A model's list of versions changes only under its mutex, and only the scanning thread changes it.
// So that thread loads without the mutex, and requests wait for no load.
#include "serve/models.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "checkpoint/checkpoint.h"
#include "serve/labels.h"

struct bel_model {
    char *name, *path;
    int index;
    bool watched;
    const bel_estimator *estimator; // versions are the checkpoints of its training; NULL: exports
    pthread_mutex_t mutex;
    bel_served **versions; // the newest first; retired ones, which some request may hold, last
    int count, live;
    bel_model_deltas deltas; // under the mutex
    char *failures;          // NULL: the last scan had no failures
};

struct bel_models {
    bel_model **items;
    int count;
    size_t capacity;
    bel_models_config config;
    pthread_mutex_t mutex;
    bel_labels *labels;     // under the mutex; NULL: none
    const bel_labels *next; // labels whose versions are loaded now; NULL: none
};

// --- Names --------------------------------------------------------------------------------------

static char *default_name(const char *path)
{
    static const char suffix[] = ".onnx";
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    size_t length = end - begin, tail = sizeof suffix - 1;
    if (length > tail && memcmp(path + end - tail, suffix, tail) == 0) length -= tail;
    return bel_xstrndup(path + begin, length);
}

static bel_status *check_name(const bel_models *models, const char *name)
{
    static const char accepted[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (name[0] == '\0' || name[strspn(name, accepted)] != '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a model's name has letters, digits, _, - and ., got \"%s\"; hint: --name",
                       name);
    }
    if (bel_models_find(models, name, strlen(name)) == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "two models have the name \"%s\"; hint: --name", name);
}

// --- Versions -----------------------------------------------------------------------------------

static int descending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

// Lists the numbered folders. Free with bel_free.
static bel_status *list_folders(const char *path, int64_t **out_numbers, size_t *out_count)
{
    char **names;
    size_t count, found = 0;
    BEL_TRY(bel_dir_list(path, &names, &count));
    int64_t *numbers = bel_xcalloc(count + 1, sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        int64_t number;
        if (!bel_parse_i64(names[i], strlen(names[i]), &number) || number < 0) continue;
        char *folder = bel_path_join(path, names[i]);
        // "007" is no version: a number has one name.
        bool has_zeros = names[i][0] == '0' && names[i][1] != '\0';
        if (!has_zeros && bel_dir_exists(folder)) numbers[found++] = number;
        bel_free(folder);
    }
    bel_dir_names_free(names, count);
    *out_numbers = numbers;
    *out_count = found;
    return NULL;
}

// Lists the versions in the folder, the largest number first. Free with bel_free.
static bel_status *list_numbers(const bel_model *model, int64_t **out_numbers, size_t *out_count)
{
    BEL_TRY(model->estimator != NULL ? bel_ckpt_list(model->path, out_numbers, out_count)
                                     : list_folders(model->path, out_numbers, out_count));
    if (*out_count > 0) qsort(*out_numbers, *out_count, sizeof **out_numbers, descending);
    return NULL;
}

static bel_status *load_version(const bel_models *models, const char *path, int64_t number,
                                bel_live *live, bel_served **out_version)
{
    const bel_served_options options = {.number = number,
                                        .slot_count = models->config.slot_count,
                                        .max_batch = models->config.max_batch,
                                        .live = live};
    return bel_served_load(path, &options, out_version);
}

// Opens a checkpoint. Every loaded version may have its base; only this thread changes their list.
static bel_status *open_checkpoint(const bel_model *model, const char *folder, bel_live **out_live)
{
    const bel_live **others = bel_xcalloc((size_t)model->count + 1, sizeof *others);
    for (int i = 0; i < model->count; i++)
        others[i] = model->versions[i]->live;
    bel_status *status = bel_live_open(model->estimator, folder, others, model->count, out_live);
    bel_free(others);
    return status;
}

// Appends the rows of a checkpoint that was loaded, and counts them if they are a delta's.
static void note_rows(bel_model *model, const bel_live *live, double seconds, bel_str *line)
{
    const bel_live_facts facts = bel_live_look(live);
    if (facts.base_step == facts.step) {
        if (facts.table_bytes > 0)
            bel_str_printf(line, ": a full checkpoint, %.1f MB of rows",
                           (double)facts.table_bytes * 1e-6);
        return;
    }
    bel_str_printf(line, ": %lld rows and %lld removed keys over version %lld%s",
                   (long long)facts.rows, (long long)facts.removed, (long long)facts.base_step,
                   facts.shares ? "" : ", which was read, too");
    if (!facts.shares) return;
    pthread_mutex_lock(&model->mutex);
    model->deltas.count++;
    model->deltas.rows += facts.rows;
    model->deltas.removed += facts.removed;
    model->deltas.seconds += seconds;
    pthread_mutex_unlock(&model->mutex);
}

static bel_status *load_number(const bel_models *models, bel_model *model, const char *name,
                               int64_t number, bel_served **out_version)
{
    bel_live *live = NULL;
    char *folder = bel_path_join(model->path, name);
    int64_t begun = bel_clock_ns();
    bel_status *status = model->estimator != NULL ? open_checkpoint(model, folder, &live) : NULL;
    if (status == NULL) status = load_version(models, folder, number, live, out_version);
    bel_free(folder);
    if (status == NULL) {
        double seconds = (double)(bel_clock_ns() - begun) * 1e-9;
        bel_str rows = {0};
        bel_str_puts(&rows, "");
        if (live != NULL) note_rows(model, live, seconds, &rows);
        bel_log_write(BEL_LOG_INFO, "model %s: version %lld is loaded in %.3f s%s", model->name,
                      (long long)number, seconds, rows.text);
        bel_str_deinit(&rows);
    }
    bel_live_release(live); // the version has it
    return status;
}

// Adds a failure to those of this scan, and logs it unless the scan before had it, too. Takes
// ownership of the status.
static void note_failure(const bel_model *model, const char *what, bel_status *failure,
                         bel_str *failures)
{
    char *line =
        bel_strf("%s/%s does not load: %s", model->path, what, bel_status_message(failure));
    bool is_new = model->failures == NULL || strstr(model->failures, line) == NULL;
    if (is_new) {
        bel_log_write(BEL_LOG_WARN, "model %s: %s%s", model->name, line,
                      model->live > 0 ? "; the loaded versions stay" : "");
    }
    bel_str_printf(failures, "; %s", line);
    bel_free(line);
    bel_status_ignore(failure); // logged
}

static bel_served *find_live(const bel_model *model, int64_t number)
{
    for (int i = 0; i < model->live; i++)
        if (model->versions[i]->number == number) return model->versions[i];
    return NULL;
}

// Makes `wanted` the live versions and retires the others.
static void exchange(bel_model *model, bel_served **wanted, int wanted_count)
{
    pthread_mutex_lock(&model->mutex);
    size_t most = (size_t)model->count + (size_t)wanted_count;
    bel_served **all = bel_xcalloc(most + 1, sizeof *all);
    memcpy(all, wanted, (size_t)wanted_count * sizeof *all);
    int count = wanted_count;
    for (int i = 0; i < model->count; i++) {
        bel_served *v = model->versions[i];
        bool stays = false;
        for (int w = 0; w < wanted_count; w++)
            stays = stays || wanted[w] == v;
        if (stays) continue;
        all[count++] = v;
    }
    bel_served **before = model->versions;
    model->versions = all;
    model->live = wanted_count;
    model->count = count;
    pthread_mutex_unlock(&model->mutex);
    bel_free(before);
}

// Destroys retired versions that no request holds.
static void reap(bel_model *model)
{
    for (int i = model->live; i < model->count;) {
        bel_served *v = model->versions[i];
        pthread_mutex_lock(&model->mutex);
        bool free = v->users == 0;
        if (free) model->versions[i] = model->versions[--model->count];
        pthread_mutex_unlock(&model->mutex);
        if (!free) {
            i++;
            continue;
        }
        bel_log_write(BEL_LOG_INFO, "model %s: version %lld is unloaded", model->name,
                      (long long)v->number);
        bel_served_destroy(v);
    }
}

static bool is_interrupted(const bel_models *models)
{
    return models->config.is_interrupted != NULL && models->config.is_interrupted();
}

static bool has_label(const bel_models *models, const bel_model *model, int64_t number)
{
    return bel_labels_have(models->labels, model->name, number) ||
           bel_labels_have(models->next, model->name, number);
}

static bool is_there(const bel_model *model, const char *name)
{
    char *folder = bel_path_join(model->path, name);
    bool there = bel_dir_exists(folder);
    bel_free(folder);
    return there;
}

// Gets the newest versions that load, and those with a label. Returns -1 if it was interrupted.
static int choose_versions(const bel_models *models, bel_model *model, bel_served **out_wanted,
                           bel_str *failures)
{
    int64_t *numbers = NULL;
    size_t count = 0;
    int wanted = 0;
    bel_status *status = list_numbers(model, &numbers, &count);
    if (status != NULL) note_failure(model, "", status, failures);
    for (size_t i = 0; i < count; i++) {
        bool is_labelled = has_label(models, model, numbers[i]);
        if (wanted >= models->config.keep && !is_labelled) continue;
        char name[32];
        bel_snprintf(name, sizeof name, model->estimator != NULL ? "ckpt-%08lld" : "%lld",
                     (long long)numbers[i]);
        bel_served *v = find_live(model, numbers[i]);
        if (v == NULL && model->live > 0 && is_interrupted(models)) {
            wanted = -1;
            break;
        }
        status = v == NULL ? load_number(models, model, name, numbers[i], &v) : NULL;
        bool gone = bel_status_code(status) == BEL_NOT_FOUND && model->estimator != NULL &&
                    !is_there(model, name);
        if (gone) {
            bel_status_ignore(status); // the training removed it meanwhile
            continue;
        }
        if (status != NULL) note_failure(model, name, status, failures);
        if (status == NULL) out_wanted[wanted++] = v;
    }
    bel_free(numbers);
    return wanted;
}

static size_t count_labels(const bel_labels *labels)
{
    return labels != NULL ? labels->count : 0;
}

static void scan_model(const bel_models *models, bel_model *model)
{
    bel_str failures = {0};
    size_t most =
        (size_t)models->config.keep + count_labels(models->labels) + count_labels(models->next);
    bel_served **wanted = bel_xcalloc(most, sizeof(bel_served *));
    reap(model);
    int count = choose_versions(models, model, wanted, &failures);
    if (count > 0) exchange(model, wanted, count);
    bel_free(wanted);
    bel_free(model->failures);
    model->failures = failures.text;
}

void bel_models_scan(bel_models *models)
{
    for (int i = 0; i < models->count; i++)
        if (models->items[i]->watched) scan_model(models, models->items[i]);
}

// --- Models -------------------------------------------------------------------------------------

static void model_destroy(bel_model *model)
{
    for (int i = 0; i < model->count; i++)
        bel_served_destroy(model->versions[i]);
    pthread_mutex_destroy(&model->mutex);
    bel_free(model->versions);
    bel_free(model->failures);
    bel_free(model->name);
    bel_free(model->path);
    bel_free(model);
}

static bel_status *load_first(const bel_models *models, bel_model *model)
{
    char *file = bel_path_join(model->path, "model.onnx");
    model->watched =
        model->estimator != NULL || (bel_dir_exists(model->path) && !bel_file_exists(file));
    bel_free(file);
    if (model->watched) {
        scan_model(models, model);
        if (model->live > 0) return NULL;
        return BEL_ERR(BEL_NOT_FOUND, "%s: expected %s%s", model->path,
                       model->estimator != NULL
                           ? "a checkpoint that loads"
                           : "a model.onnx, or folders with numbers that have one, or checkpoints",
                       model->failures != NULL ? model->failures : "");
    }
    bel_served *version;
    BEL_TRY(load_version(models, model->path, -1, NULL, &version));
    exchange(model, &version, 1);
    return NULL;
}

static bel_status *models_add(bel_models *models, const bel_estimator *estimator, const char *path,
                              const char *name)
{
    char *own = name != NULL ? bel_xstrdup(name) : default_name(path);
    bel_status *status = check_name(models, own);
    if (status != NULL) {
        bel_free(own);
        return status;
    }
    bel_model *model = bel_xcalloc(1, sizeof *model);
    model->name = own;
    model->path = bel_xstrdup(path);
    model->index = models->count;
    model->estimator = estimator;
    pthread_mutex_init(&model->mutex, NULL);
    status = load_first(models, model);
    if (status != NULL) {
        model_destroy(model);
        return status;
    }
    models->items =
        bel_xgrow(models->items, &models->capacity, (size_t)models->count + 1, sizeof model);
    models->items[models->count++] = model;
    return NULL;
}

bel_status *bel_models_add(bel_models *models, const char *path, const char *name)
{
    return models_add(models, NULL, path, name);
}

bel_status *bel_models_add_training(bel_models *models, const bel_estimator *estimator,
                                    const char *path, const char *name)
{
    return models_add(models, estimator, path, name);
}

bel_models *bel_models_create(const bel_models_config *config)
{
    bel_models *models = bel_xcalloc(1, sizeof *models);
    models->config = *config;
    pthread_mutex_init(&models->mutex, NULL);
    return models;
}

void bel_models_destroy(bel_models *models)
{
    if (models == NULL) return;
    for (int i = 0; i < models->count; i++)
        model_destroy(models->items[i]);
    bel_labels_destroy(models->labels);
    pthread_mutex_destroy(&models->mutex);
    bel_free(models->items);
    bel_free(models);
}

bel_status *bel_models_read_labels(bel_models *models, const char *path)
{
    bel_labels *labels;
    BEL_TRY(bel_labels_read(path, &labels));
    for (size_t i = 0; i < labels->count; i++) {
        const bel_label *l = &labels->items[i];
        if (bel_models_find(models, l->model, strlen(l->model)) != NULL) continue;
        bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "%s:%d: there is no model \"%s\"", path,
                                     l->line, l->model);
        bel_labels_destroy(labels);
        return status;
    }
    models->next = labels; // requests get the labels when their versions are loaded
    bel_models_scan(models);
    models->next = NULL;
    pthread_mutex_lock(&models->mutex);
    bel_labels *before = models->labels;
    models->labels = labels;
    pthread_mutex_unlock(&models->mutex);
    bel_labels_destroy(before);
    bel_models_scan(models); // versions that only the labels before had are retired
    for (size_t i = 0; i < labels->count; i++) {
        const bel_label *l = &labels->items[i];
        const bel_model *model = bel_models_find(models, l->model, strlen(l->model));
        if (l->number >= 0 && find_live(model, l->number) == NULL)
            bel_log_write(BEL_LOG_WARN, "%s:%d: model %s has no version %lld now", path, l->line,
                          l->model, (long long)l->number);
    }
    return NULL;
}

bool bel_models_find_label(bel_models *models, const bel_model *model, const char *label,
                           size_t length, int64_t *out_number)
{
    pthread_mutex_lock(&models->mutex);
    const bel_label *found = bel_labels_find(models->labels, model->name, label, length);
    if (found != NULL) *out_number = found->number;
    pthread_mutex_unlock(&models->mutex);
    return found != NULL;
}

int bel_models_count(const bel_models *models)
{
    return models->count;
}

bel_model *bel_models_at(const bel_models *models, int index)
{
    return models->items[index];
}

bel_model *bel_models_find(const bel_models *models, const char *name, size_t length)
{
    for (int i = 0; i < models->count; i++) {
        bel_model *model = models->items[i];
        if (strlen(model->name) == length && memcmp(model->name, name, length) == 0) return model;
    }
    return NULL;
}

const char *bel_model_name(const bel_model *model)
{
    return model->name;
}

int bel_model_index(const bel_model *model)
{
    return model->index;
}

bel_served *bel_model_acquire(bel_model *model, int64_t number)
{
    pthread_mutex_lock(&model->mutex);
    bel_served *v = number < 0 ? model->versions[0] : find_live(model, number);
    if (v != NULL) v->users++;
    pthread_mutex_unlock(&model->mutex);
    return v;
}

void bel_model_release(bel_model *model, bel_served *version)
{
    pthread_mutex_lock(&model->mutex);
    version->users--;
    pthread_mutex_unlock(&model->mutex);
}

int64_t *bel_model_versions(bel_model *model, int *out_count)
{
    pthread_mutex_lock(&model->mutex);
    int64_t *numbers = bel_xcalloc((size_t)model->live + 1, sizeof *numbers);
    *out_count = model->live;
    for (int i = 0; i < model->live; i++)
        numbers[i] = model->versions[i]->number;
    pthread_mutex_unlock(&model->mutex);
    return numbers;
}

bel_model_deltas bel_model_count_deltas(bel_model *model)
{
    pthread_mutex_lock(&model->mutex);
    const bel_model_deltas deltas = model->deltas;
    pthread_mutex_unlock(&model->mutex);
    return deltas;
}
