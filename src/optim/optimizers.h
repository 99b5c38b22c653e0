// The optimizers of a model: the main one, and those of variables of their own.
#ifndef BELFRY_OPTIM_OPTIMIZERS_H
#define BELFRY_OPTIM_OPTIMIZERS_H

#include "optim/settings.h"

typedef struct bel_optimizers {
    bel_optimizer main;
    bel_optimizer_part parts[BEL_MAX_OPTIMIZER_PARTS];
    int part_count;
} bel_optimizers;

// bel_optimizer_check of all; what they share is copied from the main one into the parts.
bel_status *bel_optimizers_check(bel_optimizers *optimizers) BEL_MUST_USE;

// INVALID_ARGUMENT: a pattern of a part matches none of the names, or one of multipliers none of
// those that its optimizer trains; it is named.
bel_status *bel_optimizers_check_names(const bel_optimizers *optimizers, const char *const *names,
                                       size_t count) BEL_MUST_USE;

// That of a variable or a table.
const bel_optimizer *bel_optimizers_find(const bel_optimizers *optimizers, const char *name);

// Arrays as large as the parameters that are kept beside them, at most.
int bel_optimizers_kept(const bel_optimizers *optimizers);

// All learning rates times a factor.
void bel_optimizers_scale(bel_optimizers *optimizers, double factor);

// Sets bel_schedule.scale of all of them; whether one has a scale of its own.
void bel_optimizers_set_scale(bel_optimizers *optimizers, double scale);
bool bel_optimizers_have_scale(const bel_optimizers *optimizers);

// All settings that are not at their default, and back. A part begins with the setting
// BEL_PART_SETTING, whose text is its pattern; what follows is its own. Errors as of
// bel_optimizer_set; INVALID_ARGUMENT: too many parts, or a pattern that is too long.
#define BEL_PART_SETTING "variables"
void bel_optimizers_list(const bel_optimizers *optimizers, bel_setting_take *take, void *context);
bel_status *bel_optimizers_set(bel_optimizers *optimizers, const char *name,
                               const char *text) BEL_MUST_USE;

// As a checkpoint says it: bel_optimizer_describe, names of a part's settings behind its pattern.
void bel_optimizers_describe(const bel_optimizers *optimizers, bel_setting_take *take,
                             void *context);

#endif
