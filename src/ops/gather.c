// Gather and GatherElements, and their gradients. An index out of range ends the step; until then
// it reads zeros and adds nothing. Data counts as [outer, rows, width] around the axis. The forward
// kernels move bytes and serve every type, so they need no plain form. A gradient adds in the order
// of the indices, since equal indices add to one row. Its tiles are only columns: the same bits for
// any number of threads.
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"
#include "ops/moves.h"

// --- Shape rules ---------------------------------------------------------------------------------

bel_status *bel_infer_gather(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *data = &inputs[0].shape, *indices = &inputs[1].shape;
    BEL_TRY(bel_needs_i64(inputs[1].dtype));
    if (data->rank < 1 || indices->rank + data->rank - 1 > BEL_MAX_RANK) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "data of rank %d cannot be gathered", (int)data->rank);
    }
    int32_t axis;
    BEL_TRY(bel_read_axis(attrs, 0, data->rank, &axis));
    bel_shape y = {.rank = 0};
    for (int32_t d = 0; d < axis; d++)
        y.dims[y.rank++] = data->dims[d];
    for (int32_t d = 0; d < indices->rank; d++)
        y.dims[y.rank++] = indices->dims[d];
    for (int32_t d = axis + 1; d < data->rank; d++)
        y.dims[y.rank++] = data->dims[d];
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

bel_status *bel_infer_gather_elements(const bel_attr_list *attrs, const bel_spec *inputs,
                                      int input_count, bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *data = &inputs[0].shape, *indices = &inputs[1].shape;
    BEL_TRY(bel_needs_i64(inputs[1].dtype));
    int32_t axis;
    BEL_TRY(bel_read_axis(attrs, 0, data->rank, &axis));
    bool fits = data->rank == indices->rank;
    for (int32_t d = 0; fits && d < data->rank; d++)
        fits = d == axis || data->dims[d] == indices->dims[d];
    if (!fits) {
        char dt[BEL_SHAPE_TEXT], it[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "data %s and indices %s may differ only in dimension %d",
                       bel_shape_text(data, dt), bel_shape_text(indices, it), (int)axis);
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, *indices};
    return NULL;
}

// Inputs dy, indices, data; the result has the shape of data.
bel_status *bel_infer_gather_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    const bel_spec forward[] = {inputs[2], inputs[1]};
    bel_spec y;
    BEL_TRY(bel_infer_gather(attrs, forward, input_count - 1, &y));
    out_outputs[0] = inputs[2];
    return bel_check_like("dy", &inputs[0], &y);
}

bel_status *bel_infer_gather_elements_grad(const bel_attr_list *attrs, const bel_spec *inputs,
                                           int input_count, bel_spec *out_outputs)
{
    const bel_spec forward[] = {inputs[2], inputs[1]};
    bel_spec y;
    BEL_TRY(bel_infer_gather_elements(attrs, forward, input_count - 1, &y));
    out_outputs[0] = inputs[2];
    return bel_check_like("dy", &inputs[0], &y);
}

// --- Gather --------------------------------------------------------------------------------------

// outer: the product of the dimensions before the axis; width: of those after it.
static const bel_gather_params *make_gather(const bel_prepare *prepare, const bel_shape *data,
                                            const bel_shape *indices)
{
    int32_t axis = 0;
    bel_status_ignore(bel_read_axis(prepare->attrs, 0, data->rank, &axis)); // by the shape rule
    bel_gather_params p = {.outer = 1, .rows = data->dims[axis], .width = 1};
    for (int32_t d = 0; d < axis; d++)
        p.outer *= data->dims[d];
    for (int32_t d = axis + 1; d < data->rank; d++)
        p.width *= data->dims[d];
    p.count = bel_shape_elements(indices);
    p.per_tile = bel_tile_rows(p.width);
    return bel_arena_copy(prepare->arena, &p, sizeof p);
}

// Row i of the result [outer · count] is row indices[i % count] of outer block i / count of data.
// An invalid index gives zeros, and the run ends with its number.
static void run_gather(const bel_kernel_call *call, int64_t tile)
{
    const bel_gather_params *p = call->params;
    const bel_tensor *data = &call->inputs[0];
    const int64_t *indices = call->inputs[1].data;
    size_t row = (size_t)p->width * bel_dtype_size(data->dtype);
    char *y = call->outputs[0].data;
    int64_t all = p->outer * p->count, first = tile * p->per_tile;
    int64_t end = all - first < p->per_tile ? all : first + p->per_tile;
    for (int64_t i = first; i < end; i++) {
        int64_t index = indices[i % p->count];
        if (index < 0 || index >= p->rows) {
            bel_kernel_report(call, index, p->rows);
            memset(y + (size_t)i * row, 0, row);
            continue;
        }
        int64_t from = i / p->count * p->rows + index;
        memcpy(y + (size_t)i * row, (const char *)data->data + (size_t)from * row, row);
    }
}

