// Shapes: Reshape, Flatten, Squeeze, Unsqueeze, Transpose; and OneHot. All but the last two are
// aliases: rules without a kernel. Reshape supports a dimension 0 (copied) and a computed one. If x
// has an open dimension, the computed one is a multiple of it (tensor/open.h), so the closed ones
// must divide evenly. Transpose moves bytes: if the last dimension of the result is not the
// source's, squares of 16 by 16 are transposed, so that both sides use full cache lines; the plain
// kernel goes run by run.
#include <string.h>

#include "ops/families.h"
#include "ops/kernels/elements.h"
#include "ops/moves.h"
#include "tensor/open.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *cannot_reshape(const bel_shape *from, const bel_shape *to)
{
    char ft[BEL_SHAPE_TEXT], tt[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot reshape %s to %s: element counts differ",
                   bel_shape_text(from, ft), bel_shape_text(to, tt));
}

bel_status *bel_infer_reshape(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *wanted;
    BEL_TRY(bel_read_ints(attrs, "shape", &wanted));
    bel_open left = {.factor = 1}; // dimensions of x that y lacks
    bel_shape y = *wanted;
    int32_t computed = -1;
    bool fits = true;
    for (int32_t i = 0; i < x->rank && fits; i++) { // copied ones are in both
        bool copied = i < y.rank && wanted->dims[i] == 0;
        if (copied) y.dims[i] = x->dims[i];
        if (!copied) fits = bel_open_multiply(&left, x->dims[i]);
    }
    for (int32_t i = 0; i < y.rank && fits; i++) {
        bool copied = wanted->dims[i] == 0;
        if (copied) fits = i < x->rank;
        if (!copied && wanted->dims[i] > 0) fits = bel_open_divide(&left, wanted->dims[i]);
        if (wanted->dims[i] >= 0) continue;
        fits = computed < 0;
        computed = i;
    }
    if (computed >= 0) {
        fits = fits && bel_open_dim(left, &y.dims[computed]);
    } else {
        fits = fits && left.factor == 1 && left.first == 0 && left.second == 0;
    }
    if (!fits) return cannot_reshape(x, wanted);
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

static bool flat_product(const bel_shape *shape, int32_t first, int32_t end, int64_t *out_product)
{
    bel_open product = {.factor = 1};
    for (int32_t i = first; i < end; i++)
        if (!bel_open_multiply(&product, shape->dims[i])) return false;
    return bel_open_dim(product, out_product);
}

bel_status *bel_infer_flatten(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape;
    int64_t given = bel_attr_whole(attrs, "axis", 1);
    int64_t axis = given < 0 ? given + x->rank : given, rows, columns;
    if (axis < 0 || axis > x->rank || !flat_product(x, 0, (int32_t)axis, &rows) ||
        !flat_product(x, (int32_t)axis, x->rank, &columns)) {
        char xt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot flatten %s at axis %lld",
                       bel_shape_text(x, xt), (long long)given);
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, BEL_SHAPE(rows, columns)};
    return NULL;
}

bel_status *bel_infer_squeeze(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape;
    bool all = bel_attr_ints(attrs, "axes") == NULL, listed[BEL_MAX_RANK];
    BEL_TRY(bel_read_axes(attrs, x->rank, listed));
    bel_shape y = {.rank = 0};
    for (int32_t d = 0; d < x->rank; d++) {
        if (listed[d] && !all && x->dims[d] != 1) {
            char xt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "dimension %d of %s is not 1", (int)d,
                           bel_shape_text(x, xt));
        }
        if (!listed[d] || x->dims[d] != 1) y.dims[y.rank++] = x->dims[d];
    }
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

bel_status *bel_infer_unsqueeze(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *axes = bel_attr_ints(attrs, "axes");
    bool listed[BEL_MAX_RANK];
    int32_t given = axes == NULL ? 0 : axes->rank, rank = x->rank + given, count = 0;
    if (given == 0 || rank > BEL_MAX_RANK) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%d axes cannot be put into rank %d", (int)given,
                       (int)x->rank);
    }
    BEL_TRY(bel_read_axes(attrs, rank, listed));
    bel_shape y = {.rank = rank};
    for (int32_t d = 0, from = 0; d < rank; d++) {
        count += listed[d];
        y.dims[d] = listed[d] || from == x->rank ? 1 : x->dims[from++];
    }
    if (count != given) return BEL_ERR(BEL_INVALID_ARGUMENT, "an axis is listed twice");
    out_outputs[0] = (bel_spec){inputs[0].dtype, y};
    return NULL;
}

