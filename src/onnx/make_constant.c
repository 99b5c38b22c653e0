// Operators whose outputs are constants, or depend only on shapes. Shape and Size become constants
// while the graph is built, or sizes of open dimensions (sizes.h), so that the usual chains from
// Shape to Reshape vanish. Range, EyeLike and Trilu's mask are computed here and limited
// (bel_onnx_spend): a small file must not request gigabytes. ConstantOfShape expands one element
// instead and needs no limit.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/make.h"
#include "onnx/shapes.h"
#include "onnx/sizes.h"
#include "ops/kernels/elements.h"

static bel_status *constant_list(bel_onnx_call *call, const bel_onnx_attr *attr)
{
    bool whole = attr->kind == BEL_ONNX_INTS;
    bel_tensor tensor = {.dtype = whole ? BEL_DTYPE_I64 : BEL_DTYPE_F32,
                         .shape = BEL_SHAPE((int64_t)attr->list_count)};
    size_t bytes = bel_tensor_bytes(&tensor);
    tensor.data = bel_xmalloc(bytes + 1);
    if (bytes > 0) memcpy(tensor.data, whole ? (const void *)attr->integers : attr->numbers, bytes);
    bel_onnx_out(call, 0, bel_constant(call->graph, &tensor));
    bel_free(tensor.data);
    return NULL;
}

bel_status *bel_onnx_constant(bel_onnx_call *call)
{
    if (call->node->attr_count != 1) {
        return BEL_ERR(BEL_DATA_LOSS, "it needs one attribute, got %d", call->node->attr_count);
    }
    const bel_onnx_attr *attr = &call->node->attrs[0];
    switch (attr->kind) {
    case BEL_ONNX_TENSOR: bel_onnx_out(call, 0, bel_constant(call->graph, &attr->tensor)); break;
    case BEL_ONNX_FLOAT:
        bel_onnx_out(call, 0, bel_scalar(call->graph, BEL_DTYPE_F32, attr->number));
        break;
    case BEL_ONNX_INT: bel_onnx_out(call, 0, bel_onnx_whole(call->graph, attr->integer)); break;
    default: return constant_list(call, attr);
    }
    return NULL;
}

bel_status *bel_onnx_constant_of_shape(bel_onnx_call *call)
{
    const bel_onnx_attr *attr = bel_onnx_find_attr(call, "value");
    float zero = 0;
    bel_tensor element = {.dtype = BEL_DTYPE_F32, .data = &zero};
    if (attr != NULL) element = attr->tensor;
    if (bel_shape_elements(&element.shape) != 1) {
        return BEL_ERR(BEL_DATA_LOSS, "attribute \"value\" must hold one element");
    }
    element.shape = bel_shape_scalar();
    return bel_onnx_repeat(call, bel_constant(call->graph, &element), 0);
}

// Counts the steps from start until before limit.
static bel_status *count_floats(const bel_tensor *ends, double *out_count)
{
    double start = bel_element_get(&ends[0], 0), limit = bel_element_get(&ends[1], 0);
    double delta = bel_element_get(&ends[2], 0), count = fmax(ceil((limit - start) / delta), 0);
    *out_count = count;
    if (delta != 0 && count >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no way from %g to %g in steps of %g", start,
                   limit, delta);
}

// The same without double; distances are unsigned, because int64 cannot hold all.
static bel_status *count_whole(const bel_tensor *ends, double *out_count)
{
    int64_t start = bel_element_get_whole(&ends[0], 0), limit = bel_element_get_whole(&ends[1], 0);
    int64_t delta = bel_element_get_whole(&ends[2], 0);
    if (delta == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no way from %lld to %lld in steps of 0",
                       (long long)start, (long long)limit);
    }
    bool up = delta > 0, any = up ? start < limit : start > limit;
    uint64_t low = (uint64_t)(up ? start : limit), high = (uint64_t)(up ? limit : start);
    uint64_t step = up ? (uint64_t)delta : 0 - (uint64_t)delta;
    *out_count = any ? (double)((high - low - 1) / step + 1) : 0;
    return NULL;
}

