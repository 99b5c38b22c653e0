// MatMul and Gemm, in f32 divided into tiles; f64 by a plain loop.
//
// A product of more than two dimensions is one product for each matrix of the result. If b is one
// matrix for all, the rows of a form one large product.

#include "ops/matmul.h"
#include "base/fault.h"
#include "ops/families.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *infer_product(const bel_spec *a, const bel_spec *b, bool transpose_a,
                                 bool transpose_b, bel_spec *out_y)
{
    char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
    if (a->dtype != b->dtype || (a->dtype != BEL_DTYPE_F32 && a->dtype != BEL_DTYPE_F64)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected two f32 or two f64 inputs, got %s and %s",
                       bel_dtype_name(a->dtype), bel_dtype_name(b->dtype));
    }
    if (a->shape.rank != 2 || b->shape.rank != 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected two matrices, got %s and %s",
                       bel_shape_text(&a->shape, at), bel_shape_text(&b->shape, bt));
    }
    int64_t inner_a = a->shape.dims[transpose_a ? 0 : 1];
    int64_t inner_b = b->shape.dims[transpose_b ? 1 : 0];
    if (inner_a != inner_b) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "inner dimensions differ: %s%s and %s%s",
                       bel_shape_text(&a->shape, at), transpose_a ? " transposed" : "",
                       bel_shape_text(&b->shape, bt), transpose_b ? " transposed" : "");
    }
    out_y->dtype = a->dtype;
    out_y->shape =
        BEL_SHAPE(a->shape.dims[transpose_a ? 1 : 0], b->shape.dims[transpose_b ? 0 : 1]);
    return NULL;
}

// Returns the leading dimensions: the shape of the stack of matrices.
static bel_shape stack_of(const bel_shape *shape)
{
    bel_shape stack = *shape;
    stack.rank -= 2;
    return stack;
}

static bel_spec matrix_of(const bel_spec *spec)
{
    const int64_t *last = spec->shape.dims + spec->shape.rank - 2;
    return (bel_spec){spec->dtype, BEL_SHAPE(last[0], last[1])};
}

bel_status *bel_infer_matmul(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    (void)input_count;
    bool stacked = inputs[0].shape.rank >= 2 && inputs[1].shape.rank >= 2;
    bel_spec a = stacked ? matrix_of(&inputs[0]) : inputs[0];
    bel_spec b = stacked ? matrix_of(&inputs[1]) : inputs[1], y = {.dtype = a.dtype};
    BEL_TRY(
        infer_product(&a, &b, bel_attr_flag(attrs, "transA"), bel_attr_flag(attrs, "transB"), &y));
    bel_shape a_stack = stack_of(&inputs[0].shape), b_stack = stack_of(&inputs[1].shape);
    out_outputs[0].dtype = y.dtype;
    bel_shape *shape = &out_outputs[0].shape;
    BEL_TRY(bel_broadcast_shapes(&a_stack, &b_stack, shape));
    for (int d = 0; d < 2; d++)
        shape->dims[shape->rank++] = y.shape.dims[d];
    return NULL;
}

// a [..., m], b [..., n] with the same leading dimensions -> [m, n].
bel_status *bel_infer_matmul_flat(const bel_attr_list *attrs, const bel_spec *inputs,
                                  int input_count, bel_spec *out_outputs)
{
    const bel_shape *a = &inputs[0].shape, *b = &inputs[1].shape;
    bool fits = a->rank == b->rank && a->rank >= 2 && inputs[0].dtype == inputs[1].dtype;
    bel_spec same;
    BEL_TRY(bel_infer_float(attrs, inputs, input_count, &same));
    for (int32_t d = 0; fits && d + 1 < a->rank; d++)
        fits = a->dims[d] == b->dims[d];
    if (!fits) {
        char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s and %s must differ only in the last dimension",
                       bel_shape_text(a, at), bel_shape_text(b, bt));
    }
    out_outputs[0].shape = BEL_SHAPE(a->dims[a->rank - 1], b->dims[b->rank - 1]);
    out_outputs[0].dtype = inputs[0].dtype;
    return NULL;
}

bel_status *bel_infer_gemm(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    BEL_TRY(infer_product(&inputs[0], &inputs[1], bel_attr_flag(attrs, "transA"),
                          bel_attr_flag(attrs, "transB"), out_outputs));
    if (input_count < 3) return NULL;
    bel_spec pair[2] = {out_outputs[0], inputs[2]}, sum;
    BEL_TRY(bel_infer_broadcast(attrs, pair, 2, &sum));
    if (bel_shape_equal(&sum.shape, &out_outputs[0].shape)) return NULL;
    char yt[BEL_SHAPE_TEXT], ct[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "c %s does not broadcast to the product %s",
                   bel_shape_text(&inputs[2].shape, ct), bel_shape_text(&out_outputs[0].shape, yt));
}

