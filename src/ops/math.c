// Element-wise operations: arithmetic with broadcasting, functions of one input.
// kernels/elementwise.def defines each function once. Their plain forms are compiled here, in
// double and, for integers, in int64, where they wrap. Those are the oracle, and the only kernels
// of types other than f32 and of functions without an f32 form (Pow, trigonometry: base/real.h).
// The fast ones handle equal shapes, single elements and rows at once, and other broadcasts run by
// run. Element i of input 0 is read before element i of the result is written, as the two may
// overlap.
#include <math.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/vector.h"
#include "ops/kernels/walk.h"

static bool is_float(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
}

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *same_dtypes(const bel_spec *inputs)
{
    if (inputs[0].dtype == inputs[1].dtype) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "both inputs must have one type, got %s and %s",
                   bel_dtype_name(inputs[0].dtype), bel_dtype_name(inputs[1].dtype));
}

static bel_status *needs_float(bel_dtype dtype)
{
    if (is_float(dtype)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected f32 or f64, got %s", bel_dtype_name(dtype));
}

static bel_status *needs_numbers(bel_dtype dtype)
{
    if (dtype != BEL_DTYPE_BOOL && dtype != BEL_DTYPE_STRING) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "expected numbers, got %s", bel_dtype_name(dtype));
}

bel_status *bel_infer_broadcast(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(same_dtypes(inputs));
    BEL_TRY(needs_numbers(inputs[0].dtype));
    out_outputs[0].dtype = inputs[0].dtype;
    return bel_broadcast_shapes(&inputs[0].shape, &inputs[1].shape, &out_outputs[0].shape);
}

bel_status *bel_infer_broadcast_float(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    BEL_TRY(needs_float(inputs[0].dtype));
    return bel_infer_broadcast(attrs, inputs, input_count, out_outputs);
}

bel_status *bel_infer_binary_same(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    BEL_TRY(same_dtypes(inputs));
    BEL_TRY(needs_float(inputs[0].dtype));
    if (!bel_shape_equal(&inputs[0].shape, &inputs[1].shape)) {
        char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "both inputs must have one shape, got %s and %s",
                       bel_shape_text(&inputs[0].shape, at), bel_shape_text(&inputs[1].shape, bt));
    }
    out_outputs[0] = inputs[0];
    return NULL;
}

bel_status *bel_infer_float(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    out_outputs[0] = inputs[0];
    return needs_float(inputs[0].dtype);
}

bel_status *bel_infer_number(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    out_outputs[0] = inputs[0];
    return needs_numbers(inputs[0].dtype);
}

bel_status *bel_infer_is_nan(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, out_outputs));
    out_outputs[0].dtype = BEL_DTYPE_BOOL;
    return NULL;
}

bel_status *bel_infer_same(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    out_outputs[0] = inputs[0];
    return NULL;
}

// --- Kernels of two inputs ----------------------------------------------------------------------

#define BINARY(id, f32, plain)                                                                     \
    static double id##_plain(double p, double q)                                                   \
    {                                                                                              \
        return plain;                                                                              \
    }
#define PLAIN_BINARY(id, plain) BINARY(id, 0, plain)
#define WHOLE_BINARY(id, whole)                                                                    \
    static int64_t id##_whole(int64_t p, int64_t q)                                                \
    {                                                                                              \
        return whole;                                                                              \
    }
#include "ops/kernels/elementwise.def"

static double (*const binary_plain[BEL_OP_COUNT])(double p, double q) = {
#define BINARY(id, f32, plain) [BEL_OP_##id] = id##_plain,
#define PLAIN_BINARY(id, plain) [BEL_OP_##id] = id##_plain,
#include "ops/kernels/elementwise.def"
};

static int64_t (*const binary_whole[BEL_OP_COUNT])(int64_t p, int64_t q) = {
#define WHOLE_BINARY(id, whole) [BEL_OP_##id] = id##_whole,
#include "ops/kernels/elementwise.def"
};

static void run_binary_reference(const bel_kernel_call *call, int64_t tile)
{
    const bel_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    bool whole = bel_element_is_whole(a->dtype);
    bool a_same = bel_shape_equal(&a->shape, &y->shape);
    bool b_same = bel_shape_equal(&b->shape, &y->shape);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        int64_t ai = a_same ? i : bel_broadcast_index(&y->shape, &a->shape, i);
        int64_t bi = b_same ? i : bel_broadcast_index(&y->shape, &b->shape, i);
        if (whole) {
            int64_t p = bel_element_get_whole(a, ai), q = bel_element_get_whole(b, bi);
            bel_element_set_whole(y, i, binary_whole[call->op](p, q));
        } else {
            double p = bel_element_get(a, ai), q = bel_element_get(b, bi);
            bel_element_set(y, i, binary_plain[call->op](p, q));
        }
    }
}