// Sums a one per element of the open dimension.
bel_value *bel_onnx_count_to(bel_graph *graph, int64_t dim, bel_dtype dtype)
{
    int32_t from;
    bel_value *like = bel_onnx_find_dim(graph, dim, &from);
    if (like == NULL) return NULL;
    bel_attr_list attrs = {.count = 1, .items = {{.name = "shape", .ints = BEL_SHAPE(-1 - from)}}};
    bel_value *inputs[] = {bel_onnx_scalar(graph, dtype, 1), like};
    bel_value *ones = bel_graph_add(graph, BEL_OP_EXPAND, &attrs, inputs, 2);
    return bel_cum_sum(graph, ones, 0, true, false);
}

// Makes 0, 1 … below the size of an open dimension, or of a multiple of it.
static bel_status *range_of_size(bel_onnx_call *call)
{
    bel_onnx_size_list ends[3];
    for (int i = 0; i < 3; i++) {
        BEL_TRY(bel_onnx_known_sizes(call, i, &ends[i]));
        const bel_onnx_extent *end = ends[i].items;
        bool fits = ends[i].count == 1 && (i == 1 || (end->symbol == 0 && end->number == i / 2));
        if (fits) continue;
        return BEL_ERR(
            BEL_UNIMPLEMENTED,
            "a range with the size of an open dimension that is not from 0 in steps of 1");
    }
    int64_t dim;
    bool fits = bel_onnx_dim_of(ends[1].items[0], &dim);
    bel_dtype dtype = bel_onnx_sizes_in(call, 1)->dtype;
    bel_value *y = fits ? bel_onnx_count_to(call->graph, dim, dtype) : NULL;
    if (y == NULL) return BEL_ERR(BEL_UNIMPLEMENTED, "no value has as many elements");
    bel_onnx_out(call, 0, y);
    return NULL;
}

// Makes start, start + delta … before limit.
bel_status *bel_onnx_range(bel_onnx_call *call)
{
    bel_tensor ends[3];
    if (bel_onnx_sizes_in(call, 1) != NULL) return range_of_size(call);
    for (int i = 0; i < 3; i++) {
        BEL_TRY(bel_onnx_known(call, i, &ends[i]));
        if (bel_shape_elements(&ends[i].shape) == 1 && ends[i].dtype == ends[0].dtype) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d must hold one element of type %s", i,
                       bel_dtype_name(ends[0].dtype));
    }
    bool whole = bel_element_is_whole(ends[0].dtype);
    double count = 0;
    BEL_TRY(whole ? count_whole(ends, &count) : count_floats(ends, &count));
    BEL_TRY(bel_onnx_spend(call, count));
    bel_tensor tensor = {.dtype = ends[0].dtype, .shape = BEL_SHAPE((int64_t)count)};
    tensor.data = bel_xmalloc(bel_tensor_bytes(&tensor) + 1);
    for (int64_t i = 0; i < tensor.shape.dims[0]; i++) {
        if (whole) { // unsigned products may wrap: the sums fit
            uint64_t start = (uint64_t)bel_element_get_whole(&ends[0], 0);
            uint64_t delta = (uint64_t)bel_element_get_whole(&ends[2], 0);
            bel_element_set_whole(&tensor, i, (int64_t)(start + (uint64_t)i * delta));
        } else {
            double start = bel_element_get(&ends[0], 0);
            bel_element_set(&tensor, i, start + (double)i * bel_element_get(&ends[2], 0));
        }
    }
    bel_onnx_out(call, 0, bel_constant(call->graph, &tensor));
    bel_free(tensor.data);
    return NULL;
}

// A constant [rows, columns]: 1 on the k-th diagonal; with UP_TO also below it, with FROM also
// above.
typedef enum diagonal_kind { ON, UP_TO, FROM } diagonal_kind;