bel_status *bel_infer_reshape_like(const bel_attr_list *attrs, const bel_spec *inputs,
                                   int input_count, bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    const bel_shape *x = &inputs[0].shape, *y = &inputs[1].shape;
    int64_t have = bel_shape_elements(x), want = bel_shape_elements(y); // negative: open
    if (have >= 0 && want >= 0 && have != want) return cannot_reshape(x, y);
    out_outputs[0] = (bel_spec){inputs[0].dtype, *y};
    return NULL;
}

bel_status *bel_infer_transpose(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                                bel_spec *out_outputs)
{
    (void)input_count;
    const bel_shape *x = &inputs[0].shape, *perm;
    BEL_TRY(bel_read_ints(attrs, "perm", &perm));
    bool used[BEL_MAX_RANK] = {false};
    out_outputs[0] = inputs[0];
    for (int32_t i = 0; i < x->rank; i++) {
        int64_t from = perm->dims[i];
        if (perm->rank != x->rank || from < 0 || from >= x->rank || used[from]) {
            char xt[BEL_SHAPE_TEXT], pt[BEL_SHAPE_TEXT];
            return BEL_ERR(BEL_INVALID_ARGUMENT, "%s is no permutation of the dimensions of %s",
                           bel_shape_text(perm, pt), bel_shape_text(x, xt));
        }
        used[from] = true;
        out_outputs[0].shape.dims[i] = x->dims[from];
    }
    return NULL;
}

bel_status *bel_infer_one_hot(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                              bel_spec *out_outputs)
{
    (void)input_count;
    BEL_TRY(bel_needs_i64(inputs[0].dtype));
    int64_t depth = bel_attr_whole(attrs, "depth", 0);
    if (depth < 1 || inputs[0].shape.rank >= BEL_MAX_RANK) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "depth must be at least 1, got %lld",
                       (long long)depth);
    }
    out_outputs[0] = (bel_spec){BEL_DTYPE_F32, inputs[0].shape};
    out_outputs[0].shape.dims[out_outputs[0].shape.rank++] = depth;
    return NULL;
}

// --- Transpose -----------------------------------------------------------------------------------

static void copy_run(const void *context, const bel_run *run)
{
    const bel_kernel_call *call = context;
    size_t size = ((const bel_transpose_params *)call->params)->size;
    const char *x = (const char *)call->inputs[0].data + (size_t)run->places[0] * size;
    char *y = (char *)call->outputs[0].data + (size_t)run->at * size;
    if (run->steps[0] == 1) {
        memcpy(y, x, (size_t)run->n * size);
        return;
    }
    for (int64_t i = 0; i < run->n; i++) // reference kernel
        memcpy(y + (size_t)i * size, x + (size_t)(i * run->steps[0]) * size, size);
}

// y[r][c] = x[c][r] for `rows` by `columns` elements, square by square.
#define TURN(type)                                                                                 \
    static void turn_##type(const void *source, void *target, int64_t rows, int64_t columns,       \
                            int64_t x_step, int64_t y_step)                                        \
    {                                                                                              \
        enum { SIDE = 16 };                                                                        \
        const type *x = source;                                                                    \
        type *restrict y = target;                                                                 \
        for (int64_t r0 = 0; r0 < rows; r0 += SIDE) {                                              \
            for (int64_t c0 = 0; c0 < columns; c0 += SIDE) {                                       \
                int64_t r1 = r0 + SIDE < rows ? r0 + SIDE : rows;                                  \
                int64_t c1 = c0 + SIDE < columns ? c0 + SIDE : columns;                            \
                for (int64_t r = r0; r < r1; r++)                                                  \
                    for (int64_t c = c0; c < c1; c++)                                              \
                        y[r * y_step + c] = x[c * x_step + r];                                     \
            }                                                                                      \
        }                                                                                          \
    }
TURN(uint8_t)
TURN(uint16_t)
TURN(uint32_t)
TURN(uint64_t)

// Transposes `rows` elements along `unit`, by all of the last dimension.
static void shape_turn(const bel_transpose_params *p, const char *x, char *y, int64_t rows)
{
    int32_t last = p->walk.rank - 1;
    int64_t columns = p->walk.dims[last], x_step = p->walk.steps[0][last];
    switch (p->size) {
    case 1: turn_uint8_t(x, y, rows, columns, x_step, p->y_step); break;
    case 2: turn_uint16_t(x, y, rows, columns, x_step, p->y_step); break;
    case 4: turn_uint32_t(x, y, rows, columns, x_step, p->y_step); break;
    default: turn_uint64_t(x, y, rows, columns, x_step, p->y_step);
    }
}

