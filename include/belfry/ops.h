/// Operations. Names, attributes and semantics follow ONNX (opset 17) wherever ONNX has the
/// operation. What holds for every function here stands in this comment only.
///
/// **Results and errors.** A function takes the graph first and returns a value that the graph
/// owns, or NULL after an error, which sticks (belfry/graph.h: errors, ownership, the thread rule;
/// lists and shapes are copied). Second results, `out_…`, are NULL after an error, too. Every
/// function refuses, with INVALID_ARGUMENT and a message that names the operation and the shapes,
/// inputs of other types or shapes than its comment says, an axis that is not there, and a result
/// of more than 2^48 elements; comments name only what is refused beside that. What depends on data
/// shows while the program runs: it "ends the step" with a status that names the operation and the
/// number.
///
/// **Types and shapes.** T is F32 or F64 (F64 runs on reference kernels only: for tests and checks,
/// not for speed); "any numbers" are T, I32, I64 and U8. Inputs of one call have one type unless
/// their types are given. x [n, c] is an input of two dimensions; a… stands for any number of them.
/// Broadcasting is ONNX's multidirectional one: shapes are aligned at their last dimension, and a
/// missing dimension or one of size 1 is repeated. An axis counts from 0, a negative one from the
/// end. An input that may be NULL says so.
///
/// **Gradients.** An operation has one unless its comment says no: then training ends with
/// UNIMPLEMENTED where the loss depends on a variable through it. Indices, lengths, labels of
/// classes and conditions get none, and are in nobody's way.
///
/// **Determinism.** For given shapes every operation gives the same bits, for any number of
/// threads. Make values one after another, not two as arguments of one call: C leaves open which of
/// them comes first in the graph.
#ifndef BELFRY_OPS_H
#define BELFRY_OPS_H

#include "belfry/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// --- Two inputs of one type, with broadcasting --------------------------------------------------

