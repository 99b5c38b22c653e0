// Matrix products. A panel of 16 columns of b stays in the first-level cache while blocks of rows
// of a pass by, which stay in the second-level cache. Both are packed, so that what is read
// together is neighbours and rows that are a power of two apart do not push each other out.
#include "ops/kernels/product.h"

#include <stdbool.h>
#include <string.h>

#include "base/isa.h"

// Sizes by measurement on Zen 3, with 32 KB and 512 KB of cache.
enum {
    LANES = BEL_PRODUCT_LANES,
    DEPTH = 256,        // products of a chain at a time
    B_FLOATS = 1 << 16, // room for packed panels
    A_FLOATS = 3 << 13, // and blocks
    ROWS = 96,          // of a at a time where it is not packed
    UNPACKED = 32,      // up to this many rows of a, b is read where it lies
};

const bel_product_kernels *bel_product_kernels_get(void)
{
    static const bel_product_kernels *const tables[] = {
        &bel_product_kernels_v2, &bel_product_kernels_v3, &bel_product_kernels_v4};
    return tables[bel_isa_get()];
}

// A part of the product that is worked on at a time: `k` products of each chain, from `first_k` on.
typedef struct part {
    const bel_product *product;
    const bel_product_kernels *kernels;
    int64_t first_k, k;
    int64_t width; // of a packed block of a: rows_most and what fills it up to whole vectors
    bool packs_a, packs_b;
    float *packed_a, *packed_b;
} part;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Rows [first, first + count) in blocks of rows_most, in which the numbers of a column are
// neighbours.
static void pack_a(const part *p, int64_t first, int64_t count)
{
    const bel_product *x = p->product;
    int64_t most = p->kernels->rows_most;
    const float *a = x->a + first * x->a_row + p->first_k * x->a_column;
    float *to = p->packed_a;
    if (x->a_column == 1) {
        for (int64_t i = 0; i < count; i += most, to += p->k * p->width)
            p->kernels->transpose(a + i * x->a_row, x->a_row, smaller(most, count - i), p->k, to,
                                  p->width);
        return;
    }
    for (int64_t q = 0; q < p->k; q++, a += x->a_column, to += p->width)
        for (int64_t i = 0; i < count; i += most)
            memcpy(to + i / most * p->k * p->width, a + i,
                   (size_t)smaller(most, count - i) * sizeof *to);
}

// A panel [k, 16] of `lanes` columns from `column` on. What it holds behind them is read but enters
// only sums that run_edge drops.
static void pack_b(const part *p, int64_t column, int64_t lanes, float *to)
{
    const bel_product *x = p->product;
    const float *b = x->b + p->first_k * x->b_row + column * x->b_column;
    if (x->b_column != 1) {
        p->kernels->transpose(b, x->b_column, lanes, p->k, to, LANES);
        return;
    }
    for (int64_t q = 0; q < p->k; q++, b += x->b_row, to += LANES) {
        if (lanes == LANES) {
            memcpy(to, b, LANES * sizeof *to);
        } else {
            memset(to, 0, LANES * sizeof *to);
            memcpy(to, b, (size_t)lanes * sizeof *to);
        }
    }
}

// What the chains of block (row, column) go on from: the start values for the first part of k, else
// what the parts before have left in y.
static const float *start_of(const part *p, int64_t row, int64_t column, int64_t *out_step)
{
    const bel_product *x = p->product;
    bool first = p->first_k == 0;
    *out_step = first ? x->start_row : x->y_row;
    const float *start = first ? x->start : x->y;
    return start == NULL ? NULL : start + row * *out_step + column;
}

// Fewer columns than a panel has: they are computed beside y.
static void run_edge(const part *p, bel_product_block *block, float *y, int64_t lanes)
{
    float edge[BEL_PRODUCT_MAX_ROWS * LANES] = {0};
    int64_t y_row = p->product->y_row;
    size_t bytes = (size_t)lanes * sizeof *y;
    for (int64_t r = 0; r < block->rows; r++) {
        block->c_rows[r] = r * LANES;
        if (block->start != NULL)
            memcpy(edge + r * LANES, block->start + r * block->start_step, bytes);
    }
    block->start = block->c = edge;
    block->start_step = LANES;
    p->kernels->run(block);
    for (int64_t r = 0; r < block->rows; r++)
        memcpy(y + r * y_row, edge + r * LANES, bytes);
}

