// MatMul and Gemm over f32 BLAS, cut into column or row tiles by shape alone; f64 by a plain loop.
#include <string.h>

#include "base/fault.h"
#include "belfry/ops.h"
#include "ops/families.h"
#include "ops/kernels/blas.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/elements.h"

static bool flag(const bel_attr_list *attrs, const char *name)
{
    return bel_attr_number(attrs, name, 0) != 0;
}

// --- Shape rules ---------------------------------------------------------------------------------

static bel_status *infer_product(const bel_spec *a, const bel_spec *b, bool transpose_a,
                                 bool transpose_b, bel_spec *out_y)
{
    char at[BEL_SHAPE_TEXT], bt[BEL_SHAPE_TEXT];
    bel_shape_text(&a->shape, at);
    bel_shape_text(&b->shape, bt);
    if (a->dtype != b->dtype || (a->dtype != BEL_DTYPE_F32 && a->dtype != BEL_DTYPE_F64)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected two f32 or two f64 inputs, got %s and %s",
                       bel_dtype_name(a->dtype), bel_dtype_name(b->dtype));
    }
    if (a->shape.rank != 2 || b->shape.rank != 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected two matrices, got %s and %s", at, bt);
    }
    int64_t inner_a = a->shape.dims[transpose_a ? 0 : 1];
    int64_t inner_b = b->shape.dims[transpose_b ? 1 : 0];
    if (inner_a != inner_b) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "inner dimensions differ: %s%s and %s%s", at,
                       transpose_a ? " transposed" : "", bt, transpose_b ? " transposed" : "");
    }
    out_y->dtype = a->dtype;
    out_y->shape =
        BEL_SHAPE(a->shape.dims[transpose_a ? 1 : 0], b->shape.dims[transpose_b ? 0 : 1]);
    return NULL;
}

bel_status *bel_infer_matmul(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                             bel_spec *out_outputs)
{
    (void)attrs, (void)input_count;
    return infer_product(&inputs[0], &inputs[1], false, false, out_outputs);
}

bel_status *bel_infer_gemm(const bel_attr_list *attrs, const bel_spec *inputs, int input_count,
                           bel_spec *out_outputs)
{
    BEL_TRY(infer_product(&inputs[0], &inputs[1], flag(attrs, "transA"), flag(attrs, "transB"),
                          out_outputs));
    if (input_count < 3) return NULL;
    bel_spec pair[2] = {out_outputs[0], inputs[2]}, sum;
    BEL_TRY(bel_infer_broadcast(attrs, pair, 2, &sum));
    if (bel_shape_equal(&sum.shape, &out_outputs[0].shape)) return NULL;
    char yt[BEL_SHAPE_TEXT], ct[BEL_SHAPE_TEXT];
    return BEL_ERR(BEL_INVALID_ARGUMENT, "c %s does not broadcast to the product %s",
                   bel_shape_text(&inputs[2].shape, ct), bel_shape_text(&out_outputs[0].shape, yt));
}

// --- Gradients -----------------------------------------------------------------------------------

// For y = alpha a' b': da' = alpha dy b'^T and db' = alpha a'^T dy, each turned back if transposed.
static void product_grad(bel_gradient *g, bool ta, bool tb, double alpha)
{
    bel_value *a = g->inputs[0], *b = g->inputs[1], *dy = g->output_grads[0];
    if (g->needed[0]) {
        g->input_grads[0] = ta ? bel_gemm(g->graph, b, dy, NULL, alpha, 0, tb, true)
                               : bel_gemm(g->graph, dy, b, NULL, alpha, 0, false, !tb);
    }
    if (g->needed[1]) {
        g->input_grads[1] = tb ? bel_gemm(g->graph, dy, a, NULL, alpha, 0, true, ta)
                               : bel_gemm(g->graph, a, dy, NULL, alpha, 0, !ta, false);
    }
}

void bel_grad_matmul(bel_gradient *g)
{
    product_grad(g, false, false, 1.0);
}

