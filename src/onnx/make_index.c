// Operators that look up or store by index. Belfry's Gather needs non-negative I64; ONNX also
// allows I32, and negative ones from the end. GatherND and ScatterND combine several indices into
// one row number, so that Gather's kernels work for them. Storing is the gradient of gathering:
// updates are summed into zeros. With reduction "none" a second sum, of ones, marks the updated
// elements; equal indices would be added, but ONNX forbids them for "none". One tile adds the sums
// in order, so they have the same bits for any number of threads.
#include "base/alloc.h"
#include "onnx/make.h"
#include "ops/kernels/elements.h"

static bel_status *axis_of(bel_onnx_call *call, int32_t *out_axis)
{
    return bel_onnx_axis(bel_onnx_int(call, "axis"), bel_onnx_in_shape(call, 0).rank, out_axis);
}

bel_status *bel_onnx_gather(bel_onnx_call *call)
{
    int32_t axis;
    BEL_TRY(axis_of(call, &axis));
    bel_value *data = bel_onnx_in(call, 0);
    bel_value *indices =
        bel_onnx_indices(call->graph, bel_onnx_in(call, 1), bel_value_shape(data).dims[axis]);
    bel_onnx_out(call, 0, bel_gather_axis(call->graph, data, indices, axis));
    return NULL;
}

// Cuts x to the sizes of `like` in all dimensions except `axis`.
static bel_value *cut_to(bel_graph *graph, bel_value *x, const bel_shape *like, int32_t axis)
{
    bel_shape shape = bel_value_shape(x);
    for (int64_t d = 0; d < shape.rank && d < like->rank; d++) {
        int64_t start = 0;
        bool smaller = like->dims[d] >= 0 && like->dims[d] < shape.dims[d];
        if (d != axis && smaller) x = bel_slice(graph, x, &d, &start, &like->dims[d], NULL, 1);
    }
    return x;
}

bel_status *bel_onnx_gather_elements(bel_onnx_call *call)
{
    int32_t axis;
    BEL_TRY(axis_of(call, &axis));
    bel_value *data = bel_onnx_in(call, 0);
    bel_shape wanted = bel_onnx_in_shape(call, 1);
    bel_value *indices =
        bel_onnx_indices(call->graph, bel_onnx_in(call, 1), bel_value_shape(data).dims[axis]);
    data = cut_to(call->graph, data, &wanted, axis);
    bel_onnx_out(call, 0, bel_gather_elements(call->graph, data, indices, axis));
    return NULL;
}

// --- Rows by several indices ---------------------------------------------------------------------

// Data [batch…, d1 … dk, rest…] and indices [batch…, m…, k], reshaped to rows [batch · d1 … dk,
// rest…] and one index each [batch…, m…].
typedef struct flat_rows {
    bel_value *rows, *indices;
} flat_rows;

// Adds to each index the number of rows before its batch element.
static bel_value *add_batch(bel_graph *graph, bel_value *indices, const bel_shape *batch,
                            int64_t rows_each)
{
    bel_shape shape = bel_value_shape(indices);
    int64_t count = bel_shape_elements(batch);
    for (int32_t d = 0; d < shape.rank; d++)
        if (d >= batch->rank) shape.dims[d] = 1;
    bel_tensor offsets = {.dtype = BEL_DTYPE_I64, .shape = shape};
    int64_t *elements = bel_xmalloc((size_t)count * sizeof *elements + 1);
    for (int64_t i = 0; i < count; i++)
        elements[i] = i * rows_each;
    offsets.data = elements;
    indices = bel_add(graph, indices, bel_constant(graph, &offsets));
    bel_free(elements);
    return indices;
}

// True where an index is outside [0, size), or where `before` is true (NULL: nowhere).
static bel_value *or_outside(bel_graph *graph, bel_value *before, bel_value *index, bel_value *size)
{
    bel_value *low = bel_less(graph, index, bel_onnx_scalar(graph, BEL_DTYPE_I64, 0));
    bel_value *high = bel_greater_or_equal(graph, index, size);
    bel_value *outside = bel_or(graph, low, high);
    return before != NULL ? bel_or(graph, before, outside) : outside;
}

