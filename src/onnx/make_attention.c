// Attention of opset 23, composed of existing operations: products, an additive or boolean mask, a
// softmax. Heads are a dimension, or parts of the last one. Past keys and values, as text
// generators keep them, are refused.
#include <math.h>

#include "base/alloc.h"
#include "onnx/make.h"

enum { Q, K, V, MASK, PAST };

// Returns x as [batch, heads, time, width]. With three dimensions the heads are contiguous in the
// last one.
static bel_status *with_heads(bel_onnx_call *call, int input, const char *heads, bel_value **out)
{
    const int64_t perm[] = {0, 2, 1, 3};
    bel_value *x = bel_onnx_in(call, input);
    bel_shape shape = bel_value_shape(x);
    int64_t count = bel_onnx_int(call, heads);
    bool split = shape.rank == 3;
    if (split ? count < 1 || shape.dims[2] < 1 || shape.dims[2] % count != 0 : shape.rank != 4) {
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d %s does not fit %s = %lld", input,
                       bel_shape_text(&shape, text), heads, (long long)count);
    }
    bel_shape four = BEL_SHAPE(0, 0, count, split ? shape.dims[2] / count : 1);
    *out = split ? bel_transpose(call->graph, bel_reshape(call->graph, x, &four), perm) : x;
    return NULL;
}

// Repeats each head of keys or values for a group of query heads.
static bel_status *repeat_heads(bel_onnx_call *call, int64_t wanted, bel_value **x)
{
    bel_shape shape = bel_value_shape(*x);
    const int64_t axis = 2;
    int64_t heads = shape.dims[1];
    if (*x == NULL || heads == wanted) return NULL;
    if (heads < 1 || wanted < 1 || wanted % heads != 0 || shape.dims[3] < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld heads of queries for %lld of keys",
                       (long long)wanted, (long long)heads);
    }
    bel_shape groups = BEL_SHAPE(1, 1, wanted / heads, 1, 1);
    bel_shape four = BEL_SHAPE(0, wanted, -1, shape.dims[3]);
    bel_value *apart = bel_unsqueeze(call->graph, *x, &axis, 1);
    *x = bel_reshape(call->graph, bel_expand(call->graph, apart, &groups), &four);
    return NULL;
}

// Returns scores where `seen`, elsewhere minus infinity.
static bel_value *hide(bel_graph *graph, bel_value *scores, bel_value *seen)
{
    return bel_where(graph, seen, scores,
                     bel_onnx_scalar(graph, bel_value_dtype(scores), -INFINITY));
}

// Query i sees keys 0 to i.
static bel_status *hide_later(bel_onnx_call *call, bel_value **scores)
{
    bel_shape shape = bel_value_shape(*scores);
    if (*scores == NULL) return NULL;
    BEL_TRY(bel_onnx_closed(&shape, 2, "a mask of that size is made"));
    int64_t rows = shape.dims[2], columns = shape.dims[3];
    BEL_TRY(bel_onnx_spend(call, (double)rows * (double)columns));
    bool *seen = bel_xcalloc((size_t)(rows * columns) + 1, sizeof *seen);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++)
            seen[i * columns + k] = k <= i;
    const bel_tensor mask = {BEL_DTYPE_BOOL, BEL_SHAPE(rows, columns), seen};
    *scores = hide(call->graph, *scores, bel_constant(call->graph, &mask));
    bel_free(seen);
    return NULL;
}

static bel_status *masked(bel_onnx_call *call, bel_value **scores)
{
    bel_graph *graph = call->graph;
    double cap = bel_onnx_number(call, "softcap");
    if (cap > 0) {
        bel_value *limit = bel_scalar(graph, bel_value_dtype(*scores), cap);
        *scores = bel_mul(graph, limit, bel_tanh(graph, bel_div(graph, *scores, limit)));
    }
    if (bel_onnx_has(call, MASK)) {
        bel_value *mask = bel_onnx_in(call, MASK);
        *scores = bel_value_dtype(mask) == BEL_DTYPE_BOOL ? hide(graph, *scores, mask)
                                                          : bel_add(graph, *scores, mask);
    }
    return bel_onnx_int(call, "is_causal") != 0 ? hide_later(call, scores) : NULL;
}

bel_status *bel_onnx_attention(bel_onnx_call *call)
{
    static const int64_t turned[] = {0, 1, 3, 2}, back[] = {0, 2, 1, 3};
    bel_graph *graph = call->graph;
    bel_value *in[3];
    for (int i = PAST; i < call->node->input_count; i++)
        if (bel_onnx_has(call, i))
            return BEL_ERR(BEL_UNIMPLEMENTED, "input %d: keys and values of before", i);
    for (int i = Q; i <= V; i++)
        BEL_TRY(with_heads(call, i, i == Q ? "q_num_heads" : "kv_num_heads", &in[i]));
    for (int i = K; i <= V; i++)
        BEL_TRY(repeat_heads(call, bel_value_shape(in[Q]).dims[1], &in[i]));
    if (in[Q] == NULL || in[K] == NULL || in[V] == NULL) return NULL; // the graph failed
    double scale = bel_onnx_number(call, "scale");
    if (bel_onnx_find_attr(call, "scale") == NULL)
        scale = 1 / sqrt((double)bel_value_shape(in[Q]).dims[3]);
    bel_value *scores = bel_matmul(graph, in[Q], bel_transpose(graph, in[K], turned));
    scores = bel_mul(graph, scores, bel_scalar(graph, bel_value_dtype(in[Q]), scale));
    BEL_TRY(masked(call, &scores));
    bel_value *y = bel_matmul(graph, bel_softmax(graph, scores), in[V]);
    const bel_shape three = BEL_SHAPE(0, 0, -1);
    if (bel_onnx_in_shape(call, Q).rank == 3)
        y = bel_reshape(graph, bel_transpose(graph, y, back), &three);
    bel_onnx_out(call, 0, y);
    return NULL;
}
