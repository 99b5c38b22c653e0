// LayerNormalization, InstanceNormalization and GroupNormalization. All normalize rows; they differ
// in the definition of a row and in the elements that share a scale (kernels/row_norm.h). Outputs 1
// and 2, a row's mean and its inverse deviation, are kept for the gradient. The plain kernels use
// two passes in double. Forward has a tile for each row; the gradient has one tile, because every
// row adds to the gradients of scale and bias, in order.
#include <math.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/row_norm.h"

// --- Rows ----------------------------------------------------------------------------------------

// Reads the rows of x [a..., b...] from attribute axis on, and the shape of their statistics:
// [a..., 1...].
static bel_status *read_layer(const bel_attr_list *attrs, const bel_shape *x, int32_t *out_axis,
                              bel_shape *out_statistics)
{
    BEL_TRY(bel_read_axis(attrs, -1, x->rank, out_axis));
    *out_statistics = *x;
    for (int32_t d = *out_axis; d < x->rank; d++)
        out_statistics->dims[d] = 1;
    return NULL;
}

// Reads x [n, c, …] and its groups; without attribute num_groups each channel is one.
static bel_status *read_groups(const bel_attr_list *attrs, const bel_shape *x, int64_t *out_groups)
{
    char text[BEL_SHAPE_TEXT];
    if (x->rank < 2 || x->dims[1] < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected x [n, c, ...], got %s",
                       bel_shape_text(x, text));
    }
    *out_groups = bel_attr_whole(attrs, "num_groups", x->dims[1]);
    if (*out_groups >= 1 && x->dims[1] % *out_groups == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%lld channels cannot be cut into %lld equal groups",
                   (long long)x->dims[1], (long long)*out_groups);
}

// Returns the rows of closed, inferred shapes.
static bel_row_norm rows_of(const bel_attr_list *attrs, bool layer, const bel_shape *x)
{
    bel_row_norm n = {
        .scales = 1, .run = 1, .period = 1, .epsilon = bel_attr_number(attrs, "epsilon", 1e-5)};
    if (layer) {
        int32_t axis = 0;
        bel_shape statistics;
        bel_status_ignore(read_layer(attrs, x, &axis, &statistics)); // inferred
        n.rows = bel_shape_elements(&statistics);
        for (int32_t d = axis; d < x->rank; d++)
            n.scales *= x->dims[d];
    } else {
        bel_status_ignore(read_groups(attrs, x, &n.period)); // inferred
        n.rows = x->dims[0] * n.period;
        n.scales = x->dims[1] / n.period;
        for (int32_t d = 2; d < x->rank; d++)
            n.run *= x->dims[d];
    }
    n.columns = n.scales * n.run;
    return n;
}

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *row_norm_check(const char *what, const bel_spec *have, bel_dtype dtype,
                                  const bel_shape *want)
{
    if (have->dtype == dtype && bel_shape_equal(&have->shape, want)) return NULL;
    char ht[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected %s %s %s, got %s %s", what,
                   bel_dtype_name(dtype), bel_shape_text(want, wt), bel_dtype_name(have->dtype),
                   bel_shape_text(&have->shape, ht));
}

// Reads the shapes of the scales and of a row's statistics.
static bel_status *read_operands(const bel_attr_list *attrs, bool layer, const bel_spec *x,
                                 bel_shape *out_scale, bel_shape *out_statistics)
{
    bel_spec same;
    BEL_TRY(bel_infer_float(attrs, x, 1, &same));
    if (layer) {
        int32_t axis;
        BEL_TRY(read_layer(attrs, &x->shape, &axis, out_statistics));
        *out_scale = bel_shape_make(x->shape.rank - axis, x->shape.dims + axis);
        return NULL;
    }
    int64_t groups;
    BEL_TRY(read_groups(attrs, &x->shape, &groups));
    *out_scale = BEL_SHAPE(x->shape.dims[1]);
    *out_statistics = BEL_SHAPE(x->shape.dims[0], groups);
    return NULL;
}

static bel_status *infer_forward(const bel_attr_list *attrs, bool layer, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    bel_shape scale, statistics;
    bel_dtype dtype = inputs[0].dtype;
    BEL_TRY(read_operands(attrs, layer, &inputs[0], &scale, &statistics));
    BEL_TRY(row_norm_check("scale", &inputs[1], dtype, &scale));
    if (input_count > 2) BEL_TRY(row_norm_check("bias", &inputs[2], dtype, &scale));
    out_outputs[0] = inputs[0];
    out_outputs[1] = out_outputs[2] = (bel_spec){dtype, statistics};
    return NULL;
}

