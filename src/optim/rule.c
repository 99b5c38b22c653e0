// Rules: their slots, the numbers of a step, and the choice of kernel. Numbers that all elements
// share are computed once per step, in double, and rounded to the kernels' type, so each shard that
// has a part of a variable uses the same numbers. A slot that a setting leaves unused (RMSprop
// without momentum or centring) is not kept, so the rule depends on the settings. A decay near 1 is
// passed as 1 - decay, whose digits f32 would otherwise lose.
#include "optim/rule.h"

#include <math.h>

#include "base/check.h"
#include "base/isa.h"
#include "base/number.h"
#include "base/real.h"
#include "optim/settings.h"

_Static_assert(BEL_OPTIMIZER_SGD == 0 && BEL_OPTIMIZER_MOMENTUM == 1 && BEL_OPTIMIZER_ADAM == 2 &&
                   BEL_OPTIMIZER_ADAGRAD == 3 && BEL_OPTIMIZER_RMSPROP == 4 &&
                   BEL_OPTIMIZER_ADAMW == 5 && BEL_OPTIMIZER_FTRL == 6 &&
                   BEL_OPTIMIZER_LAMB == BEL_RULE_LAMB && BEL_OPTIMIZER_LARS == 8 &&
                   BEL_OPTIMIZER_ADADELTA == 9 && BEL_OPTIMIZER_COUNT == 10,
               "the numbers of BEL_EACH_RULE");

static const bel_rule rules[] = {
    [BEL_OPTIMIZER_SGD] = {.name = "sgd"},
    [BEL_OPTIMIZER_MOMENTUM] = {.name = "momentum", .slot_count = 1, .slots = {"m"}},
    [BEL_OPTIMIZER_ADAM] = {.name = "adam", .slot_count = 2, .slots = {"m", "v"}},
    [BEL_OPTIMIZER_ADAGRAD] = {.name = "adagrad",
                               .slot_count = 1,
                               .slots = {"accumulator"},
                               .accumulates = true},
    [BEL_OPTIMIZER_ADAMW] = {.name = "adamw", .slot_count = 2, .slots = {"m", "v"}},
    [BEL_OPTIMIZER_FTRL] = {.name = "ftrl",
                            .slot_count = 2,
                            .slots = {"accumulator", "linear"},
                            .accumulates = true},
    [BEL_OPTIMIZER_LAMB] =
        {.name = "lamb", .slot_count = 2, .slots = {"m", "v"}, .trusts = true, .prepares = true},
    [BEL_OPTIMIZER_LARS] = {.name = "lars", .slot_count = 1, .slots = {"m"}, .trusts = true},
    [BEL_OPTIMIZER_ADADELTA] = {.name = "adadelta", .slot_count = 2, .slots = {"v", "x"}},
};

// Indexed by centered and by momentum: unused slots are not kept.
static const bel_rule rmsprop_rules[2][2] = {
    {{.name = "rmsprop", .slot_count = 1, .slots = {"v"}},
     {.name = "rmsprop", .slot_count = 2, .slots = {"v", "m"}}},
    {{.name = "rmsprop", .slot_count = 2, .slots = {"v", "c"}},
     {.name = "rmsprop", .slot_count = 3, .slots = {"v", "c", "m"}}},
};

const bel_rule *bel_rule_get(const bel_optimizer *optimizer)
{
    if (optimizer->kind == BEL_OPTIMIZER_RMSPROP) {
        return &rmsprop_rules[optimizer->rmsprop_centered][optimizer->rmsprop_momentum > 0];
    }
    BEL_CHECK((size_t)optimizer->kind < sizeof rules / sizeof rules[0]);
    return &rules[optimizer->kind];
}

int bel_rule_kept(const bel_optimizer *optimizer)
{
    return bel_rule_get(optimizer)->slot_count + (optimizer->moving_average_decay > 0 ? 1 : 0);
}

int bel_rule_slot_name(char *out, size_t room, const char *variable, const bel_rule *rule,
                       int layer, int slot)
{
    if (layer == 0)
        return bel_snprintf(out, room, "%s/%s/%s", variable, rule->name, rule->slots[slot]);
    return bel_snprintf(out, room, "%s/%s/%d/%s", variable, rule->name, layer, rule->slots[slot]);
}

float bel_rule_slot_start(const bel_optimizer *optimizer, int slot)
{
    bool accumulator = slot == 0 && bel_rule_get(optimizer)->accumulates;
    return accumulator ? (float)optimizer->initial_accumulator : 0.0f;
}

static const bel_rule_kernels *kernels(void)
{
    static const bel_rule_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_rule_kernels)};
    return tables[bel_isa_get()];
}

bel_rule_step bel_rule_begin(const bel_optimizer *optimizer, int64_t step)
{
    return bel_rule_begin_scaled(optimizer, step, step, 1, 1);
}

bel_rule_decay bel_rule_decay_of(double decay)
{
    bool keeps = decay >= 0.5;
    return (bel_rule_decay){keeps, (float)(keeps ? 1 - decay : decay)};
}

