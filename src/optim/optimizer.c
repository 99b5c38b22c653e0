// Checks of an optimizer's settings: each by its row (settings.c), and then combinations of two.
// Defaults are filled in here, so that later code computes and writes one number and not two. The
// first rate of a piecewise schedule is the default of learning_rate, so that schedule is checked
// first.
#include "belfry/optimizer.h"

#include <math.h>
#include <string.h>

#include "optim/formula.h"
#include "optim/multiplier.h"
#include "optim/rule.h"
#include "optim/settings.h"

// Checks a formula at its first steps and at late ones, where most faults show.
static bel_status *check_formula(const bel_optimizer *optimizer)
{
    const char *text = optimizer->schedule.formula;
    if (memchr(text, '\0', BEL_FORMULA_BYTES) == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: schedule_formula must be shorter than %d bytes",
                       BEL_FORMULA_BYTES);
    }
    if (text[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: schedule formula needs schedule_formula "
                                             "(--schedule_formula), and that is empty");
    }
    BEL_TRY_CTX(bel_formula_check(text), "optimizer: schedule_formula");
    bool divides = optimizer->kind == BEL_OPTIMIZER_FTRL;
    for (int64_t step = 0; step <= 10000000; step = step == 0 ? 1 : step * 10) {
        double factor = bel_formula_value(text, step);
        if (isfinite(factor) && (factor > 0 || !divides)) continue;
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "optimizer: schedule_formula \"%s\" must be a finite number%s, but is %g at step %lld",
            text, divides ? " above 0 with ftrl" : "", factor, (long long)step);
    }
    return NULL;
}

bel_status *bel_optimizer_check(bel_optimizer *optimizer)
{
    if (optimizer->schedule.kind == BEL_SCHEDULE_PIECEWISE) {
        BEL_TRY(bel_pieces_check(&optimizer->schedule)); // its first rate is a default
        if (optimizer->learning_rate == 0) optimizer->learning_rate = optimizer->schedule.rates[0];
    }
    BEL_TRY(bel_optimizer_check_rows(optimizer));
    const bel_schedule *schedule = &optimizer->schedule;
    if (schedule->kind == BEL_SCHEDULE_EXPONENTIAL && schedule->decay_rate > 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: decay_rate must be in (0, 1] with schedule exponential, got %g",
                       schedule->decay_rate);
    }
    if (schedule->kind == BEL_SCHEDULE_FORMULA) BEL_TRY(check_formula(optimizer));
    double t_mul = schedule->t_mul;
    if (schedule->kind == BEL_SCHEDULE_COSINE_RESTARTS && t_mul != 1 && t_mul < 1.01) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: t_mul must be 1, or at least 1.01, got %g",
                       t_mul);
    }
    bool falls_to_alpha = schedule->kind == BEL_SCHEDULE_COSINE ||
                          schedule->kind == BEL_SCHEDULE_POLYNOMIAL ||
                          schedule->kind == BEL_SCHEDULE_COSINE_RESTARTS;
    if (optimizer->kind == BEL_OPTIMIZER_FTRL && falls_to_alpha && schedule->alpha == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: ftrl divides by the learning rate, which this schedule brings "
                       "to 0: alpha must be above 0");
    }
    if (optimizer->clip_norm > 0 && optimizer->clip_global_norm > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: clip_norm and clip_global_norm exclude each other; set one");
    }
    if (bel_rule_get(optimizer)->trusts &&
        (optimizer->clip_norm > 0 || optimizer->clip_global_norm > 0)) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "optimizer: %s takes norms itself, so clip_norm and clip_global_norm must be "
            "0; clip_value may be set",
            bel_rule_get(optimizer)->name);
    }
    return bel_multipliers_check(optimizer);
}
