// The parameters that a model function sees: names and texts.
#ifndef BELFRY_TOOLS_PARAMS_H
#define BELFRY_TOOLS_PARAMS_H

#include "base/arena.h"
#include "base/options.h"
#include "belfry/package.h"
#include "checkpoint/checkpoint.h"

// Zero-initialise but for `arena`, which holds the texts. Thread-compatible.
typedef struct bel_params {
    bel_arena *arena;
    bel_param *items; // free with bel_params_deinit
    size_t count, capacity;
} bel_params;

void bel_params_set(bel_params *params, const char *name, const char *value); // adds or replaces
const char *bel_params_get(const bel_params *params, const char *name);       // NULL: not there
void bel_params_deinit(bel_params *params);

// Sets those that a checkpoint's training was given.
void bel_params_from_checkpoint(bel_params *params, const bel_ckpt_reader *reader);

// Sets the flags of model and optimizer, and --feature_scale: those that are given, and with
// `defaults` also those that are not there yet; --length_column and those of ids, where they are
// given; all flags that the package has added. Then --param. INVALID_ARGUMENT: a --param that has a
// flag of its own.
bel_status *bel_params_from_flags(bel_params *params, const bel_options *options, bool defaults,
                                  const bel_package *package) BEL_MUST_USE;

#endif
