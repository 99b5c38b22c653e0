// Checks of an optimizer's settings: each by its row (settings.c), and then what two settings say
// together. Defaults are filled in here, so that whoever computes or writes numbers down afterwards
// sees one number and not two. The first rate of a piecewise schedule is the default of
// learning_rate, so that schedule is looked at first.
#include "belfry/optimizer.h"

#include "optim/multiplier.h"
#include "optim/rule.h"
#include "optim/settings.h"

bel_status *bel_optimizer_check(bel_optimizer *optimizer)
{
    if (optimizer->schedule.kind == BEL_SCHEDULE_PIECEWISE) {
        BEL_TRY(bel_pieces_check(&optimizer->schedule)); // whose first rate is a default
        if (optimizer->learning_rate == 0) optimizer->learning_rate = optimizer->schedule.rates[0];
    }
    BEL_TRY(bel_optimizer_check_rows(optimizer));
    const bel_schedule *schedule = &optimizer->schedule;
    bool reaches_zero = schedule->kind == BEL_SCHEDULE_COSINE && schedule->alpha == 0;
    if (optimizer->kind == BEL_OPTIMIZER_FTRL && reaches_zero) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: ftrl divides by the learning rate, which "
                                             "schedule cosine brings to 0: alpha must be above 0");
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
