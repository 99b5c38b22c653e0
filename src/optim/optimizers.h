// Optimizers of a model: the main one, and separate ones for some variables (parts).
#ifndef BELFRY_OPTIM_OPTIMIZERS_H
#define BELFRY_OPTIM_OPTIMIZERS_H

#include "optim/settings.h"

// Another optimizer for the variables whose names match a pattern.
typedef struct bel_optimizer_part {
    char variables[BEL_PATTERN_BYTES]; // with its closing 0
    bel_optimizer optimizer;
} bel_optimizer_part;

typedef struct bel_optimizers {
    bel_optimizer main;
    bel_optimizer_part parts[BEL_MAX_OPTIMIZER_PARTS];
    int part_count;
} bel_optimizers;

// Checks all with bel_optimizer_check. Copies the shared settings from the main one into the parts.
bel_status *bel_optimizers_check(bel_optimizers *optimizers) BEL_MUST_USE;

// Adds a part. INVALID_ARGUMENT: too many parts, or a pattern that is empty or too long.
bel_status *bel_optimizers_add(bel_optimizers *optimizers, const char *variables,
                               const bel_optimizer *optimizer) BEL_MUST_USE;

// INVALID_ARGUMENT: a part's pattern matches no name, or a pattern of multipliers matches no name
// that its optimizer trains. The message has the pattern.
bel_status *bel_optimizers_check_names(const bel_optimizers *optimizers, const char *const *names,
                                       size_t count) BEL_MUST_USE;

// The optimizer of a variable or a table.
const bel_optimizer *bel_optimizers_find(const bel_optimizers *optimizers, const char *name);

// Upper bound of the number of parameter-sized arrays that are kept with the parameters.
int bel_optimizers_kept(const bel_optimizers *optimizers);

// Multiplies all learning rates by a factor.
void bel_optimizers_scale(bel_optimizers *optimizers, double factor);

// Sets bel_schedule.scale of all optimizers.
void bel_optimizers_set_scale(bel_optimizers *optimizers, double scale);

// Whether one of them has a scale.
bool bel_optimizers_have_scale(const bel_optimizers *optimizers);

// A part begins with this setting, whose text is its pattern. The settings after it belong to the
// part.
#define BEL_PART_SETTING "variables"

// Lists all settings that are not at their default.
void bel_optimizers_list(const bel_optimizers *optimizers, bel_setting_take *take, void *context);

// Sets one setting of such a list. Errors are those of bel_optimizer_set; INVALID_ARGUMENT also for
// too many parts or a pattern that is too long.
bel_status *bel_optimizers_set(bel_optimizers *optimizers, const char *name,
                               const char *text) BEL_MUST_USE;

// Lists the settings as in a checkpoint, with bel_optimizer_describe. Names of a part's settings
// follow its pattern.
void bel_optimizers_describe(const bel_optimizers *optimizers, bel_setting_take *take,
                             void *context);

#endif
