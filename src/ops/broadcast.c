// BroadcastTo, and the number of elements in a mean. Both use an input only for its shape
// (bel_op_reads), because shapes are open while gradient rules build them. BroadcastTo only moves
// bytes along a walk (kernels/walk.h), so one kernel serves every type and needs no plain form.
// With the attribute axes it reverses a reduction that dropped these axes; without it, it
// broadcasts as ONNX does.
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/kernels/walk.h"

void bel_broadcast_axes(const bel_shape *large, const bel_shape *small, bool out_axes[BEL_MAX_RANK])
{
    memset(out_axes, 0, BEL_MAX_RANK * sizeof(bool));
    int32_t lead = large->rank - small->rank;
    for (int32_t i = 0; i < large->rank; i++)
        out_axes[i] = i < lead || (small->dims[i - lead] == 1 && large->dims[i] != 1);
}

bel_status *bel_check_repeated(const bel_shape *small, const bel_shape *large)
{
    int32_t lead = large->rank - small->rank;
    bool fits = lead >= 0;
    for (int32_t d = 0; fits && d < small->rank; d++) {
        int64_t p = small->dims[d], q = large->dims[lead + d];
        fits = p == q || p == 1 || p < 0 || q < 0;
    }
    if (fits) return NULL;
    char st[BEL_SHAPE_TEXT], lt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s does not broadcast to %s", bel_shape_text(small, st),
                   bel_shape_text(large, lt));
}

bel_status *bel_infer_broadcast_to(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *y = &inputs[1].shape;
    out_outputs[0] = (bel_spec){inputs[0].dtype, *y};
    if (bel_attr_ints(attrs, "axes") == NULL) return bel_check_repeated(&inputs[0].shape, y);
    bool dropped[BEL_MAX_RANK];
    BEL_TRY(bel_read_axes(attrs, y->rank, dropped));
    bel_spec kept = {.dtype = inputs[0].dtype};
    for (int32_t d = 0; d < y->rank; d++)
        if (!dropped[d]) kept.shape.dims[kept.shape.rank++] = y->dims[d];
    return bel_check_like("x", &inputs[0], &kept);
}

// Inlined with a fixed size, so that copying an element is one move.
static inline void broadcast_repeat(const char *x, size_t size, char *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(y + (size_t)i * size, x, size);
}

static void repeat_run(const void *context, const bel_run *run)
{
    const bel_kernel_call *call = context;
    size_t size = bel_dtype_size(call->outputs[0].dtype);
    const char *x = (const char *)call->inputs[0].data + (size_t)run->places[0] * size;
    char *y = (char *)call->outputs[0].data + (size_t)run->at * size;
    if (run->steps[0] == 1) {
        memcpy(y, x, (size_t)run->n * size);
    } else if (size == sizeof(float)) {
        broadcast_repeat(x, sizeof(float), y, run->n);
    } else {
        broadcast_repeat(x, size, y, run->n);
    }
}

static void run_broadcast_to(const bel_kernel_call *call, int64_t tile)
{
    int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
    bel_walk_runs(call->params, bel_tile_begin(tile), end, repeat_run, call);
}

void bel_prepare_broadcast_to(const bel_prepare *prepare, bel_kernel_call *call)
{
    bool repeated[BEL_MAX_RANK];
    const bel_shape *y = &call->outputs[0].shape;
    if (bel_attr_ints(prepare->attrs, "axes") != NULL) {
        bel_status_ignore(bel_read_axes(prepare->attrs, y->rank, repeated)); // inferred
    } else {
        bel_broadcast_axes(y, &call->inputs[0].shape, repeated);
    }
    int64_t steps[1][BEL_MAX_RANK], step = 1;
    for (int32_t d = y->rank - 1; d >= 0; d--) {
        steps[0][d] = repeated[d] ? 0 : step;
        if (!repeated[d]) step *= y->dims[d];
    }
    bel_walk walk = bel_walk_make(y, steps, 1);
    call->run = run_broadcast_to;
    call->tile_count = bel_tiles_of(bel_shape_elements(y));
    call->params = bel_arena_copy(prepare->arena, &walk, sizeof walk);
}

static void run_count_ratio(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    double all = (double)bel_shape_elements(&call->inputs[0].shape);
    double kept = (double)bel_shape_elements(&call->inputs[1].shape);
    bel_element_set(&call->outputs[0], 0, kept / all);
}

void bel_prepare_count_ratio(const bel_prepare *prepare, bel_kernel_call *call)
{
    (void)prepare;
    call->run = run_count_ratio;
    call->tile_count = 1;
}
