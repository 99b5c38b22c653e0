// Checks of an optimizer's settings. Fields that are 0 get their defaults here, so that whoever
// computes or writes them down afterwards sees one number and not two. A range excludes its low
// end and has a default; a limit includes it, and 0 means off. Comparisons are written so that
// NaN fails them. Every field of every optimizer is checked, whichever one is chosen.
#include "belfry/optimizer.h"

#include <stddef.h>

#include "optim/multiplier.h"
#include "optim/rule.h"

typedef struct range {
    const char *name;
    size_t offset;
    double otherwise; // taken when the field is 0
    double low, high; // ranges: low < value <= high; limits: low itself is allowed
    const char *text;
} range;

static const range ranges[] = {
    {"learning_rate", offsetof(bel_optimizer, learning_rate), 0, 0, 1e6, "above 0"},
    {"momentum", offsetof(bel_optimizer, momentum), 0.9, 0, 0.999999, "above 0 and below 1"},
    {"beta1", offsetof(bel_optimizer, beta1), 0.9, 0, 0.999999, "above 0 and below 1"},
    {"beta2", offsetof(bel_optimizer, beta2), 0.999, 0, 0.9999999, "above 0 and below 1"},
    {"epsilon", offsetof(bel_optimizer, epsilon), 1e-8, 0, 1, "above 0 and at most 1"},
    {"initial_accumulator", offsetof(bel_optimizer, initial_accumulator), 0.1, 0, 1e6, "above 0"},
    {"lars_trust", offsetof(bel_optimizer, lars_trust), 0.001, 0, 1e6, "above 0"},
    {"rmsprop_decay", offsetof(bel_optimizer, rmsprop_decay), 0.9, 0, 0.9999999,
     "above 0 and below 1"},
};

static const range limits[] = {
    {"ftrl_l1", offsetof(bel_optimizer, ftrl_l1), 0, 0, 1e30, "0 (off) or above"},
    {"ftrl_l2", offsetof(bel_optimizer, ftrl_l2), 0, 0, 1e30, "0 (off) or above"},
    {"ftrl_l2_shrinkage", offsetof(bel_optimizer, ftrl_l2_shrinkage), 0, 0, 1e30,
     "0 (off) or above"},
    {"rmsprop_momentum", offsetof(bel_optimizer, rmsprop_momentum), 0, 0, 0.999999,
     "from 0 (off) to below 1"},
    {"moving_average_decay", offsetof(bel_optimizer, moving_average_decay), 0, 0, 0.9999999,
     "from 0 (off) to below 1"},
    {"weight_decay", offsetof(bel_optimizer, weight_decay), 0, 0, 1, "from 0 to 1"},
    {"clip_value", offsetof(bel_optimizer, clip_value), 0, 0, 1e30, "0 (off) or above"},
    {"clip_norm", offsetof(bel_optimizer, clip_norm), 0, 0, 1e30, "0 (off) or above"},
    {"clip_global_norm", offsetof(bel_optimizer, clip_global_norm), 0, 0, 1e30, "0 (off) or above"},
};

static double *field(bel_optimizer *optimizer, const range *r)
{
    return (double *)(void *)((char *)optimizer + r->offset);
}

static bel_status *bad_field(const range *r, double value)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: %s must be %s, got %g", r->name, r->text,
                   value);
}

bel_status *bel_optimizer_check(bel_optimizer *optimizer)
{
    if ((unsigned)optimizer->kind >= BEL_OPTIMIZER_COUNT) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: there is no kind %d",
                       (int)optimizer->kind);
    }
    if (optimizer->schedule.kind == BEL_SCHEDULE_PIECEWISE) {
        BEL_TRY(bel_schedule_check(&optimizer->schedule)); // whose first rate is a default
        if (optimizer->learning_rate == 0) optimizer->learning_rate = optimizer->schedule.rates[0];
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        double *value = field(optimizer, &ranges[i]);
        if (*value == 0) *value = ranges[i].otherwise;
        if (!(*value > ranges[i].low && *value <= ranges[i].high)) {
            return bad_field(&ranges[i], *value);
        }
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        double value = *field(optimizer, &limits[i]);
        if (!(value >= limits[i].low && value <= limits[i].high)) {
            return bad_field(&limits[i], value);
        }
    }
    double *power = &optimizer->learning_rate_power;
    if (*power == 0) *power = -0.5;
    if (!(*power >= -1 && *power < 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: learning_rate_power must be from -1 to below 0, got %g", *power);
    }
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
    BEL_TRY(bel_multipliers_check(optimizer));
    return bel_schedule_check(&optimizer->schedule);
}
