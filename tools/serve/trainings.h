// Trainings whose checkpoints are served: an estimator for each, as its newest checkpoint says.
#ifndef BELFRY_TOOLS_SERVE_TRAININGS_H
#define BELFRY_TOOLS_SERVE_TRAININGS_H

#include "base/options.h"
#include "setup/setup.h"

// Zero-initialize.
typedef struct bel_trainings {
    bel_setup **items;
    size_t count, capacity;
    bool uses_package; // one of them has the model of --package
} bel_trainings;

// Returns true if the folder holds checkpoints and no exported model.
bool bel_trainings_is_one(const char *path);

// Adds the model folder of a training. `options` are those of the verb, of which --package counts
// if the training's model has its name. Errors of bel_package_open and bel_setup_for_reading.
bel_status *bel_trainings_add(bel_trainings *trainings, const bel_options *options,
                              const char *path, const bel_estimator **out_estimator) BEL_MUST_USE;
void bel_trainings_deinit(bel_trainings *trainings);

#endif