static bel_status *flatten_rows(bel_onnx_call *call, int32_t batch_rank, flat_rows *out_flat)
{
    bel_graph *graph = call->graph;
    bel_shape data = bel_onnx_in_shape(call, 0), indices = bel_onnx_in_shape(call, 1);
    int64_t k = indices.rank > 0 ? indices.dims[indices.rank - 1] : -1;
    bool fits =
        batch_rank >= 0 && indices.rank > batch_rank && k >= 1 && k <= data.rank - batch_rank;
    for (int32_t d = 0; fits && d < batch_rank; d++)
        fits = data.dims[d] == indices.dims[d];
    if (fits) BEL_TRY(bel_onnx_closed(&data, 0, "its elements are numbered"));
    if (fits) BEL_TRY(bel_onnx_closed(&indices, 0, "its elements are numbered"));
    bel_shape batch = bel_shape_make(fits ? batch_rank : 0, data.dims);
    if (!fits || bel_shape_elements(&batch) > BEL_ONNX_CONSTANT_ELEMENTS) {
        char dt[BEL_SHAPE_TEXT], it[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "data %s and indices %s do not fit",
                       bel_shape_text(&data, dt), bel_shape_text(&indices, it));
    }
    bel_value *all = bel_onnx_to(graph, bel_onnx_in(call, 1), BEL_DTYPE_I64), *flat = NULL;
    bel_value *outside = NULL; // one of several indices is; combined they could be valid
    bool several = k > 1 || batch_rank > 0;
    int64_t last = indices.rank - 1, rows_each = 1;
    for (int64_t i = 0; i < k; i++) {
        int64_t end = i + 1, size = data.dims[batch_rank + i];
        bel_value *one = bel_slice(graph, all, &last, &i, &end, NULL, 1);
        one = bel_onnx_indices(graph, bel_squeeze(graph, one, &last, 1), size);
        bel_value *scale = bel_onnx_whole(graph, size);
        if (several) outside = or_outside(graph, outside, one, scale);
        flat = flat == NULL ? one : bel_add(graph, bel_mul(graph, flat, scale), one);
        rows_each *= size;
    }
    if (batch_rank > 0) flat = add_batch(graph, flat, &batch, rows_each);
    if (several) {
        flat = bel_where(graph, outside, bel_onnx_scalar(graph, BEL_DTYPE_I64, -1), flat);
    }
    bel_shape rows = BEL_SHAPE(bel_shape_elements(&batch) * rows_each);
    for (int32_t d = batch_rank + (int32_t)k; d < data.rank; d++)
        rows.dims[rows.rank++] = data.dims[d];
    *out_flat = (flat_rows){bel_reshape(graph, bel_onnx_in(call, 0), &rows), flat};
    return NULL;
}

bel_status *bel_onnx_gather_nd(bel_onnx_call *call)
{
    int64_t batch = bel_onnx_int(call, "batch_dims");
    flat_rows flat;
    BEL_TRY(flatten_rows(call, batch < 0 || batch > BEL_MAX_RANK ? -1 : (int32_t)batch, &flat));
    bel_onnx_out(call, 0, bel_gather(call->graph, flat.rows, flat.indices));
    return NULL;
}

// --- Storing -------------------------------------------------------------------------------------

// Use of the sum of updates: data + sum ("add"), or the sum where there was an update ("none",
// whose indices are all different).
typedef enum scatter_kind { REPLACE, ADD } scatter_kind;

static bel_status *scatter_kind_of(const bel_onnx_call *call, int *out_kind)
{
    static const char *const names[] = {[REPLACE] = "none", [ADD] = "add"};
    return bel_onnx_choice(call, "reduction", names, 2, out_kind);
}

static bel_value *make_index_scatter(bel_graph *graph, bel_op op, bel_value *data,
                                     bel_value *indices, bel_value *updates, int32_t axis, int kind)
{
    bel_attr_list attrs = {.count = 1, .items = {{.name = "axis", .number = axis}}};
    bel_value *sum_inputs[] = {updates, indices, data};
    bel_value *sum = bel_graph_add(graph, op, &attrs, sum_inputs, 3);
    if (kind == ADD) return bel_add(graph, data, sum);
    bel_dtype dtype = bel_value_dtype(data);
    bel_shape shape = bel_value_shape(updates);
    bel_value *one = bel_expand(graph, bel_onnx_scalar(graph, dtype, 1), &shape);
    bel_value *count_inputs[] = {one, indices, data};
    bel_value *count = bel_graph_add(graph, op, &attrs, count_inputs, 3);
    return bel_where(graph, bel_cast(graph, count, BEL_DTYPE_BOOL), sum, data);
}

static bel_status *check_updates(bel_value *data, bel_value *updates, const bel_shape *wanted)
{
    bel_shape shape = bel_value_shape(updates);
    bel_dtype dtype = bel_value_dtype(data);
    bool is_float = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
    if (is_float && bel_value_dtype(updates) == dtype && bel_shape_equal(&shape, wanted))
        return bel_onnx_closed(wanted, 0, "updates are counted");
    char st[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "updates must be floats of shape %s, got %s of %s",
                   bel_shape_text(wanted, wt), bel_dtype_name(bel_value_dtype(updates)),
                   bel_shape_text(&shape, st));
}