// --- Kernels -------------------------------------------------------------------------------------

// Returns the matrix of input `input` for matrix `index` of the result.
static int64_t matrix_in(const bel_kernel_call *call, int input, int64_t index)
{
    if (index == 0) return 0;
    bel_shape y = stack_of(&call->outputs[0].shape), x = stack_of(&call->inputs[input].shape);
    return bel_broadcast_index(&y, &x, index);
}

static void run_gemm_reference(const bel_kernel_call *call, int64_t tile)
{
    const bel_gemm *p = call->params;
    const bel_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    int64_t a_base = matrix_in(call, 0, tile) * p->m * p->k;
    int64_t b_base = matrix_in(call, 1, tile) * p->k * p->n, y_base = tile * p->m * p->n;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t q = 0; q < p->k; q++) {
                int64_t ai = p->transpose_a ? q * p->m + i : i * p->k + q;
                int64_t bi = p->transpose_b ? j * p->k + q : q * p->n + j;
                sum += bel_element_get(a, a_base + ai) * bel_element_get(b, b_base + bi);
            }
            sum *= p->alpha;
            if (call->input_count > 2) {
                const bel_tensor *c = &call->inputs[2];
                int64_t ci = bel_broadcast_index(&y->shape, &c->shape, i * p->n + j);
                sum += p->beta * bel_element_get(c, ci);
            }
            if (p->relu && !(sum > 0)) sum = 0;
            bel_element_set(y, y_base + i * p->n + j, sum);
        }
    }
}

// Returns true if c is one row for all of y.
static bool has_bias(const bel_gemm *p, const bel_kernel_call *call)
{
    if (!p->has_c) return false;
    const bel_shape *c = &call->inputs[2].shape; // a column [m, 1] has the same number of elements
                                                 // when m = n
    return c->rank > 0 && c->dims[c->rank - 1] == p->n && bel_shape_elements(c) == p->n;
}

// Adds beta · c to a tile of y; Gemm has one matrix.
static void add_c(const bel_kernel_call *call, const bel_product *tile, int64_t row, int64_t column)
{
    const bel_gemm *p = call->params;
    if (!p->has_c || p->beta == 0 || p->continues) return;
    const bel_tensor *y = &call->outputs[0], *c = &call->inputs[2];
    for (int64_t i = 0; i < tile->m; i++) {
        for (int64_t j = 0; j < tile->n; j++) {
            int64_t at = (row + i) * p->n + column + j;
            int64_t from = bel_broadcast_index(&y->shape, &c->shape, at);
            tile->y[i * tile->y_row + j] += (float)p->beta * ((const float *)c->data)[from];
        }
    }
}

static void matmul_scale(const bel_product *tile, float factor)
{
    for (int64_t i = 0; i < tile->m; i++) {
        float *y = tile->y + i * tile->y_row;
        for (int64_t j = 0; j < tile->n; j++)
            y[j] *= factor;
    }
}

static void above_zero(const bel_product *tile)
{
    bel_cpu_unary_fn *relu = bel_cpu_kernels_get()->unary[BEL_CPU_RELU];
    for (int64_t i = 0; i < tile->m; i++)
        relu(tile->y + i * tile->y_row, tile->y + i * tile->y_row, tile->n);
}

// BELFRY_FAULT=threads2: the chains are split by thread count and begin at their later parts.
static void run_in_parts(bel_product product, bel_product_fn *multiply, int64_t parts)
{
    const float *a = product.a, *b = product.b;
    int64_t k = product.k;
    for (int64_t part = parts; part-- > 0;) {
        int64_t first = k * part / parts;
        product.k = k * (part + 1) / parts - first;
        product.a = a + first * product.a_column;
        product.b = b + first * product.b_row;
        multiply(&product);
        product.start = product.y;
        product.start_is_row = false;
    }
}

// Packs some panels of b, once.
static void run_pack(const bel_kernel_call *call, int64_t tile)
{
    const bel_gemm *p = call->params;
    const bel_product b = {.n = p->n,
                           .k = p->k,
                           .b = call->inputs[1].data,
                           .b_row = p->transpose_b ? 1 : p->n,
                           .b_column = p->transpose_b ? p->k : 1};
    bel_product_pack(&b, tile, call->workspace);
}

