// Tests of the instruction-set levels. Every vector kernel gives the same bits at all of them, and
// an element's bits do not depend on the begin or length of its range. Levels that this processor
// lacks are left out.
#include <math.h>
#include <stdlib.h>

#include "base/isa.h"
#include "ops/kernels/cpu.h"
#include "ops/kernels/product.h"
#include "ops/kernels/recurrent.h"
#include "ops/kernels/row_norm.h"
#include "ops/kernels/winograd.h"
#include "optim/rule.h"
#include "support/bel_test.h"

enum { LENGTHS = 70, OFFSETS = 64, SIZE = LENGTHS + OFFSETS, GUARD = 16 };

static const bel_cpu_kernels *const kernels[] = {BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_cpu_kernels)};
static const bel_rule_kernels *const rules[] = {BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_rule_kernels)};
static const bel_product_kernels *const products[] = {
    BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_product_kernels)};
static const bel_recurrent_kernels *const recurrents[] = {
    BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_recurrent_kernels)};
static const bel_row_norm_kernels *const row_norms[] = {
    BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_row_norm_kernels)};
static int level_count; // the processor's

typedef struct vectors {
    float a[SIZE], b[SIZE];
} vectors;

// Ordinary numbers of both signs, with every tenth a special one.
static void fill(vectors *v)
{
    static const float special[] = {0.0f,   -0.0f,    1e-40f,  -1e-40f, 1e30f,
                                    -1e30f, INFINITY, -100.0f, 88.5f,   1.0f};
    for (int i = 0; i < SIZE; i++) {
        v->a[i] = (float)(i * 7919 % 2003) / 400.0f - 2.4f;
        v->b[i] = (float)(i * 6271 % 1999) / 1999.0f + 0.01f;
        if (i % 10 == 3) v->a[i] = special[i / 10 % 10];
    }
}

static bool same_bits(float p, float q)
{
    return (isnan(p) && isnan(q)) || memcmp(&p, &q, sizeof p) == 0;
}

// Checks that `got` has the n `expected` elements and then an untouched guard.
static void check_range(const char *what, int number, int level, const float *got,
                        const float *expected, int n)
{
    for (int i = 0; i < n + GUARD; i++) {
        float want = i < n ? expected[i] : -77.0f;
        if (same_bits(got[i], want)) continue;
        fail_msg("%s %d at level %s, length %d, element %d: got %a, expected %a", what, number,
                 bel_isa_name((bel_isa)level), n, i, (double)got[i], (double)want);
    }
}

static void set_guard(float *out)
{
    for (int i = 0; i < SIZE + GUARD; i++)
        out[i] = -77.0f;
}

// --- Element by element --------------------------------------------------------------------------

// Runs a kernel for [offset, offset + n) of the inputs.
typedef void range_fn(int level, int number, const vectors *v, int offset, int n, float *out);

static void run_binary(int level, int number, const vectors *v, int offset, int n, float *out)
{
    kernels[level]->binary[number](v->a + offset, v->b + offset, out, n);
}

static void run_binary_scalar(int level, int number, const vectors *v, int offset, int n,
                              float *out)
{
    kernels[level]->binary_scalar[number](v->a + offset, v->b, out, n);
}

static void run_scalar_binary(int level, int number, const vectors *v, int offset, int n,
                              float *out)
{
    kernels[level]->scalar_binary[number](v->a, v->b + offset, out, n);
}

static void run_unary(int level, int number, const vectors *v, int offset, int n, float *out)
{
    kernels[level]->unary[number](v->a + offset, out, n);
}

static void run_curve(int level, int number, const vectors *v, int offset, int n, float *out)
{
    kernels[level]->curve[number](v->a + offset, 0.25f, 0.75f, out, n);
}

static void run_curve_grad(int level, int number, const vectors *v, int offset, int n, float *out)
{
    kernels[level]->curve_grad[number](v->b + offset, v->a + offset, 0.25f, 0.75f, out, n);
}

