// Sums of products in f32 with fused multiply-adds: matrix products, and the inner kernel of
// convolutions and recurrent layers.
//
// An element's sum is one chain: it begins with the start value and adds one product after another
// in a fixed order. Its bits therefore depend neither on tiles and blocks nor on the
// instruction-set level, unlike those of a BLAS library, whose kernels depend on the processor.
// bench/README.md compares it with OpenBLAS.
#ifndef BELFRY_OPS_KERNELS_PRODUCT_H
#define BELFRY_OPS_KERNELS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/isa_levels.h"

static inline int64_t bel_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// --- Matrices ------------------------------------------------------------------------------------

// y [m, n] = start [m, n] + a [m, k] · b [k, n]. Element (i, j) of a is at a[i · a_row + j ·
// a_column]; the same for b. One of the two steps is 1.
typedef struct bel_product {
    int64_t m, n, k;
    const float *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    const float *start; // NULL: zeros; may be y
    bool start_is_row;  // one row for all; else its rows are also y_row apart
    float *y;
    int64_t y_row;
    // b, or more columns including it, already packed; NULL: not packed. It has `packed_n` columns,
    // and b begins at column `packed_column`, a multiple of BEL_PRODUCT_PACK_COLUMNS. b also ends
    // at such a multiple, or with the last column.
    const float *packed;
    int64_t packed_n, packed_column;
} bel_product;

// Runs on this thread; uses 600 KB of its stack and allocates nothing.
void bel_product_run(const bel_product *product);

// Packs BEL_PRODUCT_PACK_COLUMNS columns of b [k, n], from index · BEL_PRODUCT_PACK_COLUMNS on, to
// their place in `packed`, which has room for bel_product_packed_floats(n, k). Only for this
// process: the order is that of its kernels. If b is used often, pack it once; the bits are the
// same.
enum { BEL_PRODUCT_PACK_COLUMNS = 64 };
int64_t bel_product_packed_floats(int64_t n, int64_t k);
void bel_product_pack(const bel_product *b, int64_t index, float *packed);

// Returns true if bel_product_run would pack such a b in every run.
bool bel_product_packs(int64_t m, int64_t n, bool b_is_turned);

typedef void bel_product_fn(const bel_product *product);

// A small library (cmake/small.cmake) must not mention it, as it is opened at run time.
#if defined(BEL_SMALL)
#define BEL_HAS_OPENBLAS false
#else
#define BEL_HAS_OPENBLAS true
#endif

// The same by OpenBLAS (base/openblas.h, which must be open): other bits, which depend on its
// version and core type. Its sizes are ints.
void bel_product_run_openblas(const bel_product *product);
bool bel_product_fits_openblas(int64_t m, int64_t n, int64_t k);

// --- Blocks --------------------------------------------------------------------------------------

// Columns form units of LANES. A block has 1, 2, 4 or 8 units, of which the last may have fewer
// columns.
enum {
    BEL_PRODUCT_LANES = 16,
    BEL_PRODUCT_UNITS = 8,
    BEL_PRODUCT_COLUMNS = BEL_PRODUCT_UNITS * BEL_PRODUCT_LANES,
    BEL_PRODUCT_ROWS = 16, // maximal rows of a block at any level
    BEL_PRODUCT_PAIRS = BEL_PRODUCT_ROWS / 2,
    BEL_PRODUCT_B_FLOATS = 1 << 17, // maximal size of packed panels at any level
    BEL_PRODUCT_STREAMS = 16,       // rows of b that are read side by side from memory
    BEL_PRODUCT_TURNED_ROWS = 4,
    BEL_PRODUCT_TURNED_COLUMNS = BEL_PRODUCT_LANES
};

typedef struct bel_product_segment { // part of a sum; in floats from block.a[r] and block.b
    int64_t a, b;
} bel_product_segment;

