// Tests of 3 × 3 convolutions by Winograd's algorithm (ops/kernels/winograd.h). Programs with
// fast_math use it where it fits. The results are near the direct sums at all sizes, pads and
// channel counts. They have the same bits with any number of threads. If the algorithm does not
// fit, they have the direct bits.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { MOST = 1 << 18 };

static float x[MOST], w[3][MOST], bias[128];

typedef struct conv_case {
    int64_t n, height, width, in, out;
    int64_t pads[4], stride, kernel;
    bool has_bias, relu;
} conv_case;

static void fill(float *to, int64_t count, unsigned seed)
{
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
}

static bel_value *weights(bel_graph *g, const char *name, int64_t out, int64_t in, int64_t side)
{
    bel_shape shape = BEL_SHAPE(out, in, side, side);
    return bel_variable(g, name, &shape, (bel_initializer){.kind = BEL_INIT_ZEROS},
                        BEL_VARIABLE_FROZEN);
}

// Two 1 × 1 convolutions around it make the images channels-last.
static float *run(const conv_case *c, bool fast, int threads, int64_t *out_count)
{
    bel_graph *g = bel_graph_create();
    bel_shape shape = BEL_SHAPE(c->n, c->in, c->height, c->width), of_bias = BEL_SHAPE(c->out);
    const int64_t strides[] = {c->stride, c->stride};
    const bel_window_options window = {.size = sizeof window, .pads = c->pads, .strides = strides};
    bel_value *in = bel_input_value(g, "x", BEL_DTYPE_F32, &shape), *b = NULL;
    bel_value *y = bel_conv(g, in, weights(g, "before", c->in, c->in, 1), NULL, 1, NULL);
    if (c->has_bias) b = bel_constant(g, &(bel_tensor){BEL_DTYPE_F32, of_bias, bias});
    y = bel_conv(g, y, weights(g, "w", c->out, c->in, c->kernel), b, 1, &window);
    if (c->relu) y = bel_relu(g, y);
    y = bel_conv(g, y, weights(g, "after", c->out, c->out, 1), NULL, 1, NULL);
    bel_program_output output = {.value = y};
    const bel_program_options options = {
        .fixed_variables = true, .fast_math = fast, .threads = threads};
    bel_program *program;
    bel_team *team;
    void *arena;
    BEL_ASSERT_OK(bel_program_compile(g, &shape, &output, 1, &options, &program));
    BEL_ASSERT_OK(bel_team_create(threads, &team));
    BEL_ASSERT_OK(bel_pages_create(bel_program_arena_bytes(program) + 64, false, "arena", &arena));
    bel_instance *instance = bel_instance_create(program, arena);
    bel_run_context context = {.seed = 1};
    bel_instance_bind_input(instance, 0, x);
    for (int v = 0; v < 3; v++)
        bel_instance_bind_variable(instance, v, w[v]);
    for (int again = 0; again < 2; again++) // the second run sees the first one's memory
        BEL_ASSERT_OK(bel_instance_run(instance, team, &context, NULL, NULL));
    bel_tensor got = bel_instance_output(instance, 0);
    *out_count = bel_shape_elements(&got.shape);
    float *kept = bel_xcalloc((size_t)*out_count, sizeof *kept);
    memcpy(kept, got.data, (size_t)*out_count * sizeof *kept);
    bel_instance_destroy(instance);
    bel_pages_destroy(arena, bel_program_arena_bytes(program) + 64);
    bel_team_destroy(team);
    bel_program_destroy(program);
    bel_graph_destroy(g);
    return kept;
}

// Whether some bits differ from those of direct sums. Checks that they are near.
static bool differs(const conv_case *c)
{
    int64_t count, same;
    float *direct = run(c, false, 1, &count), *fast = run(c, true, 1, &same);
    float *threads = run(c, true, 3, &same);
    assert_int_equal(count, same);
    assert_memory_equal(fast, threads, (size_t)count * sizeof *fast);
    bool all_same = memcmp(direct, fast, (size_t)count * sizeof *fast) == 0;
    double most = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double off = fabs((double)fast[i] - (double)direct[i]);
        most = off > most ? off : most;
        size += fabs((double)direct[i]) / (double)count;
    }
    if (!(most <= 2e-5 * size))
        fail_msg("n %d, %d x %d, %d to %d: off by %g of %g", (int)c->n, (int)c->height,
                 (int)c->width, (int)c->in, (int)c->out, most, size);
    bel_free(direct);
    bel_free(fast);
    bel_free(threads);
    return !all_same;
}

static void test_sizes_and_channels(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {2, 5}, {5, 2}, {8, 8}, {9, 13}, {24, 3}, {7, 30}};
    static const int64_t channels[][2] = {{16, 16}, {16, 80}, {48, 32}, {64, 16}};
    static const int64_t pads[][4] = {{1, 1, 1, 1}, {2, 1, 0, 2}, {1, 0, 2, 2}};
    int kind = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t k = 0; k < sizeof channels / sizeof channels[0]; k++)
            for (size_t p = 0; p < sizeof pads / sizeof pads[0]; p++) {
                conv_case c = {.n = kind % 3 * 8 + 1, // some with more images than tiles
                               .height = sizes[s][0],
                               .width = sizes[s][1],
                               .in = channels[k][0],
                               .out = channels[k][1],
                               .stride = 1,
                               .kernel = 3,
                               .has_bias = kind % 2 == 0,
                               .relu = kind / 2 % 2 == 0};
                memcpy(c.pads, pads[p], sizeof c.pads);
                assert_true(differs(&c));
                kind++;
            }
}

static void test_without_pads(void **state)
{
    (void)state;
    const conv_case c = {
        .n = 2, .height = 11, .width = 6, .in = 32, .out = 32, .stride = 1, .kernel = 3};
    assert_true(differs(&c));
}

// Windows, steps and channel counts that it does not support.
static void test_others_are_direct(void **state)
{
    (void)state;
    const conv_case base = {.n = 2,
                            .height = 8,
                            .width = 8,
                            .in = 16,
                            .out = 16,
                            .pads = {1, 1, 1, 1},
                            .stride = 1,
                            .kernel = 3,
                            .has_bias = true};
    conv_case others[] = {base, base, base, base};
    others[0].stride = 2;
    others[1].kernel = 2;
    others[2].in = 17;
    others[3].out = 12;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(differs(&others[i]));
}

// NaN spreads no further than its window, plus at most one patch.
static void test_not_finite(void **state)
{
    (void)state;
    const conv_case c = {.n = 1,
                         .height = 12,
                         .width = 12,
                         .in = 16,
                         .out = 16,
                         .pads = {1, 1, 1, 1},
                         .stride = 1,
                         .kernel = 3};
    int64_t count;
    float before = x[0];
    x[0] = NAN;
    float *y = run(&c, true, 1, &count);
    x[0] = before;
    assert_true(isnan(y[0]) != 0);
    assert_true(isfinite(y[12 * 12 - 1]) != 0);
    assert_true(isfinite(y[6]) != 0);
    bel_free(y);
}

static int fill_all(void **state)
{
    (void)state;
    fill(x, MOST, 1);
    for (unsigned v = 0; v < 3; v++)
        fill(w[v], MOST, 2 + v);
    fill(bias, 128, 9);
    return 0;
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_and_channels),
        cmocka_unit_test(test_without_pads),
        cmocka_unit_test(test_others_are_direct),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, fill_all, NULL);
}
