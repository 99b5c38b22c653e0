// Update rules for one element: the numbers of a step, and the update that they make of a gradient.
// The code is plain C that both compilers vectorize (rule_isa.c). GPU kernels are compiled from it
// as well (cuda/kernels/update.cu). For equal bits it uses only operations that IEEE rounds alike,
// and fuses none.
#ifndef BELFRY_OPTIM_RULE_ELEMENT_H
#define BELFRY_OPTIM_RULE_ELEMENT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef BEL_RULE_INLINE
#define BEL_RULE_INLINE static inline
#endif

#define BEL_RULE_POWER_BITS 24
#define BEL_RULE_ROOT ((uint32_t)1 << (BEL_RULE_POWER_BITS - 1)) // the power 1/2

// Decay of moving means, stored as the smaller part of 1: 1 - decay with `keeps`, else the decay.
typedef struct bel_rule_decay {
    bool keeps;
    float part;
} bel_rule_decay;

// Numbers of one step, in the type in which they are used.
typedef struct bel_rule_step {
    int32_t kind; // bel_optimizer_kind
    bool nesterov;
    float rate; // ADAM, ADAMW: learning rate / (1 - beta1^t); FTRL: 1 / learning rate
    float momentum, epsilon;
    bel_rule_decay beta1, beta2;
    float mean;           // LAMB: 1 / (1 - beta1^t)
    double trust;         // LARS
    float root;           // ADAM, ADAMW, LAMB: 1 / sqrt(1 - beta2^t)
    bool centered;        // RMSPROP
    bel_rule_decay decay; // RMSPROP, ADADELTA: decay of the means
    float shrink;         // ADAMW: 1 - learning rate · weight decay
    uint32_t power;       // FTRL: -learning_rate_power in units of 2^-BEL_RULE_POWER_BITS
    float l1, twice_l2, twice_shrinkage; // FTRL
    float weight_decay;                  // 0: none
    float clip_value;                    // 0: none
} bel_rule_step;

// Flushes a number that is kept from step to step to 0 if it is subnormal. Processors take a
// hundred times as long for such numbers. A decaying number would end as one of them instead of 0,
// as its last steps round to nothing.
BEL_RULE_INLINE float bel_rule_normal(float x)
{
    return fabsf(x) < 1.17549435e-38f ? 0.0f : x;
}

// Advances a moving mean by one step: from the operand with the larger part towards the other. So
// the parts add up to 1 and the smaller one is exact to the last digit. A decay near 1 that is
// rounded to f32 would leave a part that is off by percents.
BEL_RULE_INLINE float bel_rule_mean(bel_rule_decay decay, float mean, float x)
{
    float from = decay.keeps ? mean : x, to = decay.keeps ? x : mean;
    return bel_rule_normal(from + decay.part * (to - from));
}

BEL_RULE_INLINE float bel_rule_clipped(float g, float limit)
{
    g = g > limit ? limit : g;
    return g < -limit ? -limit : g;
}

// Scales a sum of gradients and, with a limit, clips it.
BEL_RULE_INLINE float bel_rule_scaled(float sum, float scale, float limit)
{
    return limit == 0.0f ? sum * scale : bel_rule_clipped(sum * scale, limit);
}

BEL_RULE_INLINE float bel_rule_averaged(float average, float value, float rest)
{
    return bel_rule_normal(average - rest * (average - value));
}

// --- Rules ---------------------------------------------------------------------------------------
// Each rule returns the new value from the gradient times `factor` (norm clipping or trust) and the
// value, and updates the slots.

BEL_RULE_INLINE float bel_rule_sgd(const bel_rule_step *s, float gradient, float factor,
                                   float value)
{
    float g = gradient * factor + s->weight_decay * value;
    return value - s->rate * g;
}

BEL_RULE_INLINE float bel_rule_momentum(const bel_rule_step *s, float gradient, float factor,
                                        float value, float *m)
{
    float g = gradient * factor + s->weight_decay * value;
    *m = bel_rule_normal(s->momentum * *m + g);
    return value - s->rate * (s->nesterov ? g + s->momentum * *m : *m);
}

// Updates m and v of Adam and its variants.
BEL_RULE_INLINE void bel_rule_moments(const bel_rule_step *s, float g, float *m, float *v)
{
    *m = bel_rule_mean(s->beta1, *m, g);
    *v = bel_rule_mean(s->beta2, *v, g * g);
}

BEL_RULE_INLINE float bel_rule_adam(const bel_rule_step *s, float gradient, float factor,
                                    float value, float *m, float *v)
{
    bel_rule_moments(s, gradient * factor + s->weight_decay * value, m, v);
    return value - s->rate * (*m / (sqrtf(*v) * s->root + s->epsilon));
}

BEL_RULE_INLINE float bel_rule_adamw(const bel_rule_step *s, float gradient, float factor,
                                     float value, float *m, float *v)
{
    bel_rule_moments(s, gradient * factor, m, v);
    return value * s->shrink - s->rate * (*m / (sqrtf(*v) * s->root + s->epsilon));
}

BEL_RULE_INLINE float bel_rule_adagrad(const bel_rule_step *s, float gradient, float factor,
                                       float value, float *sum)
{
    float g = gradient * factor + s->weight_decay * value;
    *sum = *sum + g * g;
    return value - s->rate * (g / (sqrtf(*sum) + s->epsilon));
}

