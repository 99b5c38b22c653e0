// Checks of an optimizer's settings, and learning-rate schedules.
#include "belfry/optimizer.h"

#include <math.h>
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

static int piece_count(const bel_schedule *schedule)
{
    int count = 0;
    while (count < BEL_SCHEDULE_MAX_PIECES && schedule->rates[count] != 0)
        count++;
    return count;
}

// Rates end at the first 0, and what stands behind the end of either list was meant to count.
static bel_status *check_pieces(const bel_schedule *schedule)
{
    int count = piece_count(schedule);
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES; i++) {
        double rate = schedule->rates[i];
        bool used = i == 0 || i < count;
        if (used ? rate > 0 && rate <= 1e6 : rate == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: rates[%d] of the schedule must be above 0, got %g", i,
                       used ? rate : 0);
    }
    for (int i = 0; i < BEL_SCHEDULE_MAX_PIECES - 1; i++) {
        int64_t boundary = schedule->boundaries[i];
        if (i >= count - 1 && boundary != 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "optimizer: %d rates need %d boundaries, but there is boundaries[%d] "
                           "with %lld",
                           count, count - 1, i, (long long)boundary);
        }
        int64_t before = i > 0 ? schedule->boundaries[i - 1] : -1;
        if (i >= count - 1 || boundary > before) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: boundaries of the schedule must be at least 0 and rise, but "
                       "boundaries[%d] is %lld",
                       i, (long long)boundary);
    }
    return NULL;
}

static bel_status *check_schedule(bel_schedule *schedule)
{
    if (schedule->warmup_steps < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: warmup_steps must be at least 0, got %lld",
                       (long long)schedule->warmup_steps);
    }
    if ((unsigned)schedule->kind > BEL_SCHEDULE_PIECEWISE) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: there is no schedule %d",
                       (int)schedule->kind);
    }
    if (schedule->kind == BEL_SCHEDULE_CONSTANT) return NULL;
    if (schedule->kind == BEL_SCHEDULE_PIECEWISE) return check_pieces(schedule);
    if (schedule->decay_steps < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: decay_steps must be at least 1, got %lld",
                       (long long)schedule->decay_steps);
    }
    if (schedule->kind == BEL_SCHEDULE_COSINE) {
        if (schedule->alpha >= 0 && schedule->alpha <= 1) return NULL;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: alpha must be from 0 to 1, got %g",
                       schedule->alpha);
    }
    if (!(schedule->decay_rate > 0 && schedule->decay_rate <= 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "optimizer: decay_rate must be above 0 and at most 1, got %g",
                       schedule->decay_rate);
    }
    return NULL;
}

bel_status *bel_optimizer_check(bel_optimizer *optimizer)
{
    if ((unsigned)optimizer->kind >= BEL_OPTIMIZER_COUNT) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "optimizer: there is no kind %d",
                       (int)optimizer->kind);
    }
    if (optimizer->schedule.kind == BEL_SCHEDULE_PIECEWISE) {
        BEL_TRY(check_schedule(&optimizer->schedule)); // whose first rate is a default
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
    return check_schedule(&optimizer->schedule);
}

static double piece_rate(const bel_schedule *schedule, int64_t step)
{
    int piece = 0, last = piece_count(schedule) - 1;
    while (piece < last && step > schedule->boundaries[piece])
        piece++;
    return schedule->rates[piece];
}

double bel_optimizer_rate(const bel_optimizer *optimizer, int64_t step)
{
    const bel_schedule *schedule = &optimizer->schedule;
    double rate = optimizer->learning_rate;
    if (schedule->kind == BEL_SCHEDULE_EXPONENTIAL) {
        double power = (double)step / (double)schedule->decay_steps;
        if (schedule->staircase) power = floor(power);
        rate *= pow(schedule->decay_rate, power);
    }
    if (schedule->kind == BEL_SCHEDULE_COSINE) {
        double x = fmin(1, (double)step / (double)schedule->decay_steps);
        rate *= schedule->alpha + (1 - schedule->alpha) * (1 + cos(acos(-1) * x)) / 2;
    }
    if (schedule->kind == BEL_SCHEDULE_PIECEWISE) rate = piece_rate(schedule, step);
    if (step < schedule->warmup_steps) {
        rate *= (double)(step + 1) / (double)schedule->warmup_steps;
    }
    return rate;
}
