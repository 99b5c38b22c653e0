// Shared by the functions in operators.def: constants, casts, axes, indices. A negative index is
// converted in the graph, because indices may come at run time. The conversion needs the size, so
// along an open dimension the index stays negative and ends the step as out of range
// (docs/formats/onnx.md). A cast to the same type, or a move of the last axis, adds no node.
#include "onnx/build.h"
#include "ops/kernels/elements.h"

bel_value *bel_onnx_scalar(bel_graph *graph, bel_dtype dtype, double value)
{
    int64_t storage = 0;
    bel_tensor tensor = {.dtype = dtype, .data = &storage};
    bel_element_set(&tensor, 0, value);
    return bel_constant(graph, &tensor);
}

bel_value *bel_onnx_whole(bel_graph *graph, int64_t value)
{
    bel_tensor tensor = {.dtype = BEL_DTYPE_I64, .data = &value};
    return bel_constant(graph, &tensor);
}

bel_value *bel_onnx_to(bel_graph *graph, bel_value *x, bel_dtype dtype)
{
    return bel_value_dtype(x) == dtype ? x : bel_cast(graph, x, dtype);
}

bel_status *bel_onnx_axis(int64_t axis, int32_t rank, int32_t *out_axis)
{
    if (axis < -rank || axis >= rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %lld does not exist in rank %d", (long long)axis,
                       (int)rank);
    }
    *out_axis = (int32_t)(axis < 0 ? axis + rank : axis);
    return NULL;
}

// Takes the first one: usually an input of the graph, which exists anyway.
bel_value *bel_onnx_find_dim(const bel_graph *graph, int64_t dim, int32_t *out_axis)
{
    for (size_t i = 0; i < graph->value_count; i++) {
        const bel_shape *shape = &graph->values[i]->spec.shape;
        for (int32_t d = 0; d < shape->rank; d++) {
            if (shape->dims[d] != dim) continue;
            *out_axis = d;
            return graph->values[i];
        }
    }
    return NULL;
}

bel_status *bel_onnx_closed(const bel_shape *shape, int32_t first, const char *why)
{
    for (int32_t d = first; d < shape->rank; d++) {
        if (shape->dims[d] >= 0) continue;
        char text[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of %s is open, but %s", (int)d,
                       bel_shape_text(shape, text), why);
    }
    return NULL;
}

// Moves dimension `axis` to the end, or the last one to `axis`.
static bel_value *move_axis(bel_graph *graph, bel_value *x, int32_t axis, bool back)
{
    int32_t rank = bel_value_shape(x).rank;
    if (x == NULL || axis == rank - 1) return x;
    int64_t perm[BEL_MAX_RANK];
    for (int32_t d = 0; d < rank; d++) {
        int64_t last = d < axis ? d : d == rank - 1 ? axis : d + 1;
        int64_t first = d < axis ? d : d == axis ? rank - 1 : d - 1;
        perm[d] = back ? first : last;
    }
    return bel_transpose(graph, x, perm);
}

bel_value *bel_onnx_axis_last(bel_graph *graph, bel_value *x, int32_t axis)
{
    return move_axis(graph, x, axis, false);
}

bel_value *bel_onnx_axis_back(bel_graph *graph, bel_value *x, int32_t axis)
{
    return move_axis(graph, x, axis, true);
}

bel_value *bel_onnx_indices(bel_graph *graph, bel_value *indices, int64_t size)
{
    indices = bel_onnx_to(graph, indices, BEL_DTYPE_I64);
    if (size < 0) return indices;
    bel_value *zero = bel_onnx_whole(graph, 0);
    bel_value *offset = bel_onnx_whole(graph, size);
    bel_value *negative = bel_less(graph, indices, zero);
    return bel_where(graph, negative, bel_add(graph, indices, offset), indices);
}
