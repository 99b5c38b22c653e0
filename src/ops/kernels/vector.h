// Vector kernel of an element-wise operation, and rows that repeat.
#ifndef BELFRY_OPS_KERNELS_VECTOR_H
#define BELFRY_OPS_KERNELS_VECTOR_H

#include "ops/kernels/cpu.h"
#include "ops/op.h"

// The f32 kernels of one operation: the three of two inputs, or one of the others.
typedef struct bel_vector_kernel {
    bel_cpu_binary_fn *binary, *binary_scalar, *scalar_binary;
    bel_cpu_unary_fn *unary;
    bel_cpu_curve_fn *curve;
    bel_cpu_curve_grad_fn *curve_grad;
} bel_vector_kernel;

// Returns false if the operation has only a plain form (or is not element-wise).
bool bel_vector_kernel_of(bel_op op, bel_vector_kernel *out_kernel);

// Returns the two numbers of a curve, from its attributes or defaults; 0 if an operation has none.
void bel_curve_numbers(bel_op op, const bel_attr_list *attrs, double *out_s, double *out_t);

// Layout of an operand of an operation on two inputs, relative to its `elements` results.
typedef enum bel_operand {
    BEL_OPERAND_FULL,   // an element for each
    BEL_OPERAND_SINGLE, // one for all
    BEL_OPERAND_ROW,    // the last dimensions, repeated
    BEL_OPERAND_OTHER,
} bel_operand;
bel_operand bel_operand_of(const bel_shape *operand, const bel_shape *result);

// Row that repeats over `elements` elements, written out several times if it is short, so that a
// kernel is called for longer runs.
typedef struct bel_repeated_row {
    const float *row;
    int64_t length; // a multiple of the row's
    float room[512];
} bel_repeated_row;
void bel_repeat_row(const float *row, int64_t length, int64_t elements, bel_repeated_row *out);

// y = run(a, row) for elements [at, at + n) of a tensor whose last dimensions the row has; a and y
// begin with element `at`.
void bel_run_row(bel_cpu_binary_fn *run, const float *a, const bel_repeated_row *row, int64_t at,
                 float *y, int64_t n);

#endif
