// Reductions, and their opposite (BroadcastTo).
//
// A reduction over neighboring axes is a box [outer, reduced, inner]. Three boxes have fast
// kernels: inner = 1 (rows), outer = 1 (columns) and everything to a scalar. Others use the plain
// kernel. ReduceMin, ReduceProd, ReduceL1 and ReduceL2 have one kernel for all boxes, which
// processes each output's elements in order, in double. Sums of an entire tensor run in blocks of
// 4,096, whose sums are added in double, in order.
#include <math.h>
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/reduce.h"

// --- Shape rules ---------------------------------------------------------------------------------

bel_status *bel_infer_reduce(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    bool reduced[BEL_MAX_RANK], keepdims = bel_attr_number(attrs, "keepdims", 0) != 0;
    const bel_shape *x = &inputs[0].shape;
    BEL_TRY(bel_read_axes(attrs, x->rank, reduced));
    bel_shape y = {.rank = 0};
    for (int32_t i = 0; i < x->rank; i++) {
        if (!reduced[i]) y.dims[y.rank++] = x->dims[i];
        if (reduced[i] && keepdims) y.dims[y.rank++] = 1;
    }
    out_outputs[0].shape = y;
    return NULL;
}

// Inputs dy, x; the result has the shape of x.
bel_status *bel_infer_prod_grad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)input_count;
    bel_spec y;
    BEL_TRY(bel_infer_reduce(attrs, &inputs[1], 1, &y));
    out_outputs[0] = inputs[1];
    return bel_check_like("dy", &inputs[0], &y);
}

bel_status *bel_infer_sum_to(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(bel_check_repeated(&inputs[1].shape, &inputs[0].shape));
    out_outputs[0] = (bel_spec){inputs[0].dtype, inputs[1].shape};
    return NULL;
}

bel_status *bel_infer_scalar_like(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    out_outputs[0] = (bel_spec){inputs[0].dtype, bel_shape_scalar()};
    return NULL;
}

// --- Boxes ---------------------------------------------------------------------------------------

// Regular: all reduced axes are adjacent; then element (i, j, k) of the box is i · count · inner +
// j · inner + k.
static bel_reduce_box make_box(const bel_shape *shape, const bool reduced[BEL_MAX_RANK])
{
    bel_reduce_box p = {.outer = 1, .count = 1, .inner = 1, .regular = true, .scale = 1};
    memcpy(p.reduced, reduced, sizeof p.reduced);
    bool seen = false, after = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (reduced[i]) {
            p.regular = p.regular && !after;
            seen = true;
            p.count *= shape->dims[i];
        } else {
            after = seen;
            if (seen) p.inner *= shape->dims[i];
            if (!seen) p.outer *= shape->dims[i];
        }
    }
    return p;
}

// Returns the index in the small tensor of element `index` of the large one.
static int64_t small_index(const bel_shape *large, const bool reduced[BEL_MAX_RANK], int64_t index)
{
    int64_t result = 0, stride = 1;
    for (int32_t i = large->rank - 1; i >= 0; i--) {
        int64_t at = index % large->dims[i];
        index /= large->dims[i];
        if (reduced[i]) continue;
        result += at * stride;
        stride *= large->dims[i];
    }
    return result;
}

// Adds each element of x, in order, to its result.
static void run_reduce_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_reduce_box *p = call->params;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    bool max = call->op == BEL_OP_REDUCE_MAX;
    int64_t outputs = bel_shape_elements(&y->shape), inputs = bel_shape_elements(&x->shape);
    for (int64_t i = 0; i < outputs; i++)
        bel_element_set(y, i, max ? -INFINITY : 0.0);
    for (int64_t i = 0; i < inputs; i++) {
        int64_t at = small_index(&x->shape, p->reduced, i);
        double v = bel_element_get(x, i), sum = bel_element_get(y, at);
        if (call->op == BEL_OP_REDUCE_SUM_SQUARE) v *= v;
        bel_element_set(y, at, max ? bel_larger_of(sum, v) : sum + v);
    }
    for (int64_t i = 0; p->scale != 1 && i < outputs; i++)
        bel_element_set(y, i, bel_element_get(y, i) * p->scale);
}

