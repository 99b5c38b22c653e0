// Shapes: Reshape, Flatten, Squeeze, Unsqueeze, Transpose; and OneHot.
#include <string.h>

#include "belfry/ops.h"
#include "ops/families.h"
#include "ops/kernels/elements.h"

// --- Axes ----------------------------------------------------------------------------------------

bel_status *bel_read_axis(const bel_attr_list *attrs, int64_t otherwise, int32_t rank,
                          int32_t *out_axis)
{
    int64_t given = (int64_t)bel_attr_number(attrs, "axis", (double)otherwise);
    int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %lld does not exist in rank %d",
                       (long long)given, (int)rank);
    }
    *out_axis = (int32_t)axis;
    return NULL;
}

bel_status *bel_read_axes(const bel_attr_list *attrs, int32_t rank, bool out_listed[BEL_MAX_RANK])
{
    const bel_shape *axes = bel_attr_ints(attrs, "axes");
    memset(out_listed, axes == NULL || axes->rank == 0, BEL_MAX_RANK * sizeof(bool));
    for (int32_t i = 0; axes != NULL && i < axes->rank; i++) {
        int64_t axis = axes->dims[i] < 0 ? axes->dims[i] + rank : axes->dims[i];
        if (axis < 0 || axis >= rank) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "axis %lld does not exist in rank %d",
                           (long long)axes->dims[i], (int)rank);
        }
        out_listed[axis] = true;
    }
    return NULL;
}

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *cannot_reshape(const bel_shape *from, const bel_shape *to)
{
    char ft[BEL_SHAPE_TEXT], tt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot reshape %s to %s: element counts differ",
                   bel_shape_text(from, ft), bel_shape_text(to, tt));
}

// Product of closed dimensions, and the one open symbol if there is exactly one (else 0, or a
// count above one).
static int64_t closed_product(const bel_shape *shape, int64_t *out_symbol, int *out_open)
{
    int64_t product = 1;
    *out_symbol = 0;
    *out_open = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] >= 0) {
            product *= shape->dims[i];
        } else {
            *out_symbol = shape->dims[i];
            ++*out_open;
        }
    }
    return product;
}

bel_status *bel_infer_reshape(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *wanted = bel_attr_ints(attrs, "shape");
    int64_t symbol, ignored;
    int x_open, y_open;
    bel_shape rest = *x, y = *wanted;
    for (int32_t i = 0; i < y.rank && i < x->rank; i++)
        if (wanted->dims[i] == 0) rest.dims[i] = y.dims[i] = 1; // copied below
    int64_t have = closed_product(&rest, &symbol, &x_open);
    int64_t closed = closed_product(&y, &ignored, &y_open);
    if (y_open > 1 || x_open > 1 || (x_open == 1 && y_open == 0)) return cannot_reshape(x, wanted);
    if (y_open == 0 && have != closed) return cannot_reshape(x, wanted);
    if (y_open == 1) {
        if (closed == 0 || have % closed != 0) return cannot_reshape(x, wanted);
        if (x_open == 1 && have != closed) return cannot_reshape(x, wanted);
        for (int32_t i = 0; i < y.rank; i++)
            if (y.dims[i] < 0) y.dims[i] = x_open == 1 ? symbol : have / closed;
    }
    for (int32_t i = 0; i < y.rank && i < x->rank; i++)
        if (wanted->dims[i] == 0) y.dims[i] = x->dims[i];
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

// Dimensions are multiplied where all are closed; a single open one stays as it is.
static bool flat_product(const bel_shape *shape, int32_t first, int32_t end, int64_t *out_product)
{
    *out_product = 1;
    for (int32_t i = first; i < end; i++) {
        bool open = shape->dims[i] < 0 || *out_product < 0;
        if (open && shape->dims[i] != 1 && *out_product != 1) return false;
        *out_product *= shape->dims[i];
    }
    return true;
}

bel_status *bel_infer_flatten(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape;
    int64_t given = (int64_t)bel_attr_number(attrs, "axis", 1);
    int64_t axis = given < 0 ? given + x->rank : given, rows, columns;
    if (axis < 0 || axis > x->rank || !flat_product(x, 0, (int32_t)axis, &rows) ||
        !flat_product(x, (int32_t)axis, x->rank, &columns)) {
        char xt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot flatten %s at axis %lld",
                       bel_shape_text(x, xt), (long long)given);
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, BEL_SHAPE(rows, columns)};
    return NULL;
}

bel_status *bel_infer_squeeze(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape;
    bool all = bel_attr_ints(attrs, "axes") == NULL, listed[BEL_MAX_RANK];
    BEL_TRY(bel_read_axes(attrs, x->rank, listed));
    bel_shape y = {.rank = 0};
    for (int32_t d = 0; d < x->rank; d++) {
        if (listed[d] && !all && x->dims[d] != 1) {
            char xt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of %s is not 1", (int)d,
                           bel_shape_text(x, xt));
        }
        if (!listed[d] || x->dims[d] != 1) y.dims[y.rank++] = x->dims[d];
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

bel_status *bel_infer_unsqueeze(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *axes = bel_attr_ints(attrs, "axes");
    bool listed[BEL_MAX_RANK];
    int32_t given = axes == NULL ? 0 : axes->rank, rank = x->rank + given, count = 0;
    if (given == 0 || rank > BEL_MAX_RANK) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d axes cannot be put into rank %d", (int)given,
                       (int)x->rank);
    }
    BEL_TRY(bel_read_axes(attrs, rank, listed));
    bel_shape y = {.rank = rank};
    for (int32_t d = 0, from = 0; d < rank; d++) {
        count += listed[d];
        y.dims[d] = listed[d] || from == x->rank ? 1 : x->dims[from++];
    }
    if (count != given) return BEL_ERR(BEL_INVALID_ARGUMENT, "an axis stands twice");
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

