/// Operations. Names, attributes and semantics follow ONNX (opset 17) wherever ONNX has the
/// operation. This comment states what holds for every function here.
///
/// **Results and errors.** A function has the graph as first argument and returns a value that the
/// graph owns, or NULL after an error, which sticks (belfry/graph.h: errors, ownership, the thread
/// rule; lists and shapes are copied). Second results, `out_…`, are NULL after an error, too. Every
/// function refuses inputs of other types or shapes than its comment says, an axis out of range,
/// and a result of more than 2^48 elements. The error is INVALID_ARGUMENT, with a message that
/// names the operation and the shapes. Comments list only other errors. Errors that depend on data
/// occur while the program runs: they "end the step" with a status that names the operation and the
/// number.
///
/// **Types and shapes.** T is F32 or F64 (F64 runs only on reference kernels: for tests and checks,
/// not for speed); "any numbers" are T, I32, I64 and U8. Inputs of one call have one type unless
/// their types are given. x [n, c] is an input of two dimensions; a… stands for any number of them.
/// Broadcasting is ONNX's multidirectional one: shapes are aligned at their last dimension, and a
/// missing dimension or one of size 1 is repeated. An axis counts from 0, a negative one from the
/// end. Comments say which inputs may be NULL.
///
/// **Gradients.** An operation has one unless its comment says "No gradient". In that case training
/// ends with UNIMPLEMENTED if the loss depends on a variable through the operation. Indices,
/// lengths, labels of classes and conditions need no gradient, so they never cause this error.
///
/// **Determinism.** For given shapes every operation gives the same bits, for any number of
/// threads. Do not make two values as arguments of one call: C does not define which comes first in
/// the graph.
#ifndef BELFRY_OPS_H
#define BELFRY_OPS_H

#include "belfry/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/// --- Two inputs of one type, with broadcasting --------------------------------------------------

