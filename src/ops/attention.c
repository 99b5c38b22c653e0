// Attention as one operation, and its gradient: shapes, plain loops in double, and the choice of
// kernels. In f32, for heads of up to BEL_ATTENTION_MOST_WIDTH, it is blocked
// (kernels/attention.h). Output 1 keeps for each query the logarithm of its sum of powers. The
// gradient recomputes the weights from it, so no scores are kept. A query without visible keys gets
// zeros, and 0 as its logarithm. The plain forward kernel has a tile for each query. Its gradient
// is one tile, because all queries add to the gradients of keys and values, in their order.
#include <math.h>

#include "base/real.h"
#include "ops/families.h"
#include "ops/kernels/attention.h"
#include "ops/kernels/elements.h"
#include "ops/sequence.h"

// --- Shape rules ---------------------------------------------------------------------------------

// Checks q, k and v.
static bel_status *check_operands(const bel_spec *specs)
{
    const bel_shape *q = &specs[0].shape, *k = &specs[1].shape, *v = &specs[2].shape;
    bel_dtype dtype = specs[0].dtype;
    bool fits = (dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64) && q->rank == 4 &&
                k->rank == 4 && v->rank == 4 && q->dims[3] == k->dims[3] && q->dims[3] > 0 &&
                k->dims[2] == v->dims[2];
    for (int i = 1; i < 3; i++) {
        fits = fits && specs[i].dtype == dtype && specs[i].shape.dims[0] == q->dims[0] &&
               specs[i].shape.dims[1] == q->dims[1];
    }
    if (fits) return NULL;
    char qt[BEL_SHAPE_TEXT], kt[BEL_SHAPE_TEXT], vt[BEL_SHAPE_TEXT];
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "expected q [n, heads, t, d], k [n, heads, s, d] and v [n, heads, s, e], all f32 "
        "or all f64, got %s %s, %s %s and %s %s",
        bel_shape_text(q, qt), bel_dtype_name(dtype), bel_shape_text(k, kt),
        bel_dtype_name(specs[1].dtype), bel_shape_text(v, vt), bel_dtype_name(specs[2].dtype));
}

// Describes the result and the logarithms of q, k and v.
static void describe_results(const bel_spec *specs, bel_spec *out_outputs)
{
    const bel_shape *q = &specs[0].shape;
    out_outputs[0] = specs[0];
    out_outputs[0].shape.dims[3] = specs[2].shape.dims[3];
    out_outputs[1] = (bel_spec){specs[0].dtype, BEL_SHAPE(q->dims[0], q->dims[1], q->dims[2])};
}

bel_status *bel_infer_attention(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)attrs;
    BEL_TRY(check_operands(inputs));
    if (input_count > 3) BEL_TRY(bel_check_lengths(&inputs[3], &inputs[0].shape));
    describe_results(inputs, out_outputs);
    return NULL;
}

bel_status *bel_infer_attention_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                     int input_count, bel_spec *out_outputs)
{
    (void)attrs;
    BEL_TRY(check_operands(inputs + 1));
    if (input_count > 6) BEL_TRY(bel_check_lengths(&inputs[6], &inputs[1].shape));
    bel_spec results[2];
    describe_results(inputs + 1, results);
    static const int places[] = {0, 4, 5}; // dy, y, logarithms
    for (int i = 0; i < 3; i++) {
        const bel_spec *got = &inputs[places[i]], *want = &results[i == 2 ? 1 : 0];
        if (got->dtype == want->dtype && bel_shape_equal(&got->shape, &want->shape)) continue;
        char gt[BEL_SHAPE_TEXT], wt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "input %d: expected %s %s, got %s %s", places[i],
                       bel_dtype_name(want->dtype), bel_shape_text(&want->shape, wt),
                       bel_dtype_name(got->dtype), bel_shape_text(&got->shape, gt));
    }
    for (int i = 0; i < 3; i++)
        out_outputs[i] = inputs[1 + i];
    return NULL;
}

// --- Plain kernels -------------------------------------------------------------------------------

// Query and its place: matrix number n · heads + head, and time.
typedef struct query {
    const bel_attention_shape *shape;
    int64_t matrix, time, seen;
    const bel_tensor *q, *k, *v;
} query;

static query query_at(const bel_kernel_call *call, int64_t row, int first_input)
{
    const bel_attention_shape *shape = call->params;
    query x = {.shape = shape,
               .matrix = row / shape->t,
               .time = row % shape->t,
               .q = &call->inputs[first_input],
               .k = &call->inputs[first_input + 1],
               .v = &call->inputs[first_input + 2]};
    int64_t length = shape->s;
    if (shape->lengths >= 0) {
        const bel_tensor *lengths = &call->inputs[shape->lengths];
        length = bel_length_of(call, lengths, x.matrix / shape->heads, shape->s);
    }
    x.seen = bel_attention_seen(shape, length, x.time);
    return x;
}

