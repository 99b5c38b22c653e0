// Matrix products. Rows of a are processed in blocks that fit the registers. They stay in the
// first-level cache while panels of b, of 16 to 128 columns, stream from the second-level cache.
// Data that is read several times is packed first. Elements that are read together are then
// adjacent, and rows that are a power of two apart do not evict each other. Data that is read once
// is read in place.
#include "ops/kernels/product.h"

#include <stdbool.h>
#include <string.h>

#include "base/isa.h"

// Sizes by measurement on Cascade Lake, with 32 KB and 1 MB of cache, and Zen 3, with 32 and 512
// KB.
enum {
    LANES = BEL_PRODUCT_LANES,
    DEPTH = 256,                                  // products of a chain at once
    PACKED_COLUMNS = 128,                         // minimal columns to pack a
    PACKED_ROWS = 36,                             // minimal rows to pack b
    FEW_ROWS = 24,                                // maximal rows that use b only a few times
    FEW_DEPTH = 64,                               // products of a chain in that case
    FAR_FLOATS = 1 << 18,                         // size of a b that comes from memory
    A_FLOATS = BEL_PRODUCT_ROWS * (DEPTH + LANES) // and for a block of a
};

const bel_product_kernels *bel_product_kernels_get(void)
{
    static const bel_product_kernels *const tables[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_product_kernels)};
    return tables[bel_isa_get()];
}

// Part of the product: `k` products of each chain, from `first_k` on.
typedef struct part {
    const bel_product *product;
    const bel_product_kernels *kernels;
    int64_t units;  // in a panel of b, except the last ones
    int64_t height; // maximal rows of a block
    int64_t first_k, k;
    bool packs_a, packs_b;
    float *a, *b;        // packed
    const float *packed; // this part of an already packed b; NULL: not packed
} part;

// Divides a chain into parts of about equal length.
static int64_t depth_of(int64_t k, int64_t most)
{
    int64_t parts = (k + most - 1) / most;
    return (k + parts - 1) / parts;
}

// Packs `rows` rows of a from `row` on, if they are to be packed. Returns the address of their
// first number, and the steps between rows and within them. Rows stay rows, at steps that are no
// power of two; the numbers of a column become adjacent.
static const float *take_a(const part *p, int64_t row, int64_t rows, int64_t *out_row,
                           int64_t *out_column)
{
    const bel_product *x = p->product;
    const float *a = x->a + row * x->a_row + p->first_k * x->a_column;
    *out_row = x->a_row;
    *out_column = x->a_column;
    if (!p->packs_a) return a;
    if (x->a_column == 1) {
        *out_row = p->k + LANES;
        p->kernels->copy(a, x->a_row, rows, p->k, p->a, *out_row);
    } else {
        *out_column = rows;
        p->kernels->copy(a, x->a_column, p->k, rows, p->a, rows);
    }
    return p->a;
}

// Sets the start of the chains of the block at (row, column): the start values for the first part
// of k, else the sums of earlier parts in y.
static void set_start(const part *p, int64_t row, int64_t column, bel_product_block *block)
{
    const bel_product *x = p->product;
    const float *start = p->first_k == 0 ? x->start : x->y;
    block->start_is_row = p->first_k == 0 && x->start_is_row;
    if (start != NULL) start += column + (block->start_is_row ? 0 : row * x->y_row);
    block->start = start;
}

// Packs columns [first, first + count) to consecutive panels. The panel of column j begins at j ·
// k, as all but the last are full. Processes a few rows of b at a time: rows are on different
// pages, and the TLB has few entries.
static void pack_b(const part *p, int64_t first, int64_t count)
{
    enum { STRIP = 8 };
    const bel_product *x = p->product;
    int64_t strip = x->b_column == 1 ? STRIP : p->k;
    for (int64_t q = 0; q < p->k; q += strip) {
        int64_t depth = bel_smaller(strip, p->k - q), columns;
        const float *b = x->b + (p->first_k + q) * x->b_row + first * x->b_column;
        for (int64_t j = 0; j < count; j += columns, b += columns * x->b_column) {
            int64_t width = bel_product_units(count - j, p->units) * LANES;
            float *to = p->b + j * p->k + q * width;
            columns = bel_smaller(width, count - j);
            if (x->b_column == 1) {
                p->kernels->copy(b, x->b_row, depth, columns, to, width);
            } else {
                p->kernels->transpose(b, x->b_column, columns, depth, to, width);
            }
        }
    }
}

