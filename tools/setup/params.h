// Parameters of a model function: names and texts.
#ifndef BELFRY_TOOLS_SETUP_PARAMS_H
#define BELFRY_TOOLS_SETUP_PARAMS_H

#include "base/arena.h"
#include "base/options.h"
#include "belfry/package.h"
#include "checkpoint/checkpoint.h"

// Zero-initialize but for `arena`, which holds the texts. Thread-compatible.
typedef struct bel_params {
    bel_arena *arena;
    bel_param *items; // free with bel_params_deinit
    size_t count, capacity;
} bel_params;

void bel_params_set(bel_params *params, const char *name, const char *value); // adds or replaces
const char *bel_params_get(const bel_params *params, const char *name);       // NULL: absent
void bel_params_deinit(bel_params *params);

// Sets the parameters of a checkpoint's training.
void bel_params_from_checkpoint(bel_params *params, const bel_ckpt_reader *reader);

// Sets the flags of model and optimizer, and --feature_scale: given flags, and with `defaults` also
// those not set yet. Also sets --length_column and the flags of ids, if given, all flags that the
// package has added, and then --param. INVALID_ARGUMENT: a --param that has a separate flag.
bel_status *bel_params_from_flags(bel_params *params, const bel_options *options, bool defaults,
                                  const bel_package *package) BEL_MUST_USE;

#endif
