// Blocks of sums of products, compiled once per instruction-set level with BEL_LEVEL. Every level
// computes fused multiply-adds in the same order, so all give the same bits. lanes.h abstracts
// their differences.
#include "ops/kernels/product.h"

#include <stdbool.h>

#include "ops/kernels/lanes.h"

// Separately packed parts of b have full panels.
_Static_assert(BEL_PRODUCT_PACK_COLUMNS % (LANES_WIDTH * LANES) == 0, "panels");

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)

// row(0, units) … row(n - 1, units), and sum(r, 0) … sum(r, units - 1).
#define EACH_1(row, units) row(0, units)
#define EACH_2(row, units) EACH_1(row, units) row(1, units)
#define EACH_3(row, units) EACH_2(row, units) row(2, units)
#define EACH_4(row, units) EACH_3(row, units) row(3, units)
#define EACH_5(row, units) EACH_4(row, units) row(4, units)
#define EACH_6(row, units) EACH_5(row, units) row(5, units)
#define EACH_7(row, units) EACH_6(row, units) row(6, units)
#define EACH_8(row, units) EACH_7(row, units) row(7, units)
#define EACH_9(row, units) EACH_8(row, units) row(8, units)
#define EACH_10(row, units) EACH_9(row, units) row(9, units)
#define EACH_11(row, units) EACH_10(row, units) row(10, units)
#define EACH_12(row, units) EACH_11(row, units) row(11, units)
#define EACH_13(row, units) EACH_12(row, units) row(12, units)
#define EACH_14(row, units) EACH_13(row, units) row(13, units)
#define EACH_15(row, units) EACH_14(row, units) row(14, units)
#define EACH_16(row, units) EACH_15(row, units) row(15, units)
#define UNITS_1(sum, r) sum(r, 0)
#define UNITS_2(sum, r) UNITS_1(sum, r) sum(r, 1)
#define UNITS_4(sum, r) UNITS_2(sum, r) sum(r, 2) sum(r, 3)
#define UNITS_8(sum, r) UNITS_4(sum, r) sum(r, 4) sum(r, 5) sum(r, 6) sum(r, 7)

// The last unit of a row has `last` columns if the block is partial.
#define LOAD(u, p) (u == most && partial ? lanes_load_some(p, last) : lanes_load(p))

// Rows of a form pairs: an address for each row would not fit the general registers, and compilers
// would keep a separate one for each predictable sum of address and step. The empty assembly hides
// such sums. Compilers must not move addresses to vector registers: such a move waits for an
// arithmetic unit, and those are busy with the products of the previous block.
#define POINT(r, units)                                                                            \
    if (r % 2 == 0) a[r / 2] = t->a[r / 2];
#define JUMP(r, units)                                                                             \
    if (r % 2 == 0) a[r / 2] += jump;
#define HOLD(r, units)                                                                             \
    if (r % 2 == 0) __asm__("" : "+r"(a[r / 2]));
#define MOVE_1(r, units)                                                                           \
    if (r % 2 == 0) a[r / 2] += 1;
#define MOVE_4(r, units)                                                                           \
    if (r % 2 == 0) a[r / 2] += 4;
// Rows of c form pairs, too.
#define ROW_OF_C(r) (t->c_rows[r / 2] + r % 2 * c_row)
#define NEW_SUM(r, u) lanes sum_##r##_##u;
#define NEW(r, units) UNITS_##units(NEW_SUM, r)
#define LOAD_START(r, u) lanes start_##u = LOAD(u, start + u * LANES);
#define START_SAME_SUM(r, u) sum_##r##_##u = start_##u;
#define START_SAME(r, units) UNITS_##units(START_SAME_SUM, r)
#define START_SUM(r, u) sum_##r##_##u = LOAD(u, start + ROW_OF_C(r) + u * LANES);
#define START(r, units) UNITS_##units(START_SUM, r)
#define LOAD_B(r, u) lanes b_##u = LOAD(u, b + u * LANES);
#define ADD_SUM(r, u) sum_##r##_##u = lanes_add_product(x, b_##u, sum_##r##_##u);
#define ADD_ALONG(r, units)                                                                        \
    {                                                                                              \
        number x = number_load(a[r / 2] + r % 2 * a_row + now);                                    \
        UNITS_##units(ADD_SUM, r)                                                                  \
    }