static bel_status *infer_gradient(const bel_attr_list *attrs, bool layer, const bel_spec *inputs,
                                  bel_spec *out_outputs)
{
    bel_shape scale, statistics;
    bel_dtype dtype = inputs[0].dtype;
    BEL_TRY(read_operands(attrs, layer, &inputs[0], &scale, &statistics));
    BEL_TRY(row_norm_check("x", &inputs[1], dtype, &inputs[0].shape));
    BEL_TRY(row_norm_check("scale", &inputs[2], dtype, &scale));
    BEL_TRY(row_norm_check("mean", &inputs[3], dtype, &statistics));
    BEL_TRY(row_norm_check("inverse deviation", &inputs[4], dtype, &statistics));
    out_outputs[0] = inputs[0];
    out_outputs[1] = out_outputs[2] = inputs[2];
    return NULL;
}

bel_status *bel_infer_layer_norm(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    return infer_forward(attrs, true, inputs, input_count, out_outputs);
}

bel_status *bel_infer_group_norm(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    return infer_forward(attrs, false, inputs, input_count, out_outputs);
}

bel_status *bel_infer_layer_norm_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    return infer_gradient(attrs, true, inputs, out_outputs);
}

bel_status *bel_infer_group_norm_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    return infer_gradient(attrs, false, inputs, out_outputs);
}

// --- Plain kernels -------------------------------------------------------------------------------

// The scale of element (row, j).
static int64_t scale_at(const bel_row_norm *n, int64_t row, int64_t j)
{
    return row % n->period * n->scales + j / n->run;
}

static void run_forward(const bel_kernel_call *call, int64_t row)
{
    const bel_row_norm *n = call->params;
    const bel_tensor *x = &call->inputs[0];
    int64_t base = row * n->columns;
    double mean = 0, variance = 0;
    for (int64_t j = 0; j < n->columns; j++)
        mean += bel_element_get(x, base + j) / (double)n->columns;
    for (int64_t j = 0; j < n->columns; j++) {
        double distance = bel_element_get(x, base + j) - mean;
        variance += distance * distance / (double)n->columns;
    }
    double inverse = 1 / sqrt(variance + n->epsilon);
    bel_element_set(&call->outputs[1], row, mean);
    bel_element_set(&call->outputs[2], row, inverse);
    for (int64_t j = 0; j < n->columns; j++) {
        int64_t at = scale_at(n, row, j);
        double bias = call->input_count > 2 ? bel_element_get(&call->inputs[2], at) : 0;
        double y = (bel_element_get(x, base + j) - mean) * inverse;
        bel_element_set(&call->outputs[0], base + j,
                        y * bel_element_get(&call->inputs[1], at) + bias);
    }
}

static void add_to(const bel_tensor *sum, int64_t at, double value)
{
    bel_element_set(sum, at, bel_element_get(sum, at) + value);
}

// With g = dy · scale and y' the normalized row: dx = (g - mean of g - y' · mean of g y') /
// deviation.
static void gradient_row(const bel_kernel_call *call, int64_t row)
{
    const bel_row_norm *n = call->params;
    const bel_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *scale = &call->inputs[2];
    double mean = bel_element_get(&call->inputs[3], row), sum = 0, product = 0;
    double inverse = bel_element_get(&call->inputs[4], row);
    int64_t base = row * n->columns;
    for (int64_t j = 0; j < n->columns; j++) {
        double d = bel_element_get(dy, base + j),
               g = d * bel_element_get(scale, scale_at(n, row, j));
        double y = (bel_element_get(x, base + j) - mean) * inverse;
        sum += g / (double)n->columns;
        product += g * y / (double)n->columns;
        add_to(&call->outputs[1], scale_at(n, row, j), d * y);
        add_to(&call->outputs[2], scale_at(n, row, j), d);
    }
    for (int64_t j = 0; j < n->columns; j++) {
        double g = bel_element_get(dy, base + j) * bel_element_get(scale, scale_at(n, row, j));
        double y = (bel_element_get(x, base + j) - mean) * inverse;
        bel_element_set(&call->outputs[0], base + j, (g - sum - y * product) * inverse);
    }
}

static void run_gradient(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_row_norm *n = call->params;
    for (int o = 1; o <= 2; o++)
        for (int64_t i = 0; i < bel_shape_elements(&call->outputs[o].shape); i++)
            bel_element_set(&call->outputs[o], i, 0);
    for (int64_t row = 0; row < n->rows; row++)
        gradient_row(call, row);
}

// --- Choice --------------------------------------------------------------------------------------

void bel_prepare_row_norm(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool layer = call->op == BEL_OP_LAYER_NORM;
    bel_row_norm n = rows_of(prepare->attrs, layer, &call->inputs[0].shape);
    if (!bel_prepares_plain(prepare, call)) {
        bel_row_norm_prepare(prepare, call, &n);
        return;
    }
    call->run = run_forward;
    call->tile_count = n.rows;
    call->params = bel_arena_copy(prepare->arena, &n, sizeof n);
}

void bel_prepare_row_norm_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool layer = call->op == BEL_OP_LAYER_NORM_GRAD;
    bel_row_norm n = rows_of(prepare->attrs, layer, &call->inputs[0].shape);
    if (!bel_prepares_plain(prepare, call)) {
        bel_row_norm_prepare_gradient(prepare, call, &n);
        return;
    }
    call->run = run_gradient;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, &n, sizeof n);
}
