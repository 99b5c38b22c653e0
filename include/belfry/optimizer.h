/// Optimizers: how averaged gradients change parameters. A model function fills in a bel_optimizer,
/// and the parameter servers apply it. The order in a step is: sum over replicas → × 1/n → clip by
/// value → clip by norm → weight decay → update → moving average.
///
/// These are plain structs without pointers, copied by assignment. Thread rule: functions here
/// access only their arguments, so any thread may call them.
#ifndef BELFRY_OPTIMIZER_H
#define BELFRY_OPTIMIZER_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Update rule. In the formulae p is a parameter, g its gradient, a the learning rate of the step,
/// t the number of the step counted from 1.
typedef enum bel_optimizer_kind {
    BEL_OPTIMIZER_SGD,      ///< p -= a g
    BEL_OPTIMIZER_MOMENTUM, ///< m = mu m + g; p -= a m, or with nesterov p -= a (g + mu m)
    BEL_OPTIMIZER_ADAM,     ///< Kingma & Ba 2015, algorithm 1, with bias correction
    /// Duchi et al. 2011, section 1.3, diagonal: s += g g; p -= a g / (sqrt(s) + epsilon), where s
    /// begins at initial_accumulator as in TensorFlow.
    BEL_OPTIMIZER_ADAGRAD,
    /// Tieleman & Hinton 2012, lecture 6e, in PyTorch's form: v = d v + (1 - d) g g;
    /// p -= a g / (sqrt(v) + epsilon). Centered (Graves 2013, section 4.2): c = d c + (1 - d) g,
    /// and the root is that of v - c c. With momentum mu: m = mu m + g / (root + epsilon); p -= a
    /// m.
    BEL_OPTIMIZER_RMSPROP,
    /// Loshchilov & Hutter 2019, algorithm 2, as in PyTorch: ADAM, but weight_decay w does not
    /// enter the gradient; p is multiplied by 1 - a w before the update.
    BEL_OPTIMIZER_ADAMW,
    /// McMahan et al. 2013, algorithm 1, as in TensorFlow's ApplyFtrlV2, with q =
    /// -learning_rate_power: s' = s + g g; z += g + 2 l2_shrinkage p - (s'^q - s^q) / a p; p = 0 if
    /// |z| <= l1, else (sign(z) l1 - z) / (s'^q / a + 2 l2). s begins at initial_accumulator, z at
    /// 0: the first step replaces initial values, even if the gradient is 0.
    BEL_OPTIMIZER_FTRL,
    /// You et al. 2020, algorithm 2, with phi(z) = z: r = Adam's direction with bias correction +
    /// weight_decay p; p -= a r |p| / |r|, with the norms of each variable. If either norm is 0,
    /// their ratio counts as 1.
    BEL_OPTIMIZER_LAMB,
    /// You et al. 2017, algorithm 1: m = mu m + a q (g + weight_decay p); p -= m, where q =
    /// lars_trust |p| / (|g| + weight_decay |p|) for each variable, 1 if |p| or |g| is 0.
    BEL_OPTIMIZER_LARS,
    /// Zeiler 2012, algorithm 1, as in PyTorch and TensorFlow, with a rate before the update: v = d
    /// v + (1 - d) g g; u = g sqrt(x + epsilon) / sqrt(v + epsilon); x = d x + (1 - d) u u; p -= a
    /// u.
    BEL_OPTIMIZER_ADADELTA,
    BEL_OPTIMIZER_COUNT, ///< number of kinds; no kind
} bel_optimizer_kind;