#define ADD_ACROSS(r, units)                                                                       \
    {                                                                                              \
        number x = number_load(a[0] + r);                                                          \
        UNITS_##units(ADD_SUM, r)                                                                  \
    }
#define FETCH_SUM(r, u) __builtin_prefetch(t->c + ROW_OF_C(r) + u * LANES, 1);
#define FETCH(r, units) UNITS_##units(FETCH_SUM, r)
#define STORE_SUM(r, u)                                                                            \
    if (u == most && partial) {                                                                    \
        lanes_store_some(t->c + ROW_OF_C(r) + u * LANES, sum_##r##_##u, last);                     \
    } else {                                                                                       \
        lanes_store(t->c + ROW_OF_C(r) + u * LANES, sum_##r##_##u);                                \
    }
#define STORE(r, units) UNITS_##units(STORE_SUM, r)

// Begins the sums. c is prefetched unless they begin as its values.
#define BEGIN(rows, units)                                                                         \
    const float *start = t->start == NULL ? zeros : t->start;                                      \
    int64_t c_row = t->c_row;                                                                      \
    EACH_##rows(NEW, units);                                                                       \
    if (t->start == NULL || t->start_is_row) {                                                     \
        UNITS_##units(LOAD_START, 0);                                                              \
        EACH_##rows(FETCH, units);                                                                 \
        EACH_##rows(START_SAME, units);                                                            \
    } else {                                                                                       \
        EACH_##rows(START, units);                                                                 \
    }

// Adds one product to each sum: the next but `next` along rows of a, or the next row's if a is
// traversed across its rows.
#define STEP_ALONG(next, rows, units)                                                              \
    {                                                                                              \
        enum { now = next };                                                                       \
        UNITS_##units(LOAD_B, 0);                                                                  \
        EACH_##rows(ADD_ALONG, units);                                                             \
        b += t->b_step;                                                                            \
        __asm__("" : "+r"(b));                                                                     \
    }
#define STEP_ACROSS(rows, units)                                                                   \
    {                                                                                              \
        UNITS_##units(LOAD_B, 0);                                                                  \
        EACH_##rows(ADD_ACROSS, units);                                                            \
        a[0] += t->a_step, b += t->b_step;                                                         \
        __asm__("" : "+r"(a[0]));                                                                  \
    }

_Static_assert((int)LANES_CACHED <= (int)BEL_PRODUCT_B_FLOATS, "panels of b have no more room");

static const float zeros[BEL_PRODUCT_COLUMNS];

// Sums are variables, not an array: compilers then keep them in registers.
#define SUM(rows, units)                                                                           \
    static inline __attribute__((always_inline)) void sum_##rows##_##units(                        \
        const bel_product_block *t, bool along, bool partial)                                      \
    {                                                                                              \
        enum { most = units - 1 };                                                                 \
        int64_t last = t->columns - most * LANES;                                                  \
        BEGIN(rows, units)                                                                         \
        const float *a[BEL_PRODUCT_PAIRS];                                                         \
        int64_t a_row = t->a_row, at = 0; /* how far the rows of a have moved */                   \
        EACH_##rows(POINT, units);                                                                 \
        for (int64_t s = 0; s < t->segment_count; s++) {                                           \
            int64_t jump = t->segments[s].a - at;                                                  \
            EACH_##rows(JUMP, units);                                                              \
            at = t->segments[s].a + t->k * t->a_step;                                              \
            const float *b = t->b + t->segments[s].b;                                              \
            int64_t left = t->k;                                                                   \
            if (!along) { /* four at a time: the loop itself then costs nothing */                 \
                for (; left >= 4; left -= 4) {                                                     \
                    STEP_ACROSS(rows, units)                                                       \
                    STEP_ACROSS(rows, units)                                                       \
                    STEP_ACROSS(rows, units)                                                       \
                    STEP_ACROSS(rows, units)                                                       \
                }                                                                                  \
                for (; left > 0; left--)                                                           \
                    STEP_ACROSS(rows, units)                                                       \
                continue;                                                                          \
            }                                                                                      \
            for (; left >= 4; left -= 4) {                                                         \
                EACH_##rows(HOLD, units);                                                          \
                __asm__("" : "+r"(a_row));                                                         \
                STEP_ALONG(0, rows, units)                                                         \
                STEP_ALONG(1, rows, units)                                                         \
                STEP_ALONG(2, rows, units)                                                         \
                STEP_ALONG(3, rows, units)                                                         \
                EACH_##rows(MOVE_4, units);                                                        \
            }                                                                                      \
            for (; left > 0; left--) {                                                             \
                EACH_##rows(HOLD, units);                                                          \
                __asm__("" : "+r"(a_row));                                                         \
                STEP_ALONG(0, rows, units)                                                         \
                EACH_##rows(MOVE_1, units);                                                        \
            }                                                                                      \
        }                                                                                          \
        __asm__("" : "+r"(t)); /* hides rows of c, too */                                          \
        c_row = t->c_row;                                                                          \
        EACH_##rows(STORE, units);                                                                 \
    }                                                                                              \
    static void whole_##rows##_##units(const bel_product_block *t)                                 \
    {                                                                                              \
        if (t->a_step == 1) {                                                                      \
            sum_##rows##_##units(t, true, false);                                                  \
        } else {                                                                                   \
            sum_##rows##_##units(t, false, false);                                                 \
        }                                                                                          \
    }                                                                                              \
    static void partial_##rows##_##units(const bel_product_block *t)                               \
    {                                                                                              \
        if (t->a_step == 1) {                                                                      \
            sum_##rows##_##units(t, true, true);                                                   \
        } else {                                                                                   \
            sum_##rows##_##units(t, false, true);                                                  \
        }                                                                                          \
    }
LANES_TILES(SUM)

typedef void sum_fn(const bel_product_block *block);

// Dispatches by units and rows: each combination has a function, whose sums are registers.
static void product_run(const bel_product_block *block)
{
#define WHOLE(rows, units) [units][rows] = whole_##rows##_##units,
#define PARTIAL(rows, units) [units][rows] = partial_##rows##_##units,
    static sum_fn *const sums[2][BEL_PRODUCT_UNITS + 1][BEL_PRODUCT_ROWS + 1] = {
        {LANES_TILES(PARTIAL)}, {LANES_TILES(WHOLE)}};
    int64_t units = (block->columns + LANES - 1) / LANES;
    sums[block->columns % LANES == 0][units][block->rows](block);
}

// --- Packing -------------------------------------------------------------------------------------

static void product_copy(const float *from, int64_t step, int64_t k, int64_t columns, float *to,
                         int64_t to_step)
{
    for (; k > 0; k--, from += step, to += to_step) {
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES)
            lanes_store(to + j, lanes_load(from + j));
        if (j < columns)
            lanes_store_some(to + j, lanes_load_some(from + j, columns - j), columns - j);
    }
}