static void run_masked_scale(int level, int number, const vectors *v, int offset, int n, float *out)
{
    (void)number;
    uint8_t kept[SIZE];
    for (int i = 0; i < SIZE; i++)
        kept[i] = i % 3 != 0;
    kernels[level]->masked_scale(v->a + offset, kept + offset, 1.25f, out, n);
}

// Three rows, 11 elements apart.
static void run_sum_rows(int level, int number, const vectors *v, int offset, int n, float *out)
{
    (void)number;
    float rows[SIZE + 22];
    for (int i = 0; i < SIZE + 22; i++)
        rows[i] = v->b[i % SIZE];
    kernels[level]->sum_rows(rows + offset, 3, 11, out, n);
}

static void run_scale(int level, int number, const vectors *v, int offset, int n, float *out)
{
    rules[level]->scale(v->a + offset, 0.375f, number == 0 ? 0.0f : 0.5f, out, n);
}

static void run_average(int level, int number, const vectors *v, int offset, int n, float *out)
{
    (void)number;
    memcpy(out, v->b + offset, (size_t)n * sizeof *out);
    rules[level]->average(v->a + offset, 0.01f, out, n);
}

// Update rules: 0 sgd, 1 momentum, 2 nesterov, 3 adam, 4 adagrad, 5 to 8 rmsprop without and with
// momentum, then centered, 9 adamw, 10 ftrl, 11 ftrl with another power, 12 lamb, 13 lars, 14
// lamb's direction, 15 adadelta. A checksum of the slots is added to the values.
static void run_rule(int level, int number, const vectors *v, int offset, int n, float *out)
{
    bel_rule_step step = {.nesterov = number == 2,
                          .rate = 0.1f,
                          .momentum = 0.9f,
                          .beta1 = {true, 0.1f},
                          .beta2 = {number % 2 == 1, 0.001f},
                          .epsilon = 1e-8f,
                          .root = 3.0f,
                          .mean = 1.5f,
                          .decay = {true, 0.1f},
                          .centered = number >= 7,
                          .shrink = 0.99f,
                          .power = number == 10 ? 1u << 23 : 0xb00003u,
                          .l1 = 0.1f,
                          .twice_l2 = 0.2f,
                          .twice_shrinkage = 0.3f,
                          .weight_decay = 0.01f};
    if (number >= 5 && number < 9) step.momentum = number % 2 == 1 ? 0.0f : 0.9f;
    float m[SIZE], s[SIZE], t[SIZE];
    float *slots[] = {m + offset, s + offset, t + offset};
    memcpy(t, v->b, sizeof t);
    memcpy(m, v->b, sizeof m);
    memcpy(s, v->b, sizeof s);
    static const bel_optimizer_kind kind_of[] = {
        BEL_OPTIMIZER_SGD,     BEL_OPTIMIZER_MOMENTUM, BEL_OPTIMIZER_MOMENTUM,
        BEL_OPTIMIZER_ADAM,    BEL_OPTIMIZER_ADAGRAD,  BEL_OPTIMIZER_RMSPROP,
        BEL_OPTIMIZER_RMSPROP, BEL_OPTIMIZER_RMSPROP,  BEL_OPTIMIZER_RMSPROP,
        BEL_OPTIMIZER_ADAMW,   BEL_OPTIMIZER_FTRL,     BEL_OPTIMIZER_FTRL,
        BEL_OPTIMIZER_LAMB,    BEL_OPTIMIZER_LARS,     BEL_OPTIMIZER_LAMB,
        BEL_OPTIMIZER_ADADELTA};
    bel_rule_kernel *kernel =
        number == 14 ? rules[level]->prepare : rules[level]->apply[kind_of[number]];
    kernel(&step, v->a + offset, 0.75f, v->b + offset, out, slots, n);
    for (int i = 0; i < n; i++)
        out[i] += m[offset + i] * 0.5f + s[offset + i] * 0.25f + t[offset + i] * 0.125f;
}