// Any broadcast of f32, run by run.
typedef struct walk_params {
    bel_vector_kernel kernel;
    bel_walk walk;
} walk_params;

static void run_binary_run(const void *context, const bel_run *run)
{
    const bel_kernel_call *call = context;
    const walk_params *params = call->params;
    const float *a = (const float *)call->inputs[0].data + run->places[0];
    const float *b = (const float *)call->inputs[1].data + run->places[1];
    float *y = (float *)call->outputs[0].data + run->at;
    bel_cpu_binary_fn *kernel = run->steps[1] == 0   ? params->kernel.binary_scalar
                                : run->steps[0] == 0 ? params->kernel.scalar_binary
                                                     : params->kernel.binary;
    kernel(a, b, y, run->n);
}

static void run_binary_walk(const bel_kernel_call *call, int64_t tile)
{
    const walk_params *params = call->params;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_walk_runs(&params->walk, bel_tile_begin(tile), end, run_binary_run, call);
}

// Parameters of the frequent cases: single operands are repeated; with `row` > 0, b is a row that
// repeats every `row` elements.
typedef struct binary_params {
    bel_cpu_binary_fn *run;
    int64_t a_step, b_step, row;
} binary_params;

// A tile has full rows, so that b begins there.
static void run_binary(const bel_kernel_call *call, int64_t tile)
{
    const binary_params *params = call->params;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *y = call->outputs[0].data;
    int64_t elements = bel_shape_elements(&call->outputs[0].shape);
    if (params->row == 0) {
        int64_t begin = bel_tile_begin(tile), end = bel_tile_end(tile, elements);
        params->run(a + begin * params->a_step, b + begin * params->b_step, y + begin, end - begin);
        return;
    }
    int64_t per_tile = bel_tile_rows(params->row) * params->row, begin = tile * per_tile;
    int64_t end = begin + per_tile < elements ? begin + per_tile : elements;
    bel_repeated_row row;
    bel_repeat_row(b, params->row, end - begin, &row);
    bel_run_row(params->run, a + begin, &row, 0, y + begin, end - begin);
}

// The plain form over f32, for operands that are single or as large as the result.
typedef struct plain_params {
    double (*function)(double p, double q);
    int64_t a_step, b_step;
} plain_params;

static void run_binary_f32(const bel_kernel_call *call, int64_t tile)
{
    const plain_params *params = call->params;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    float *y = call->outputs[0].data;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        double p = (double)a[i * params->a_step], q = (double)b[i * params->b_step];
        y[i] = (float)params->function(p, q);
    }
}

// Multiplies by a constant of a file; other f64 products use the plain kernel.
static void run_multiple_f64(const bel_kernel_call *call, int64_t tile)
{
    const double *a = call->inputs[0].data, b = *(const double *)call->inputs[1].data;
    double *y = call->outputs[0].data;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++)
        y[i] = a[i] * b;
}

static void prepare_binary_f64(bel_kernel_call *call)
{
    const bel_shape *y = &call->outputs[0].shape;
    bool multiple = call->op == BEL_OP_MUL &&
                    bel_operand_of(&call->inputs[0].shape, y) == BEL_OPERAND_FULL &&
                    bel_operand_of(&call->inputs[1].shape, y) == BEL_OPERAND_SINGLE;
    if (multiple) call->run = run_multiple_f64;
}

static void prepare_binary_f32(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *y = &call->outputs[0].shape;
    bel_operand a = bel_operand_of(&call->inputs[0].shape, y);
    bel_operand b = bel_operand_of(&call->inputs[1].shape, y);
    bool plain = (a == BEL_OPERAND_FULL || a == BEL_OPERAND_SINGLE) &&
                 (b == BEL_OPERAND_FULL || b == BEL_OPERAND_SINGLE);
    if (!plain || call->outputs[0].dtype != BEL_DTYPE_F32) return;
    const plain_params params = {binary_plain[call->op], a == BEL_OPERAND_FULL,
                                 b == BEL_OPERAND_FULL};
    call->run = run_binary_f32;
    call->params = bel_arena_copy(prepare->arena, &params, sizeof params);
}