bel_rule_step bel_rule_begin_scaled(const bel_optimizer *optimizer, int64_t step, int64_t updates,
                                    double lr_factor, double decay_factor)
{
    double rate = bel_optimizer_rate(optimizer, step) * lr_factor, t = (double)updates + 1;
    double weight_decay = optimizer->weight_decay * decay_factor;
    bel_rule_step numbers = {.kind = (int32_t)optimizer->kind,
                             .nesterov = optimizer->nesterov,
                             .rate = (float)rate,
                             .momentum = (float)optimizer->momentum,
                             .beta1 = bel_rule_decay_of(optimizer->beta1),
                             .beta2 = bel_rule_decay_of(optimizer->beta2),
                             .epsilon = (float)optimizer->epsilon,
                             .weight_decay = (float)weight_decay,
                             .trust = optimizer->lars_trust,
                             .clip_value = (float)bel_rule_clip_value(optimizer)};
    if (optimizer->kind == BEL_OPTIMIZER_RMSPROP) {
        numbers.momentum = (float)optimizer->rmsprop_momentum;
        numbers.decay = bel_rule_decay_of(optimizer->rmsprop_decay);
        numbers.centered = optimizer->rmsprop_centered;
    }
    if (optimizer->kind == BEL_OPTIMIZER_ADADELTA)
        numbers.decay = bel_rule_decay_of(optimizer->adadelta_decay);
    if (optimizer->kind == BEL_OPTIMIZER_FTRL) {
        double whole = ldexp(1, BEL_RULE_POWER_BITS);
        numbers.power = (uint32_t)lround(-optimizer->learning_rate_power * whole);
        numbers.rate = (float)(1 / rate);
        numbers.l1 = (float)optimizer->ftrl_l1;
        numbers.twice_l2 = (float)(2 * optimizer->ftrl_l2);
        numbers.twice_shrinkage = (float)(2 * optimizer->ftrl_l2_shrinkage);
    }
    if (optimizer->kind == BEL_OPTIMIZER_ADAMW) {
        numbers.shrink = (float)(1 - rate * weight_decay);
    }
    if (optimizer->kind == BEL_OPTIMIZER_ADAM || optimizer->kind == BEL_OPTIMIZER_ADAMW) {
        numbers.rate = (float)(rate / (1 - bel_real_pow(optimizer->beta1, t)));
        numbers.root = (float)(1 / sqrt(1 - bel_real_pow(optimizer->beta2, t)));
    }
    if (optimizer->kind == BEL_OPTIMIZER_LAMB) {
        numbers.mean = (float)(1 / (1 - bel_real_pow(optimizer->beta1, t)));
        numbers.root = (float)(1 / sqrt(1 - bel_real_pow(optimizer->beta2, t)));
    }
    return numbers;
}

void bel_rule_scale(const bel_rule_step *step, const float *sum, float scale, float *out, int64_t n)
{
    kernels()->scale(sum, scale, step->clip_value, out, n);
}

void bel_rule_prepare(const bel_rule_step *step, const float *gradient, const float *values,
                      float *direction, float *const *slots, int64_t n)
{
    kernels()->prepare(step, gradient, 1.0f, values, direction, slots, n);
}

float bel_rule_trust(const bel_rule_step *step, double values_square, double direction_square)
{
    double values = sqrt(values_square), direction = sqrt(direction_square);
    if (values == 0 || direction == 0) return 1.0f;
    if (step->kind == BEL_OPTIMIZER_LAMB) return (float)(values / direction);
    return (float)(step->trust * values / (direction + (double)step->weight_decay * values));
}

void bel_rule_apply(const bel_rule_step *step, const float *gradient, float factor,
                    const float *values, float *new_values, float *const *slots, int64_t n)
{
    kernels()->apply[step->kind](step, gradient, factor, values, new_values, slots, n);
}

void bel_rule_apply_sum(const bel_rule_step *step, const float *left, const float *right,
                        float scale, const float *values, float *new_values, float *const *slots,
                        int64_t n)
{
    kernels()->apply_sum[step->kind](step, left, right, scale, values, new_values, slots, n);
}

float bel_rule_average_rest(const bel_optimizer *optimizer, int64_t step)
{
    double decay = optimizer->moving_average_decay, n = (double)step;
    if (optimizer->moving_average_ramp) decay = fmin(decay, (1 + n) / (10 + n));
    return (float)(1 - decay);
}

void bel_rule_average(const float *values, float rest, float *averages, int64_t n)
{
    kernels()->average(values, rest, averages, n);
}

bool bel_rule_has_rows(bel_optimizer_kind kind)
{
    return kernels()->apply_rows[kind] != NULL;
}

void bel_rule_apply_rows(const bel_rule_step *step, const float *sums, float scale,
                         float *const *rows, int first_slot, int width, int64_t n)
{
    kernels()->apply_rows[step->kind](step, sums, scale, rows, first_slot, width, n);
}

double bel_rule_sum_square(const float *values, int64_t n)
{
    return kernels()->sum_square(values, n);
}