/// a + b, a - b, a · b, a / b of any numbers -> the same type. Integers wrap, and their quotients
/// truncate towards 0; divided by 0 they give 0.
BEL_API bel_value *bel_add(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_sub(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_mul(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_div(bel_graph *graph, bel_value *a, bel_value *b);
/// Larger and smaller of two, of any numbers; if equal, the gradient goes to `a`.
BEL_API bel_value *bel_max(bel_graph *graph, bel_value *a, bel_value *b);
BEL_API bel_value *bel_min(bel_graph *graph, bel_value *a, bel_value *b);
/// a to the power of b, type T. The gradient of `a` is 0 if b is 0; that of `b` is 0 if a is not
/// positive.
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
/// e^x, the natural logarithm, the square root, 1 / x and the error function, element by element.
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
/// Rounds to an integer: down, up, to the nearest (ties to even). Gradient 0.
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
/// x Φ(x) with the normal distribution Φ: exact, and approximated with tanh (Hendrycks and Gimpel
/// 2016). Not in opset 17: domain belfry.
BEL_API bel_value *bel_gelu(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_gelu_tanh(bel_graph *graph, bel_value *x);
/// x, or below 0 alpha · x and alpha · (e^x - 1). ONNX's defaults: 0.01 and 1.
BEL_API bel_value *bel_leaky_relu(bel_graph *graph, bel_value *x, double alpha);
BEL_API bel_value *bel_elu(bel_graph *graph, bel_value *x, double alpha);
/// alpha · x + beta, clamped to [0, 1]. ONNX's defaults: 0.2 and 0.5.
BEL_API bel_value *bel_hard_sigmoid(bel_graph *graph, bel_value *x, double alpha, double beta);
/// x clamped to [low, high]; -INFINITY and INFINITY leave a side open. All `high` when low > high.
BEL_API bel_value *bel_clip(bel_graph *graph, bel_value *x, double low, double high);

/// x, of any type, as a new value. Costs nothing.
BEL_API bel_value *bel_identity(bel_graph *graph, bel_value *x);
/// x, any type, as a constant: no gradient passes through it.
BEL_API bel_value *bel_stop_gradient(bel_graph *graph, bel_value *x);
/// Converts to another type. Float to integer truncates, and a number out of range becomes the
/// nearest one (NaN: 0); integer to integer keeps the low bits; anything to BOOL is "not zero". F16
/// and BF16 are rounded to nearest; other operations accept them only for storage, or on plain
/// kernels. The gradient goes back from float to float. Error: to STRING.
BEL_API bel_value *bel_cast(bel_graph *graph, bel_value *x, bel_dtype to);

/// --- Products -----------------------------------------------------------------------------------

/// Matrix product: a [..., m, k] · b [..., k, n] -> [..., m, n], type T, for each pair of matrices.
/// The leading dimensions broadcast. A vector counts as a row (a) or a column (b), and its
/// dimension is dropped again. ONNX MatMul.
BEL_API bel_value *bel_matmul(bel_graph *graph, bel_value *a, bel_value *b);

/// alpha · a' · b' + beta · c -> [m, n], type T, where a' [m, k] is a or its transpose, and b' [k,
/// n] is b or its transpose. c may be NULL, and broadcasts to [m, n]. ONNX Gemm.
BEL_API bel_value *bel_gemm(bel_graph *graph, bel_value *a, bel_value *b, bel_value *c,
                            double alpha, double beta, bool transpose_a, bool transpose_b);

/// --- Softmax and losses -------------------------------------------------------------------------

/// Softmax along the last dimension, e^x over its sum, and its logarithm, both without overflow: x
/// [a…, c], type T -> [a…, c].
BEL_API bel_value *bel_softmax(bel_graph *graph, bel_value *x);
BEL_API bel_value *bel_log_softmax(bel_graph *graph, bel_value *x);

/// Cross-entropy of softmax: logits [n, c], labels [n] I64 in [0, c) -> [n], one loss per example.
/// A label out of range ends the step with OUT_OF_RANGE. ONNX SoftmaxCrossEntropyLoss, reduction
/// "none". Its bel_mean is the usual loss.
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
/// Reductions of x, type T, over `axis_count` axes (0, with axes NULL: all of them, which gives a
/// scalar). The result lacks these axes, or with keepdims has size 1 there. ONNX Reduce…. Error:
/// more than BEL_MAX_RANK axes.

/// Sum, and arithmetic mean.
BEL_API bel_value *bel_reduce_sum(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_mean(bel_graph *graph, bel_value *x, const int64_t *axes,
                                   int axis_count, bool keepdims);
/// Mean of all elements -> scalar: bel_reduce_mean over all axes, the usual loss.
BEL_API bel_value *bel_mean(bel_graph *graph, bel_value *x);
/// Largest and smallest element. The gradient is divided equally among all elements that equal it.
BEL_API bel_value *bel_reduce_max(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_min(bel_graph *graph, bel_value *x, const int64_t *axes,
                                  int axis_count, bool keepdims);
/// Sum of squares, and product.
BEL_API bel_value *bel_reduce_sum_square(bel_graph *graph, bel_value *x, const int64_t *axes,
                                         int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_prod(bel_graph *graph, bel_value *x, const int64_t *axes,
                                   int axis_count, bool keepdims);
/// Sum of |x|, and the root of the sum of squares (its gradient is 0 if it is 0).
BEL_API bel_value *bel_reduce_l1(bel_graph *graph, bel_value *x, const int64_t *axes,
                                 int axis_count, bool keepdims);
BEL_API bel_value *bel_reduce_l2(bel_graph *graph, bel_value *x, const int64_t *axes,
                                 int axis_count, bool keepdims);
/// log of the sum of e^x, without overflow; -INFINITY if all x are. Composed of other operations.
BEL_API bel_value *bel_reduce_log_sum_exp(bel_graph *graph, bel_value *x, const int64_t *axes,
                                          int axis_count, bool keepdims);

/// --- Along one axis; x of any numbers -----------------------------------------------------------

/// Index of the largest or smallest element along `axis` (the first of equals): -> I64 without that
/// axis. No gradient.
BEL_API bel_value *bel_arg_max(bel_graph *graph, bel_value *x, int64_t axis);
BEL_API bel_value *bel_arg_min(bel_graph *graph, bel_value *x, int64_t axis);

/// The k largest (else smallest) elements along `axis`, best first and equal ones by index, and
/// their I64 indices in *out_indices (NULL to skip). Both have k elements along the axis. ONNX
/// TopK, sorted. The gradient goes to the selected elements. Takes up to k steps for an element, so
/// it suits a small k. Error: k is not in 1 … the dimension.
BEL_API bel_value *bel_top_k(bel_graph *graph, bel_value *x, int64_t k, int64_t axis, bool largest,
                             bel_value **out_indices);

/// Cumulative sums along `axis`; exclusive: without the element itself; reverse: from the end. ONNX
/// CumSum.
BEL_API bel_value *bel_cum_sum(bel_graph *graph, bel_value *x, int64_t axis, bool exclusive,
                               bool reverse);

/// --- Shapes and indices -------------------------------------------------------------------------

/// Reshapes x, of any type. One dimension may be -1 and is computed; 0 means x's dimension at the
/// same place. If x has an open dimension, -1 (or a 0 at its place) stands for it or for a multiple
/// of it, and the other dimensions must divide evenly. Costs nothing. Error: the numbers of
/// elements differ.
BEL_API bel_value *bel_reshape(bel_graph *graph, bel_value *x, const bel_shape *shape);
/// Permutes dimensions: dimension i of the result is dimension permutation[i] of x, any type.
/// `permutation` has one number, from 0 on, for each dimension of x.
BEL_API bel_value *bel_transpose(bel_graph *graph, bel_value *x, const int64_t *permutation);
/// Reshapes x, any type, to a matrix: the product of the dimensions before `axis`, and of those
/// from `axis` on. ONNX Flatten. Costs nothing. Error: three open dimensions would be multiplied.
BEL_API bel_value *bel_flatten(bel_graph *graph, bel_value *x, int64_t axis);
/// Removes the dimensions of size 1 that `axes` lists (NULL and 0: all of that size). ONNX Squeeze.
/// Costs nothing. Error: a listed dimension is not 1; an axis is listed twice.
BEL_API bel_value *bel_squeeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count);
/// Inserts dimensions of size 1 at the places `axes` of the result. ONNX Unsqueeze. Costs nothing.
/// Error: an axis is listed twice.
BEL_API bel_value *bel_unsqueeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count);

/// Broadcasts x of any type with `shape`; a 1 in `shape` keeps x's dimension, even an open one.
/// ONNX Expand.
BEL_API bel_value *bel_expand(bel_graph *graph, bel_value *x, const bel_shape *shape);

/// Slices x, of any type, along `count` axes (NULL: the first ones): the elements start, start +
/// step … before end. Negative starts and ends count from the end, and positions outside are cut
/// off. A negative step goes backwards (end INT64_MIN: to the first element). steps NULL: ones. An
/// open dimension allows only the full range, 0 to INT64_MAX. ONNX Slice. Errors: a step of 0; an
/// axis that is listed twice.
BEL_API bel_value *bel_slice(bel_graph *graph, bel_value *x, const int64_t *axes,
                             const int64_t *starts, const int64_t *ends, const int64_t *steps,
                             int count);

/// Splits x along `axis` into `count` parts of these sizes, whose sum is the dimension; sizes NULL:
/// equal parts, the last one smaller. out_parts[count] are all NULL after an error. ONNX Split, as
/// one Slice for each part.
BEL_API void bel_split(bel_graph *graph, bel_value *x, int64_t axis, const int64_t *sizes,
                       int count, bel_value **out_parts);

/// Concatenates `count` tensors of one type along `axis`. All other dimensions are equal; that of
/// the axis is closed. ONNX Concat.
BEL_API bel_value *bel_concat(bel_graph *graph, bel_value *const *parts, int count, int64_t axis);

/// The same along an axis that is open in a part, for at most 9 parts. The dimension of the result
/// is `total`, the symbol of an open dimension, and its size the sum of the parts'. A run fails
/// with INVALID_ARGUMENT if the result meets a value whose dimension `total` has another size. No
/// gradient.
BEL_API bel_value *bel_concat_open(bel_graph *graph, bel_value *const *parts, int count,
                                   int64_t axis, int64_t total);

/// Values of the elements that bel_pad adds.
typedef enum bel_pad_mode {
    BEL_PAD_CONSTANT, ///< `value`.
    BEL_PAD_EDGE,     ///< The first or last element of the dimension.
    BEL_PAD_REFLECT,  ///< Mirrored at the edge, which is not repeated; fewer than the dimension's
                      ///< elements.
} bel_pad_mode;

/// Pads x, of any type: before[d] elements at the start of dimension d, the other list's at its end
/// (NULL: no padding). Negative numbers remove elements. An open dimension cannot be padded. ONNX
/// Pad, whose list of pads is split in two.
BEL_API bel_value *bel_pad(bel_graph *graph, bel_value *x, const int64_t *before,
                           const int64_t *behind, bel_pad_mode mode, double value);

/// Selects from `a` if the condition (BOOL) is true, else from `b`; a and b have one type, any, and
/// all three broadcast. ONNX Where.
BEL_API bel_value *bel_where(bel_graph *graph, bel_value *condition, bel_value *a, bel_value *b);

/// Rows of `data` [n, ...] at `indices` (I64, any shape) -> [indices..., ...]. ONNX Gather, axis 0.
/// An index out of [0, n) ends the step with OUT_OF_RANGE; unlike in ONNX, this includes negative
/// ones.
BEL_API bel_value *bel_gather(bel_graph *graph, bel_value *data, bel_value *indices);
/// The same along any axis: data [a..., n, b...] -> [a..., indices..., b...].
BEL_API bel_value *bel_gather_axis(bel_graph *graph, bel_value *data, bel_value *indices,
                                   int64_t axis);
/// data [a..., n, b...], indices [a..., m, b...] (I64) -> [a..., m, b...]: each index selects the
/// element of data along `axis`, at the same place in the other dimensions. ONNX GatherElements,
/// which also allows smaller other dimensions of the indices. Indices out of [0, n) as above.
BEL_API bel_value *bel_gather_elements(bel_graph *graph, bel_value *data, bel_value *indices,
                                       int64_t axis);
/// indices (I64) -> [indices..., depth] F32: 1 at the index, 0 elsewhere; all 0 for an index out of
/// [0, depth). No gradient. Error: depth is below 1.
BEL_API bel_value *bel_one_hot(bel_graph *graph, bel_value *indices, int64_t depth);

/// --- Regularization -----------------------------------------------------------------------------

/// Keeps each element with probability 1 - ratio and multiplies it by 1 / (1 - ratio). Call it only
/// in TRAIN. The choice is a function of (seed, this operation, step, replica). Type T. Error:
/// ratio is not in [0, 1).
BEL_API bel_value *bel_dropout(bel_graph *graph, bel_value *x, double ratio);

/// --- Numbers of a run, no gradient --------------------------------------------------------------

/// Uniform random numbers in [low, high), where rounding may give `high` itself, in the shape and
/// type T of `like`, whose elements are ignored. They are a function of (seed, this operation,
/// step, replica) in TRAIN. In EVAL and PREDICT they are a function of (seed, this operation, the
/// checkpoint's step, number of the batch). For a fixed shape use bel_expand of a scalar as `like`.
/// To draw a class from logits: bel_arg_max of logits - log(-log u), u uniform (Gumbel 1954).
/// Errors: low is not below high; a number that is not finite.
BEL_API bel_value *bel_random_uniform(bel_graph *graph, bel_value *like, double low, double high);
/// The same for normal random numbers with this mean and standard deviation. Error: a negative
/// deviation, too.
BEL_API bel_value *bel_random_normal(bel_graph *graph, bel_value *like, double mean,
                                     double deviation);

/// The step as a scalar I64: in TRAIN the version that this step computes on, from 0; in EVAL and
/// PREDICT the checkpoint's.
BEL_API bel_value *bel_global_step(bel_graph *graph);

/// --- Images: x [n, c, w] or [n, c, h, w] of type T; only n may be open --------------------------
///
/// Spatial numbers (kernel, strides, dilations) are one for each spatial dimension: [w] or [h, w].
/// Pads are those before, followed by those after: [w, w] or [h, w, h, w]. A program stores images
/// channels-last between these operations if that is faster; this changes no result.

/// Automatic padding. SAME: the output has ceil(size / stride) elements; an odd pad is after
/// (UPPER) or before (LOWER). VALID: no padding.
typedef enum bel_auto_pad {
    BEL_PAD_EXPLICIT, ///< `pads` applies. ONNX: NOTSET.
    BEL_PAD_SAME_UPPER,
    BEL_PAD_SAME_LOWER,
    BEL_PAD_VALID,
} bel_auto_pad;

/// Options of a window. NULL lists are ones (strides, dilations) and zeros (pads).
typedef struct bel_window_options {
    size_t size; ///< sizeof(bel_window_options): fields after it count as 0
    bel_auto_pad auto_pad;
    const int64_t *strides, *pads, *dilations;
} bel_window_options;

/// Convolution (cross-correlation: the kernel is not flipped): x with weights w [o, c / group,
/// kernel…] and bias [o] (or NULL) -> [n, o, …]. Channels form `group` equal groups; output
/// channels of a group use only its input channels. options NULL: defaults. ONNX Conv. Errors:
/// incompatible shapes; the window is larger than the padded image.
BEL_API bel_value *bel_conv(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias,
                            int64_t group, const bel_window_options *options);

/// Transposed convolution, the gradient of bel_conv with regard to its input: x [n, c, …] with
/// weights w [c, o / group, kernel…] and bias [o] (or NULL) -> [n, o, …]. Its size is (size - 1) ·
/// stride + (kernel - 1) · dilation + 1 + output_padding - pads. output_padding (NULL: 0), less
/// than the stride, selects among the sizes that a convolution with that stride maps to one.
/// output_shape (NULL: unset) sets the spatial sizes, and auto_pad SAME sets them to size · stride;
/// pads are then computed. ONNX ConvTranspose. Errors: incompatible shapes; no pads give the size.
BEL_API bel_value *bel_conv_transpose(bel_graph *graph, bel_value *x, bel_value *w, bel_value *bias,
                                      int64_t group, const bel_window_options *options,
                                      const int64_t *output_padding, const int64_t *output_shape);

/// Largest element, or mean, of each window of size `kernel` (NULL: the entire image) -> [n, c, …].
/// ceil_mode rounds the number of windows up. Padding is never the largest; it counts as zeros in a
/// mean only with count_include_pad. Among equal largest elements the first gets the gradient.
/// options NULL: strides of 1, as in ONNX (MaxPool, AveragePool; opset 17 has no dilations of a
/// mean). Error: a window that covers only padding.
BEL_API bel_value *bel_max_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                                const bel_window_options *options, bool ceil_mode);
BEL_API bel_value *bel_average_pool(bel_graph *graph, bel_value *x, const int64_t *kernel,
                                    const bel_window_options *options, bool ceil_mode,
                                    bool count_include_pad);
/// Mean over the spatial dimensions -> [n, c, 1] or [n, c, 1, 1]. ONNX GlobalAveragePool.
BEL_API bel_value *bel_global_average_pool(bel_graph *graph, bel_value *x);

/// Batch normalization by channel: (x - mean) / sqrt(variance + epsilon) · scale + bias, for x [n,
/// c, …] of any rank from 2 on and four vectors [c]. ONNX BatchNormalization. With `training` mean
/// and variance are those of the batch (the variance divided by the number of elements), and
/// *out_mean and *out_variance become momentum · mean + (1 - momentum) · the batch's: assign them
/// to the variables of the moving statistics. Otherwise these outputs (NULL to skip) equal the
/// inputs.
BEL_API bel_value *bel_batch_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, bel_value *mean, bel_value *variance,
                                           double epsilon, double momentum, bool training,
                                           bel_value **out_mean, bel_value **out_variance);

/// --- Normalization of rows ----------------------------------------------------------------------
///
/// A row becomes (row - its mean) / sqrt(its variance + epsilon), with the variance divided by the
/// number of elements; then every element is multiplied by its scale, and its bias is added. Type
/// T. Mean and variance stay precise even if the mean is much larger than the deviation.

/// Layer normalization: a row has the dimensions from `axis` on (negative: from the end). x [a...,
/// b...] with scale and bias [b...] (bias NULL: 0), where b... are the dimensions from the axis on.
/// ONNX LayerNormalization (Ba et al. 2016), whose scale and bias may also broadcast.
BEL_API bel_value *bel_layer_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, int64_t axis, double epsilon);

/// Instance normalization: rows are the channels of each image. x [n, c, ...] with scale and bias
/// [c]. ONNX InstanceNormalization (Ulyanov et al. 2016).
BEL_API bel_value *bel_instance_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                              bel_value *bias, double epsilon);

/// Group normalization: rows are `groups` equal groups of neighboring channels of each image. x
/// [n, c, ...] with scale and bias [c]. ONNX GroupNormalization as of opset 21 (Wu & He 2018);
/// domain belfry. Error: c is no multiple of the groups.
BEL_API bel_value *bel_group_normalization(bel_graph *graph, bel_value *x, bel_value *scale,
                                           bel_value *bias, int64_t groups, double epsilon);

/// --- Sequences in one tensor, padded to the longest ---------------------------------------------

/// Masks sequences: x [n, …], any type, with lengths [n] (I64) becomes zero along `axis` from the
/// length on. Elements from the length on get no gradient. A length outside 0 … the dimension ends
/// the step with OUT_OF_RANGE. Error: axis 0.
BEL_API bel_value *bel_sequence_mask(bel_graph *graph, bel_value *x, bel_value *lengths,
                                     int64_t axis);

/// Softmax along the last dimension of x [n, …, queries, keys], type T, over the visible keys of a
/// query. These are the keys for which `mask` (BOOL, broadcast to x) is true, that are before
/// lengths [n] (I64) and, with `causal`, that are not after the query's index. mask, lengths or
/// both may be NULL. Other elements are 0, whatever x has there; a query without visible keys gets
/// zeros.
BEL_API bel_value *bel_masked_softmax(bel_graph *graph, bel_value *x, bel_value *mask,
                                      bel_value *lengths, bool causal);

/// Scaled dot-product attention (Vaswani et al. 2017, eq. 1): softmax(scale · q kᵀ) v for q [n,
/// heads, t, d], k [n, heads, s, d] and v [n, heads, s, e] of type T -> [n, heads, t, e].
/// Visibility as in bel_masked_softmax; scale 0: 1 / sqrt(d). k and v may have any values after a
/// length, but must be finite where only a mask or `causal` hides them.
///
/// This is one blocked operation (Milakov & Gimelshein 2018; Dao et al. 2022) if there is no mask,
/// d and e are up to 256, and there are lengths, at least 256 keys (64 if causal), or an open
/// number of them. Its memory grows with t + s, not t · s, and it skips hidden blocks. Otherwise it
/// is products and bel_masked_softmax.
BEL_API bel_value *bel_attention(bel_graph *graph, bel_value *query, bel_value *key,
                                 bel_value *value, bel_value *mask, bel_value *lengths, bool causal,
                                 double scale);

/// Attention of one more token, as in bel_attention, over kept keys and values and its key and
/// value: query [n, heads, 1, d], kept keys [n, kv_heads, s, d] and values [n, kv_heads, s, e], of
/// which those before lengths [n] (I64) count, and the token's own_key [n, kv_heads, 1, d] and
/// own_value [n, kv_heads, 1, e], type T -> [n, heads, 1, e]. Each of kv_heads serves heads /
/// kv_heads neighbors (Ainslie et al. 2023). On the processor, and with exact arithmetic on GPUs,
/// it reads no kept element from its length on, and copies no kept one. Errors: heads is no
/// multiple of kv_heads; a shape of own_key or own_value does not fit. UNIMPLEMENTED: a gradient of
/// query, keys or values; own_key and own_value have one.
BEL_API bel_value *bel_attention_step(bel_graph *graph, bel_value *query, bel_value *keys,
                                      bel_value *values, bel_value *lengths, bel_value *own_key,
                                      bel_value *own_value, double scale);

/// Connectionist temporal classification (Graves et al. 2006): logits [n, t, c] of type T with
/// lengths [n], labels [n, l] in [1, c) with lengths [n] (all I64) -> [n]. The loss is the negative
/// logarithm of the probability that the frames give the labels, after repeats are merged and
/// blanks (class 0) dropped. Elements after a length are ignored. If the labels do not fit into the
/// frames, the loss is INFINITY, or 0 with `zero_infinity`; its gradient is 0 either way. A label
/// or length out of range ends the step with OUT_OF_RANGE.
BEL_API bel_value *bel_ctc_loss(bel_graph *graph, bel_value *logits, bel_value *labels,
                                bel_value *logit_lengths, bel_value *label_lengths,
                                bool zero_infinity);

/// --- Bags of rows -------------------------------------------------------------------------------
///
/// Bags combine the rows of an example with a variable number of ids (TensorFlow's
/// embedding_lookup_sparse, PyTorch's EmbeddingBag). ids I64 [a…, n], of rank 2 or more, are padded
/// with BEL_NO_ID, as bel_dataset_pad_value and bel_csv_options.id_list_columns do. `weights`, the
/// shape of ids, or NULL: ones. Weights have gradients too.

/// Combination of the rows e_i of an example with weights w_i. Without ids, or with a divisor of 0,
/// it divides by 1.
typedef enum bel_combiner {
    BEL_COMBINE_SUM,   ///< Σ w e
    BEL_COMBINE_MEAN,  ///< Σ w e / Σ w
    BEL_COMBINE_SQRTN, ///< Σ w e / √Σ w²
} bel_combiner;

/// Combines rows [a…, n, width] of type T, one for each id, as bel_embedding gives them -> [a…,
/// width]. weights of type T. A row whose id is BEL_NO_ID must be finite, and has no effect. Error:
/// ids of rank 1; another combiner.
BEL_API bel_value *bel_combine_rows(bel_graph *graph, bel_value *rows, bel_value *ids,
                                    bel_value *weights, bel_combiner combiner);

/// Combines rows of table "name" (bel_embedding, and its errors) -> F32 [a…, width].
BEL_API bel_value *bel_embedding_bag(bel_graph *graph, const char *name, bel_value *ids,
                                     bel_value *weights, int64_t width, bel_initializer initializer,
                                     bel_combiner combiner);

/// Combines rows of `data` [rows, width] of type T, such as a variable (bel_gather, and its errors)
/// -> [a…, width].
BEL_API bel_value *bel_gather_bag(bel_graph *graph, bel_value *data, bel_value *ids,
                                  bel_value *weights, bel_combiner combiner);

/// --- Losses and layers made of the above --------------------------------------------------------
///
/// A layer makes its variables, all trainable unless it says otherwise, in a scope of its name
/// (bel_graph_push_scope), with the initial values in brackets. A second layer of the same name
/// shares them.

/// Sum of values · weights over the sum of weights -> scalar; 0 if all weights are 0. Type T,
/// values and weights of one shape. A value whose weight is 0 is ignored, even if it is infinite or
/// NaN; its gradient is 0. Turns any of the losses below into a weighted mean.
BEL_API bel_value *bel_weighted_mean(bel_graph *graph, bel_value *values, bel_value *weights);

/// Reduction of the losses of a batch, in the terms of TensorFlow's tf.losses.Reduction.
typedef enum bel_reduction {
    BEL_REDUCTION_WEIGHTED_MEAN, ///< Sum of losses · weights over the sum of weights (MEAN).
    BEL_REDUCTION_MEAN,          ///< The same sum over their number (SUM_OVER_BATCH_SIZE).
    BEL_REDUCTION_NONZERO_MEAN,  ///< … over the number of non-zero weights
                                 ///< (SUM_BY_NONZERO_WEIGHTS).
    /// The sum itself (SUM). The gradient of a step is still the mean over its replicas, so with a
    /// sum the learning rate scales with a replica's batch, not with the step's.
    BEL_REDUCTION_SUM,
} bel_reduction;

/// Reduces losses of a batch to a scalar. Type T, losses and weights of one shape; weights NULL:
/// ones. A loss whose weight is 0 is ignored, even if it is infinite or NaN. Without any non-zero
/// weight the result is 0.
BEL_API bel_value *bel_reduce_loss(bel_graph *graph, bel_value *losses, bel_value *weights,
                                   bel_reduction reduction);

/// (predicted - labels)², type T, which broadcast. bel_mean of it is the mean squared error.
BEL_API bel_value *bel_squared_error(bel_graph *graph, bel_value *predicted, bel_value *labels);

/// Huber loss (Huber 1964). With e = predicted - labels: e² / 2 if |e| <= delta, else delta · |e| -
/// delta² / 2. Error: delta is not above 0.
BEL_API bel_value *bel_huber_loss(bel_graph *graph, bel_value *predicted, bel_value *labels,
                                  double delta);

/// bel_softmax_cross_entropy with a weight for each class (class_weights [c] of type T, or NULL:
/// ones) and without the examples whose label is `ignored` (any number; it may be out of range).
/// Returns losses [n] times weights [n], and sets *out_weights to these weights: that of the
/// label's class, or 0. ONNX's reduction "mean" is the sum of the losses over the sum of the
/// weights.
BEL_API bel_value *bel_weighted_softmax_cross_entropy(bel_graph *graph, bel_value *logits,
                                                      bel_value *labels, bel_value *class_weights,
                                                      int64_t ignored, bel_value **out_weights);

/// Cross-entropy of a sigmoid with weight w = positive_weight for positive labels: w·z·log(1 +
/// e^-x) + (1 - z)·log(1 + e^x) for logits x and labels z (0 … 1) of type T and one shape -> same
/// shape.
BEL_API bel_value *bel_weighted_sigmoid_cross_entropy(bel_graph *graph, bel_value *logits,
                                                      bel_value *labels, double positive_weight);

/// Dense layer: x [n, in] · kernel + bias -> [n, units], with variables "name/kernel" [in, units]
/// (Glorot uniform, as in all layers) and "name/bias" [units] (0). Error: x is no matrix of known
/// width; units is below 1.
BEL_API bel_value *bel_dense(bel_graph *graph, bel_value *x, int64_t units, const char *name);

/// Convolutional layer: x [n, c, h, w] -> [n, filters, h / stride, w / stride] (rounded up), with
/// windows of size × size, SAME_UPPER padding and variables "name/kernel" [filters, c, size, size]
/// (Glorot) and, with `bias`, "name/bias" [filters] (0).
BEL_API bel_value *bel_conv_2d(bel_graph *graph, bel_value *x, int64_t filters, int64_t size,
                               int64_t stride, bool bias, const char *name);

/// Statistics of a batch normalization in training, when several replicas exchange with each other
/// (collective.h). With one replica all three are the same, to the bit.
typedef enum bel_batch_statistics {
    /// Each replica normalizes by the statistics of its batch, and the moving statistics are the
    /// means over replicas. No exchange. The mean of the replicas' variances is less than the
    /// variance of all their examples, by the variance of their means.
    BEL_STATISTICS_LOCAL,
    /// Each replica normalizes by the statistics of its batch; the moving statistics are those of
    /// all replicas' examples together. One exchange.
    BEL_STATISTICS_MERGED,
    /// Normalizes by the statistics of all replicas' examples together, which the moving ones
    /// follow: the same as one replica with all batches. One exchange in the forward pass and one
    /// in the backward pass.
    BEL_STATISTICS_SYNC,
} bel_batch_statistics;

typedef struct bel_batch_norm_options {
    size_t size;   ///< sizeof(bel_batch_norm_options): fields after it count as 0
    bool training; ///< normalize by the batch, and update the moving statistics
    bel_batch_statistics statistics;
    /// MERGED and SYNC exchange numbers of elements, means and sums of squared distances from them,
    /// which stay precise if a mean is much larger than the deviation. true: they exchange sums and
    /// sums of squares, as TensorFlow's SyncBatchNormalization does. Only for comparison: from a
    /// mean of some 1,000 deviations on, no digit of the variance remains.
    bool sum_formula;
    const char *name; ///< name of the layer's scope
    double momentum;  ///< 0 … 1; 0: 0.9. The share of the moving statistics that stays at each
                      ///< step.
    double epsilon;   ///< Above 0; 0: 1e-5.
} bel_batch_norm_options;

/// Batch normalization layer of x [n, c, …], F32, with variables "name/scale" (1) and "name/bias"
/// (0), and the moving "name/mean" (0) and "name/variance" (1), which are state
/// (BEL_VARIABLE_STATE_MEAN). `training` normalizes by the batch and updates the moving statistics.
/// Otherwise it normalizes by the moving statistics, without an exchange. Every variance, also the
/// moving one, is divided by the number of elements (not by one less). Replicas may have batches of
/// different sizes, or empty ones. Errors: momentum, epsilon or statistics out of range.
#define bel_batch_norm_with(graph, x, options)                                                     \
    bel_batch_norm_at((graph), (x), (options), __FILE__, __LINE__)

/// bel_batch_norm_with with momentum 0.9, epsilon 1e-5 and BEL_STATISTICS_LOCAL.
BEL_API bel_value *bel_batch_norm(bel_graph *graph, bel_value *x, bool training, const char *name);

/// Function of bel_batch_norm_with, with the place for messages about the exchange.
BEL_API bel_value *bel_batch_norm_at(bel_graph *graph, bel_value *x,
                                     const bel_batch_norm_options *options, const char *file,
                                     int line);

/// Layer normalization over the last dimension, x [..., c], with variables "name/scale" [c] (1) and
/// "name/bias" [c] (0); epsilon is 1e-5.
BEL_API bel_value *bel_layer_norm(bel_graph *graph, bel_value *x, const char *name);
/// The same as group normalization of x [n, c, ...].
BEL_API bel_value *bel_group_norm(bel_graph *graph, bel_value *x, int64_t groups, const char *name);

/// Gated recurrent unit over padded sequences (Cho et al. 2014, eq. 5 to 8; ONNX GRU with
/// linear_before_reset = 1: the reset gate multiplies R·h + its bias). Variables "name/kernel"
/// [3·units, in] and "name/recurrent_kernel" [3·units, units] (Glorot), "name/bias" [6·units] (0):
/// gates z, r, n.
///
/// For all recurrent layers: x [n, t, in] with lengths [n] (I64, 0 … t; NULL: all have t steps) ->
/// [n, t, units]. *out_last (NULL to skip) is the state h after the last valid step, [n, units].
/// Elements after a length have no influence, whatever their values. Outputs there are zeros, and a
/// sequence without steps has a last state of zeros. States start at 0. A length outside 0 … t ends
/// the step with OUT_OF_RANGE.
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
/// each. Elements after a length have no influence, whatever their values; without a context the
/// outputs there are zeros. Error: the heads do not divide the width.
BEL_API bel_value *bel_multi_head_attention(bel_graph *graph, bel_value *query, bel_value *context,
                                            bel_value *lengths, int64_t heads, bool causal,
                                            const char *name);

#ifdef __cplusplus
}
#endif

#endif
