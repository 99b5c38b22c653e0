// Collectives and the number of a replica. A collective has a shape rule like any operation, but no
// kernel: a program stops at one, and the code that runs the replicas computes the results for all
// of them (runtime/program.h). The kernels here only report that this did not happen.
#include "ops/collective.h"
#include "base/check.h"
#include "ops/families.h"

static bool is_number(bel_dtype dtype)
{
    return dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64 || dtype == BEL_DTYPE_I32 ||
           dtype == BEL_DTYPE_I64;
}

bel_collective bel_collective_read(bel_op op, const bel_attr_list *attrs)
{
    return (bel_collective){.op = op,
                            .reduce = (bel_reduce_op)bel_attr_number(attrs, "reduce", 0),
                            .source = (int)bel_attr_number(attrs, "source", 0),
                            .replicas = (int)bel_attr_number(attrs, "replicas", 1),
                            .weighted = bel_attr_flag(attrs, "weighted"),
                            .needs_all = bel_attr_flag(attrs, "needs_all"),
                            .index = (int)bel_attr_number(attrs, "collective", 0)};
}

static bel_status *check_moments(const bel_collective *c, const bel_spec *value)
{
    const bel_shape *shape = &value->shape;
    bool fits = value->dtype == BEL_DTYPE_F32 && shape->rank == 2 &&
                shape->dims[0] == BEL_MOMENTS_ROWS && c->op == BEL_OP_ALL_REDUCE;
    if (fits) return NULL;
    char text[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "moments are f32 [%d, c] and reduced for all, got %s %s",
                   BEL_MOMENTS_ROWS, bel_dtype_name(value->dtype), bel_shape_text(shape, text));
}

static bel_status *check_reduce(const bel_collective *c, const bel_spec *value)
{
    bel_dtype dtype = value->dtype;
    if ((int)c->reduce == BEL_REDUCE_MOMENTS) return check_moments(c, value);
    if ((unsigned)c->reduce > BEL_REDUCE_PRODUCT)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no reduction %d", (int)c->reduce);
    bool floats = dtype == BEL_DTYPE_F32 || dtype == BEL_DTYPE_F64;
    if (c->reduce == BEL_REDUCE_MEAN && !floats)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "a mean needs f32 or f64, got %s",
                       bel_dtype_name(dtype));
    if (!is_number(dtype))
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected f32, f64, i32 or i64, got %s",
                       bel_dtype_name(dtype));
    return NULL;
}

bel_status *bel_infer_all_reduce(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_collective c = bel_collective_read(BEL_OP_ALL_REDUCE, attrs);
    BEL_TRY(check_reduce(&c, &inputs[0]));
    out_outputs[0] = inputs[0];
    return NULL;
}

bel_status *bel_infer_all_gather(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_collective c = bel_collective_read(BEL_OP_ALL_GATHER, attrs);
    bel_shape shape = bel_shape_make(1, &(int64_t){c.replicas});
    if (inputs[0].shape.rank == BEL_MAX_RANK)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected at most %d dimensions, got %d",
                       BEL_MAX_RANK - 1, BEL_MAX_RANK);
    for (int32_t d = 0; d < inputs[0].shape.rank; d++)
        shape.dims[shape.rank++] = inputs[0].shape.dims[d];
    out_outputs[0] = (bel_spec){inputs[0].dtype, shape};
    return NULL;
}

bel_status *bel_infer_reduce_scatter(const bel_attr_list *attrs, const bel_spec *inputs,
                                     int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_collective c = bel_collective_read(BEL_OP_REDUCE_SCATTER, attrs);
    const bel_shape *shape = &inputs[0].shape;
    char text[BEL_SHAPE_TEXT];
    BEL_TRY(check_reduce(&c, &inputs[0]));
    if (shape->rank == 0 || shape->dims[0] != c.replicas)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected [%d, …], a part for each replica, got %s",
                       c.replicas, bel_shape_text(shape, text));
    out_outputs[0] = (bel_spec){inputs[0].dtype, bel_shape_make(shape->rank - 1, shape->dims + 1)};
    return NULL;
}

bel_status *bel_infer_broadcast_from(const bel_attr_list *attrs, const bel_spec *inputs,
                                     int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_collective c = bel_collective_read(BEL_OP_BROADCAST_FROM, attrs);
    if (c.source < 0 || c.source >= c.replicas)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no replica %d of %d", c.source, c.replicas);
    out_outputs[0] = inputs[0];
    return NULL;
}

// The program has already stopped at it: nothing is left to do.
static void run_nothing(const bel_kernel_call *call, int64_t tile)
{
    (void)call, (void)tile;
}

void bel_prepare_collective(const bel_prepare *request, bel_kernel_call *call)
{
    bel_collective *what = bel_arena_alloc(request->arena, sizeof *what);
    *what = bel_collective_read(call->op, request->attrs);
    call->params = what;
    call->run = run_nothing;
    call->tile_count = 1;
}

// --- The replica ---------------------------------------------------------------------------------

bel_status *bel_infer_replica_id(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    (void)inputs, (void)input_count;
    int64_t replicas = bel_attr_whole(attrs, "replicas", 1);
    if (replicas < 1)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "replicas must be at least 1, got %lld",
                       (long long)replicas);
    out_outputs[0] = (bel_spec){BEL_DTYPE_I64, bel_shape_scalar()};
    return NULL;
}

// If only a worker's replicas exchange with each other, all workers have the same number.
static void run_replica_id(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const int64_t *replicas = call->params;
    *(int64_t *)call->outputs[0].data = call->context->replica % *replicas;
}

void bel_prepare_replica_id(const bel_prepare *request, bel_kernel_call *call)
{
    int64_t *replicas = bel_arena_alloc(request->arena, sizeof *replicas);
    *replicas = bel_attr_whole(request->attrs, "replicas", 1);
    BEL_CHECK(*replicas > 0);
    call->params = replicas;
    call->run = run_replica_id;
    call->tile_count = 1;
}
