// Tests of products with an unchanging b. Programs with fixed variables pack it once. The bits are
// those of programs that pack it in every run, for all shapes, with any number of threads, and also
// if the variable changes its address between two runs.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { MOST = 1 << 20 };

static float a[MOST], b[2][MOST], c[MOST];

typedef struct product_case {
    int64_t stack, m, n, k; // stack: matrices of a
    bool turned;            // b is [n, k]
    int added;              // c: 0: none, 1: [n], 2: [m, n]
    double alpha;
} product_case;

static bel_value *build(bel_graph *g, const product_case *s, bel_shape *out_shape)
{
    bel_shape of_b = s->turned ? BEL_SHAPE(s->n, s->k) : BEL_SHAPE(s->k, s->n);
    bel_shape of_c = s->added == 1 ? BEL_SHAPE(s->n) : BEL_SHAPE(s->m, s->n);
    *out_shape = s->stack > 1 ? BEL_SHAPE(s->stack, s->m, s->k) : BEL_SHAPE(s->m, s->k);
    bel_value *x = bel_input_value(g, "a", BEL_DTYPE_F32, out_shape);
    bel_value *y =
        bel_variable(g, "b", &of_b, (bel_initializer){.kind = BEL_INIT_ZEROS}, BEL_VARIABLE_FROZEN);
    if (s->stack > 1) return bel_matmul(g, x, y);
    bel_value *z = s->added == 0 ? NULL : bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, of_c, c});
    return bel_gemm(g, x, y, z, s->alpha, s->added == 2 ? 0.5 : 1, false, s->turned);
}

// Makes two runs with one b and one with the other, and appends the results. *out_packed: packed.
static float *run(const product_case *s, bool fixed, int threads, size_t *out_floats,
                  bool *out_packed)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape;
    bel_program_output output = {.value = build(g, s, &shape)};
    const bel_program_options options = {.fixed_variables = fixed, .threads = threads};
    bel_program *program;
    bel_team *team;
    BEL_ASSERT_OK(bel_program_compile(g, &shape, &output, 1, &options, &program));
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    *out_packed = bel_program_prologue_count(program) > 0;
    void *arena = bel_xcalloc(bel_program_arena_bytes(program) + 64, 1);
    bel_instance *instance = bel_instance_create(program, arena);
    size_t floats = (size_t)(s->stack * s->m * s->n);
    float *kept = bel_xcalloc(3 * floats, sizeof *kept);
    bel_instance_bind_input(instance, 0, a);
    for (size_t i = 0; i < 3; i++) {
        bel_run_context context = {.seed = 1};
        bel_instance_bind_variable(instance, 0, b[i / 2]);
        BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
        memcpy(kept + i * floats, bel_instance_output(instance, 0).data, floats * sizeof *kept);
    }
    *out_floats = 3 * floats;
    bel_instance_destroy(instance);
    bel_free(arena);
    bel_team_destroy(team);
    bel_program_destroy(program);
    bel_graph_destroy(g);
    return kept;
}

static void assert_same(const product_case *s, bool expects_packing)
{
    size_t floats;
    bool packed, never;
    float *want = run(s, false, 1, &floats, &never);
    for (int threads = 1; threads <= 3; threads += 2) {
        float *got = run(s, true, threads, &floats, &packed);
        assert_false(never);
        assert_int_equal(packed, expects_packing);
        assert_memory_equal(got, want, floats * sizeof *got);
        bel_free(got);
    }
    bel_free(want);
}

static void test_shapes(void **state)
{
    (void)state;
    static const int64_t rows[] = {5, 37, 100, 421}, columns[] = {17, 64, 100, 333, 512};
    static const int64_t depths[] = {1, 30, 257, 700};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (size_t j = 0; j < sizeof columns / sizeof columns[0]; j++)
            for (size_t l = 0; l < sizeof depths / sizeof depths[0]; l++) {
                product_case s = {
                    .stack = 1, .m = rows[i], .n = columns[j], .k = depths[l], .alpha = 1};
                for (int kind = 0; kind < 4; kind++) {
                    s.turned = kind % 2 == 1;
                    s.added = (int)(i + j + l) % 3;
                    s.alpha = kind < 2 ? 1 : 0.75;
                    assert_same(&s, s.turned || s.m > 36);
                }
            }
}

// Large enough for several tiles, also along the columns.
static void test_tiles(void **state)
{
    (void)state;
    const product_case wide = {.stack = 1, .m = 130, .n = 1490, .k = 640, .added = 1, .alpha = 1};
    const product_case turned = {
        .stack = 1, .m = 130, .n = 1490, .k = 640, .turned = true, .alpha = 1};
    const product_case stacked = {.stack = 7, .m = 64, .n = 200, .k = 128, .alpha = 1};
    assert_same(&wide, true);
    assert_same(&turned, true);
    assert_same(&stacked, true);
}

static int fill_all(void **state)
{
    (void)state;
    unsigned seed = 1;
    float *const to[] = {a, b[0], b[1], c};
    for (size_t t = 0; t < 4; t++)
        for (int64_t i = 0; i < MOST; i++) {
            seed = seed * 1664525u + 1013904223u;
            to[t][i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
        }
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests(tests, fill_all, NULL);
}
