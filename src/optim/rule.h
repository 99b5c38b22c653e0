// Update rules over ranges: pure functions of (gradient, parameter, slots, step). They give an
// element the same bits wherever its range begins.
#ifndef BELFRY_OPTIM_RULE_H
#define BELFRY_OPTIM_RULE_H

#include "base/isa_levels.h"
#include "belfry/optimizer.h"
#include "optim/rule_element.h"

enum { BEL_RULE_MAX_SLOTS = 3 };

typedef struct bel_rule {
    const char *name;                      // "adam"
    int slot_count;                        // arrays as large as the parameters that the rule keeps
    const char *slots[BEL_RULE_MAX_SLOTS]; // "m", "v"
    bool accumulates;                      // slot 0 begins at initial_accumulator
    bool trusts;   // its factors follow from the norms of variable and direction: bel_rule_trust
    bool prepares; // the direction is not the gradient, but what bel_rule_prepare makes of it
} bel_rule;

// The rates and boundaries of a piecewise schedule. INVALID_ARGUMENT names the one that cannot be.
bel_status *bel_pieces_check(const bel_schedule *schedule) BEL_MUST_USE;

const bel_rule *bel_rule_get(const bel_optimizer *optimizer);

// Arrays as large as the parameters that are kept beside them: slots and averages.
int bel_rule_kept(const bel_optimizer *optimizer);

// The name of a slot in a checkpoint: "dense_0/kernel/adam/m"; where several step functions update
// the variable, that of the layer-th further one has the layer in it, "dense_0/kernel/adam/1/m".
// Returns its length.
enum { BEL_RULE_SLOT_TEXT = 40 }; // room behind the variable's name, the closing 0 among it
int bel_rule_slot_name(char *out, size_t room, const char *variable, const bel_rule *rule,
                       int layer, int slot);

// What every element of a slot is before the first step.
float bel_rule_slot_start(const bel_optimizer *optimizer, int slot);

bel_rule_decay bel_rule_decay_of(double decay);

// `step` counts from 0; the optimizer has passed bel_optimizer_check.
bel_rule_step bel_rule_begin(const bel_optimizer *optimizer, int64_t step);

// The same for variables with factors of their own for learning rate and weight decay.
bel_rule_step bel_rule_begin_scaled(const bel_optimizer *optimizer, int64_t step, double lr_factor,
                                    double decay_factor);

// The bounds of the averaged gradient; 0: none, or each replica's was clipped before.
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

// One element-wise pass over n elements: out = clip(sum * scale), with clip_value.
void bel_rule_scale(const bel_rule_step *step, const float *sum, float scale, float *out,
                    int64_t n);

// Rules that trust pass twice: the direction of n elements from the scaled gradient, which may be
// the same array, with slots updated in place; then, with norms of whole variables, the update,
// whose gradient is the direction and whose factor bel_rule_trust gives.
void bel_rule_prepare(const bel_rule_step *step, const float *gradient, const float *values,
                      float *direction, float *const *slots, int64_t n);
float bel_rule_trust(const bel_rule_step *step, double values_square, double direction_square);

// new_values = update(values, gradient * factor) for n elements; slots, BEL_RULE_MAX_SLOTS of them
// of which the rule has the first, are updated in place. `factor` is what norm clipping left (1:
// none), or trust. values and new_values may be the same array.
void bel_rule_apply(const bel_rule_step *step, const float *gradient, float factor,
                    const float *values, float *new_values, float *const *slots, int64_t n);

// averages -= rest (averages - values) for n elements; `rest` is that of the step, 1 - decay.
float bel_rule_average_rest(const bel_optimizer *optimizer, int64_t step);
void bel_rule_average(const float *values, float rest, float *averages, int64_t n);

// Rows of a table, updated in place: values = update(values, clip(sums × scale)). `sums` holds n
// rows of `width`; rows[i] is where row i begins: its values, then slots of `width` elements each,
// of which this rule's begin with number `first_slot`. Same bits as bel_rule_scale and
// bel_rule_apply; one call for many short rows.
bool bel_rule_has_rows(bel_optimizer_kind kind); // SGD, ADAM, ADAGRAD, FTRL
void bel_rule_apply_rows(const bel_rule_step *step, const float *sums, float scale,
                         float *const *rows, int first_slot, int width, int64_t n);

// Sum of squares of n elements, in double, in a fixed order.
double bel_rule_sum_square(const float *values, int64_t n);

// Vector kernels, one table per instruction-set level: see ops/kernels/cpu.h for the idea.
typedef void bel_rule_kernel(const bel_rule_step *step, const float *gradient, float factor,
                             const float *values, float *new_values, float *const *slots,
                             int64_t n);

typedef void bel_rule_rows_kernel(const bel_rule_step *step, const float *sums, float scale,
                                  float *const *rows, int first_slot, int width, int64_t n);

typedef struct bel_rule_kernels {
    void (*scale)(const float *sum, float scale, float limit, float *out, int64_t n);
    bel_rule_kernel *apply[BEL_OPTIMIZER_COUNT]; // by kind
    bel_rule_kernel *prepare;                    // LAMB: the direction into new_values
    void (*average)(const float *values, float rest, float *averages, int64_t n);
    bel_rule_rows_kernel *apply_rows[BEL_OPTIMIZER_COUNT]; // by kind; NULL: not for rows
    double (*sum_square)(const float *values, int64_t n);
} bel_rule_kernels;
BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_rule_kernels)
const bel_rule_kernels *bel_rule_kernels_get(void);

#endif