// Rows of recurrent layers. Other outputs of a kernel are added to `out`.
static void run_recurrent(int level, int number, const vectors *v, int offset, int n, float *out)
{
    const bel_recurrent_kernels *table = recurrents[level];
    const float *a = v->a + offset, *b = v->b + offset;
    float more[4 * SIZE], other[SIZE];
    memcpy(out, b, (size_t)n * sizeof *out);
    memcpy(other, b, (size_t)n * sizeof *other);
    for (int i = 0; i < 4 * SIZE; i++)
        more[i] = v->b[(offset + i) % SIZE];
    switch (number) {
    case 0: table->add_product(out, a, b, n); break;
    case 1: table->gru_state(a, b, out, n); break;
    case 2: table->gru_grad(b, a, b, out, more, other, n); break;
    case 3: table->gru_reset_grad(a, b, b, out, more, n); break;
    case 4: table->lstm_cell(more, SIZE, out, n); break;
    default:
        table->lstm_grad(b, 0, b, a, b, out, more, SIZE, n);
        for (int i = 0; i < n; i++)
            out[i] += more[SIZE + i] + more[2 * SIZE + i] + more[3 * SIZE + i];
        break;
    }
    for (int i = 0; i < n; i++)
        out[i] += more[i] * 0.5f + other[i] * 0.25f;
}

static const struct {
    const char *name;
    range_fn *run;
    int count;
} elementwise[] = {
    {"binary", run_binary, BEL_CPU_BINARY_COUNT},
    {"binary_scalar", run_binary_scalar, BEL_CPU_BINARY_COUNT},
    {"scalar_binary", run_scalar_binary, BEL_CPU_BINARY_COUNT},
    {"unary", run_unary, BEL_CPU_UNARY_COUNT},
    {"curve", run_curve, BEL_CPU_CURVE_COUNT},
    {"curve gradient", run_curve_grad, BEL_CPU_CURVE_GRAD_COUNT},
    {"masked_scale", run_masked_scale, 1},
    {"sum_rows", run_sum_rows, 1},
    {"recurrent", run_recurrent, 6},
    {"rule scale", run_scale, 2},
    {"rule", run_rule, 16},
    {"rule average", run_average, 1},
};

static void test_elementwise(void **state)
{
    (void)state;
    static vectors v;
    static float whole[SIZE + GUARD], part[SIZE + GUARD];
    fill(&v);
    for (size_t k = 0; k < sizeof elementwise / sizeof elementwise[0]; k++) {
        for (int number = 0; number < elementwise[k].count; number++) {
            elementwise[k].run(0, number, &v, 0, SIZE, whole);
            for (int at = 0; at < level_count * OFFSETS * (LENGTHS + 1); at++) {
                int level = at % level_count, offset = at / level_count % OFFSETS;
                int n = at / level_count / OFFSETS;
                set_guard(part);
                elementwise[k].run(level, number, &v, offset, n, part);
                check_range(elementwise[k].name, number, level, part, whole + offset, n);
            }
        }
    }
}

// --- Few rows ------------------------------------------------------------------------------------

// One chain of sums for each element, from the bias on.
static void few_rows_plain(int n, int k, const float *a, const float *b, const float *bias,
                           float *y)
{
    for (int i = 0; i < 3 * n; i++) {
        y[i] = bias != NULL ? bias[i % n] : 0;
        for (int p = 0; p < k; p++)
            y[i] += a[i / n * k + p] * b[p * n + i % n];
    }
}

static void test_few_rows(void **state)
{
    (void)state;
    enum { K = 5, MOST = 110 };
    static vectors v;
    static float all[K * MOST], whole[3 * MOST + GUARD], got[3 * MOST + GUARD];
    fill(&v);
    for (int i = 0; i < K * MOST; i++)
        all[i] = v.b[i % SIZE];
    for (int n = 0; n <= MOST; n++) {
        const float *b = all + K * (MOST - n); // ends with the array: no kernel may read on
        for (int at = 0; at < 2 * level_count; at++) {
            const float *bias = at % 2 == 0 ? NULL : v.b + SIZE - n;
            int level = at / 2;
            few_rows_plain(n, K, v.a, b, bias, whole);
            for (int i = 0; i < 3 * MOST + GUARD; i++)
                got[i] = -77.0f;
            kernels[level]->few_rows(3, n, K, v.a, b, bias, got);
            check_range("few_rows", 0, level, got, whole, 3 * n);
        }
    }
}