// Rows [first, first + count) of the panel at `b`, whose rows are b_step apart.
static void run_panel(const part *p, int64_t first, int64_t count, int64_t column, int64_t lanes,
                      const float *b, int64_t b_step)
{
    static const bel_product_segment whole = {0, 0};
    const bel_product *x = p->product;
    int64_t most = p->kernels->rows_most;
    bel_product_block block = {.b = b,
                               .segments = &whole,
                               .segment_count = 1,
                               .k = p->k,
                               .a_step = p->packs_a ? p->width : x->a_column,
                               .b_step = b_step};
    for (int64_t i = 0; i < count; i += block.rows) {
        int64_t row = first + i;
        // Packed blocks are as they are.
        block.rows = p->packs_a ? smaller(most, count - i) : bel_product_rows(count - i, most);
        const float *a = p->packs_a ? p->packed_a + i / most * p->k * p->width
                                    : x->a + row * x->a_row + p->first_k * x->a_column;
        block.start = start_of(p, row, column, &block.start_step);
        block.c = x->y + row * x->y_row + column;
        for (int64_t r = 0; r < block.rows; r++) {
            block.a[r] = a + r * (p->packs_a ? 1 : x->a_row);
            block.c_rows[r] = r * x->y_row;
        }
        if (lanes == LANES) {
            p->kernels->run(&block);
        } else {
            run_edge(p, &block, block.c, lanes);
        }
    }
}

// Columns [first, first + count): their panels fit the room for b.
static void run_columns(const part *p, int64_t first, int64_t count)
{
    const bel_product *x = p->product;
    int64_t most = p->kernels->rows_most, rows = ROWS / most * most;
    if (p->packs_a) rows = A_FLOATS / p->k / p->width * most;
    for (int64_t row = 0; row < x->m; row += rows) {
        int64_t height = smaller(rows, x->m - row);
        if (p->packs_a) pack_a(p, row, height);
        for (int64_t j = 0; j < count; j += LANES) {
            int64_t lanes = smaller(LANES, count - j), column = first + j;
            if (!p->packs_b && lanes == LANES) {
                const float *b = x->b + p->first_k * x->b_row + column;
                run_panel(p, row, height, column, lanes, b, x->b_row);
                continue;
            }
            float *panel = p->packed_b + j * p->k;
            if (row == 0) pack_b(p, column, lanes, panel);
            run_panel(p, row, height, column, lanes, panel, LANES);
        }
    }
}

// No products at all: the start values are the result.
static void copy_start(const bel_product *x)
{
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            x->y[i * x->y_row + j] = x->start == NULL ? 0.0f : x->start[i * x->start_row + j];
}

void bel_product_run(const bel_product *product)
{
    _Alignas(64) float packed_a[A_FLOATS], packed_b[B_FLOATS];
    const bel_product_kernels *kernels = bel_product_kernels_get();
    part p = {.product = product,
              .kernels = kernels,
              .width = (kernels->rows_most + 7) / 8 * 8,
              // Packing pays when what is packed is read again.
              .packs_a = product->n > LANES,
              .packs_b = product->b_column != 1 || product->m > UNPACKED,
              .packed_a = packed_a,
              .packed_b = packed_b};
    if (product->k == 0) copy_start(product);
    int64_t parts = (product->k + DEPTH - 1) / DEPTH;
    int64_t depth = parts > 0 ? (product->k + parts - 1) / parts : 0;
    for (p.first_k = 0; p.first_k < product->k; p.first_k += depth) {
        p.k = smaller(depth, product->k - p.first_k);
        int64_t columns = B_FLOATS / p.k / LANES * LANES;
        for (int64_t j = 0; j < product->n; j += columns)
            run_columns(&p, j, smaller(columns, product->n - j));
    }
}
