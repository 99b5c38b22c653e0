// Operators along axes: Softmax and similar ones, reductions, TopK, CumSum, and products. Belfry's
// softmaxes work on the last dimension; another axis is moved there and back. Before opset 13 they
// treated all dimensions from the axis on as one row, which is the same only for the last axis. An
// empty list of axes means all of them in ONNX and Belfry; noop_with_empty_axes makes ReduceSum an
// identity.
#include "onnx/make.h"

// --- Softmax, LogSoftmax, Hardmax ----------------------------------------------------------------

// 1 at the first largest element of each row, 0 elsewhere.
static bel_value *hardmax(bel_graph *graph, bel_value *x)
{
    bel_shape shape = bel_value_shape(x);
    if (x == NULL) return NULL;
    bel_value *index = bel_arg_max(graph, x, -1);
    return bel_onnx_to(graph, bel_one_hot(graph, index, shape.dims[shape.rank - 1]),
                       bel_value_dtype(x));
}

static bel_status *along_axis(bel_onnx_call *call, bel_value *rows(bel_graph *, bel_value *))
{
    bel_value *x = bel_onnx_in(call, 0);
    int32_t axis;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), bel_value_shape(x).rank, &axis));
    bel_value *y = rows(call->graph, bel_onnx_axis_last(call->graph, x, axis));
    bel_onnx_out(call, 0, bel_onnx_axis_back(call->graph, y, axis));
    return NULL;
}

// Before opset 13: treats all dimensions from the axis on as one.
static bel_status *along_rest(bel_onnx_call *call, bel_value *rows(bel_graph *, bel_value *))
{
    bel_value *x = bel_onnx_in(call, 0);
    bel_shape shape = bel_value_shape(x);
    int64_t axis = bel_onnx_int(call, "axis");
    if (axis == shape.rank - 1 || axis == -1) return along_axis(call, rows);
    bel_value *y = rows(call->graph, bel_flatten(call->graph, x, axis));
    for (int32_t d = 0; d < shape.rank; d++)
        if (shape.dims[d] < 0) shape.dims[d] = -1; // computed
    bel_onnx_out(call, 0, bel_reshape(call->graph, y, &shape));
    return NULL;
}

#define ROWS(name, rows)                                                                           \
    bel_status *bel_onnx_##name(bel_onnx_call *call)                                               \
    {                                                                                              \
        return along_axis(call, rows);                                                             \
    }                                                                                              \
    bel_status *bel_onnx_flat_##name(bel_onnx_call *call)                                          \
    {                                                                                              \
        return along_rest(call, rows);                                                             \
    }
ROWS(softmax, bel_softmax)
ROWS(log_softmax, bel_log_softmax)
ROWS(hardmax, hardmax)

// --- Reductions ----------------------------------------------------------------------------------

typedef bel_value *reduce_fn(bel_graph *graph, bel_value *x, const int64_t *axes, int count,
                             bool keepdims);

typedef bel_value *join_fn(bel_graph *graph, bel_value *a, bel_value *b);

static bel_value *reduce_log_sum(bel_graph *graph, bel_value *x, const int64_t *axes, int count,
                                 bool keepdims)
{
    return bel_log(graph, bel_reduce_sum(graph, x, axes, count, keepdims));
}

// Belfry's reductions support only floats. Integers are combined one element after another along
// each axis, which suits the short vectors of shape computations.
static bel_status *reduce_integers(bel_onnx_call *call, bel_value *x, join_fn *join,
                                   const bel_shape *axes)
{
    enum { MOST_INTEGERS = 64 };
    bel_graph *graph = call->graph;
    bel_shape shape = bel_value_shape(x);
    int64_t listed[BEL_MAX_RANK];
    int32_t count = axes->rank > 0 ? axes->rank : shape.rank;
    for (int32_t i = 0; i < count; i++) {
        int32_t axis;
        BEL_TRY(bel_onnx_axis(axes->rank > 0 ? axes->dims[i] : i, shape.rank, &axis));
        int64_t size = shape.dims[axis];
        if (join == NULL || size < 1 || size > MOST_INTEGERS) {
            return BEL_ERR(BEL_UNIMPLEMENTED,
                           "Belfry reduces integers by ReduceSum, ReduceProd, ReduceMax and "
                           "ReduceMin, along 1 to %d elements; axis %d has %lld",
                           MOST_INTEGERS, (int)axis, (long long)size);
        }
        bel_value *all = NULL;
        const int64_t along = listed[i] = axis;
        for (int64_t k = 0; k < size; k++) {
            const int64_t end = k + 1;
            bel_value *one = bel_slice(graph, x, &along, &k, &end, NULL, 1);
            all = k == 0 ? one : join(graph, all, one);
        }
        x = all;
    }
    bool kept = bel_onnx_int(call, "keepdims") != 0 || count == 0;
    bel_onnx_out(call, 0, kept ? bel_identity(graph, x) : bel_squeeze(graph, x, listed, count));
    return NULL;
}