// c[row r + j] = start[row r + j] + sum over segments s and i < k of
//     row_r[s.a + i · a_step] · b[s.b + i · b_step + j]        for j < columns
// Rows 2 i and 2 i + 1 of c and start begin at c_rows[i] and c_row later. Either a_step is 1, and
// rows 2 i and 2 i + 1 of a begin at a[i] and a_row later. Or a_step differs and a_row is 1: row r
// begins at a[0] + r. A kernel thus needs half as many addresses as rows, which fit the general
// registers of every processor.
typedef struct bel_product_block {
    int64_t rows;    // 1 … rows_most of these units
    int64_t columns; // in a number of units that the level has
    const float *a[BEL_PRODUCT_PAIRS], *b;
    int64_t a_row, c_row, c_rows[BEL_PRODUCT_PAIRS];
    const bel_product_segment *segments;
    int64_t segment_count, k, a_step, b_step;
    const float *start; // NULL: zeros; may be c
    bool start_is_row;  // the same for all rows: start[j]
    float *c;
} bel_product_block;

// y [m, n] = a [m, k] · b [k, n], with contiguous rows, added to `bias` [n] (NULL: zeros), and with
// `relu` max(y, 0). The sum of each element is (c0 + c1) + (c2 + c3) with products i, i + 4, … in
// chain i, and the bias first in chain 0.
typedef struct bel_product_few {
    int64_t m, n, k;
    const float *a, *b, *bias;
    bool relu;
    float *y;
} bel_product_few;

typedef struct bel_product_kernels {
    int64_t width;                            // units of a block of many rows: 1 or 4
    int64_t b_floats;                         // limit for the second-level cache
    int64_t rows_most[BEL_PRODUCT_UNITS + 1]; // by units: rows that fit the registers; 0:
                                              // unsupported
    void (*run)(const bel_product_block *block);
    // The same for blocks of at most BEL_PRODUCT_TURNED_ROWS rows and 16 columns with a transposed
    // b: column j at b[i + j · lane_step]; one segment.
    void (*run_turned)(const bel_product_block *block, int64_t lane_step);
    // The same for one row, any number of columns, one segment and at most BEL_PRODUCT_STREAMS
    // products: for a b that comes from memory. Uses neither rows nor segments of the block.
    void (*run_far)(const bel_product_block *block);
    void (*run_few)(const bel_product_few *few);
    // to[i · to_step + j] = from[i · step + j] for i < k and j < columns.
    void (*copy)(const float *from, int64_t step, int64_t k, int64_t columns, float *to,
                 int64_t to_step);
    // Transposes: to[i · to_step + l] = from[l · step + i] for i < k.
    void (*transpose)(const float *from, int64_t step, int64_t rows, int64_t k, float *to,
                      int64_t to_step);
} bel_product_kernels;

BEL_ISA_LEVELS(BEL_ISA_DECLARE, bel_product_kernels)

// Sets rows `step` apart in a and c_step apart in c. If a_step is not 1, `step` is.
static inline void bel_product_set_rows(bel_product_block *block, const float *a, int64_t step,
                                        int64_t c_step)
{
    block->a_row = step;
    block->c_row = c_step;
    for (int64_t i = 0; 2 * i < block->rows; i++) {
        block->a[i] = a + 2 * i * step;
        block->c_rows[i] = 2 * i * c_step;
    }
}

// Returns the table of bel_isa_get().
const bel_product_kernels *bel_product_kernels_get(void);

// Returns the units of the next block of a row when `columns` are left, at most `most`, a power of
// two.
static inline int64_t bel_product_units(int64_t columns, int64_t most)
{
    int64_t left = (columns + BEL_PRODUCT_LANES - 1) / BEL_PRODUCT_LANES;
    while (most > left)
        most /= 2;
    return most;
}

// Returns the rows of the next block when `left` are left: the last two blocks share the rest.
static inline int64_t bel_product_rows(int64_t left, int64_t most)
{
    if (left >= 2 * most || left == most) return most;
    return left > most ? (left + 1) / 2 : left;
}

#endif