/// a + b, a - b, a · b, a / b of any numbers -> the same type. Integers wrap, and a quotient of
/// them is cut off towards 0; divided by 0 they give 0.
BEL_API bel_value *bel_add(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_sub(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_mul(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_div(bel_graph *graph, bel_value *a, bel_value *b);
/// Larger and smaller of two, of any numbers; where equal, the gradient goes to `a`.
BEL_API bel_value *bel_max(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_min(bel_graph *graph, bel_value *a, bel_value *b);
/// a to the power of b, type T. The gradient of `a` is 0 where b is 0, that of `b` is 0 where a is
/// not positive.
BEL_API bel_value *bel_pow(bel_graph *graph, bel_value *a, bel_value *b);
/// Comparisons: any equal types -> BOOL. No gradient.
BEL_API bel_value *bel_equal(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_greater(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_less(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_greater_or_equal(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_less_or_equal(bel_graph *graph, bel_value *a, bel_value *b);
/// BOOL -> BOOL: both, one or both, exactly one, not. No gradient.
BEL_API bel_value *bel_and(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_or(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_xor(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_not(bel_graph *graph, bel_value *x);

/// --- One input -> the same shape and type; type T unless said otherwise -------------------------
BEL_API bel_value *bel_neg(bel_graph *graph, bel_value *x);  ///< Integers too.
BEL_API bel_value *bel_abs(bel_graph *graph, bel_value *x);  ///< Integers too. Gradient 0 at 0.
BEL_API bel_value *bel_sign(bel_graph *graph, bel_value *x); ///< Integers too. Gradient 0.
/// e^x, the natural logarithm, the square root, 1 / x and the error function, each element by
/// itself.
BEL_API bel_value *bel_exp(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_log(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_sqrt(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_reciprocal(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_erf(bel_graph *graph, bel_value *x);
/// Trigonometric functions of angles in radians, hyperbolic ones, and the inverses of both, which
/// give NaN outside of their domains.
BEL_API bel_value *bel_sin(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_cos(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_tan(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_asin(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_acos(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_atan(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_sinh(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_cosh(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_asinh(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_acosh(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_atanh(bel_graph *graph, bel_value *x);
/// To a whole number: down, up, to the nearest (ties to even). Gradient 0.
BEL_API bel_value *bel_floor(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_ceil(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_round(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_is_nan(bel_graph *graph, bel_value *x); ///< -> BOOL. No gradient.

/// Activations. At their kinks the gradient is that of the left side (Relu, LeakyRelu), 0
/// (HardSigmoid) or 1 (Clip).
BEL_API bel_value *bel_relu(bel_graph *graph, bel_value *x);     ///< max(x, 0). Integers too.
BEL_API bel_value *bel_sigmoid(bel_graph *graph, bel_value *x);  ///< 1 / (1 + e^-x).
BEL_API bel_value *bel_tanh(bel_graph *graph, bel_value *x);     ///< Hyperbolic tangent.
BEL_API bel_value *bel_softplus(bel_graph *graph, bel_value *x); ///< log(1 + e^x), no overflow.
BEL_API bel_value *bel_silu(bel_graph *graph, bel_value *x);     ///< x sigmoid(x), "swish".
/// x Φ(x) with the normal distribution Φ, exactly and by its approximation with tanh (Hendrycks and
/// Gimpel 2016). Not in opset 17: domain belfry.
BEL_API bel_value *bel_gelu(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_gelu_tanh(bel_graph *graph, bel_value *x);
/// x, and below 0 alpha · x or alpha · (e^x - 1). ONNX's defaults: 0.01 and 1.
BEL_API bel_value *bel_leaky_relu(bel_graph *graph, bel_value *x, double alpha);
BEL_API bel_value *bel_elu(bel_graph *graph, bel_value *x, double alpha);
/// alpha · x + beta, cut to [0, 1]. ONNX's defaults: 0.2 and 0.5.
BEL_API bel_value *bel_hard_sigmoid(bel_graph *graph, bel_value *x, double alpha, double beta);
/// x cut to [low, high]; -INFINITY and INFINITY leave a side open. All `high` when low > high.
BEL_API bel_value *bel_clip(bel_graph *graph, bel_value *x, double low, double high);

/// x itself, of any type, as a value of its own. Costs nothing.
BEL_API bel_value *bel_identity(bel_graph *graph, bel_value *x);
/// x, any type, as a number that is given: what it was made of gets no gradient through it.
BEL_API bel_value *bel_stop_gradient(bel_graph *graph, bel_value *x);
/// To another type: float to integer truncates, and what the type cannot hold becomes its nearest
/// number (NaN: 0); integer to integer keeps the low bits; anything to BOOL is "not zero". F16 and
/// BF16 are rounded to nearest; other operations take them for storage only, or on plain kernels.
/// The gradient goes back from float to float. Error: to STRING.
BEL_API bel_value *bel_cast(bel_graph *graph, bel_value *x, bel_dtype to);

/// --- Products -----------------------------------------------------------------------------------

/// a [..., m, k] · b [..., k, n] -> [..., m, n], type T: a product for each pair of matrices; the
/// leading dimensions broadcast. A vector stands for a row (a) or a column (b), and its dimension
/// is dropped again. ONNX MatMul.
BEL_API bel_value *bel_matmul(bel_graph *graph, bel_value *a, bel_value *b);

/// alpha · a' · b' + beta · c -> [m, n], type T, where a' [m, k] is a or its transpose, and b' [k,
/// n] likewise. c may be NULL, and broadcasts to [m, n]. ONNX Gemm.
BEL_API bel_value *bel_gemm(bel_graph *graph, bel_value *a, bel_value *b, bel_value *c,
                            double alpha, double beta, bool transpose_a, bool transpose_b);

/// --- Softmax and losses -------------------------------------------------------------------------

/// e^x over its sum along the last dimension, and the logarithm of that, both without overflow:
/// x [a…, c], type T -> [a…, c].
BEL_API bel_value *bel_softmax(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_log_softmax(bel_graph *graph, bel_value *x);

/// Cross-entropy of softmax: logits [n, c], labels [n] I64 in [0, c) -> [n], one loss per example.
/// A label out of range ends the step with OUT_OF_RANGE. ONNX SoftmaxCrossEntropyLoss, reduction
/// "none". Take bel_mean of it for the usual loss.
BEL_API bel_value *bel_softmax_cross_entropy(bel_graph *graph, bel_value *logits,
                                             bel_value *labels);

/// Cross-entropy of a sigmoid: logits and labels (0 … 1), same shape and type T -> same shape.
/// max(x, 0) - x·z + log(1 + exp(-|x|)), which does not overflow.
BEL_API bel_value *bel_sigmoid_cross_entropy(bel_graph *graph, bel_value *logits,
                                             bel_value *labels);

/// Half the sum of squares of x, type T -> scalar: the usual L2 penalty.
BEL_API bel_value *bel_l2_loss(bel_graph *graph, bel_value *x);

/// --- Reductions ---------------------------------------------------------------------------------
///
/// x of type T over `axis_count` axes (0, with axes NULL: all of them, which gives a scalar). The
/// axes are gone from the result, or have size 1 there with keepdims. ONNX Reduce…. Error: more
/// than BEL_MAX_RANK axes.

/// Sum, and arithmetic mean.
BEL_API bel_value *bel_reduce_sum(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_mean(bel_graph *graph, bel_value *x, const int64_t *axes,
                                   int axis_count, bool keepdims);
/// The mean of all elements -> scalar: bel_reduce_mean over all axes, what a loss usually is.
BEL_API bel_value *bel_mean(bel_graph *graph, bel_value *x);
/// The largest and the smallest element. The gradient goes to every element that equals it, in
/// equal parts.
BEL_API bel_value *bel_reduce_max(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_min(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
/// Sum of squares, and product.
BEL_API bel_value *bel_reduce_sum_square(bel_graph *graph, bel_value *x, const int64_t *axes,
                                         int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_prod(bel_graph *graph, bel_value *x, const int64_t *axes,
                                   int axis_count, bool keepdims);
/// Sum of |x|, and the root of the sum of squares (its gradient is 0 where it is 0).
BEL_API bel_value *bel_reduce_l1(bel_graph *graph, bel_value *x, const int64_t *axes,
                                 int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_l2(bel_graph *graph, bel_value *x, const int64_t *axes,
                                 int axis_count, bool keepdims);
/// log of the sum of e^x, without overflow; -INFINITY where all x are. Made of other operations.
BEL_API bel_value *bel_reduce_log_sum_exp(bel_graph *graph, bel_value *x, const int64_t *axes,
                                          int axis_count, bool keepdims);

/// --- Along one axis; x of any numbers -----------------------------------------------------------

/// Index of the largest or smallest element along `axis` (the first of equals): -> I64 without that
/// axis. No gradient.
BEL_API bel_value *bel_arg_max(bel_graph *graph, bel_value *x, int64_t axis);
BEL_API bel_value *bel_arg_min(bel_graph *graph, bel_value *x, int64_t axis);

/// The k largest (else smallest) elements along `axis`, best first and equal ones by index; their
/// indices I64 in *out_indices (NULL: not wanted). Both have k elements along the axis. ONNX TopK,
/// sorted. The gradient goes to the elements that were taken. Takes up to k steps for an element,
/// so it suits a small k. Error: k is not in 1 … the dimension.
BEL_API bel_value *bel_top_k(bel_graph *graph, bel_value *x, int64_t k, int64_t axis, bool largest,
                             bel_value **out_indices);

/// Sums of the elements up to each one along `axis`; exclusive: without itself; reverse: from
/// behind. ONNX CumSum.
BEL_API bel_value *bel_cum_sum(bel_graph *graph, bel_value *x, int64_t axis, bool exclusive,
                               bool reverse);

/// --- Shapes and indices -------------------------------------------------------------------------

/// The same elements, of any type, in another shape; one dimension may be -1 and is computed, and 0
/// means that of x at the same place. Where x has an open dimension, -1 (or a 0 in its place)
/// stands for it or for a multiple of it; what the others leave must be whole. Costs nothing.
/// Error: the numbers of elements differ.
BEL_API bel_value *bel_reshape(bel_graph *graph, bel_value *x, const bel_shape *shape);
/// Dimension i of the result is dimension permutation[i] of x, any type; one number, from 0 on, for
/// each dimension of x.
BEL_API bel_value *bel_transpose(bel_graph *graph, bel_value *x, const int64_t *permutation);
/// A matrix, any type: the dimensions before `axis` multiplied, and those from `axis` on. ONNX
/// Flatten. Costs nothing. Error: three open dimensions would be multiplied.
BEL_API bel_value *bel_flatten(bel_graph *graph, bel_value *x, int64_t axis);
/// Without the dimensions of size 1 that `axes` lists (NULL and 0: all of that size), and with such
/// dimensions at the places `axes` of the result. ONNX Squeeze, Unsqueeze. Cost nothing. Error: a
/// listed dimension is not 1; an axis stands twice.
BEL_API bel_value *bel_squeeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count);
BEL_API bel_value *bel_unsqueeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count);

/// x of any type repeated to what its shape and `shape` broadcast to; a 1 in `shape` keeps x's
/// dimension, also an open one. ONNX Expand.
BEL_API bel_value *bel_expand(bel_graph *graph, bel_value *x, const bel_shape *shape);

/// Of each of `count` axes (NULL: the first ones) the elements start, start + step … before end, x
/// of any type. Negative starts and ends count from the end, and what lies outside is cut off; a
/// negative step goes backwards (end INT64_MIN: to the first element). steps NULL: ones. An open
/// dimension can only be taken as a whole: 0 to INT64_MAX. ONNX Slice. Errors: a step of 0; an axis
/// that stands twice.
BEL_API bel_value *bel_slice(bel_graph *graph, bel_value *x, const int64_t *axes,
                             const int64_t *starts, const int64_t *ends, const int64_t *steps,
                             int count);

/// Cuts x along `axis` into `count` parts of these sizes, whose sum is the dimension; sizes NULL:
/// equal parts, the last one smaller. out_parts[count] are all NULL after an error. ONNX Split, as
/// one Slice for each part.
BEL_API void bel_split(bel_graph *graph, bel_value *x, int64_t axis, const int64_t *sizes,
                       int count, bel_value **out_parts);

/// `count` tensors of one type one behind the other along `axis`; all other dimensions are equal,
/// that of the axis is closed. ONNX Concat.
BEL_API bel_value *bel_concat(bel_graph *graph, bel_value *const *parts, int count, int64_t axis);

/// What stands where bel_pad adds elements.
typedef enum bel_pad_mode {
    BEL_PAD_CONSTANT, ///< `value`.
    BEL_PAD_EDGE,     ///< The first or last element of the dimension.
    BEL_PAD_REFLECT,  ///< Mirrored at it, itself not repeated; fewer elements than the dimension
                      ///< has.
} bel_pad_mode;

/// before[d] more elements in front of dimension d and behind[d] more behind it (NULL: none), x of
/// any type; negative numbers cut elements off. An open dimension cannot be padded. ONNX Pad, whose
/// one list of pads is cut in two.
BEL_API bel_value *bel_pad(bel_graph *graph, bel_value *x, const int64_t *before,
                           const int64_t *behind, bel_pad_mode mode, double value);

/// An element of `a` where the condition (BOOL) is true, else of `b`; a and b have one type, any,
/// and all three broadcast. ONNX Where.
BEL_API bel_value *bel_where(bel_graph *graph, bel_value *condition, bel_value *a, bel_value *b);

/// Rows of `data` [n, ...] at `indices` (I64, any shape) -> [indices..., ...]. ONNX Gather, axis 0.
/// An index out of [0, n) ends the step with OUT_OF_RANGE: unlike in ONNX, a negative one too.
BEL_API bel_value *bel_gather(bel_graph *graph, bel_value *data, bel_value *indices);
/// The same along any axis: data [a..., n, b...] -> [a..., indices..., b...].
BEL_API bel_value *bel_gather_axis(bel_graph *graph, bel_value *data, bel_value *indices,
                                   int64_t axis);
/// data [a..., n, b...], indices [a..., m, b...] (I64) -> [a..., m, b...]: for each index the
/// element of data with that index along `axis` and else the same place. ONNX GatherElements, but
/// for smaller dimensions of the indices elsewhere. Indices out of [0, n) as above.
BEL_API bel_value *bel_gather_elements(bel_graph *graph, bel_value *data, bel_value *indices,
                                       int64_t axis);
/// indices (I64) -> [indices..., depth] F32: 1 at the index, 0 elsewhere; all 0 for an index out of
/// [0, depth). No gradient. Error: depth is below 1.
BEL_API bel_value *bel_one_hot(bel_graph *graph, bel_value *indices, int64_t depth);

/// --- Regularisation -----------------------------------------------------------------------------

/// Keeps each element with probability 1 - ratio and multiplies it by 1 / (1 - ratio). Call it in
/// TRAIN only. Which elements are kept is a function of (seed, this operation, step, replica). Type
/// T. Error: ratio is not in [0, 1).
BEL_API bel_value *bel_dropout(bel_graph *graph, bel_value *x, double ratio);

/// --- Numbers of a run, no gradient --------------------------------------------------------------

/// Random numbers in the shape and type T of `like`, whose elements are not looked at: uniform in
/// [low, high), where what is rounded may be `high` itself, or normal with this mean and standard
/// deviation. They are a function of (seed, this operation, step, replica) in TRAIN, and of (seed,
/// this operation, the checkpoint's step, number of the batch) in EVAL and PREDICT. For a fixed
/// shape give bel_expand of a scalar. Of a class by its logits: bel_arg_max of logits - log(-log
/// u), u uniform (Gumbel 1954). Errors: low is not below high; a number that is not finite; a
/// negative deviation.
BEL_API bel_value *bel_random_uniform(bel_graph *graph, bel_value *like, double low, double high);
BEL_API bel_value *bel_random_normal(bel_graph *graph, bel_value *like, double mean,
                                     double deviation);

/// The step as a scalar I64: in TRAIN the version that this step computes on, from 0; in EVAL and
/// PREDICT that of the checkpoint.
BEL_API bel_value *bel_global_step(bel_graph *graph);

/// --- Images: x [n, c, w] or [n, c, h, w] of type T; only n may be open --------------------------
///
/// Spatial numbers (kernel, strides, dilations) are one for each spatial dimension: [w] or [h, w];
/// pads are those before and then those behind: [w, w] or [h, w, h, w]. Inside a program images lie
/// channels-last between these operations where that is faster; nothing here depends on it.

/// How much is padded. SAME: so that the output has ceil(size / stride) elements; what is odd goes
/// behind (UPPER) or before (LOWER). VALID: nothing.
typedef enum bel_auto_pad {
    BEL_PAD_EXPLICIT, ///< As `pads` says. ONNX: NOTSET.
    BEL_PAD_SAME_UPPER,
    BEL_PAD_SAME_LOWER,
    BEL_PAD_VALID,
} bel_auto_pad;

/// NULL lists are ones (strides, dilations) and zeros (pads).
typedef struct bel_window_options {
    const int64_t *strides, *pads, *dilations;
    bel_auto_pad auto_pad;
} bel_window_options;

/// Convolution (without turning the kernel round): x with weights w [o, c / group, kernel…] and
/// bias [o] (or NULL) -> [n, o, …]. Channels fall into `group` equal groups; output channels of a
/// group see its input channels only. options NULL: defaults. ONNX Conv. Errors: shapes do not fit;
/// the window is larger than the padded image.
BEL_API bel_value *bel_conv(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias,
                            int64_t group, const bel_window_options *options);

/// Transposed convolution, the gradient of bel_conv with regard to its input: x [n, c, …] with
/// weights w [c, o / group, kernel…] and bias [o] (or NULL) -> [n, o, …], of size (size - 1) ·
/// stride + (kernel - 1) · dilation + 1 + output_padding - pads. output_padding (NULL: 0) tells
/// apart the sizes that a convolution with a stride makes one; it is less than the stride.
/// output_shape (NULL: as above) gives the spatial sizes, auto_pad SAME makes them size · stride;
/// pads are then computed. ONNX ConvTranspose. Errors: shapes do not fit; no pads give the size.
BEL_API bel_value *bel_conv_transpose(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias,
                                      int64_t group, const bel_window_options *options,
                                      const int64_t *output_padding, const int64_t *output_shape);

/// The largest element, or the mean, of each window of size `kernel` (NULL: the whole image) ->
/// [n, c, …]. ceil_mode rounds the number of windows up. Padding is never the largest; it counts as
/// zeros in a mean only with count_include_pad. Of equal largest elements the first gets the
/// gradient. options NULL: strides of 1, as in ONNX (MaxPool, AveragePool; opset 17 knows no
/// dilations of a mean). Error: a window that sees nothing but padding.
BEL_API bel_value *bel_max_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                                const bel_window_options *options, bool ceil_mode);
BEL_API bel_value *bel_average_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                                    const bel_window_options *options, bool ceil_mode,
                                    bool count_include_pad);
/// The mean over the spatial dimensions -> [n, c, 1] or [n, c, 1, 1]. ONNX GlobalAveragePool.
BEL_API bel_value *bel_global_average_pool(bel_graph *graph, bel_value *x);

/// (x - mean) / sqrt(variance + epsilon) · scale + bias by channel, for x [n, c, …] of any rank
/// from 2 on and four vectors [c]. ONNX BatchNormalization. With `training` mean and variance are
/// those of the batch (the variance divided by the number of elements), and *out_mean and
/// *out_variance become momentum · mean + (1 - momentum) · the batch's: assign them to the
/// variables that hold the moving ones. Otherwise these outputs (NULL: not wanted) equal the
/// inputs.
BEL_API bel_value *bel_batch_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, bel_value *mean, bel_value *variance,
                                           double epsilon, double momentum, bool training,
                                           bel_value **out_mean, bel_value **out_variance);

/// --- Normalisation of rows ----------------------------------------------------------------------
///
/// A row becomes (row - its mean) / sqrt(its variance + epsilon), the variance divided by the
/// number of elements; then every element times its scale, plus its bias. Type T. Mean and variance
/// keep their digits also where the mean is large beside the deviation.

/// Rows are what lies behind `axis` (negative: from the end): x [a..., b...] with scale and bias
/// [b...] (bias NULL: 0), b... from the axis on. ONNX LayerNormalization (Ba et al. 2016), whose
/// scale and bias may also broadcast.
BEL_API bel_value *bel_layer_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, int64_t axis, double epsilon);

/// Rows are the channels of each image: x [n, c, ...] with scale and bias [c]. ONNX
/// InstanceNormalization (Ulyanov et al. 2016).
BEL_API bel_value *bel_instance_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                              bel_value *bias, double epsilon);

/// Rows are `groups` equal groups of neighbouring channels of each image: x [n, c, ...] with scale
/// and bias [c]. ONNX GroupNormalization as of opset 21 (Wu & He 2018); domain belfry. Error: c is
/// no multiple of the groups.
BEL_API bel_value *bel_group_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, int64_t groups, double epsilon);

/// --- Sequences in one tensor, padded to the longest ---------------------------------------------

/// x [n, …], any type, with lengths [n] (I64): zeros along `axis` from the length on, whatever was
/// there. What lies behind a length gets no gradient. A length outside 0 … the dimension ends the
/// step with OUT_OF_RANGE. Error: axis 0.
BEL_API bel_value *bel_sequence_mask(bel_graph *graph, bel_value *x, bel_value *lengths,
                                     int64_t axis);

/// Softmax along the last dimension of x [n, …, queries, keys], type T, over the keys that a query
/// may see: those for which `mask` (BOOL, broadcast to x) is true, those before lengths [n] (I64)
/// and, with `causal`, those up to the query's own index. mask, lengths or both may be NULL. Other
/// elements are 0, whatever x holds there; a query that sees nothing gets zeros.
BEL_API bel_value *bel_masked_softmax(bel_graph *graph, bel_value *x, bel_value *mask,
                                      bel_value *lengths, bool causal);

/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1): softmax(scale · q kᵀ) v for q [n,
/// heads, t, d], k [n, heads, s, d] and v [n, heads, s, e] of type T -> [n, heads, t, e]. What may
/// be seen as in bel_masked_softmax; scale 0: 1 / sqrt(d). k and v may hold anything behind a
/// length; where only a mask or `causal` hides them they must be finite numbers. Without a mask,
/// with lengths, or at least 256 keys (64 if causal), or an open number of them, and d and e up to
/// 256, this is one operation that goes by blocks (Milakov & Gimelshein 2018; Dao et al. 2022):
/// memory grows with t + s, not t · s, and what nobody sees is not computed. Otherwise products and
/// bel_masked_softmax.
BEL_API bel_value *bel_attention(bel_graph *graph, bel_value *query, bel_value *key,
                                 bel_value *value, bel_value *mask, bel_value *lengths, bool causal,
                                 double scale);

/// Connectionist temporal classification (Graves et al. 2006): logits [n, t, c] of type T with
/// lengths [n], labels [n, l] in [1, c) with lengths [n] (all I64) -> [n], the negative logarithm
/// of the probability that the frames become the labels when repeats are joined and blanks (class
/// 0) dropped. What lies behind a length does not enter. Where labels do not fit into the
/// frames the loss is INFINITY, or 0 with `zero_infinity`; its gradient is 0 either way. A label or
/// length out of range ends the step with OUT_OF_RANGE.
BEL_API bel_value *bel_ctc_loss(bel_graph *graph, bel_value *logits, bel_value *labels,
                                bel_value *logit_lengths, bel_value *label_lengths,
                                bool zero_infinity);

/// --- Bags of rows -------------------------------------------------------------------------------
///
/// Examples with several ids each, and not the same number of them (TensorFlow's
/// embedding_lookup_sparse, PyTorch's EmbeddingBag): ids I64 [a…, n], of rank 2 or more, are filled
/// up with BEL_NO_ID, as bel_dataset_pad_value and bel_csv_options.id_list_columns do it.
/// `weights`, the shape of ids, or NULL: ones. Weights have gradients too.

/// What is made of the rows e_i of an example and their weights w_i. An example without ids, and
/// one whose divisor is 0, divides by 1.
typedef enum bel_combiner {
    BEL_COMBINE_SUM,   ///< Σ w e
    BEL_COMBINE_MEAN,  ///< Σ w e / Σ w
    BEL_COMBINE_SQRTN, ///< Σ w e / √Σ w²
} bel_combiner;

/// rows [a…, n, width] of type T, one for each id, as bel_embedding gives them -> [a…, width].
/// weights of type T. A row whose id is BEL_NO_ID must be finite, and has no effect. Error: ids of
/// rank 1; another combiner.
BEL_API bel_value *bel_combine_rows(bel_graph *graph, bel_value *rows, bel_value *ids,
                                    bel_value *weights, bel_combiner combiner);

/// The rows of table "name" (bel_embedding, and its errors), combined -> F32 [a…, width].
BEL_API bel_value *bel_embedding_bag(bel_graph *graph, const char *name, bel_value *ids,
                                     bel_value *weights, int64_t width, bel_initializer initializer,
                                     bel_combiner combiner);

/// The same with rows of `data` [rows, width] of type T, such as a variable (bel_gather, and its
/// errors) -> [a…, width].
BEL_API bel_value *bel_gather_bag(bel_graph *graph, bel_value *data, bel_value *ids,
                                  bel_value *weights, bel_combiner combiner);

/// --- Losses and layers made of the above --------------------------------------------------------
///
/// A layer makes its variables, all trainable unless it says otherwise, in a scope of its name
/// (bel_graph_push_scope), with the initial values in brackets; a second layer of the same name
/// shares them.

/// Sum of values · weights over the sum of weights -> scalar; 0 where all weights are 0. Type T,
/// values and weights of one shape. A value whose weight is 0 counts for nothing, be it infinite or
/// NaN; its gradient is 0. Turns any of the losses below into a weighted mean.
BEL_API bel_value *bel_weighted_mean(bel_graph *graph, bel_value *values, bel_value *weights);

/// What becomes of the losses of a batch, in the terms of TensorFlow's tf.losses.Reduction.
typedef enum bel_reduction {
    BEL_REDUCTION_WEIGHTED_MEAN, ///< Sum of losses · weights over the sum of weights (MEAN).
    BEL_REDUCTION_MEAN,          ///< The same sum over their number (SUM_OVER_BATCH_SIZE).
    BEL_REDUCTION_NONZERO_MEAN,  ///< … over how many weights are not 0 (SUM_BY_NONZERO_WEIGHTS).
    /// The sum itself (SUM). The gradient of a step is the mean over its replicas all the same:
    /// with a sum the rate goes with the batch of a replica, not with that of the step.
    BEL_REDUCTION_SUM,
} bel_reduction;

/// Losses of a batch as a scalar. Type T, losses and weights of one shape; weights NULL: ones. A
/// loss whose weight is 0 counts for nothing, be it infinite or NaN; over no weight at all it is 0.
BEL_API bel_value *bel_reduce_loss(bel_graph *graph, bel_value *losses, bel_value *weights,
                                   bel_reduction reduction);

/// (predicted - labels)², type T, which broadcast. bel_mean of it is the mean squared error.
BEL_API bel_value *bel_squared_error(bel_graph *graph, bel_value *predicted, bel_value *labels);

/// With e = predicted - labels: e² / 2 where |e| <= delta, else delta · |e| - delta² / 2 (Huber
/// 1964). Error: delta is not above 0.
BEL_API bel_value *bel_huber_loss(bel_graph *graph, bel_value *predicted, bel_value *labels,
                                  double delta);

/// bel_softmax_cross_entropy with a weight for each class (class_weights [c] of type T, or NULL:
/// ones) and without the examples whose label is `ignored` (any number; it may be out of range):
/// losses [n] times weights [n], which are set in *out_weights: that of the label's class, or 0.
/// ONNX's reduction "mean" is the sum of the losses over the sum of the weights.
BEL_API bel_value *bel_weighted_softmax_cross_entropy(bel_graph *graph, bel_value *logits,
                                                      bel_value *labels, bel_value *class_weights,
                                                      int64_t ignored, bel_value **out_weights);

/// Cross-entropy of a sigmoid where a positive label counts positive_weight times:
/// w·z·log(1 + e^-x) + (1 - z)·log(1 + e^x) for logits x and labels z (0 … 1) of type T and one
/// shape -> same shape.
BEL_API bel_value *bel_weighted_sigmoid_cross_entropy(bel_graph *graph, bel_value *logits,
                                                      bel_value *labels, double positive_weight);

/// x [n, in] · kernel + bias -> [n, units]: variables "name/kernel" [in, units] (Glorot uniform, as
/// in all layers) and "name/bias" [units] (0). Error: x is no matrix of known width; no unit.
BEL_API bel_value *bel_dense(bel_graph *graph, bel_value *x, int64_t units, const char *name);

/// x [n, c, h, w] -> [n, filters, h / stride, w / stride] (rounded up): a convolution with windows
/// of size × size, SAME_UPPER padding and variables "name/kernel" [filters, c, size, size] (Glorot)
/// and, with `bias`, "name/bias" [filters] (0).
BEL_API bel_value *bel_conv_2d(bel_graph *graph, bel_value *x, int64_t filters, int64_t size,
                               int64_t stride, bool bias, const char *name);

/// Whose statistics a batch normalisation takes in training, where several replicas exchange with
/// each other (collective.h). With one replica all three are the same, to the bit.
typedef enum bel_batch_statistics {
    /// Each replica normalises by its own batch, and the moving statistics are the means over
    /// replicas of what each has computed. Nothing is exchanged. The mean of the replicas'
    /// variances is less than the variance of all their examples, by the variance of their means.
    BEL_STATISTICS_LOCAL,
    /// Each replica normalises by its own batch; the moving statistics are those of all replicas'
    /// examples together. One exchange.
    BEL_STATISTICS_MERGED,
    /// Normalises by the statistics of all replicas' examples together, which the moving ones
    /// follow: the same as one replica with the batch of all. One exchange forwards and one
    /// backwards.
    BEL_STATISTICS_SYNC,
} bel_batch_statistics;

typedef struct bel_batch_norm_options {
    size_t size;      ///< sizeof(bel_batch_norm_options): what lies behind counts as 0
    bool training;    ///< normalise by the batch, and move the moving statistics
    const char *name; ///< of the layer's scope
    double momentum;  ///< 0 … 1; 0: 0.9. How much of the moving statistics stays at each step.
    double epsilon;   ///< Above 0; 0: 1e-5.
    bel_batch_statistics statistics;
    /// MERGED and SYNC exchange numbers of elements, means and sums of squared distances from them,
    /// which keep their digits where a mean is large beside the deviation. With this they exchange
    /// sums and sums of squares, as TensorFlow's SyncBatchNormalization does: for comparison alone,
    /// since from a mean of some 1,000 deviations on no digit of the variance is left.
    bool sum_formula;
} bel_batch_norm_options;

/// Batch normalisation of x [n, c, …], F32: variables "name/scale" (1) and "name/bias" (0), and the
/// moving "name/mean" (0) and "name/variance" (1), which are state (BEL_VARIABLE_STATE_MEAN).
/// `training` normalises by the batch and moves them; else they are what is normalised by, and
/// nothing is exchanged. Every variance, also the moving one, is divided by the number of elements
/// (not by one less). Replicas may have batches of different sizes, or none. Errors: momentum,
/// epsilon or statistics out of range.
#define bel_batch_norm_with(graph, x, options)                                                     \
    bel_batch_norm_at((graph), (x), (options), __FILE__, __LINE__)

/// The same with momentum 0.9, epsilon 1e-5 and BEL_STATISTICS_LOCAL.
BEL_API bel_value *bel_batch_norm(bel_graph *graph, bel_value *x, bool training, const char *name);

/// What the macro above calls, with the place for messages about the exchange.
BEL_API bel_value *bel_batch_norm_at(bel_graph *graph, bel_value *x,
                                     const bel_batch_norm_options *options, const char *file,
                                     int line);

/// Layer normalisation over the last dimension, x [..., c], and group normalisation of x [n, c,
/// ...]: variables "name/scale" [c] (1) and "name/bias" [c] (0); epsilon is 1e-5.
BEL_API bel_value *bel_layer_norm(bel_graph *graph, bel_value *x, const char *name);
BEL_API bel_value *bel_group_norm(bel_graph *graph, bel_value *x, int64_t groups, const char *name);

/// Recurrent layers over padded sequences: x [n, t, in] with lengths [n] (I64, 0 … t; NULL: all
/// have t steps) -> [n, t, units], and in *out_last (NULL: not wanted) the state h after the last
/// valid step, [n, units]. What lies behind a length has no influence on anything, whatever it
/// holds; outputs there are zeros, and a sequence of no steps has a last state of zeros. States
/// start at 0. A length outside 0 … t ends the step with OUT_OF_RANGE.
///
/// Gated recurrent unit (Cho et al. 2014, eq. 5 to 8; ONNX GRU with linear_before_reset = 1: the
/// reset gate multiplies R·h + its bias). Variables "name/kernel" [3·units, in] and
/// "name/recurrent_kernel" [3·units, units] (Glorot), "name/bias" [6·units] (0): gates z, r, n.
BEL_API bel_value *bel_gru(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t units,
                           const char *name, bel_value **out_last);

/// Long short-term memory with a forget gate, without peepholes (Hochreiter & Schmidhuber 1997;
/// Gers et al. 2000; ONNX LSTM). Variables as above with 4·units and 8·units: gates i, o, f, c.
BEL_API bel_value *bel_lstm(bel_graph *graph, bel_value *x, bel_value *lengths, int64_t units,
                            const char *name, bel_value **out_last);

/// Multi-head attention (Vaswani et al. 2017, section 3.2.2): query [n, t, width] attends to
/// context [n, s, in] (NULL: to itself) with lengths [n] (I64; NULL: all are full) of the context
/// -> [n, t, width]. Variables "name/query_kernel" and "name/output_kernel" [width, width],
/// "name/key_kernel" and "name/value_kernel" [in, width] (Glorot), and a "…_bias" [width] (0) for
/// each. What lies behind a length has no influence on anything, whatever it holds; without a
/// context the outputs there are zeros. Error: the heads do not divide the width.
BEL_API bel_value *bel_multi_head_attention(bel_graph *graph, bel_value *query, bel_value *context,
                                            bel_value *lengths, int64_t heads, bool causal,
                                            const char *name);

#ifdef __cplusplus
}
#endif

#endif