// --- A complete row at a time --------------------------------------------------------------------

enum { KINDS = 11 };

static const bel_row_norm_map norm_map = {0.3f, 1.7f, 0.01f};

// Softmax and its relatives: kinds 0 to 3; then normalization and attention.
static void run_row(int level, int kind, const float *x, const float *y, float *out, int n)
{
    const bel_cpu_kernels *table = kernels[level];
    const bel_row_norm_kernels *norm = row_norms[level];
    float other[SIZE] = {0};
    switch (kind) {
    case 0: table->softmax(x, out, n); break;
    case 1: table->log_softmax(x, out, n); break;
    case 2: table->softmax_grad(x, y, out, n); break;
    case 3: table->log_softmax_grad(x, y, out, n); break;
    case 4: norm->scale_each(x, norm_map, y, y, out, n); break;
    case 5: norm->scale_all(x, norm_map, 0.7f, 0.1f, out, n); break;
    case 6: norm->apply_each(x, y, norm_map, y, 0.2f, 0.1f, out, n); break;
    case 7: norm->apply_all(x, y, norm_map, 1.3f, 0.2f, 0.1f, out, n); break;
    case 8:
        memcpy(out, x, (size_t)n * sizeof *out);
        out[0] += table->powers(out, 1.3f, 0.2f, n);
        break;
    case 9:
        memcpy(other, x, (size_t)n * sizeof *out);
        memcpy(out, y, (size_t)n * sizeof *out);
        table->powers_grad(other, out, 1.3f, 0.2f, 0.7f, n);
        for (int i = 0; i < n; i++)
            out[i] += other[i];
        break;
    default:
        memcpy(out, y, (size_t)n * sizeof *out);
        norm->add_scales(x, y, norm_map, out, other, n);
        for (int i = 0; i < n; i++)
            out[i] += other[i] * 0.5f;
        break;
    }
}

// Sums and the maximum: kinds 0 to 3, with the rules' sum of squares, in double, as the last; then
// the sums of normalization and attention.
static double run_reduction(int level, int kind, const float *x, int n)
{
    switch (kind) {
    case 0: return (double)kernels[level]->sum(x, n);
    case 1: return (double)kernels[level]->sum_square(x, n);
    case 2: return n > 0 ? (double)kernels[level]->max(x, n) : 0.0;
    case 3: return rules[level]->sum_square(x, n);
    case 4: return row_norms[level]->sum(x, n);
    case 5: return row_norms[level]->sum_distances(x, 0.3f, n);
    case 6: return row_norms[level]->sum_squares(x, 0.3f, n);
    case 7: return row_norms[level]->dot(x, x, n);
    case 8: return row_norms[level]->dot_mapped(x, norm_map, x, n);
    case 9: return row_norms[level]->dot_scaled(x, norm_map, x, x, n);
    default: return (double)kernels[level]->dot(x, x, n);
    }
}

// The same row at another address and another level gives the same bits.
static void test_rows(void **state)
{
    (void)state;
    static float x[SIZE], y[SIZE], moved_x[SIZE], moved_y[SIZE];
    float expected[SIZE], got[SIZE + GUARD];
    for (int i = 0; i < SIZE; i++) {
        x[i] = (float)(i * 7919 % 2003) / 400.0f - 2.4f;
        y[i] = -(float)(i * 6271 % 1999) / 500.0f;
    }
    for (int at = 0; at < KINDS * level_count * OFFSETS * (LENGTHS + 1); at++) {
        int kind = at % KINDS, level = at / KINDS % level_count;
        int offset = at / KINDS / level_count % OFFSETS;
        int n = at / KINDS / level_count / OFFSETS;
        memcpy(moved_x + offset, x, (size_t)n * sizeof *x);
        memcpy(moved_y + offset, y, (size_t)n * sizeof *y);
        double first = run_reduction(0, kind, x, n);
        double second = run_reduction(level, kind, moved_x + offset, n);
        assert_memory_equal(&first, &second, sizeof first);
        if (n == 0) continue; // softmax needs at least one element
        set_guard(got);
        run_row(0, kind, x, y, expected, n);
        run_row(level, kind, moved_x + offset, moved_y + offset, got, n);
        check_range("row", kind, level, got, expected, n);
    }
}