bel_status *bel_onnx_scatter_elements(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    int32_t axis;
    int kind;
    BEL_TRY(axis_of(call, &axis));
    BEL_TRY(scatter_kind_of(call, &kind));
    bel_value *data = bel_onnx_in(call, 0), *updates = bel_onnx_in(call, 2);
    bel_shape shape = bel_value_shape(data), wanted = bel_onnx_in_shape(call, 1);
    BEL_TRY(check_updates(data, updates, &wanted));
    BEL_TRY(bel_onnx_closed(&shape, 0, "elements are stored in it"));
    bel_shape aligned = wanted;
    if (wanted.rank == shape.rank) aligned.dims[axis] = shape.dims[axis];
    if (!bel_shape_equal(&aligned, &shape)) {
        char it[BEL_SHAPE_TEXT], dt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_UNIMPLEMENTED, "indices %s that do not cover data %s but along axis %d",
                       bel_shape_text(&wanted, it), bel_shape_text(&shape, dt), (int)axis);
    }
    bel_value *indices = bel_onnx_indices(graph, bel_onnx_in(call, 1), shape.dims[axis]);
    bel_onnx_out(
        call, 0,
        make_index_scatter(graph, BEL_OP_GATHER_ELEMENTS_GRAD, data, indices, updates, axis, kind));
    return NULL;
}

bel_status *bel_onnx_scatter_nd(bel_onnx_call *call)
{
    int kind;
    flat_rows flat;
    BEL_TRY(scatter_kind_of(call, &kind));
    BEL_TRY(flatten_rows(call, 0, &flat));
    bel_value *updates = bel_onnx_in(call, 2);
    bel_shape shape = bel_onnx_in_shape(call, 0), wanted = bel_value_shape(flat.indices);
    bel_shape rows = bel_value_shape(flat.rows);
    for (int32_t d = 1; d < rows.rank && wanted.rank < BEL_MAX_RANK; d++)
        wanted.dims[wanted.rank++] = rows.dims[d];
    BEL_TRY(check_updates(flat.rows, updates, &wanted));
    bel_value *y = make_index_scatter(call->graph, BEL_OP_GATHER_GRAD, flat.rows, flat.indices,
                                      updates, 0, kind);
    bel_onnx_out(call, 0, bel_reshape(call->graph, y, &shape));
    return NULL;
}

// --- Choices -------------------------------------------------------------------------------------

// Negative indices count from the end; an index outside the depth gives a row of off values.
bel_status *bel_onnx_one_hot(bel_onnx_call *call)
{
    bel_graph *graph = call->graph;
    double depth;
    BEL_TRY(bel_onnx_known_number(call, 1, &depth));
    bel_shape shape = bel_onnx_in_shape(call, 0), pair = bel_onnx_in_shape(call, 2);
    int32_t axis;
    BEL_TRY(bel_onnx_axis(bel_onnx_int(call, "axis"), shape.rank + 1, &axis));
    if (pair.rank != 1 || pair.dims[0] != 2 || !(depth >= 1 && depth <= INT32_MAX)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected two values and a depth, got a depth of %g",
                       depth);
    }
    bel_value *indices = bel_onnx_indices(graph, bel_onnx_in(call, 0), (int64_t)depth);
    bel_value *hot = bel_one_hot(graph, indices, (int64_t)depth), *ends[2];
    for (int64_t i = 0; i < 2; i++) { // the values for off and on
        int64_t end = i + 1;
        ends[i] = bel_slice(graph, bel_onnx_in(call, 2), NULL, &i, &end, NULL, 1);
    }
    bel_value *y = bel_where(graph, bel_cast(graph, hot, BEL_DTYPE_BOOL), ends[1], ends[0]);
    bel_onnx_out(call, 0, bel_onnx_axis_back(graph, y, axis));
    return NULL;
}

// Selects elements along the axis (without one: of all) whose condition is true.
bel_status *bel_onnx_compress(bel_onnx_call *call)
{
    bel_tensor condition;
    BEL_TRY(bel_onnx_known(call, 1, &condition));
    bel_value *x = bel_onnx_in(call, 0);
    int32_t axis = 0;
    if (bel_onnx_find_attr(call, "axis") != NULL) {
        BEL_TRY(axis_of(call, &axis));
    } else {
        bel_shape flat = BEL_SHAPE(-1);
        x = bel_reshape(call->graph, x, &flat);
    }
    int64_t size = bel_value_shape(x).dims[axis], given = bel_shape_elements(&condition.shape);
    if (condition.dtype != BEL_DTYPE_BOOL || condition.shape.rank != 1 || given > size) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld conditions (%s) for a dimension of %lld",
                       (long long)given, bel_dtype_name(condition.dtype), (long long)size);
    }
    bel_tensor kept = {.dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(0)};
    int64_t *indices = bel_xmalloc((size_t)given * sizeof *indices + 1);
    for (int64_t i = 0; i < given; i++)
        if (bel_element_get_whole(&condition, i) != 0) indices[kept.shape.dims[0]++] = i;
    kept.data = indices;
    bel_value *places = bel_constant(call->graph, &kept);
    bel_free(indices);
    bel_onnx_out(call, 0, bel_gather_axis(call->graph, x, places, axis));
    return NULL;
}
