// Update rules over ranges: pure functions of (gradient, parameter, slots, step). The bits of an
// element do not depend on where its range begins.
#ifndef BELFRY_OPTIM_RULE_H
#define BELFRY_OPTIM_RULE_H

#include "base/isa_levels.h"
#include "belfry/optimizer.h"
#include "optim/rule_element.h"

enum { BEL_RULE_MAX_SLOTS = 3 };

typedef struct bel_rule {
    const char *name;                      // "adam"
    int slot_count;                        // number of parameter-sized arrays that the rule keeps
    const char *slots[BEL_RULE_MAX_SLOTS]; // "m", "v"
    bool accumulates;                      // slot 0 begins at initial_accumulator
    bool trusts;   // factors follow from the norms of variable and direction: bel_rule_trust
    bool prepares; // bel_rule_prepare computes the direction from the gradient
} bel_rule;

// Checks the rates and boundaries of a piecewise schedule. INVALID_ARGUMENT names the invalid one.
bel_status *bel_pieces_check(const bel_schedule *schedule) BEL_MUST_USE;

const bel_rule *bel_rule_get(const bel_optimizer *optimizer);

// Number of parameter-sized arrays kept with the parameters: slots and averages.
int bel_rule_kept(const bel_optimizer *optimizer);

// Writes the name of a slot in a checkpoint: "dense_0/kernel/adam/m". If several step functions
// update the variable, the layer-th further one has its layer in the name,
// "dense_0/kernel/adam/1/m". Returns the length.
enum { BEL_RULE_SLOT_TEXT = 40 }; // room after the variable's name, with the closing 0
int bel_rule_slot_name(char *out, size_t room, const char *variable, const bel_rule *rule,
                       int layer, int slot);

// Value of every element of a slot before the first step.
float bel_rule_slot_start(const bel_optimizer *optimizer, int slot);

bel_rule_decay bel_rule_decay_of(double decay);

// Computes the numbers of a step. `step` counts from 0; the optimizer must have passed
// bel_optimizer_check.
bel_rule_step bel_rule_begin(const bel_optimizer *optimizer, int64_t step);

// The same for variables with separate factors for learning rate and weight decay. `updates` is the
// number of updates that were made before: `step`, unless replicas make several local ones in a
// step. Schedules count steps, corrections of a moment's bias count updates.
bel_rule_step bel_rule_begin_scaled(const bel_optimizer *optimizer, int64_t step, int64_t updates,
                                    double lr_factor, double decay_factor);

// Bounds of the averaged gradient. 0: no bound, or each replica's gradient was clipped before.
static inline double bel_rule_clip_value(const bel_optimizer *optimizer)
{
    return optimizer->clip_each_replica ? 0 : optimizer->clip_value;
}

static inline double bel_rule_clip_norm(const bel_optimizer *optimizer)
{
    return optimizer->clip_each_replica ? 0 : optimizer->clip_norm;
}

static inline double bel_rule_clip_global_norm(const bel_optimizer *optimizer)
{
    return optimizer->clip_each_replica ? 0 : optimizer->clip_global_norm;
}

// Computes out = clip(sum * scale) for n elements in one pass, with clip_value.
void bel_rule_scale(const bel_rule_step *step, const float *sum, float scale, float *out,
                    int64_t n);

// Rules that trust make two passes. The first computes the direction of n elements from the scaled
// gradient, which may be the same array, and updates slots in place. The second, after the norms of
// whole variables, updates values with the direction as gradient and the factor of bel_rule_trust.
void bel_rule_prepare(const bel_rule_step *step, const float *gradient, const float *values,
                      float *direction, float *const *slots, int64_t n);
float bel_rule_trust(const bel_rule_step *step, double values_square, double direction_square);

// Computes new_values = update(values, gradient * factor) for n elements. `slots` has
// BEL_RULE_MAX_SLOTS entries, of which the rule uses the first; they are updated in place. `factor`
// is the factor of norm clipping (1: none), or trust. new_values may be the array of values or that
// of the gradient.
void bel_rule_apply(const bel_rule_step *step, const float *gradient, float factor,
                    const float *values, float *new_values, float *const *slots, int64_t n);

// The same for the sum of two gradients: update(values, clip((left + right) * scale)). Has the bits
// of an addition, bel_rule_scale and bel_rule_apply in one pass. new_values may be the array of
// values.
void bel_rule_apply_sum(const bel_rule_step *step, const float *left, const float *right,
                        float scale, const float *values, float *new_values, float *const *slots,
                        int64_t n);

// Computes averages -= rest (averages - values) for n elements; `rest` is 1 - decay of the step.
float bel_rule_average_rest(const bel_optimizer *optimizer, int64_t step);
void bel_rule_average(const float *values, float rest, float *averages, int64_t n);

// Updates rows of a table in place: values = update(values, clip(sums × scale)). `sums` holds n
// rows of `width`. rows[i] points to row i: its values, then slots of `width` elements each. This
// rule's slots begin with number `first_slot`. Gives the bits of bel_rule_scale and bel_rule_apply
// with one call for many short rows.
bool bel_rule_has_rows(bel_optimizer_kind kind); // SGD, ADAM, ADAGRAD, ADAMW, FTRL
void bel_rule_apply_rows(const bel_rule_step *step, const float *sums, float scale,
                         float *const *rows, int first_slot, int width, int64_t n);

// Sums the squares of n elements, in double, in a fixed order.
double bel_rule_sum_square(const float *values, int64_t n);

// Vector kernels, one table per instruction-set level: ops/kernels/cpu.h explains the idea.
typedef void bel_rule_kernel(const bel_rule_step *step, const float *gradient, float factor,
                             const float *values, float *new_values, float *const *slots,
                             int64_t n);

typedef void bel_rule_sum_kernel(const bel_rule_step *step, const float *left, const float *right,
                                 float scale, const float *values, float *new_values,
                                 float *const *slots, int64_t n);

typedef void bel_rule_rows_kernel(const bel_rule_step *step, const float *sums, float scale,
                                  float *const *rows, int first_slot, int width, int64_t n);

typedef struct bel_rule_kernels {
    void (*scale)(const float *sum, float scale, float limit, float *out, int64_t n);
    bel_rule_kernel *apply[BEL_OPTIMIZER_COUNT];         // by kind
    bel_rule_sum_kernel *apply_sum[BEL_OPTIMIZER_COUNT]; // by kind
    bel_rule_kernel *prepare;                            // LAMB: the direction into new_values
    void (*average)(const float *values, float rest, float *averages, int64_t n);
    bel_rule_rows_kernel *apply_rows[BEL_OPTIMIZER_COUNT]; // by kind; NULL: not for rows
    double (*sum_square)(const float *values, int64_t n);
} bel_rule_kernels;
BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_rule_kernels)

#endif
