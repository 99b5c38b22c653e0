// Update rules as vector loops, compiled once for each level of base/isa_levels.h, its BEL_LEVEL.
// All levels give the same bits: no fused multiply-add (-ffp-contract=off), sums over eight lanes
// that are added pairwise, roots and divisions that IEEE rounds alike, and no pow or exp. An
// element's update depends only on that element, so cuts into chunks, rows and pieces do not
// matter. New values may be the old array or the gradient's; slots are separate arrays. Rows of 8,
// 16 and 32 elements inline the same bodies, with the width as a constant.

// Bodies that bel_rule_apply_rows inlines for rows of fixed widths.
#define INLINE inline __attribute__((always_inline))
#define BEL_RULE_INLINE static INLINE

#include "optim/rule.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// New values may overwrite their old values, or the gradient: an element depends on no other one.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" // bel_rule_root_power stays a plain loop
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
    for (int64_t i = 0; i < n; i++)
        out[i] = bel_rule_scaled(sum[i], scale, limit);
}

// Rules over n elements: of `gradient` times `factor` or, if `adds`, of the sum of `gradient` and
// `right`, times `factor` and clipped. The numbers are copied, so that the compiler knows that no
// element changes them. Slots that a rule lacks are NULL and not read. Conditions are constants
// wherever the body is inlined.
#define OPERANDS                                                                                   \
    const bel_rule_step *step, const float *gradient, const float *right, float factor,            \
        const float *values, float *new_values, float *const *slots, int64_t n
#define SAME_OPERANDS step, gradient, right, factor, values, new_values, slots, n
#define LOOP(element)                                                                              \
    const bel_rule_step copy = *step, *s = &copy;                                                  \
    float *restrict a = slots[0], *restrict b = slots[1], *restrict c = slots[2];                  \
    const float limit = s->clip_value == 0.0f ? INFINITY : s->clip_value;                          \
    (void)a, (void)b, (void)c, (void)limit;                                                        \
    EACH_ALONE                                                                                     \
    for (int64_t i = 0; i < n; i++)                                                                \
    new_values[i] = element
#define GIVEN                                                                                      \
    s, adds ? bel_rule_clipped((gradient[i] + right[i]) * factor, limit) : gradient[i],            \
        adds ? 1.0f : factor, values[i]
#define A (&a[i])
#define B (&b[i])
#define C (&c[i])
#define KERNELS(name)                                                                              \
    static INLINE void name(const bel_rule_step *step, const float *gradient, float factor,        \
                            const float *values, float *new_values, float *const *slots,           \
                            int64_t n)                                                             \
    {                                                                                              \
        const float *right = NULL;                                                                 \
        name##_over(SAME_OPERANDS, false);                                                         \
    }                                                                                              \
    static void name##_sum(OPERANDS)                                                               \
    {                                                                                              \
        name##_over(SAME_OPERANDS, true);                                                          \
    }
#define RULE_OVER(number, name, arguments)                                                         \
    static INLINE void name##_over(OPERANDS, const bool adds)                                      \
    {                                                                                              \
        LOOP(bel_rule_##name arguments);                                                           \
    }                                                                                              \
    KERNELS(name)
#define VARIED_OVER(number, name, condition, other, arguments)                                     \
    static INLINE void name##_as(OPERANDS, const bool adds, const bool first, const bool second)   \
    {                                                                                              \
        (void)second;                                                                              \
        LOOP(bel_rule_##name arguments);                                                           \
    }                                                                                              \
    static INLINE void name##_over(OPERANDS, const bool adds)                                      \
    {                                                                                              \
        const bel_rule_step *s = step;                                                             \
        if ((condition) && (other)) {                                                              \
            name##_as(SAME_OPERANDS, adds, true, true);                                            \
        } else if (condition) {                                                                    \
            name##_as(SAME_OPERANDS, adds, true, false);                                           \
        } else if (other) {                                                                        \
            name##_as(SAME_OPERANDS, adds, false, true);                                           \
        } else {                                                                                   \
            name##_as(SAME_OPERANDS, adds, false, false);                                          \
        }                                                                                          \
    }                                                                                              \
    KERNELS(name)
BEL_EACH_RULE(RULE_OVER, VARIED_OVER)

static void lamb_direction(const bel_rule_step *step, const float *gradient, float factor,
                           const float *values, float *new_values, float *const *slots, int64_t n)
{
    const float *right = NULL;
    const bool adds = false;
    LOOP(bel_rule_lamb_direction(GIVEN, A, B));
}

static void average(const float *values, float rest, float *averages, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        averages[i] = bel_rule_averaged(averages[i], values[i], rest);
}

// Updates rows one by one. With a constant `width` a row is a few vectors without a loop. Without
// clipping the scale replaces the factor, which multiplies likewise.
static INLINE void apply_to_rows(bel_rule_kernel *rule, const bel_rule_step *step,
                                 const float *restrict sums, float scale, float *const *rows,
                                 int first_slot, int width, int64_t n)
{
    enum { PIECE = 64 };
    for (int64_t i = 0; i < n; i++, sums += width) {
        float *row = rows[i];
        float *first = row + (first_slot + 1) * (int64_t)width;
        float *slots[BEL_RULE_MAX_SLOTS] = {first, first + width}; // the rule's slots
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
ROWS_OF(adamw)
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

#define RULE_AT(number, name, ...) [number] = name,
#define SUM_AT(number, name, ...) [number] = name##_sum,
const bel_rule_kernels JOIN(bel_rule_kernels_, BEL_LEVEL) = {
    .scale = scale_by,
    .apply = {BEL_EACH_RULE(RULE_AT, RULE_AT)},
    .apply_sum = {BEL_EACH_RULE(SUM_AT, SUM_AT)},
    .prepare = lamb_direction,
    .average = average,
    .apply_rows = {[BEL_OPTIMIZER_SGD] = sgd_rows,
                   [BEL_OPTIMIZER_ADAM] = adam_rows,
                   [BEL_OPTIMIZER_ADAGRAD] = adagrad_rows,
                   [BEL_OPTIMIZER_ADAMW] = adamw_rows,
                   [BEL_OPTIMIZER_FTRL] = ftrl_rows},
    .sum_square = sum_square,
};