// The colors of an image; with a constant number of rows, compilers use vectors.
static void interleave_three(const float *restrict from, int64_t step, int64_t k,
                             float *restrict to)
{
    for (int64_t i = 0; i < k; i++)
        for (int l = 0; l < 3; l++)
            to[3 * i + l] = from[l * step + i];
}

static void product_transpose(const float *from, int64_t step, int64_t rows, int64_t k, float *to,
                              int64_t to_step)
{
    if (rows == 3 && to_step == 3) {
        interleave_three(from, step, k, to);
        return;
    }
    int64_t whole_rows = rows - rows % LANES, whole_k = k - k % LANES_TURNED;
    for (int64_t l = 0; l < whole_rows; l += LANES) {
        for (int64_t i = 0; i < whole_k; i += LANES_TURNED) {
            lanes out[LANES_TURNED];
            lanes_turn(from + l * step + i, step, out);
            for (int n = 0; n < LANES_TURNED; n++)
                lanes_store(to + (i + n) * to_step + l, out[n]);
        }
    }
    for (int64_t l = 0; l < rows; l++)
        for (int64_t i = l < whole_rows ? whole_k : 0; i < k; i++)
            to[i * to_step + l] = from[l * step + i];
}

// --- Transposed b --------------------------------------------------------------------------------

