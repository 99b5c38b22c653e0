// Formulas of schedules: arithmetic in one variable, given as text, so that it travels unchanged to
// every process and into checkpoints. Functions are those of base/real.h: the same bits on every
// machine.
#ifndef BELFRY_OPTIM_FORMULA_H
#define BELFRY_OPTIM_FORMULA_H

#include "belfry/optimizer.h"

// Checks the syntax. INVALID_ARGUMENT: the text is no formula (belfry/optimizer.h,
// BEL_SCHEDULE_FORMULA). The message has the expected symbol and the rest of the text from the
// error on.
bel_status *bel_formula_check(const char *text) BEL_MUST_USE;

// Computes the value at a step of a checked text.
double bel_formula_value(const char *text, int64_t step);

#endif
