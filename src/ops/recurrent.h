// Interface between recurrent.c and its plain kernels.
#ifndef BELFRY_OPS_RECURRENT_H
#define BELFRY_OPS_RECURRENT_H

#include "ops/kernels/recurrent.h"

// First member of the params of all recurrent calls, with any kernels.
typedef struct bel_recurrent_plain {
    bel_recurrent_shape shape;
    bel_recurrent_operands operands;
} bel_recurrent_plain;

// Plain kernels for f32 and f64: one row after another, element by element, in double.
void bel_recurrent_prepare_plain(const bel_prepare *prepare, bel_kernel_call *call,
                                 const bel_recurrent_plain *plain, bool gradient);

#endif
