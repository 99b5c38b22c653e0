// Factors of the learning rate and of the weight decay by variable name.
#ifndef BELFRY_OPTIM_MULTIPLIER_H
#define BELFRY_OPTIM_MULTIPLIER_H

#include "belfry/optimizer.h"

// The factor that a list has for a variable: that of the last matching pattern, or 1.
double bel_multiplier_get(const bel_multiplier list[BEL_MAX_MULTIPLIERS], const char *name);

// INVALID_ARGUMENT: bel_optimizer_check refuses a list.
bel_status *bel_multipliers_check(const bel_optimizer *optimizer) BEL_MUST_USE;

// Finds the first pattern that matches no name, and its list, "lr_mult" or "decay_mult". Returns
// NULL if each pattern matches a name.
const char *bel_multipliers_find_idle(const bel_optimizer *optimizer, const char *const *names,
                                      size_t count, const char **out_list);

// INVALID_ARGUMENT: a pattern matches no name. The message has the pattern and the nearest name.
bel_status *bel_multipliers_check_names(const bel_optimizer *optimizer, const char *const *names,
                                        size_t count) BEL_MUST_USE;

// Writes "dense_0/*=0.1,*/bias=0" into `text`, which has room for BEL_MULTIPLIERS_TEXT bytes. With
// 17 digits, parsing restores a checked list bit for bit.
enum { BEL_MULTIPLIERS_TEXT = BEL_MAX_MULTIPLIERS * (BEL_PATTERN_BYTES + 24) };
const char *bel_multipliers_text(const bel_multiplier list[BEL_MAX_MULTIPLIERS], int digits,
                                 char *text);

#endif