static bel_cpu_reduce_fn *row_kernel(bel_op op)
{
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    if (op == BEL_OP_REDUCE_MAX) return cpu->max;
    return op == BEL_OP_REDUCE_SUM_SQUARE ? cpu->sum_square : cpu->sum;
}

// Each output is a reduction of `count` neighboring elements.
static void run_reduce_rows(const bel_kernel_call *call, int64_t tile)
{
    enum { BLOCK = BEL_REDUCE_BLOCK };
    const bel_reduce_box *p = call->params;
    bel_cpu_reduce_fn *reduce = row_kernel(call->op);
    const float *x = call->inputs[0].data;
    float *y = call->outputs[0].data;
    int64_t per_tile = bel_tile_rows(p->count), first = tile * per_tile;
    int64_t last = first + per_tile < p->outer ? first + per_tile : p->outer;
    for (int64_t i = first; i < last; i++) {
        const float *row = x + i * p->count;
        if (p->count <= BLOCK || call->op == BEL_OP_REDUCE_MAX) {
            y[i] = p->count > 0 ? reduce(row, p->count) * (float)p->scale : 0.0f;
            continue;
        }
        double total = 0;
        for (int64_t j = 0; j < p->count; j += BLOCK)
            total += (double)reduce(row + j, p->count - j < BLOCK ? p->count - j : BLOCK);
        y[i] = (float)(total * p->scale);
    }
}

enum { COLUMN_TILE = 256 };

// Outputs are columns: rows are added in order.
static void run_reduce_columns(const bel_kernel_call *call, int64_t tile)
{
    const bel_reduce_box *p = call->params;
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    int64_t first = tile * COLUMN_TILE;
    int64_t size = first + COLUMN_TILE < p->inner ? COLUMN_TILE : p->inner - first;
    float *y = (float *)call->outputs[0].data + first;
    cpu->sum_rows((const float *)call->inputs[0].data + first, p->count, p->inner, y, size);
    if (p->scale != 1) {
        float scale = (float)p->scale;
        cpu->binary_scalar[BEL_CPU_MUL](y, &scale, y, size);
    }
}

// All other reductions. A slice has the elements after the leading dimensions that stay; each tile
// processes several slices.
typedef struct slice_place {
    const bel_kernel_call *call;
    const float *x;
    float *y;
} slice_place;

// steps[0] is 0 if the run's dimension is reduced: then it has one result; otherwise each element
// has a separate result.
static void reduce_run(const void *context, const bel_run *run)
{
    enum { BLOCK = 1024 };
    const bel_cpu_kernels *cpu = bel_cpu_kernels_get();
    const slice_place *place = context;
    const float *x = place->x + run->at;
    float *y = place->y + run->places[0], squares[BLOCK];
    bel_op op = place->call->op;
    bel_cpu_binary_fn *join = cpu->binary[op == BEL_OP_REDUCE_MAX ? BEL_CPU_MAX : BEL_CPU_ADD];
    if (run->steps[0] == 0) {
        float part = row_kernel(op)(x, run->n);
        join(y, &part, y, 1);
        return;
    }
    for (int64_t at = 0, n; op == BEL_OP_REDUCE_SUM_SQUARE && at < run->n; at += n) {
        n = run->n - at < BLOCK ? run->n - at : BLOCK;
        cpu->binary[BEL_CPU_MUL](x + at, x + at, squares, n);
        join(y + at, squares, y + at, n);
    }
    if (op != BEL_OP_REDUCE_SUM_SQUARE) join(y, x, y, run->n);
}

