// Operations that pick elements dimension by dimension: Slice, Pad, Expand, and the gradients of
// the first two.
//
// Each dimension of the picked tensor has a list: the offset of its i-th place from the start of
// the source, or -1 for a fill element. An element's place is the sum of one number from each list.
// Gradients use the same lists and add to the source element, in the order of the picked elements,
// so that the bits are fixed.
#include <string.h>

#include "belfry/ops.h"
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/moves.h"

// --- Slice: shape rule ---------------------------------------------------------------------------

// Places of one dimension in a slice: first, first + step … `count` of them.
typedef struct slice_range {
    int64_t first, step, count;
} slice_range;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

// ONNX's rule for one axis of `size` elements: negative numbers count from the end, then both are
// clamped.
static slice_range range_of(int64_t size, int64_t start, int64_t end, int64_t step)
{
    if (start < 0) start += size;
    if (end < 0) end += size;
    slice_range range = {.step = step};
    if (size == 0) {
        range.count = 0; // there is no last one to start from
    } else if (step > 0) {
        range.first = clamp(start, 0, size);
        end = clamp(end, 0, size);
        if (end > range.first) range.count = (end - range.first - 1) / step + 1;
    } else {
        range.first = clamp(start, 0, size - 1);
        end = clamp(end, -1, size - 1);
        if (end < range.first) range.count = (end - range.first + 1) / step + 1;
    }
    return range;
}

// Reads the attributes starts, ends, axes (missing: the first ones) and steps (missing: ones). An
// open dimension allows only the full range.
static bel_status *read_slice(const bel_attr_list *attrs, const bel_shape *x,
                              slice_range out_ranges[BEL_MAX_RANK])
{
    const bel_shape *starts = bel_attr_ints(attrs, "starts"), *ends = bel_attr_ints(attrs, "ends");
    const bel_shape *axes = bel_attr_ints(attrs, "axes"), *steps = bel_attr_ints(attrs, "steps");
    int32_t count = starts == NULL ? 0 : starts->rank;
    if (ends == NULL || ends->rank != count || (axes != NULL && axes->rank != count) ||
        (steps != NULL && steps->rank != count)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "starts, ends, axes and steps must have one length");
    }
    for (int32_t d = 0; d < x->rank; d++)
        out_ranges[d] = (slice_range){.step = 1, .count = x->dims[d]};
    bool seen[BEL_MAX_RANK] = {false};
    for (int32_t i = 0; i < count; i++) {
        int64_t axis = axes == NULL ? i : axes->dims[i], step = steps == NULL ? 1 : steps->dims[i];
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis >= x->rank || seen[axis]) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "axis %lld does not exist in rank %d or is listed twice",
                           (long long)axis, (int)x->rank);
        }
        if (step == 0) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "the step of axis %lld must not be 0",
                           (long long)axis);
        }
        seen[axis] = true;
        if (x->dims[axis] >= 0) {
            out_ranges[axis] = range_of(x->dims[axis], starts->dims[i], ends->dims[i], step);
        } else if (starts->dims[i] != 0 || ends->dims[i] != INT64_MAX || step != 1) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "dimension %lld is open and allows only the full range",
                           (long long)axis);
        }
    }
    return NULL;
}

bel_status *bel_infer_slice(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                            bel_spec *out_outputs)
{
    (void)input_count;
    slice_range ranges[BEL_MAX_RANK];
    BEL_TRY(read_slice(attrs, &inputs[0].shape, ranges));
    out_outputs[0] = inputs[0];
    for (int32_t d = 0; d < inputs[0].shape.rank; d++)
        out_outputs[0].shape.dims[d] = ranges[d].count;
    return NULL;
}

// --- Pad: shape rule -----------------------------------------------------------------------------

static int64_t list_at(const bel_shape *list, int32_t d)
{
    return list == NULL ? 0 : list->dims[d];
}

static bel_status *check_pad(int64_t size, int64_t before, int64_t behind, int64_t mode)
{
    const int64_t limit = INT64_MAX / 4; // so that sums cannot overflow
    if (before == 0 && behind == 0) return NULL;
    if (size < 0) return BEL_ERR(BEL_INVALID_ARGUMENT, "an open dimension cannot be padded");
    if (before > limit || before < -limit || behind > limit || behind < -limit ||
        size + before + behind < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "pads %lld and %lld do not fit a dimension of %lld",
                       (long long)before, (long long)behind, (long long)size);
    }
    int64_t larger = before > behind ? before : behind;
    if ((mode == BEL_PAD_REFLECT && larger >= size) || (mode == BEL_PAD_EDGE && size == 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "pads %lld and %lld %s a dimension of %lld",
                       (long long)before, (long long)behind,
                       mode == BEL_PAD_REFLECT ? "must be smaller than" : "have no edge in",
                       (long long)size);
    }
    return NULL;
}