static bel_status *diagonal(bel_onnx_call *call, const bel_shape *matrix, bel_dtype dtype,
                            int64_t k, diagonal_kind kind, bel_value **out_value)
{
    BEL_TRY(bel_onnx_spend(call, (double)matrix->dims[0] * (double)matrix->dims[1]));
    bel_tensor tensor = {.dtype = dtype, .shape = *matrix};
    tensor.data = bel_xcalloc(1, bel_tensor_bytes(&tensor) + 1);
    for (int64_t row = 0; row < matrix->dims[0]; row++) {
        for (int64_t column = 0; column < matrix->dims[1]; column++) {
            int64_t far = column - row;
            bool one = kind == ON ? far == k : kind == UP_TO ? far <= k : far >= k;
            bel_element_set(&tensor, row * matrix->dims[1] + column, one);
        }
    }
    *out_value = bel_constant(call->graph, &tensor);
    bel_free(tensor.data);
    return NULL;
}

bel_status *bel_onnx_eye_like(bel_onnx_call *call)
{
    bel_value *x = bel_onnx_in(call, 0), *y;
    bel_shape shape = bel_value_shape(x);
    bel_dtype dtype = bel_value_dtype(x);
    if (bel_onnx_find_attr(call, "dtype") != NULL) {
        BEL_TRY_CTX(bel_onnx_dtype(bel_onnx_int(call, "dtype"), &dtype), "attribute \"dtype\"");
    }
    BEL_TRY(bel_onnx_closed(&shape, 0, "a constant of that size is made"));
    if (shape.rank != 2) return BEL_ERR(BEL_INVALID_ARGUMENT, "its input must be a matrix");
    BEL_TRY(diagonal(call, &shape, dtype, bel_onnx_int(call, "k"), ON, &y));
    bel_onnx_out(call, 0, y);
    return NULL;
}

bel_status *bel_onnx_trilu(bel_onnx_call *call)
{
    bel_value *x = bel_onnx_in(call, 0), *kept;
    bel_shape shape = bel_value_shape(x);
    int64_t k = 0;
    if (bel_onnx_has(call, 1)) BEL_TRY(bel_onnx_known_int(call, 1, &k));
    if (shape.rank < 2) return BEL_ERR(BEL_INVALID_ARGUMENT, "its input must have two dimensions");
    BEL_TRY(bel_onnx_closed(&shape, shape.rank - 2, "a mask of that size is made"));
    bel_shape matrix = BEL_SHAPE(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]);
    diagonal_kind kind = bel_onnx_int(call, "upper") != 0 ? FROM : UP_TO;
    BEL_TRY(diagonal(call, &matrix, BEL_DTYPE_BOOL, k, kind, &kept));
    bel_value *zero = bel_onnx_scalar(call->graph, bel_value_dtype(x), 0);
    bel_onnx_out(call, 0, bel_where(call->graph, kept, x, zero));
    return NULL;
}

// Dimensions start … end - 1; negative ones count from the end, and the range is clamped.
bel_status *bel_onnx_shape(bel_onnx_call *call)
{
    bel_shape shape = bel_onnx_in_shape(call, 0), part = {.rank = 0};
    int64_t range[] = {bel_onnx_int(call, "start"), bel_onnx_int(call, "end")};
    if (bel_onnx_find_attr(call, "end") == NULL) range[1] = shape.rank;
    for (int i = 0; i < 2; i++) {
        if (range[i] < 0) range[i] += shape.rank;
        range[i] = range[i] < 0 ? 0 : range[i] > shape.rank ? shape.rank : range[i];
    }
    bel_onnx_extent items[BEL_MAX_RANK] = {{0, 0}};
    for (int64_t d = range[0]; d < range[1]; d++)
        items[part.rank++] = bel_onnx_size_of(shape.dims[d]);
    bel_onnx_sizes sizes = {BEL_DTYPE_I64, BEL_SHAPE(part.rank), items};
    bel_onnx_out_sizes(call, 0, &sizes);
    return NULL;
}

bel_status *bel_onnx_size(bel_onnx_call *call)
{
    bel_shape shape = bel_onnx_in_shape(call, 0), flat = {.rank = 0};
    bel_onnx_extent size = {1, 0};
    for (int32_t d = 0; d < shape.rank; d++)
        size = bel_onnx_size_product(size, bel_onnx_size_of(shape.dims[d]));
    bel_onnx_sizes sizes = {BEL_DTYPE_I64, flat, &size};
    bel_onnx_out_sizes(call, 0, &sizes);
    return NULL;
}