// Slices have separate results, so tiles share nothing.
static void run_reduce_slices(const bel_kernel_call *call, int64_t tile)
{
    const bel_reduce_slices *p = call->params;
    int64_t first = tile * p->per_tile;
    int64_t last = first + p->per_tile < p->slices ? first + p->per_tile : p->slices;
    for (int64_t i = first; i < last; i++) {
        slice_place place = {call, (const float *)call->inputs[0].data + i * p->elements,
                             (float *)call->outputs[0].data + i * p->results};
        for (int64_t j = 0; j < p->results; j++)
            place.y[j] = p->start;
        bel_walk_runs(&p->walk, 0, p->elements, reduce_run, &place);
        for (int64_t j = 0; p->scale != 1 && j < p->results; j++)
            place.y[j] *= p->scale;
    }
}

// Leading dimensions that stay form the slices. Within one, steps[d] is the step of the result
// along dimension d: 0 if it is reduced.
static void prepare_slices(const bel_prepare *prepare, bel_kernel_call *call,
                           const bel_reduce_box *box)
{
    const bel_shape *x = &call->inputs[0].shape;
    bel_shape slice = {0};
    int64_t steps[1][BEL_MAX_RANK];
    bel_reduce_slices p = {.way = BEL_REDUCE_SLICES,
                           .slices = 1,
                           .elements = 1,
                           .results = 1,
                           .scale = (float)box->scale};
    p.start = call->op == BEL_OP_REDUCE_MAX ? -INFINITY : 0.0f;
    int32_t lead = 0;
    for (; lead < x->rank && !box->reduced[lead]; lead++)
        p.slices *= x->dims[lead];
    for (int32_t d = lead; d < x->rank; d++) {
        slice.dims[slice.rank++] = x->dims[d];
        p.elements *= x->dims[d];
    }
    for (int32_t d = x->rank - 1; d >= lead; d--) {
        steps[0][d - lead] = box->reduced[d] ? 0 : p.results;
        if (!box->reduced[d]) p.results *= x->dims[d];
    }
    p.walk = bel_walk_make(&slice, steps, 1);
    p.per_tile = bel_tile_rows(p.elements);
    call->run = run_reduce_slices;
    call->tile_count = (p.slices + p.per_tile - 1) / p.per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

static void choose_reduce(const bel_prepare *prepare, bel_kernel_call *call, bel_reduce_box *p)
{
    bool adds = call->op != BEL_OP_REDUCE_MAX && call->op != BEL_OP_REDUCE_SUM_SQUARE;
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32;
    if (fast && p->regular && p->inner == 1) {
        int64_t per_tile = bel_tile_rows(p->count);
        p->way = BEL_REDUCE_ROWS;
        call->run = run_reduce_rows;
        call->tile_count = (p->outer + per_tile - 1) / per_tile;
    } else if (fast && p->regular && p->outer == 1 && adds) {
        p->way = BEL_REDUCE_COLUMNS;
        call->run = run_reduce_columns;
        call->tile_count = (p->inner + COLUMN_TILE - 1) / COLUMN_TILE;
    } else if (fast) {
        prepare_slices(prepare, call, p);
        return;
    } else {
        call->run = run_reduce_reference;
        call->tile_count = 1;
    }
    call->params = bel_arena_copy(prepare->arena, p, sizeof *p);
}

void bel_prepare_reduce(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool reduced[BEL_MAX_RANK];
    bel_status_ignore(
        bel_read_axes(prepare->attrs, call->inputs[0].shape.rank, reduced)); // inferred
    bel_reduce_box p = make_box(&call->inputs[0].shape, reduced);
    if (call->op == BEL_OP_REDUCE_MEAN && p.count > 0) p.scale = 1.0 / (double)p.count;
    choose_reduce(prepare, call, &p);
}

// --- Folds ---------------------------------------------------------------------------------------

// Returns the sum, over the dimensions whose mark is `which`, of the index `index` of their box.
static int64_t part_index(const bel_shape *shape, const bel_reduce_box *p, bool which,
                          int64_t index)
{
    int64_t result = 0, stride = 1;
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        if (p->reduced[d] == which) {
            result += index % shape->dims[d] * stride;
            index /= shape->dims[d];
        }
        stride *= shape->dims[d];
    }
    return result;
}