// Returns the root that divides, sqrt(v) or sqrt(v - c c), after updating v and c. The difference
// is below 0 only by rounding. `c` and `m` are NULL if the rule lacks them.
BEL_RULE_INLINE float bel_rule_spread(const bel_rule_step *s, float g, float *v, float *c)
{
    *v = bel_rule_mean(s->decay, *v, g * g);
    if (c == NULL) return sqrtf(*v);
    *c = bel_rule_mean(s->decay, *c, g);
    float variance = *v - *c * *c;
    return sqrtf(variance > 0.0f ? variance : 0.0f);
}

BEL_RULE_INLINE float bel_rule_rmsprop(const bel_rule_step *s, float gradient, float factor,
                                       float value, float *v, float *c, float *m)
{
    float g = gradient * factor + s->weight_decay * value;
    float u = g / (bel_rule_spread(s, g, v, c) + s->epsilon);
    if (m != NULL) u = *m = bel_rule_normal(s->momentum * *m + u);
    return value - s->rate * u;
}

BEL_RULE_INLINE float bel_rule_adadelta(const bel_rule_step *s, float gradient, float factor,
                                        float value, float *v, float *x)
{
    float g = gradient * factor + s->weight_decay * value;
    *v = bel_rule_mean(s->decay, *v, g * g);
    float u = g * (sqrtf(*x + s->epsilon) / sqrtf(*v + s->epsilon));
    *x = bel_rule_mean(s->decay, *x, u * u);
    return value - s->rate * u;
}

// x to the power bits / 2^BEL_RULE_POWER_BITS, in (0, 1]: the product of the roots whose bits are
// set. Roots and products round alike everywhere; pow does not.
BEL_RULE_INLINE float bel_rule_root_power(float x, uint32_t bits)
{
    const uint32_t half = BEL_RULE_ROOT;
    if (bits == 2 * half) return x;
    double root = (double)x, product = 1;
    for (uint32_t left = bits; left != 0; left = (left << 1) & (2 * half - 1)) {
        root = sqrt(root);
        if ((left & half) != 0) product *= root;
    }
    return (float)product;
}

// `root`: the power is 1/2.
BEL_RULE_INLINE float bel_rule_ftrl(const bel_rule_step *s, float gradient, float factor,
                                    float value, bool root, float *sum, float *z)
{
    float inverse = s->rate, g = gradient * factor + s->weight_decay * value;
    float before = root ? sqrtf(*sum) : bel_rule_root_power(*sum, s->power);
    *sum = *sum + g * g;
    float after = root ? sqrtf(*sum) : bel_rule_root_power(*sum, s->power);
    float pulled = g + s->twice_shrinkage * value;
    *z = *z + (pulled - (after - before) * inverse * value);
    float beyond = *z > 0.0f ? s->l1 - *z : -s->l1 - *z;
    return fabsf(*z) <= s->l1 ? 0.0f : beyond / (after * inverse + s->twice_l2);
}

// LAMB makes two passes: its direction, and then the update along it.
BEL_RULE_INLINE float bel_rule_lamb_direction(const bel_rule_step *s, float gradient, float factor,
                                              float value, float *m, float *v)
{
    bel_rule_moments(s, gradient * factor, m, v);
    return *m * s->mean / (sqrtf(*v) * s->root + s->epsilon) + s->weight_decay * value;
}

BEL_RULE_INLINE float bel_rule_lamb(const bel_rule_step *s, float direction, float factor,
                                    float value)
{
    return value - s->rate * (direction * factor);
}

BEL_RULE_INLINE float bel_rule_lars(const bel_rule_step *s, float gradient, float factor,
                                    float value, float *m)
{
    float g = (gradient + s->weight_decay * value) * factor;
    *m = bel_rule_normal(s->momentum * *m + s->rate * g);
    return value - *m;
}

// --- Table of rules -----------------------------------------------------------------------------
// RULE(number of the kind, name, arguments) or, if settings select different loops, VARIED(number,
// name, a condition, another one, arguments). The user of the table defines GIVEN (`s`, the
// numbers, gradient, factor, value) and A, B and C, the element's slots, and has the two conditions
// as `first` and `second`.

#define BEL_EACH_RULE(RULE, VARIED)                                                                \
    RULE(0, sgd, (GIVEN))                                                                          \
    RULE(1, momentum, (GIVEN, A))                                                                  \
    RULE(2, adam, (GIVEN, A, B))                                                                   \
    RULE(3, adagrad, (GIVEN, A))                                                                   \
    VARIED(4, rmsprop, s->centered, s->momentum > 0.0f,                                            \
           (GIVEN, A, first ? B : NULL, second ? (first ? C : B) : NULL))                          \
    RULE(5, adamw, (GIVEN, A, B))                                                                  \
    VARIED(6, ftrl, s->power == BEL_RULE_ROOT, false, (GIVEN, first, A, B))                        \
    RULE(7, lamb, (GIVEN))                                                                         \
    RULE(8, lars, (GIVEN, A))                                                                      \
    RULE(9, adadelta, (GIVEN, A, B))
#define BEL_RULE_LAMB 7 // rule with a separate direction

#endif
