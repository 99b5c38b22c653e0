// One look at a model's folder: which versions to have, and their loads. Only the scanning thread
// changes a model's list, and only under the model's mutex. So it loads without the mutex, and
// requests wait for no load.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/number.h"
#include "base/trace.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folder.h"
#include "serve/models_inner.h"

// A look at a model's folder.
typedef struct scan {
    const bel_models *models;
    bel_model *model;
    bel_served **wanted, **loaded; // the versions to have, the newest first; those that are new
    int wanted_count, loaded_count;
    bel_model_failures failures;
    bool gone, interrupted; // a listed checkpoint was removed before it was open
} scan;

// A failed load waits WAIT times as long as it took, so that a large base that is read in vain does
// not occupy the disk.
enum { NO_NUMBER = -1, LOOKS = 100, WAIT = 10 };

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
static bel_status *open_checkpoint(const scan *s, const char *folder, bel_live **out_live)
{
    const bel_model *model = s->model;
    const bel_live **others =
        bel_xcalloc((size_t)model->count + (size_t)s->loaded_count + 1, sizeof *others);
    int count = 0;
    for (int i = 0; i < model->count; i++)
        others[count++] = model->versions[i]->live;
    for (int i = 0; i < s->loaded_count; i++)
        others[count++] = s->loaded[i]->live;
    bel_status *status = bel_live_open(model->estimator, folder, others, count, out_live);
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

static bel_status *load_folder(const scan *s, const char *folder, int64_t number,
                               bel_served **out_version)
{
    bel_model *model = s->model;
    bel_live *live = NULL;
    int64_t begun = bel_clock_ns();
    bel_status *status = model->estimator != NULL ? open_checkpoint(s, folder, &live) : NULL;
    if (status == NULL) status = load_version(s->models, folder, number, live, out_version);
    if (status == NULL) {
        double seconds = (double)(bel_clock_ns() - begun) * 1e-9;
        bel_trace_end((bel_trace_event){.role = BEL_TRACE_SERVER,
                                        .span = BEL_TRACE_LOAD,
                                        .step = number,
                                        .part = model->index},
                      bel_trace_is_on() ? begun : 0);
        bel_str rows = {0};
        bel_str_puts(&rows, "");
        if (live != NULL) note_rows(model, live, seconds, &rows);
        bel_log_write(BEL_LOG_INFO, "model %s: version %lld is loaded in %.3f s%s", model->name,
                      (long long)number, seconds, rows.text);
        bel_str_deinit(&rows);
    }
    if (status == NULL && live != NULL && number == 0) {
        bel_log_write(
            BEL_LOG_WARN,
            "model %s: version 0 has the initial values: no step of the training is in it",
            model->name);
    }
    bel_live_release(live); // the version has it
    return status;
}

// A checkpoint may have stepped aside for a new one of its step.
static char *folder_of(const bel_model *model, int64_t number)
{
    char name[32];
    if (model->estimator != NULL) return bel_ckpt_find_folder(model->path, number);
    bel_snprintf(name, sizeof name, "%lld", (long long)number);
    return bel_path_join(model->path, name);
}

// Returns the new version, or a failure. A checkpoint that is no longer there is neither: NULL and
// *out_version NULL. The second try finds one that a checkpoint stepped aside for.
static bel_status *load_number(scan *s, int64_t number, bel_served **out_version)
{
    bool is_there = true, is_training = s->model->estimator != NULL;
    bel_status *status = NULL;
    *out_version = NULL;
    for (int tries = 0; tries < (is_training ? 2 : 1) && is_there; tries++) {
        bel_status_ignore(status); // NOT_FOUND, and tried again
        char *folder = folder_of(s->model, number);
        status = load_folder(s, folder, number, out_version);
        bel_free(folder);
        if (bel_status_code(status) != BEL_NOT_FOUND || !is_training) return status;
        folder = folder_of(s->model, number);
        is_there = bel_dir_exists(folder);
        bel_free(folder);
    }
    if (is_there) return status;
    bel_status_ignore(status); // the training removed it meanwhile
    s->gone = true;
    return NULL;
}

// --- Failures -----------------------------------------------------------------------------------

static const bel_model_failure *find_failure(const bel_model_failures *list, int64_t number)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].number == number) return &list->items[i];
    return NULL;
}

void bel_model_failures_deinit(bel_model_failures *list)
{
    for (size_t i = 0; i < list->count; i++)
        bel_free(list->items[i].line);
    bel_free(list->items);
}

// Takes ownership of the line.
static void add_failure(bel_model_failures *list, int64_t number, int64_t again_ns, char *line)
{
    list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
    list->items[list->count++] = (bel_model_failure){number, again_ns, line};
}