// Returns the offset of the j-th reduced element from the first one.
static int64_t reduced_place(const bel_shape *shape, const bel_reduce_box *p, int64_t j)
{
    return p->regular ? j * p->inner : part_index(shape, p, true, j);
}

// Folds the elements of one output, in order, from `base` on.
static double reduce_fold(bel_op op, const bel_tensor *x, const bel_reduce_box *p, int64_t base)
{
    double sum = op == BEL_OP_REDUCE_MIN ? INFINITY : op == BEL_OP_REDUCE_PROD ? 1 : 0;
    for (int64_t j = 0; j < p->count; j++) {
        double v = bel_element_get(x, base + reduced_place(&x->shape, p, j));
        switch (op) {
        case BEL_OP_REDUCE_MIN: sum = bel_smaller_of(sum, v); break;
        case BEL_OP_REDUCE_PROD: sum *= v; break;
        case BEL_OP_REDUCE_L1: sum += fabs(v); break;
        default: sum += v * v;
        }
    }
    return op == BEL_OP_REDUCE_L2 ? sqrt(sum) : sum;
}

static void fold_range(const bel_kernel_call *call, int64_t outputs, int64_t tile,
                       int64_t *out_first, int64_t *out_last)
{
    const bel_reduce_box *p = call->params;
    int64_t per_tile = bel_tile_rows(p->count);
    *out_first = tile * per_tile;
    *out_last = *out_first + per_tile < outputs ? *out_first + per_tile : outputs;
}

static void run_fold(const bel_kernel_call *call, int64_t tile)
{
    const bel_reduce_box *p = call->params;
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t first, last;
    fold_range(call, bel_shape_elements(&y->shape), tile, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t base = part_index(&x->shape, p, false, i);
        bel_element_set(y, i, reduce_fold(call->op, x, p, base));
    }
}

// Product of all other elements: if one is zero, it is 0 except for that element.
static void run_prod_grad(const bel_kernel_call *call, int64_t tile)
{
    const bel_reduce_box *p = call->params;
    const bel_tensor *dy = &call->inputs[0], *x = &call->inputs[1], *dx = &call->outputs[0];
    int64_t first, last;
    fold_range(call, bel_shape_elements(&dy->shape), tile, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t base = part_index(&x->shape, p, false, i), zeros = 0;
        double product = bel_element_get(dy, i);
        for (int64_t j = 0; j < p->count; j++) {
            double v = bel_element_get(x, base + reduced_place(&x->shape, p, j));
            zeros += v == 0;
            if (v != 0) product *= v;
        }
        for (int64_t j = 0; j < p->count; j++) {
            int64_t at = base + reduced_place(&x->shape, p, j);
            double v = bel_element_get(x, at);
            double others = v == 0 ? (zeros == 1 ? product : 0) : (zeros == 0 ? product / v : 0);
            bel_element_set(dx, at, others);
        }
    }
}

// For inputs x, and for dy and x of ReduceProdGrad.
void bel_prepare_fold(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool reduced[BEL_MAX_RANK], gradient = call->op == BEL_OP_REDUCE_PROD_GRAD;
    const bel_shape *x = &call->inputs[gradient ? 1 : 0].shape;
    bel_status_ignore(bel_read_axes(prepare->attrs, x->rank, reduced)); // by the shape rule
    bel_reduce_box p = make_box(x, reduced);
    int64_t per_tile = bel_tile_rows(p.count);
    int64_t outputs =
        bel_shape_elements(gradient ? &call->inputs[0].shape : &call->outputs[0].shape);
    call->run = gradient ? run_prod_grad : run_fold;
    call->tile_count = (outputs + per_tile - 1) / per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- SumTo ---------------------------------------------------------------------------------------

void bel_prepare_sum_to(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool reduced[BEL_MAX_RANK];
    bel_broadcast_axes(&call->inputs[0].shape, &call->outputs[0].shape, reduced);
    bel_reduce_box p = make_box(&call->inputs[0].shape, reduced);
    choose_reduce(prepare, call, &p);
}
