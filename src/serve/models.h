// The served models and their versions.
//
// A path is a version, or a folder of versions: folders whose names are numbers, as `belfry export`
// and exporters write them; or the model folder of a training, whose checkpoints are the versions.
// bel_models_scan looks at the latter: it loads and warms new versions
// beside the old ones, and then retires the old ones. A request holds the version that it began
// with until it ends; a retired version is destroyed by a later scan, when no request holds it.
//
// Thread rule: one thread adds, scans, reads labels and destroys. Any thread does the rest.
#ifndef BELFRY_SERVE_MODELS_H
#define BELFRY_SERVE_MODELS_H

#include "base/str.h"
#include "serve/served.h"

typedef struct bel_models bel_models;
typedef struct bel_model bel_model;

typedef struct bel_models_config {
    int slot_count; // runs at the same time
    int max_batch;  // most examples of a run of several requests
    int keep;       // most versions of a model, the newest
    // Asked before a version is loaded: true ends the scan. NULL: nothing does.
    bool (*is_interrupted)(void);
} bel_models_config;

bel_models *bel_models_create(const bel_models_config *config);
void bel_models_destroy(bel_models *models); // no request holds a version

// Adds a model and loads it. `name` NULL: the last part of the path, without ".onnx". NOT_FOUND:
// the path has neither a model nor a version that loads. INVALID_ARGUMENT: the name is taken, or
// has other characters than letters, digits, "_", "-" and ".".
bel_status *bel_models_add(bel_models *models, const char *path, const char *name) BEL_MUST_USE;

// The same for the model folder of a training. Its estimator must outlive the models.
bel_status *bel_models_add_training(bel_models *models, const bel_estimator *estimator,
                                    const char *path, const char *name) BEL_MUST_USE;

// Looks for new versions of all models. A version that does not load is logged once, and tried
// again by a later scan. If the folder has no version that loads, the old ones stay. Those of a
// training also stay if only older checkpoints load, unless the newest checkpoint is among these.
void bel_models_scan(bel_models *models);

// Reads the labels of versions from a file (serve/labels.h), scans, and then exchanges them for
// those before. A version with a label stays loaded beside the newest; one that is not there is
// logged. INVALID_ARGUMENT: a model is unknown, or the file has a wrong line.
bel_status *bel_models_read_labels(bel_models *models, const char *path) BEL_MUST_USE;

// Returns false if the model has no such label. `label` need not end with a zero byte; number -1:
// the newest. Any thread.
bool bel_models_find_label(bel_models *models, const bel_model *model, const char *label,
                           size_t length, int64_t *out_number);

// True if labels of the model divide the requests that name no version.
bool bel_model_has_shares(const bel_model *model);

// Chooses the version of such a request; -1: the newest. The label depends only on the model's name
// and on `id`, the request's. Requests without one (NULL, or empty) are divided in turns. Any
// thread.
int64_t bel_models_share(bel_models *models, bel_model *model, const char *id);

int bel_models_count(const bel_models *models);
bel_model *bel_models_at(const bel_models *models, int index);
// `name` need not end with a zero byte. NULL: no such model.
bel_model *bel_models_find(const bel_models *models, const char *name, size_t length);

const char *bel_model_name(const bel_model *model);
int bel_model_index(const bel_model *model); // from 0 on

// Takes a version, the newest if `number` is below 0; NULL: there is no such version. The caller
// returns it with bel_model_release.
bel_served *bel_model_acquire(bel_model *model, int64_t number);
void bel_model_release(bel_model *model, bel_served *version);

// Copies the numbers of the loaded versions, the newest first. Free with bel_free.
int64_t *bel_model_versions(bel_model *model, int *out_count);

// Deltas that were loaded without reading their base: their number, rows and removed keys, and the
// seconds that this took. Any thread.
typedef struct bel_model_deltas {
    int64_t count, rows, removed;
    double seconds;
} bel_model_deltas;
bel_model_deltas bel_model_count_deltas(bel_model *model);

#endif