// Adds a failure to those of this scan, and logs it unless the scan before had it, too. Takes
// ownership of the status.
static void note_failure(scan *s, int64_t number, int64_t took_ns, bel_status *status)
{
    const bel_model *model = s->model;
    const bel_model_failure *before = find_failure(&model->failures, number);
    char *path = number == NO_NUMBER ? bel_path_join(model->path, "") : folder_of(model, number);
    char *line = bel_strf("%s does not load: %s", path, bel_status_message(status));
    if (before == NULL || strcmp(before->line, line) != 0) {
        bel_log_write(BEL_LOG_WARN, "model %s: %s%s", model->name, line,
                      model->live > 0 ? "; the loaded versions stay" : "");
    }
    bel_free(path);
    add_failure(&s->failures, number, bel_clock_ns() + WAIT * took_ns, line);
    bel_status_ignore(status); // logged
}

// --- Choice -------------------------------------------------------------------------------------

bel_served *bel_model_find_live(const bel_model *model, int64_t number)
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

// Gets a version that is loaded, or loads it. NULL: it does not load, or is no longer there.
static bel_served *get_version(scan *s, int64_t number)
{
    const bel_model_failure *before = find_failure(&s->model->failures, number);
    bel_served *v = bel_model_find_live(s->model, number);
    for (int i = 0; i < s->loaded_count && v == NULL; i++)
        if (s->loaded[i]->number == number) v = s->loaded[i];
    if (v != NULL || find_failure(&s->failures, number) != NULL) return v;
    int64_t begun = bel_clock_ns();
    if (before != NULL && begun < before->again_ns) {
        add_failure(&s->failures, number, before->again_ns, bel_xstrdup(before->line));
        return NULL;
    }
    if (s->model->live > 0 && is_interrupted(s->models)) {
        s->interrupted = true;
        return NULL;
    }
    bel_status *status = load_number(s, number, &v);
    if (status != NULL) {
        note_failure(s, number, bel_clock_ns() - begun, status);
        return NULL;
    }
    if (v != NULL) s->loaded[s->loaded_count++] = v;
    return v;
}

// Adds the live versions of a training to the listed ones. Retention removes checkpoints that are
// loaded, and keeps old ones as bases: no answer may come from these because a newer one does not
// load. Only if the newest one of the list is below the live ones, and loads, did the training go
// back to it.
static void add_live(scan *s, int64_t **numbers, size_t *count)
{
    const bel_model *model = s->model;
    int64_t most = INT64_MAX;
    size_t listed = *count;
    if (listed > 0 && model->live > 0 && **numbers < model->versions[0]->number &&
        get_version(s, **numbers) != NULL)
        most = **numbers;
    int64_t *all = bel_xcalloc(listed + (size_t)model->live + 1, sizeof *all);
    if (listed > 0) memcpy(all, *numbers, listed * sizeof *all);
    for (int i = 0; i < model->live; i++) {
        int64_t number = model->versions[i]->number;
        bool is_listed = false;
        for (size_t n = 0; n < listed; n++)
            is_listed = is_listed || all[n] == number;
        if (!is_listed && number <= most) all[(*count)++] = number;
    }
    qsort(all, *count, sizeof *all, descending);
    bel_free(*numbers);
    *numbers = all;
}

// Gets the newest versions that load, and those with a label.
static void choose_versions(scan *s)
{
    const bel_models *models = s->models;
    bel_model *model = s->model;
    int64_t *numbers = NULL;
    size_t count = 0;
    s->wanted_count = 0;
    s->gone = false;
    bel_status *status = list_numbers(model, &numbers, &count);
    if (status != NULL) note_failure(s, NO_NUMBER, 0, status);
    if (model->estimator != NULL) add_live(s, &numbers, &count);
    for (size_t i = 0; i < count && !s->interrupted; i++) {
        bool is_labelled = has_label(models, model, numbers[i]);
        if (s->wanted_count >= models->config.keep && !is_labelled) continue;
        bel_served *v = get_version(s, numbers[i]);
        if (v != NULL) s->wanted[s->wanted_count++] = v;
        if (s->gone && s->wanted_count == 0 && model->live == 0) break; // a newer one is there
    }
    bel_free(numbers);
}

static size_t count_labels(const bel_labels *labels)
{
    return labels != NULL ? labels->count : 0;
}

void bel_model_scan(const bel_models *models, bel_model *model)
{
    size_t most =
        (size_t)models->config.keep + count_labels(models->labels) + count_labels(models->next);
    scan s = {.models = models,
              .model = model,
              .wanted = bel_xcalloc(most, sizeof(bel_served *)),
              .loaded = bel_xcalloc(most + 1, sizeof(bel_served *))};
    reap(model);
    bool again = true;
    for (int looks = 0; looks < LOOKS && again; looks++) {
        choose_versions(&s);
        again = s.gone && s.wanted_count == 0 && model->live == 0;
    }
    if (s.wanted_count > 0 && !s.interrupted) {
        exchange(model, s.wanted, s.wanted_count);
    } else {
        for (int i = 0; i < s.loaded_count; i++)
            bel_served_destroy(s.loaded[i]);
    }
    bel_free(s.wanted);
    bel_free(s.loaded);
    bel_model_failures_deinit(&model->failures);
    model->failures = s.failures;
}

bel_status *bel_model_load(const bel_models *models, bel_model *model)
{
    bel_served *version;
    BEL_TRY(load_version(models, model->path, -1, NULL, &version));
    exchange(model, &version, 1);
    return NULL;
}
