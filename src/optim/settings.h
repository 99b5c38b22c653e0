// Settings of optimizers and schedules: one row each, which feeds flags and YAML
// (tools/command/flags.c), parameters of model functions (bel_context_optimizer), checks
// (bel_optimizer_check), checkpoints and messages to parameter servers. To add a setting, add its
// field in belfry/optimizer.h, its row here, and the rule that reads it.
#ifndef BELFRY_OPTIM_SETTINGS_H
#define BELFRY_OPTIM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "belfry/optimizer.h"

// ROW(name, FORM, field of bel_optimizer, default, accepts, unit, when, key, label, help)
//
// FORM     CHOICE (its index in the accepted words), NUMBER (double), WHOLE (int64_t), SWITCH
//          (bool), FACTORS (bel_multiplier list), STEPS and RATES (of the piecewise schedule),
//          FORMULA (char array)
// default  text as typed. A NUMBER of 0 means the default where 0 is not accepted, except where a
//          model function must set it: learning_rate, and the numbers of a schedule.
// accepts  words separated by `|`, or an interval in mathematical notation; numbers are checked as
//          f32, in which they are used
// when     condition on other choices under which the setting is read (base/options.h);
//          NULL: always
// key      name in a checkpoint; NULL: the name of the optimizer
// label    words before the value (NULL: no words). Settings of one key are joined with commas. A
//          setting at its default is left out if `when` is NULL, or does not depend on one setting.
// clang-format off
#define BEL_OPTIMIZER_SETTINGS(ROW) \
    ROW(optimizer, CHOICE, kind, "adam", "sgd|momentum|adam|adagrad|rmsprop|adamw|ftrl|lamb|lars|adadelta", NULL, \
        NULL, "optimizer", NULL, "Update rule.") \
    ROW(learning_rate, NUMBER, learning_rate, "0.001", "(0, 1000000]", NULL, \
        "schedule=constant|exponential|cosine|polynomial|natural_exp|inverse_time|cosine_restarts|formula", "learning_rate", NULL, \
        "step size before schedule and warm-up.") \
    ROW(momentum, NUMBER, momentum, "0.9", "(0, 1)", NULL, \
        "optimizer=momentum|lars", NULL, "momentum", "decay of the sum.") \
    ROW(nesterov, SWITCH, nesterov, "false", NULL, NULL, \
        "optimizer=momentum", "optimizer", "nesterov", "look one step ahead.") \
    ROW(lars_trust, NUMBER, lars_trust, "0.001", "(0, 1000000]", NULL, \
        "optimizer=lars", NULL, "trust", "a variable's step is this share of its norm, times the rate.") \
    ROW(beta1, NUMBER, beta1, "0.9", "(0, 1)", NULL, \
        "optimizer=adam|adamw|lamb", NULL, "beta1", "decay of the mean gradient.") \
    ROW(beta2, NUMBER, beta2, "0.999", "(0, 1)", NULL, \
        "optimizer=adam|adamw|lamb", NULL, "beta2", "decay of the mean of squares.") \
    ROW(rmsprop_decay, NUMBER, rmsprop_decay, "0.9", "(0, 1)", NULL, \
        "optimizer=rmsprop", NULL, "decay", "decay of the mean of squares.") \
    ROW(rmsprop_momentum, NUMBER, rmsprop_momentum, "0", "[0, 1)", NULL, \
        "optimizer=rmsprop", NULL, "momentum", "decay of the sum of updates; 0: off.") \
    ROW(adadelta_decay, NUMBER, adadelta_decay, "0.95", "(0, 1)", NULL, \
        "optimizer=adadelta", NULL, "decay", "decay of the means of squares.") \
    ROW(learning_rate_power, NUMBER, learning_rate_power, "-0.5", "[-1, 0)", NULL, \
        "optimizer=ftrl", NULL, "power", "how the rate falls with the sum of squares.") \
    ROW(ftrl_l1, NUMBER, ftrl_l1, "0", "[0, inf)", NULL, \
        "optimizer=ftrl", NULL, "l1", "pull to 0, which parameters reach.") \
    ROW(ftrl_l2, NUMBER, ftrl_l2, "0", "[0, inf)", NULL, \
        "optimizer=ftrl", NULL, "l2", "pull to 0 that grows with the parameter.") \
    ROW(ftrl_l2_shrinkage, NUMBER, ftrl_l2_shrinkage, "0", "[0, inf)", NULL, \
        "optimizer=ftrl", NULL, "shrinkage", \
        "twice this times the parameter is added to the gradient, but not to the sum of squares.") \
    ROW(epsilon, NUMBER, epsilon, "1e-8", "(0, 1]", NULL, \
        "optimizer=adam|adamw|lamb|adagrad|rmsprop|adadelta", NULL, "epsilon", \
        "added to the root that divides; adadelta: under both roots.") \
    ROW(initial_accumulator, NUMBER, initial_accumulator, "0.1", "(0, 1000000]", NULL, \
        "optimizer=adagrad|ftrl", NULL, "initial accumulator", "where the sum of squares begins.") \
    ROW(rmsprop_centered, SWITCH, rmsprop_centered, "false", NULL, NULL, \
        "optimizer=rmsprop", NULL, "centered", "divide by the spread around the mean gradient.") \
    ROW(weight_decay, NUMBER, weight_decay, "0", "[0, 1]", NULL, \
        NULL, "weight_decay", NULL, \
        "This times the parameter is added to its clipped gradient; adamw: this times the rate is what " \
        "the parameter loses.") \
    ROW(lr_mult, FACTORS, lr_mults, "", NULL, NULL, \
        NULL, "lr_mult", NULL, \
        "A factor of the learning rate for variables whose names match a pattern, such as " \
        "'dense_0/*=0.1'; of several that match the last counts.") \
    ROW(decay_mult, FACTORS, decay_mults, "", NULL, NULL, \
        "weight_decay", "decay_mult", NULL, "The same for --weight_decay, such as '*/bias=0'.") \
    ROW(moving_average_decay, NUMBER, moving_average_decay, "0", "[0, 1)", NULL, \
        NULL, "moving_average_decay", NULL, \
        "Keep moving averages of the parameters, and evaluate these instead; 0: off.") \
    ROW(moving_average_ramp, SWITCH, moving_average_ramp, "false", NULL, NULL, \
        "moving_average_decay", "moving_average_decay", "ramp", \
        "The decay is at most (1 + step) / (10 + step).") \
    ROW(table_mean, CHOICE, mean_by_contributors, "replicas", "replicas|contributors", NULL, \
        "model=wide_deep", "table_mean", NULL, \
        "the replicas in the mean gradient of a table's row: all replicas, or those whose batch has " \
        "its id.") \
    ROW(clip_value, NUMBER, clip_value, "0", "[0, inf)", NULL, \
        NULL, "clip_value", NULL, "Bound for each element of a gradient; 0: off.") \
    ROW(clip_norm, NUMBER, clip_norm, "0", "[0, inf)", NULL, \
        NULL, "clip_norm", NULL, "Bound for the norm of each variable's gradient; 0: off.") \
    ROW(clip_global_norm, NUMBER, clip_global_norm, "0", "[0, inf)", NULL, \
        NULL, "clip_global_norm", NULL, "Bound for the norm of all gradients together; 0: off.") \
    ROW(clip_each_replica, SWITCH, clip_each_replica, "false", NULL, NULL, \
        "clip_value or clip_norm or clip_global_norm", "clip_each_replica", "true", "The bounds are for each replica's gradient, before the average.") \
    ROW(schedule, CHOICE, schedule.kind, "constant", "constant|exponential|cosine|piecewise|polynomial|natural_exp|inverse_time|cosine_restarts|formula", NULL, \
        NULL, "schedule", NULL, "How the learning rate changes with the steps.") \
    ROW(decay_rate, NUMBER, schedule.decay_rate, "0.96", "(0, 1000000]", NULL, \
        "schedule=exponential|natural_exp|inverse_time", "schedule", "rate", \
        "exponential: factor per --decay_steps, up to 1; others: what a --decay_steps counts.") \
    ROW(decay_steps, WHOLE, schedule.decay_steps, "1000", "[1, inf)", "steps", \
        "schedule=exponential|cosine|polynomial|natural_exp|inverse_time|cosine_restarts", "schedule", "steps", \
        "cosine, polynomial: steps until the end; cosine_restarts: until the first restart; others: steps " \
        "that --decay_rate is for.") \
    ROW(staircase, SWITCH, schedule.staircase, "false", NULL, NULL, \
        "schedule=exponential|natural_exp|inverse_time", "schedule", "staircase", "whole --decay_steps only.") \
    ROW(alpha, NUMBER, schedule.alpha, "0", "[0, 1]", NULL, \
        "schedule=cosine|polynomial|cosine_restarts", "schedule", "alpha", \
        "share of the rate that stays at the end.") \
    ROW(decay_power, NUMBER, schedule.power, "1", "(0, 1000]", NULL, \
        "schedule=polynomial", "schedule", "power", "how the rate falls; 1: in a line.") \
    ROW(decay_cycle, SWITCH, schedule.cycle, "false", NULL, NULL, \
        "schedule=polynomial", "schedule", "cycle", "fall again and again.") \
    ROW(t_mul, NUMBER, schedule.t_mul, "2", "[1, 1000]", NULL, \
        "schedule=cosine_restarts", "schedule", "t_mul", "a period's length over that of the one before.") \
    ROW(m_mul, NUMBER, schedule.m_mul, "1", "(0, 1]", NULL, \
        "schedule=cosine_restarts", "schedule", "m_mul", "a period's height over that of the one before.") \
    ROW(boundaries, STEPS, schedule.boundaries, "", "[0, inf)", "steps", \
        "schedule=piecewise", "schedule", NULL, "the last step of each rate but the last.") \
    ROW(rates, RATES, schedule.rates, "", NULL, "X", \
        "schedule=piecewise", "schedule", NULL, "the learning rates, one more than --boundaries.") \
    ROW(schedule_formula, FORMULA, schedule.formula, "", NULL, "FORMULA", \
        "schedule=formula", "schedule", "formula", \
        "factor of the rate as arithmetic in step, e.g. \"(step + 1) ^ -0.5\"; + - * / ^ < > ?: min max exp " \
        "log sqrt sin cos tanh abs floor pi.") \
    ROW(warmup_steps, WHOLE, schedule.warmup_steps, "0", "[0, inf)", "steps", \
        NULL, "warmup_steps", NULL, "The rate rises linearly over this number of steps.") \
    ROW(rate_scale, NUMBER, schedule.scale, "0", "[0, 1000000000]", NULL, \
        NULL, "rate_scale", NULL, \
        "Multiplier of the rate; --warmup_steps then rise to it from the rate itself. 0: off.")
