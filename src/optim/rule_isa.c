// Update rules as vector loops, compiled once for each level of base/isa_levels.h, its BEL_LEVEL.
// All levels give the same bits: no fused multiply-add (-ffp-contract=off), sums over eight lanes
// that are added pairwise, roots and divisions that IEEE rounds alike, and no pow or exp. An
// element's update depends on that element alone, so cuts into chunks, rows and pieces do not
// enter. New values may be the old array; slots are arrays apart from both. Rows of 8, 16 and 32
// elements inline the same bodies, with the width as a constant.
#include <math.h>

#include "optim/rule.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// Bodies that bel_rule_apply_rows inlines for rows of fixed widths.
#define INLINE inline __attribute__((always_inline))

// New values may overwrite the values they come from: an element depends on no other one.
#if defined(__clang__)
#define EACH_ALONE _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ALONE _Pragma("GCC ivdep")
#endif

enum { LANES = 8 }; // doubles

static void scale_by(const float *sum, float scale, float limit, float *out, int64_t n)
{
    if (limit == 0.0f) {
        for (int64_t i = 0; i < n; i++)
            out[i] = sum[i] * scale;
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        float g = sum[i] * scale;
        g = g > limit ? limit : g;
        out[i] = g < -limit ? -limit : g;
    }
}

// A moving mean, one step on: from the one of the two that has the larger part towards the other
// one. So the parts add up to 1 and the smaller one is exact to the last digit; a decay near 1 that
// is rounded to f32 leaves a part that is off by percents.
static INLINE float mean_of(bel_rule_decay decay, float mean, float x)
{
    float from = decay.keeps ? mean : x, to = decay.keeps ? x : mean;
    return from + decay.part * (to - from);
}

static INLINE void sgd(const bel_rule_step *step, const float *gradient, float factor,
                       const float *values, float *new_values, float *const *slots, int64_t n)
{
    (void)slots;
    float rate = step->rate, decay = step->weight_decay;
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        new_values[i] = values[i] - rate * g;
    }
}

static void momentum(const bel_rule_step *step, const float *gradient, float factor,
                     const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, mu = step->momentum;
    float *restrict m = slots[0];
    if (step->nesterov) {
        EACH_ALONE
        for (int64_t i = 0; i < n; i++) {
            float g = gradient[i] * factor + decay * values[i];
            m[i] = mu * m[i] + g;
            new_values[i] = values[i] - rate * (g + mu * m[i]);
        }
        return;
    }
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        m[i] = mu * m[i] + g;
        new_values[i] = values[i] - rate * m[i];
    }
}

static INLINE void adam(const bel_rule_step *step, const float *gradient, float factor,
                        const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, root = step->root;
    bel_rule_decay b1 = step->beta1, b2 = step->beta2;
    float epsilon = step->epsilon, *restrict m = slots[0], *restrict v = slots[1];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        m[i] = mean_of(b1, m[i], g);
        v[i] = mean_of(b2, v[i], g * g);
        new_values[i] = values[i] - rate * (m[i] / (sqrtf(v[i]) * root + epsilon));
    }
}

static void adamw(const bel_rule_step *step, const float *gradient, float factor,
                  const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, shrink = step->shrink, root = step->root;
    bel_rule_decay b1 = step->beta1, b2 = step->beta2;
    float epsilon = step->epsilon, *restrict m = slots[0], *restrict v = slots[1];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor;
        m[i] = mean_of(b1, m[i], g);
        v[i] = mean_of(b2, v[i], g * g);
        new_values[i] = values[i] * shrink - rate * (m[i] / (sqrtf(v[i]) * root + epsilon));
    }
}

static INLINE void adagrad(const bel_rule_step *step, const float *gradient, float factor,
                           const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, epsilon = step->epsilon;
    float *restrict s = slots[0];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        s[i] = s[i] + g * g;
        new_values[i] = values[i] - rate * (g / (sqrtf(s[i]) + epsilon));
    }
}

