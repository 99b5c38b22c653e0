// Cost model: twice the batch costs about twice as much, slower instructions cost more, and every
// instruction has a cost.
#include "base/alloc.h"
#include "belfry/ops.h"
#include "runtime/program.h"
#include "support/bel_test.h"

enum { SIDE = 16, PIXELS = SIDE * SIDE };

typedef bel_value *build_fn(bel_graph *graph, bel_value *x);

static bel_value *build_add(bel_graph *g, bel_value *x)
{
    return bel_add(g, x, x);
}

static bel_value *build_tanh(bel_graph *g, bel_value *x)
{
    return bel_tanh(g, x);
}

static bel_value *build_pow(bel_graph *g, bel_value *x)
{
    return bel_pow(g, x, x);
}

static bel_value *build_softmax(bel_graph *g, bel_value *x)
{
    return bel_softmax(g, x);
}

static bel_value *build_dense(bel_graph *g, bel_value *x)
{
    return bel_dense(g, x, 300, "dense");
}

static bel_value *build_narrow(bel_graph *g, bel_value *x)
{
    return bel_dense(g, x, 30, "dense");
}

static bel_value *images(bel_graph *g, bel_value *x)
{
    bel_shape shape = BEL_SHAPE(-1, 1, SIDE, SIDE);
    return bel_reshape(g, x, &shape);
}

static bel_value *build_conv(bel_graph *g, bel_value *x)
{
    return bel_conv_2d(g, images(g, x), 16, 3, 1, true, "conv");
}

static bel_value *build_norm(bel_graph *g, bel_value *x)
{
    return bel_batch_norm(g, images(g, x), true, "norm");
}

static bel_value *build_conv_norm(bel_graph *g, bel_value *x)
{
    return bel_batch_norm(g, build_conv(g, x), true, "norm");
}

// Expected cost of all instructions for a batch of `rows`.
static int64_t cost_of(build_fn *build, int64_t rows)
{
    bel_graph *graph = bel_graph_create();
    bel_shape shape = BEL_SHAPE(rows, PIXELS);
    bel_value *x = bel_input_value(graph, "x", BEL_DTYPE_F32, &shape);
    const bel_program_output output = {.value = build(graph, x)};
    bel_program *program;
    BEL_ASSERT_OK(bel_graph_check(graph));
    BEL_ASSERT_OK(bel_program_compile(graph, &shape, &output, 1, NULL, &program));
    int64_t cost_ns = 0;
    for (int i = 0; i < bel_program_instruction_count(program); i++) {
        int64_t own = bel_program_line_at(program, i).cost_ns;
        assert_true(own > 0);
        cost_ns += own;
    }
    bel_program_destroy(program);
    bel_graph_destroy(graph);
    return cost_ns;
}

static void test_batches(void **state)
{
    (void)state;
    static build_fn *const all[] = {build_add,   build_tanh, build_pow, build_softmax,
                                    build_dense, build_conv, build_norm};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int64_t one = cost_of(all[i], 1024), two = cost_of(all[i], 2048);
        assert_true(two > one * 3 / 2 && two < one * 5 / 2);
        assert_true(cost_of(all[i], 1) < one / 4);
    }
}

static void test_order(void **state)
{
    (void)state;
    static build_fn *const cheaper_first[] = {build_add, build_tanh, build_pow};
    for (size_t i = 0; i + 1 < sizeof cheaper_first / sizeof cheaper_first[0]; i++)
        assert_true(2 * cost_of(cheaper_first[i], 64) < cost_of(cheaper_first[i + 1], 64));
    assert_true(4 * cost_of(build_narrow, 64) < cost_of(build_dense, 64));
    assert_true(cost_of(build_conv, 64) < cost_of(build_conv_norm, 64));
}

static void test_nothing(void **state)
{
    (void)state;
    static build_fn *const all[] = {build_add, build_softmax, build_dense};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_true(cost_of(all[i], 0) > 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
