// Shape rules, gradient rules and kernel choices of all families, as ops.def names them.
#ifndef BELFRY_OPS_FAMILIES_H
#define BELFRY_OPS_FAMILIES_H

#include "ops/op.h"

// math.c
bel_infer_fn bel_infer_broadcast, bel_infer_compare, bel_infer_binary_same, bel_infer_float;
bel_infer_fn bel_infer_same, bel_infer_cast;
bel_gradient_fn bel_grad_add, bel_grad_sub, bel_grad_mul, bel_grad_div, bel_grad_max, bel_grad_min;
bel_gradient_fn bel_grad_neg, bel_grad_exp, bel_grad_log, bel_grad_sqrt, bel_grad_abs;
bel_gradient_fn bel_grad_relu, bel_grad_sigmoid, bel_grad_tanh, bel_grad_identity, bel_grad_cast;
bel_gradient_fn bel_grad_sigmoid_cross_entropy;
bel_prepare_fn bel_prepare_binary, bel_prepare_unary, bel_prepare_unary_grad, bel_prepare_cast;

// matmul.c
bel_infer_fn bel_infer_matmul, bel_infer_gemm;
bel_gradient_fn bel_grad_matmul, bel_grad_gemm;
bel_prepare_fn bel_prepare_gemm;

// softmax.c
bel_infer_fn bel_infer_cross_entropy, bel_infer_cross_entropy_grad;
bel_gradient_fn bel_grad_softmax, bel_grad_log_softmax, bel_grad_cross_entropy;
bel_prepare_fn bel_prepare_softmax, bel_prepare_cross_entropy;

// reduce.c
bel_infer_fn bel_infer_reduce, bel_infer_like, bel_infer_scalar_like, bel_infer_arg_max;
bel_gradient_fn bel_grad_reduce_sum, bel_grad_reduce_mean, bel_grad_reduce_max;
bel_gradient_fn bel_grad_reduce_sum_square;
bel_prepare_fn bel_prepare_reduce, bel_prepare_sum_to, bel_prepare_broadcast_to;
bel_prepare_fn bel_prepare_count_ratio, bel_prepare_arg_max;

// shape.c
bel_infer_fn bel_infer_reshape, bel_infer_reshape_like, bel_infer_transpose, bel_infer_gather;
bel_infer_fn bel_infer_gather_grad, bel_infer_one_hot, bel_infer_flatten;
bel_gradient_fn bel_grad_reshape, bel_grad_transpose, bel_grad_gather;
bel_prepare_fn bel_prepare_transpose, bel_prepare_gather, bel_prepare_gather_grad;
bel_prepare_fn bel_prepare_one_hot;

// dropout.c
bel_infer_fn bel_infer_dropout, bel_infer_dropout_grad;
bel_gradient_fn bel_grad_dropout;
bel_prepare_fn bel_prepare_dropout, bel_prepare_dropout_grad;

// conv.c
bel_infer_fn bel_infer_conv, bel_infer_conv_grad_input, bel_infer_conv_grad_weights;
bel_gradient_fn bel_grad_conv;
bel_prepare_fn bel_prepare_conv, bel_prepare_conv_grad_input, bel_prepare_conv_grad_weights;

// pool.c
bel_infer_fn bel_infer_pool, bel_infer_pool_grad, bel_infer_global_pool;
bel_gradient_fn bel_grad_max_pool, bel_grad_average_pool;
bel_prepare_fn bel_prepare_pool;

// norm.c
bel_infer_fn bel_infer_channel_sum, bel_infer_batch_norm, bel_infer_batch_norm_grad;
bel_gradient_fn bel_grad_batch_norm;
bel_prepare_fn bel_prepare_channel_sum, bel_prepare_batch_norm, bel_prepare_batch_norm_grad;

// recurrent.c
bel_infer_fn bel_infer_gru, bel_infer_gru_grad, bel_infer_lstm, bel_infer_lstm_grad;
bel_gradient_fn bel_grad_gru, bel_grad_lstm;
bel_prepare_fn bel_prepare_recurrent, bel_prepare_recurrent_grad;

#endif