// Returns the offset of the query, or of key or value j of its matrix, in a tensor of `width`
// columns.
static int64_t query_begin(const query *x, int64_t width)
{
    return (x->matrix * x->shape->t + x->time) * width;
}

static int64_t key_begin(const query *x, int64_t j, int64_t width)
{
    return (x->matrix * x->shape->s + j) * width;
}

static double attention_dot(const bel_tensor *a, int64_t a_begin, const bel_tensor *b,
                            int64_t b_begin, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += bel_element_get(a, a_begin + i) * bel_element_get(b, b_begin + i);
    return sum;
}

static double query_score(const query *x, int64_t j)
{
    int64_t d = x->shape->d;
    return x->shape->scale * attention_dot(x->q, query_begin(x, d), x->k, key_begin(x, j, d), d);
}

// to += factor · from
static void add_scaled(const bel_tensor *to, int64_t to_begin, double factor,
                       const bel_tensor *from, int64_t from_begin, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = bel_element_get(to, to_begin + i);
        bel_element_set(to, to_begin + i, sum + factor * bel_element_get(from, from_begin + i));
    }
}

// Computes scores three times instead of keeping them.
static void run_plain(const bel_kernel_call *call, int64_t row)
{
    query x = query_at(call, row, 0);
    int64_t e = x.shape->e;
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < x.seen; j++)
        most = bel_larger_of(most, query_score(&x, j));
    for (int64_t j = 0; j < x.seen; j++)
        total += bel_real_exp(query_score(&x, j) - most);
    for (int64_t i = 0; i < e; i++)
        bel_element_set(&call->outputs[0], row * e + i, 0);
    for (int64_t j = 0; j < x.seen; j++)
        add_scaled(&call->outputs[0], row * e, bel_real_exp(query_score(&x, j) - most) / total, x.v,
                   key_begin(&x, j, e), e);
    bel_element_set(&call->outputs[1], row, x.seen > 0 ? most + bel_real_log(total) : 0);
}

// With weights p and their gradients dp = dy · v: the score's gradient is p (dp - Σ p dp), where
// the sum equals dy · y.
static void run_plain_gradient(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_attention_shape *shape = call->params;
    const bel_tensor *dy = &call->inputs[0], *y = &call->inputs[4], *log_totals = &call->inputs[5];
    const bel_tensor *dq = &call->outputs[0], *dk = &call->outputs[1], *dv = &call->outputs[2];
    for (int o = 0; o < 3; o++)
        for (int64_t i = 0; i < bel_shape_elements(&call->outputs[o].shape); i++)
            bel_element_set(&call->outputs[o], i, 0);
    int64_t d = shape->d, e = shape->e;
    for (int64_t row = 0; row < shape->n * shape->heads * shape->t; row++) {
        query x = query_at(call, row, 1);
        double inner = attention_dot(dy, row * e, y, row * e, e),
               shift = bel_element_get(log_totals, row);
        for (int64_t j = 0; j < x.seen; j++) {
            int64_t key = key_begin(&x, j, d), value = key_begin(&x, j, e);
            double weight = bel_real_exp(query_score(&x, j) - shift);
            double slope =
                weight * (attention_dot(dy, row * e, x.v, value, e) - inner) * shape->scale;
            add_scaled(dq, row * d, slope, x.k, key, d);
            add_scaled(dk, key, slope, x.q, row * d, d);
            add_scaled(dv, value, weight, dy, row * e, e);
        }
    }
}

// --- Choice --------------------------------------------------------------------------------------

static bel_attention_shape read_shape(const bel_attr_list *attrs, const bel_tensor *operands)
{
    const bel_shape *q = &operands[0].shape, *v = &operands[2].shape;
    double scale = bel_attr_number(attrs, "scale", 0);
    return (bel_attention_shape){.n = q->dims[0],
                                 .heads = q->dims[1],
                                 .t = q->dims[2],
                                 .s = v->dims[2],
                                 .d = q->dims[3],
                                 .e = v->dims[3],
                                 .scale = scale > 0 ? scale : 1 / sqrt((double)q->dims[3]),
                                 .causal = bel_attr_number(attrs, "causal", 0) != 0,
                                 .lengths = -1};
}

void bel_prepare_attention(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_attention_shape shape = read_shape(prepare->attrs, call->inputs);
    if (call->input_count > 3) shape.lengths = 3;
    if (!bel_prepares_plain(prepare, call) && bel_attention_fits(&shape)) {
        bel_attention_prepare(prepare, call, &shape);
        return;
    }
    call->run = run_plain;
    call->tile_count = shape.n * shape.heads * shape.t;
    call->params = bel_arena_copy(prepare->arena, &shape, sizeof shape);
}

void bel_prepare_attention_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_attention_shape shape = read_shape(prepare->attrs, call->inputs + 1);
    if (call->input_count > 6) shape.lengths = 6;
    if (!bel_prepares_plain(prepare, call) && bel_attention_fits(&shape)) {
        bel_attention_prepare_gradient(prepare, call, &shape);
        return;
    }
    call->run = run_plain_gradient;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, &shape, sizeof shape);
}