void bel_prepare_binary(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *y = &call->outputs[0].shape;
    int64_t elements = bel_shape_elements(y);
    bel_vector_kernel kernel;
    call->run = run_binary_reference;
    call->tile_count = bel_tiles_of(elements);
    if (prepare->reference) return;
    if (call->inputs[0].dtype == BEL_DTYPE_F64) prepare_binary_f64(call);
    if (call->inputs[0].dtype != BEL_DTYPE_F32) return;
    if (!bel_vector_kernel_of(call->op, &kernel)) {
        prepare_binary_f32(prepare, call);
        return;
    }

    bel_operand a = bel_operand_of(&call->inputs[0].shape, y);
    bel_operand b = bel_operand_of(&call->inputs[1].shape, y);
    binary_params params = {.a_step = 1, .b_step = 1, .run = kernel.binary};
    if (a == BEL_OPERAND_FULL && b == BEL_OPERAND_SINGLE) {
        params.b_step = 0;
        params.run = kernel.binary_scalar;
    } else if (a == BEL_OPERAND_SINGLE && b == BEL_OPERAND_FULL) {
        params.a_step = 0;
        params.run = kernel.scalar_binary;
    } else if (a == BEL_OPERAND_FULL && b == BEL_OPERAND_ROW) {
        params.row = bel_shape_elements(&call->inputs[1].shape);
        int64_t rows = elements / params.row, per_tile = bel_tile_rows(params.row);
        call->tile_count = (rows + per_tile - 1) / per_tile;
    } else if (a != BEL_OPERAND_FULL || b != BEL_OPERAND_FULL) {
        const walk_params rarer = {kernel, bel_walk_broadcast(y, call->inputs, 2)};
        call->run = run_binary_walk;
        call->params = bel_arena_copy(prepare->arena, &rarer, sizeof rarer);
        return;
    }
    call->run = run_binary;
    call->params = bel_arena_copy(prepare->arena, &params, sizeof params);
}

// Gradients of functions of one input have dy and y, of one shape.
void bel_prepare_unary_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_prepare_binary(prepare, call);
}

// --- Kernels of one input -----------------------------------------------------------------------

#define UNARY(id, f32, plain)                                                                      \
    static double id##_plain(double p)                                                             \
    {                                                                                              \
        return plain;                                                                              \
    }
#define PLAIN_UNARY(id, plain) UNARY(id, 0, plain)
#define WHOLE_UNARY(id, whole)                                                                     \
    static int64_t id##_whole(int64_t p)                                                           \
    {                                                                                              \
        return whole;                                                                              \
    }
#include "ops/kernels/elementwise.def"

static double (*const unary_plain[BEL_OP_COUNT])(double p) = {
#define UNARY(id, f32, plain) [BEL_OP_##id] = id##_plain,
#define PLAIN_UNARY(id, plain) [BEL_OP_##id] = id##_plain,
#include "ops/kernels/elementwise.def"
};

static int64_t (*const unary_whole[BEL_OP_COUNT])(int64_t p) = {
#define WHOLE_UNARY(id, whole) [BEL_OP_##id] = id##_whole,
#include "ops/kernels/elementwise.def"
};

static void run_unary_reference(const bel_kernel_call *call, int64_t tile)
{
    const bel_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    bool whole = bel_element_is_whole(x->dtype);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        if (whole) {
            bel_element_set_whole(y, i, unary_whole[call->op](bel_element_get_whole(x, i)));
        } else {
            bel_element_set(y, i, unary_plain[call->op](bel_element_get(x, i)));
        }
    }
}

// The plain form over f32.
static void run_unary_f32(const bel_kernel_call *call, int64_t tile)
{
    const float *x = call->inputs[0].data;
    float *y = call->outputs[0].data;
    double (*function)(double p) = unary_plain[call->op];
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++)
        y[i] = (float)function((double)x[i]);
}

typedef struct unary_params {
    bel_cpu_unary_fn *run;
} unary_params;

static void run_unary(const bel_kernel_call *call, int64_t tile)
{
    const unary_params *params = call->params;
    int64_t begin = bel_tile_begin(tile);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    params->run((const float *)call->inputs[0].data + begin, (float *)call->outputs[0].data + begin,
                end - begin);
}

void bel_prepare_unary(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_vector_kernel kernel;
    call->run = run_unary_reference;
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    if (prepare->reference || call->inputs[0].dtype != BEL_DTYPE_F32) return;
    if (!bel_vector_kernel_of(call->op, &kernel)) {
        if (call->outputs[0].dtype == BEL_DTYPE_F32) call->run = run_unary_f32;
        return;
    }
    unary_params params = {.run = kernel.unary};
    call->run = run_unary;
    call->params = bel_arena_copy(prepare->arena, &params, sizeof params);
}