// The root that divides, for n elements: sqrt(v), or sqrt(v - c c), with v and c brought up to
// date. The difference is no less than 0 but for rounding.
static inline float spread(const bel_rule_step *step, float g, float *v, float *c)
{
    *v = mean_of(step->decay, *v, g * g);
    if (!step->centered) return sqrtf(*v);
    *c = mean_of(step->decay, *c, g);
    float variance = *v - *c * *c;
    return sqrtf(variance > 0.0f ? variance : 0.0f);
}

static void rmsprop(const bel_rule_step *step, const float *gradient, float factor,
                    const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, epsilon = step->epsilon;
    float mu = step->momentum, none = 0.0f;
    bool centered = step->centered;
    float *v = slots[0], *c = centered ? slots[1] : NULL;
    float *m = mu > 0.0f ? slots[centered ? 2 : 1] : NULL;
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        float u = g / (spread(step, g, &v[i], c != NULL ? &c[i] : &none) + epsilon);
        if (m != NULL) u = m[i] = mu * m[i] + u;
        new_values[i] = values[i] - rate * u;
    }
}

static void adadelta(const bel_rule_step *step, const float *gradient, float factor,
                     const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, epsilon = step->epsilon;
    float *restrict v = slots[0], *restrict x = slots[1];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        v[i] = mean_of(step->decay, v[i], g * g);
        float u = g * (sqrtf(x[i] + epsilon) / sqrtf(v[i] + epsilon));
        x[i] = mean_of(step->decay, x[i], u * u);
        new_values[i] = values[i] - rate * u;
    }
}

// x to the power bits / 2^BEL_RULE_POWER_BITS, in (0, 1]: the product of the roots whose bits are
// set. Roots and products are rounded alike everywhere, which pow is not.
static inline float root_power(float x, uint32_t bits)
{
    const uint32_t half = UINT32_C(1) << (BEL_RULE_POWER_BITS - 1);
    if (bits == half) return sqrtf(x);
    if (bits == 2 * half) return x;
    double root = (double)x, product = 1;
    for (uint32_t left = bits; left != 0; left = (left << 1) & (2 * half - 1)) {
        root = sqrt(root);
        if ((left & half) != 0) product *= root;
    }
    return (float)product;
}

static INLINE void ftrl(const bel_rule_step *step, const float *gradient, float factor,
                        const float *values, float *new_values, float *const *slots, int64_t n)
{
    float inverse = step->rate, decay = step->weight_decay, l1 = step->l1;
    float l2 = step->twice_l2, shrinkage = step->twice_shrinkage;
    float *restrict s = slots[0], *restrict z = slots[1];
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor + decay * values[i];
        float before = root_power(s[i], step->power);
        s[i] = s[i] + g * g;
        float after = root_power(s[i], step->power);
        float pulled = g + shrinkage * values[i];
        z[i] = z[i] + (pulled - (after - before) * inverse * values[i]);
        float beyond = z[i] > 0.0f ? l1 - z[i] : -l1 - z[i];
        new_values[i] = fabsf(z[i]) <= l1 ? 0.0f : beyond / (after * inverse + l2);
    }
}

static void lamb_direction(const bel_rule_step *step, const float *gradient, float factor,
                           const float *values, float *direction, float *const *slots, int64_t n)
{
    float mean = step->mean, root = step->root, decay = step->weight_decay;
    bel_rule_decay b1 = step->beta1, b2 = step->beta2;
    float epsilon = step->epsilon, *restrict m = slots[0], *restrict v = slots[1];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = gradient[i] * factor;
        m[i] = mean_of(b1, m[i], g);
        v[i] = mean_of(b2, v[i], g * g);
        direction[i] = m[i] * mean / (sqrtf(v[i]) * root + epsilon) + decay * values[i];
    }
}

static void lamb(const bel_rule_step *step, const float *direction, float factor,
                 const float *values, float *new_values, float *const *slots, int64_t n)
{
    (void)slots; // lamb_direction has brought them up to date
    float rate = step->rate;
    EACH_ALONE
    for (int64_t i = 0; i < n; i++)
        new_values[i] = values[i] - rate * (direction[i] * factor);
}

