// Formulas of schedules: arithmetic in one variable, given as text so that it travels to every
// process and into checkpoints as it stands. Functions are those of base/real.h: the same bits on
// every machine.
#ifndef BELFRY_OPTIM_FORMULA_H
#define BELFRY_OPTIM_FORMULA_H

#include "belfry/optimizer.h"

// INVALID_ARGUMENT: the text is no formula (belfry/optimizer.h, BEL_SCHEDULE_FORMULA); the message
// has what was expected, and from where on the text does not fit.
bel_status *bel_formula_check(const char *text) BEL_MUST_USE;

// The value at a step of a text that has been checked.
double bel_formula_value(const char *text, int64_t step);

#endif