// Computes tile `tile` of matrix `matrix`.
static void run_matrix(const bel_kernel_call *call, int64_t matrix, int64_t tile)
{
    const bel_gemm *p = call->params;
    int64_t row = tile / p->tiles_n * p->tile_m, column = tile % p->tiles_n * p->tile_n;
    bel_product product = {.m = p->m - row < p->tile_m ? p->m - row : p->tile_m,
                           .n = p->n - column < p->tile_n ? p->n - column : p->tile_n,
                           .k = p->k,
                           .a_row = p->transpose_a ? 1 : p->k,
                           .a_column = p->transpose_a ? p->m : 1,
                           .b_row = p->transpose_b ? 1 : p->n,
                           .b_column = p->transpose_b ? p->k : 1,
                           .y_row = p->n};
    product.a = (const float *)call->inputs[0].data + matrix_in(call, 0, matrix) * p->m * p->k +
                row * product.a_row;
    product.b = (const float *)call->inputs[1].data + matrix_in(call, 1, matrix) * p->k * p->n +
                column * product.b_column;
    product.y = (float *)call->outputs[0].data + (matrix * p->m + row) * p->n + column;
    if (p->packs_once) product.packed = call->inputs[call->input_count - 1].data;
    product.packed_n = p->n;
    product.packed_column = column;
    if (p->starts) product.start = (const float *)call->inputs[2].data + column;
    product.start_is_row = p->starts;
    if (p->continues) product.start = (const float *)call->inputs[2].data + row * p->n + column;
    run_in_parts(product, p->multiply, p->k_parts);
    if (p->alpha != 1) matmul_scale(&product, (float)p->alpha);
    if (!p->starts) add_c(call, &product, row, column);
    if (p->relu) above_zero(&product);
}

// Elements of input `input` for matrix `index` of the result, each of `size`.
static const float *matrix_at(const bel_kernel_call *call, int input, int64_t index, int64_t size)
{
    return (const float *)call->inputs[input].data + matrix_in(call, input, index) * size;
}

static void run_few_rows(const bel_kernel_call *call, int64_t tile)
{
    const bel_gemm *p = call->params;
    const float *bias = call->input_count > 2 ? call->inputs[2].data : NULL;
    float *y = (float *)call->outputs[0].data + tile * p->m * p->n;
    p->few_rows(p->m, p->n, p->k, matrix_at(call, 0, tile, p->m * p->k),
                matrix_at(call, 1, tile, p->k * p->n), bias, y);
    if (p->relu) bel_cpu_kernels_get()->unary[BEL_CPU_RELU](y, y, p->m * p->n);
}

static void run_short_chains(const bel_kernel_call *call, int64_t tile)
{
    const bel_gemm *p = call->params;
    const bel_product_few few = {.m = p->m,
                                 .n = p->n,
                                 .k = p->k,
                                 .a = matrix_at(call, 0, tile, p->m * p->k),
                                 .b = matrix_at(call, 1, tile, p->k * p->n),
                                 .bias = call->input_count > 2 ? call->inputs[2].data : NULL,
                                 .relu = p->relu,
                                 .y = (float *)call->outputs[0].data + tile * p->m * p->n};
    p->run_few(&few);
}

// Returns true if packing would cost more than the product of one request. A joined batch has a
// matrix, or the same number of rows, for each of its requests.
static bool is_small(const bel_gemm *p, const bel_kernel_call *call, int64_t joined)
{
    enum { FEW_ROWS = 8, SMALL_WORK = 1 << 15 };
    int64_t count = p->count, rows = p->m;
    if (count > 1 && count % joined == 0) {
        count /= joined;
    } else if (rows % joined == 0) {
        rows /= joined;
    }
    if (count != 1 || rows > FEW_ROWS || rows * p->n * p->k > SMALL_WORK) return false;
    if (p->transpose_a || p->transpose_b || p->alpha != 1) return false;
    return call->input_count < 3 || (has_bias(p, call) && p->beta == 1);
}

// Tiles of one product are adjacent; a tile of small products has per_tile of them.
static void run_gemm(const bel_kernel_call *call, int64_t tile)
{
    const bel_gemm *p = call->params;
    int64_t first = tile / p->tiles * p->per_tile;
    int64_t last = first + p->per_tile < p->count ? first + p->per_tile : p->count;
    for (int64_t matrix = first; matrix < last; matrix++)
        run_matrix(call, matrix, tile % p->tiles);
}

// Divides a side of the tile by 2, unless both are already short: packing one operand pays for all
// rows, or columns, of the other in the tile.
static bool halve(bel_gemm *p)
{
    enum { LEAST = 128, ROWS = 12, COLUMNS = BEL_PRODUCT_PACK_COLUMNS }; // full blocks of a product
    bool rows = 2 * p->tile_m >= p->tile_n && p->tile_m >= 2 * LEAST;
    if (!rows && p->tile_n < 2 * LEAST) return false;
    if (rows) {
        p->tile_m = ((p->tile_m + 1) / 2 + ROWS - 1) / ROWS * ROWS;
    } else {
        p->tile_n = ((p->tile_n + 1) / 2 + COLUMNS - 1) / COLUMNS * COLUMNS;
    }
    return true;
}