void bel_prepare_gather(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_gather_params *p =
        make_gather(prepare, &call->inputs[0].shape, &call->inputs[1].shape);
    call->run = run_gather;
    call->tile_count = (p->outer * p->count + p->per_tile - 1) / p->per_tile;
    call->params = p;
}

enum { GRAD_COLUMNS = 256 }; // in a tile

// Sets columns of all rows to 0.
static void clear_columns(const bel_gather_params *p, const bel_tensor *x, int64_t first,
                          int64_t columns)
{
    size_t size = bel_dtype_size(x->dtype);
    if (columns == p->width) { // they are adjacent
        memset(x->data, 0, bel_tensor_bytes(x));
        return;
    }
    for (int64_t row = 0; row < p->outer * p->rows; row++)
        memset((char *)x->data + (size_t)(row * p->width + first) * size, 0,
               (size_t)columns * size);
}

// A tile adds some columns of the rows in the order of the indices: the same bits for any number of
// threads and tiles.
static void run_gather_grad(const bel_kernel_call *call, int64_t tile)
{
    const bel_gather_params *p = call->params;
    const bel_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    const int64_t *indices = call->inputs[1].data;
    int64_t first = tile * GRAD_COLUMNS, left = p->width - first;
    int64_t columns = left < GRAD_COLUMNS ? left : GRAD_COLUMNS;
    clear_columns(p, dx, first, columns);
    for (int64_t i = 0; i < p->outer * p->count; i++) {
        int64_t index = indices[i % p->count];
        if (index < 0 || index >= p->rows) {
            bel_kernel_report(call, index, p->rows);
            continue;
        }
        int64_t to = (i / p->count * p->rows + index) * p->width + first;
        int64_t from = i * p->width + first;
        if (dx->dtype == BEL_DTYPE_F32) {
            float *sum = (float *)dx->data + to;
            const float *row = (const float *)dy->data + from;
            bel_cpu_kernels_get()->binary[BEL_CPU_ADD](sum, row, sum, columns);
            continue;
        }
        for (int64_t j = 0; j < columns; j++) {
            double sum = bel_element_get(dx, to + j);
            bel_element_set(dx, to + j, sum + bel_element_get(dy, from + j));
        }
    }
}

void bel_prepare_gather_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_gather_params *p =
        make_gather(prepare, &call->outputs[0].shape, &call->inputs[1].shape);
    call->run = run_gather_grad;
    call->tile_count = p->width > 0 ? (p->width + GRAD_COLUMNS - 1) / GRAD_COLUMNS : 1;
    call->params = p;
}

// --- GatherElements ------------------------------------------------------------------------------

// data is [outer, rows, width], indices and the result are [outer, count / (outer width), width].
// Returns the offset of element i in data, or -1.
static int64_t element_place(const bel_gather_params *p, const int64_t *indices, int64_t i)
{
    if (indices[i] < 0 || indices[i] >= p->rows) return -1;
    return (i / (p->count / p->outer) * p->rows + indices[i]) * p->width + i % p->width;
}

static void run_gather_elements(const bel_kernel_call *call, int64_t tile)
{
    const bel_gather_params *p = call->params;
    const char *data = call->inputs[0].data;
    const int64_t *indices = call->inputs[1].data;
    char *y = call->outputs[0].data;
    size_t size = bel_dtype_size(call->inputs[0].dtype);
    int64_t end = bel_tile_end(tile, p->count);
    for (int64_t i = bel_tile_begin(tile); i < end; i++) {
        int64_t place = element_place(p, indices, i);
        if (place < 0) bel_kernel_report(call, indices[i], p->rows);
        if (place < 0) memset(y + (size_t)i * size, 0, size);
        if (place >= 0) memcpy(y + (size_t)i * size, data + (size_t)place * size, size);
    }
}

void bel_prepare_gather_elements(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_gather_params *p =
        make_gather(prepare, &call->inputs[0].shape, &call->inputs[1].shape);
    call->run = run_gather_elements;
    call->tile_count = bel_tiles_of(p->count);
    call->params = p;
}

// One tile adds in the order of the indices.
static void run_gather_elements_grad(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const bel_gather_params *p = call->params;
    const bel_tensor *dy = &call->inputs[0], *dx = &call->outputs[0];
    memset(dx->data, 0, bel_tensor_bytes(dx));
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t *indices = call->inputs[1].data;
        int64_t place = element_place(p, indices, i);
        if (place < 0) {
            bel_kernel_report(call, indices[i], p->rows);
        } else {
            bel_element_set(dx, place, bel_element_get(dx, place) + bel_element_get(dy, i));
        }
    }
}

void bel_prepare_gather_elements_grad(const bel_prepare *prepare, bel_kernel_call *call)
{
    call->run = run_gather_elements_grad;
    call->tile_count = 1;
    call->params = make_gather(prepare, &call->outputs[0].shape, &call->inputs[1].shape);
}
