// Models by name, and the versions that they hold. A request takes a version under the model's
// mutex and counts as its user. The list of versions changes only under that mutex, and only the
// scanning thread changes it (models_scan.c): it frees a version that was exchanged after its last
// request.
#include "serve/models.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "serve/models_inner.h"

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

// --- Models -------------------------------------------------------------------------------------

static void model_destroy(bel_model *model)
{
    for (int i = 0; i < model->count; i++)
        bel_served_destroy(model->versions[i]);
    pthread_mutex_destroy(&model->mutex);
    bel_free(model->versions);
    bel_model_failures_deinit(&model->failures);
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
        bel_model_scan(models, model);
        if (model->live > 0) return NULL;
        bel_str reasons = {0};
        bel_str_puts(&reasons, "");
        for (size_t i = 0; i < model->failures.count; i++)
            bel_str_printf(&reasons, "; %s", model->failures.items[i].line);
        bel_status *status =
            BEL_ERR(BEL_NOT_FOUND, "%s: expected %s%s", model->path,
                    model->estimator != NULL
                        ? "a checkpoint that loads"
                        : "a model.onnx, or folders with numbers that have one, or checkpoints",
                    reasons.text);
        bel_str_deinit(&reasons);
        return status;
    }
    return bel_model_load(models, model);
}

void bel_models_scan(bel_models *models)
{
    for (int i = 0; i < models->count; i++)
        if (models->items[i]->watched) bel_model_scan(models, models->items[i]);
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
    for (int m = 0; m < models->count; m++)
        atomic_store(&models->items[m]->has_shares,
                     bel_labels_choose(labels, models->items[m]->name, 0) != NULL);
    bel_models_scan(models); // versions that only the labels before had are retired
    for (size_t i = 0; i < labels->count; i++) {
        const bel_label *l = &labels->items[i];
        const bel_model *model = bel_models_find(models, l->model, strlen(l->model));
        if (l->number >= 0 && bel_model_find_live(model, l->number) == NULL)
            bel_log_write(BEL_LOG_WARN, "%s:%d: model %s has no version %lld now%s", path, l->line,
                          l->model, (long long)l->number,
                          l->share > 0 ? "; the newest version answers its share" : "");
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

bool bel_model_has_shares(const bel_model *model)
{
    return atomic_load_explicit(&model->has_shares, memory_order_relaxed);
}

// Multiples of the golden ratio are divided evenly among any shares, also a few of them.
int64_t bel_models_share(bel_models *models, bel_model *model, const char *id)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    size_t length = id != NULL ? strlen(id) : 0;
    uint64_t hash = length > 0
                        ? bel_hash64_more(bel_hash64(model->name, strlen(model->name)), id, length)
                        : golden * atomic_fetch_add(&model->turn, 1);
    int part = (int)((hash >> 32) * BEL_LABEL_SHARES >> 32);
    pthread_mutex_lock(&models->mutex);
    const bel_label *label = bel_labels_choose(models->labels, model->name, part);
    int64_t number = label != NULL ? label->number : -1;
    pthread_mutex_unlock(&models->mutex);
    return number;
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
    bel_served *v = number < 0 ? model->versions[0] : bel_model_find_live(model, number);
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