static void test_transpose(void **state)
{
    (void)state;
    enum { K = 21, STEP = 25, MOST = 33 };
    static float from[MOST * STEP], got[K * (MOST + 2)];
    for (int i = 0; i < MOST * STEP; i++)
        from[i] = (float)i;
    for (int at = 0; at < level_count * MOST * (K + 1); at++) {
        int level = at % level_count, rows = at / level_count % MOST + 1;
        int k = at / level_count / MOST, to_step = rows + 2;
        memset(got, 0, sizeof got);
        products[level]->transpose(from, STEP, rows, k, got, to_step);
        for (int i = 0; i < k * to_step; i++) {
            int row = i % to_step, column = i / to_step;
            float expected = row < rows ? from[row * STEP + column] : 0;
            assert_memory_equal(&got[i], &expected, sizeof expected);
        }
    }
}

static void test_copy(void **state)
{
    (void)state;
    enum { K = 5, STEP = 40, MOST = 35 };
    static float from[K * STEP], got[K * (MOST + 2)];
    for (int i = 0; i < K * STEP; i++)
        from[i] = (float)i;
    for (int at = 0; at < level_count * MOST; at++) {
        int level = at % level_count, columns = at / level_count + 1, to_step = columns + 2;
        memset(got, 0, sizeof got);
        products[level]->copy(from, STEP, K, columns, got, to_step);
        for (int i = 0; i < K * to_step; i++) {
            float expected = i % to_step < columns ? from[i / to_step * STEP + i % to_step] : 0;
            assert_memory_equal(&got[i], &expected, sizeof expected);
        }
    }
}

// One block of sums, by its level's kernel and by chains of fmaf, with a guard after each row.
typedef struct block_case {
    int level;
    int64_t rows, columns, k;
    bool across, starts, is_row, turned; // across: rows of a are adjacent
} block_case;