static join_fn *join_of(reduce_fn *fn)
{
    return fn == bel_reduce_sum    ? bel_add
           : fn == bel_reduce_prod ? bel_mul
           : fn == bel_reduce_max  ? bel_max
           : fn == bel_reduce_min  ? bel_min
                                   : NULL;
}

// Axes are an attribute or the second input. An empty list of them means all, or with
// noop_with_empty_axes no axis: then each element is reduced separately, which ONNX omits.
static bel_status *make_axis_reduce(bel_onnx_call *call, reduce_fn *fn)
{
    bel_shape axes;
    bel_value *x = bel_onnx_in(call, 0);
    BEL_TRY(bel_onnx_ints(call, "axes", &axes));
    if (bel_onnx_has(call, 1)) BEL_TRY(bel_onnx_known_ints(call, 1, &axes));
    if (axes.rank == 0 && bel_onnx_int(call, "noop_with_empty_axes") != 0) {
        bel_onnx_out(call, 0, bel_identity(call->graph, x));
        return NULL;
    }
    bel_dtype dtype = bel_value_dtype(x);
    if (dtype == BEL_DTYPE_I64 || dtype == BEL_DTYPE_I32)
        return reduce_integers(call, x, join_of(fn), &axes);
    bool keepdims = bel_onnx_int(call, "keepdims") != 0;
    bel_onnx_out(call, 0, fn(call->graph, x, axes.dims, axes.rank, keepdims));
    return NULL;
}

#define REDUCE(name, function)                                                                     \
    bel_status *bel_onnx_reduce_##name(bel_onnx_call *call)                                        \
    {                                                                                              \
        return make_axis_reduce(call, function);                                                   \
    }
REDUCE(sum, bel_reduce_sum)
REDUCE(mean, bel_reduce_mean)
REDUCE(max, bel_reduce_max)
REDUCE(min, bel_reduce_min)
REDUCE(prod, bel_reduce_prod)
REDUCE(sum_square, bel_reduce_sum_square)
REDUCE(l1, bel_reduce_l1)
REDUCE(l2, bel_reduce_l2)
REDUCE(log_sum, reduce_log_sum)
REDUCE(log_sum_exp, bel_reduce_log_sum_exp)

// --- Orders --------------------------------------------------------------------------------------

static void top_k(bel_onnx_call *call, int64_t k, bool largest)
{
    bel_value *indices;
    bel_onnx_out(call, 0,
                 bel_top_k(call->graph, bel_onnx_in(call, 0), k, bel_onnx_int(call, "axis"),
                           largest, &indices));
    bel_onnx_out(call, 1, indices);
}

bel_status *bel_onnx_old_top_k(bel_onnx_call *call)
{
    top_k(call, bel_onnx_int(call, "k"), true);
    return NULL;
}

bel_status *bel_onnx_top_k(bel_onnx_call *call)
{
    int64_t k;
    BEL_TRY(bel_onnx_known_int(call, 1, &k));
    bool smallest =
        bel_onnx_find_attr(call, "largest") != NULL && bel_onnx_int(call, "largest") == 0;
    top_k(call, k, !smallest);
    return NULL;
}

bel_status *bel_onnx_cum_sum(bel_onnx_call *call)
{
    int64_t axis;
    BEL_TRY(bel_onnx_known_int(call, 1, &axis));
    bel_onnx_out(call, 0,
                 bel_cum_sum(call->graph, bel_onnx_in(call, 0), axis,
                             bel_onnx_int(call, "exclusive") != 0,
                             bel_onnx_int(call, "reverse") != 0));
    return NULL;
}

// --- Products ------------------------------------------------------------------------------------

bel_status *bel_onnx_matmul(bel_onnx_call *call)
{
    bel_value *inputs[2];
    bel_onnx_ins(call, 2, inputs);
    bel_onnx_out(call, 0, bel_matmul(call->graph, inputs[0], inputs[1]));
    return NULL;
}

bel_status *bel_onnx_gemm(bel_onnx_call *call)
{
    bel_value *inputs[3]; // the third may be omitted
    bel_onnx_ins(call, 3, inputs);
    bool transposes = bel_onnx_int(call, "transB") != 0;
    bel_value *turned = transposes ? bel_onnx_turned(call, 1) : NULL;
    bel_onnx_out(call, 0,
                 bel_gemm(call->graph, inputs[0], turned != NULL ? turned : inputs[1], inputs[2],
                          bel_onnx_number(call, "alpha"), bel_onnx_number(call, "beta"),
                          bel_onnx_int(call, "transA") != 0, transposes && turned == NULL));
    return NULL;
}