bel_status *bel_infer_pad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                          bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *before = bel_attr_ints(attrs, "pads_before");
    const bel_shape *behind = bel_attr_ints(attrs, "pads_behind");
    int64_t mode = bel_attr_whole(attrs, "mode", BEL_PAD_CONSTANT);
    int32_t rank = inputs[0].shape.rank;
    if ((before != NULL && before->rank != rank) || (behind != NULL && behind->rank != rank)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "pads need one number for each of %d dimensions",
                       (int)rank);
    }
    if (mode < BEL_PAD_CONSTANT || mode > BEL_PAD_REFLECT) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no mode number %lld", (long long)mode);
    }
    out_outputs[0] = inputs[0];
    for (int32_t d = 0; d < rank; d++) {
        int64_t size = inputs[0].shape.dims[d];
        BEL_TRY(check_pad(size, list_at(before, d), list_at(behind, d), mode));
        out_outputs[0].shape.dims[d] = size + list_at(before, d) + list_at(behind, d);
    }
    return NULL;
}

// --- Expand: shape rule --------------------------------------------------------------------------

// In the shape, -1 - k is dimension k of the second input, which is used only for this.
bel_status *bel_infer_expand(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    const bel_shape *given;
    BEL_TRY(bel_read_ints(attrs, "shape", &given));
    bel_shape wanted = *given;
    const bel_shape *like = input_count > 1 ? &inputs[1].shape : NULL;
    for (int32_t d = 0; d < wanted.rank; d++) {
        int64_t from = -1 - wanted.dims[d];
        if (from < 0) continue;
        if (like == NULL || from >= like->rank) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %lld of the shape must be at least 0",
                           (long long)wanted.dims[d]);
        }
        wanted.dims[d] = like->dims[from];
    }
    out_outputs[0].dtype = inputs[0].dtype;
    return bel_broadcast_shapes(&inputs[0].shape, &wanted, &out_outputs[0].shape);
}

// --- Gradients -----------------------------------------------------------------------------------

// Inputs dy, x: the shape of x.
bel_status *bel_infer_slice_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                 int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    bel_spec y;
    BEL_TRY(bel_infer_slice(attrs, &inputs[1], 1, &y));
    out_outputs[0] = inputs[1];
    return bel_check_like("dy", &inputs[0], &y);
}

bel_status *bel_infer_pad_grad(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                               bel_spec *out_outputs)
{
    (void)input_count;
    bel_spec y;
    BEL_TRY(bel_infer_pad(attrs, &inputs[1], 1, &y));
    out_outputs[0] = inputs[1];
    return bel_check_like("dy", &inputs[0], &y);
}

// --- Lists ---------------------------------------------------------------------------------------

_Static_assert(BEL_PICK_NOTHING == BEL_PAD_CONSTANT && BEL_PICK_EDGE == BEL_PAD_EDGE &&
                   BEL_PICK_REFLECT == BEL_PAD_REFLECT,
               "modes have the numbers of the attribute");

// Leading dimensions that Expand adds repeat the entire source.
static bel_pick_rule make_rule(const bel_prepare *prepare, bel_op op, const bel_shape *x,
                               const bel_shape *picked)
{
    const bel_attr_list *attrs = prepare->attrs;
    bool slice = op == BEL_OP_SLICE || op == BEL_OP_SLICE_GRAD;
    bool pad = op == BEL_OP_PAD || op == BEL_OP_PAD_GRAD;
    bel_pick_rule rule = {.rank = picked->rank};
    slice_range ranges[BEL_MAX_RANK];
    int32_t lead = picked->rank - x->rank;
    int64_t stride = 1;
    if (slice) bel_status_ignore(read_slice(attrs, x, ranges)); // checked by the shape rule
    if (pad) rule.mode = (int32_t)bel_attr_whole(attrs, "mode", BEL_PAD_CONSTANT);
    for (int32_t p = picked->rank - 1; p >= 0; p--) {
        int32_t d = p - lead;
        int64_t size = d < 0 ? 1 : x->dims[d];
        bel_pick_dim *dim = &rule.dims[p];
        *dim = (bel_pick_dim){.count = picked->dims[p], .size = size, .stride = stride};
        if (slice) {
            dim->first = ranges[d].first;
            dim->step = ranges[d].step;
        } else if (pad) {
            dim->first = -list_at(bel_attr_ints(attrs, "pads_before"), d);
            dim->step = 1;
        } else {
            dim->step = size == 1 ? 0 : 1;
        }
        stride *= size;
    }
    return rule;
}