static void check_block(const block_case *x)
{
    enum { STEP = 19, B_STEP = BEL_PRODUCT_COLUMNS + 3, C_STEP = BEL_PRODUCT_COLUMNS + 1, K = 40 };
    int64_t a_row = x->across ? 1 : STEP, a_step = x->across ? STEP : 1;
    static float a[(BEL_PRODUCT_ROWS + 2 * K) * STEP], b[(2 * K + 8) * B_STEP];
    static float start[BEL_PRODUCT_ROWS * C_STEP];
    static float c[BEL_PRODUCT_ROWS * C_STEP];
    const bel_product_segment segments[] = {{0, 3}, {5, B_STEP + 1}};
    if (a[0] == 0) {
        for (size_t i = 0; i < sizeof a / sizeof a[0]; i++)
            a[i] = (float)((i + 1) * 7919 % 2003) / 1001.0f - 1.0f;
        for (size_t i = 0; i < sizeof b / sizeof b[0]; i++)
            b[i] = (float)((i + 1) * 104729 % 2003) / 1001.0f - 1.0f;
        for (size_t i = 0; i < sizeof start / sizeof start[0]; i++)
            start[i] = (float)((i + 1) * 1299709 % 2003) / 1001.0f - 1.0f;
    }
    bel_product_block block = {.rows = x->rows,
                               .columns = x->columns,
                               .b = b,
                               .segments = segments,
                               .segment_count = 2,
                               .k = x->k,
                               .a_step = a_step,
                               .b_step = B_STEP,
                               .start = x->starts ? start : NULL,
                               .start_is_row = x->starts && x->is_row,
                               .c = c};
    bel_product_set_rows(&block, a, a_row, C_STEP);
    for (size_t i = 0; i < sizeof c / sizeof c[0]; i++)
        c[i] = -77.0f;
    if (x->turned) {
        products[x->level]->run_turned(&block, K);
    } else {
        products[x->level]->run(&block);
    }
    for (int64_t r = 0; r < x->rows; r++) {
        for (int64_t j = 0; j < C_STEP; j++) {
            float sum = x->starts ? start[(x->is_row ? 0 : r * C_STEP) + j] : 0;
            for (int s = 0; s < (x->turned ? 1 : 2); s++)
                for (int64_t i = 0; i < x->k; i++) {
                    int64_t at = x->turned ? j * K + i : segments[s].b + i * B_STEP + j;
                    int64_t from = x->turned ? 0 : segments[s].a;
                    sum = fmaf(a[r * a_row + from + i * a_step], b[at], sum);
                }
            if (j >= x->columns) sum = -77.0f;
            if (same_bits(c[r * C_STEP + j], sum)) continue;
            fail_msg("level %s, %lld rows, %lld columns%s, k %lld: (%lld, %lld) is %a, expected %a",
                     bel_isa_name((bel_isa)x->level), (long long)x->rows, (long long)x->columns,
                     x->turned ? ", turned" : "", (long long)x->k, (long long)r, (long long)j,
                     (double)c[r * C_STEP + j], (double)sum);
        }
    }
}

// All of a level's numbers of rows and units, full and partial, with and without start values.
static void test_block(void **state)
{
    (void)state;
    static const int64_t depths[] = {0, 1, 4, 7};
    for (int level = 0; level < level_count; level++)
        for (int64_t units = 1; units <= BEL_PRODUCT_UNITS; units++)
            for (int64_t rows = 1; rows <= products[level]->rows_most[units]; rows++)
                for (int at = 0; at < 48; at++)
                    check_block(&(block_case){.level = level,
                                              .rows = rows,
                                              .columns = (units - 1) * BEL_PRODUCT_LANES +
                                                         (int[]){16, 1, 9}[at % 3],
                                              .k = depths[at / 3 % 4],
                                              .across = at >= 24,
                                              .starts = at % 24 >= 12,
                                              .is_row = at % 2 == 0});
}

static void test_turned_block(void **state)
{
    (void)state;
    for (int level = 0; level < level_count; level++)
        for (int at = 0; at < BEL_PRODUCT_TURNED_ROWS * 40 * 4; at++)
            check_block(&(block_case){.level = level,
                                      .rows = at / 160 + 1,
                                      .columns = BEL_PRODUCT_TURNED_COLUMNS,
                                      .k = at / 4 % 40,
                                      .across = at % 4 >= 2,
                                      .starts = at % 2 == 1,
                                      .turned = true});
}

