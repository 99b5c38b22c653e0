// Interface between recurrent.c and its plain kernels.
#ifndef BELFRY_OPS_RECURRENT_H
#define BELFRY_OPS_RECURRENT_H

#include "ops/kernels/recurrent.h"

// First member of the params of all recurrent calls, with any kernels.
typedef struct bel_recurrent_plain {
    bel_recurrent_shape shape;
    bel_recurrent_operands operands;
} bel_recurrent_plain;

// Reads attributes and shapes; n and t may be open. Errors: W or R have a wrong shape.
bel_status *bel_recurrent_read(bool lstm, const bel_attr_list *attrs, const bel_shape *x,
                               const bel_shape *w, const bel_shape *r, bel_recurrent_shape *out);

bel_shape bel_recurrent_y_shape(const bel_recurrent_shape *s);
bel_shape bel_recurrent_state_shape(const bel_recurrent_shape *s);
bel_shape bel_recurrent_saved_shape(const bel_recurrent_shape *s);

// Plain kernels for f32 and f64: one row after another, element by element, in double.
void bel_recurrent_prepare_plain(const bel_prepare *prepare, bel_kernel_call *call,
                                 const bel_recurrent_plain *plain, bool gradient);

#endif