// Multiplies columns [first, first + count), whose panels fit the room for b.
static void run_columns(const part *p, int64_t first, int64_t count)
{
    static const bel_product_segment whole = {0, 0};
    const bel_product *x = p->product;
    if (p->packs_b) pack_b(p, first, count);
    bel_product_block block = {.segments = &whole, .segment_count = 1, .k = p->k};
    for (int64_t row = 0; row < x->m; row += block.rows) {
        block.rows = bel_product_rows(x->m - row, p->height);
        int64_t a_row;
        const float *a = take_a(p, row, block.rows, &a_row, &block.a_step);
        bel_product_set_rows(&block, a, a_row, x->y_row);
        for (int64_t j = 0; j < count; j += block.columns) {
            int64_t width = bel_product_units(count - j, p->units) * LANES;
            block.columns = bel_smaller(width, count - j);
            block.b = p->packed != NULL ? p->packed + (x->packed_column + first + j) * p->k
                      : p->packs_b      ? p->b + j * p->k
                                        : x->b + p->first_k * x->b_row + first + j;
            block.b_step = p->packed != NULL || p->packs_b ? width : x->b_row;
            set_start(p, row, first + j, &block);
            block.c = x->y + row * x->y_row + first + j;
            p->kernels->run(&block);
        }
    }
}

// Multiplies few rows by a b whose columns are rows in memory: packing would cost more than the
// product. Returns the number of finished columns; the rest is less than a block.
static int64_t run_turned(const bel_product *x)
{
    const part p = {.product = x, .kernels = bel_product_kernels_get()};
    bel_product_block block = {
        .rows = x->m, .columns = BEL_PRODUCT_TURNED_COLUMNS, .k = x->k, .a_step = x->a_column};
    bel_product_set_rows(&block, x->a, x->a_row, x->y_row);
    int64_t j = 0;
    for (; j + block.columns <= x->n; j += block.columns) {
        block.b = x->b + j * x->b_column;
        set_start(&p, 0, j, &block);
        block.c = x->y + j;
        p.kernels->run_turned(&block, x->b_column);
    }
    return j;
}

// Multiplies one row by a b that comes from memory, some rows of b at a time.
static void run_far(const bel_product *x)
{
    part p = {.product = x, .kernels = bel_product_kernels_get()};
    bel_product_block block = {
        .columns = x->n, .a_step = x->a_column, .b_step = x->b_row, .c = x->y};
    for (; p.first_k < x->k; p.first_k += block.k) {
        block.k = bel_smaller(BEL_PRODUCT_STREAMS, x->k - p.first_k);
        block.a[0] = x->a + p.first_k * x->a_column;
        block.b = x->b + p.first_k * x->b_row;
        set_start(&p, 0, 0, &block);
        p.kernels->run_far(&block);
    }
}

static int64_t whole_lanes(int64_t columns)
{
    return (columns + LANES - 1) / LANES * LANES;
}

static void run_blocks(const bel_product *x, float *a, float *b)
{
    part p = {.product = x, .kernels = bel_product_kernels_get(), .a = a, .b = b};
    const int64_t *rows_most = p.kernels->rows_most;
    // Narrower with fewer columns; wider if there are so few rows that it fits the registers.
    bool packed = x->packed != NULL;
    p.units = bel_product_units(packed ? x->packed_n : x->n, p.kernels->width);
    while (!packed && 2 * p.units <= BEL_PRODUCT_UNITS && x->m <= rows_most[2 * p.units] &&
           p.units * LANES < x->n)
        p.units *= 2;
    p.height = rows_most[p.units];
    // Packing pays if the packed data is read again.
    p.packs_a = x->n > PACKED_COLUMNS;
    p.packs_b = !packed && (x->b_column != 1 || x->m > PACKED_ROWS);
    bool few = !packed && x->m <= FEW_ROWS;
    int64_t width = p.units * LANES, depth = depth_of(x->k, few ? FEW_DEPTH : DEPTH);
    for (p.first_k = 0; p.first_k < x->k; p.first_k += depth) {
        p.k = bel_smaller(depth, x->k - p.first_k);
        if (packed) p.packed = x->packed + p.first_k * whole_lanes(x->packed_n);
        int64_t columns = few ? width : p.kernels->b_floats / p.k / width * width;
        for (int64_t j = 0; j < x->n; j += columns)
            run_columns(&p, j, bel_smaller(columns, x->n - j));
    }
}

