// Comparisons and logic of two tensors that broadcast: a loop for each operation and type over the
// runs of a walk. An operand that is repeated in a run is read once before the loop. BOOL shares
// the loops of U8. The plain kernel is that of math.c, which also serves 16-bit floats. The result
// has another type than its inputs and never overlaps one of them (no BEL_OP_INPLACE), which
// `restrict` relies on.
#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/walk.h"

bel_status *bel_infer_compare(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    if (inputs[0].dtype != inputs[1].dtype || inputs[0].dtype == BEL_DTYPE_STRING) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected two inputs of one type, no string; got %s and %s",
                       bel_dtype_name(inputs[0].dtype), bel_dtype_name(inputs[1].dtype));
    }
    out_outputs[0].dtype = BEL_DTYPE_BOOL;
    return bel_broadcast_shapes(&inputs[0].shape, &inputs[1].shape, &out_outputs[0].shape);
}

// One BOOL, or two that broadcast.
bel_status *bel_infer_logic(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    for (int i = 0; i < input_count; i++) {
        if (inputs[i].dtype == BEL_DTYPE_BOOL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected bool, got %s",
                       bel_dtype_name(inputs[i].dtype));
    }
    if (input_count == 2) return bel_infer_compare(attrs, inputs, input_count, out_outputs);
    out_outputs[0] = inputs[0];
    return NULL;
}

// A run of p against q, for one type.
#define COMPARE(id, type, expression)                                                              \
    static void id##_##type(const void *context, const bel_run *run)                               \
    {                                                                                              \
        const bel_kernel_call *call = context;                                                     \
        const type *a = (const type *)call->inputs[0].data + run->places[0];                       \
        const type *b = (const type *)call->inputs[1].data + run->places[1];                       \
        uint8_t *restrict y = (uint8_t *)call->outputs[0].data + run->at;                          \
        if (run->steps[0] == 0) {                                                                  \
            const type p = a[0];                                                                   \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const type q = b[i * run->steps[1]];                                               \
                y[i] = expression;                                                                 \
            }                                                                                      \
        } else if (run->steps[1] == 0) {                                                           \
            const type q = b[0];                                                                   \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const type p = a[i];                                                               \
                y[i] = expression;                                                                 \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = 0; i < run->n; i++) {                                                 \
                const type p = a[i], q = b[i];                                                     \
                y[i] = expression;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
#define COMPARE_ALL(id, expression)                                                                \
    COMPARE(id, float, expression)                                                                 \
    COMPARE(id, double, expression)                                                                \
    COMPARE(id, int32_t, expression)                                                               \
    COMPARE(id, int64_t, expression)                                                               \
    COMPARE(id, uint8_t, expression)
COMPARE_ALL(EQUAL, p == q)
COMPARE_ALL(GREATER, p > q)
COMPARE_ALL(LESS, p < q)
COMPARE_ALL(GREATER_OR_EQUAL, p >= q)
COMPARE_ALL(LESS_OR_EQUAL, p <= q)
COMPARE(AND, uint8_t, (p != 0) & (q != 0))
COMPARE(OR, uint8_t, (p | q) != 0)
COMPARE(XOR, uint8_t, (p != 0) != (q != 0))

// 16-bit floats have none: the reference kernel compares them.
#define BY_TYPE(id)                                                                                \
    [BEL_OP_##id] = {[BEL_DTYPE_F32] = id##_float,   [BEL_DTYPE_F64] = id##_double,                \
                     [BEL_DTYPE_I32] = id##_int32_t, [BEL_DTYPE_I64] = id##_int64_t,               \
                     [BEL_DTYPE_U8] = id##_uint8_t,  [BEL_DTYPE_BOOL] = id##_uint8_t}
static bel_run_fn *const runs[BEL_OP_COUNT][BEL_DTYPE_BF16 + 1] = {
    BY_TYPE(EQUAL),
    BY_TYPE(GREATER),
    BY_TYPE(LESS),
    BY_TYPE(GREATER_OR_EQUAL),
    BY_TYPE(LESS_OR_EQUAL),
    [BEL_OP_AND] = {[BEL_DTYPE_BOOL] = AND_uint8_t},
    [BEL_OP_OR] = {[BEL_DTYPE_BOOL] = OR_uint8_t},
    [BEL_OP_XOR] = {[BEL_DTYPE_BOOL] = XOR_uint8_t},
};

static void run_compare(const bel_kernel_call *call, int64_t tile)
{
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_walk_runs(call->params, bel_tile_begin(tile), end, runs[call->op][call->inputs[0].dtype],
                  call);
}

void bel_prepare_compare(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_prepare_binary(prepare, call);
    if (prepare->reference || runs[call->op][call->inputs[0].dtype] == NULL) return;
    bel_walk walk = bel_walk_broadcast(&call->outputs[0].shape, call->inputs, 2);
    call->run = run_compare;
    call->params = bel_arena_copy(prepare->arena, &walk, sizeof walk);
}