// Makes a list for each dimension of the result: the source place of each index, times the source's
// stride, so that places can be added; -1: fill. `run`: neighbors along the last dimension are
// neighbors in the source. An empty result has no lists, however long its other dimensions are.
static bel_pick_params make_lists(const bel_prepare *prepare, bel_op op, const bel_tensor *x,
                                  const bel_shape *picked)
{
    bel_pick_params p = {.rule = make_rule(prepare, op, &x->shape, picked),
                         .shape = *picked,
                         .size = bel_dtype_size(x->dtype),
                         .run = true};
    if (bel_shape_elements(picked) == 0) return p;
    for (int32_t d = picked->rank - 1; d >= 0; d--) {
        const bel_pick_dim *dim = &p.rule.dims[d];
        int64_t count = dim->count;
        int64_t *list = bel_arena_alloc(prepare->arena, ((size_t)count + 1) * sizeof *list);
        for (int64_t i = 0; i < count; i++) {
            int64_t place = bel_pick_place(dim, p.rule.mode, i);
            list[i] = place < 0 ? -1 : place * dim->stride;
            if (d == picked->rank - 1) p.run = p.run && list[i] >= 0 && list[i] == list[0] + i;
        }
        p.lists[d] = list;
    }
    bel_tensor fill = {.dtype = x->dtype, .data = p.fill};
    bel_element_set(&fill, 0, bel_attr_number(prepare->attrs, "value", 0));
    return p;
}

// The last dimension is processed as a row.
static int64_t row_elements(const bel_shape *shape)
{
    return shape->rank == 0 ? 1 : shape->dims[shape->rank - 1];
}

// Returns the start of row `row` in the source, or -1 for a fill row.
static int64_t row_place(const bel_pick_params *p, int64_t row)
{
    int64_t place = 0;
    for (int32_t d = p->shape.rank - 2; d >= 0; d--) {
        int64_t step = p->lists[d][row % p->shape.dims[d]];
        if (step < 0) return -1;
        row /= p->shape.dims[d];
        place += step;
    }
    return place;
}

// --- Kernels -------------------------------------------------------------------------------------

// Inlined with a fixed size, so that copying an element is one move.
static inline void pick_row(const char *x, const int64_t *list, const char *fill, size_t size,
                            char *y, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        memcpy(y + (size_t)j * size, list[j] < 0 ? fill : x + (size_t)list[j] * size, size);
}

// A tile takes full rows, each a copy, or element by element.
static void run_pick(const bel_kernel_call *call, int64_t tile)
{
    static const int64_t scalar[1] = {0};
    const bel_pick_params *p = call->params;
    int64_t n = row_elements(&p->shape), rows = bel_shape_elements(&p->shape) / n;
    int64_t per_tile = bel_tile_rows(n), first = tile * per_tile;
    int64_t last = first + per_tile < rows ? first + per_tile : rows;
    const int64_t *list = p->shape.rank == 0 ? scalar : p->lists[p->shape.rank - 1];
    for (int64_t row = first; row < last; row++) {
        int64_t place = row_place(p, row);
        char *y = (char *)call->outputs[0].data + (size_t)(row * n) * p->size;
        const char *x =
            (const char *)call->inputs[0].data + (size_t)(place < 0 ? 0 : place) * p->size;
        if (place < 0) {
            for (int64_t j = 0; j < n; j++)
                memcpy(y + (size_t)j * p->size, p->fill, p->size);
        } else if (p->run) {
            memcpy(y, x + (size_t)list[0] * p->size, (size_t)n * p->size);
        } else if (p->size == 4) {
            pick_row(x, list, p->fill, 4, y, n);
        } else if (p->size == 2) {
            pick_row(x, list, p->fill, 2, y, n);
        } else if (p->size == 8) {
            pick_row(x, list, p->fill, 8, y, n);
        } else {
            pick_row(x, list, p->fill, 1, y, n);
        }
    }
}

void bel_prepare_pick(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_pick_params p = make_lists(prepare, call->op, &call->inputs[0], &call->outputs[0].shape);
    int64_t elements = bel_shape_elements(&p.shape),
            per_tile = bel_tile_rows(row_elements(&p.shape));
    int64_t rows = elements > 0 ? elements / row_elements(&p.shape) : 0;
    call->run = run_pick;
    call->tile_count = (rows + per_tile - 1) / per_tile;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// Several elements of dy may have the same source: one tile adds them in order.
static void run_pick_grad(const bel_kernel_call *call, int64_t tile)
{
    static const int64_t scalar[1] = {0};
    (void)tile;
    const bel_pick_params *p = call->params;
    const bel_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    int64_t n = row_elements(&p->shape), elements = bel_shape_elements(&p->shape);
    const int64_t *list = p->shape.rank == 0 ? scalar : p->lists[p->shape.rank - 1];
    memset(dx->data, 0, bel_tensor_bytes(dx));
    for (int64_t at = 0; at < elements; at += n) {
        int64_t place = row_place(p, at / n);
        if (place < 0) continue;
        if (p->run && dx->dtype == BEL_DTYPE_F32) {
            float *sum = (float *)dx->data + place + list[0];
            const float *row = (const float *)dy->data + at;
            bel_cpu_kernels_get()->binary[BEL_CPU_ADD](sum, row, sum, n);
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            if (list[j] < 0) continue;
            double sum = bel_element_get(dx, place + list[j]) + bel_element_get(dy, at + j);
            bel_element_set(dx, place + list[j], sum);
        }
    }
}

void bel_prepare_pick_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_pick_params p = make_lists(prepare, call->op, &call->outputs[0], &call->inputs[0].shape);
    call->run = run_pick_grad;
    call->tile_count = 1;
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
