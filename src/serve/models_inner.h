// Private layout of the served models, for models.c and models_scan.c.
#ifndef BELFRY_SERVE_MODELS_INNER_H
#define BELFRY_SERVE_MODELS_INNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/labels.h"
#include "serve/models.h"

// A version that does not load; number -1: the folder that cannot be listed.
typedef struct bel_model_failure {
    int64_t number, again_ns; // not tried again before that time
    char *line;
} bel_model_failure;

typedef struct bel_model_failures {
    bel_model_failure *items;
    size_t count, capacity;
} bel_model_failures;

struct bel_model {
    char *name, *path;
    int index;
    bool watched;
    const bel_estimator *estimator; // versions are the checkpoints of its training; NULL: exports
    pthread_mutex_t mutex;
    bel_served **versions; // the newest first; retired ones, which some request may hold, last
    int count, live;
    bel_model_deltas deltas;     // under the mutex
    bel_model_failures failures; // those of the last scan
    atomic_bool has_shares;      // the labels have some for this model
    atomic_ullong turn;          // requests without an id that were divided
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

void bel_model_failures_deinit(bel_model_failures *list);

// Looks for new versions of a watched model, and exchanges those to have for the live ones.
void bel_model_scan(const bel_models *models, bel_model *model);

// Loads the only version of a model that is not watched.
bel_status *bel_model_load(const bel_models *models, bel_model *model) BEL_MUST_USE;

bel_served *bel_model_find_live(const bel_model *model, int64_t number); // NULL: absent

#endif