int64_t bel_product_packed_floats(int64_t n, int64_t k)
{
    return whole_lanes(n) * k;
}

// Packs the parts of the chains one after another, in the order of run_columns.
void bel_product_pack(const bel_product *b, int64_t index, float *packed)
{
    part p = {.product = b, .kernels = bel_product_kernels_get()};
    int64_t first = index * BEL_PRODUCT_PACK_COLUMNS, depth = depth_of(b->k, DEPTH);
    p.units = bel_product_units(b->n, p.kernels->width);
    for (p.first_k = 0; p.first_k < b->k; p.first_k += depth) {
        p.k = bel_smaller(depth, b->k - p.first_k);
        p.b = packed + p.first_k * whole_lanes(b->n) + first * p.k;
        pack_b(&p, first, bel_smaller(BEL_PRODUCT_PACK_COLUMNS, b->n - first));
    }
}

bool bel_product_packs(int64_t m, int64_t n, bool b_is_turned)
{
    return n > BEL_PRODUCT_LANES && m > (b_is_turned ? BEL_PRODUCT_TURNED_ROWS : PACKED_ROWS);
}

// Few rows on a transposed b use run_turned.
static void product_run(bel_product x, float *a, float *b)
{
    if (x.m <= BEL_PRODUCT_TURNED_ROWS && x.b_column != 1 && x.packed == NULL) {
        int64_t done = run_turned(&x);
        x.n -= done;
        x.b += done * x.b_column;
        x.y += done;
        if (x.start != NULL) x.start += done;
    }
    bool far = x.m == 1 && x.b_column == 1 && x.packed == NULL && x.k * x.n >= FAR_FLOATS;
    if (far) {
        run_far(&x);
    } else if (x.n > 0) {
        run_blocks(&x, a, b);
    }
}

// With few columns most lanes would be empty. Here rows of y are lanes, and some of them at a time
// are computed as columns of its transpose, start T + bT · aT.
static void run_transposed(const bel_product *x, float *a, float *b)
{
    enum { CHUNK = 256 };
    _Alignas(64) float turned[LANES * CHUNK], rows[CHUNK * LANES];
    const bel_product_kernels *kernels = bel_product_kernels_get();
    for (int64_t i = 0; i < x->m; i += CHUNK) {
        int64_t count = bel_smaller(CHUNK, x->m - i);
        for (int64_t l = 0; l < count && x->start != NULL; l++)
            for (int64_t j = 0; j < x->n; j++)
                turned[j * CHUNK + l] = x->start[(x->start_is_row ? 0 : (i + l) * x->y_row) + j];
        bel_product y = {.m = x->n,
                         .n = count,
                         .k = x->k,
                         .a = x->b,
                         .a_row = x->b_column,
                         .a_column = x->b_row,
                         .b = x->a + i * x->a_row,
                         .b_row = x->a_column,
                         .b_column = x->a_row,
                         .start = x->start == NULL ? NULL : turned,
                         .y = turned,
                         .y_row = CHUNK};
        product_run(y, a, b);
        kernels->transpose(turned, CHUNK, LANES, count, rows, LANES);
        kernels->copy(rows, LANES, count, x->n, x->y + i * x->y_row, x->y_row);
    }
}

// Without products the start values are the result.
static void copy_start(const bel_product *x)
{
    for (int64_t i = 0; i < x->m; i++)
        for (int64_t j = 0; j < x->n; j++)
            x->y[i * x->y_row + j] =
                x->start == NULL ? 0.0f : x->start[(x->start_is_row ? 0 : i * x->y_row) + j];
}

void bel_product_run(const bel_product *product)
{
    // If rows of y are adjacent in a, so that only the result must be transposed, and a block has
    // several units: then a lane without a column costs most.
    enum { FEW_COLUMNS = 12 };
    _Alignas(64) float a[A_FLOATS], b[BEL_PRODUCT_B_FLOATS];
    bool wide = product->a_row == 1 && bel_product_kernels_get()->width > 1;
    int64_t few = wide ? FEW_COLUMNS : BEL_PRODUCT_TURNED_ROWS;
    if (product->m == 0 || product->n == 0) return;
    if (product->k == 0) {
        copy_start(product);
    } else if (product->n <= few && product->m > product->n) {
        run_transposed(product, a, b);
    } else {
        product_run(*product, a, b);
    }
}