bel_status *bel_infer_reshape_like(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    return bel_infer_like(attrs, inputs, input_count, out_outputs);
}

bel_status *bel_infer_transpose(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *perm = bel_attr_ints(attrs, "perm");
    bool used[BEL_MAX_RANK] = {false};
    out_outputs[0] = inputs[0];
    for (int32_t i = 0; i < x->rank; i++) {
        int64_t from = perm->dims[i];
        if (perm->rank != x->rank || from < 0 || from >= x->rank || used[from]) {
            char xt[BEL_SHAPE_TEXT], pt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is no permutation of the dimensions of %s",
                           bel_shape_text(perm, pt), bel_shape_text(x, xt));
        }
        used[from] = true;
        out_outputs[0].shape.dims[i] = x->dims[from];
    }
    return NULL;
}

bel_status *bel_infer_one_hot(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    BEL_TRY(bel_needs_i64(inputs[0].dtype));
    int64_t depth = (int64_t)bel_attr_number(attrs, "depth", 0);
    if (depth < 1 || inputs[0].shape.rank >= BEL_MAX_RANK) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "depth must be at least 1, got %lld",
                       (long long)depth);
    }
    out_outputs[0] = (bel_spec){BEL_DTYPE_F32, inputs[0].shape};
    out_outputs[0].shape.dims[out_outputs[0].shape.rank++] = depth;
    return NULL;
}

// --- Gradients -----------------------------------------------------------------------------------

void bel_grad_reshape(bel_gradient *g)
{
    bel_value *inputs[] = {g->output_grads[0], g->inputs[0]};
    g->input_grads[0] = bel_graph_add(g->graph, BEL_OP_RESHAPE_LIKE, NULL, inputs, 2);
}

void bel_grad_transpose(bel_gradient *g)
{
    const bel_shape *perm = bel_attr_ints(g->attrs, "perm");
    int64_t inverse[BEL_MAX_RANK];
    for (int32_t i = 0; i < perm->rank; i++)
        inverse[perm->dims[i]] = i;
    g->input_grads[0] = bel_transpose(g->graph, g->output_grads[0], inverse);
}

// --- Transpose -----------------------------------------------------------------------------------

typedef struct transpose_params {
    int64_t strides[BEL_MAX_RANK]; // in x, of each dimension of y, in runs
    int32_t rank;                  // without the dimensions of a run
    int64_t runs, runs_per_tile;   // elements that are neighbours in x and y
    size_t size;                   // bytes of a run
} transpose_params;

static void run_transpose(const bel_kernel_call *call, int64_t tile)
{
    const transpose_params *p = call->params;
    const bel_shape *y = &call->outputs[0].shape;
    const char *source = call->inputs[0].data;
    char *target = call->outputs[0].data;
    int64_t first = tile * p->runs_per_tile, end = first + p->runs_per_tile;
    for (int64_t i = first; i < end && i < p->runs; i++) {
        int64_t rest = i, from = 0;
        for (int32_t d = p->rank - 1; d >= 0; d--) {
            from += rest % y->dims[d] * p->strides[d];
            rest /= y->dims[d];
        }
        memcpy(target + (size_t)i * p->size, source + (size_t)from * p->size, p->size);
    }
}

void bel_prepare_transpose(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *perm = bel_attr_ints(prepare->attrs, "perm"), *x = &call->inputs[0].shape;
    int64_t run = 1;
    transpose_params p = {.rank = x->rank};
    for (; p.rank > 0 && perm->dims[p.rank - 1] == p.rank - 1; p.rank--)
        run *= x->dims[p.rank - 1];
    for (int32_t d = 0; d < p.rank; d++) {
        p.strides[d] = 1;
        for (int32_t after = (int32_t)perm->dims[d] + 1; after < p.rank; after++)
            p.strides[d] *= x->dims[after];
    }
    p.size = (size_t)run * bel_dtype_size(call->inputs[0].dtype);
    p.runs = run > 0 ? bel_shape_elements(x) / run : 0;
    p.runs_per_tile = bel_tile_rows(run);
    call->run = run_transpose;
    call->tile_count = (p.runs + p.runs_per_tile - 1) / p.runs_per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- OneHot --------------------------------------------------------------------------------------

static void run_one_hot(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const int64_t *indices = call->inputs[0].data;
    const bel_shape *shape = &call->outputs[0].shape;
    int64_t depth = shape->dims[shape->rank - 1];
    float *y = call->outputs[0].data;
    memset(y, 0, bel_tensor_bytes(&call->outputs[0]));
    int64_t count = bel_shape_elements(&call->inputs[0].shape);
    for (int64_t i = 0; i < count; i++)
        if (indices[i] >= 0 && indices[i] < depth) y[i * depth + indices[i]] = 1.0f;
}

void bel_prepare_one_hot(const bel_prepare *prepare, bel_kernel_call *call)
{
    (void)prepare;
    call->run = run_one_hot;
    call->tile_count = 1;
}
