// Operations that join tensors: Concat along an axis, Where by a condition. Concat moves bytes,
// `outer` runs of each input one after another, so one kernel serves every type. The loops of Where
// depend on the size of an element, not on its type, and it has a plain form. Neither computes
// anything: a NaN keeps its bits. The sum of open dimensions is no product of symbols, so the
// attribute "total" names the symbol that stands for it.
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/moves.h"

// --- Concat --------------------------------------------------------------------------------------

bel_status *bel_infer_concat(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    int32_t axis;
    BEL_TRY(bel_read_axis(attrs, 0, inputs[0].shape.rank, &axis));
    out_outputs[0] = inputs[0];
    int64_t *sum = &out_outputs[0].shape.dims[axis];
    const int64_t total = (int64_t)bel_attr_number(attrs, "total", 0);
    bool open = *sum < 0;
    for (int i = 1; i < input_count; i++) {
        bel_shape aligned = inputs[i].shape;
        if (aligned.rank == inputs[0].shape.rank) aligned.dims[axis] = *sum;
        if (inputs[i].dtype != inputs[0].dtype ||
            !bel_shape_equal(&aligned, &out_outputs[0].shape)) {
            char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s %s and %s %s must differ only in dimension %d",
                           bel_dtype_name(inputs[0].dtype), bel_shape_text(&inputs[0].shape, at),
                           bel_dtype_name(inputs[i].dtype), bel_shape_text(&inputs[i].shape, bt),
                           (int)axis);
        }
        open = open || inputs[i].shape.dims[axis] < 0;
        if (open && total >= 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d is open and cannot be joined",
                           (int)axis);
        }
        if (!open) *sum += inputs[i].shape.dims[axis];
    }
    if (open && input_count > 1) *sum = total;
    return NULL;
}

// Single numbers are frequent when columns are joined.
static inline void copy_run(char *y, const char *x, size_t size)
{
    if (size == sizeof(float)) {
        memcpy(y, x, sizeof(float));
    } else if (size > 0) {
        memcpy(y, x, size);
    }
}

// Run i of the result is run i of each input, concatenated.
static void run_concat(const bel_kernel_call *call, int64_t tile)
{
    const bel_concat_params *p = call->params;
    int64_t first = tile * p->per_tile;
    int64_t last = first + p->per_tile < p->outer ? first + p->per_tile : p->outer;
    for (int64_t i = first; i < last; i++) {
        char *y = (char *)call->outputs[0].data + (size_t)i * p->total;
        for (int k = 0; k < call->input_count; k++) {
            const char *x = (const char *)call->inputs[k].data + (size_t)i * p->sizes[k];
            copy_run(y, x, p->sizes[k]);
            y += p->sizes[k];
        }
    }
}

void bel_prepare_concat(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *y = &call->outputs[0].shape;
    int32_t axis = 0;
    bel_status_ignore(bel_read_axis(prepare->attrs, 0, y->rank, &axis)); // as above
    bel_concat_params p = {.outer = 1};
    for (int32_t d = 0; d < axis; d++)
        p.outer *= y->dims[d];
    for (int k = 0; k < call->input_count && p.outer > 0; k++) {
        p.sizes[k] = bel_tensor_bytes(&call->inputs[k]) / (size_t)p.outer;
        p.total += p.sizes[k];
    }
    p.per_tile = bel_tile_rows((int64_t)(p.total / bel_dtype_size(call->outputs[0].dtype)));
    call->run = run_concat;
    call->tile_count = (p.outer + p.per_tile - 1) / p.per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- Where ---------------------------------------------------------------------------------------

bel_status *bel_infer_where(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    if (inputs[0].dtype != BEL_DTYPE_BOOL || inputs[1].dtype != inputs[2].dtype) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "expected a condition of bool and two inputs of one type, got %s, %s and %s",
                       bel_dtype_name(inputs[0].dtype), bel_dtype_name(inputs[1].dtype),
                       bel_dtype_name(inputs[2].dtype));
    }
    bel_shape both;
    BEL_TRY(bel_broadcast_shapes(&inputs[1].shape, &inputs[2].shape, &both));
    out_outputs[0].dtype = inputs[1].dtype;
    return bel_broadcast_shapes(&inputs[0].shape, &both, &out_outputs[0].shape);
}

static void run_where_reference(const bel_kernel_call *call, int64_t tile)
{
    const bel_tensor *y = &call->outputs[0];
    size_t size = bel_dtype_size(y->dtype);
    int64_t end = bel_tile_end(tile, bel_shape_elements(&y->shape));
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        const bel_tensor *c = &call->inputs[0];
        bool yes = ((const uint8_t *)c->data)[bel_broadcast_index(&y->shape, &c->shape, i)] != 0;
        const bel_tensor *from = &call->inputs[yes ? 1 : 2];
        int64_t place = bel_broadcast_index(&y->shape, &from->shape, i);
        memcpy((char *)y->data + (size_t)i * size, (const char *)from->data + (size_t)place * size,
               size);
    }
}

// A run of elements of one size. Repeated operands are read before the loop.
#define WHERE(type)                                                                                \
    static void where_##type(const void *context, const bel_run *run)                              \
    {                                                                                              \
        const bel_kernel_call *call = context;                                                     \
        const uint8_t *condition = (const uint8_t *)call->inputs[0].data + run->places[0];         \
        const type *a = (const type *)call->inputs[1].data + run->places[1];                       \
        const type *b = (const type *)call->inputs[2].data + run->places[2];                       \
        type *restrict y = (type *)call->outputs[0].data + run->at;                                \
        const type p = a[0], q = b[0];                                                             \
        if (run->steps[0] == 0) {                                                                  \
            const type *from = condition[0] != 0 ? a : b;                                          \
            int64_t step = run->steps[condition[0] != 0 ? 1 : 2];                                  \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                y[i] = from[i * step];                                                             \
        } else if (run->steps[1] == 0 && run->steps[2] == 0) {                                     \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                y[i] = condition[i] != 0 ? p : q;                                                  \
        } else if (run->steps[1] == 0) {                                                           \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                y[i] = condition[i] != 0 ? p : b[i];                                               \
        } else if (run->steps[2] == 0) {                                                           \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                y[i] = condition[i] != 0 ? a[i] : q;                                               \
        } else {                                                                                   \
            for (int64_t i = 0; i < run->n; i++)                                                   \
                y[i] = condition[i] != 0 ? a[i] : b[i];                                            \
        }                                                                                          \
    }
WHERE(uint8_t)
WHERE(uint16_t)
WHERE(uint32_t)
WHERE(uint64_t)

static void run_where(const bel_kernel_call *call, int64_t tile)
{
    size_t size = bel_dtype_size(call->outputs[0].dtype);
    bel_run_fn *run = size == 8   ? where_uint64_t
                      : size == 4 ? where_uint32_t
                      : size == 2 ? where_uint16_t
                                  : where_uint8_t;
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_walk_runs(call->params, bel_tile_begin(tile), end, run, call);
}

void bel_prepare_where(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_walk walk = bel_walk_broadcast(&call->outputs[0].shape, call->inputs, 3);
    call->run = prepare->reference ? run_where_reference : run_where;
    call->tile_count = bel_tiles_of(bel_shape_elements(&call->outputs[0].shape));
    call->params = bel_arena_copy(prepare->arena, &walk, sizeof walk);
}