// Chooses tiles of some 10 million multiplications, or a sixteenth of all.
static void choose_tiles(bel_gemm *p)
{
    enum { TILE_WORK = 12 << 20, TILES = 16, SMALL_WORK = 1 << 20 };
    int64_t work = p->m * p->n * p->k;
    int64_t most = work / TILES > TILE_WORK ? work / TILES : TILE_WORK;
    p->tile_m = p->m > 0 ? p->m : 1;
    p->tile_n = p->n > 0 ? p->n : 1;
    while (p->tile_m * p->tile_n * p->k > most && halve(p)) {
    }
    p->tiles_n = (p->n + p->tile_n - 1) / p->tile_n;
    p->tiles = (p->m + p->tile_m - 1) / p->tile_m * p->tiles_n;
    p->per_tile = 1;
    if (p->tiles == 1 && work > 0 && work < SMALL_WORK) p->per_tile = SMALL_WORK / work;
}

// Reads the sizes of the product: of each matrix of a stack, or of all rows of a at once.
static bel_gemm read_product(const bel_attr_list *attrs, const bel_kernel_call *call)
{
    const bel_shape *a = &call->inputs[0].shape, *b = &call->inputs[1].shape;
    const bel_shape *y = &call->outputs[0].shape;
    bel_gemm p = {.transpose_a = bel_attr_flag(attrs, "transA"),
                  .transpose_b = bel_attr_flag(attrs, "transB"),
                  .relu = bel_attr_flag(attrs, BEL_ATTR_RELU),
                  .alpha = bel_attr_number(attrs, "alpha", 1),
                  .beta = bel_attr_number(attrs, "beta", 1),
                  .has_c = call->input_count > 2,
                  .m = y->dims[y->rank - 2],
                  .n = y->dims[y->rank - 1],
                  .count = 1};
    if (call->op == BEL_OP_MATMUL_FLAT) {
        p.transpose_a = true;
        p.k = p.m > 0 ? bel_shape_elements(a) / p.m : 0;
        return p;
    }
    p.k = a->dims[p.transpose_a ? a->rank - 2 : a->rank - 1];
    bel_shape stack = stack_of(y);
    p.count = bel_shape_elements(&stack);
    if (b->rank == 2 && !p.transpose_a) {
        p.m *= p.count;
        p.count = 1;
    }
    return p;
}

// Returns true for one matrix b that never changes and that each run would pack.
static bool packs_once(const bel_prepare *prepare, const bel_kernel_call *call, const bel_gemm *p)
{
    bool one = call->op != BEL_OP_MATMUL_FLAT && call->inputs[1].shape.rank == 2;
    bool own = p->multiply == bel_product_run && p->k_parts == 1 && p->k > 0;
    return one && own && (prepare->fixed & 1u << 1) != 0 &&
           bel_product_packs(p->m, p->n, p->transpose_b);
}

void bel_prepare_gemm(const bel_prepare *prepare, bel_kernel_call *call)
{
    bel_gemm p = read_product(prepare->attrs, call);
    call->run = run_gemm_reference;
    call->tile_count = p.count;
    bool more = bel_attr_flag(prepare->attrs, BEL_ATTR_CONTINUES);
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32;
    bool openblas =
        BEL_HAS_OPENBLAS && prepare->openblas && bel_product_fits_openblas(p.m * p.count, p.n, p.k);
    p.multiply = bel_product_run;
    if (openblas) p.multiply = bel_product_run_openblas;
    int64_t joined = prepare->joined > 1 ? prepare->joined : 1;
    if (fast && !openblas && !more && is_small(&p, call, joined)) {
        p.few_rows = bel_cpu_kernels_get()->few_rows;
        p.run_few = bel_product_kernels_get()->run_few;
        p.way = prepare->fast_math ? BEL_GEMM_SHORT : BEL_GEMM_FEW_ROWS;
        call->run = prepare->fast_math ? run_short_chains : run_few_rows;
        call->tile_elements = p.m * p.n;
    } else if (fast) {
        choose_tiles(&p);
        p.way = BEL_GEMM_CHAINS;
        p.continues = more;
        p.starts = !more && p.alpha == 1 && p.beta == 1 && has_bias(&p, call);
        p.k_parts = bel_fault_is(BEL_FAULT_THREADS2) ? prepare->threads : 1;
        call->tile_count = p.tiles * ((p.count + p.per_tile - 1) / p.per_tile);
        call->run = run_gemm;
        p.packs_once = packs_once(prepare, call, &p);
        if (p.packs_once) {
            call->before = run_pack;
            call->before_tiles = (p.n + BEL_PRODUCT_PACK_COLUMNS - 1) / BEL_PRODUCT_PACK_COLUMNS;
            call->packed_bytes = (size_t)bel_product_packed_floats(p.n, p.k) * sizeof(float);
        }
        if (p.tiles_n == 1 && p.count == 1) call->tile_elements = p.tile_m * p.n;
    }
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