// Finds the place of square number `outer` in y and x: the dimensions except `unit` and the last.
static void find_square(const bel_transpose_params *p, int64_t outer, int64_t *out_y,
                        int64_t *out_x)
{
    int64_t y_step = p->walk.dims[p->walk.rank - 1];
    *out_y = *out_x = 0;
    for (int32_t d = p->walk.rank - 2; d >= 0; d--) {
        if (d != p->unit) {
            int64_t at = outer % p->walk.dims[d];
            outer /= p->walk.dims[d];
            *out_y += at * y_step;
            *out_x += at * p->walk.steps[0][d];
        }
        y_step *= p->walk.dims[d];
    }
}

// Rows of all squares are numbered consecutively: row r is row r % height of square r / height, and
// a tile may end in the middle of one.
static void run_transpose(const bel_kernel_call *call, int64_t tile)
{
    const bel_transpose_params *p = call->params;
    if (p->unit < 0) {
        int64_t end = bel_tile_end(tile, bel_shape_elements(&call->outputs[0].shape));
        bel_walk_runs(&p->walk, bel_tile_begin(tile), end, copy_run, call);
        return;
    }
    int64_t height = p->walk.dims[p->unit], all = p->outer * height;
    int64_t row = tile * p->rows_per_tile, end = row + p->rows_per_tile;
    if (end > all) end = all;
    while (row < end) {
        int64_t first = row % height, left = end - row;
        int64_t rows = height - first < left ? height - first : left, y, x;
        find_square(p, row / height, &y, &x);
        shape_turn(p, (const char *)call->inputs[0].data + (size_t)(x + first) * p->size,
                   (char *)call->outputs[0].data + (size_t)(y + first * p->y_step) * p->size, rows);
        row += rows;
    }
}

// Finds the dimension of the result that is the source's last; unset if it is the last of both.
static void find_unit(bel_transpose_params *p)
{
    int32_t last = p->walk.rank - 1;
    if (last < 0 || p->walk.steps[0][last] == 1) return;
    p->outer = p->y_step = 1;
    for (int32_t d = 0; d < last; d++) {
        if (p->walk.steps[0][d] == 1) {
            p->unit = d;
        } else {
            p->outer *= p->walk.dims[d];
        }
    }
    for (int32_t d = p->unit + 1; d <= last; d++)
        p->y_step *= p->walk.dims[d];
}

void bel_prepare_transpose(const bel_prepare *prepare, bel_kernel_call *call)
{
    const bel_shape *perm = bel_attr_ints(prepare->attrs, "perm"), *x = &call->inputs[0].shape;
    const bel_shape *y = &call->outputs[0].shape;
    int64_t steps[1][BEL_MAX_RANK], elements = bel_shape_elements(y);
    for (int32_t d = 0; d < x->rank; d++) {
        steps[0][d] = 1;
        for (int32_t after = (int32_t)perm->dims[d] + 1; after < x->rank; after++)
            steps[0][d] *= x->dims[after];
    }
    bel_transpose_params p = {.walk = bel_walk_make(y, steps, 1),
                              .unit = -1,
                              .size = bel_dtype_size(call->inputs[0].dtype)};
    if (!prepare->reference) find_unit(&p);
    call->run = run_transpose;
    call->tile_count = bel_tiles_of(elements);
    if (p.unit >= 0 && elements > 0) {
        int64_t rows = p.outer * p.walk.dims[p.unit];
        p.rows_per_tile = bel_tile_rows(p.walk.dims[p.walk.rank - 1]);
        call->tile_count = (rows + p.rows_per_tile - 1) / p.rows_per_tile;
    }
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}

// --- OneHot --------------------------------------------------------------------------------------

// y [count, depth].
static void run_one_hot(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const int64_t *indices = call->inputs[0].data;
    const bel_shape *shape = &call->outputs[0].shape;
    int64_t depth = shape->dims[shape->rank - 1];
    float *y = call->outputs[0].data;
    memset(y, 0, bel_tensor_bytes(&call->outputs[0]));
    int64_t count = bel_shape_elements(&call->inputs[0].shape);
    for (int64_t i = 0; i < count; i++)
        if (indices[i] >= 0 && indices[i] < depth) y[i * depth + indices[i]] = 1.0f;
}

void bel_prepare_one_hot(const bel_prepare *prepare, bel_kernel_call *call)
{
    (void)prepare;
    call->run = run_one_hot;
    call->tile_count = 1;
}
