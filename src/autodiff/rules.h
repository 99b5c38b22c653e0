// Gradient rules. Every operation's row in ops/ops.def names one, or NULL; files of this folder
// implement them, family by family, and rule_table.c collects them. They are above the graph,
// because a rule only adds operations to it: a backward pass is compiled like any other program.
#ifndef BELFRY_AUTODIFF_RULES_H
#define BELFRY_AUTODIFF_RULES_H

#include "graph/graph.h"

// Call of a rule. It reads inputs, outputs and output_grads (NULL if the loss does not depend on an
// output) and sets input_grads for inputs with `needed`. It builds operations through belfry/ops.h.
typedef struct bel_gradient {
    bel_graph *graph;
    const bel_attr_list *attrs;
    int input_count;
    bel_value *inputs[BEL_OP_MAX_INPUTS];
    bool needed[BEL_OP_MAX_INPUTS];
    bel_value *outputs[BEL_OP_MAX_OUTPUTS];
    bel_value *output_grads[BEL_OP_MAX_OUTPUTS];
    bel_value *input_grads[BEL_OP_MAX_INPUTS]; // out
} bel_gradient;
typedef void bel_gradient_fn(bel_gradient *gradient);

// Sets input 0's gradient to operation `op` of (output gradient, output): the form of most
// functions whose derivative follows from their value.
void bel_gradient_from_output(bel_gradient *gradient, bel_op op);

// Returns the rule of an operation; NULL: it has no gradient.
bel_gradient_fn *bel_gradient_rule(bel_op op);

// Sums a gradient over broadcast dimensions and stores it as the gradient of input i.
void bel_set_broadcast_grad(bel_gradient *gradient, int i, bel_value *grad);

// --- Rules in ops.def ---------------------------------------------------------------------------

bel_gradient_fn bel_grad_abs, bel_grad_acos, bel_grad_acosh, bel_grad_add, bel_grad_all_gather,
    bel_grad_all_reduce, bel_grad_asin, bel_grad_asinh, bel_grad_atan, bel_grad_atanh,
    bel_grad_attention, bel_grad_average_pool, bel_grad_average_pool_grad, bel_grad_batch_norm,
    bel_grad_broadcast_from, bel_grad_broadcast_to, bel_grad_cast, bel_grad_channel_sum,
    bel_grad_clip, bel_grad_clip_grad, bel_grad_concat, bel_grad_conv, bel_grad_conv_grad_input,
    bel_grad_conv_grad_weights, bel_grad_conv_transpose, bel_grad_cos, bel_grad_cosh,
    bel_grad_cross_entropy, bel_grad_cross_entropy_grad, bel_grad_ctc_loss, bel_grad_cum_sum,
    bel_grad_div, bel_grad_dropout, bel_grad_dropout_grad, bel_grad_elu, bel_grad_elu_grad,
    bel_grad_erf, bel_grad_exp, bel_grad_expand, bel_grad_gather, bel_grad_gather_elements,
    bel_grad_gather_elements_grad, bel_grad_gather_grad, bel_grad_gelu, bel_grad_gelu_grad,
    bel_grad_gelu_tanh, bel_grad_gelu_tanh_grad, bel_grad_gemm, bel_grad_group_norm, bel_grad_gru,
    bel_grad_hard_sigmoid, bel_grad_hard_sigmoid_grad, bel_grad_identity, bel_grad_layer_norm,
    bel_grad_leaky_relu, bel_grad_leaky_relu_grad, bel_grad_log, bel_grad_log_softmax,
    bel_grad_log_softmax_grad, bel_grad_lstm, bel_grad_masked_softmax, bel_grad_matmul,
    bel_grad_matmul_flat, bel_grad_max, bel_grad_max_pool, bel_grad_min, bel_grad_moments_norm,
    bel_grad_mul, bel_grad_neg, bel_grad_none, bel_grad_pad, bel_grad_pad_grad, bel_grad_pow,
    bel_grad_reciprocal, bel_grad_reduce_l1, bel_grad_reduce_l2, bel_grad_reduce_max,
    bel_grad_reduce_mean, bel_grad_reduce_prod, bel_grad_reduce_scatter, bel_grad_reduce_sum,
    bel_grad_reduce_sum_square, bel_grad_relu, bel_grad_relu_grad, bel_grad_remainder,
    bel_grad_reshape, bel_grad_reshape_like, bel_grad_sequence_mask, bel_grad_sigmoid,
    bel_grad_sigmoid_cross_entropy, bel_grad_sigmoid_grad, bel_grad_silu, bel_grad_silu_grad,
    bel_grad_sin, bel_grad_sinh, bel_grad_slice, bel_grad_slice_grad, bel_grad_softmax,
    bel_grad_softmax_grad, bel_grad_softplus, bel_grad_sqrt, bel_grad_sub, bel_grad_sum_to,
    bel_grad_tan, bel_grad_tanh, bel_grad_tanh_grad, bel_grad_top_k, bel_grad_transpose,
    bel_grad_where;

#endif