static void lars(const bel_rule_step *step, const float *gradient, float factor,
                 const float *values, float *new_values, float *const *slots, int64_t n)
{
    float rate = step->rate, decay = step->weight_decay, mu = step->momentum;
    float *restrict m = slots[0];
    EACH_ALONE
    for (int64_t i = 0; i < n; i++) {
        float g = (gradient[i] + decay * values[i]) * factor;
        m[i] = mu * m[i] + rate * g;
        new_values[i] = values[i] - m[i];
    }
}

static void average(const float *values, float rest, float *averages, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        averages[i] = averages[i] - rest * (averages[i] - values[i]);
}

// Rows one by one. With `width` a constant the row is a handful of vectors without a loop; without
// clipping the scale takes the place of the factor, which multiplies likewise.
static INLINE void apply_to_rows(bel_rule_kernel *rule, const bel_rule_step *step,
                                 const float *restrict sums, float scale, float *const *rows,
                                 int first_slot, int width, int64_t n)
{
    enum { PIECE = 64 };
    for (int64_t i = 0; i < n; i++, sums += width) {
        float *row = rows[i];
        float *first = row + (first_slot + 1) * (int64_t)width;
        float *slots[BEL_RULE_MAX_SLOTS] = {first, first + width};
        if (step->clip_value == 0.0f) {
            rule(step, sums, scale, row, row, slots, width);
            continue;
        }
        for (int at = 0; at < width; at += PIECE) {
            int count = width - at < PIECE ? width - at : PIECE;
            float gradient[PIECE];
            scale_by(sums + at, scale, step->clip_value, gradient, count);
            rule(step, gradient, 1.0f, row + at, row + at, slots, count);
            for (int k = 0; k < BEL_RULE_MAX_SLOTS && slots[k] != NULL; k++)
                slots[k] += count;
        }
    }
}

#define ROWS_OF(rule)                                                                              \
    static void rule##_rows(const bel_rule_step *step, const float *sums, float scale,             \
                            float *const *rows, int first_slot, int width, int64_t n)              \
    {                                                                                              \
        switch (width) {                                                                           \
        case 8: apply_to_rows(rule, step, sums, scale, rows, first_slot, 8, n); break;             \
        case 16: apply_to_rows(rule, step, sums, scale, rows, first_slot, 16, n); break;           \
        case 32: apply_to_rows(rule, step, sums, scale, rows, first_slot, 32, n); break;           \
        default: apply_to_rows(rule, step, sums, scale, rows, first_slot, width, n); break;        \
        }                                                                                          \
    }
ROWS_OF(sgd)
ROWS_OF(adam)
ROWS_OF(adagrad)
ROWS_OF(ftrl)

static double sum_square(const float *values, int64_t n)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += (double)values[i + l] * (double)values[i + l];
    for (int l = 0; i < n; i++, l++)
        lanes[l] += (double)values[i] * (double)values[i];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            lanes[l] += lanes[l + half];
    return lanes[0];
}

const bel_rule_kernels JOIN(bel_rule_kernels_, BEL_LEVEL) = {
    .scale = scale_by,
    .apply = {[BEL_OPTIMIZER_SGD] = sgd,
              [BEL_OPTIMIZER_MOMENTUM] = momentum,
              [BEL_OPTIMIZER_ADAM] = adam,
              [BEL_OPTIMIZER_ADAMW] = adamw,
              [BEL_OPTIMIZER_ADAGRAD] = adagrad,
              [BEL_OPTIMIZER_FTRL] = ftrl,
              [BEL_OPTIMIZER_LAMB] = lamb,
              [BEL_OPTIMIZER_LARS] = lars,
              [BEL_OPTIMIZER_RMSPROP] = rmsprop,
              [BEL_OPTIMIZER_ADADELTA] = adadelta},
    .prepare = lamb_direction,
    .average = average,
    .apply_rows = {[BEL_OPTIMIZER_SGD] = sgd_rows,
                   [BEL_OPTIMIZER_ADAM] = adam_rows,
                   [BEL_OPTIMIZER_ADAGRAD] = adagrad_rows,
                   [BEL_OPTIMIZER_FTRL] = ftrl_rows},
    .sum_square = sum_square,
};