#define ADD_TURNED(r, units)                                                                       \
    sum_##r##_0 =                                                                                  \
        lanes_add_product(number_load(a_##r + at + n * t->a_step), turned[n], sum_##r##_0);
#define POINT_ROW(r, units) const float *a_##r = t->a[r / 2] + r % 2 * t->a_row;
#define ADD_ROW(r, units)                                                                          \
    {                                                                                              \
        number x = number_load(a_##r + at);                                                        \
        UNITS_##units(ADD_SUM, r)                                                                  \
    }

#define TURN(rows)                                                                                 \
    static void turned_##rows(const bel_product_block *t, int64_t lane_step)                       \
    {                                                                                              \
        enum { most = 0, partial = false, last = 0 };                                              \
        const float *b = t->b;                                                                     \
        int64_t at = 0, left = t->k;                                                               \
        BEGIN(rows, 1)                                                                             \
        EACH_##rows(POINT_ROW, 1);                                                                 \
        for (; left >= LANES_TURNED; left -= LANES_TURNED, b += LANES_TURNED) {                    \
            lanes turned[LANES_TURNED];                                                            \
            lanes_turn(b, lane_step, turned);                                                      \
            for (int64_t n = 0; n < LANES_TURNED; n++) {                                           \
                EACH_##rows(ADD_TURNED, 1)                                                         \
            }                                                                                      \
            at += LANES_TURNED * t->a_step;                                                        \
        }                                                                                          \
        for (; left > 0; left--, b++, at += t->a_step) {                                           \
            float column[LANES];                                                                   \
            for (int l = 0; l < LANES; l++)                                                        \
                column[l] = b[l * lane_step];                                                      \
            lanes b_0 = lanes_load(column);                                                        \
            EACH_##rows(ADD_ROW, 1);                                                               \
        }                                                                                          \
        EACH_##rows(STORE, 1);                                                                     \
    }
TURN(1)
TURN(2)
TURN(3)
TURN(4)

static void run_turned(const bel_product_block *block, int64_t lane_step)
{
    static void (*const sums[])(const bel_product_block *, int64_t) = {NULL, turned_1, turned_2,
                                                                       turned_3, turned_4};
    sums[block->rows](block, lane_step);
}

// --- One row -------------------------------------------------------------------------------------

#define ADD_FAR(r, units)                                                                          \
    sum = lanes_add_product(number_load(a + r * t->a_step), lanes_load(b + r * b_step), sum);

// A unit at a time, so that each row of b is one stream for the processor's prefetcher.
static void run_far(const bel_product_block *t)
{
    const float *a = t->a[0], *start = t->start == NULL ? zeros : t->start;
    int64_t b_step = t->b_step, j = 0;
    for (; j + LANES <= t->columns; j += LANES, start += t->start == NULL ? 0 : LANES) {
        const float *b = t->b + j;
        lanes sum = lanes_load(start);
        if (t->k == BEL_PRODUCT_STREAMS) {
            EACH_16(ADD_FAR, 1)
        } else {
            for (int64_t i = 0; i < t->k; i++)
                ADD_FAR(i, 1)
        }
        lanes_store(t->c + j, sum);
    }
    if (j == t->columns) return;
    lanes sum = lanes_load_some(start, t->columns - j);
    for (int64_t i = 0; i < t->k; i++)
        sum = lanes_add_product(number_load(a + i * t->a_step),
                                lanes_load_some(t->b + i * b_step + j, t->columns - j), sum);
    lanes_store_some(t->c + j, sum, t->columns - j);
}

// --- Few rows ------------------------------------------------------------------------------------

// One or two units of a row: chains of 16 or 32 columns are independent, so they keep the
// arithmetic units busy. `partial`: the only unit has fewer columns.
#define FEW_START(u)                                                                               \
    lanes sum_0_##u = zero, sum_1_##u = zero, sum_2_##u = zero, sum_3_##u = zero;                  \
    if (f->bias != NULL) sum_0_##u = LOAD(u, f->bias + j + u * LANES);
#define FEW_ADD(u, c) sum_##c##_##u = lanes_add_product(x, LOAD(u, b + u * LANES), sum_##c##_##u);
#define FEW_STEP(c)                                                                                \
    {                                                                                              \
        number x = number_load(a + p + c);                                                         \
        FEW_UNITS(FEW_ADD, c)                                                                      \
        b += f->n;                                                                                 \
    }
#define FEW_END(u)                                                                                 \
    sum_0_##u = lanes_add_product(one, sum_0_##u, sum_1_##u);                                      \
    sum_2_##u = lanes_add_product(one, sum_2_##u, sum_3_##u);                                      \
    sum_0_##u = lanes_add_product(one, sum_0_##u, sum_2_##u);                                      \
    if (f->relu) sum_0_##u = lanes_relu(sum_0_##u);                                                \
    if (u == most && partial) {                                                                    \
        lanes_store_some(y + u * LANES, sum_0_##u, last);                                          \
    } else {                                                                                       \
        lanes_store(y + u * LANES, sum_0_##u);                                                     \
    }
#define FEW_BODY                                                                                   \
    const float unit = 1;                                                                          \
    const number one = number_load(&unit);                                                         \
    const lanes zero = lanes_load(zeros);                                                          \
    const float *b = f->b + j;                                                                     \
    int64_t p = 0;

static inline __attribute__((always_inline)) void few_one(const bel_product_few *f, const float *a,
                                                          int64_t j, float *y, bool partial)
{
#define FEW_UNITS(add, c) add(0, c)
    enum { most = 0 };
    int64_t last = f->n - j;
    FEW_BODY
    FEW_START(0)
    for (; p + 4 <= f->k; p += 4) {
        FEW_STEP(0) FEW_STEP(1) FEW_STEP(2) FEW_STEP(3)
    }
    if (p < f->k) FEW_STEP(0)
    if (p + 1 < f->k) FEW_STEP(1)
    if (p + 2 < f->k) FEW_STEP(2)
    FEW_END(0)
#undef FEW_UNITS
}

static inline __attribute__((always_inline)) void few_two(const bel_product_few *f, const float *a,
                                                          int64_t j, float *y)
{
#define FEW_UNITS(add, c) add(0, c) add(1, c)
    enum { most = 1, partial = 0, last = 0 };
    FEW_BODY
    FEW_START(0)
    FEW_START(1)
    for (; p + 4 <= f->k; p += 4) {
        FEW_STEP(0) FEW_STEP(1) FEW_STEP(2) FEW_STEP(3)
    }
    if (p < f->k) FEW_STEP(0)
    if (p + 1 < f->k) FEW_STEP(1)
    if (p + 2 < f->k) FEW_STEP(2)
    FEW_END(0)
    FEW_END(1)
#undef FEW_UNITS
}

static void run_few(const bel_product_few *f)
{
    const float *a = f->a;
    float *y = f->y;
    for (int64_t i = 0; i < f->m; i++, a += f->k, y += f->n) {
        int64_t j = 0;
        for (; j + 2 * LANES <= f->n; j += 2 * LANES)
            few_two(f, a, j, y + j);
        for (; j + LANES <= f->n; j += LANES)
            few_one(f, a, j, y + j, false);
        if (j < f->n) few_one(f, a, j, y + j, true);
    }
}

const bel_product_kernels JOIN(bel_product_kernels_, BEL_LEVEL) = {.width = LANES_WIDTH,
                                                                   .b_floats = LANES_CACHED,
                                                                   .rows_most = LANES_ROWS,
                                                                   .run = product_run,
                                                                   .run_turned = run_turned,
                                                                   .run_far = run_far,
                                                                   .run_few = run_few,
                                                                   .copy = product_copy,
                                                                   .transpose = product_transpose};