void bel_grad_gemm(bel_gradient *g)
{
    product_grad(g, flag(g->attrs, "transA"), flag(g->attrs, "transB"),
                 bel_attr_number(g->attrs, "alpha", 1));
    if (g->input_count < 3 || !g->needed[2]) return;
    double beta = bel_attr_number(g->attrs, "beta", 1);
    bel_value *dy = g->output_grads[0];
    if (beta != 1.0) {
        dy = bel_mul(g->graph, dy, bel_scalar(g->graph, bel_value_dtype(dy), beta));
    }
    bel_value *inputs[] = {dy, g->inputs[2]};
    bel_shape have = bel_value_shape(dy), want = bel_value_shape(g->inputs[2]);
    bool same = bel_shape_equal(&have, &want);
    g->input_grads[2] = same ? dy : bel_graph_add(g->graph, BEL_OP_SUM_TO, NULL, inputs, 2);
}

// --- Kernels -------------------------------------------------------------------------------------

typedef struct gemm_params {
    bool transpose_a, transpose_b;
    double alpha, beta;
    int64_t m, n, k;
    int64_t tile; // rows or columns of y in one tile
    bool tile_rows;
    int64_t k_parts; // 1, but for BEL_FAULT=threads2: the inner dimension cut by thread count
    void (*few_rows)(int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                     const float *bias, float *y);
} gemm_params;

static void run_gemm_reference(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const gemm_params *p = call->params;
    const bel_tensor *a = &call->inputs[0], *b = &call->inputs[1], *y = &call->outputs[0];
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t q = 0; q < p->k; q++) {
                int64_t ai = p->transpose_a ? q * p->m + i : i * p->k + q;
                int64_t bi = p->transpose_b ? j * p->k + q : q * p->n + j;
                sum += bel_element_get(a, ai) * bel_element_get(b, bi);
            }
            sum *= p->alpha;
            if (call->input_count > 2) {
                const bel_tensor *c = &call->inputs[2];
                int64_t ci = bel_broadcast_index(&y->shape, &c->shape, i * p->n + j);
                sum += p->beta * bel_element_get(c, ci);
            }
            bel_element_set(y, i * p->n + j, sum);
        }
    }
}

// Writes c, broadcast, into the tile of y that the product is then added to.
static void fill_from_c(const bel_kernel_call *call, int64_t row, int64_t rows, int64_t column,
                        int64_t columns)
{
    const gemm_params *p = call->params;
    const bel_tensor *c = &call->inputs[2];
    const float *source = c->data;
    float *y = call->outputs[0].data;
    // A row vector is the usual bias; a column [m, 1] has as many elements when m = n.
    bool is_row = c->shape.rank > 0 && c->shape.dims[c->shape.rank - 1] == p->n &&
                  bel_shape_elements(&c->shape) == p->n;
    for (int64_t i = row; i < row + rows; i++) {
        float *line = y + i * p->n + column;
        if (is_row) {
            memcpy(line, source + column, (size_t)columns * sizeof *line);
            continue;
        }
        for (int64_t j = 0; j < columns; j++) {
            line[j] = source[bel_broadcast_index(&call->outputs[0].shape, &c->shape,
                                                 i * p->n + column + j)];
        }
    }
}

static void run_gemm(const bel_kernel_call *call, int64_t tile)
{
    const gemm_params *p = call->params;
    int64_t begin = tile * p->tile, extent = p->tile_rows ? p->m : p->n;
    int64_t size = begin + p->tile < extent ? p->tile : extent - begin;
    int64_t row = p->tile_rows ? begin : 0, rows = p->tile_rows ? size : p->m;
    int64_t column = p->tile_rows ? 0 : begin, columns = p->tile_rows ? p->n : size;
    bool add = call->input_count > 2 && p->beta != 0;
    if (add) fill_from_c(call, row, rows, column, columns);
    int64_t a_stride = p->transpose_a ? p->m : p->k, b_stride = p->transpose_b ? p->k : p->n;
    const float *a = call->inputs[0].data, *b = call->inputs[1].data;
    a += p->transpose_a ? row : row * a_stride;
    b += p->transpose_b ? column * b_stride : column;
    float *y = (float *)call->outputs[0].data + row * p->n + column;
    for (int64_t part = 0; part < p->k_parts; part++) {
        int64_t first = p->k * part / p->k_parts, last = p->k * (part + 1) / p->k_parts;
        float beta = part > 0 ? 1.0f : add ? (float)p->beta : 0.0f;
        bel_blas_sgemm(p->transpose_a, p->transpose_b, rows, columns, last - first, (float)p->alpha,
                       a + (p->transpose_a ? first * a_stride : first), a_stride,
                       b + (p->transpose_b ? first : first * b_stride), b_stride, beta, y, p->n);
    }
}