/// Learning rate as a function of the step s, counted from 0.
typedef enum bel_schedule_kind {
    BEL_SCHEDULE_CONSTANT,
    BEL_SCHEDULE_EXPONENTIAL, ///< rate · decay_rate ^ (s / decay_steps)
    /// Loshchilov & Hutter 2017, section 3, once, as TensorFlow's CosineDecay: with x = min(1, s /
    /// decay_steps) rate · (alpha + (1 - alpha) (1 + cos(pi x)) / 2)
    BEL_SCHEDULE_COSINE,
    /// TensorFlow's PiecewiseConstantDecay: rates[i] with the first i where s <= boundaries[i], and
    /// the last rate after the last boundary. learning_rate is not used.
    BEL_SCHEDULE_PIECEWISE,
    /// TensorFlow's PolynomialDecay, with x = min(1, s / decay_steps): rate · (alpha + (1 - alpha)
    /// (1 - x) ^ power), so alpha · rate is its end_learning_rate. With cycle the rate falls
    /// repeatedly: decay_steps is multiplied by the least integer that keeps s within it.
    BEL_SCHEDULE_POLYNOMIAL,
    BEL_SCHEDULE_NATURAL_EXP,  ///< rate · e ^ (-decay_rate s / decay_steps)
    BEL_SCHEDULE_INVERSE_TIME, ///< rate / (1 + decay_rate s / decay_steps)
    /// Loshchilov & Hutter 2017, section 3, as TensorFlow's CosineDecayRestarts: COSINE over the
    /// first decay_steps, then restarted, each time over t_mul times as many steps and from m_mul
    /// times the height: rate · (alpha + (1 - alpha) m (1 + cos(pi x)) / 2).
    BEL_SCHEDULE_COSINE_RESTARTS,
    /// Custom schedule: rate · formula, where `formula` is arithmetic in `step`, such as "min(1,
    /// (step + 1) / 500) * 0.5 ^ floor(step / 10000)". It has + - * / ^, < <= > >= (1 or 0), ?: ,
    /// parentheses, pi, and min, max, exp, log, sqrt, sin, cos, tanh, abs, floor. A factor below 0
    /// counts as 0. As a text, parameter servers can compute it without the program's code, and
    /// checkpoints can store it.
    BEL_SCHEDULE_FORMULA,
} bel_schedule_kind;

enum { BEL_SCHEDULE_MAX_PIECES = 16, BEL_FORMULA_BYTES = 256 };

/// Schedule of the learning rate. Zero-initialized it is constant. With `warmup_steps` w > 0 the
/// rates of the first w steps are multiplied by (s + 1) / w. With `scale` k > 0 all rates are
/// multiplied by k, except those of the first w steps, which are multiplied by 1 + (k - 1) s / w
/// instead: they rise from the rate itself to k times it (Goyal et al. 2017, section 2.2).
/// An error of the training names a field that is out of range.
typedef struct bel_schedule {
    bel_schedule_kind kind;
    double decay_rate;    ///< EXPONENTIAL: (0, 1]; NATURAL_EXP, INVERSE_TIME: above 0
    int64_t decay_steps;  ///< all but CONSTANT, PIECEWISE and FORMULA: ≥ 1
    bool staircase;       ///< with decay_rate: s / decay_steps is rounded down to an integer
    int64_t warmup_steps; ///< w, ≥ 0
    double alpha;         ///< COSINE (both), POLYNOMIAL: final share of the rate, [0, 1]
    double power;         ///< POLYNOMIAL: above 0, at most 1000
    bool cycle;           ///< POLYNOMIAL
    double t_mul;         ///< COSINE_RESTARTS: 1, or from 1.01 to 1000
    double m_mul;         ///< COSINE_RESTARTS: (0, 1]
    int64_t boundaries[BEL_SCHEDULE_MAX_PIECES - 1]; ///< PIECEWISE: rising; one fewer than rates
    double rates[BEL_SCHEDULE_MAX_PIECES];           ///< PIECEWISE: > 0; they end at the first 0
    char formula[BEL_FORMULA_BYTES];                 ///< FORMULA; with its closing 0
    /// k, ≥ 0 [off]. bel_run_config.scale_learning_rate sets it to the number of replicas; it must
    /// then be 0 here.
    double scale;
} bel_schedule;

enum { BEL_MAX_MULTIPLIERS = 16, BEL_PATTERN_BYTES = 64, BEL_MAX_OPTIMIZER_PARTS = 4 };

/// Factor for the variables whose names match a pattern: `*` stands for any characters, "/"
/// included, `?` for one, `[ab]` for one of these (fnmatch). A pattern cannot contain "=" or
/// commas.
typedef struct bel_multiplier {
    char pattern[BEL_PATTERN_BYTES]; ///< with its closing 0; "" ends a list
    double factor;                   ///< [0, 1e6]
} bel_multiplier;

