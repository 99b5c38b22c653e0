// Parts and joins of tensors, and indices. Split is a Slice for each part. Concat of more parts
// than an operation has inputs is a tree of Concats over neighbors. Passes, kernels and gradient
// rules thus need no case for them. Lists are counted before they are packed: an attribute holds no
// more than BEL_MAX_RANK numbers.
#include "belfry/ops.h"
#include "graph/attrs.h"

static bel_value *with_axes(bel_graph *graph, bel_op op, bel_value *x, const int64_t *axes,
                            int count)
{
    bel_attr_list attrs = {.count = 0};
    if (!bel_attr_count_ok(graph, bel_op_get(op)->name, count)) return NULL;
    if (count > 0) bel_attr_put_ints(&attrs, "axes", count, axes);
    return bel_graph_add(graph, op, &attrs, &x, 1);
}

bel_value *bel_squeeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count)
{
    return with_axes(graph, BEL_OP_SQUEEZE, x, axes, count);
}

bel_value *bel_unsqueeze(bel_graph *graph, bel_value *x, const int64_t *axes, int count)
{
    return with_axes(graph, BEL_OP_UNSQUEEZE, x, axes, count);
}

bel_value *bel_expand(bel_graph *graph, bel_value *x, const bel_shape *shape)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put_ints(&attrs, "shape", shape->rank, shape->dims);
    return bel_graph_add(graph, BEL_OP_EXPAND, &attrs, &x, 1);
}

bel_value *bel_slice(bel_graph *graph, bel_value *x, const int64_t *axes, const int64_t *starts,
                     const int64_t *ends, const int64_t *steps, int count)
{
    bel_attr_list attrs = {.count = 0};
    if (!bel_attr_count_ok(graph, "Slice", count)) return NULL;
    bel_attr_put_ints(&attrs, "axes", count, axes);
    bel_attr_put_ints(&attrs, "starts", count, starts);
    bel_attr_put_ints(&attrs, "ends", count, ends);
    bel_attr_put_ints(&attrs, "steps", count, steps);
    return bel_graph_add(graph, BEL_OP_SLICE, &attrs, &x, 1);
}

void bel_split(bel_graph *graph, bel_value *x, int64_t axis, const int64_t *sizes, int count,
               bel_value **out_parts)
{
    for (int i = 0; i < count; i++)
        out_parts[i] = NULL;
    if (x == NULL) return;
    bel_shape shape = bel_value_shape(x);
    int64_t at = axis < 0 ? axis + shape.rank : axis, start = 0;
    int64_t size = at >= 0 && at < shape.rank ? shape.dims[at] : -1, sum = 0;
    // Without sizes: parts of ceil(size / count), the last one smaller.
    int64_t part = count > 0 ? (size + count - 1) / count : 0;
    bool fits = size >= 0 && count > 0;
    for (int i = 0; i < count && sizes != NULL && fits; i++) {
        fits = sizes[i] >= 0 && sizes[i] <= size - sum;
        sum += sizes[i];
    }
    fits = fits && (sizes == NULL ? (count - 1) * part <= size : sum == size);
    if (!fits) {
        char text[BEL_SHAPE_TEXT];
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sSplit: axis %lld of %s cannot be split into these %d parts", graph->scope,
                       (long long)axis, bel_shape_text(&shape, text), count);
        return;
    }
    for (int i = 0; i < count; i++) {
        int64_t end = start + (sizes == NULL ? part : sizes[i]);
        out_parts[i] = bel_slice(graph, x, &at, &start, &end, NULL, 1);
        start = end;
    }
}

// An operation has at most BEL_OP_MAX_INPUTS inputs; more are joined in rounds of neighbors.
bel_value *bel_concat(bel_graph *graph, bel_value *const *parts, int count, int64_t axis)
{
    if (count < 1) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT, "%sConcat: nothing to join", graph->scope);
        return NULL;
    }
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_value *group[BEL_OP_MAX_INPUTS];
    int stride = 1; // number of parts in one member of a group
    while (stride * BEL_OP_MAX_INPUTS < count)
        stride *= BEL_OP_MAX_INPUTS;
    int members = 0;
    for (int first = 0; first < count; first += stride) {
        int size = count - first < stride ? count - first : stride;
        group[members++] = size == 1 ? parts[first] : bel_concat(graph, parts + first, size, axis);
    }
    return bel_graph_add(graph, BEL_OP_CONCAT, &attrs, group, members);
}

bel_value *bel_concat_open(bel_graph *graph, bel_value *const *parts, int count, int64_t axis,
                           int64_t total)
{
    bel_attr_list attrs = {.count = 0};
    if (count < 1 || count > BEL_OP_MAX_INPUTS || total >= 0) {
        bel_graph_fail(graph, BEL_INVALID_ARGUMENT,
                       "%sConcat: expected 1 to %d parts and an open dimension, got %d and %lld",
                       graph->scope, BEL_OP_MAX_INPUTS, count, (long long)total);
        return NULL;
    }
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_attr_put(&attrs, "total", (double)total);
    return bel_graph_add(graph, BEL_OP_CONCAT, &attrs, parts, count);
}

bel_value *bel_pad(bel_graph *graph, bel_value *x, const int64_t *before, const int64_t *behind,
                   bel_pad_mode mode, double value)
{
    bel_attr_list attrs = {.count = 0};
    int32_t rank = bel_value_shape(x).rank;
    bel_attr_put_ints(&attrs, "pads_before", rank, before);
    bel_attr_put_ints(&attrs, "pads_behind", rank, behind);
    bel_attr_put(&attrs, "mode", mode);
    bel_attr_put(&attrs, "value", value);
    return bel_graph_add(graph, BEL_OP_PAD, &attrs, &x, 1);
}

bel_value *bel_where(bel_graph *graph, bel_value *condition, bel_value *a, bel_value *b)
{
    bel_value *inputs[] = {condition, a, b};
    return bel_graph_add(graph, BEL_OP_WHERE, NULL, inputs, 3);
}

static bel_value *at_axis(bel_graph *graph, bel_op op, bel_value *data, bel_value *indices,
                          int64_t axis)
{
    bel_attr_list attrs = {.count = 0};
    bel_attr_put(&attrs, "axis", (double)axis);
    bel_value *inputs[] = {data, indices};
    return bel_graph_add(graph, op, &attrs, inputs, 2);
}

bel_value *bel_gather_axis(bel_graph *graph, bel_value *data, bel_value *indices, int64_t axis)
{
    return at_axis(graph, BEL_OP_GATHER, data, indices, axis);
}

bel_value *bel_gather_elements(bel_graph *graph, bel_value *data, bel_value *indices, int64_t axis)
{
    return at_axis(graph, BEL_OP_GATHER_ELEMENTS, data, indices, axis);
}