static void run_few_rows(const bel_kernel_call *call, int64_t tile)
{
    (void)tile;
    const gemm_params *p = call->params;
    const float *bias = call->input_count > 2 ? call->inputs[2].data : NULL;
    p->few_rows(p->m, p->n, p->k, call->inputs[0].data, call->inputs[1].data, bias,
                call->outputs[0].data);
}

// True where a library's call would cost more than the product.
static bool is_small(const gemm_params *p, const bel_kernel_call *call)
{
    enum { FEW_ROWS = 8, SMALL_WORK = 1 << 15 };
    if (p->m > FEW_ROWS || p->m * p->n * p->k > SMALL_WORK) return false;
    if (p->transpose_a || p->transpose_b || p->alpha != 1) return false;
    if (call->input_count < 3) return true;
    const bel_shape *c = &call->inputs[2].shape; // a bias, or nothing for this kernel
    bool is_row = c->rank > 0 && c->dims[c->rank - 1] == p->n && bel_shape_elements(c) == p->n;
    return is_row && p->beta == 1;
}

// Tiles of about TILE_WORK multiplications along the longer side of y, in multiples of 16. The rule
// knows shapes only, so that the bits do not depend on the number of threads.
static void choose_tiles(gemm_params *p)
{
    enum { TILE_WORK = 8 << 20, MAX_TILES = 64, UNIT = 16 };
    int64_t tiles = p->m * p->n * p->k / TILE_WORK;
    if (tiles > 1) tiles += tiles % 2; // an even number suits most counts of threads
    p->tile_rows = p->m >= p->n;
    int64_t extent = p->tile_rows ? p->m : p->n;
    if (tiles > MAX_TILES) tiles = MAX_TILES;
    if (tiles > extent / UNIT) tiles = extent / UNIT;
    if (tiles < 1) tiles = 1;
    p->tile = ((extent + tiles - 1) / tiles + UNIT - 1) / UNIT * UNIT;
}

void bel_prepare_gemm(const bel_prepare *prepare, bel_kernel_call *call)
{
    gemm_params p = {.transpose_a = flag(prepare->attrs, "transA"),
                     .transpose_b = flag(prepare->attrs, "transB"),
                     .alpha = bel_attr_number(prepare->attrs, "alpha", 1),
                     .beta = bel_attr_number(prepare->attrs, "beta", 1),
                     .m = call->outputs[0].shape.dims[0],
                     .n = call->outputs[0].shape.dims[1]};
    p.k = call->inputs[0].shape.dims[p.transpose_a ? 0 : 1];
    call->run = run_gemm_reference;
    call->tile_count = 1;
    bool fast = !prepare->reference && call->inputs[0].dtype == BEL_DTYPE_F32;
    if (fast && is_small(&p, call)) {
        p.few_rows = bel_cpu_kernels_get()->few_rows;
        call->run = run_few_rows;
        call->tile_elements = p.m * p.n;
    } else if (fast) {
        choose_tiles(&p);
        p.k_parts = bel_fault_is(BEL_FAULT_THREADS2) ? prepare->threads : 1;
        int64_t extent = p.tile_rows ? p.m : p.n;
        call->tile_count = (extent + p.tile - 1) / p.tile;
        call->run = run_gemm;
        if (p.tile_rows) call->tile_elements = p.tile * p.n;
    }
    call->params = bel_arena_copy(prepare->arena, &p, sizeof p);
}