/// Optimizer with its settings. Set `size`, `kind`, `learning_rate`, and any other field you need.
/// Fields that are 0 take the default in brackets or switch the feature off. All must be in range,
/// even those that the kind does not use.
///
/// Slots, the memory of a rule for each parameter, are floats. SGD has none, MOMENTUM, ADAGRAD and
/// LARS have one, and ADAM, ADAMW, FTRL, LAMB and ADADELTA have two. RMSPROP has one, and one more
/// for each of momentum and centered. A moving average adds one.
typedef struct bel_optimizer {
    size_t size; ///< sizeof(bel_optimizer): fields after it count as 0
    bel_optimizer_kind kind;
    double learning_rate;       ///< above 0, at most 1e6; PIECEWISE [the first rate]
    double momentum;            ///< MOMENTUM, LARS: mu, below 1 [0.9]
    bool nesterov;              ///< MOMENTUM only
    double beta1;               ///< ADAM, ADAMW, LAMB: below 1 [0.9]
    double beta2;               ///< ADAM, ADAMW, LAMB: below 1 [0.999]
    double epsilon;             ///< all but SGD, MOMENTUM, FTRL, LARS: at most 1 [1e-8]
    double initial_accumulator; ///< ADAGRAD, FTRL: above 0 [0.1]
    double rmsprop_decay;       ///< RMSPROP: d, below 1 [0.9]
    double rmsprop_momentum;    ///< RMSPROP: mu, below 1 [off]
    bool rmsprop_centered;      ///< RMSPROP
    double adadelta_decay;      ///< ADADELTA: d, below 1 [0.95]
    double learning_rate_power; ///< FTRL: from -1 to below 0 [-0.5]
    double ftrl_l1;             ///< FTRL: ≥ 0 [off]
    double ftrl_l2;             ///< FTRL: ≥ 0 [off]
    double ftrl_l2_shrinkage;   ///< FTRL: ≥ 0 [off]
    double lars_trust;          ///< LARS: above 0 [0.001]
    /// Adds weight_decay · p to the clipped gradient; ADAMW, LAMB and LARS as in their formulae; at
    /// most 1 [off]
    double weight_decay;
    double clip_value; ///< each element into [-clip_value, clip_value] [off]
    /// Each variable's gradient to at most this L2 norm. Neither this nor clip_global_norm works
    /// with LAMB and LARS, which use the norms themselves. [off]
    double clip_norm;
    double clip_global_norm; ///< all gradients to at most this common L2 norm; not both [off]
    bel_schedule schedule;   ///< schedule of learning_rate [constant]
    /// Factors of learning_rate and weight_decay by variable; the last matching pattern applies.
    /// With a rate of 0 a variable stays as it is, while its slots still change (but LARS's slot
    /// contains the rate). FTRL, which divides by the rate, allows no lr_mults. It is an error when
    /// training begins if a pattern matches no trainable variable, or none that this optimizer
    /// trains (bel_optimizer_use).
    bel_multiplier lr_mults[BEL_MAX_MULTIPLIERS];
    bel_multiplier decay_mults[BEL_MAX_MULTIPLIERS];
    /// Divides the gradient of a table's row by the number of replicas whose batch names the row,
    /// as sparse gradients of TensorFlow's SyncReplicasOptimizer do. Otherwise: by all counted
    /// replicas, as for a dense variable whose other gradients are 0. [off]
    bool mean_by_contributors;
    /// Applies clip_value, clip_norm and clip_global_norm to the gradient of each replica, in f32,
    /// before the average, so that an outlier batch counts no more than others. Otherwise: to the
    /// average. Not for tables of rows. Micro-batches (accumulation) count as replicas. [off]
    bool clip_each_replica;
    /// The moving average's d is min(d, (1 + step) / (10 + step)), step from 0 (num_updates).
    bool moving_average_ramp;
    /// Keeps an average q of every trainable variable p, as TensorFlow's ExponentialMovingAverage:
    /// q begins as p, and after each update q -= (1 - d) (q - p), [0, 1) [off]. Checkpoints store
    /// it as "<variable>/average"; evaluation and prediction use it.
    double moving_average_decay;
} bel_optimizer;

/// Parses a list "dense_0/*=0.1,*/bias=0" of at most BEL_MAX_MULTIPLIERS items; "" is an empty one.
/// `out_list` is set completely, and only on success. INVALID_ARGUMENT names the item that is
/// malformed or too long. Training checks the factors.
BEL_API bel_status *
bel_multipliers_parse(const char *text, bel_multiplier out_list[BEL_MAX_MULTIPLIERS]) BEL_MUST_USE;

#ifdef __cplusplus
}
#endif

#endif