// Random bits of a float: mostly of similar magnitude, so that sums cancel and ties occur; else any
// number, including infinities, NaN and subnormal numbers.
static float any_float(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint32_t bits = (uint32_t)(*state >> 32), kind = (uint32_t)(*state >> 20) % 8;
    if (kind < 4) bits = (bits & 0x807fffffu) | (120 + (bits >> 23) % 16) << 23;
    if (kind == 4) bits &= 0xff800000u; // powers of two
    if (kind == 5) bits &= 0x80ffffffu; // the smallest exponents
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// a · b + c rounded once, at every level, for numbers that make it hard.
static void test_fused(void **state)
{
    (void)state;
    enum { CASES = 1 << 16 };
    static const bel_product_segment whole = {0, 0};
    uint64_t random = 1;
    for (int at = 0; at < CASES; at++) {
        float a = any_float(&random), b[BEL_PRODUCT_LANES], start[BEL_PRODUCT_LANES];
        for (int l = 0; l < BEL_PRODUCT_LANES; l++) {
            b[l] = any_float(&random);
            start[l] = any_float(&random);
            // Near the product, and half a unit in its last place from it.
            if (l % 4 == 1) start[l] = -a * b[l];
            if (l % 4 == 2) start[l] = a * b[l] * 0x1p24f;
        }
        for (int level = 0; level < level_count; level++) {
            float c[BEL_PRODUCT_LANES];
            bel_product_block block = {.rows = 1,
                                       .columns = BEL_PRODUCT_LANES,
                                       .a = {&a},
                                       .b = b,
                                       .segments = &whole,
                                       .segment_count = 1,
                                       .k = 1,
                                       .start = start,
                                       .c = c};
            products[level]->run(&block);
            for (int l = 0; l < BEL_PRODUCT_LANES; l++) {
                float expected = fmaf(a, b[l], start[l]);
                if (same_bits(c[l], expected)) continue;
                fail_msg("level %s: %a · %a + %a is %a, expected %a", bel_isa_name((bel_isa)level),
                         (double)a, (double)b[l], (double)start[l], (double)c[l], (double)expected);
            }
        }
    }
}

// Four chains; the bias begins the first one. Elements after a row's end stay unchanged.
static float few_sum(const bel_product_few *f, int64_t row, int64_t column)
{
    float chains[4] = {f->bias != NULL ? f->bias[column] : 0};
    for (int64_t p = 0; p < f->k; p++)
        chains[p % 4] = fmaf(f->a[row * f->k + p], f->b[p * f->n + column], chains[p % 4]);
    float sum = (chains[0] + chains[1]) + (chains[2] + chains[3]);
    return f->relu && !(sum > 0) ? 0 : sum;
}

static void test_short_chains(void **state)
{
    (void)state;
    enum { ROWS = 2, MOST_N = 53, MOST_K = 11 };
    static float a[ROWS * MOST_K], b[MOST_K * MOST_N], bias[MOST_N], y[ROWS * MOST_N + GUARD];
    for (int i = 0; i < MOST_K * MOST_N; i++) {
        b[i] = (float)(i * 7919 % 2003) / 1000.0f - 1;
        if (i < ROWS * MOST_K) a[i] = (float)(i * 6271 % 1999) / 1000.0f - 1;
        if (i < MOST_N) bias[i] = (float)(i % 7) - 3;
    }
    a[MOST_K - 2] = NAN; // only in the first row, if k is large
    for (int64_t n = 1; n <= MOST_N; n += n < 20 ? 1 : 11)
        for (int64_t k = 0; k <= MOST_K; k++)
            for (int kind = 0; kind < 4 * level_count; kind++) {
                const bel_product_few few = {.m = ROWS,
                                             .n = n,
                                             .k = k,
                                             .a = a,
                                             .b = b,
                                             .bias = kind % 2 == 0 ? bias : NULL,
                                             .relu = kind / 2 % 2 == 0,
                                             .y = y};
                for (int i = 0; i < ROWS * MOST_N + GUARD; i++)
                    y[i] = -77.0f;
                products[kind / 4]->run_few(&few);
                for (int64_t i = 0; i < ROWS * n; i++)
                    assert_true(same_bits(y[i], few_sum(&few, i / n, i % n)));
                for (int64_t i = ROWS * n; i < ROWS * n + GUARD; i++)
                    assert_true(y[i] == -77.0f);
            }
}

// Winograd's transforms, element by element in the order that all levels keep.
static void turn(const float d[4], float out[4])
{
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
}

static void turn_back(const float m[4], float out[2])
{
    out[0] = (m[0] + m[1]) + m[2];
    out[1] = (m[1] - m[2]) - m[3];
}

enum { PATCHES = 3, CHANNELS = 32, POINT = PATCHES * CHANNELS + 16, COLUMNS = 2 * PATCHES + 2 };

static void expect_patch(const float *pixels, int64_t patch, int64_t channel, float out[4][4])
{
    float half[4][4], d[4];
    for (int64_t j = 0; j < 4; j++) {
        float column[4];
        for (int64_t i = 0; i < 4; i++)
            d[i] = pixels[(i * COLUMNS + 2 * patch + j) * CHANNELS + channel];
        turn(d, column);
        for (int64_t i = 0; i < 4; i++)
            half[i][j] = column[i];
    }
    for (int64_t i = 0; i < 4; i++)
        turn(half[i], out[i]);
}

static void expect_results(const float *from, int64_t patch, int64_t channel, float out[2][2])
{
    float half[2][4], m[4], column[2];
    for (int64_t j = 0; j < 4; j++) {
        for (int64_t i = 0; i < 4; i++)
            m[i] = from[(4 * i + j) * POINT + patch * CHANNELS + channel];
        turn_back(m, column);
        half[0][j] = column[0];
        half[1][j] = column[1];
    }
    for (int64_t i = 0; i < 2; i++)
        turn_back(half[i], out[i]);
}

static void test_winograd(void **state)
{
    (void)state;
    static const bel_winograd_kernels *const winograds[] = {
        BEL_ISA_LEVELS(BEL_ISA_ADDRESS, bel_winograd_kernels)};
    static float pixels[4 * COLUMNS * CHANNELS], points[BEL_WINOGRAD_POINTS * POINT];
    static float bias[CHANNELS], upper[2 * PATCHES * CHANNELS], lower[2 * PATCHES * CHANNELS];
    uint64_t random = 3;
    for (size_t i = 0; i < sizeof pixels / sizeof pixels[0]; i++)
        pixels[i] = any_float(&random);
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = (float)(i % 5) - 2;
    for (int level = 0; level < level_count; level++) {
        winograds[level]->patches(pixels, COLUMNS * CHANNELS, CHANNELS, PATCHES, points, POINT);
        for (int64_t p = 0; p < PATCHES; p++)
            for (int64_t c = 0; c < CHANNELS; c++) {
                float want[4][4];
                expect_patch(pixels, p, c, want);
                for (int64_t e = 0; e < BEL_WINOGRAD_POINTS; e++)
                    assert_true(
                        same_bits(points[e * POINT + p * CHANNELS + c], want[e / 4][e % 4]));
            }
        for (int kind = 0; kind < 8; kind++) { // with bias, relu; a last column, a lower row
            bool has_bias = kind % 2 == 0, relu = kind / 2 % 2 == 0;
            int64_t columns = 2 * PATCHES - kind / 4;
            for (int i = 0; i < 2 * PATCHES * CHANNELS; i++)
                upper[i] = lower[i] = -77.0f;
            winograds[level]->results(points, POINT, CHANNELS, PATCHES, has_bias ? bias : NULL,
                                      relu, columns, upper, kind < 4 ? lower : NULL);
            for (int64_t p = 0; p < PATCHES; p++)
                for (int64_t c = 0; c < CHANNELS; c++) {
                    float want[2][2];
                    expect_results(points, p, c, want);
                    for (int64_t e = 0; e < 4; e++) {
                        float result = want[e / 2][e % 2] + (has_bias ? bias[c] : 0);
                        const float *got = e < 2 ? upper : lower;
                        bool inside = 2 * p + e % 2 < columns && (e < 2 || kind < 4);
                        if (!has_bias) result = want[e / 2][e % 2];
                        if (relu && !(result > 0)) result = 0;
                        if (!inside) result = -77.0f;
                        assert_true(same_bits(got[(2 * p + e % 2) * CHANNELS + c], result));
                    }
                }
        }
    }
}

int main(void)
{
    unsetenv("BELFRY_ISA"); // bel_isa_get then answers for the processor
    level_count = (int)bel_isa_get() + 1;
    print_message("levels up to %s\n", bel_isa_name(bel_isa_get()));
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),  cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_rows),         cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_copy),         cmocka_unit_test(test_block),
        cmocka_unit_test(test_turned_block), cmocka_unit_test(test_fused),
        cmocka_unit_test(test_short_chains), cmocka_unit_test(test_winograd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
