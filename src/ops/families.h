// Shape rules and kernel choices of all families, as listed in ops.def.
#ifndef BELFRY_OPS_FAMILIES_H
#define BELFRY_OPS_FAMILIES_H

#include "ops/op.h"

// --- Shared functions of families

// Computes the shape that a and b broadcast to.
bel_status *bel_broadcast_shapes(const bel_shape *a, const bel_shape *b,
                                 bel_shape *out_shape) BEL_MUST_USE;

// Marks the axes of `large` along which `small` is repeated.
void bel_broadcast_axes(const bel_shape *large, const bel_shape *small,
                        bool out_axes[BEL_MAX_RANK]);

// Checks that `small` broadcasts to exactly `large`; open dimensions fit any.
bel_status *bel_check_repeated(const bel_shape *small, const bel_shape *large) BEL_MUST_USE;

// Reads the attribute axis; negative ones count from the end.
bel_status *bel_read_axis(const bel_attr_list *attrs, int64_t otherwise, int32_t rank,
                          int32_t *out_axis) BEL_MUST_USE;

// Marks the dimensions that the attribute axes lists; without it, all.
bel_status *bel_read_axes(const bel_attr_list *attrs, int32_t rank,
                          bool out_listed[BEL_MAX_RANK]) BEL_MUST_USE;

// Finds a required list.
bel_status *bel_read_ints(const bel_attr_list *attrs, const char *name,
                          const bel_shape **out_ints) BEL_MUST_USE;

bel_status *bel_needs_i64(bel_dtype dtype) BEL_MUST_USE; // for indices

// Checks the type and shape of an input against the expected ones. Open dimensions fit any: the
// rule runs again when they are closed.
bel_status *bel_check_like(const char *what, const bel_spec *got,
                           const bel_spec *want) BEL_MUST_USE;

// --- Families

// math.c
bel_infer_fn bel_infer_broadcast, bel_infer_binary_same, bel_infer_float, bel_infer_same;
bel_infer_fn bel_infer_broadcast_float, bel_infer_number, bel_infer_is_nan;
bel_prepare_fn bel_prepare_binary, bel_prepare_unary, bel_prepare_unary_grad;

// compare.c
bel_infer_fn bel_infer_compare, bel_infer_logic;
bel_prepare_fn bel_prepare_compare;

// cast.c
bel_infer_fn bel_infer_cast;
bel_prepare_fn bel_prepare_cast;

// activation.c
bel_prepare_fn bel_prepare_curve;

// fused.c
bel_infer_fn bel_infer_fused;
bel_prepare_fn bel_prepare_fused;

// matmul.c
bel_infer_fn bel_infer_matmul, bel_infer_matmul_flat, bel_infer_gemm;
bel_prepare_fn bel_prepare_gemm;

// softmax.c
bel_infer_fn bel_infer_cross_entropy, bel_infer_cross_entropy_grad;
bel_prepare_fn bel_prepare_softmax, bel_prepare_cross_entropy;

// reduce.c
bel_infer_fn bel_infer_reduce, bel_infer_prod_grad, bel_infer_sum_to, bel_infer_scalar_like;
bel_prepare_fn bel_prepare_reduce, bel_prepare_sum_to, bel_prepare_fold;

// broadcast.c
bel_infer_fn bel_infer_broadcast_to;
bel_prepare_fn bel_prepare_broadcast_to, bel_prepare_count_ratio;

// order.c
bel_infer_fn bel_infer_arg, bel_infer_top_k, bel_infer_cum_sum;
bel_prepare_fn bel_prepare_arg, bel_prepare_top_k, bel_prepare_cum_sum;

// shape.c
bel_infer_fn bel_infer_reshape, bel_infer_reshape_like, bel_infer_transpose, bel_infer_one_hot;
bel_infer_fn bel_infer_flatten, bel_infer_squeeze, bel_infer_unsqueeze;
bel_prepare_fn bel_prepare_transpose, bel_prepare_one_hot;

// pick.c
bel_infer_fn bel_infer_slice, bel_infer_pad, bel_infer_expand, bel_infer_slice_grad,
    bel_infer_pad_grad;
bel_prepare_fn bel_prepare_pick, bel_prepare_pick_grad;

// join.c
bel_infer_fn bel_infer_concat, bel_infer_where;
bel_prepare_fn bel_prepare_concat, bel_prepare_where;

// gather.c
bel_infer_fn bel_infer_gather, bel_infer_gather_elements, bel_infer_gather_grad;
bel_infer_fn bel_infer_gather_elements_grad;
bel_prepare_fn bel_prepare_gather, bel_prepare_gather_grad;
bel_prepare_fn bel_prepare_gather_elements, bel_prepare_gather_elements_grad;

// random.c
bel_infer_fn bel_infer_random, bel_infer_global_step;
bel_prepare_fn bel_prepare_random_uniform, bel_prepare_random_normal, bel_prepare_global_step;

// dropout.c
bel_infer_fn bel_infer_dropout, bel_infer_dropout_grad;
bel_prepare_fn bel_prepare_dropout, bel_prepare_dropout_grad;

// conv.c
bel_infer_fn bel_infer_conv, bel_infer_conv_grad_input, bel_infer_conv_grad_weights;
bel_infer_fn bel_infer_conv_transpose;
bel_prepare_fn bel_prepare_conv_transpose, bel_prepare_conv, bel_prepare_conv_grad_input,
    bel_prepare_conv_grad_weights;

// pool.c
bel_infer_fn bel_infer_pool, bel_infer_pool_grad, bel_infer_global_pool;
bel_prepare_fn bel_prepare_pool;

// norm.c
bel_infer_fn bel_infer_channel_sum, bel_infer_batch_norm, bel_infer_batch_norm_grad;
bel_infer_fn bel_infer_batch_moments, bel_infer_moments_norm, bel_infer_moments_norm_sums;
bel_infer_fn bel_infer_moments_norm_grad, bel_infer_moments_move;
bel_prepare_fn bel_prepare_channel_sum, bel_prepare_batch_norm, bel_prepare_batch_norm_grad;
bel_prepare_fn bel_prepare_batch_moments, bel_prepare_moments_norm, bel_prepare_moments_norm_sums;
bel_prepare_fn bel_prepare_moments_move;

// row_norm.c
bel_infer_fn bel_infer_layer_norm, bel_infer_layer_norm_grad;
bel_infer_fn bel_infer_group_norm, bel_infer_group_norm_grad;
bel_prepare_fn bel_prepare_row_norm, bel_prepare_row_norm_grad;

// sequence.c
bel_infer_fn bel_infer_sequence_mask, bel_infer_masked_softmax;
bel_prepare_fn bel_prepare_sequence_mask, bel_prepare_masked_softmax;

// attention.c
bel_infer_fn bel_infer_attention, bel_infer_attention_grad;
bel_prepare_fn bel_prepare_attention, bel_prepare_attention_grad;

// collective.c
bel_infer_fn bel_infer_all_reduce, bel_infer_all_gather, bel_infer_reduce_scatter;
bel_infer_fn bel_infer_broadcast_from, bel_infer_replica_id;
bel_prepare_fn bel_prepare_collective, bel_prepare_replica_id;

// ctc.c
bel_infer_fn bel_infer_ctc_loss, bel_infer_ctc_loss_grad;
bel_prepare_fn bel_prepare_ctc_loss, bel_prepare_ctc_loss_grad;

// recurrent.c
bel_infer_fn bel_infer_gru, bel_infer_gru_grad, bel_infer_lstm, bel_infer_lstm_grad;
bel_prepare_fn bel_prepare_recurrent, bel_prepare_recurrent_grad;

#endif
