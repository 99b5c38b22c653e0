// The operation Fused: several element-wise operations on f32 in one call. Its kernel goes through
// the elements in blocks and calls the vector kernels of the steps for each. Intermediate results
// therefore stay in the first-level cache and have no memory in the plan. The bits are those of the
// separate steps.
#ifndef BELFRY_OPS_FUSED_H
#define BELFRY_OPS_FUSED_H

#include "ops/op.h"

enum {
    BEL_FUSED_STEPS = 16,
    BEL_FUSED_REGISTERS = 4, // blocks of intermediate results
    BEL_FUSED_REGISTER = BEL_OP_MAX_INPUTS,
    BEL_FUSED_NUMBER = BEL_FUSED_REGISTER + BEL_FUSED_REGISTERS
};

// An operand is an input, BEL_FUSED_REGISTER + r (block r), or BEL_FUSED_NUMBER: the step's number.
// At least one operand of a step is a block or an input with an element for each result element;
// the other may be a single element or, as the second, a row (bel_operand).
typedef struct bel_fused_step {
    bel_op op;
    int operands[2]; // the second -1: one input
    int target;      // block that it writes; the last step writes the result
    float number;
    double s, t; // numbers of curves
} bel_fused_step;

struct bel_fused {
    int step_count;
    bel_fused_step steps[BEL_FUSED_STEPS];
};

// Returns true if Fused has a kernel for a step of these shapes: the operation's.
bool bel_fused_can(bel_op op, const bel_spec *inputs, int input_count, const bel_spec *result);

const bel_fused *bel_attr_fused(const bel_attr_list *attrs);

#endif