// clang-format on

// Sets a setting from its text. INVALID_ARGUMENT: no setting has the name, or the text has the
// wrong form. bel_optimizer_check checks ranges.
bel_status *bel_optimizer_set(bel_optimizer *optimizer, const char *name,
                              const char *text) BEL_MUST_USE;

// Name of the setting at `index`, and its default; NULL after the last.
const char *bel_optimizer_setting(size_t index, const char **out_otherwise);

// Callback that receives settings one by one; both texts are borrowed.
typedef void bel_setting_take(void *context, const char *name, const char *text);

// Lists all settings that are not at their default. bel_optimizer_set on a new optimizer with all
// defaults restores this one bit for bit.
void bel_optimizer_list(const bel_optimizer *optimizer, bel_setting_take *take, void *context);

// Returns the optimizer with all settings at their default.
bel_optimizer bel_optimizer_default(void);

// Fills in defaults and checks ranges, in place. INVALID_ARGUMENT names the field, its value and
// the range, or the two settings that exclude each other; some defaults may then be filled in
// already.
bel_status *bel_optimizer_check(bel_optimizer *optimizer) BEL_MUST_USE;

// The learning rate of the step that makes version `step` + 1 (`step` from 0), before the
// multipliers, of a checked optimizer.
double bel_optimizer_rate(const bel_optimizer *optimizer, int64_t step);

// Fills in defaults and checks each row against `accepts`: the part of bel_optimizer_check that
// sees one setting at a time. The message of INVALID_ARGUMENT has the setting, its value and
// `accepts`.
bel_status *bel_optimizer_check_rows(bel_optimizer *optimizer) BEL_MUST_USE;

// Lists a checked optimizer's settings as in a checkpoint: those that are read, under their keys,
// numbers with nine digits.
void bel_optimizer_describe(const bel_optimizer *optimizer, bel_setting_take *take, void *context);

#endif
